# cython: language_level=3
"""Arrow buffers that grow while a column is decoded, put in place by the native modules that include them.

`Growing` is memory that doubles; a column is one for its validity bits (none while no value is null), one for its
offsets and one for its values. All functions run without the GIL; they return 0, or -1 when there is no memory.
`handed_over` gives the memory to Arrow: (address, size in bytes, owner), for `pyarrow.foreign_buffer`.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset


cdef struct Growing:
    uint8_t *data
    int64_t used    # bytes that are filled
    int64_t room    # bytes that are there


cdef struct Bits:
    Growing bytes
    int64_t count   # bits that are filled


cdef inline int more_room(Growing *to, int64_t size) noexcept nogil:
    cdef int64_t room = to.room * 2 if to.room else 256
    while room < to.used + size:
        room *= 2
    cdef uint8_t *data = <uint8_t *> realloc(to.data, room)
    if data == NULL:
        return -1
    to.data, to.room = data, room
    return 0


cdef inline int reserve(Growing *to, int64_t size) noexcept nogil:
    return 0 if to.used + size <= to.room else more_room(to, size)


cdef inline int put_bytes(Growing *to, const void *data, int64_t size) noexcept nogil:
    if reserve(to, size) < 0:
        return -1
    if size:
        memcpy(to.data + to.used, data, size)
        to.used += size
    return 0


cdef inline int put_zeros(Growing *to, int64_t size) noexcept nogil:
    if reserve(to, size) < 0:
        return -1
    if size:
        memset(to.data + to.used, 0, size)
        to.used += size
    return 0


cdef inline int put_4(Growing *to, int32_t value) noexcept nogil:
    if reserve(to, 4) < 0:
        return -1
    (<int32_t *> (to.data + to.used))[0] = value
    to.used += 4
    return 0


cdef inline int put_8(Growing *to, int64_t value) noexcept nogil:
    if reserve(to, 8) < 0:
        return -1
    (<int64_t *> (to.data + to.used))[0] = value
    to.used += 8
    return 0


cdef inline int put_float(Growing *to, float value) noexcept nogil:
    return put_bytes(to, &value, 4)


cdef inline int put_double(Growing *to, double value) noexcept nogil:
    return put_bytes(to, &value, 8)


cdef inline int put_bit(Bits *to, bint value) noexcept nogil:
    cdef int64_t at = to.count >> 3
    if (to.count & 7) == 0:
        if put_zeros(&to.bytes, 1) < 0:
            return -1
    if value:
        to.bytes.data[at] |= 1 << (to.count & 7)
    to.count += 1
    return 0


cdef inline int put_ones(Bits *to, int64_t until) noexcept nogil:
    """Fill with ones until `until` bits are there."""
    while to.count < until and to.count & 7:
        put_bit(to, True)
    cdef int64_t whole = (until - to.count) >> 3
    if whole > 0:
        if reserve(&to.bytes, whole) < 0:
            return -1
        memset(to.bytes.data + to.bytes.used, 0xFF, whole)
        to.bytes.used += whole
        to.count += whole << 3
    while to.count < until:
        if put_bit(to, True) < 0:
            return -1
    return 0


cdef inline int put_null(Bits *to, int64_t at) noexcept nogil:
    """Mark value `at` as null; those before it that were not marked are values."""
    if put_ones(to, at) < 0:
        return -1
    return put_bit(to, False)


cdef inline void cut_bits(Bits *to, int64_t count) noexcept nogil:
    """Forget the bits from `count` on."""
    if to.count <= count:
        return
    to.count = count
    to.bytes.used = (count + 7) >> 3
    if count & 7:
        to.bytes.data[count >> 3] &= (1 << (count & 7)) - 1


cdef inline void let_go(Growing *from_) noexcept nogil:
    free(from_.data)
    from_.data = NULL
    from_.used = from_.room = 0


cdef inline void _freed(object owner) noexcept:
    free(PyCapsule_GetPointer(owner, NULL))


cdef inline object handed_over(Growing *from_):
    """The memory as (address, size, owner); `from_` is empty then."""
    if from_.data == NULL:
        from_.data = <uint8_t *> malloc(1)
        if from_.data == NULL:
            raise MemoryError
    cdef object owner = PyCapsule_New(from_.data, NULL, _freed)
    found = (<uintptr_t> from_.data, from_.used, owner)
    from_.data = NULL
    from_.used = from_.room = 0
    return found
