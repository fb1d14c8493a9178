# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""Protobuf's bytes to Arrow columns and back, in C. `protobuf/protobuf_rows.py` is the plain twin, which says what is right.

A plan is compiled once into a tree of `Message` and `Field`. Reading a message is two steps: `scan` notes where its
fields are, appending the elements of repeated ones, and `settle` appends one value to each column. A field that comes
again so replaces the one before, and a message that comes in pieces is the sum of them, as Protobuf has it. Every read
is checked against the end. The columns of a bad row are cut back to where it began.
"""

from threading import Lock

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, INT64_MAX, UINT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memmove, memset

from headrace.schemas.columns._column_tree cimport (
    BITS,
    FINE,
    MOST_CELLS,
    TEXT,
    TOO_LARGE,
    TOO_MANY_CELLS,
    Column,
    Growing,
    GrownColumns,
    View,
    bit_at,
    bits_at,
    clear_view,
    cut,
    drop_repeated,
    end_list,
    grow,
    grown_of,
    is_utf8,
    is_valid,
    lay_out,
    look_at,
    mark,
    put_bit,
    put_fixed,
    put_null,
    put_text,
    push,
    push_byte,
    raise_fault,
    start_column,
    text_at,
)

cdef enum FieldKind:  # in the order of `_KINDS`
    INT32, INT64, UINT32, UINT64, SINT32, SINT64, FIXED32, FIXED64, SFIXED32, SFIXED64, FLOAT, DOUBLE, BOOL, STRING
    BYTES, ENUM, MESSAGE, TIMESTAMP, DURATION

cdef enum Shape:
    ONE, MANY, MAP

cdef enum:  # troubles, behind the faults, in the order of `_REASONS`
    ENDS = 4
    BAD_TAG, BAD_GROUP, BAD_TEXT, NOT_THERE, BAD_TIME, NULL_REQUIRED, NULL_ELEMENT, NO_SUCH_NAME, TWO_OF_ONEOF

cdef enum:
    MOST_GROUPS = 100
    DIRECT = 64  # numbers of fields that are found by index

cdef int64_t MICROS = 1000000

_KINDS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64",
          "float", "double", "bool", "string", "bytes", "enum", "message", "timestamp", "duration")
_WIRES = dict.fromkeys(("fixed64", "sfixed64", "double"), 1) | dict.fromkeys(
    ("string", "bytes", "message", "timestamp", "duration"), 2) | dict.fromkeys(("fixed32", "sfixed32", "float"), 5)
_REASONS = ("", "", "", f"the message has more than {MOST_CELLS} values", "the bytes end within a value",
            "the bytes have no valid tag", "a group is not closed, or too deep", "the text is not UTF-8",
            "a required field is missing", "the time is out of range", "a required field is null",
            "an element is null", "the enum has no such name", "two fields of a oneof are set")

cdef struct Piece:
    const uint8_t *at
    const uint8_t *end

cdef struct Name:
    int32_t number
    const char *text
    size_t size

cdef struct Field:
    uint32_t number
    int kind
    int wire
    int shape
    int index  # in the list of all names
    bint is_required
    bint is_implicit
    bint zero_is_null
    bint is_filled  # never null: of a map's entry
    bint is_packed
    bint has_default
    uint64_t default_bits
    const char *default_text
    size_t default_size
    int oneof  # -1: none
    bint is_closed
    Name *names  # of an enum, by number
    int name_count
    const char *unknown
    Message *message
    Column *column
    const View *view
    # What `scan` has found.
    bint is_seen
    uint64_t bits
    const uint8_t *text
    size_t size
    Growing pieces

cdef struct Message:
    int count
    Field *fields
    Field **order  # by number
    int[DIRECT] direct  # place in `fields` by number, -1: none
    int oneofs
    Field **current  # the member of each oneof that is set
    Column *column
    bint is_rejected  # a map's entry, by an enum's unknown number

cdef struct Bad:
    int64_t row
    int trouble
    int field

cdef struct Context:
    int64_t cells
    int field  # where there was trouble; -1: nowhere
    uint64_t seed
    int trouble


# Bytes.


cdef inline const uint8_t *varint(const uint8_t *p, const uint8_t *end, uint64_t *value) noexcept nogil:
    # NULL where the bytes end, or go on for more than ten.
    cdef uint64_t found = 0
    cdef int shift = 0
    while p < end and shift < 70:
        found |= <uint64_t> (p[0] & 0x7F) << shift
        if p[0] < 0x80:
            value[0] = found
            return p + 1
        p += 1
        shift += 7
    return NULL


cdef const uint8_t *skipped(
    const uint8_t *p, const uint8_t *end, uint64_t tag, Context *context
) noexcept nogil:
    # Behind the value of a tag. Groups may hold groups.
    cdef uint64_t value = 0
    cdef uint64_t[MOST_GROUPS] open_groups
    cdef int depth = 0
    cdef int wire
    while True:
        wire = tag & 7
        if wire == 0:
            p = varint(p, end, &value)
        elif wire == 1:
            p = p + 8 if end - p >= 8 else NULL
        elif wire == 5:
            p = p + 4 if end - p >= 4 else NULL
        elif wire == 2:
            p = varint(p, end, &value)
            if p != NULL:
                p = p + value if value <= <uint64_t> (end - p) else NULL
        elif wire == 3:
            if depth == MOST_GROUPS:
                context.trouble = BAD_GROUP
                return NULL
            open_groups[depth] = tag >> 3
            depth += 1
        elif wire == 4:
            if depth == 0 or open_groups[depth - 1] != tag >> 3:
                context.trouble = BAD_GROUP
                return NULL
            depth -= 1
        else:
            context.trouble = BAD_TAG
            return NULL
        if p == NULL:
            context.trouble = ENDS
            return NULL
        if depth == 0:
            return p
        if p == end:
            context.trouble = BAD_GROUP
            return NULL
        p = varint(p, end, &tag)
        if p == NULL or tag > UINT32_MAX or tag >> 3 == 0:
            context.trouble = BAD_TAG if p != NULL else ENDS
            return NULL


cdef inline Field *found_field(Message *message, uint64_t number) noexcept nogil:
    cdef int low = 0, high = message.count, middle
    if number < DIRECT:
        return &message.fields[message.direct[number]] if message.direct[number] >= 0 else NULL
    while low < high:
        middle = (low + high) >> 1
        if message.order[middle].number < number:
            low = middle + 1
        else:
            high = middle
    return message.order[low] if low < message.count and message.order[low].number == number else NULL


cdef inline uint64_t converted(int kind, uint64_t bits) noexcept nogil:
    # What a varint means.
    if kind == INT64 or kind == UINT64:
        return bits
    if kind == BOOL:
        return bits != 0
    if kind == SINT64:
        return (bits >> 1) ^ (0 - (bits & 1))
    if kind == SINT32:
        return <uint32_t> ((<uint32_t> bits >> 1) ^ (0 - (<uint32_t> bits & 1)))
    return <uint32_t> bits


cdef inline const uint8_t *number(Field *field, const uint8_t *p, const uint8_t *end, uint64_t *bits) noexcept nogil:
    cdef uint32_t four
    if field.wire == 0:
        p = varint(p, end, bits)
        if p != NULL:
            bits[0] = converted(field.kind, bits[0])
        return p
    if field.wire == 5:
        if end - p < 4:
            return NULL
        memcpy(&four, p, 4)
        bits[0] = four
        return p + 4
    if end - p < 8:
        return NULL
    memcpy(bits, p, 8)
    return p + 8


cdef inline Name *found_name(Field *field, int32_t number) noexcept nogil:
    cdef int low = 0, high = field.name_count, middle
    while low < high:
        middle = (low + high) >> 1
        if field.names[middle].number < number:
            low = middle + 1
        else:
            high = middle
    return &field.names[low] if low < field.name_count and field.names[low].number == number else NULL


# Reading.


cdef inline int put_number(Field *field, Column *column, uint64_t bits) noexcept nogil:
    cdef Name *name
    cdef char[320] unknown
    cdef int size
    if column.kind == BITS:
        return put_bit(column, bits != 0)
    if field.kind != ENUM:
        return put_fixed(column, bits)
    name = found_name(field, <int32_t> bits)
    if name != NULL:
        return put_text(column, <const uint8_t *> name.text, name.size)
    size = snprintf(unknown, sizeof(unknown), "%.300s%d", field.unknown, <int32_t> bits)
    return put_text(column, <const uint8_t *> unknown, size)


cdef inline void begin(Message *message) noexcept nogil:
    cdef int i
    for i in range(message.count):
        message.fields[i].is_seen = False
        message.fields[i].pieces.size = 0
    for i in range(message.oneofs):
        message.current[i] = NULL
    message.is_rejected = False


cdef inline void choose(Message *message, Field *field) noexcept nogil:
    # A member of a oneof is set, and the others are not any more.
    cdef Field *before
    field.is_seen = True
    if field.oneof >= 0:
        before = message.current[field.oneof]
        if before != NULL and before != field:
            before.is_seen = False
            before.pieces.size = 0
        message.current[field.oneof] = field


cdef int put_time(Context *context, Field *field, const Piece *pieces, size_t count) noexcept nogil:
    # Seconds and nanoseconds to microseconds.
    cdef int64_t seconds = 0, micros
    cdef int32_t nanos = 0
    cdef uint64_t tag = 0, value = 0
    cdef const uint8_t *p
    cdef const uint8_t *end
    cdef size_t i
    for i in range(count):
        p, end = pieces[i].at, pieces[i].end
        while p < end:
            p = varint(p, end, &tag)
            if p == NULL or tag > UINT32_MAX or tag >> 3 == 0:
                return ENDS if p == NULL else BAD_TAG
            if tag == 8 or tag == 16:
                p = varint(p, end, &value)
                if p == NULL:
                    return ENDS
                if tag == 8:
                    seconds = <int64_t> value
                else:
                    nanos = <int32_t> value
            else:
                p = skipped(p, end, tag, context)
                if p == NULL:
                    return context.trouble
    if not -(INT64_MAX // MICROS) < seconds < INT64_MAX // MICROS:
        return BAD_TIME
    micros = seconds * MICROS + nanos // 1000
    return put_fixed(element_of(field), <uint64_t> micros)


cdef inline Column *element_of(Field *field) noexcept nogil:
    return field.column if field.shape == ONE else &field.column.children[0]


cdef int put_element(Context *context, Field *field, const uint8_t *at, const uint8_t *end) noexcept nogil:
    # One more element of a repeated field of bytes; its text was checked.
    cdef Piece piece
    cdef int trouble
    if field.kind == STRING or field.kind == BYTES:
        return put_text(element_of(field), at, end - at)
    piece.at, piece.end = at, end
    if field.kind != MESSAGE:
        return put_time(context, field, &piece, 1)
    begin(field.message)
    trouble = scan(context, field.message, at, end)
    if trouble == FINE and not (field.shape == MAP and field.message.is_rejected):
        trouble = settle(context, field.message)
    return trouble


cdef inline int located(Context *context, Field *field, int trouble) noexcept nogil:
    # The innermost field in which there is trouble is the one that is named.
    if trouble != FINE and context.field < 0:
        context.field = field.index
    return trouble


cdef int sized(Context *context, Message *message, Field *field, const uint8_t *p, size_t size) noexcept nogil:
    # A value with a length.
    cdef Piece piece
    if field.kind == STRING and not is_utf8(p, size):
        return BAD_TEXT
    if field.shape != ONE:
        context.cells += field.column.cells
        if context.cells > MOST_CELLS:
            return TOO_MANY_CELLS
        return put_element(context, field, p, p + size)
    choose(message, field)
    if field.kind == STRING or field.kind == BYTES:
        field.text, field.size = p, size
        return FINE
    piece.at, piece.end = p, p + size
    return push(&field.pieces, &piece, sizeof(Piece))


cdef int numbered(Context *context, Message *message, Field *field, uint64_t bits) noexcept nogil:
    # A number, alone or in a row.
    if field.is_closed and found_name(field, <int32_t> bits) == NULL:
        message.is_rejected = True
        return FINE
    if field.shape == MANY:
        context.cells += 1
        if context.cells > MOST_CELLS:
            context.field = field.index
            return TOO_MANY_CELLS
        return put_number(field, &field.column.children[0], bits)
    if field.is_closed:
        message.is_rejected = False
    choose(message, field)
    field.bits = bits
    return FINE


cdef int scan(Context *context, Message *message, const uint8_t *p, const uint8_t *end) noexcept nogil:
    # Note the fields of a message, or of a piece of one.
    cdef uint64_t tag = 0, bits = 0
    cdef const uint8_t *last
    cdef Field *field
    cdef int wire, trouble
    while p < end:
        if p[0] < 0x80:
            tag = p[0]
            p += 1
        else:
            p = varint(p, end, &tag)
            if p == NULL:
                return ENDS
        if tag > UINT32_MAX or tag < 8:
            return BAD_TAG
        wire = tag & 7
        field = found_field(message, tag >> 3)
        if field == NULL or (wire != field.wire and not (wire == 2 and field.shape == MANY and field.wire != 2)):
            p = skipped(p, end, tag, context)
            if p == NULL:
                return context.trouble
            continue
        if wire == field.wire and wire != 2:
            p = number(field, p, end, &bits)
            if p == NULL:
                return located(context, field, ENDS)
            trouble = numbered(context, message, field, bits)
        else:
            p = varint(p, end, &bits)
            if p == NULL or bits > <uint64_t> (end - p):
                return located(context, field, ENDS)
            last = p + bits
            if field.wire == 2:
                trouble = located(context, field, sized(context, message, field, p, bits))
                p = last
            else:
                trouble = FINE
                while p < last and trouble == FINE:
                    p = number(field, p, last, &bits)
                    if p == NULL:
                        return located(context, field, ENDS)
                    trouble = numbered(context, message, field, bits)
        if trouble != FINE:
            return trouble
    return FINE


cdef int settle_absent(Context *context, Field *field) noexcept nogil:
    if field.is_required:
        context.field = field.index
        return NOT_THERE
    if field.has_default or field.is_filled or (field.is_implicit and not field.zero_is_null):
        if field.kind == STRING or field.kind == BYTES:
            return put_text(field.column, <const uint8_t *> field.default_text, field.default_size)
        if field.kind == MESSAGE:
            begin(field.message)
            return settle(context, field.message)
        if field.kind == TIMESTAMP or field.kind == DURATION:
            return put_fixed(field.column, 0)
        return put_number(field, field.column, field.default_bits)
    return put_null(field.column)


cdef int settle_message(Context *context, Field *field) noexcept nogil:
    cdef Piece *pieces = <Piece *> field.pieces.at
    cdef size_t count = field.pieces.size // sizeof(Piece), i
    cdef int trouble
    if field.kind != MESSAGE:
        return located(context, field, put_time(context, field, pieces, count))
    begin(field.message)
    for i in range(count):
        trouble = scan(context, field.message, pieces[i].at, pieces[i].end)
        if trouble != FINE:
            return located(context, field, trouble)
    return settle(context, field.message)


cdef int settle(Context *context, Message *message) noexcept nogil:
    # One more value in the column of each field.
    cdef int i, trouble
    cdef Field *field
    for i in range(message.count):
        field = &message.fields[i]
        if field.shape != ONE:
            if field.shape == MAP:
                trouble = drop_repeated(field.column, (<int32_t *> field.column.offsets.at)[field.column.rows],
                                        context.seed)
                if trouble != FINE:
                    return trouble
            trouble = end_list(field.column)
        elif not field.is_seen:
            trouble = settle_absent(context, field)
        elif field.kind == STRING or field.kind == BYTES:
            trouble = put_null(field.column) if field.zero_is_null and field.size == 0 else put_text(
                field.column, field.text, field.size)
        elif field.wire == 2:
            trouble = settle_message(context, field)
        else:
            trouble = put_null(field.column) if field.zero_is_null and field.bits == 0 else put_number(
                field, field.column, field.bits)
        if trouble != FINE:
            return trouble
    return mark(message.column, 1)


# Writing.


cdef inline int push_varint(Growing *to, uint64_t value) noexcept nogil:
    cdef int fault = grow(to, 10)
    if fault != FINE:
        return fault
    while value >= 0x80:
        to.at[to.size] = <uint8_t> (value | 0x80)
        to.size += 1
        value >>= 7
    to.at[to.size] = <uint8_t> value
    to.size += 1
    return FINE


cdef inline int push_tag(Growing *to, Field *field, int wire) noexcept nogil:
    return push_varint(to, <uint64_t> field.number << 3 | wire)


cdef int close_length(Growing *to, size_t start) noexcept nogil:
    # Put the length before what was written from `start` on; one byte is there for it.
    cdef size_t size = to.size - start, rest = size >> 7, more = 0, i
    cdef int fault
    while rest:
        more += 1
        rest >>= 7
    if more:
        fault = grow(to, more)
        if fault != FINE:
            return fault
        memmove(to.at + start + more, to.at + start, size)
        to.size += more
    rest = size
    for i in range(more):
        to.at[start - 1 + i] = <uint8_t> (rest | 0x80)
        rest >>= 7
    to.at[start - 1 + more] = <uint8_t> rest
    return FINE


cdef int named_number(Field *field, const uint8_t *text, size_t size, int32_t *number) noexcept nogil:
    # The number of an enum's name. Names are few.
    cdef size_t i, prefix = 0
    cdef int64_t value = 0
    cdef bint is_negative
    for i in range(<size_t> field.name_count, <size_t> field.name_count * 2):
        if field.names[i].size == size and memcmp(field.names[i].text, text, size) == 0:
            number[0] = field.names[i].number
            return FINE
    while field.unknown[prefix]:
        prefix += 1
    if field.is_closed or size <= prefix or size > prefix + 11 or memcmp(text, field.unknown, prefix) != 0:
        return NO_SUCH_NAME
    is_negative = text[prefix] == c"-"
    if size == prefix + is_negative:
        return NO_SUCH_NAME
    for i in range(prefix + is_negative, size):
        if not c"0" <= text[i] <= c"9":
            return NO_SUCH_NAME
        value = value * 10 + (text[i] - c"0")
    value = -value if is_negative else value
    if not -<int64_t> INT32_MAX - 1 <= value <= INT32_MAX:
        return NO_SUCH_NAME
    number[0] = <int32_t> value
    return FINE


cdef int number_at(Field *field, const View *view, int64_t row, uint64_t *bits) noexcept nogil:
    # The bits of a scalar, as they are sent, but for varints' zigzag.
    cdef size_t size
    cdef const uint8_t *text
    cdef int32_t named = 0
    cdef int trouble
    if field.kind == BOOL:
        bits[0] = bit_at(view, row)
    elif field.kind == ENUM:
        text = text_at(view, row, &size)
        trouble = named_number(field, text, size, &named)
        bits[0] = <uint64_t> <int64_t> named
        return trouble
    elif field.kind in (INT64, UINT64, SINT64, FIXED64, SFIXED64, DOUBLE):
        bits[0] = bits_at(view, row, 8)
    else:
        bits[0] = bits_at(view, row, 4)
        if field.kind == INT32:
            bits[0] = <uint64_t> <int64_t> <int32_t> bits[0]
    return FINE


cdef inline int push_number(Growing *to, Field *field, uint64_t bits) noexcept nogil:
    if field.wire == 5:
        return push(to, &bits, 4)
    if field.wire == 1:
        return push(to, &bits, 8)
    if field.kind == SINT32:
        bits = <uint32_t> ((<uint32_t> bits << 1) ^ (0 - (<uint32_t> bits >> 31)))
    elif field.kind == SINT64:
        bits = (bits << 1) ^ (0 - (bits >> 63))
    return push_varint(to, bits)


cdef int write_time(Growing *to, Field *field, int64_t micros) noexcept nogil:
    cdef int64_t seconds = micros // MICROS, rest = micros % MICROS
    cdef int fault = FINE
    if field.kind == TIMESTAMP and rest < 0:  # nanoseconds count forward from the second
        rest += MICROS
        seconds -= 1
    if seconds:
        fault = push_byte(to, 8)
        if fault == FINE:
            fault = push_varint(to, <uint64_t> seconds)
    if rest and fault == FINE:
        fault = push_byte(to, 16)
        if fault == FINE:
            fault = push_varint(to, <uint64_t> (rest * 1000))
    return fault


cdef int write_value(Context *context, Growing *to, Field *field, const View *view, int64_t row) noexcept nogil:
    # A value with its tag, which is not null.
    cdef uint64_t bits = 0
    cdef size_t size, start
    cdef const uint8_t *text
    cdef int trouble
    if field.wire != 2:
        trouble = number_at(field, view, row, &bits)
        if trouble != FINE:
            context.field = field.index
            return trouble
        if field.is_implicit and bits == 0 and not field.is_filled:
            return FINE
        trouble = push_tag(to, field, field.wire)
        return trouble if trouble != FINE else push_number(to, field, bits)
    if field.kind == STRING or field.kind == BYTES:
        text = text_at(view, row, &size)
        if field.is_implicit and size == 0 and not field.is_filled:
            return FINE
        trouble = push_tag(to, field, 2)
        if trouble == FINE:
            trouble = push_varint(to, size)
        return trouble if trouble != FINE else push(to, text, size)
    trouble = push_tag(to, field, 2)
    if trouble == FINE:
        trouble = push_byte(to, 0)
    if trouble != FINE:
        return trouble
    start = to.size
    if field.kind == MESSAGE:
        trouble = write_message(context, to, field.message, view, row)
    else:
        trouble = write_time(to, field, <int64_t> bits_at(view, row, 8))
    return trouble if trouble != FINE else close_length(to, start)


cdef int write_packed(
    Context *context, Growing *to, Field *field, const View *view, int64_t first, int64_t last
) noexcept nogil:
    cdef uint64_t bits = 0
    cdef size_t start
    cdef int64_t row
    cdef int trouble = push_tag(to, field, 2)
    if trouble == FINE:
        trouble = push_byte(to, 0)
    start = to.size
    context.field = field.index
    for row in range(first, last):
        if trouble != FINE:
            return trouble
        if not is_valid(view, row):
            return NULL_ELEMENT
        trouble = number_at(field, view, row, &bits)
        if trouble == FINE:
            trouble = push_number(to, field, bits)
    return trouble if trouble != FINE else close_length(to, start)


cdef int write_many(Context *context, Growing *to, Field *field, const View *view, int64_t row) noexcept nogil:
    cdef int64_t first = view.offsets[row + view.offset], last = view.offsets[row + view.offset + 1]
    cdef const View *elements = &view.children[0]
    cdef int trouble
    if first == last:
        return FINE
    if field.is_packed:
        return write_packed(context, to, field, elements, first, last)
    for row in range(first, last):
        if not is_valid(elements, row):
            context.field = field.index
            return NULL_ELEMENT
        trouble = write_value(context, to, field, elements, row)
        if trouble != FINE:
            return trouble
    return FINE


cdef int write_message(Context *context, Growing *to, Message *message, const View *view, int64_t row) noexcept nogil:
    # The fields of a message, by number.
    cdef int i, trouble
    cdef Field *field
    cdef const View *own
    for i in range(message.oneofs):
        message.current[i] = NULL
    for i in range(message.count):
        field = message.order[i]
        own = &view.children[field - message.fields]
        if not is_valid(own, row):
            if field.is_required or field.is_filled:
                context.field = field.index
                return NULL_REQUIRED
            continue
        if field.oneof >= 0:
            if message.current[field.oneof] != NULL:
                context.field = field.index
                return TWO_OF_ONEOF
            message.current[field.oneof] = field
        if field.shape == ONE:
            trouble = write_value(context, to, field, own, row)
        else:
            trouble = write_many(context, to, field, own, row)
        if trouble != FINE:
            return trouble
    return FINE


# Compiled plans.


cdef void clear_message(Message *message) noexcept nogil:
    cdef int i
    if message == NULL:
        return
    for i in range(message.count):
        free(message.fields[i].names)
        free(message.fields[i].pieces.at)
        clear_message(message.fields[i].message)
    free(message.fields)
    free(message.order)
    free(message.current)
    free(message)


cdef void _attach(Message *message, Column *column) noexcept:
    # Tell each field where its values go.
    cdef int i
    cdef Field *field
    message.column = column
    for i in range(message.count):
        field = &message.fields[i]
        field.column = &column.children[i]
        if field.message != NULL:
            _attach(field.message, field.column if field.shape == ONE else &field.column.children[0])


cdef class ProtobufProgram:
    """A message type, compiled. Calls take turns: what a message holds is noted in the program itself.

    Args:
        plan: a `MessagePlan`.
        layout: of the column.
        seed: any number, which those who write records cannot know.
    """

    cdef Message *root
    cdef list names
    cdef list kept
    cdef object layout
    cdef uint64_t seed
    cdef object turn

    def __cinit__(self, plan, layout, uint64_t seed):
        self.names, self.kept, self.layout, self.seed, self.turn = [], [], layout, seed, Lock()
        self.root = self._message(plan, "", False)

    def __dealloc__(self):
        clear_message(self.root)

    cdef Message *_message(self, plan, str path, bint is_entry) except NULL:
        cdef Message *message = <Message *> calloc(1, sizeof(Message))
        cdef int i
        oneofs = {}
        if message == NULL:
            raise MemoryError
        try:
            message.fields = <Field *> calloc(len(plan.fields), sizeof(Field))
            message.order = <Field **> calloc(len(plan.fields), sizeof(void *))
            message.current = <Field **> calloc(len(plan.fields), sizeof(void *))
            if message.fields == NULL or message.order == NULL or message.current == NULL:
                raise MemoryError
            message.count = len(plan.fields)
            for i in range(DIRECT):
                message.direct[i] = -1
            for i, each in enumerate(plan.fields):
                if each.number < DIRECT:
                    message.direct[each.number] = i
                self._field(&message.fields[i], each, path + "." + each.name if path else each.name, is_entry)
                message.fields[i].oneof = oneofs.setdefault(each.oneof, len(oneofs)) if each.oneof else -1
            message.oneofs = len(oneofs)
            for i, (_, place) in enumerate(sorted((each.number, at) for at, each in enumerate(plan.fields))):
                message.order[i] = &message.fields[place]
        except BaseException:
            clear_message(message)
            raise
        return message

    cdef int _field(self, Field *field, plan, str path, bint is_entry) except -1:
        field.number, field.kind = plan.number, _KINDS.index(plan.kind)
        field.wire = _WIRES.get(plan.kind, 0)
        field.shape = ("one", "many", "map").index(plan.shape)
        field.index = len(self.names)
        self.names.append(path)
        field.is_required, field.is_filled = plan.is_required, is_entry
        field.is_implicit, field.zero_is_null = plan.is_implicit, plan.zero_is_null
        field.is_packed = plan.is_packed
        if plan.enum is not None:
            self._enum(field, plan.enum)
        if plan.default is not None:
            self._default(field, plan)
        if plan.message is not None:
            field.message = self._message(plan.message, path, plan.shape == "map")
        return 0

    cdef int _enum(self, Field *field, enum) except -1:
        # The names by number, and behind them those by which numbers are found.
        cdef list by_number = sorted(enum.names.items()), by_name = [(n, name) for name, n in enum.numbers.items()]
        cdef int count = max(len(by_number), len(by_name)), i
        field.names = <Name *> calloc(2 * count, sizeof(Name))
        if field.names == NULL:
            raise MemoryError
        by_number += [by_number[len(by_number) - 1]] * (count - len(by_number))
        for i, (n, name) in enumerate(by_number + by_name):
            text = name.encode()
            self.kept.append(text)
            field.names[i] = Name(n, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        field.name_count, field.is_closed = count, enum.is_closed
        unknown = enum.unknown_prefix.encode()
        self.kept.append(unknown)
        field.unknown = PyBytes_AS_STRING(unknown)
        field.default_bits = <uint32_t> <int32_t> by_name[0][0]
        return 0

    cdef int _default(self, Field *field, plan) except -1:
        cdef double eight
        cdef float four
        cdef uint32_t bits
        field.has_default = True
        if plan.kind in ("string", "bytes"):
            text = plan.default.encode() if plan.kind == "string" else plan.default
            self.kept.append(text)
            field.default_text, field.default_size = PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
        elif plan.kind == "double":
            eight = plan.default
            memcpy(&field.default_bits, &eight, 8)
        elif plan.kind == "float":
            four = plan.default
            memcpy(&bits, &four, 4)
            field.default_bits = bits
        elif plan.kind == "enum":
            field.default_bits = <uint32_t> <int32_t> plan.enum.numbers[plan.default]
        else:
            field.default_bits = <uint64_t> <int64_t> plan.default
        return 0

    def decode(self, seen, int64_t rows):
        """Read messages.

        Args:
            seen: a view of a column of bytes.
            rows: how many there are.

        Returns:
            The column that was grown, its owner, and what is wrong with the rows that are malformed.

        Raises:
            MemoryError: there is not enough for the columns.
            OverflowError: a column would be larger than 1 GiB.
        """
        cdef GrownColumns columns = GrownColumns()
        cdef Growing bad
        cdef View view
        cdef int fault
        memset(&bad, 0, sizeof(bad))
        memset(&view, 0, sizeof(view))
        look_at(&view, seen)
        lay_out(&columns.root, self.layout)
        with self.turn:
            _attach(self.root, &columns.root)
            with nogil:
                fault = decode_rows(self.root, &view, rows, self.seed, &bad)
        try:
            raise_fault(fault)
            return grown_of(&columns.root), columns, self._reasons(&bad)
        finally:
            free(bad.at)
            clear_view(&view)

    cdef dict _reasons(self, Growing *bad):
        cdef Bad *each = <Bad *> bad.at
        return {each[i].row: self._reason(each[i].trouble, each[i].field)
                for i in range(<Py_ssize_t> (bad.size // sizeof(Bad)))}

    cdef str _reason(self, int trouble, int field):
        return _REASONS[trouble] if field < 0 else f"field {self.names[field]}: {_REASONS[trouble]}"

    def encode(self, seen, int64_t rows):
        """Write messages.

        Args:
            seen: a view of a column of structs.
            rows: how many there are.

        Returns:
            The column of bytes that was grown, its owner, and the row that cannot be written with the reason, or None.

        Raises:
            MemoryError: there is not enough for the bytes.
            OverflowError: they would be more than 1 GiB.
        """
        cdef GrownColumns columns = GrownColumns()
        cdef View view
        cdef Context context
        cdef int trouble
        memset(&view, 0, sizeof(view))
        memset(&context, 0, sizeof(context))
        context.field = -1
        look_at(&view, seen)
        columns.root.kind = TEXT
        if start_column(&columns.root) != FINE:
            raise MemoryError
        with self.turn, nogil:
            trouble = encode_rows(&context, self.root, &view, rows, &columns.root)
        clear_view(&view)
        raise_fault(trouble if trouble <= TOO_LARGE else FINE)
        refused = None if trouble == FINE else (columns.root.rows, self._reason(trouble, context.field))
        return grown_of(&columns.root), columns, refused


cdef int decode_rows(Message *root, const View *view, int64_t rows, uint64_t seed, Growing *bad) noexcept nogil:
    cdef int64_t row
    cdef size_t size
    cdef const uint8_t *p
    cdef Context context
    cdef Bad one
    cdef int trouble
    for row in range(rows):
        if not is_valid(view, row):
            trouble = put_null(root.column)
        else:
            context.cells, context.field, context.seed = 0, -1, seed
            p = text_at(view, row, &size)
            begin(root)
            trouble = scan(&context, root, p, p + size)
            if trouble == FINE:
                trouble = settle(&context, root)
            if trouble > TOO_LARGE:
                one.row, one.trouble, one.field = row, trouble, context.field
                trouble = push(bad, &one, sizeof(Bad))
                cut(root.column, row)
                if trouble == FINE:
                    trouble = put_null(root.column)
        if trouble != FINE:
            return trouble
    return FINE


cdef int encode_rows(
    Context *context, Message *root, const View *view, int64_t rows, Column *column
) noexcept nogil:
    cdef int64_t row
    cdef int trouble
    cdef int32_t end
    for row in range(rows):
        if not is_valid(view, row):
            trouble = put_null(column)
        else:
            trouble = write_message(context, &column.data, root, view, row)
            if trouble == FINE:
                end = <int32_t> column.data.size
                trouble = push(&column.offsets, &end, 4)
            if trouble == FINE:
                trouble = mark(column, 1)
        if trouble != FINE:
            return trouble
    return FINE
