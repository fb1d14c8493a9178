# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""Avro's bytes into Arrow buffers and back, in C, without the GIL. The plain twins say what each step does.

`Decoder` runs a `DecodeProgram`: steps and columns are arrays of C structs, made once. A payload is read through
`take_varint` and `take_bytes` alone, which check every step against its end. A payload that cannot be read is undone:
the length of each column follows from the number of rows, so nothing need be remembered for it.

`Encoder` runs an `EncodeProgram` over the buffers of a column that has the schema's Arrow type already.
"""

from headrace.schemas.columns._growing cimport (
    Bits, Growing, cut_bits, handed_over, let_go, put_4, put_8, put_bit, put_bytes, put_double, put_float, put_null,
    put_ones, put_zeros, reserve)
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from headrace.schemas.columns.column_codec import ColumnTooLargeError

cdef enum:
    MAX_DEPTH = 320
    MAX_EMPTY_ITEMS = 10000
    # Kinds of columns: `ColumnKind`.
    C_NULL = 0
    C_BOOL = 1
    C_INT = 2
    C_LONG = 3
    C_FLOAT = 4
    C_DOUBLE = 5
    C_DECIMAL = 6
    C_BYTES = 7
    C_LIST = 8
    C_MAP = 9
    C_STRUCT = 10
    # What a step does: `ReadVerb`.
    V_NOTHING = 0
    V_NULL = 1
    V_BOOL = 2
    V_NUMBER = 3
    V_FLOAT = 4
    V_DOUBLE = 5
    V_BYTES = 6
    V_FIXED = 7
    V_ENUM = 8
    V_DECIMAL = 9
    V_RECORD = 10
    V_ARRAY = 11
    V_MAP = 12
    V_UNION = 13
    V_MEMBER = 14
    V_DEFAULT = 15
    V_FAIL = 16
    V_SKIP_NUMBER = 17
    V_SKIP_FIXED = 18
    V_SKIP_BYTES = 19
    # Why a payload cannot be read: `Flaw`.
    T_ENDS = 1
    T_LONG_NUMBER = 2
    T_INT_RANGE = 3
    T_NEGATIVE = 4
    T_UTF8 = 5
    T_SYMBOL = 6
    T_BRANCH = 7
    T_BOOLEAN = 8
    T_DIGITS = 9
    T_ITEMS = 10
    T_DEPTH = 11
    T_MISMATCH = 12
    T_TIMESTAMP = 13
    T_TIME = 14
    # Why a value cannot be written: `Misfit`.
    M_NULL = 1
    M_SIZE = 2
    M_SYMBOL = 3
    M_MEMBERS = 4
    # What a step writes: `WriteVerb`.
    W_CONSTANT = 0
    W_BOOL = 1
    W_INT = 2
    W_LONG = 3
    W_FLOAT = 4
    W_DOUBLE = 5
    W_BYTES = 6
    W_FIXED = 7
    W_ENUM = 8
    W_DECIMAL = 9
    W_RECORD = 10
    W_ARRAY = 11
    W_MAP = 12
    W_UNION = 13
    W_MEMBERS = 14
    # Troubles that are not the payload's, or the value's.
    T_MEMORY = 100
    T_TOO_LARGE = 101


cdef int64_t DAY_US = 86400000000


cdef struct Step:
    int verb
    int column
    int64_t a
    int64_t b
    const int32_t *steps
    int64_t count


cdef struct Column:
    int kind
    bint nullable
    int64_t count       # values
    Growing values
    Growing offsets     # of LIST, MAP and BYTES: one more than values
    Bits valid          # shorter than `count` where the rest is not null
    Bits bits           # of BOOL
    const int32_t *children
    int64_t width       # children


cdef struct Constant:
    const uint8_t *data
    int64_t size


cdef struct Reading:
    const Step *steps
    Column *columns
    const Constant *constants
    const uint64_t *powers  # of ten: high and low half of each
    const uint8_t *at
    const uint8_t *end
    int64_t empty
    int step                # where the trouble is


cdef inline int take_varint(Reading *from_, int64_t *value) noexcept nogil:
    cdef uint64_t found = 0
    cdef int shift = 0
    cdef uint8_t byte
    while True:
        if from_.at >= from_.end:
            return T_ENDS
        byte = from_.at[0]
        from_.at += 1
        if shift == 63 and byte > 1:
            return T_LONG_NUMBER
        found |= <uint64_t> (byte & 0x7F) << shift
        if byte <= 0x7F:
            break
        shift += 7
    value[0] = <int64_t> (found >> 1) ^ -<int64_t> (found & 1)
    return 0


cdef inline int take_bytes(Reading *from_, int64_t size, const uint8_t **data) noexcept nogil:
    if size > from_.end - from_.at:
        return T_ENDS
    data[0] = from_.at
    from_.at += size
    return 0


cdef inline int take_sized(Reading *from_, const uint8_t **data, int64_t *size) noexcept nogil:
    cdef int bad = take_varint(from_, size)
    if bad:
        return bad
    if size[0] < 0:
        return T_NEGATIVE
    return take_bytes(from_, size[0], data)


cdef bint is_utf8(const uint8_t *data, int64_t size) noexcept nogil:
    cdef int64_t at = 0
    cdef uint64_t eight
    cdef uint8_t byte, low, high
    cdef int more
    while at < size:
        if at + 8 <= size:
            memcpy(&eight, data + at, 8)
            if (eight & <uint64_t> 0x8080808080808080) == 0:
                at += 8
                continue
        byte = data[at]
        at += 1
        if byte < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= byte <= 0xDF:
            more = 1
        elif 0xE0 <= byte <= 0xEF:
            more = 2
            if byte == 0xE0:
                low = 0xA0
            elif byte == 0xED:
                high = 0x9F
        elif 0xF0 <= byte <= 0xF4:
            more = 3
            if byte == 0xF0:
                low = 0x90
            elif byte == 0xF4:
                high = 0x8F
        else:
            return False
        while more:
            if at >= size or data[at] < low or data[at] > high:
                return False
            low, high = 0x80, 0xBF
            at += 1
            more -= 1
    return True


cdef inline int put_offset(Column *to, int64_t value) noexcept nogil:
    if value > INT32_MAX:
        return T_TOO_LARGE
    return T_MEMORY if put_4(&to.offsets, <int32_t> value) < 0 else 0


cdef inline int put_data(Column *to, const uint8_t *data, int64_t size) noexcept nogil:
    if put_bytes(&to.values, data, size) < 0:
        return T_MEMORY
    to.count += 1
    return put_offset(to, to.values.used)


cdef int put_decimal(Reading *from_, Column *to, const uint8_t *data, int64_t size, int64_t digits) noexcept nogil:
    """Sixteen bytes of two's complement, the least first."""
    cdef uint8_t sign = 0xFF if size and data[0] & 0x80 else 0
    cdef uint8_t made[16]
    cdef uint64_t low, high
    cdef int64_t at
    while size > 16:
        if data[0] != sign or (data[1] & 0x80) != (sign & 0x80):
            return T_DIGITS
        data += 1
        size -= 1
    memset(made, sign, 16)
    for at in range(size):
        made[at] = data[size - 1 - at]
    memcpy(&low, made, 8)
    memcpy(&high, made + 8, 8)
    if sign:
        low = ~low + 1
        high = ~high + (1 if low == 0 else 0)
    if high > from_.powers[2 * digits] or (high == from_.powers[2 * digits] and low >= from_.powers[2 * digits + 1]):
        return T_DIGITS
    if put_bytes(&to.values, made, 16) < 0:
        return T_MEMORY
    to.count += 1
    return 0


cdef int append_null(Reading *from_, int number, bint marked) noexcept nogil:
    """A place without a value: marked as null where `marked`, and within a struct that is null where it can be."""
    cdef Column *to = &from_.columns[number]
    cdef int64_t child
    cdef int bad = 0
    if marked and to.kind != C_NULL and put_null(&to.valid, to.count) < 0:
        return T_MEMORY
    to.count += 1
    if to.kind == C_BOOL:
        bad = put_bit(&to.bits, False)
    elif to.kind == C_INT or to.kind == C_FLOAT:
        bad = put_4(&to.values, 0)
    elif to.kind == C_LONG or to.kind == C_DOUBLE:
        bad = put_8(&to.values, 0)
    elif to.kind == C_DECIMAL:
        bad = put_zeros(&to.values, 16)
    elif to.kind == C_BYTES:
        return put_offset(to, to.values.used)
    elif to.kind == C_LIST or to.kind == C_MAP:
        return put_offset(to, from_.columns[to.children[0]].count)
    elif to.kind == C_STRUCT:
        for child in range(to.width):
            bad = append_null(from_, to.children[child], from_.columns[to.children[child]].nullable)
            if bad:
                return bad
    return T_MEMORY if bad < 0 else 0


cdef void cut(Reading *from_, int number, int64_t count) noexcept nogil:
    """Forget the values from `count` on; a struct that was not finished may have longer children."""
    cdef Column *of = &from_.columns[number]
    cdef int64_t child
    if of.count > count:
        of.count = count
    cut_bits(&of.valid, count)
    if of.kind == C_BOOL:
        cut_bits(&of.bits, count)
    elif of.kind == C_INT or of.kind == C_FLOAT:
        of.values.used = min(of.values.used, 4 * count)
    elif of.kind == C_LONG or of.kind == C_DOUBLE:
        of.values.used = min(of.values.used, 8 * count)
    elif of.kind == C_DECIMAL:
        of.values.used = min(of.values.used, 16 * count)
    elif of.kind == C_BYTES:
        of.offsets.used = min(of.offsets.used, 4 * (count + 1))
        of.values.used = min(of.values.used, (<int32_t *> of.offsets.data)[count])
    elif of.kind == C_LIST or of.kind == C_MAP:
        of.offsets.used = min(of.offsets.used, 4 * (count + 1))
        for child in range(of.width):
            cut(from_, of.children[child], (<int32_t *> of.offsets.data)[count])
    elif of.kind == C_STRUCT:
        for child in range(of.width):
            cut(from_, of.children[child], count)


cdef int take_block(Reading *from_, const Step *step, int64_t *count) noexcept nogil:
    """How many items the next block of an array or a map has; 0 behind the last."""
    cdef int64_t size
    cdef int bad = take_varint(from_, count)
    if bad:
        return bad
    if count[0] < 0:
        if count[0] == INT64_MIN:
            return T_NEGATIVE
        count[0] = -count[0]
        bad = take_varint(from_, &size)
        if bad:
            return bad
    if step.b:
        return T_ITEMS if count[0] > (from_.end - from_.at) // step.b else 0
    if count[0] > MAX_EMPTY_ITEMS - from_.empty:
        return T_ITEMS
    from_.empty += count[0]
    return 0


cdef int run_items(Reading *from_, int number, int depth) noexcept nogil:
    cdef const Step *step = &from_.steps[number]
    cdef Column *to
    cdef int64_t count, each
    cdef int64_t inner
    cdef int bad
    while True:
        bad = take_block(from_, step, &count)
        if bad:
            from_.step = number
            return bad
        if count == 0:
            break
        for each in range(count):
            for inner in range(step.count):
                bad = run(from_, step.steps[inner], depth + 1)
                if bad:
                    return bad
    if step.column < 0:
        return 0
    to = &from_.columns[step.column]
    to.count += 1
    from_.step = number
    return put_offset(to, from_.columns[to.children[0]].count)


cdef int run_number(Reading *from_, const Step *step) noexcept nogil:
    cdef Column *to = &from_.columns[step.column]
    cdef int64_t value
    cdef int bad = take_varint(from_, &value)
    if bad:
        return bad
    if step.b == 1 and value != <int32_t> value:
        return T_INT_RANGE
    if step.b == 2 and (value < 0 or value >= DAY_US):
        return T_TIME
    if step.a != 1:
        if value > INT64_MAX // step.a or value < INT64_MIN // step.a:
            return T_TIMESTAMP
        value *= step.a
    to.count += 1
    if to.kind == C_INT:
        bad = put_4(&to.values, <int32_t> value)
    elif to.kind == C_LONG:
        bad = put_8(&to.values, value)
    elif to.kind == C_FLOAT:
        bad = put_float(&to.values, <float> (<double> value))
    else:
        bad = put_double(&to.values, <double> value)
    return T_MEMORY if bad < 0 else 0


cdef int run_floating(Reading *from_, const Step *step) noexcept nogil:
    cdef Column *to = &from_.columns[step.column]
    cdef const uint8_t *data
    cdef float narrow
    cdef int bad = take_bytes(from_, 4 if step.verb == V_FLOAT else 8, &data)
    if bad:
        return bad
    to.count += 1
    if step.verb == V_DOUBLE:
        bad = put_bytes(&to.values, data, 8)
    elif to.kind == C_FLOAT:
        bad = put_bytes(&to.values, data, 4)
    else:
        memcpy(&narrow, data, 4)
        bad = put_double(&to.values, narrow)
    return T_MEMORY if bad < 0 else 0


cdef int run_bytes(Reading *from_, const Step *step) noexcept nogil:
    cdef const uint8_t *data
    cdef int64_t size
    cdef int bad = take_sized(from_, &data, &size)
    if bad:
        return bad
    if step.b and not is_utf8(data, size):
        return T_UTF8
    return put_data(&from_.columns[step.column], data, size)


cdef int run_enum(Reading *from_, const Step *step) noexcept nogil:
    cdef int64_t index
    cdef const Constant *symbol
    cdef int bad = take_varint(from_, &index)
    if bad:
        return bad
    if index < 0 or index >= step.count or step.steps[index] < 0:
        return T_SYMBOL
    symbol = &from_.constants[step.steps[index]]
    return put_data(&from_.columns[step.column], symbol.data, symbol.size)


cdef int run_decimal(Reading *from_, const Step *step) noexcept nogil:
    cdef const uint8_t *data
    cdef int64_t size = step.b
    cdef int bad = take_sized(from_, &data, &size) if step.b < 0 else take_bytes(from_, size, &data)
    if bad:
        return bad
    return put_decimal(from_, &from_.columns[step.column], data, size, step.a)


cdef int run_boolean(Reading *from_, const Step *step) noexcept nogil:
    cdef const uint8_t *data
    cdef int bad = take_bytes(from_, 1, &data)
    if bad:
        return bad
    if data[0] > 1:
        return T_BOOLEAN
    from_.columns[step.column].count += 1
    return T_MEMORY if put_bit(&from_.columns[step.column].bits, data[0]) < 0 else 0


cdef int run_member(Reading *from_, int number, int depth) noexcept nogil:
    cdef const Step *step = &from_.steps[number]
    cdef Column *to = &from_.columns[step.column]
    cdef int64_t child
    cdef int bad
    for child in range(to.width):
        if child == step.a:
            bad = run(from_, step.steps[0], depth + 1)
        else:
            bad = append_null(from_, to.children[child], True)
        if bad:
            return bad
    to.count += 1
    return 0


cdef int run_default(Reading *from_, int number, int depth) noexcept nogil:
    cdef const Step *step = &from_.steps[number]
    cdef const uint8_t *at = from_.at
    cdef const uint8_t *end = from_.end
    cdef int bad
    from_.at = from_.constants[step.a].data
    from_.end = from_.at + from_.constants[step.a].size
    bad = run(from_, step.steps[0], depth + 1)
    from_.at, from_.end = at, end
    return bad


cdef int run(Reading *from_, int number, int depth) noexcept nogil:
    """Carry a step out: 0, or the trouble, and `from_.step` is where it was found."""
    cdef const Step *step = &from_.steps[number]
    cdef const uint8_t *data
    cdef int64_t value
    cdef int bad = 0
    if depth > MAX_DEPTH:
        from_.step = number
        return T_DEPTH
    if step.verb == V_RECORD:
        for value in range(step.count):
            bad = run(from_, step.steps[value], depth + 1)
            if bad:
                return bad
        if step.column >= 0:
            from_.columns[step.column].count += 1
        return 0
    if step.verb == V_UNION:
        bad = take_varint(from_, &value)
        if not bad and (value < 0 or value >= step.count):
            bad = T_BRANCH
        if not bad:
            return run(from_, step.steps[value], depth + 1)
    elif step.verb == V_NUMBER:
        bad = run_number(from_, step)
    elif step.verb == V_BYTES:
        bad = run_bytes(from_, step)
    elif step.verb == V_NULL:
        bad = append_null(from_, step.column, True)
    elif step.verb == V_FLOAT or step.verb == V_DOUBLE:
        bad = run_floating(from_, step)
    elif step.verb == V_BOOL:
        bad = run_boolean(from_, step)
    elif step.verb == V_ENUM:
        bad = run_enum(from_, step)
    elif step.verb == V_ARRAY or step.verb == V_MAP:
        return run_items(from_, number, depth)
    elif step.verb == V_FIXED:
        bad = take_bytes(from_, step.a, &data)
        if not bad:
            bad = put_data(&from_.columns[step.column], data, step.a)
    elif step.verb == V_DECIMAL:
        bad = run_decimal(from_, step)
    elif step.verb == V_MEMBER:
        return run_member(from_, number, depth)
    elif step.verb == V_DEFAULT:
        return run_default(from_, number, depth)
    elif step.verb == V_SKIP_NUMBER:
        bad = take_varint(from_, &value)
    elif step.verb == V_SKIP_FIXED:
        bad = take_bytes(from_, step.a, &data)
    elif step.verb == V_SKIP_BYTES:
        bad = take_sized(from_, &data, &value)
    elif step.verb == V_FAIL:
        bad = T_MISMATCH
    if bad:
        from_.step = number
    return bad


cdef void *zeroed(size_t count, size_t size) except NULL:
    cdef void *made = calloc(count + 1, size)
    if made == NULL:
        raise MemoryError
    return made


cdef class _Tables:
    """Numbers of steps and columns, and constants, as C reads them."""

    cdef int32_t *_numbers
    cdef Constant *_constants
    cdef list _held

    def __cinit__(self, lists, constants):
        cdef int64_t at = 0
        self._held = list(constants)
        self._numbers = <int32_t *> zeroed(sum(map(len, lists)), sizeof(int32_t))
        self._constants = <Constant *> zeroed(len(self._held), sizeof(Constant))
        for numbers in lists:
            for number in numbers:
                self._numbers[at] = number
                at += 1
        at = 0
        for constant in self._held:
            self._constants[at].data = constant
            self._constants[at].size = len(constant)
            at += 1

    def __dealloc__(self):
        free(self._numbers)
        free(self._constants)


cdef class _Columns:
    """The columns of one call."""

    cdef Column *_columns
    cdef int64_t _width

    def __cinit__(self, shapes, _Tables tables, int64_t used):
        cdef int64_t at
        self._width = len(shapes)
        self._columns = <Column *> zeroed(self._width, sizeof(Column))
        for at, shape in enumerate(shapes):
            self._columns[at].kind, self._columns[at].nullable = shape.kind, shape.nullable
            self._columns[at].children, self._columns[at].width = tables._numbers + used, len(shape.children)
            used += self._columns[at].width
            if shape.kind in (C_BYTES, C_LIST, C_MAP) and put_4(&self._columns[at].offsets, 0) < 0:
                raise MemoryError

    def __dealloc__(self):
        cdef int64_t at
        for at in range(self._width):
            let_go(&self._columns[at].values)
            let_go(&self._columns[at].offsets)
            let_go(&self._columns[at].valid.bytes)
            let_go(&self._columns[at].bits.bytes)
        free(self._columns)

    cdef object array(self, shape):
        """The buffers of a column, given to Arrow."""
        import pyarrow

        cdef Column *of = &self._columns[<int> shape.number]
        children = [self.array(child) for child in shape.children]
        if of.kind == C_NULL:
            return pyarrow.nulls(of.count)
        buffers = [None]
        if of.valid.count:
            if put_ones(&of.valid, of.count) < 0:
                raise MemoryError
            buffers = [foreign(&of.valid.bytes)]
        if of.kind == C_BOOL:
            buffers.append(foreign(&of.bits.bytes))
        elif of.kind in (C_BYTES, C_LIST, C_MAP):
            buffers.append(foreign(&of.offsets))
        if of.kind in (C_INT, C_LONG, C_FLOAT, C_DOUBLE, C_DECIMAL, C_BYTES):
            buffers.append(foreign(&of.values))
        if of.kind == C_MAP:
            entries = pyarrow.struct([shape.data_type.key_field, shape.data_type.item_field])
            children = [pyarrow.Array.from_buffers(entries, len(children[0]), [None], 0, 0, children)]
        return pyarrow.Array.from_buffers(shape.data_type, of.count, buffers, -1, 0, children or None)


cdef class Decoder:
    """Reads payloads by a program, as `PlainDecoder` does. From any thread."""

    cdef list _shapes
    cdef Step *_steps
    cdef _Tables _tables
    cdef uint64_t _powers[78]
    cdef int _root
    cdef int64_t _used

    def __cinit__(self, program):
        cdef int64_t at
        cdef object power = 1
        self._shapes, self._root = program.shape.walk(), program.root
        children = [tuple(child.number for child in each.children) for each in self._shapes]
        self._tables = _Tables([each.steps for each in program.steps] + children, program.constants)
        self._steps = <Step *> zeroed(len(program.steps), sizeof(Step))
        for at, step in enumerate(program.steps):
            self._steps[at].verb, self._steps[at].column = step.verb, step.column
            self._steps[at].a, self._steps[at].b = step.a, step.b
            self._steps[at].steps, self._steps[at].count = self._tables._numbers + self._used, len(step.steps)
            self._used += self._steps[at].count
        for at in range(39):
            self._powers[2 * at], self._powers[2 * at + 1] = power >> 64, power & 0xFFFFFFFFFFFFFFFF
            power = power * 10

    def __dealloc__(self):
        free(self._steps)

    def decode(self, payloads):
        """See `PlainDecoder.decode`."""
        cdef list bad = []
        cdef _Columns columns = _Columns(self._shapes, self._tables, self._used)
        buffers = payloads.buffers()
        if len(payloads):
            self._run(columns, len(payloads), payloads.offset, address_of(buffers[0]), address_of(buffers[1]),
                      address_of(buffers[2]), bad)
        return columns.array(self._shapes[0]), bad

    cdef _run(self, _Columns columns, int64_t rows, int64_t first, uintptr_t valid, uintptr_t offsets_at,
              uintptr_t data_at, list bad):
        cdef const uint8_t *bits = <const uint8_t *> valid
        cdef const int32_t *offsets = <const int32_t *> offsets_at
        cdef const uint8_t *data = <const uint8_t *> data_at
        cdef Reading reading
        cdef int64_t row, at
        cdef int trouble = 0
        reading.steps, reading.columns, reading.constants = self._steps, columns._columns, self._tables._constants
        reading.powers = self._powers
        with nogil:
            for row in range(rows):
                at = first + row
                if bits == NULL or bits[at >> 3] >> (at & 7) & 1:
                    reading.at, reading.end, reading.empty = data + offsets[at], data + offsets[at + 1], 0
                    trouble = run(&reading, self._root, 0)
                    if not trouble:
                        continue
                    if trouble >= T_MEMORY:
                        break
                    with gil:
                        bad.append((row, trouble, reading.step))
                    cut(&reading, 0, row)
                trouble = append_null(&reading, 0, True)
                if trouble:
                    break
        if trouble == T_MEMORY:
            raise MemoryError
        if trouble == T_TOO_LARGE:
            raise ColumnTooLargeError("the values of the batch are more than 2 GiB: read smaller batches")


cdef struct Given:
    const uint8_t *valid
    int64_t offset
    const uint8_t *data
    const int32_t *offsets


cdef struct Writing:
    const Step *steps
    const Given *columns
    const Constant *constants
    Growing *out
    int step


cdef inline bint is_null(const Given *of, int64_t row) noexcept nogil:
    row += of.offset
    return of.valid != NULL and not (of.valid[row >> 3] >> (row & 7) & 1)


cdef inline int put_varint(Growing *to, int64_t value) noexcept nogil:
    cdef uint64_t left = (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)
    if reserve(to, 10) < 0:
        return T_MEMORY
    while left > 0x7F:
        to.data[to.used] = <uint8_t> (left | 0x80)
        to.used += 1
        left >>= 7
    to.data[to.used] = <uint8_t> left
    to.used += 1
    return 0


cdef inline int put_sized(Growing *to, const uint8_t *data, int64_t size) noexcept nogil:
    if put_varint(to, size) or put_bytes(to, data, size) < 0:
        return T_MEMORY
    return 0


cdef int write_decimal(Growing *to, const uint8_t *data, int64_t size) noexcept nogil:
    """Two's complement, the most significant byte first: as few bytes as it takes (`size` -1), or `size`."""
    cdef int needed = 16
    cdef int64_t left
    cdef uint8_t sign = 0xFF if data[15] & 0x80 else 0
    while needed > 1 and data[needed - 1] == sign and (data[needed - 2] & 0x80) == (sign & 0x80):
        needed -= 1
    if size < 0:
        if put_varint(to, needed):
            return T_MEMORY
        size = needed
    elif needed > size:
        return M_SIZE
    if reserve(to, size) < 0:
        return T_MEMORY
    for left in range(size - 1, -1, -1):
        to.data[to.used] = data[left] if left < 16 else sign
        to.used += 1
    return 0


cdef int write_symbol(Writing *to, const Step *step, const uint8_t *data, int64_t size) noexcept nogil:
    cdef int64_t index
    cdef const Constant *symbol
    for index in range(step.count):
        symbol = &to.constants[step.steps[index]]
        if symbol.size == size and memcmp(symbol.data, data, size) == 0:
            return put_varint(to.out, index)
    return M_SYMBOL


cdef int write_items(Writing *to, int number, int64_t row) noexcept nogil:
    cdef const Step *step = &to.steps[number]
    cdef const int32_t *ends = to.columns[step.column].offsets + to.columns[step.column].offset + row
    cdef int64_t item, inner
    cdef int bad = 0
    if ends[1] > ends[0]:
        bad = put_varint(to.out, ends[1] - ends[0])
        for item in range(ends[0], ends[1]):
            for inner in range(step.count):
                bad = bad or write(to, step.steps[inner], item)
            if bad:
                return bad
    return T_MEMORY if put_zeros(to.out, 1) < 0 else bad


cdef int write_members(Writing *to, int number, int64_t row) noexcept nogil:
    cdef const Step *step = &to.steps[number]
    cdef int64_t each
    cdef int column
    if not is_null(&to.columns[step.column], row):
        for each in range(0, step.count, 2):
            column = to.steps[step.steps[each]].column
            if column >= 0 and not is_null(&to.columns[column], row):
                return put_varint(to.out, step.steps[each + 1]) or write(to, step.steps[each], row)
    to.step = number
    return M_MEMBERS if step.a < 0 else put_varint(to.out, step.a)


cdef int write_value(Writing *to, const Step *step, int64_t row) noexcept nogil:
    """Write what is neither null nor made of other values."""
    cdef const Given *of = &to.columns[step.column]
    cdef const uint8_t *data
    cdef int64_t size, value
    cdef int bad = 0
    row += of.offset
    if step.verb == W_LONG:
        value = (<const int64_t *> of.data)[row]
        if step.a != 1:
            value = value // step.a - (1 if value % step.a < 0 else 0)
        return put_varint(to.out, value)
    if step.verb == W_INT:
        return put_varint(to.out, (<const int32_t *> of.data)[row])
    if step.verb == W_DOUBLE:
        bad = put_bytes(to.out, of.data + 8 * row, 8)
    elif step.verb == W_FLOAT:
        bad = put_bytes(to.out, of.data + 4 * row, 4)
    elif step.verb == W_BOOL:
        value = of.data[row >> 3] >> (row & 7) & 1
        bad = put_bytes(to.out, b"\1" if value else b"\0", 1)
    elif step.verb == W_DECIMAL:
        return write_decimal(to.out, of.data + 16 * row, step.a)
    else:
        data, size = of.data + of.offsets[row], of.offsets[row + 1] - of.offsets[row]
        if step.verb == W_BYTES:
            return put_sized(to.out, data, size)
        if step.verb == W_ENUM:
            return write_symbol(to, step, data, size)
        if size != step.a:
            return M_SIZE
        bad = put_bytes(to.out, data, size)
    return T_MEMORY if bad < 0 else 0


cdef int write(Writing *to, int number, int64_t row) noexcept nogil:
    """Write a value: 0, or the misfit, and `to.step` is where it was found."""
    cdef const Step *step = &to.steps[number]
    cdef int64_t each
    cdef int bad = 0
    if step.verb == W_CONSTANT:
        return T_MEMORY if put_bytes(to.out, to.constants[step.a].data, to.constants[step.a].size) < 0 else 0
    if step.verb == W_MEMBERS:
        return write_members(to, number, row)
    if is_null(&to.columns[step.column], row):
        if step.verb == W_UNION and step.a >= 0:
            return put_varint(to.out, step.a)
        to.step = number
        return M_NULL
    if step.verb == W_UNION:
        return put_varint(to.out, step.b) or write(to, step.steps[0], row)
    if step.verb == W_RECORD:
        for each in range(step.count):
            bad = write(to, step.steps[each], row)
            if bad:
                return bad
        return 0
    if step.verb == W_ARRAY or step.verb == W_MAP:
        return write_items(to, number, row)
    bad = write_value(to, step, row)
    if bad:
        to.step = number
    return bad


cdef class _Payloads:
    """What one call writes."""

    cdef Growing data
    cdef Growing offsets
    cdef Bits valid
    cdef Given *columns

    def __cinit__(self, int64_t width):
        self.columns = <Given *> zeroed(width, sizeof(Given))

    def __dealloc__(self):
        free(self.columns)
        let_go(&self.data)
        let_go(&self.offsets)
        let_go(&self.valid.bytes)


cdef class Encoder:
    """Writes rows by a program, as `PlainEncoder` does. From any thread."""

    cdef object _program
    cdef _Tables _tables
    cdef Step *_steps

    def __cinit__(self, program):
        cdef int64_t at, used = 0
        self._program = program
        self._tables = _Tables([each.steps for each in program.steps], program.constants)
        self._steps = <Step *> zeroed(len(program.steps), sizeof(Step))
        for at, step in enumerate(program.steps):
            self._steps[at].verb, self._steps[at].column = step.verb, step.column
            self._steps[at].a, self._steps[at].b = step.a, step.b
            self._steps[at].steps, self._steps[at].count = self._tables._numbers + used, len(step.steps)
            used += self._steps[at].count

    def __dealloc__(self):
        free(self._steps)

    def encode(self, values, columns):
        """See `PlainEncoder.encode`."""
        import pyarrow

        cdef _Payloads made = _Payloads(self._program.columns)
        cdef Given *given
        for number, (shape, array) in columns.items():
            given, buffers = &made.columns[<int> number], array.buffers()
            given.offset, given.valid = array.offset, <const uint8_t *> address_of(buffers[0])
            if shape.kind in (C_BYTES, C_LIST, C_MAP):
                given.offsets = <const int32_t *> address_of(buffers[1])
            if shape.kind == C_BYTES:
                given.data = <const uint8_t *> address_of(buffers[2])
            elif shape.kind not in (C_STRUCT, C_LIST, C_MAP, C_NULL):
                given.data = <const uint8_t *> address_of(buffers[1])
        rows = len(values)
        if values.null_count == rows:  # a column of nulls need have no bits that say so
            return pyarrow.nulls(rows, pyarrow.binary())
        self._run(made, rows, values.offset, address_of(values.buffers()[0]) if values.null_count else 0)
        valid = foreign(&made.valid.bytes) if made.valid.count else None
        buffers = [valid, foreign(&made.offsets), foreign(&made.data)]
        return pyarrow.Array.from_buffers(pyarrow.binary(), rows, buffers, -1, 0)

    cdef _run(self, _Payloads made, int64_t rows, int64_t first, uintptr_t valid_at):
        from headrace.schemas.columns.avro.avro_flaws import misfit_error

        cdef const uint8_t *valid = <const uint8_t *> valid_at
        cdef Writing writing
        cdef int64_t row, at
        cdef int root = self._program.root
        cdef int bad
        writing.steps, writing.columns, writing.constants = self._steps, made.columns, self._tables._constants
        writing.out, writing.step = &made.data, 0
        with nogil:
            bad = T_MEMORY if put_4(&made.offsets, 0) < 0 else 0
            for row in range(rows):
                at = first + row
                if valid != NULL and not (valid[at >> 3] >> (at & 7) & 1):
                    if put_null(&made.valid, row) < 0:
                        bad = T_MEMORY
                else:
                    bad = write(&writing, root, row)
                if not bad and made.data.used > INT32_MAX:
                    bad = T_TOO_LARGE
                if not bad and put_4(&made.offsets, <int32_t> made.data.used) < 0:
                    bad = T_MEMORY
                if bad:
                    break
            if not bad and made.valid.count and put_ones(&made.valid, rows) < 0:
                bad = T_MEMORY
        if bad == T_MEMORY:
            raise MemoryError
        if bad == T_TOO_LARGE:
            raise ColumnTooLargeError("the payloads of the batch are more than 2 GiB: write smaller batches")
        if bad:
            raise misfit_error(self._program, row, bad, writing.step)


cdef uintptr_t address_of(buffer):
    return 0 if buffer is None else buffer.address


cdef foreign(Growing *from_):
    import pyarrow

    address, size, owner = handed_over(from_)
    return pyarrow.foreign_buffer(address, size, owner)
