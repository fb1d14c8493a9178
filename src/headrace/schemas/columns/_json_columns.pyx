# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""JSON to Arrow columns and back, in C. `json/json_rows.py` is the plain twin, which says what is right.

The type of the column is the program: a tree of `Node`. A text is read once, from its first byte to its last; what the
type does not ask for is passed over, but must be JSON. A key that comes again replaces the value before. Every read is
checked against the end. The columns of a bad row are cut back to where it began.
"""

from threading import Lock

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from libc.math cimport fabs, isinf, isnan
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset, strlen

from headrace.schemas.columns._column_tree cimport (
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
    end_text,
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
    put_wide,
    push,
    push_byte,
    raise_fault,
    start_column,
    text_at,
)

cdef extern from "Python.h":
    char *PyOS_double_to_string(double value, char form, int precision, int flags, int *kind) except NULL

cdef enum:  # in the order of `_FORMS`
    BOOL, INT, FLOAT, DOUBLE, DECIMAL, STRING, BINARY, DATE, TIME, LOCAL_TIME, STRUCT, LIST, MAP

cdef enum:  # troubles, behind the faults, in the order of `_REASONS`
    NOT_JSON = 4
    MORE, TOO_DEEP, BAD_TEXT, NO_BOOL, NO_WHOLE, NO_NUMBER, NO_TEXT, NO_BASE64, NO_DATE, NO_TIME, NO_OBJECT, NO_ARRAY
    OUT_OF_RANGE, NULL_KEY

cdef enum:
    MOST_DEPTH = 400  # of values that are passed over; others are as deep as their type
    MOST_DIGITS = 400  # of a number's exponent and the zeros that it stands for
    LONG_NUMBER = 512

_FORMS = ("bool", "int", "float", "double", "decimal", "string", "binary", "date", "time", "local_time", "struct",
          "list", "map")
_REASONS = ("", "", "", f"the value has more than {MOST_CELLS} values", "the text is not JSON",
            "there is more behind the value", f"values are nested more than {MOST_DEPTH} deep", "the text is not UTF-8",
            "the value is neither true nor false", "the value is no whole number", "the value is no number",
            "the value is no text", "the text is not base64", "the text is no date", "the text is no time",
            "the value is no object", "the value is no array", "the value is out of range", "a key is null")
cdef int64_t MICROS = 1000000
cdef int64_t DAY = 86400000000
cdef int64_t FIRST_DAY = -719162  # 0001-01-01
cdef int64_t LAST_DAY = 2932896  # 9999-12-31
cdef double[23] TENS
for _power in range(23):
    TENS[_power] = 10.0 ** _power
cdef const char *BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef int8_t[256] SIXES
for _power in range(256):
    SIXES[_power] = -1
for _power in range(64):
    SIXES[<uint8_t> BASE64[_power]] = _power

cdef struct Node:
    int form
    int index  # in the list of all names
    int width
    int precision
    int scale
    const char *name  # of a struct's field
    size_t name_size
    const char *key  # as it is written, with quotes and colon
    size_t key_size
    bint keeps_null  # of a struct's field: written where it is null
    Column *column
    int count
    Node *children

cdef struct Bad:
    int64_t row
    int trouble
    int field

cdef struct Context:
    const uint8_t *p
    const uint8_t *end
    int64_t cells
    int field  # where there was trouble; -1: nowhere
    uint64_t seed
    bint is_loose  # other values can be texts, and dates times
    Growing scratch

cdef struct Number:
    bint is_negative
    const uint8_t *start
    const uint8_t *end  # of the digits and the point
    int64_t exponent
    bint is_plain  # digits alone


# Reading: tokens.


cdef inline void skip_space(Context *c) noexcept nogil:
    while c.p < c.end and (c.p[0] == c" " or c.p[0] == c"\n" or c.p[0] == c"\t" or c.p[0] == c"\r"):
        c.p += 1


cdef inline int is_word(Context *c, const char *word, size_t size) noexcept nogil:
    if <size_t> (c.end - c.p) >= size and memcmp(c.p, word, size) == 0:
        c.p += size
        return 1
    return 0


cdef int span(Context *c, const uint8_t **found, size_t *size, bint *is_escaped) noexcept nogil:
    # A text between quotes, the first of which comes next. Escapes stay as they are.
    cdef const uint8_t *p = c.p + 1
    cdef const uint8_t *start = p
    is_escaped[0] = False
    while p < c.end and p[0] != c'"':
        if p[0] < 0x20:
            return NOT_JSON
        if p[0] == c"\\":
            is_escaped[0] = True
            p += 1
        p += 1
    if p >= c.end:
        return NOT_JSON
    found[0] = start
    size[0] = p - start
    c.p = p + 1
    return FINE if is_utf8(start, size[0]) else BAD_TEXT


cdef inline int hex4(const uint8_t *p, const uint8_t *end, uint32_t *code) noexcept nogil:
    cdef uint32_t found = 0
    cdef int i
    if end - p < 4:
        return 0
    for i in range(4):
        found <<= 4
        if c"0" <= p[i] <= c"9":
            found |= p[i] - c"0"
        elif c"a" <= (p[i] | 0x20) <= c"f":
            found |= (p[i] | 0x20) - c"a" + 10
        else:
            return 0
    code[0] = found
    return 1


cdef int push_code(Growing *to, uint32_t code) noexcept nogil:
    cdef uint8_t[4] made
    cdef size_t size
    if code < 0x80:
        made[0] = code
        size = 1
    elif code < 0x800:
        made[0] = 0xC0 | code >> 6
        made[1] = 0x80 | code & 0x3F
        size = 2
    elif code < 0x10000:
        made[0] = 0xE0 | code >> 12
        made[1] = 0x80 | code >> 6 & 0x3F
        made[2] = 0x80 | code & 0x3F
        size = 3
    else:
        made[0] = 0xF0 | code >> 18
        made[1] = 0x80 | code >> 12 & 0x3F
        made[2] = 0x80 | code >> 6 & 0x3F
        made[3] = 0x80 | code & 0x3F
        size = 4
    return push(to, made, size)


cdef int unescape(const uint8_t *p, size_t size, Growing *to) noexcept nogil:
    # What a text with escapes stands for.
    cdef const uint8_t *end = p + size
    cdef const uint8_t *start
    cdef uint32_t code = 0, low = 0
    cdef uint8_t letter
    cdef int trouble
    while p < end:
        start = p
        while p < end and p[0] != c"\\":
            p += 1
        trouble = push(to, start, p - start)
        if trouble != FINE:
            return trouble
        if p == end:
            return FINE
        letter = p[1]
        p += 2
        if letter == c"u":
            if not hex4(p, end, &code):
                return NOT_JSON
            p += 4
            if 0xD800 <= code < 0xE000:
                if code >= 0xDC00 or end - p < 6 or p[0] != c"\\" or p[1] != c"u" or not hex4(
                        p + 2, end, &low) or not 0xDC00 <= low < 0xE000:
                    return BAD_TEXT
                p += 6
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        else:
            code = unescaped_letter(letter)
            if code == 0:
                return NOT_JSON
        trouble = push_code(to, code)
        if trouble != FINE:
            return trouble
    return FINE


cdef inline uint32_t unescaped_letter(uint8_t letter) noexcept nogil:
    if letter == c"n":
        return 10
    if letter == c"t":
        return 9
    if letter == c"r":
        return 13
    if letter == c"b":
        return 8
    if letter == c"f":
        return 12
    return letter if letter == c'"' or letter == c"\\" or letter == c"/" else 0


cdef int text(Context *c, const uint8_t **found, size_t *size) noexcept nogil:
    # A text; its escapes are undone in the scratch, until the next text.
    cdef bint is_escaped = False
    cdef int trouble = span(c, found, size, &is_escaped)
    if trouble == FINE and is_escaped:
        c.scratch.size = 0
        trouble = unescape(found[0], size[0], &c.scratch)
        found[0] = c.scratch.at
        size[0] = c.scratch.size
    return trouble


cdef inline int is_digit(const uint8_t *p, const uint8_t *end) noexcept nogil:
    return p < end and c"0" <= p[0] <= c"9"


cdef int number(Context *c, Number *found) noexcept nogil:
    # A number by JSON's grammar.
    cdef const uint8_t *p = c.p
    cdef bint is_minus = False
    cdef int64_t exponent = 0
    found.is_negative = p[0] == c"-"
    p += found.is_negative
    found.start = p
    found.exponent = 0
    found.is_plain = True
    if not is_digit(p, c.end):
        return NOT_JSON
    if p[0] == c"0" and is_digit(p + 1, c.end):
        return NOT_JSON
    while is_digit(p, c.end):
        p += 1
    if p < c.end and p[0] == c".":
        found.is_plain = False
        p += 1
        if not is_digit(p, c.end):
            return NOT_JSON
        while is_digit(p, c.end):
            p += 1
    found.end = p
    if p < c.end and p[0] | 0x20 == c"e":
        found.is_plain = False
        p += 1
        if p < c.end and (p[0] == c"-" or p[0] == c"+"):
            is_minus = p[0] == c"-"
            p += 1
        if not is_digit(p, c.end):
            return NOT_JSON
        while is_digit(p, c.end):
            if exponent < 100000000:
                exponent = exponent * 10 + (p[0] - c"0")
            p += 1
        found.exponent = -exponent if is_minus else exponent
    c.p = p
    return FINE


cdef int whole(Number *n, uint64_t *value) noexcept nogil:
    # The magnitude of a number without a fraction; 1.0 and 1e3 are such.
    cdef const uint8_t *p = n.start
    cdef const uint8_t *last = n.end
    cdef uint64_t found = 0
    cdef int64_t left = n.exponent, behind = 0
    cdef bint is_behind = False
    cdef uint8_t digit
    while p < last:  # digits behind the point make the exponent less
        if p[0] == c".":
            is_behind = True
        elif is_behind:
            behind += 1
        p += 1
    left -= behind
    if not n.is_plain:
        while last > n.start and ((last - 1)[0] == c"0" or (last - 1)[0] == c"."):
            last -= 1
            left += last[0] == c"0"
    p = n.start
    while p < last:
        if p[0] != c".":
            digit = p[0] - c"0"
            if found > (<uint64_t> 0xFFFFFFFFFFFFFFFF - digit) // 10:
                return OUT_OF_RANGE if left >= 0 else NO_WHOLE
            found = found * 10 + digit
        p += 1
    if found == 0:
        value[0] = 0
        return FINE
    if left < 0:
        return NO_WHOLE
    while left > 0:
        if found > <uint64_t> 0xFFFFFFFFFFFFFFFF // 10:
            return OUT_OF_RANGE
        found *= 10
        left -= 1
    value[0] = found
    return FINE


cdef int floating(Context *c, Number *n, const uint8_t *start, double *value) noexcept nogil:
    cdef const uint8_t *p = n.start
    cdef uint64_t digits = 0
    cdef int64_t exponent = n.exponent
    cdef bint is_behind = False, is_exact = True
    cdef char[LONG_NUMBER] near
    cdef char *copied = near
    cdef size_t size = c.p - start
    cdef int trouble
    while p < n.end:
        if p[0] == c".":
            is_behind = True
        else:
            if digits >= <uint64_t> 900719925474099:
                is_exact = False
                break
            digits = digits * 10 + (p[0] - c"0")
            exponent -= is_behind
        p += 1
    if is_exact and -22 <= exponent <= 22:  # both are exact, so what comes of them is the nearest
        value[0] = <double> digits / TENS[-exponent] if exponent < 0 else <double> digits * TENS[exponent]
        value[0] = -value[0] if n.is_negative else value[0]
        return FINE
    if size >= LONG_NUMBER:
        c.scratch.size = 0
        trouble = grow(&c.scratch, size + 1)
        if trouble != FINE:
            return trouble
        copied = <char *> c.scratch.at
    memcpy(copied, start, size)
    copied[size] = 0
    with gil:
        value[0] = float(<bytes> copied)
    return OUT_OF_RANGE if isinf(value[0]) else FINE


cdef inline void times_ten(uint64_t *high, uint64_t *low, uint32_t more) noexcept nogil:
    cdef uint64_t one = (low[0] & <uint64_t> 0xFFFFFFFF) * 10 + more
    cdef uint64_t two = (low[0] >> 32) * 10 + (one >> 32)
    low[0] = two << 32 | one & <uint64_t> 0xFFFFFFFF
    high[0] = high[0] * 10 + (two >> 32)


cdef int scaled(Number *n, int precision, int scale, uint64_t *high, uint64_t *low) noexcept nogil:
    # The magnitude of a decimal, rounded half up to its scale.
    cdef const uint8_t *p
    cdef int64_t behind = 0, left, digits = 0
    cdef bint is_behind = False, is_up = False
    high[0] = 0
    low[0] = 0
    p = n.start
    while p < n.end:
        behind += is_behind and p[0] != c"."
        is_behind = is_behind or p[0] == c"."
        p += 1
    left = n.exponent - behind + scale  # places to the right, of the last digit
    digits = (n.end - n.start) - is_behind
    p = n.start
    while p < n.end:
        if p[0] != c".":
            digits -= 1
            if left + digits < 0:  # the first digit that has no place
                is_up = left + digits == -1 and p[0] >= c"5"
                break
            if high[0] >= <uint64_t> 0x0CCCCCCCCCCCCCCC:
                return OUT_OF_RANGE
            times_ten(high, low, p[0] - c"0")
        p += 1
    while left > 0 and (high[0] or low[0]):
        if high[0] >= <uint64_t> 0x0CCCCCCCCCCCCCCC:
            return OUT_OF_RANGE
        times_ten(high, low, 0)
        left -= 1
    if is_up:
        low[0] = low[0] + 1
        high[0] = high[0] + (low[0] == 0)
    return FINE if is_less(high[0], low[0], precision) else OUT_OF_RANGE


cdef int is_less(uint64_t high, uint64_t low, int precision) noexcept nogil:
    cdef uint64_t top = 0, bottom = 1
    cdef int i
    for i in range(precision):
        times_ten(&top, &bottom, 0)
    return high < top or (high == top and low < bottom)


# Reading: times.


cdef int two_digits(const uint8_t *p) noexcept nogil:
    if not (c"0" <= p[0] <= c"9" and c"0" <= p[1] <= c"9"):
        return -1
    return (p[0] - c"0") * 10 + (p[1] - c"0")


cdef int64_t days_of(int64_t year, int month, int day) noexcept nogil:
    # Days since 1970 in the Gregorian calendar; years begin in March here.
    year -= month <= 2
    cdef int64_t era = year // 400
    cdef int64_t of_era = year - era * 400
    cdef int64_t of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


cdef int month_days(int year, int month) noexcept nogil:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


cdef int date(const uint8_t *p, size_t size, int64_t *days) noexcept nogil:
    # YYYY-MM-DD
    cdef int century, rest, month, day
    if size != 10 or p[4] != c"-" or p[7] != c"-":
        return NO_DATE
    century, rest, month, day = two_digits(p), two_digits(p + 2), two_digits(p + 5), two_digits(p + 8)
    if century < 0 or rest < 0 or century + rest == 0 or not 1 <= month <= 12 or not 1 <= day <= month_days(
            century * 100 + rest, month):
        return NO_DATE
    days[0] = days_of(century * 100 + rest, month, day)
    return FINE


cdef int clock(const uint8_t **at, const uint8_t *end, int64_t *micros) noexcept nogil:
    # HH:MM, with seconds and a fraction or without.
    cdef const uint8_t *p = at[0]
    cdef int hour, minute, second = 0
    cdef int64_t fraction = 0, unit = 100000
    if end - p < 5 or p[2] != c":":
        return NO_TIME
    hour, minute = two_digits(p), two_digits(p + 3)
    p += 5
    if end - p >= 3 and p[0] == c":":
        second = two_digits(p + 1)
        p += 3
        if p < end and p[0] == c".":
            p += 1
            if not is_digit(p, end):
                return NO_TIME
            while is_digit(p, end):
                fraction += (p[0] - c"0") * unit
                unit //= 10
                p += 1
    if not 0 <= hour < 24 or not 0 <= minute < 60 or not 0 <= second < 60:
        return NO_TIME
    micros[0] = ((hour * 60 + minute) * 60 + second) * MICROS + fraction
    at[0] = p
    return FINE


cdef int zone(const uint8_t *p, const uint8_t *end, int64_t *micros) noexcept nogil:
    # Z, +HH, +HHMM or +HH:MM; nothing is UTC.
    cdef int hours, minutes = 0
    micros[0] = 0
    if p == end or (end - p == 1 and p[0] | 0x20 == c"z"):
        return FINE
    if (p[0] != c"+" and p[0] != c"-") or end - p not in (3, 5, 6) or (end - p == 6 and p[3] != c":"):
        return NO_TIME
    hours = two_digits(p + 1)
    if end - p > 3:
        minutes = two_digits(end - 2)
    if not 0 <= hours < 24 or not 0 <= minutes < 60:
        return NO_TIME
    micros[0] = (hours * 60 + minutes) * 60 * MICROS
    if p[0] == c"-":
        micros[0] = -micros[0]
    return FINE


cdef int moment(const uint8_t *p, size_t size, bint is_local, bint is_loose, int64_t *micros) noexcept nogil:
    # A date, T or a space, a time of day and a zone. A local one has no zone; a loose one may be a date, its midnight.
    cdef const uint8_t *end = p + size
    cdef int64_t days = 0, of_day = 0, ahead = 0
    cdef int trouble
    if is_loose and size == 10 and date(p, size, &days) == FINE:
        micros[0] = days * DAY
        return FINE
    if size < 16 or (p[10] | 0x20 != c"t" and p[10] != c" ") or date(p, 10, &days) != FINE:
        return NO_TIME
    p += 11
    trouble = clock(&p, end, &of_day)
    if trouble == FINE and is_local:
        trouble = FINE if p == end else NO_TIME
    elif trouble == FINE:
        trouble = zone(p, end, &ahead)
    micros[0] = days * DAY + of_day - ahead
    return trouble


# Reading: values.


cdef int passed_over(Context *c, int depth) noexcept nogil:
    # A value of any kind, which must be JSON.
    cdef const uint8_t *found
    cdef size_t size = 0
    cdef bint is_escaped = False
    cdef Number n
    cdef int trouble
    cdef uint8_t first
    skip_space(c)
    if c.p >= c.end:
        return NOT_JSON
    first = c.p[0]
    if first == c'"':
        trouble = text(c, &found, &size)
        return trouble
    if first == c"-" or c"0" <= first <= c"9":
        return number(c, &n)
    if first != c"{" and first != c"[":
        return FINE if is_word(c, b"true", 4) or is_word(c, b"false", 5) or is_word(c, b"null", 4) else NOT_JSON
    if depth == MOST_DEPTH:
        return TOO_DEEP
    c.p += 1
    if is_closed(c, first + 2):
        return FINE
    while True:
        if first == c"{":
            trouble = key(c, &found, &size)
            if trouble != FINE:
                return trouble
        trouble = passed_over(c, depth + 1)
        if trouble != FINE:
            return trouble
        if is_closed(c, first + 2):
            return FINE
        if c.p >= c.end or c.p[0] != c",":
            return NOT_JSON
        c.p += 1


cdef inline int is_closed(Context *c, uint8_t bracket) noexcept nogil:
    # Whether the bracket comes next, which is taken then. Those of JSON are two behind those that open.
    skip_space(c)
    if c.p < c.end and c.p[0] == bracket:
        c.p += 1
        return 1
    return 0


cdef inline int key(Context *c, const uint8_t **found, size_t *size) noexcept nogil:
    # A key and its colon.
    cdef int trouble
    skip_space(c)
    if c.p >= c.end or c.p[0] != c'"':
        return NOT_JSON
    trouble = text(c, found, size)
    if trouble != FINE:
        return trouble
    skip_space(c)
    if c.p >= c.end or c.p[0] != c":":
        return NOT_JSON
    c.p += 1
    return FINE


cdef int read_value(Context *c, Node *node) noexcept nogil:
    cdef const uint8_t *start
    cdef int trouble
    skip_space(c)
    if c.p >= c.end:
        return NOT_JSON
    if c.p[0] == c"n":
        return put_null(node.column) if is_word(c, b"null", 4) else NOT_JSON
    if node.form == STRUCT:
        trouble = read_struct(c, node)
    elif node.form == LIST:
        trouble = read_list(c, node)
    elif node.form == MAP:
        trouble = read_map(c, node)
    elif c.p[0] == c'"':
        trouble = read_text(c, node)
    elif c.p[0] == c"t" or c.p[0] == c"f":
        trouble = read_word(c, node)
    elif c.p[0] == c"-" or c"0" <= c.p[0] <= c"9":
        trouble = read_number(c, node)
    else:
        trouble = read_other(c, node)
    if trouble != FINE and c.field < 0:
        c.field = node.index
    return trouble


cdef int read_other(Context *c, Node *node) noexcept nogil:
    # Brackets, or what is no JSON, where a scalar is expected.
    cdef const uint8_t *start = c.p
    cdef int trouble = passed_over(c, 0)
    if trouble != FINE:
        return trouble
    return put_loose(c, node, start)


cdef int put_loose(Context *c, Node *node, const uint8_t *start) noexcept nogil:
    # The text of another value, without the spaces round its parts.
    cdef bint is_inside = False
    cdef const uint8_t *p = start
    cdef int trouble = FINE
    if node.form != STRING or not c.is_loose:
        return wanted(node.form)
    while p < c.p and trouble == FINE:
        if p[0] == c'"':
            is_inside = not is_inside
        elif p[0] == c"\\":
            trouble = push_byte(&node.column.data, p[0])
            p += 1
        if trouble == FINE and (is_inside or p[0] > 0x20):
            trouble = push_byte(&node.column.data, p[0])
        p += 1
    return trouble if trouble != FINE else end_text(node.column)


cdef int wanted(int form) noexcept nogil:
    # What a value is not.
    if form == BOOL:
        return NO_BOOL
    if form == INT:
        return NO_WHOLE
    return NO_NUMBER if form in (FLOAT, DOUBLE, DECIMAL) else NO_TEXT


cdef int read_word(Context *c, Node *node) noexcept nogil:
    cdef const uint8_t *start = c.p
    cdef int value = is_word(c, b"true", 4)
    if not value and not is_word(c, b"false", 5):
        return NOT_JSON
    return put_bit(node.column, value) if node.form == BOOL else put_loose(c, node, start)


cdef int read_number(Context *c, Node *node) noexcept nogil:
    cdef const uint8_t *start = c.p
    cdef Number n
    cdef double value = 0
    cdef int trouble = number(c, &n)
    if trouble != FINE:
        return trouble
    if node.form == INT:
        return read_whole(node, &n)
    if node.form == DECIMAL:
        return read_decimal(node, &n)
    if node.form != FLOAT and node.form != DOUBLE:
        return put_loose(c, node, start)
    trouble = floating(c, &n, start, &value)
    return trouble if trouble != FINE else put_floating(node, value, False)


cdef int put_floating(Node *node, double value, bint is_infinite) noexcept nogil:
    cdef uint64_t bits
    cdef uint32_t four
    cdef float narrow
    if node.form == DOUBLE:
        memcpy(&bits, &value, 8)
        return put_fixed(node.column, bits)
    narrow = <float> value
    if isinf(narrow) and not is_infinite:
        return OUT_OF_RANGE
    memcpy(&four, &narrow, 4)
    return put_fixed(node.column, four)


cdef int read_whole(Node *node, Number *n) noexcept nogil:
    cdef uint64_t value = 0, most
    cdef int trouble = whole(n, &value)
    if trouble != FINE:
        return trouble
    most = <uint64_t> 1 << (node.width * 8 - 1)
    if value > most or (value == most and not n.is_negative):
        return OUT_OF_RANGE
    return put_fixed(node.column, 0 - value if n.is_negative else value)


cdef int read_decimal(Node *node, Number *n) noexcept nogil:
    cdef uint64_t high = 0, low = 0
    cdef int trouble = scaled(n, node.precision, node.scale, &high, &low)
    if trouble != FINE:
        return trouble
    if n.is_negative:
        low = ~low + 1
        high = ~high + (low == 0)
    return put_wide(node.column, low, high)


cdef int read_text(Context *c, Node *node) noexcept nogil:
    cdef const uint8_t *found
    cdef size_t size = 0
    cdef int64_t value = 0
    cdef int trouble = text(c, &found, &size)
    if trouble != FINE:
        return trouble
    if node.form == STRING:
        return put_text(node.column, found, size)
    if node.form == BINARY:
        return put_base64(node.column, found, size)
    if node.form == DATE:
        trouble = date(found, size, &value)
    elif node.form == TIME or node.form == LOCAL_TIME:
        trouble = moment(found, size, node.form == LOCAL_TIME, c.is_loose, &value)
    elif node.form == FLOAT or node.form == DOUBLE:
        return put_special(node, found, size)
    elif node.form == DECIMAL:
        return put_decimal_text(node, found, size)
    else:
        return wanted(node.form)
    return trouble if trouble != FINE else put_fixed(node.column, <uint64_t> value)


cdef int put_special(Node *node, const uint8_t *found, size_t size) noexcept nogil:
    # What Spark's to_json writes of numbers that JSON does not have.
    cdef double infinite = 1e308 * 10.0
    if size == 3 and memcmp(found, b"NaN", 3) == 0:
        return put_floating(node, infinite - infinite, True)
    if size == 8 and memcmp(found, b"Infinity", 8) == 0:
        return put_floating(node, infinite, True)
    if size == 9 and memcmp(found, b"-Infinity", 9) == 0:
        return put_floating(node, -infinite, True)
    return NO_NUMBER


cdef int put_decimal_text(Node *node, const uint8_t *found, size_t size) noexcept nogil:
    # A decimal as text, which some write so that nobody rounds it.
    cdef Context inner
    cdef Number n
    memset(&inner, 0, sizeof(inner))
    inner.p, inner.end = found, found + size
    if size == 0 or number(&inner, &n) != FINE or inner.p != inner.end:
        return NO_NUMBER
    return read_decimal(node, &n)


cdef int put_base64(Column *column, const uint8_t *p, size_t size) noexcept nogil:
    cdef const uint8_t *end = p + size
    cdef uint32_t bits
    cdef int i, value, padding = 0, trouble
    if size & 3:
        return NO_BASE64
    while p < end:
        bits = 0
        for i in range(4):
            value = SIXES[p[i]]
            if value < 0:
                if p[i] != c"=" or p + 4 != end or i < 2:
                    return NO_BASE64
                padding += 1
                value = 0
            elif padding:
                return NO_BASE64
            bits = bits << 6 | <uint32_t> value
        p += 4
        trouble = grow(&column.data, 3)
        if trouble != FINE:
            return trouble
        for i in range(3 - padding):
            column.data.at[column.data.size] = <uint8_t> (bits >> (16 - 8 * i))
            column.data.size += 1
    return end_text(column)


cdef Node *found_child(Node *node, const uint8_t *name, size_t size, int likely) noexcept nogil:
    # The field of a name; keys mostly come in the order of the fields.
    cdef int i
    cdef Node *child
    for i in range(node.count):
        child = &node.children[(likely + i) % node.count]
        if child.name_size == size and memcmp(child.name, name, size) == 0:
            return child
    return NULL


cdef int read_struct(Context *c, Node *node) noexcept nogil:
    cdef const uint8_t *name
    cdef size_t size = 0
    cdef int trouble, i, likely = 0
    cdef Node *child
    cdef int64_t row = node.column.rows
    if c.p[0] != c"{":
        return not_this(c, NO_OBJECT)
    c.p += 1
    if not is_closed(c, c"}"):
        while True:
            trouble = key(c, &name, &size)
            if trouble != FINE:
                return trouble
            child = found_child(node, name, size, likely)
            if child == NULL:
                trouble = passed_over(c, 0)
            else:
                likely = <int> (child - node.children) + 1
                if child.column.rows > row:
                    cut(child.column, row)
                trouble = read_value(c, child)
            if trouble != FINE:
                return trouble
            if is_closed(c, c"}"):
                break
            if c.p >= c.end or c.p[0] != c",":
                return NOT_JSON
            c.p += 1
    for i in range(node.count):
        if node.children[i].column.rows == row:
            trouble = put_null(node.children[i].column)
            if trouble != FINE:
                return trouble
    return mark(node.column, 1)


cdef int not_this(Context *c, int trouble) noexcept nogil:
    # Of a value of another kind: whether it is JSON at all says more.
    cdef int other = passed_over(c, 0)
    return trouble if other == FINE else other


cdef inline int counted(Context *c, Node *node) noexcept nogil:
    c.cells += node.column.cells
    return FINE if c.cells <= MOST_CELLS else TOO_MANY_CELLS


cdef int read_list(Context *c, Node *node) noexcept nogil:
    cdef int trouble
    if c.p[0] != c"[":
        return not_this(c, NO_ARRAY)
    c.p += 1
    if is_closed(c, c"]"):
        return end_list(node.column)
    while True:
        trouble = counted(c, node)
        if trouble == FINE:
            trouble = read_value(c, &node.children[0])
        if trouble != FINE:
            return trouble
        if is_closed(c, c"]"):
            return end_list(node.column)
        if c.p >= c.end or c.p[0] != c",":
            return NOT_JSON
        c.p += 1


cdef int read_map(Context *c, Node *node) noexcept nogil:
    cdef const uint8_t *name
    cdef size_t size = 0
    cdef int trouble
    cdef Column *entries = &node.column.children[0]
    if c.p[0] != c"{":
        return not_this(c, NO_OBJECT)
    c.p += 1
    if is_closed(c, c"}"):
        return end_list(node.column)
    while True:
        trouble = counted(c, node)
        if trouble == FINE:
            trouble = key(c, &name, &size)
        if trouble == FINE:
            trouble = put_text(&entries.children[0], name, size)
        if trouble == FINE:
            trouble = read_value(c, &node.children[0])
        if trouble == FINE:
            trouble = mark(entries, 1)
        if trouble != FINE:
            return trouble
        if is_closed(c, c"}"):
            break
        if c.p >= c.end or c.p[0] != c",":
            return NOT_JSON
        c.p += 1
    trouble = drop_repeated(node.column, (<int32_t *> node.column.offsets.at)[node.column.rows], c.seed)
    return trouble if trouble != FINE else end_list(node.column)


# Writing.


cdef int write_text(Growing *to, const uint8_t *p, size_t size) noexcept nogil:
    cdef const uint8_t *end = p + size
    cdef const uint8_t *start
    cdef char[8] escape
    cdef int length, trouble = push_byte(to, c'"')
    while trouble == FINE:
        start = p
        while p < end and p[0] >= 0x20 and p[0] != c'"' and p[0] != c"\\":
            p += 1
        trouble = push(to, start, p - start)
        if p == end or trouble != FINE:
            break
        if p[0] == c'"' or p[0] == c"\\":
            length = snprintf(escape, 8, "\\%c", p[0])
        elif p[0] == 10:
            length = snprintf(escape, 8, "\\n")
        elif p[0] == 9:
            length = snprintf(escape, 8, "\\t")
        elif p[0] == 13:
            length = snprintf(escape, 8, "\\r")
        elif p[0] == 8:
            length = snprintf(escape, 8, "\\b")
        elif p[0] == 12:
            length = snprintf(escape, 8, "\\f")
        else:
            length = snprintf(escape, 8, "\\u%04x", p[0])
        trouble = push(to, escape, length)
        p += 1
    return trouble if trouble != FINE else push_byte(to, c'"')


cdef int write_whole(Growing *to, int64_t value) noexcept nogil:
    cdef char[24] digits
    cdef int at = 24
    cdef uint64_t left = 0 - <uint64_t> value if value < 0 else <uint64_t> value
    while True:
        at -= 1
        digits[at] = c"0" + <char> (left % 10)
        left //= 10
        if left == 0:
            break
    if value < 0:
        at -= 1
        digits[at] = c"-"
    return push(to, &digits[at], 24 - at)


cdef int write_short(Growing *to, double value, int *is_written) noexcept nogil:
    # A number with a few digits behind the point. Of numbers with at most 15 digits no two are the same in eight bytes,
    # so where one of them is this value it is the shortest text of it.
    cdef int places
    cdef double size = fabs(value)
    cdef double scaled_up
    is_written[0] = 0
    if size < 1e-3 or size > 1e14:
        return FINE
    for places in range(5):
        scaled_up = size * TENS[places]
        if scaled_up > 1e15:
            return FINE
        if <double> <int64_t> (scaled_up + 0.5) / TENS[places] == size:
            is_written[0] = 1
            return write_places(to, <int64_t> (scaled_up + 0.5), places, value < 0)
    return FINE


cdef int write_places(Growing *to, int64_t digits, int places, bint is_negative) noexcept nogil:
    cdef char[24] made
    cdef int at = 24, left = places
    if places == 0:
        at -= 1
        made[at] = c"0"
    while left > 0:
        at -= 1
        made[at] = c"0" + <char> (digits % 10)
        digits //= 10
        left -= 1
    at -= 1
    made[at] = c"."
    while True:
        at -= 1
        made[at] = c"0" + <char> (digits % 10)
        digits //= 10
        if digits == 0:
            break
    if is_negative:
        at -= 1
        made[at] = c"-"
    return push(to, &made[at], 24 - at)


cdef int write_floating(Growing *to, double value, bint is_narrow) noexcept nogil:
    cdef char *made
    cdef int trouble, digits = 0
    if isnan(value):
        return push(to, b'"NaN"', 5)
    if isinf(value):
        return push(to, b'"Infinity"', 10) if value > 0 else push(to, b'"-Infinity"', 11)
    if not is_narrow:
        trouble = write_short(to, value, &digits)
        if trouble != FINE or digits:
            return trouble
    with gil:
        if is_narrow:  # the fewest digits that say this number among those of four bytes
            for digits in range(6, 10):
                made = PyOS_double_to_string(value, c"g", digits, 2, NULL)
                if <float> float(made) == <float> value:
                    break
                if digits < 9:
                    PyMem_Free(made)
        else:
            made = PyOS_double_to_string(value, c"r", 0, 2, NULL)
        trouble = push(to, made, strlen(made))
        PyMem_Free(made)
    return trouble


cdef int write_decimal(Growing *to, uint64_t low, uint64_t high, int scale) noexcept nogil:
    cdef char[48] digits
    cdef int at = 48, count = 0, trouble
    cdef uint64_t rest, part
    if <int64_t> high < 0:
        low = ~low + 1
        high = ~high + (low == 0)
        trouble = push_byte(to, c"-")
        if trouble != FINE:
            return trouble
    while high or low or count <= scale:
        rest = high % 10
        high //= 10
        part = rest << 32 | low >> 32
        rest = part % 10
        part //= 10
        low = rest << 32 | low & <uint64_t> 0xFFFFFFFF
        rest = low % 10
        low = part << 32 | low // 10
        if count == scale and scale:
            at -= 1
            digits[at] = c"."
        at -= 1
        digits[at] = c"0" + <char> rest
        count += 1
    return push(to, &digits[at], 48 - at)


cdef int write_date(Growing *to, int64_t days) noexcept nogil:
    cdef int64_t shifted = days + 719468
    cdef int64_t era = shifted // 146097
    cdef int64_t of_era = shifted - era * 146097
    cdef int64_t year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    cdef int64_t of_year = of_era - (365 * year + year // 4 - year // 100)
    cdef int64_t month = (5 * of_year + 2) // 153
    cdef char[10] made
    year += era * 400 + (month >= 10)
    digits_at(made, 4, year, c"-")
    digits_at(made + 5, 2, month + 3 if month < 10 else month - 9, c"-")
    digits_at(made + 8, 2, of_year - (153 * month + 2) // 5 + 1, 0)
    return push(to, made, 10)


cdef inline void digits_at(char *to, int count, int64_t value, char behind) noexcept nogil:
    cdef int i
    for i in range(count):
        to[count - 1 - i] = c"0" + <char> (value % 10)
        value //= 10
    if behind:
        to[count] = behind


cdef int write_moment(Growing *to, int64_t micros, bint is_local) noexcept nogil:
    cdef int64_t days = micros // DAY, rest = micros % DAY
    cdef char[16] made
    cdef int size = 9, trouble
    if rest < 0:
        rest += DAY
        days -= 1
    if not FIRST_DAY <= days <= LAST_DAY:
        return OUT_OF_RANGE
    trouble = write_date(to, days)
    if trouble != FINE:
        return trouble
    made[0] = c"T"
    digits_at(made + 1, 2, rest // (3600 * MICROS), c":")
    digits_at(made + 4, 2, rest // (60 * MICROS) % 60, c":")
    digits_at(made + 7, 2, rest // MICROS % 60, c".")
    rest %= MICROS
    if rest % 1000:
        digits_at(made + 10, 6, rest, 0)
        size = 16
    elif rest:
        digits_at(made + 10, 3, rest // 1000, 0)
        size = 13
    trouble = push(to, made, size)
    return trouble if trouble != FINE or is_local else push_byte(to, c"Z")


cdef int write_base64(Growing *to, const uint8_t *p, size_t size) noexcept nogil:
    cdef uint32_t bits
    cdef size_t at = 0, i
    cdef int trouble = grow(to, size // 3 * 4 + 6)
    if trouble != FINE:
        return trouble
    push_byte(to, c'"')
    while at < size:
        bits = <uint32_t> p[at] << 16
        bits |= <uint32_t> p[at + 1] << 8 if at + 1 < size else 0
        bits |= p[at + 2] if at + 2 < size else 0
        for i in range(4):
            push_byte(to, BASE64[bits >> (18 - 6 * i) & 63] if at + i <= size else c"=")
        at += 3
    return push_byte(to, c'"')


cdef int write_value(Context *c, Growing *to, Node *node, const View *view, int64_t row) noexcept nogil:
    # A value that is not null.
    cdef const uint8_t *found
    cdef size_t size = 0
    cdef int trouble
    if node.form == STRUCT:
        return write_struct(c, to, node, view, row)
    if node.form == LIST or node.form == MAP:
        return write_many(c, to, node, view, row)
    if node.form == STRING or node.form == BINARY:
        found = text_at(view, row, &size)
        return write_text(to, found, size) if node.form == STRING else write_base64(to, found, size)
    if node.form == BOOL:
        return push(to, b"true", 4) if bit_at(view, row) else push(to, b"false", 5)
    trouble = write_number(to, node, view, row)
    if trouble > TOO_LARGE:
        c.field = node.index
    return trouble


cdef int write_number(Growing *to, Node *node, const View *view, int64_t row) noexcept nogil:
    # A number, or a time, which is a text.
    cdef uint64_t bits
    cdef uint64_t[2] both
    cdef uint32_t four
    cdef float narrow
    cdef double value
    cdef int trouble
    if node.form == DECIMAL:
        memcpy(both, view.data + (row + view.offset) * 16, 16)
        return write_decimal(to, both[0], both[1], node.scale)
    bits = bits_at(view, row, node.width)
    if node.form == INT:
        return write_whole(to, signed(bits, node.width))
    if node.form == FLOAT:
        four = <uint32_t> bits
        memcpy(&narrow, &four, 4)
        return write_floating(to, narrow, True)
    if node.form == DOUBLE:
        memcpy(&value, &bits, 8)
        return write_floating(to, value, False)
    trouble = push_byte(to, c'"')
    if trouble != FINE:
        return trouble
    if node.form == DATE:
        if not FIRST_DAY <= <int32_t> bits <= LAST_DAY:
            return OUT_OF_RANGE
        trouble = write_date(to, <int32_t> bits)
    else:
        trouble = write_moment(to, <int64_t> bits, node.form == LOCAL_TIME)
    return trouble if trouble != FINE else push_byte(to, c'"')


cdef inline int64_t signed(uint64_t bits, int width) noexcept nogil:
    if width == 1:
        return <int8_t> bits
    if width == 2:
        return <int16_t> bits
    return <int32_t> bits if width == 4 else <int64_t> bits


cdef int write_struct(Context *c, Growing *to, Node *node, const View *view, int64_t row) noexcept nogil:
    # Fields that are null are left out, as Spark's to_json does, but those that a schema wants.
    cdef int i, trouble = push_byte(to, c"{")
    cdef bint is_first = True, is_null
    cdef Node *child
    for i in range(node.count):
        child = &node.children[i]
        is_null = not is_valid(&view.children[i], row)
        if is_null and not child.keeps_null:
            continue
        if trouble == FINE and not is_first:
            trouble = push_byte(to, c",")
        is_first = False
        if trouble == FINE:
            trouble = push(to, child.key, child.key_size)
        if trouble == FINE and is_null:
            trouble = push(to, b"null", 4)
        elif trouble == FINE:
            trouble = write_value(c, to, child, &view.children[i], row)
        if trouble != FINE:
            return trouble
    return trouble if trouble != FINE else push_byte(to, c"}")


cdef int write_many(Context *c, Growing *to, Node *node, const View *view, int64_t row) noexcept nogil:
    cdef int64_t first = view.offsets[row + view.offset], last = view.offsets[row + view.offset + 1], at
    cdef const View *values = &view.children[0] if node.form == LIST else &view.children[0].children[1]
    cdef int trouble = push_byte(to, c"[" if node.form == LIST else c"{")
    for at in range(first, last):
        if trouble == FINE and at > first:
            trouble = push_byte(to, c",")
        if trouble == FINE and node.form == MAP:
            trouble = write_key(c, to, node, &view.children[0].children[0], at)
        if trouble == FINE and is_valid(values, at):
            trouble = write_value(c, to, &node.children[0], values, at)
        elif trouble == FINE:
            trouble = push(to, b"null", 4)
        if trouble != FINE:
            return trouble
    return trouble if trouble != FINE else push_byte(to, c"]" if node.form == LIST else c"}")


cdef int write_key(Context *c, Growing *to, Node *node, const View *keys, int64_t at) noexcept nogil:
    cdef const uint8_t *found
    cdef size_t size = 0
    cdef int trouble
    if not is_valid(keys, at):
        c.field = node.index
        return NULL_KEY
    found = text_at(keys, at, &size)
    trouble = write_text(to, found, size)
    return trouble if trouble != FINE else push_byte(to, c":")


# Compiled types.


cdef void clear_node(Node *node) noexcept nogil:
    cdef int i
    for i in range(node.count):
        clear_node(&node.children[i])
    free(node.children)


cdef void attach(Node *node, Column *column) noexcept nogil:
    # Tell each node where its values go.
    cdef int i
    node.column = column
    if node.form == MAP:
        attach(&node.children[0], &column.children[0].children[1])
        return
    for i in range(node.count):
        attach(&node.children[i], &column.children[i])


cdef class JsonProgram:
    """A type of a column, compiled. Calls take turns: where values go is noted in the program itself.

    Args:
        shape: a `JsonShape`.
        layout: of the column.
        is_loose: a column of text takes other values too, as their JSON, and one of times a date, as its midnight.
        seed: any number, which those who write records cannot know.
    """

    cdef Node root
    cdef list names
    cdef list kept
    cdef object layout
    cdef bint is_loose
    cdef uint64_t seed
    cdef object turn

    def __cinit__(self, shape, layout, bint is_loose, uint64_t seed):
        self.names, self.kept, self.layout, self.is_loose, self.seed = [], [], layout, is_loose, seed
        self.turn = Lock()
        self._node(&self.root, shape, "")

    def __dealloc__(self):
        clear_node(&self.root)

    cdef int _node(self, Node *node, shape, str path) except -1:
        cdef int i
        node.form, node.width = _FORMS.index(shape.form), shape.width
        node.precision, node.scale, node.keeps_null = shape.precision, shape.scale, shape.keeps_null
        node.index = len(self.names)
        self.names.append(path)
        name, written = shape.name.encode(), shape.key.encode()
        self.kept += [name, written]
        node.name, node.name_size = PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name)
        node.key, node.key_size = PyBytes_AS_STRING(written), PyBytes_GET_SIZE(written)
        if shape.children:
            node.children = <Node *> calloc(len(shape.children), sizeof(Node))
            if node.children == NULL:
                raise MemoryError
            node.count = len(shape.children)
            for i, child in enumerate(shape.children):
                self._node(&node.children[i], child, ".".join(filter(None, (path, child.name))))
        return 0

    def decode(self, seen, int64_t rows):
        """Read texts.

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
        cdef Context context
        cdef int fault
        memset(&bad, 0, sizeof(bad))
        memset(&view, 0, sizeof(view))
        memset(&context, 0, sizeof(context))
        context.seed, context.is_loose = self.seed, self.is_loose
        look_at(&view, seen)
        lay_out(&columns.root, self.layout)
        with self.turn:
            attach(&self.root, &columns.root)
            with nogil:
                fault = decode_rows(&context, &self.root, &view, rows, &bad)
        try:
            raise_fault(fault)
            return grown_of(&columns.root), columns, self._reasons(&bad)
        finally:
            free(bad.at)
            free(context.scratch.at)
            clear_view(&view)

    cdef dict _reasons(self, Growing *bad):
        cdef Bad *each = <Bad *> bad.at
        return {each[i].row: self._reason(each[i].trouble, each[i].field)
                for i in range(<Py_ssize_t> (bad.size // sizeof(Bad)))}

    cdef str _reason(self, int trouble, int field):
        path = self.names[field] if field >= 0 else ""
        return f"field {path}: {_REASONS[trouble]}" if path else _REASONS[trouble]

    def encode(self, seen, int64_t rows):
        """Write texts.

        Args:
            seen: a view of a column.
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
        with nogil:
            trouble = encode_rows(&context, &self.root, &view, rows, &columns.root)
        clear_view(&view)
        raise_fault(trouble if trouble <= TOO_LARGE else FINE)
        refused = None if trouble == FINE else (columns.root.rows, self._reason(trouble, context.field))
        return grown_of(&columns.root), columns, refused


cdef int decode_rows(Context *c, Node *root, const View *view, int64_t rows, Growing *bad) noexcept nogil:
    cdef int64_t row
    cdef size_t size
    cdef Bad one
    cdef int trouble
    for row in range(rows):
        if not is_valid(view, row):
            trouble = put_null(root.column)
        else:
            c.cells, c.field = 0, -1
            c.p = text_at(view, row, &size)
            c.end = c.p + size
            trouble = read_value(c, root)
            if trouble == FINE:
                skip_space(c)
                trouble = FINE if c.p == c.end else MORE
            if trouble > TOO_LARGE:
                one.row, one.trouble, one.field = row, trouble, c.field
                trouble = push(bad, &one, sizeof(Bad))
                cut(root.column, row)
                if trouble == FINE:
                    trouble = put_null(root.column)
        if trouble != FINE:
            return trouble
    return FINE


cdef int encode_rows(Context *c, Node *root, const View *view, int64_t rows, Column *column) noexcept nogil:
    cdef int64_t row
    cdef int trouble
    for row in range(rows):
        if not is_valid(view, row):
            trouble = put_null(column)
        else:
            trouble = write_value(c, &column.data, root, view, row)
            if trouble == FINE:
                trouble = end_text(column)
        if trouble != FINE:
            return trouble
    return FINE
