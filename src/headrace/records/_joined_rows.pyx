# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""Rows of columns as bytes, in C. It has the name and results of the plain twin, `headrace.records.columns.joined_rows`,
which documents it.

Columns are read where they lie, and no object is made for a record. A row of a column is looked at through `cell` and
`header` alone, which check every offset against the bytes that are there. The GIL is kept: a piece takes less time than
getting it back from a busy thread would.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from headrace.records._batch cimport Block, Pinned, put_number

from headrace.records.columns.columns import BinaryColumn
from headrace.records.columns.joined_rows import PIECE_BYTES

cdef extern from "Python.h":
    ctypedef struct PyObject:
        pass
    PyObject *PyList_GET_ITEM(PyObject *held, Py_ssize_t at)

cdef enum:
    LITERAL = 0  # as `headrace.records.columns.joined_rows` has them
    BYTES = 1
    JSON = 2
    SIZE = 3
    SIZE_32 = 4
    NUMBER = 5
    TIME = 6
    HEADERS = 7

    NO_TIME = 0  # TIMESTAMP_NOT_AVAILABLE
    DIGITS = 20  # of 64 bits, with their sign
    SLACK = 65536  # room beyond a piece's size, so that its last row seldom makes it grow

cdef const char *PAIRS = (b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546"
                          b"4748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293"
                          b"949596979899")
cdef const char *HEX = b"0123456789abcdef"
cdef const char *SIXTY_FOUR = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

# What is behind the backslash of a byte in JSON; `u` for those that are \u00xx, 0 for those that stay.
cdef uint8_t[256] ESCAPES
for _byte in range(256):
    ESCAPES[_byte] = c"u" if _byte < 0x20 else 0
ESCAPES[c'"'] = c'"'
ESCAPES[c"\\"] = c"\\"
ESCAPES[c"\b"] = c"b"
ESCAPES[c"\f"] = c"f"
ESCAPES[c"\n"] = c"n"
ESCAPES[c"\r"] = c"r"
ESCAPES[c"\t"] = c"t"


cdef struct Cells:
    # A column of keys or values: a list, or Arrow's buffers.
    PyObject *held
    const uint8_t *validity  # NULL while nothing is null
    const int32_t *ends
    const uint8_t *data
    Py_ssize_t size, rows


cdef struct Part:
    int kind
    const uint8_t *text
    Py_ssize_t text_size, first
    Cells cells  # of headers, their values
    Cells names
    const int32_t *lists
    const int64_t *numbers
    const uint8_t *types


cdef class Plan:
    # The parts, and what holds their memory.
    cdef Part *parts
    cdef Py_ssize_t count
    cdef list held

    def __cinit__(self, parts, Py_ssize_t row, Py_ssize_t end):
        cdef tuple given = tuple(parts)
        cdef Part *part
        self.held = [given]
        self.count = len(given)
        self.parts = <Part *> calloc(max(self.count, 1), sizeof(Part))
        if self.parts == NULL:
            raise MemoryError
        for at in range(self.count):
            part = &self.parts[at]
            kind, text, column, first = given[at]
            part.kind, part.first = kind, first
            part.text = <const uint8_t *> PyBytes_AS_STRING(<bytes?> text)
            part.text_size = PyBytes_GET_SIZE(text)
            self.held.append(text)
            if kind != LITERAL:
                if row < 0 or first < 0 or self.rows_of(part, column) - part.first < end:
                    raise ValueError("a column has fewer rows")

    def __dealloc__(self):
        free(self.parts)

    cdef Py_ssize_t rows_of(self, Part *part, column) except -1:
        # Set what the part reads, and say how many rows there are.
        cdef Py_ssize_t rows, numbers = 0
        if part.kind == NUMBER or part.kind == TIME:
            types = None
            if part.kind == TIME:
                column, types = column
            part.numbers = <const int64_t *> self.start(column, &numbers)
            rows = numbers // 8
            if part.kind == TIME:
                part.types = self.start(types, &numbers)
                rows = min(rows, numbers)
            return rows
        if part.kind == HEADERS:
            _, lists, names, values, _ = column
            part.lists = <const int32_t *> self.start(lists, &numbers)
            self.columns(&part.names, names)
            self.columns(&part.cells, values)
            return max(numbers // 4 - 1, 0)
        if not LITERAL < part.kind < NUMBER:
            raise ValueError(f"{part.kind} is no kind of part")
        if isinstance(column, BinaryColumn):
            self.columns(&part.cells, column)
        else:
            self.held.append(<list?> column)
            part.cells.held = <PyObject *> column
            part.cells.rows = PyList_GET_SIZE(column)
        return part.cells.rows

    cdef int columns(self, Cells *to, column) except -1:
        cdef Py_ssize_t ends = 0, bits = 0
        validity, offsets, data = column
        to.ends = <const int32_t *> self.start(offsets, &ends)
        to.data = self.start(data, &to.size)
        to.rows = max(ends // 4 - 1, 0)
        if validity is not None:
            to.validity = self.start(validity, &bits)
            to.rows = min(to.rows, 8 * bits)
        return 0

    cdef const uint8_t *start(self, data, Py_ssize_t *size) except? NULL:
        cdef Pinned pinned = Pinned(data)
        self.held.append(pinned)
        size[0] = pinned.size
        return pinned.start


cdef inline int cell(const Cells *column, Py_ssize_t row, const uint8_t **data, Py_ssize_t *size) except -1:
    # Where a key or a value is; its size is -1 for null. The row is one that is there.
    cdef PyObject *found
    cdef int32_t begin, stop
    if column.held != NULL:
        if row >= PyList_GET_SIZE(<object> column.held):
            raise ValueError("a column has fewer rows")
        found = PyList_GET_ITEM(column.held, row)
        if <object> found is None:
            size[0] = -1
            return 0
        if not PyBytes_Check(<object> found):
            raise TypeError("a cell is neither bytes nor None")
        data[0] = <const uint8_t *> PyBytes_AS_STRING(<object> found)
        size[0] = PyBytes_GET_SIZE(<object> found)
        return 0
    if column.validity != NULL and not column.validity[row >> 3] >> (row & 7) & 1:
        size[0] = -1
        return 0
    begin, stop = column.ends[row], column.ends[row + 1]
    if begin < 0 or stop < begin or stop > column.size:
        raise ValueError("an offset is outside of its column")
    data[0] = column.data + begin
    size[0] = stop - begin
    return 0


cdef inline int room(Block to, Py_ssize_t more) except -1:
    if to.capacity - to.used < more:
        to.reserve(more)
    return 0


cdef inline int put(Block to, const uint8_t *data, Py_ssize_t size) except -1:
    room(to, size)
    if size == 1:
        to.start[to.used] = data[0]
    else:
        memcpy(to.start + to.used, data, size)
    to.used += size
    return 0


cdef inline int put_digits(Block to, int64_t number) except -1:
    cdef uint8_t[DIGITS] digits
    cdef uint64_t rest = <uint64_t> number
    cdef int at = DIGITS, pair
    if number < 0:
        rest = -rest
    while rest >= 100:
        pair = 2 * <int> (rest % 100)
        rest //= 100
        at -= 2
        digits[at], digits[at + 1] = PAIRS[pair], PAIRS[pair + 1]
    if rest >= 10:
        at -= 2
        digits[at], digits[at + 1] = PAIRS[2 * rest], PAIRS[2 * rest + 1]
    else:
        at -= 1
        digits[at] = <uint8_t> (c"0" + rest)
    if number < 0:
        at -= 1
        digits[at] = c"-"
    return put(to, &digits[at], DIGITS - at)


# JSON.

cdef inline bint is_plain(uint64_t eight) noexcept nogil:
    # Eight bytes that stay as they are: ASCII, no control character, no quote, no backslash.
    cdef uint64_t ones = 0x0101010101010101ULL, highs = 0x8080808080808080ULL
    cdef uint64_t quotes = eight ^ 0x2222222222222222ULL, slashes = eight ^ 0x5C5C5C5C5C5C5C5CULL
    return not (eight | (eight - 0x2020202020202020ULL) | (quotes - ones) & ~quotes | (slashes - ones) & ~slashes) & highs


cdef inline int wide(const uint8_t *p, const uint8_t *end) noexcept nogil:
    # How many bytes the character of UTF-8 has that begins here with more than 0x7F; 0 if it is none.
    cdef uint8_t lead = p[0], lowest = 0x80, highest = 0xBF
    cdef int size, at
    if lead < 0xC2 or lead > 0xF4:
        return 0
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if end - p < size:
        return 0
    if lead == 0xE0:
        lowest = 0xA0
    elif lead == 0xED:
        highest = 0x9F  # half of a pair
    elif lead == 0xF0:
        lowest = 0x90
    elif lead == 0xF4:
        highest = 0x8F
    if not lowest <= p[1] <= highest:
        return 0
    for at in range(2, size):
        if p[at] & 0xC0 != 0x80:
            return 0
    return size


cdef uint8_t *quoted(uint8_t *to, const uint8_t *p, const uint8_t *end) noexcept nogil:
    # A text, with room for six bytes for each of its own and two more. Gives the place behind, NULL when it is no UTF-8.
    cdef uint64_t eight
    cdef uint8_t byte, escape
    cdef int size
    to[0] = c'"'
    to += 1
    while p < end:
        while end - p >= 8:
            memcpy(&eight, p, 8)
            if not is_plain(eight):
                break
            memcpy(to, p, 8)
            p += 8
            to += 8
        while p < end:  # up to the byte that is not plain, and behind it
            byte = p[0]
            if byte >= 0x80:
                size = wide(p, end)
                if size == 0:
                    return NULL
                memcpy(to, p, size)
                to += size
                p += size
                break
            p += 1
            escape = ESCAPES[byte]
            if escape == 0:
                to[0] = byte
                to += 1
                continue
            to[0] = c"\\"
            to[1] = escape
            to += 2
            if escape == c"u":
                to[0], to[1], to[2], to[3] = c"0", c"0", HEX[byte >> 4], HEX[byte & 15]
                to += 4
            break
    to[0] = c'"'
    return to + 1


cdef int put_base64(Block to, const uint8_t *p, Py_ssize_t size) except -1:
    cdef uint8_t *out
    cdef int bits
    put(to, <const uint8_t *> b'{"base64":"', 11)
    room(to, (size + 2) // 3 * 4)
    out = to.start + to.used
    while size > 0:
        bits = p[0] << 16 | (p[1] << 8 if size > 1 else 0) | (p[2] if size > 2 else 0)
        out[0], out[1] = SIXTY_FOUR[bits >> 18], SIXTY_FOUR[bits >> 12 & 63]
        out[2] = SIXTY_FOUR[bits >> 6 & 63] if size > 1 else c"="
        out[3] = SIXTY_FOUR[bits & 63] if size > 2 else c"="
        out += 4
        p += 3
        size -= 3
    to.used = out - to.start
    return put(to, <const uint8_t *> b'"}', 2)


cdef inline int put_json(Block to, const uint8_t *data, Py_ssize_t size) except -1:
    cdef uint8_t *end
    if size < 0:
        return put(to, <const uint8_t *> b"null", 4)
    room(to, 6 * size + 2)
    end = quoted(to.start + to.used, data, data + size)
    if end == NULL:
        return put_base64(to, data, size)
    to.used = end - to.start
    return 0


cdef int put_headers(Block to, const Part *part, Py_ssize_t row) except -1:
    cdef int32_t at, begin = part.lists[row], stop = part.lists[row + 1]
    cdef const uint8_t *data = NULL
    cdef Py_ssize_t size = 0
    if begin < 0 or stop < begin or stop > part.names.rows or stop > part.cells.rows:
        raise ValueError("an offset is outside of its column")
    put(to, <const uint8_t *> b"[", 1)
    for at in range(begin, stop):
        put(to, <const uint8_t *> (b',{"name":' if at > begin else b'{"name":'), 9 if at > begin else 8)
        cell(&part.names, at, &data, &size)
        put_json(to, data, size)
        put(to, <const uint8_t *> b',"value":', 9)
        cell(&part.cells, at, &data, &size)
        put_json(to, data, size)
        put(to, <const uint8_t *> b"}", 1)
    return put(to, <const uint8_t *> b"]", 1)


cdef int put_row(Block to, Plan plan, Py_ssize_t row) except -1:
    cdef const Part *part
    cdef const uint8_t *data = NULL
    cdef Py_ssize_t size = 0, at, place
    for at in range(plan.count):
        part = &plan.parts[at]
        if part.kind == LITERAL:
            put(to, part.text, part.text_size)
            continue
        place = row + part.first
        if part.kind == NUMBER or part.kind == TIME:
            if part.types != NULL and part.types[place] == NO_TIME:
                put(to, part.text, part.text_size)
            else:
                put_digits(to, part.numbers[place])
            continue
        if part.kind == HEADERS:
            put_headers(to, part, place)
            continue
        cell(&part.cells, place, &data, &size)
        if part.kind == BYTES:
            if size < 0:
                put(to, part.text, part.text_size)
            else:
                put(to, data, size)
        elif part.kind == JSON:
            put_json(to, data, size)
        elif part.kind == SIZE:
            put_digits(to, size)
        else:
            room(to, 4)
            put_number(to.start + to.used, 4, <uint64_t> size)
            to.used += 4
    return 0


def join_rows(parts, Py_ssize_t row, Py_ssize_t end, Py_ssize_t most_bytes=PIECE_BYTES):
    """Rows from one on, as many as it takes to have so many bytes, or all up to another."""
    cdef Plan plan = Plan(parts, row, end)
    cdef Block made = Block()
    made.reserve(max(most_bytes, 0) + SLACK)
    while row < end and made.used < most_bytes:
        put_row(made, plan, row)
        row += 1
    return made, row
