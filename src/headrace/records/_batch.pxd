# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# What `headrace.buffers._buffer` needs of this module: the fields of its classes, which are read in place, and a record
# as it lies in its batch, read and written by functions that the C compiler puts where they are called.

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef enum:
    HEADER = 61  # bytes of a batch's header
    SLACK = 64  # of the numbers of one record
    KEPT_BLOCKS = 32

    IS_NULL = -1
    IS_OBJECT = -2  # the field was given as an object

    FINE = 0
    BAD_NUMBER = 1
    BAD_LENGTH = 2
    BAD_PLACE = 3
    BAD_FIELD = 4
    BAD_COUNT = 5
    BAD_NAME = 6
    BAD_END = 7
    BAD_REST = 8

    NO_HASH = 0  # of a key: `hash_key`
    CRC32 = 1
    MURMUR2 = 2
    FNV1A = 3


cdef struct Record:
    # One record as it lies in its batch. Sizes are -1 for None.
    int64_t timestamp
    int64_t delta
    const uint8_t *key
    int64_t key_size
    const uint8_t *value
    int64_t value_size
    const uint8_t *headers
    int64_t header_count
    const uint8_t *end


cdef struct Head:
    # A batch's header.
    int64_t base_offset, last_offset, base_timestamp, max_timestamp, producer_id
    int32_t leader_epoch, epoch, base_sequence, count, attributes, magic
    Py_ssize_t size


cdef struct Fields:
    # What a record is made of. Sizes are -1 for None; `headers` are encoded already, without their count.
    const uint8_t *key
    int64_t key_size
    const uint8_t *value
    int64_t value_size
    const uint8_t *headers
    int64_t headers_size
    int64_t header_count


@cython.final
cdef class Pinned:
    cdef Py_buffer view
    cdef const uint8_t *start
    cdef Py_ssize_t size


@cython.final
@cython.no_gc
cdef class Origin:
    # What the messages of one batch share.
    cdef object topic
    cdef object pinned
    cdef int32_t partition
    cdef int32_t leader_epoch
    cdef int stamp_type


@cython.no_gc
cdef class Message:
    cdef Origin _origin
    cdef object _topic, _key, _value, _headers, _error, _latency
    cdef const uint8_t *_key_at
    cdef const uint8_t *_value_at
    cdef const uint8_t *_headers_at
    cdef Py_ssize_t _key_size, _value_size, _headers_size
    cdef int64_t _offset, _timestamp
    cdef int32_t _partition, _header_count
    cdef int _stamp_type, _leader_epoch, _delivery_count


@cython.final
cdef class Block:
    cdef uint8_t *start
    cdef Py_ssize_t used, capacity

    cdef int reserve(self, Py_ssize_t more, bint zeroed=*, Py_ssize_t likely=*) except -1
    cdef int trim(self) except -1


@cython.final
cdef class MemoryPool:
    cdef uint8_t *_kept[KEPT_BLOCKS]
    cdef int _count

    cdef uint8_t *take(self) except NULL
    cdef int give(self, uint8_t *block) except -1


@cython.final
@cython.no_gc  # the collector would take the pool away before the memory can go back to it
cdef class BatchBytes:
    cdef uint8_t *start
    cdef Py_ssize_t size  # as others see it
    cdef Py_ssize_t capacity, views
    cdef MemoryPool pool  # whose block it is; None for any other memory

    cdef int free(self) except -1
    cdef int reserve(self, Py_ssize_t needed, MemoryPool pool) except -1


cdef class Batch


cdef class BatchBuilder:
    cdef BatchBytes _data
    cdef BatchBytes _packed  # once it is compressed; the records are unpacked again if they are needed
    cdef int _codec
    cdef MemoryPool _pool
    cdef Py_ssize_t _used, _max_bytes
    cdef int64_t _base_timestamp, _max_timestamp
    cdef Py_ssize_t _max_count
    cdef readonly Py_ssize_t count

    cdef int add(self, int64_t timestamp_ms, const Fields *fields) except -1
    cdef int seal_into(self, Batch batch) except -1
    cdef void add_value(self, int64_t delta, const uint8_t *value, int64_t value_size) noexcept
    cdef BatchBytes records(self)


@cython.final
cdef class Batch:
    cdef BatchBytes _data
    cdef int _codec
    cdef bint _summed
    cdef readonly Py_ssize_t count
    cdef readonly int64_t max_timestamp

    cdef uint8_t *start(self) except NULL
    cdef int write_header(self, int codec, Py_ssize_t count, int64_t base_timestamp, int64_t max_timestamp) except -1
    cdef int sum(self) except -1
    cdef int put_producer(self, int64_t producer_id, int epoch, int base_sequence, bint transactional) except -1


cdef Message new_message(Origin origin, int64_t offset, int64_t timestamp, const Record *record)
cdef int add_headers(Block block, list pairs, bint encoded, int64_t *size) except -1
cdef object point_at_text(value, str role, const uint8_t **data, int64_t *size)
cdef uint32_t hash_key(int kind, const uint8_t *key, size_t size) noexcept nogil
cdef int read_head(const uint8_t *p, Py_ssize_t left, Head *head, object topic, object partition) except -1


cdef inline object point_at(value, str role, const uint8_t **data, int64_t *size):
    # Where the bytes of a key or value are, as long as what is returned lives.
    cdef Py_ssize_t length
    if type(value) is bytes:
        data[0] = <const uint8_t *> PyBytes_AS_STRING(value)
        size[0] = PyBytes_GET_SIZE(value)
        return value
    if value is None:
        size[0] = IS_NULL
        return None
    if isinstance(value, str):
        data[0] = <const uint8_t *> PyUnicode_AsUTF8AndSize(value, &length)
        size[0] = length
        return value
    return point_at_text(value, role, data, size)


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)


cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value)
    cdef int size = 1
    while rest > 0x7F:
        rest >>= 7
        size += 1
    return size


cdef inline uint64_t get_number(const uint8_t *p, int size) noexcept nogil:
    # A number of so many bytes, big-endian as all of the wire's are.
    cdef uint64_t number = 0
    cdef int at
    for at in range(size):
        number = number << 8 | p[at]
    return number


cdef inline void put_number(uint8_t *p, int size, uint64_t number) noexcept nogil:
    cdef int at
    for at in range(size):
        p[size - 1 - at] = <uint8_t> number
        number >>= 8


cdef inline uint8_t *write_uvarint(uint8_t *p, uint64_t rest) noexcept nogil:
    while rest > 0x7F:
        p[0] = <uint8_t> (rest | 0x80)
        p += 1
        rest >>= 7
    p[0] = <uint8_t> rest
    return p + 1


cdef inline uint8_t *write_varint(uint8_t *p, int64_t value) noexcept nogil:
    return write_uvarint(p, zigzag(value))


cdef inline uint8_t *write_bytes(uint8_t *p, const uint8_t *data, int64_t size) noexcept nogil:
    p = write_varint(p, size)
    if size > 0:
        memcpy(p, data, size)
        p += size
    return p


cdef inline const uint8_t *read_varint(const uint8_t *p, const uint8_t *end, int64_t *value) noexcept nogil:
    # The place behind the number; NULL when it passes the end or has more than 64 bits.
    cdef uint64_t rest, byte
    cdef int shift
    if p >= end:
        return NULL
    rest = p[0]
    p += 1
    if rest >= 0x80:
        rest &= 0x7F
        shift = 7
        while True:
            if p >= end or shift > 63:
                return NULL
            byte = p[0]
            p += 1
            if shift == 63 and byte > 1:
                return NULL
            rest |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
    value[0] = <int64_t> (rest >> 1) ^ -(<int64_t> (rest & 1))
    return p


cdef inline const uint8_t *read_field(const uint8_t *p, const uint8_t *end, const uint8_t **data, int64_t *size,
                                      int *code) noexcept nogil:
    # Length-prefixed bytes; NULL, with the reason in `code`, when they pass the end.
    p = read_varint(p, end, size)
    if p == NULL:
        code[0] = BAD_NUMBER
        return NULL
    data[0] = p
    if size[0] == -1:
        return p
    if size[0] < 0 or size[0] > end - p:
        code[0] = BAD_FIELD
        return NULL
    return p + size[0]


cdef inline int read_record(const uint8_t **at, const uint8_t *end, int64_t last_delta, int64_t base_timestamp,
                            Record *record) noexcept nogil:
    # Read and check one record, and go behind it.
    cdef const uint8_t *data = NULL
    cdef int64_t size = 0, index
    cdef int code = FINE
    cdef const uint8_t *p = read_varint(at[0], end, &size)
    if p == NULL:
        return BAD_NUMBER
    if size <= 0 or size > end - p:
        return BAD_LENGTH
    end = p + size
    p = read_varint(p + 1, end, &record.timestamp)
    if p != NULL:
        p = read_varint(p, end, &record.delta)
    if p == NULL:
        return BAD_NUMBER
    p = read_field(p, end, &record.key, &record.key_size, &code)
    if p == NULL:
        return code
    p = read_field(p, end, &record.value, &record.value_size, &code)
    if p == NULL:
        return code
    p = read_varint(p, end, &record.header_count)
    if p == NULL:
        return BAD_NUMBER
    if record.header_count < 0 or record.header_count > end - p:
        return BAD_COUNT
    record.headers = p
    for index in range(record.header_count):
        p = read_field(p, end, &data, &size, &code)
        if p == NULL:
            return code
        if size < 0:
            # The plain twin reads the value before it looks at the name.
            p = read_field(p, end, &data, &size, &code)
            return BAD_NAME if p != NULL else code
        p = read_field(p, end, &data, &size, &code)
        if p == NULL:
            return code
    if p != end:
        return BAD_END
    record.timestamp = <int64_t> (<uint64_t> record.timestamp + <uint64_t> base_timestamp)
    if record.delta < 0 or record.delta > last_delta:
        return BAD_PLACE
    record.end = end
    at[0] = end
    return FINE
