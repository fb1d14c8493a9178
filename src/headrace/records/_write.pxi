# Records and batches into bytes. A batch grows in one piece of memory with room for the header in front, which becomes
# the batch on the wire without a copy unless it is compressed.

cdef enum:
    FIRST_BYTES = 1024
    SMALL_BYTES = 16384  # what outgrows this goes into a block, of which only the pages that are written to count
    BLOCK_BYTES = 1048576
    KEPT_BLOCKS = 32
    SLACK = 64  # of the numbers of one record
    LIKELY_NUMBERS = 7  # bytes of them


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)


cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value)
    cdef int size = 1
    while rest > 0x7F:
        rest >>= 7
        size += 1
    return size


cdef inline uint8_t *write_varint(uint8_t *p, int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value)
    while rest > 0x7F:
        p[0] = <uint8_t> (rest | 0x80)
        p += 1
        rest >>= 7
    p[0] = <uint8_t> rest
    return p + 1


cdef inline uint8_t *write_bytes(uint8_t *p, const uint8_t *data, int64_t size) noexcept nogil:
    p = write_varint(p, size)
    if size > 0:
        memcpy(p, data, size)
        p += size
    return p


@cython.final
cdef class Block:
    """Growing memory that becomes a read-only buffer. Owned by whoever holds it; freed with it."""

    cdef uint8_t *start
    cdef Py_ssize_t used, capacity

    def __cinit__(self):
        self.reserve(0, True)  # Arrow aborts on a buffer without an address

    def __dealloc__(self):
        free(self.start)

    cdef int reserve(self, Py_ssize_t more, bint zeroed=False) except -1:
        cdef Py_ssize_t capacity = max(self.used + more, 64)
        cdef uint8_t *grown
        if capacity <= self.capacity:
            return 0
        capacity = max(capacity, self.capacity + self.capacity // 2)
        grown = <uint8_t *> realloc(self.start, capacity)
        if grown == NULL:
            raise MemoryError
        if zeroed:
            memset(grown + self.capacity, 0, capacity - self.capacity)
        self.start = grown
        self.capacity = capacity
        return 0

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.used, 1, flags)

    def __len__(self):
        return self.used


cdef struct Fields:
    # What a record is made of. Sizes are -1 for None; `headers` are encoded already, without their count.
    const uint8_t *key
    int64_t key_size
    const uint8_t *value
    int64_t value_size
    const uint8_t *headers
    int64_t headers_size
    int64_t header_count


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
    value = encode_text(value, role)
    data[0] = <const uint8_t *> PyBytes_AS_STRING(value)
    size[0] = PyBytes_GET_SIZE(value)
    return value


cdef int add_headers(Block block, list pairs, bint encoded, int64_t *size) except -1:
    # Headers as they follow their count, and their bytes added to `size`. 0 if a pair is not a tuple of str (bytes if
    # `encoded`) and of bytes, str or None; the size is as before then.
    cdef int64_t total = 0, length = 0
    cdef const uint8_t *data = NULL
    cdef int part
    for pair in pairs:
        if type(pair) is not tuple or PyTuple_GET_SIZE(pair) != 2:
            return 0
        for part in range(2):
            field = <object> PyTuple_GET_ITEM(pair, part)
            if type(field) is bytes:
                if part == 0 and not encoded:
                    return 0
            elif type(field) is not str and (part == 0 or field is not None):
                return 0
            field = point_at(field, "header", &data, &length)
            block.reserve(SLACK + max(length, 0))
            block.used = write_bytes(block.start + block.used, data, length) - block.start
            total += max(length, 0)
    size[0] += total
    return 1


@cython.final
cdef class Pool:
    """Memory of batches that are done, for those to come: the first touch of a page costs more than the records on it.

    Keeps at most `KEPT_BLOCKS` blocks of `BLOCK_BYTES`; what is beyond goes back to the system.
    """

    cdef uint8_t *_kept[KEPT_BLOCKS]
    cdef int _count

    def __dealloc__(self):
        while self._count:
            self._count -= 1
            headrace_unmap(self._kept[self._count], BLOCK_BYTES)

    @cython.critical_section
    cdef uint8_t *take(self) except NULL:
        cdef uint8_t *block
        if self._count:
            self._count -= 1
            return self._kept[self._count]
        block = <uint8_t *> headrace_map(BLOCK_BYTES)
        if block == NULL:
            raise MemoryError
        return block

    @cython.critical_section
    cdef int give(self, uint8_t *block) except -1:
        if self._count < KEPT_BLOCKS:
            self._kept[self._count] = block
            self._count += 1
        else:
            headrace_unmap(block, BLOCK_BYTES)
        return 0


@cython.final
@cython.no_gc  # the collector would take the pool away before the memory can go back to it
cdef class BatchBytes:
    """The bytes of one batch. Their memory goes back where it came from with the last who looks at them."""

    cdef uint8_t *start
    cdef Py_ssize_t size  # as others see it
    cdef Py_ssize_t capacity, views
    cdef Pool pool  # whose block it is; None for any other memory

    def __dealloc__(self):
        self.free()

    cdef int free(self) except -1:
        if self.pool is not None:
            self.pool.give(self.start)
            self.pool = None
        else:
            free(self.start)
        self.start = NULL
        return 0

    cdef int reserve(self, Py_ssize_t needed, Pool pool) except -1:
        # Room for so many bytes, in a block of the pool if there is one and it is worth while.
        cdef Py_ssize_t capacity = max(FIRST_BYTES, 2 * self.capacity, needed)
        cdef uint8_t *grown
        if self.views:
            raise BufferError("the batch is looked at")
        if not SMALL_BYTES < capacity <= BLOCK_BYTES or self.pool is not None:
            pool = None
        if pool is not None:
            grown = pool.take()
            capacity = BLOCK_BYTES
        else:
            grown = <uint8_t *> malloc(capacity)
            if grown == NULL:
                raise MemoryError
        if self.start != NULL:
            memcpy(grown, self.start, self.capacity)
            self.free()
        self.start = grown
        self.size = self.capacity = capacity
        self.pool = pool
        return 0

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.size, 0, flags)
        self.views += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.views -= 1

    def __len__(self):
        return self.size


cdef class BatchBuilder:
    """Collects the records of one batch."""

    cdef BatchBytes _data
    cdef BatchBytes _packed  # once it is compressed; the records are unpacked again if they are needed
    cdef int _codec
    cdef Pool _pool
    cdef Py_ssize_t _used, _max_bytes
    cdef int64_t _base_timestamp, _max_timestamp
    cdef Py_ssize_t _max_count
    cdef readonly Py_ssize_t count

    def __cinit__(self, Py_ssize_t max_bytes, Py_ssize_t max_count):
        self._max_bytes = max_bytes
        self._max_count = max_count
        self._max_timestamp = -1
        self._used = HEADER
        self._data = BatchBytes.__new__(BatchBytes)

    @property
    def size_bytes(self):
        return self._used

    def append(self, int64_t timestamp_ms, key, value, headers=()):
        cdef Fields fields
        cdef Block block = Block()
        cdef int64_t size = 0
        cdef list pairs = list(headers)
        if not add_headers(block, pairs, True, &size):
            raise TypeError("headers must be tuples of bytes")
        fields.headers = block.start
        fields.headers_size = block.used
        fields.header_count = PyList_GET_SIZE(pairs)
        raw_key = point_at(key, "key", &fields.key, &fields.key_size)
        raw_value = point_at(value, "value", &fields.value, &fields.value_size)
        return self.add(timestamp_ms, &fields) == 1

    cdef inline int add(self, int64_t timestamp_ms, const Fields *fields) except -1:
        # 1 if it was added, 0 if it does not fit.
        cdef int64_t delta = <int64_t> (<uint64_t> timestamp_ms - <uint64_t> self._base_timestamp) if self.count else 0
        cdef int64_t size = fields.headers_size
        if fields.key_size > 0:
            size += fields.key_size
        if fields.value_size > 0:
            size += fields.value_size
        if self.count and (self.count >= self._max_count or self._used + size > self._max_bytes):
            return 0
        if self._used + size + SLACK > self._data.capacity:
            self._data.reserve(self._used + size + SLACK, self._pool)
        cdef uint8_t *start = self._data.start + self._used
        cdef uint8_t *body = start + varint_size(size + LIKELY_NUMBERS)  # behind the record's length
        body[0] = 0
        cdef uint8_t *p = write_varint(body + 1, delta)
        p = write_varint(p, self.count)
        p = write_bytes(p, fields.key, fields.key_size)
        p = write_bytes(p, fields.value, fields.value_size)
        p = write_varint(p, fields.header_count)
        if fields.headers_size:
            memcpy(p, fields.headers, fields.headers_size)
            p += fields.headers_size
        size = p - body
        cdef uint8_t *right = start + varint_size(size)
        if right != body:
            memmove(right, body, size)
        if self.count == 0:
            self._base_timestamp = timestamp_ms
        elif right + size - self._data.start > self._max_bytes:
            return 0
        if timestamp_ms > self._max_timestamp:
            self._max_timestamp = timestamp_ms
        write_varint(start, size)
        self._used = right + size - self._data.start
        self.count += 1
        return 1

    cdef inline void add_value(self, int64_t delta, const uint8_t *value, int64_t value_size) noexcept:
        # As `add` for a record of a value alone that is not the first, and surely fits.
        cdef int64_t size = 3 + varint_size(delta) + varint_size(self.count) + varint_size(value_size) + max(value_size, 0)
        cdef uint8_t *p = write_varint(self._data.start + self._used, size)
        p[0] = 0
        p = write_varint(p + 1, delta)
        p = write_varint(p, self.count)
        p[0] = 1  # no key
        p = write_bytes(p + 1, value, value_size)
        p[0] = 0  # no headers
        self._used = p + 1 - self._data.start
        self.count += 1

    def seal(self, int codec=0, int level=-1):
        cdef Batch batch = Batch.__new__(Batch)
        self._max_count = 0
        if self._data.capacity == 0:
            self._data.reserve(HEADER, None)
        if codec:
            packed = compress(codec, memoryview(self._data)[HEADER:self._used], level)
            batch._data = BatchBytes.__new__(BatchBytes)
            batch._data.reserve(HEADER + PyBytes_GET_SIZE(packed), None)
            memcpy(batch._data.start + HEADER, PyBytes_AS_STRING(packed), PyBytes_GET_SIZE(packed))
            batch._data.size = HEADER + PyBytes_GET_SIZE(packed)
            self._codec = codec
            self._packed = batch._data
            if self.count:
                self._data = None
        else:
            self._data.size = self._used
            batch._data = self._data
        batch.write_header(codec, self.count, self._base_timestamp, self._max_timestamp)
        return batch


    cdef BatchBytes records(self):
        # The records behind room for a header, as they were before compression.
        cdef BatchBytes data = self._data
        if data is None:
            plain = decompress(self._codec, memoryview(self._packed)[HEADER:], self._used - HEADER)
            if type(plain) is not bytes or len(plain) != self._used - HEADER:
                raise SystemError("a batch in memory was overwritten")
            data = BatchBytes.__new__(BatchBytes)
            data.reserve(HEADER + PyBytes_GET_SIZE(plain), self._pool)
            memcpy(data.start + HEADER, PyBytes_AS_STRING(plain), PyBytes_GET_SIZE(plain))
            self._data = data
        return data


@cython.final
cdef class Batch:
    """A sealed batch: its bytes, and the few fields that a producer writes when it sends it."""

    cdef BatchBytes _data
    cdef int _codec
    cdef bint _summed
    cdef readonly Py_ssize_t count
    cdef readonly int64_t max_timestamp

    cdef uint8_t *start(self) except NULL:
        if self._data is None:
            raise ValueError("a batch is made by seal()")
        return self._data.start

    cdef int write_header(self, int codec, Py_ssize_t count, int64_t base_timestamp, int64_t max_timestamp) except -1:
        cdef uint8_t *p = self._data.start
        self._codec = codec
        self.count = count
        self.max_timestamp = max_timestamp
        headrace_put(p, 8, 0)
        headrace_put(p + 8, 4, self._data.size - 12)
        headrace_put(p + 12, 4, <uint64_t> -1)
        headrace_put(p + 16, 1, 2)
        headrace_put(p + 17, 4, 0)
        headrace_put(p + 21, 2, codec)
        headrace_put(p + 23, 4, count - 1)
        headrace_put(p + 27, 8, base_timestamp)
        headrace_put(p + 35, 8, max_timestamp)
        memset(p + 43, 0xFF, 14)  # no producer: -1, -1, -1
        headrace_put(p + 57, 4, count)
        return 0

    @property
    def size_bytes(self):
        return len(self._data)

    @property
    def data(self):
        cdef uint8_t *p = self.start()
        if not self._summed:
            headrace_put(p + 17, 4, sum_bytes(p + SUMMED_FROM, self._data.size - SUMMED_FROM))
            self._summed = True
        return memoryview(self._data)

    def stamp(self, int64_t producer_id, int epoch, int base_sequence, bint transactional=False):
        cdef uint8_t *p = self.start()
        headrace_put(p + 21, 2, self._codec | (TRANSACTIONAL if transactional else 0))
        headrace_put(p + 43, 8, producer_id)
        headrace_put(p + 51, 2, epoch)
        headrace_put(p + 53, 4, base_sequence)
        self._summed = False


cdef uint32_t sum_bytes(const uint8_t *p, Py_ssize_t size):
    cdef uint32_t crc
    if size < GIL_BYTES:
        return headrace_crc32c(0, p, size)
    with nogil:
        crc = headrace_crc32c(0, p, size)
    return crc


def set_base_offset(batch, int64_t base_offset, int leader_epoch):
    """Write the two fields that a broker sets on append."""
    cdef Py_buffer view
    PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
    try:
        if view.len < HEADER:
            raise CorruptRecordError("a batch is shorter than its header")
        headrace_put(<uint8_t *> view.buf, 8, base_offset)
        headrace_put(<uint8_t *> view.buf + 12, 4, leader_epoch)
    finally:
        PyBuffer_Release(&view)


def set_log_append_time(batch, int64_t timestamp_ms):
    """Replace the timestamps of all records by the broker's; writes the checksum anew."""
    cdef Py_buffer view
    cdef uint8_t *p
    PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
    try:
        if view.len < HEADER:
            raise CorruptRecordError("a batch is shorter than its header")
        p = <uint8_t *> view.buf
        p[22] |= LOG_APPEND_TIME
        headrace_put(p + 35, 8, timestamp_ms)
        headrace_put(p + 17, 4, sum_bytes(p + SUMMED_FROM, view.len - SUMMED_FROM))
    finally:
        PyBuffer_Release(&view)
