# Arrow columns as C has them: trees that grow by a value at a time, and views of arrays that others made.
#
# What grows belongs to the module that grows it, until `clear`. Functions that can fail return a fault; 0 is none.
# What is inline needs no GIL and makes no object. `headrace.schemas.columns.arrow_tree` makes arrays of trees and views
# of arrays; it knows the kinds by the same numbers. `_column_tree.pyx` has what is between the two.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cdef enum:  # kinds
    BITS = 0  # booleans
    FIXED = 1  # numbers of `width` bytes
    TEXT = 2  # strings and bytes
    STRUCT = 3
    LIST = 4  # lists and maps; a map's child is a struct of two

cdef enum:  # faults
    FINE = 0
    NO_MEMORY = 1  # of these two the rows know nothing
    TOO_LARGE = 2
    TOO_MANY_CELLS = 3  # from here on the row is malformed

cdef enum:
    MOST_BYTES = 1073741824  # of a buffer: offsets are 32 bits
    MOST_CELLS = 16777216  # of one row: a few bytes can say much more than they are

cdef struct Growing:
    uint8_t *at
    size_t size
    size_t capacity

cdef struct Column:
    int kind
    size_t width
    int is_required  # where the struct around it is null, it has a value all the same
    int64_t rows
    int64_t nulls
    int64_t cells  # leaves of the tree from here on
    Growing data
    Growing offsets
    Growing validity  # empty while there is no null
    Growing dropped  # of a map: entries whose keys come again, int64 each
    int count
    Column *children

cdef struct View:
    const uint8_t *validity  # NULL: there are no nulls
    const int32_t *offsets
    const uint8_t *data
    int64_t offset  # of the first value in the buffers
    int is_there  # 0: there is no such column, as if all were null
    int count
    View *children


# Bytes that grow.


cdef inline int grow(Growing *to, size_t more) noexcept nogil:
    cdef size_t capacity
    cdef void *at
    if to.size + more <= to.capacity:
        return FINE
    if to.size + more > MOST_BYTES:
        return TOO_LARGE
    capacity = to.capacity * 2 if to.capacity else 256
    while capacity < to.size + more:
        capacity *= 2
    at = realloc(to.at, capacity)
    if at == NULL:
        return NO_MEMORY
    to.at = <uint8_t *> at
    to.capacity = capacity
    return FINE


cdef inline int push(Growing *to, const void *data, size_t size) noexcept nogil:
    cdef int fault = grow(to, size)
    if fault == FINE and size:
        memcpy(to.at + to.size, data, size)
        to.size += size
    return fault


cdef inline int push_byte(Growing *to, uint8_t value) noexcept nogil:
    cdef int fault = grow(to, 1)
    if fault == FINE:
        to.at[to.size] = value
        to.size += 1
    return fault


cdef inline int set_bit(Growing *to, int64_t row, int value) noexcept nogil:
    # The bit behind the last one.
    cdef int fault
    if row & 7 == 0:
        fault = push_byte(to, 0)
        if fault != FINE:
            return fault
    to.at[row >> 3] |= <uint8_t> (value << (row & 7))
    return FINE


# Columns.


cdef inline int start_column(Column *column) noexcept nogil:
    cdef int32_t zero = 0
    return push(&column.offsets, &zero, 4) if column.kind in (TEXT, LIST) else FINE


cdef inline void clear(Column *column) noexcept nogil:
    cdef int i
    free(column.data.at)
    free(column.offsets.at)
    free(column.validity.at)
    free(column.dropped.at)
    for i in range(column.count):
        clear(&column.children[i])
    free(column.children)
    memset(column, 0, sizeof(Column))


cdef inline int32_t last_offset(Column *column) noexcept nogil:
    return (<int32_t *> column.offsets.at)[column.rows]


cdef inline int mark(Column *column, int is_valid) noexcept nogil:
    # One more row.
    cdef int fault = FINE
    cdef size_t size
    if not is_valid and column.nulls == 0:
        size = (column.rows + 7) >> 3
        column.validity.size = 0
        fault = grow(&column.validity, size + 1)
        if fault != FINE:
            return fault
        memset(column.validity.at, 0xFF, size)
        column.validity.size = size
        if column.rows & 7:
            column.validity.at[size - 1] = <uint8_t> ((1 << (column.rows & 7)) - 1)
    if not is_valid or column.nulls:
        fault = set_bit(&column.validity, column.rows, is_valid)
        column.nulls += not is_valid
    column.rows += 1
    return fault


cdef inline int put_bit(Column *column, int value) noexcept nogil:
    cdef int fault = set_bit(&column.data, column.rows, value)
    return fault if fault != FINE else mark(column, 1)


cdef inline int put_fixed(Column *column, uint64_t bits) noexcept nogil:
    # The lowest bytes: of a little-endian machine, which all are that Arrow runs on here.
    cdef int fault = push(&column.data, &bits, column.width)
    return fault if fault != FINE else mark(column, 1)


cdef inline int put_wide(Column *column, uint64_t low, uint64_t high) noexcept nogil:
    cdef uint64_t[2] both
    both[0] = low
    both[1] = high
    cdef int fault = push(&column.data, both, 16)
    return fault if fault != FINE else mark(column, 1)


cdef inline int end_text(Column *column) noexcept nogil:
    # A row of what was pushed to the data.
    cdef int32_t end = <int32_t> column.data.size
    cdef int fault = push(&column.offsets, &end, 4)
    return fault if fault != FINE else mark(column, 1)


cdef inline int put_text(Column *column, const uint8_t *text, size_t size) noexcept nogil:
    cdef int fault = push(&column.data, text, size)
    return fault if fault != FINE else end_text(column)


cdef inline int end_list(Column *column) noexcept nogil:
    # A row of the values that the child has more than before.
    cdef int32_t end = <int32_t> column.children[0].rows
    if column.children[0].rows > MOST_BYTES:
        return TOO_LARGE
    cdef int fault = push(&column.offsets, &end, 4)
    return fault if fault != FINE else mark(column, 1)


cdef inline int put_null(Column *column) noexcept nogil:
    cdef int i, fault = FINE
    cdef int32_t end
    if column.kind == BITS:
        fault = set_bit(&column.data, column.rows, 0)
    elif column.kind == FIXED:
        fault = grow(&column.data, column.width)
        if fault == FINE:
            memset(column.data.at + column.data.size, 0, column.width)
            column.data.size += column.width
    elif column.kind == STRUCT:
        for i in range(column.count):
            fault = put_null(&column.children[i])
            if fault != FINE:
                return fault
    else:
        end = last_offset(column)
        fault = push(&column.offsets, &end, 4)
    return fault if fault != FINE else mark(column, column.is_required)


cdef inline void cut_bits(Growing *bits, int64_t rows) noexcept nogil:
    bits.size = (rows + 7) >> 3
    if rows & 7:
        bits.at[bits.size - 1] &= <uint8_t> ((1 << (rows & 7)) - 1)


cdef inline void cut(Column *column, int64_t rows) noexcept nogil:
    # Take back all rows from this one on, and what was begun of the next.
    cdef int i
    cdef int64_t row
    if column.nulls:
        for row in range(rows, column.rows):
            if not (column.validity.at[row >> 3] >> (row & 7)) & 1:
                column.nulls -= 1
        cut_bits(&column.validity, rows)
    if rows < column.rows:
        column.rows = rows
    if column.kind == BITS:
        cut_bits(&column.data, rows)
    elif column.kind == FIXED:
        column.data.size = rows * column.width
    elif column.kind == STRUCT:
        for i in range(column.count):
            cut(&column.children[i], rows)
    else:
        column.offsets.size = (rows + 1) * 4
        if column.kind == TEXT:
            column.data.size = last_offset(column)
        else:
            cut(&column.children[0], last_offset(column))
            while column.dropped.size and (<int64_t *> (column.dropped.at + column.dropped.size))[-1] >= last_offset(
                    column):
                column.dropped.size -= 8


# Keys of maps: the last of those that are the same counts.


cdef inline int same_values(Column *keys, int64_t one, int64_t other) noexcept nogil:
    cdef int32_t *offsets
    cdef int32_t size
    if keys.kind == BITS:
        return ((keys.data.at[one >> 3] >> (one & 7)) & 1) == ((keys.data.at[other >> 3] >> (other & 7)) & 1)
    if keys.kind == FIXED:
        return memcmp(keys.data.at + one * keys.width, keys.data.at + other * keys.width, keys.width) == 0
    offsets = <int32_t *> keys.offsets.at
    size = offsets[one + 1] - offsets[one]
    if size != offsets[other + 1] - offsets[other]:
        return 0
    # Where all values are empty there is no data, which C does not let be compared even for no bytes.
    return size == 0 or memcmp(keys.data.at + offsets[one], keys.data.at + offsets[other], size) == 0


cdef inline uint32_t hashed_value(Column *keys, int64_t row, uint64_t seed) noexcept nogil:
    cdef const uint8_t *p
    cdef const uint8_t *end
    cdef uint64_t value = seed
    if keys.kind == BITS:
        return (keys.data.at[row >> 3] >> (row & 7)) & 1
    if keys.kind == FIXED:
        p = keys.data.at + row * keys.width
        end = p + keys.width
    else:
        p = keys.data.at + (<int32_t *> keys.offsets.at)[row]
        end = keys.data.at + (<int32_t *> keys.offsets.at)[row + 1]
    while p < end:
        value = (value ^ p[0]) * <uint64_t> 0x9E3779B97F4A7C15
        value ^= value >> 29
        p += 1
    return <uint32_t> (value ^ (value >> 32))


cdef inline int drop_repeated(Column *map, int64_t first, uint64_t seed) noexcept nogil:
    # Entries from `first` on are those of one row. The seed keeps others from choosing keys that meet.
    cdef Column *keys = &map.children[0].children[0]
    cdef int64_t count = map.children[0].rows - first, i, j
    cdef int32_t *table
    cdef uint32_t size = 16, slot
    cdef int fault = FINE
    if count < 2:
        return FINE
    if count <= 8:
        for i in range(first, first + count - 1):
            for j in range(i + 1, first + count):
                if same_values(keys, i, j):
                    fault = push(&map.dropped, &i, 8)
                    break
        return fault
    while size < 2 * count:
        size *= 2
    table = <int32_t *> malloc(size * sizeof(int32_t))
    if table == NULL:
        return NO_MEMORY
    memset(table, 0xFF, size * sizeof(int32_t))
    for i in range(first, first + count):
        slot = hashed_value(keys, i, seed) & (size - 1)
        while table[slot] >= 0 and not same_values(keys, table[slot], i):
            slot = (slot + 1) & (size - 1)
        if table[slot] >= 0:
            j = table[slot]
            fault = push(&map.dropped, &j, 8)
        table[slot] = <int32_t> i
    free(table)
    return fault


# Views.


cdef inline int is_valid(const View *view, int64_t row) noexcept nogil:
    row += view.offset
    return view.is_there and (view.validity == NULL or (view.validity[row >> 3] >> (row & 7)) & 1)


cdef inline int bit_at(const View *view, int64_t row) noexcept nogil:
    row += view.offset
    return (view.data[row >> 3] >> (row & 7)) & 1


cdef inline uint64_t bits_at(const View *view, int64_t row, size_t width) noexcept nogil:
    cdef uint64_t bits = 0
    memcpy(&bits, view.data + (row + view.offset) * width, width)
    return bits


cdef inline const uint8_t *text_at(const View *view, int64_t row, size_t *size) noexcept nogil:
    row += view.offset
    size[0] = view.offsets[row + 1] - view.offsets[row]
    return view.data + view.offsets[row]


cdef inline void clear_view(View *view) noexcept nogil:
    cdef int i
    for i in range(view.count):
        clear_view(&view.children[i])
    free(view.children)
    memset(view, 0, sizeof(View))


# Text.


cdef inline int is_utf8(const uint8_t *p, size_t size) noexcept nogil:
    cdef const uint8_t *end = p + size
    cdef uint64_t eight
    cdef uint32_t code
    cdef int more
    while p < end:
        if end - p >= 8:
            memcpy(&eight, p, 8)
            if eight & <uint64_t> 0x8080808080808080 == 0:
                p += 8
                continue
        if p[0] < 0x80:
            p += 1
            continue
        more = 1 if p[0] & 0xE0 == 0xC0 else 2 if p[0] & 0xF0 == 0xE0 else 3 if p[0] & 0xF8 == 0xF0 else 0
        if more == 0 or end - p <= more:
            return 0
        code = p[0] & (0x3F >> more)
        for _ in range(more):
            p += 1
            if p[0] & 0xC0 != 0x80:
                return 0
            code = code << 6 | p[0] & 0x3F
        p += 1
        if code < (0x80 if more == 1 else 0x800 if more == 2 else 0x10000) or code > 0x10FFFF or (
                0xD800 <= code < 0xE000):
            return 0
    return 1


# Between trees and tuples.


cdef class GrownColumns:
    cdef Column root


cdef object grown_of(Column *column)
cdef int lay_out(Column *column, layout) except -1
cdef int look_at(View *view, seen) except -1
cdef int raise_fault(int fault) except -1
