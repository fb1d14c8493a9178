# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""Record batches in C. They have the names and results of the plain twin, which documents them.

Bytes from the network are read through `read_varint` and `read_record` alone, which check every step against the end.
Nothing here calls back into the application. What is shared between threads is guarded by critical sections, which
cost nothing where the GIL does the same.

The append path is a module of its own, `headrace.buffers._buffer`, which uses this one; nothing goes the other way:

    _batch.pxd                          _batch.pyx                           who crosses, and how often
    point_at, write_bytes, read_record  -                                    put in place: each record and field
    BatchBuilder, Message, Origin,      their methods                        fields read in place; `add` and
    Pinned, Block, MemoryPool                                                `add_value` for each record, by vtable
    their declarations                  hash_key, new_message, add_headers,  called by pointer: each record with a
                                        point_at_text                        key, a report, headers, other text

The GIL is released while columns are filled and round sums of more than `GIL_BYTES`. A smaller sum takes less time
than getting the GIL back from a busy thread would (5 ms), and snappy, lz4 and zstd release it themselves.
"""

from time import monotonic

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.errno cimport ENOMEM
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

from itertools import chain
from operator import index

from headrace.errors import CorruptRecordError
from headrace.records.compression import MAX_COLUMN_BYTES, MAX_DECOMPRESSED_BYTES, compress, decompress
from headrace.records.header import BatchInfo
from headrace.records.message import encode_text, rebuild, rebuild_as

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
    ctypedef struct PyObject:
        pass
    PySendResult PyIter_Send(PyObject *iterator, PyObject *value, PyObject **result)
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
    int Py_IsInitialized() nogil
    void Py_XDECREF(PyObject *held)
    int PyList_SetSlice(object target, Py_ssize_t low, Py_ssize_t high, PyObject *items) except -1

cdef extern from "_batch.h":
    void headrace_setup(int portable_only)
    uint32_t headrace_crc32c(uint32_t value, const uint8_t *p, size_t size) nogil
    uint32_t headrace_crc32c_portable(uint32_t value, const uint8_t *p, size_t size) nogil
    uint32_t headrace_crc32(const uint8_t *p, size_t size) nogil
    uint32_t headrace_murmur2(const uint8_t *p, size_t size) nogil
    uint32_t headrace_fnv1a(const uint8_t *p, size_t size) nogil
    int64_t headrace_micros(int64_t ms) nogil
    double headrace_monotonic() nogil
    void headrace_set_send(type kind, PySendResult (*send)(PyObject *, PyObject *, PyObject **) noexcept)
    void headrace_raise(object error)
    void *headrace_map(size_t size) nogil
    void headrace_unmap(void *p, size_t size) nogil
    void *headrace_take(size_t size) nogil
    void headrace_drop(void *p, size_t size) nogil
    void *headrace_grow(void *p, size_t size, size_t grown_size) nogil

headrace_setup(0)

cdef double NOTED_S = 0.01  # how exactly a group knows when the application was here last

cdef enum:
    SUMMED_FROM = 21
    CODEC_MASK = 0x07
    LOG_APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    GIL_BYTES = 4194304

    FIRST_BYTES = 1024
    SMALL_BYTES = 16384  # what outgrows this goes into a block, of which only the pages that are written to count
    BLOCK_BYTES = 1048576
    LIKELY_NUMBERS = 7  # of one record, bytes of them

    LARGE_BYTES = 32768  # of a block that is worth keeping
    SPARE_BLOCKS = 64
    SPARE_TURNS = 256
    MOST_SPARE_BYTES = 268435456  # as the columns of one call
    SLACK_BYTES = 4096


# Sums and hashes.


@cython.final
cdef class Pinned:
    """A buffer held in place for as long as this object lives."""

    def __cinit__(self, data):
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.start = <const uint8_t *> self.view.buf
        self.size = self.view.len

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


def crc32c(data, uint32_t value=0):
    """CRC-32C of bytes, behind bytes whose sum is `value`."""
    cdef Pinned pinned = Pinned(data)
    return headrace_crc32c(value, pinned.start, pinned.size)


def crc32c_portable(data, uint32_t value=0):
    """CRC-32C without the processor's instruction."""
    cdef Pinned pinned = Pinned(data)
    return headrace_crc32c_portable(value, pinned.start, pinned.size)


def crc32(key):
    """CRC-32 as in gzip."""
    cdef Pinned pinned = Pinned(key)
    return headrace_crc32(pinned.start, pinned.size)


def murmur2(key):
    """Java's partitioning hash, signed."""
    cdef Pinned pinned = Pinned(key)
    return <int32_t> headrace_murmur2(pinned.start, pinned.size)


def fnv1a(key):
    """Sarama's partitioning hash."""
    cdef Pinned pinned = Pinned(key)
    return headrace_fnv1a(pinned.start, pinned.size)


cdef uint32_t hash_key(int kind, const uint8_t *key, size_t size) noexcept nogil:
    # By which a partitioner places a key.
    if kind == MURMUR2:
        return headrace_murmur2(key, size) & 0x7FFFFFFF
    return headrace_crc32(key, size) if kind == CRC32 else headrace_fnv1a(key, size)


# Message, and the bytes that it points into.


@cython.final
@cython.no_gc
cdef class Origin:
    # What the messages of one batch share.
    pass


@cython.no_gc
@cython.freelist(16_384)
cdef class Message:
    """A consumed record, a delivery report, or an event when `error()` is not None (confluent_kafka's `Message`).

    The native implementation points into the bytes of the fetched batch and makes key and value when they are asked
    for: a message that is kept alive therefore keeps its whole batch alive (at most the broker's `max.message.bytes`,
    or the whole reply of one partition when batches are not compressed). Keep `message.value()` rather than the
    message where few records of many are kept for long. The garbage collector does not look into such messages: an
    object that is given to `set_value()` and refers back to the message would never be freed.

    Args:
        topic: topic name.
        partition: partition number.
        offset: offset in the partition.
        key: the record's key.
        value: the record's payload; None is a tombstone.
        headers: names and values, in order.
        error: what went wrong, for an event or a failed delivery.
        timestamp: (type, milliseconds since the epoch); the types are the `TIMESTAMP_` constants of `headrace`.
        latency: seconds from `produce()` to the delivery report.
        leader_epoch: epoch of the leader that the record was read from (KIP-320).
        delivery_count: how often a share group has handed the record out, this time included (KIP-932).
    """

    def __init__(self, topic=None, partition=None, offset=None, key=None, value=None, headers=None, error=None,
                 timestamp=None, latency=None, leader_epoch=None, delivery_count=None):
        self._topic = topic
        self._partition = -1 if partition is None else index(partition)  # int() would cut a float off
        self._offset = -1001 if offset is None else index(offset)
        self._key = key
        self._value = value
        self._headers = headers
        self._error = error
        self._key_size = self._value_size = self._header_count = IS_OBJECT
        if timestamp is not None:
            if not isinstance(timestamp, tuple) or len(timestamp) != 2:
                raise TypeError(f"timestamp must be a tuple (type, milliseconds), not {timestamp!r}")
            self._stamp_type, self._timestamp = index(timestamp[0]), index(timestamp[1])
        self._latency = None if latency is None else latency + 0.0  # float() would read text
        self._leader_epoch = -1 if leader_epoch is None else index(leader_epoch)
        self._delivery_count = 0 if delivery_count is None else delivery_count

    def topic(self):
        """The topic's name, None when it is not known."""
        return self._topic if self._origin is None else self._origin.topic

    def partition(self):
        """The partition's number, None when it is not known."""
        cdef int32_t partition = self._partition if self._origin is None else self._origin.partition
        return partition if partition >= 0 else None

    def offset(self):
        """The record's offset, None when it is not known."""
        return self._offset if self._offset >= 0 else None

    def key(self):
        """The key: bytes or None, or what `set_key()` put there."""
        if self._key_size >= 0:
            if self._key_at == NULL:  # of a subclass that has an `__init__` of its own: nothing was given
                return None
            return PyBytes_FromStringAndSize(<const char *> self._key_at, self._key_size)
        return self._key if self._key_size == IS_OBJECT else None

    def value(self):
        """The payload: bytes or None, or what `set_value()` put there."""
        if self._value_size >= 0:
            if self._value_at == NULL:  # of a subclass that has an `__init__` of its own: nothing was given
                return None
            return PyBytes_FromStringAndSize(<const char *> self._value_at, self._value_size)
        return self._value if self._value_size == IS_OBJECT else None

    def deserialized_key(self):
        """As `key()`, in confluent_kafka typed as what a `DeserializingConsumer` has made of it."""
        return self.key()

    def deserialized_value(self):
        """As `value()`, in confluent_kafka typed as what a `DeserializingConsumer` has made of it."""
        return self.value()

    def headers(self):
        """A list of (name, bytes or None), None when there are no headers."""
        if self._header_count == IS_OBJECT:
            return self._headers
        if self._header_count == 0:
            return None
        return read_headers(self._headers_at, self._headers_at + self._headers_size, self._header_count)

    def timestamp(self):
        """A pair (type, milliseconds since the epoch); type 0 stands for none."""
        return (self._stamp_type, self._timestamp)

    def latency(self):
        """Seconds from `produce()` to the delivery report; None on consumed records."""
        return None if self._latency is None or self._latency < 0 else self._latency

    def error(self):
        """What went wrong, None for a proper record."""
        return self._error

    def leader_epoch(self):
        """Epoch of the leader that the record was read from, None when it is not known."""
        return self._leader_epoch if self._leader_epoch >= 0 else None

    def delivery_count(self):
        """How often a share group has handed the record out, this time included; None outside of share groups."""
        return self._delivery_count if self._delivery_count > 0 else None

    def set_topic(self, topic):
        """Replace the topic's name."""
        if self._origin is not None:
            self._partition = self._origin.partition
            own_bytes(self)
        self._topic = topic

    def set_key(self, key):
        """Replace the key, for example with its deserialised form."""
        self._key = key
        self._key_size = IS_OBJECT

    def set_value(self, value):
        """Replace the value, for example with its deserialised form."""
        self._value = value
        self._value_size = IS_OBJECT

    def set_headers(self, headers):
        """Replace the headers."""
        self._headers = headers
        self._header_count = IS_OBJECT

    def set_error(self, error):
        """Replace the error."""
        self._error = error

    def __len__(self):
        if self._value_size >= 0:
            return self._value_size
        return 0 if self._value_size == IS_NULL or self._value is None else len(self._value)

    def __bool__(self):
        return True

    def __eq__(self, other):
        if isinstance(other, Message):
            return fields_of(self) == fields_of(<Message> other)
        return NotImplemented

    __hash__ = None

    def __reduce__(self):
        if type(self) is Message:
            return (rebuild, fields_of(self))
        return (rebuild_as, (type(self), fields_of(self), getattr(self, "__dict__", {})))

    def __repr__(self):
        if self._error is not None:
            return f"Message{{{self.topic()}[{self.partition()}]@{self.offset()},error={self._error}}}"
        return (f"Message{{{self.topic()}[{self.partition()}]@{self.offset()},key={self.key()!r:.60},"
                f"{len(self)} bytes}}")

    def _repr_html_(self):
        from headrace.records.message_html import message_html

        return message_html(self)


# Functions, and no methods: a class of cdef methods that may be inherited from has a table in each message.

cdef int own_bytes(Message message) except -1:
    # Take everything out of the batch, so that the message no longer needs it.
    key, value, headers = message.key(), message.value(), message.headers()
    message.set_key(key)
    message.set_value(value)
    message.set_headers(headers)
    message._origin = None
    return 0


cdef tuple fields_of(Message message):
    cdef int32_t partition = message._partition if message._origin is None else message._origin.partition
    return (message.topic(), partition, message._offset, message.key(), message.value(), message.headers(),
            message._error, message.timestamp(), message._latency, message._leader_epoch, message._delivery_count)


cdef Message new_message(Origin origin, int64_t offset, int64_t timestamp, const Record *record):
    cdef Message message = Message.__new__(Message)
    message._origin = origin
    message._offset = offset
    message._timestamp = timestamp
    message._stamp_type = origin.stamp_type
    message._leader_epoch = origin.leader_epoch
    message._key_at = record.key
    message._key_size = record.key_size
    message._value_at = record.value
    message._value_size = record.value_size
    message._headers_at = record.headers
    message._headers_size = record.end - record.headers
    message._header_count = <int32_t> record.header_count
    return message


def acquired(list messages, ranges):
    # See the plain twin in `headrace.records.message`.
    cdef list kept = []
    cdef Message message
    cdef Py_ssize_t at = 0, count = len(messages)
    cdef int64_t first, last
    cdef int delivered
    for first, last, delivered in ranges:
        while at < count:
            message = messages[at]
            if message._offset > last:
                break
            if message._offset >= first:
                message._delivery_count = delivered
                kept.append(message)
            at += 1
    return kept


cdef list read_headers(const uint8_t *p, const uint8_t *end, int64_t count):
    # The headers of a record. `read_record` has checked them, but whose the bytes are may have written to them since.
    cdef list headers = []
    cdef const uint8_t *name = NULL
    cdef const uint8_t *value = NULL
    cdef int64_t name_size = 0, size = 0
    cdef int code = FINE
    for _ in range(count):
        p = read_field(p, end, &name, &name_size, &code)
        if p != NULL:
            p = read_field(p, end, &value, &size, &code)
        if p == NULL or name_size < 0:
            raise CorruptRecordError(reason_of(code or BAD_NAME))
        headers.append((PyUnicode_DecodeUTF8(<const char *> name, name_size, b"replace"),
                        None if size < 0 else PyBytes_FromStringAndSize(<const char *> value, size)))
    return headers


# Records and batches into bytes. A batch grows in one piece of memory with room for the header in front, which becomes
# the batch on the wire without a copy unless it is compressed.


cdef struct Spare:
    uint8_t *start
    Py_ssize_t capacity
    int64_t turn  # in which it came


@cython.final
cdef class SpareBlocks:
    """Memory of large blocks and frames that are done, for those to come: the first touch of a page costs more than the
    copy to it.

    Keeps at most `SPARE_BLOCKS` of them with `MOST_SPARE_BYTES`; the oldest go first, and what was not wanted
    while `SPARE_TURNS` others came.
    """

    cdef Spare _kept[SPARE_BLOCKS]
    cdef int _count
    cdef int64_t _turn
    cdef Py_ssize_t _bytes

    def __dealloc__(self):
        while self._count:
            self._drop(0)

    cdef int _drop(self, int at) noexcept:
        headrace_drop(self._kept[at].start, self._kept[at].capacity)
        self._remove(at)
        return 0

    cdef int _remove(self, int at) noexcept:
        self._bytes -= self._kept[at].capacity
        self._count -= 1
        memmove(&self._kept[at], &self._kept[at + 1], (self._count - at) * sizeof(Spare))
        return 0

    @cython.critical_section
    cdef uint8_t *take(self, Py_ssize_t needed, Py_ssize_t *capacity):
        # The smallest that is large enough, and not far too large; of those that are alike the last that came, so
        # that the others are seen not to be wanted. NULL if there is none.
        cdef uint8_t *start
        cdef int at, best = -1
        for at in range(self._count):
            if needed <= self._kept[at].capacity <= 2 * needed and (
                    best < 0 or self._kept[at].capacity <= self._kept[best].capacity):
                best = at
        if best < 0:
            return NULL
        start = self._kept[best].start
        capacity[0] = self._kept[best].capacity
        self._remove(best)
        return start

    @cython.critical_section
    cdef int give(self, uint8_t *start, Py_ssize_t capacity) except -1:
        if not LARGE_BYTES <= capacity <= MOST_SPARE_BYTES:
            headrace_drop(start, capacity)
            return 0
        self._turn += 1
        while self._count and (self._count == SPARE_BLOCKS or self._bytes + capacity > MOST_SPARE_BYTES
                               or self._turn - self._kept[0].turn > SPARE_TURNS):
            self._drop(0)
        self._kept[self._count].turn = self._turn
        self._kept[self._count].start = start
        self._kept[self._count].capacity = capacity
        self._count += 1
        self._bytes += capacity
        return 0


cdef SpareBlocks spare_blocks = SpareBlocks()


cdef Py_ssize_t whole_size(Py_ssize_t size) noexcept nogil:
    # A size to ask for, of few: what is needed next is seldom as large to the byte. At most an eighth more.
    cdef Py_ssize_t step = 1
    while step <= size >> 4:
        step <<= 1
    return (size + step - 1) & -step


@cython.final
cdef class Block:
    """Growing memory that becomes a read-only buffer, freed with its last reference."""

    def __cinit__(self):
        self.reserve(0, True)  # Arrow aborts on a buffer without an address

    def __dealloc__(self):
        if self.capacity < LARGE_BYTES or spare_blocks is None:  # None when the interpreter ends
            headrace_drop(self.start, self.capacity)
        else:
            spare_blocks.give(self.start, self.capacity)

    cdef int reserve(self, Py_ssize_t more, bint zeroed=False, Py_ssize_t likely=0) except -1:
        # Room for more; where it has to grow, at once for what is likely to come.
        cdef Py_ssize_t capacity = max(self.used + more, 64)
        cdef uint8_t *grown = NULL
        if capacity <= self.capacity:
            return 0
        capacity = max(capacity, self.capacity + self.capacity // 2, self.used + likely)
        if capacity >= LARGE_BYTES:
            capacity = whole_size(capacity)
            grown = spare_blocks.take(capacity, &capacity)
        if grown != NULL:
            memcpy(grown, self.start, self.capacity if zeroed else self.used)
            if self.capacity < LARGE_BYTES:
                free(self.start)
            else:
                spare_blocks.give(self.start, self.capacity)
        else:
            grown = <uint8_t *> headrace_grow(self.start, self.capacity, capacity)
            if grown == NULL:
                raise MemoryError
        if zeroed:
            memset(grown + self.capacity, 0, capacity - self.capacity)
        self.start = grown
        self.capacity = capacity
        return 0

    cdef int trim(self) except -1:
        # Give back what was reserved and not used, where it is much: nothing is added any more. What is large stays
        # whole, for others.
        cdef Block right
        if self.capacity - self.used > self.used + SLACK_BYTES:
            right = Block()
            right.reserve(self.used)
            memcpy(right.start, self.start, self.used)
            self.start, right.start = right.start, self.start
            self.capacity, right.capacity = right.capacity, self.capacity
        return 0

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.used, 1, flags)

    def __len__(self):
        return self.used


@cython.final
cdef class FrameMemory:
    """Memory of one large frame, to be written as it comes. Nobody may look at what has not been written."""

    cdef uint8_t *_start
    cdef Py_ssize_t _size, _capacity

    def __cinit__(self, Py_ssize_t size):
        self._capacity = whole_size(max(size, LARGE_BYTES))
        self._start = spare_blocks.take(self._capacity, &self._capacity)
        if self._start == NULL:
            self._start = <uint8_t *> headrace_take(self._capacity)
            if self._start == NULL:
                raise MemoryError
        self._size = size

    def __dealloc__(self):
        if spare_blocks is None:  # when the interpreter ends
            headrace_drop(self._start, self._capacity)
        elif self._start != NULL:
            spare_blocks.give(self._start, self._capacity)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self._start, self._size, 0, flags)

    def __len__(self):
        return self._size


cdef object point_at_text(value, str role, const uint8_t **data, int64_t *size):
    # What `point_at` does not know: bytes of another type, or a TypeError.
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
cdef class MemoryPool:
    """Memory of batches that are done, for those to come: the first touch of a page costs more than the records on it.

    Keeps at most `KEPT_BLOCKS` blocks of `BLOCK_BYTES`; what is beyond goes back to the system.
    """

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
    """The bytes of one batch. Their memory goes back where it came from with the last reference to them."""

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

    cdef int reserve(self, Py_ssize_t needed, MemoryPool pool) except -1:
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

    cdef int add(self, int64_t timestamp_ms, const Fields *fields) except -1:
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

    cdef void add_value(self, int64_t delta, const uint8_t *value, int64_t value_size) noexcept:
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
        if self._data.capacity == 0:
            self._data.reserve(HEADER, None)
        if not codec:
            self.seal_into(batch)
            return batch
        self._max_count = 0
        packed = compress(codec, memoryview(self._data)[HEADER:self._used], level)
        batch._data = BatchBytes.__new__(BatchBytes)
        batch._data.reserve(HEADER + PyBytes_GET_SIZE(packed), None)
        memcpy(batch._data.start + HEADER, PyBytes_AS_STRING(packed), PyBytes_GET_SIZE(packed))
        batch._data.size = HEADER + PyBytes_GET_SIZE(packed)
        self._codec = codec
        self._packed = batch._data
        if self.count and self._used > SMALL_BYTES:  # less is kept for the reports, which would decompress it again
            self._data = None
        batch.write_header(codec, self.count, self._base_timestamp, self._max_timestamp)
        return batch

    cdef int seal_into(self, Batch batch) except -1:
        # `seal` without compression. It makes no object, so that no other thread has a turn meanwhile.
        self._max_count = 0
        self._data.size = self._used
        batch._data = self._data
        return batch.write_header(0, self.count, self._base_timestamp, self._max_timestamp)

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

    cdef uint8_t *start(self) except NULL:
        if self._data is None:
            raise ValueError("a batch is made by seal()")
        return self._data.start

    cdef int write_header(self, int codec, Py_ssize_t count, int64_t base_timestamp, int64_t max_timestamp) except -1:
        cdef uint8_t *p = self._data.start
        self._codec = codec
        self.count = count
        self.max_timestamp = max_timestamp
        put_number(p, 8, 0)
        put_number(p + 8, 4, self._data.size - 12)
        put_number(p + 12, 4, <uint64_t> -1)
        put_number(p + 16, 1, 2)
        put_number(p + 17, 4, 0)
        put_number(p + 21, 2, codec)
        put_number(p + 23, 4, count - 1)
        put_number(p + 27, 8, base_timestamp)
        put_number(p + 35, 8, max_timestamp)
        memset(p + 43, 0xFF, 14)  # no producer: -1, -1, -1
        put_number(p + 57, 4, count)
        return 0

    @property
    def size_bytes(self):
        return len(self._data)

    @property
    def data(self):
        self.sum()
        return memoryview(self._data)

    cdef int sum(self) except -1:
        # Write the checksum if something has changed.
        cdef uint8_t *p = self.start()
        if not self._summed:
            put_number(p + 17, 4, sum_bytes(p + SUMMED_FROM, self._data.size - SUMMED_FROM))
            self._summed = True
        return 0

    def stamp(self, int64_t producer_id, int epoch, int base_sequence, bint transactional=False):
        self.put_producer(producer_id, epoch, base_sequence, transactional)

    cdef int put_producer(self, int64_t producer_id, int epoch, int base_sequence, bint transactional) except -1:
        cdef uint8_t *p = self.start()
        put_number(p + 21, 2, self._codec | (TRANSACTIONAL if transactional else 0))
        put_number(p + 43, 8, producer_id)
        put_number(p + 51, 2, epoch)
        put_number(p + 53, 4, base_sequence)
        self._summed = False
        return 0


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
        put_number(<uint8_t *> view.buf, 8, base_offset)
        put_number(<uint8_t *> view.buf + 12, 4, leader_epoch)
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
        put_number(p + 35, 8, timestamp_ms)
        put_number(p + 17, 4, sum_bytes(p + SUMMED_FROM, view.len - SUMMED_FROM))
    finally:
        PyBuffer_Release(&view)


# Bytes into records. Errors are small numbers while the GIL may be released, and become exceptions in `reason_of`.


cdef str reason_of(int code):
    return (
        "",
        "a number in a record passes its end or has more than 64 bits",
        "a record's length passes the end of its batch",
        "a record's offset is outside of its batch",
        "a field of a record passes its end",
        "a record's count of headers passes its end",
        "a header has no name",
        "a record's length does not fit its fields",
        "bytes are left behind the last record of a batch",
    )[code]


cdef int read_head(const uint8_t *p, Py_ssize_t left, Head *head, object topic, object partition) except -1:
    # 1 for a whole batch, 2 for a message of an old format, 0 at the end.
    cdef int64_t length, delta
    if left < 17:
        return 0
    if <signed char> p[16] < 2 and p[16] < 128:
        return 2
    head.base_offset = <int64_t> get_number(p, 8)
    head.magic = <signed char> p[16]
    if head.magic != 2:
        raise CorruptRecordError(
            f"batch at offset {head.base_offset} of {topic}[{partition}]: unknown format {head.magic}")
    if left < HEADER:
        return 0
    length = <int32_t> get_number(p + 8, 4)
    head.leader_epoch = <int32_t> get_number(p + 12, 4)
    head.attributes = <int32_t> <short> get_number(p + 21, 2)
    delta = <int32_t> get_number(p + 23, 4)
    head.base_timestamp = <int64_t> get_number(p + 27, 8)
    head.max_timestamp = <int64_t> get_number(p + 35, 8)
    head.producer_id = <int64_t> get_number(p + 43, 8)
    head.epoch = <short> get_number(p + 51, 2)
    head.base_sequence = <int32_t> get_number(p + 53, 4)
    head.count = <int32_t> get_number(p + 57, 4)
    # The offset behind the last one must have 64 bits too.
    if (length + 12 < HEADER or head.base_offset < 0 or delta < 0 or head.base_offset >= INT64_MAX - delta
            or head.count < 0 or head.count > delta + 1):
        raise CorruptRecordError(
            f"batch at offset {head.base_offset} of {topic}[{partition}]: bad header (length {length}, "
            f"last offset delta {delta}, count {head.count})")
    head.last_offset = head.base_offset + delta
    head.size = length + 12
    return head.size <= left


cdef int check_sum(const uint8_t *p, const Head *head, object topic, object partition) except -1:
    cdef uint32_t expected = <uint32_t> get_number(p + 17, 4)
    cdef uint32_t found = sum_bytes(p + SUMMED_FROM, head.size - SUMMED_FROM)
    if found != expected:
        raise CorruptRecordError(f"batch at offset {head.base_offset} of {topic}[{partition}]: checksum is "
                                 f"{found:#010x}, header says {expected:#010x}")
    return 0


cdef object old_formats():
    # Few brokers still have these: who never meets them does not load what reads them.
    from headrace.records.legacy import message_set

    return message_set


def scan(data, topic="", partition=-1):
    """Read the headers of all whole batches; a part of a batch at the end is left out."""
    cdef Pinned pinned = Pinned(data)
    cdef Head head
    cdef Py_ssize_t at = 0
    cdef int kind
    cdef list found = []
    while True:
        kind = read_head(pinned.start + at, pinned.size - at, &head, topic, partition)
        if kind == 2:
            info = old_formats().read_info(BatchInfo._make, memoryview(data), at, topic, partition)
            if info is None:
                return found
            found.append(info)
            at += info.size
        elif kind == 1:
            found.append(BatchInfo(
                head.base_offset, head.last_offset, head.magic, head.attributes, head.leader_epoch,
                head.base_timestamp, head.max_timestamp, head.producer_id, head.epoch, head.base_sequence, head.count,
                at, head.size))
            at += head.size
        else:
            return found


def verify(data, topic="", partition=-1):
    """Compare the checksum of every whole batch with its bytes."""
    cdef Pinned pinned = Pinned(data)
    cdef Head head
    cdef Py_ssize_t at
    for info in scan(data, topic, partition):
        at = info.position
        if info.magic < 2:
            old_formats().check_sum(memoryview(data), at, info.size, topic, partition)
        elif read_head(pinned.start + at, pinned.size - at, &head, topic, partition) == 1:
            # Read again, and checked again: another thread may write to the bytes.
            check_sum(pinned.start + at, &head, topic, partition)


@cython.final
cdef class Cursor:
    """Hands out the records of fetched bytes, batch by batch. See the plain twin in `headrace.records.batch`."""

    cdef object _data, _topic, _aborting
    cdef object _error  # text: an exception would keep alive what was decompressed
    cdef list _aborted
    cdef object _legacy  # records of a message set still to come
    cdef Pinned _pinned
    cdef Origin _origin
    cdef Py_ssize_t _at
    cdef const uint8_t *_next
    cdef const uint8_t *_end
    cdef int64_t _fetch_offset, _base_offset, _last_offset, _base_timestamp, _broker_time, _left, _limit
    cdef int32_t _partition, _codec
    cdef bint _check_crcs, _packed
    cdef Py_ssize_t _packed_at, _packed_size
    cdef readonly int64_t position

    def __init__(self, data, topic, int32_t partition, int64_t fetch_offset, *, bint check_crcs=True, aborted=None,
                 int64_t max_decompressed_bytes=MAX_DECOMPRESSED_BYTES):
        self._data = data
        self._pinned = Pinned(data)
        self._topic = topic
        self._partition = partition
        self._fetch_offset = fetch_offset
        self._check_crcs = check_crcs
        self._left = 0
        self._aborted = sorted(aborted, key=lambda entry: entry[1], reverse=True) if aborted else None
        self._aborting = set()
        self._limit = max_decompressed_bytes
        self._last_offset = -1
        self.position = fetch_offset
        self._advance()

    @property
    def exhausted(self):
        return self._left == 0 and self._error is None

    @cython.critical_section
    def take(self, Py_ssize_t count):
        cdef list taken = None, more
        while count > 0:
            more = self._take_run(count)
            count -= PyList_GET_SIZE(more)
            if taken is None:
                taken = more
            elif PyList_GET_SIZE(more):
                taken.extend(more)
            if self._error is not None or self._left == 0:
                break
        if taken is None:
            return []
        if self._error is not None and not taken:
            raise CorruptRecordError(self._error)
        return taken

    @cython.critical_section
    def take_one(self):
        cdef list taken
        while self._left and self._error is None:
            taken = self._take_run(1)
            if taken:
                return taken[0]
        if self._error is not None:
            raise CorruptRecordError(self._error)
        return None

    cdef Message next_in_run(self):
        # The next record if it is in the present batch and not the last there; None where there is more to do.
        cdef Record record
        cdef Message message
        cdef int64_t offset
        if self._packed or self._legacy is not None or self._error is not None:
            return None
        while self._left > 1:
            if read_record(&self._next, self._end, self._last_offset - self._base_offset, self._base_timestamp,
                           &record):
                return None  # `_take_run` says what is wrong
            self._left -= 1
            offset = self._base_offset + record.delta
            if offset < self._fetch_offset:
                continue
            if self._origin.stamp_type == 2:
                record.timestamp = self._broker_time
            message = new_message(self._origin, offset, record.timestamp, &record)
            if offset >= self.position:
                self.position = offset + 1
            return message
        return None

    cdef list _take_run(self, Py_ssize_t count):
        # Records of the current batch, at most `count`; moves to the next batch when this one ends.
        cdef Record record
        cdef Message message
        cdef int64_t offset
        cdef Py_ssize_t made = 0
        cdef int code = FINE
        if self._left == 0 or self._error is not None or not self._unpack():
            return []
        if self._legacy is not None:
            return self._take_legacy(count)
        # A record has 7 bytes at least; the header's count may be far more than there is.
        count = min(count, self._left, (self._end - self._next) // 7 + 1)
        cdef list taken = PyList_New(count)
        while made < count and self._left:
            code = read_record(&self._next, self._end, self._last_offset - self._base_offset, self._base_timestamp,
                               &record)
            if code:
                break
            self._left -= 1
            offset = self._base_offset + record.delta
            if offset < self._fetch_offset:
                continue
            if self._origin.stamp_type == 2:
                record.timestamp = self._broker_time
            message = new_message(self._origin, offset, record.timestamp, &record)
            Py_INCREF(message)
            PyList_SET_ITEM(taken, made, message)
            made += 1
            if offset >= self.position:
                self.position = offset + 1
        if made < count:
            PyList_SetSlice(taken, made, count, NULL)
        if code:
            self._fail(reason_of(code))
        elif self._left == 0:
            self._finish()
        return taken

    cdef list _take_legacy(self, Py_ssize_t count):
        cdef list taken = []
        while self._left and len(taken) < count:
            old = next(self._legacy)
            self._left -= 1
            if old.offset >= self._fetch_offset:
                taken.append(Message(self._topic, self._partition, old.offset, old.key, old.value,
                                     timestamp=old.timestamp))
                self.position = max(self.position, old.offset + 1)
        if self._left == 0:
            self._next = self._end = NULL
            self._finish()
        return taken

    cdef int _finish(self) except -1:
        # The batch's last record was read: look for what follows, so that `position` is as far as can be.
        if self._next != self._end:
            self._fail(reason_of(BAD_REST))
            return 0
        self.position = max(self.position, self._last_offset + 1)
        self._advance()
        return 0

    cdef int _fail(self, reason) except -1:
        self._error = f"batch up to offset {self._last_offset} of {self._topic}[{self._partition}]: {reason}"
        return 0

    cdef int _unpack(self) except -1:
        # Decompress the batch when its first record is asked for. 0 if that fails.
        if not self._packed:
            return 1
        self._packed = False
        try:
            plain = decompress(
                self._codec, memoryview(self._data).cast("B")[self._packed_at:self._packed_at + self._packed_size],
                self._limit)
        except CorruptRecordError as error:
            self._fail(str(error))
            return 0
        cdef Pinned pinned = Pinned(plain)
        self._origin.pinned = pinned
        self._next = pinned.start
        self._end = pinned.start + pinned.size
        return 1

    cdef int _advance(self) except -1:
        # Go to the next batch that has records for the application.
        try:
            while self._step():
                pass
        except CorruptRecordError as error:
            self._error = str(error)
        return 0

    cdef bint _step(self) except -1:
        # Look at one batch; False when it is the one to read, or at the end.
        cdef Head head
        cdef const uint8_t *p = self._pinned.start + self._at
        cdef int kind = read_head(p, self._pinned.size - self._at, &head, self._topic, self._partition)
        if kind == 0:
            return False
        if kind == 2:
            return self._step_legacy()
        self._at += head.size
        self._last_offset = head.last_offset
        if head.last_offset < self._fetch_offset:
            return True
        if self._check_crcs:
            check_sum(p, &head, self._topic, self._partition)
        if self._is_visible(&head):
            self._open(p, &head)
            return False
        self.position = max(self.position, head.last_offset + 1)
        return True

    cdef bint _step_legacy(self) except -1:
        view = memoryview(self._data).cast("B")
        info = old_formats().read_info(BatchInfo._make, view, self._at, self._topic, self._partition)
        if info is None:
            return False
        self._at += info.size
        self._last_offset = info.last_offset
        if info.last_offset < self._fetch_offset:
            return True
        if self._check_crcs:
            old_formats().check_sum(view, info.position, info.size, self._topic, self._partition)
        self._left, _, self._legacy = old_formats().read_set(view, info.position, self._limit, self._check_crcs)
        return False

    cdef bint _is_visible(self, const Head *head) except -1:
        cdef Py_ssize_t begin
        if self._aborted is not None:
            while self._aborted and self._aborted[len(self._aborted) - 1][1] <= head.last_offset:
                self._aborting.add(self._aborted.pop()[0])
        if head.attributes & CONTROL:
            if self._aborting and head.producer_id in self._aborting:
                from headrace.records.control import aborts  # few readers meet one

                begin = self._at - head.size
                if aborts(memoryview(self._data).cast("B")[begin:self._at]):
                    self._aborting.discard(head.producer_id)
            return False
        if head.count == 0:
            return False
        return not (head.attributes & TRANSACTIONAL and self._aborting and head.producer_id in self._aborting)

    cdef int _open(self, const uint8_t *p, const Head *head) except -1:
        cdef Origin origin = Origin.__new__(Origin)
        origin.topic = self._topic
        origin.partition = self._partition
        origin.leader_epoch = head.leader_epoch
        origin.stamp_type = 2 if head.attributes & LOG_APPEND_TIME else 1
        origin.pinned = self._pinned
        self._origin = origin
        self._legacy = None
        self._left = head.count
        self._base_offset = head.base_offset
        self._base_timestamp = head.base_timestamp
        self._broker_time = head.max_timestamp
        self._next = p + HEADER
        self._end = p + head.size
        self._codec = head.attributes & CODEC_MASK
        self._packed = self._codec != 0
        self._packed_at = self._next - self._pinned.start
        self._packed_size = head.size - HEADER
        return 0


cdef class ReadPosition:
    """Where the application is in a partition; see the plain twin."""

    cdef public int64_t position, stored


@cython.final
@cython.freelist(8)
cdef class NextMessage:
    """A coroutine of the next message of a batch. It takes that when it runs: who cancels it before has lost nothing."""

    cdef PollFastPath _fast_path  # None once it has run
    cdef object _consumer
    cdef object _otherwise  # a coroutine, where something came between that the fast path leaves to others

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):  # for a debugger, and for some versions of Python; others use `send_next`
        return self.send(None)

    def send(self, value):
        message = self.begin() if self._otherwise is None else None
        if message is not None:
            raise StopIteration(message)
        return self._otherwise.send(value)

    def throw(self, kind, value=None, traceback=None):
        if self._otherwise is None:
            self._fast_path = None
            raise kind if value is None else value
        return self._otherwise.throw(kind if value is None else value)

    def close(self):
        self._fast_path = None
        if self._otherwise is not None:
            self._otherwise.close()

    cdef Message begin(self):
        cdef Message message
        fast_path, self._fast_path = self._fast_path, None
        if fast_path is None:
            raise RuntimeError("cannot reuse already awaited anext()")
        message = fast_path.next()
        if message is None:
            self._otherwise = fast_path._otherwise(self._consumer, -1)
        return message


cdef PySendResult send_next(PyObject *awaited, PyObject *value, PyObject **result) noexcept:
    # `await` gets the message without an exception that would carry it.
    cdef NextMessage following = <NextMessage> awaited
    result[0] = NULL
    if following._otherwise is None:
        try:
            message = following.begin()
        except BaseException as error:
            headrace_raise(error)
            return PYGEN_ERROR
        if message is not None:
            Py_INCREF(message)
            result[0] = <PyObject *> message
            return PYGEN_RETURN
    return PyIter_Send(<PyObject *> following._otherwise, value, result)


headrace_set_send(NextMessage, send_next)


cdef inline double clock_s() except? -1.0:
    cdef double now = headrace_monotonic()
    return monotonic() if now < 0.0 else now


@cython.final
cdef class PollFastPath:
    """`Consumer.poll` while a batch lasts; see the plain twin."""

    cdef Cursor _cursor  # None while it is closed
    cdef ReadPosition _state
    cdef object _group, _otherwise
    cdef bint _auto_store
    cdef double _polled_at, _lasts_s, _opened_at

    def __init__(self, otherwise, double lasts_s=0.0):
        self._otherwise = otherwise
        self._lasts_s = lasts_s

    @cython.critical_section
    def open(self, Cursor cursor not None, ReadPosition state not None, bint auto_store, group=None):
        self._state = state
        self._group = group
        self._auto_store = auto_store
        if self._lasts_s > 0.0:
            self._opened_at = clock_s()
        self._cursor = cursor

    @cython.critical_section
    def close(self):
        self._close()

    cdef inline void _close(self):
        self._cursor = None
        self._state = self._group = None

    @cython.critical_section
    cdef Message next(self):
        cdef Cursor cursor = self._cursor
        cdef Message message
        cdef double now = 0.0
        if cursor is None:
            return None
        if self._group is not None or self._lasts_s > 0.0:
            now = clock_s()
            if self._lasts_s > 0.0 and now - self._opened_at >= self._lasts_s:
                self._close()
                return None
        message = cursor.next_in_run()
        if message is None or cursor is not self._cursor:  # the collector may have run, and others with it
            return message
        self._state.position = cursor.position
        if self._auto_store:
            self._state.stored = cursor.position
        if self._group is not None and now - self._polled_at > NOTED_S:
            self._polled_at = now
            self._group.application_at = now
        return message

    def poll(self, consumer, timeout=-1):
        """The next message, or None; see `headrace.Consumer.poll`."""
        if not isinstance(timeout, (int, float)):
            return self._otherwise(consumer, timeout)  # None, or what is refused
        message = self.next()
        return self._otherwise(consumer, timeout) if message is None else message

    def take(self):
        """The next message, if it is there and nothing else is to be done; else None."""
        return self.next()

    def each(self, consumer):
        """One message after the other; see the plain twin."""
        messages = EachMessage.__new__(EachMessage)
        (<EachMessage> messages)._fast_path = self
        (<EachMessage> messages)._consumer = consumer
        return messages


@cython.final
cdef class EachMessage:
    """One message after the other; see the plain twin."""

    cdef PollFastPath _fast_path
    cdef object _consumer

    def __iter__(self):
        return self

    def __next__(self):
        message = self._fast_path.next()
        while message is None:
            message = self._fast_path._otherwise(self._consumer, -1)
        return message

    def __aiter__(self):
        return self

    def __anext__(self):
        cdef NextMessage following
        if self._fast_path._cursor is None:
            return self._fast_path._otherwise(self._consumer, -1)
        following = NextMessage.__new__(NextMessage)
        following._fast_path = self._fast_path
        following._consumer = self._consumer
        return following



# Bytes into Arrow's buffers. See the plain twin in `headrace.records.columns.columns`.

cdef enum:
    ROW_COST = 28  # bytes of a row in the columns of a fixed size and of offsets, so that empty records cost as well
    HEADER_COST = 8  # offsets of a header's name and value
    SPARE_HEADERS = 64  # room made beyond the headers that need it, and
    SPARE_BYTES = 4096  # for their names and values
    SHORT_HEAD = 40  # bytes that hold whatever stands in front of a key, and two more


cdef struct Sink:
    # Where a column's next value goes; room was made before.
    uint8_t *validity
    int32_t *offsets
    uint8_t *data
    int64_t used
    int64_t rows
    int64_t nulls


cdef inline void put_value(Sink *sink, const uint8_t *data, int64_t size) noexcept nogil:
    if size < 0:
        sink.nulls += 1
    else:
        sink.validity[sink.rows >> 3] |= <uint8_t> (1 << (sink.rows & 7))
        memcpy(sink.data + sink.used, data, size)
        sink.used += size
    sink.rows += 1
    sink.offsets[sink.rows] = <int32_t> sink.used


@cython.final
cdef class Column:
    # The blocks of one binary column.
    cdef Block validity, offsets, data
    cdef int64_t rows, nulls

    def __cinit__(self):
        self.validity = Block()
        self.offsets = Block()
        self.data = Block()
        self.offsets.reserve(64, True)
        self.offsets.used = 4

    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size, Sink *sink, Py_ssize_t likely_rows=0,
                     Py_ssize_t likely_size=0) except -1:
        # Room for so many rows with so many bytes, and where it has to grow for what is likely.
        self.validity.used = (self.rows + 7) // 8
        self.validity.reserve(rows // 8 + 2, True, likely_rows // 8)
        self.offsets.reserve(4 * rows, False, 4 * likely_rows)
        self.data.reserve(size, False, likely_size)
        sink.validity = self.validity.start
        sink.offsets = <int32_t *> self.offsets.start
        sink.data = self.data.start
        sink.used = self.data.used
        sink.rows = self.rows
        sink.nulls = self.nulls
        return 0

    cdef Py_ssize_t rows_left(self):
        # What `reserve` has made room for, in all.
        return min(self.offsets.capacity // 4 - 1, 8 * self.validity.capacity) - self.rows

    cdef int settle(self, const Sink *sink) except -1:
        self.rows = sink.rows
        self.nulls = sink.nulls
        self.validity.used = (sink.rows + 7) // 8
        self.offsets.used = 4 * (sink.rows + 1)
        self.data.used = sink.used
        return 0

    cdef object finish(self):
        from headrace.records.columns.columns import BinaryColumn  # who reads no columns does not load it

        self.offsets.trim()
        self.data.trim()
        return BinaryColumn(self.validity if self.nulls else None, self.offsets, self.data)


cdef Column as_text(Column column):
    # The same column with bad UTF-8 replaced: Arrow's strings must be valid; a header's name need not.
    cdef Column text = Column()
    cdef Sink sink
    cdef const int32_t *ends = <const int32_t *> column.offsets.start
    cdef bytes name
    for row in range(column.rows):
        name = PyUnicode_DecodeUTF8(
            <const char *> column.data.start + ends[row], ends[row + 1] - ends[row], b"replace").encode()
        text.reserve(1, PyBytes_GET_SIZE(name), &sink)
        put_value(&sink, <const uint8_t *> PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
        text.settle(&sink)
    return text


cdef struct Progress:
    # The state of a fill, in and out.
    Sink key, value, lists, names, values
    int64_t *offsets
    int64_t *timestamps
    int64_t rows, left, position, total_bytes
    int64_t key_room, value_room, header_room, header_bytes  # what there is room for
    int64_t need_headers, need_bytes  # what a record found no room for
    bint want_key, want_value, want_headers, ascii, full, java_times
    int code


cdef bint fill_headers(Progress *to, const Record *record) noexcept nogil:
    # False when someone wrote to the bytes after `read_record` had checked them.
    cdef const uint8_t *p = record.headers
    cdef const uint8_t *name = NULL
    cdef const uint8_t *value = NULL
    cdef int64_t name_size = 0, size = 0, index, at
    cdef Sink names = to.names, values = to.values
    for index in range(record.header_count):
        p = read_field(p, record.end, &name, &name_size, &to.code)
        if p != NULL:
            p = read_field(p, record.end, &value, &size, &to.code)
        if p == NULL or name_size < 0:
            to.code = to.code or BAD_NAME
            to.names, to.values = names, values
            return False
        for at in range(name_size):
            if name[at] >= 0x80:
                to.ascii = False
        put_value(&to.names, name, name_size)
        put_value(&to.values, value, size)
    # A list column's offsets count entries, not bytes; null without headers.
    if record.header_count:
        to.lists.validity[to.lists.rows >> 3] |= <uint8_t> (1 << (to.lists.rows & 7))
    else:
        to.lists.nulls += 1
    to.lists.rows += 1
    to.lists.offsets[to.lists.rows] = <int32_t> to.names.rows
    return True


cdef inline int64_t header_bytes(const Record *record) noexcept nogil:
    # What the headers take in their columns.
    cdef const uint8_t *p = record.headers
    cdef const uint8_t *data = NULL
    cdef int64_t size = 0, index, total = HEADER_COST * record.header_count
    cdef int code = FINE
    for index in range(2 * record.header_count):
        p = read_field(p, record.end, &data, &size, &code)
        if p == NULL:
            break
        total += size if size > 0 else 0
    return total


cdef inline void set_bits(uint8_t *bits, int64_t start, int64_t stop) noexcept nogil:
    # Those of [start, stop).
    cdef int64_t first = start >> 3, last = stop >> 3
    cdef int head = 0xFF << (start & 7), tail = (1 << (stop & 7)) - 1
    if start >= stop:
        return
    if first == last:
        bits[first] |= <uint8_t> (head & tail)
        return
    bits[first] |= <uint8_t> head
    memset(bits + first + 1, 0xFF, last - first - 1)
    if tail:
        bits[last] |= <uint8_t> tail


cdef inline const uint8_t *read_short(const uint8_t *p, const uint8_t *end, int64_t *value) noexcept nogil:
    # As `read_varint`, where two bytes are known to be there, which suffice as a rule.
    cdef uint64_t rest = p[0]
    if rest >= 0x80:
        if p[1] >= 0x80:
            return read_varint(p, end, value)
        rest = (rest & 0x7F) | <uint64_t> p[1] << 7
        p += 1
    value[0] = <int64_t> (rest >> 1) ^ -(<int64_t> (rest & 1))
    return p + 1


cdef void fill_plain(Progress *to, const uint8_t **at, const uint8_t *end, int64_t base_offset, int64_t last_delta,
                     int64_t base_timestamp, bint by_broker, int64_t broker_time, int64_t first, int64_t stop,
                     int64_t most_rows, int64_t max_bytes) noexcept nogil:
    # As `fill`, up to a record with anything unusual, the batch's end included: `fill` looks at that one. Whatever is
    # read of the bytes is read once, for others may write to them.
    cdef const uint8_t *p = at[0]
    cdef const uint8_t *q
    cdef const uint8_t *key
    cdef const uint8_t *record_end
    cdef int64_t rows = to.rows, left = to.left, total = to.total_bytes, position = to.position
    cdef int64_t size = 0, timestamp = 0, delta = 0, key_size = 0, value_size = 0, offset, cost
    cdef Sink keys = to.key, values = to.value
    cdef int64_t key_run = rows, value_run = rows  # where the rows that are not null began
    cdef int64_t *offsets = to.offsets
    cdef int64_t *timestamps = to.timestamps
    cdef bint want_key = to.want_key, want_value = to.want_value, java_times = to.java_times
    cdef int32_t *lists = to.lists.offsets if to.want_headers else NULL
    cdef int32_t headers = <int32_t> to.names.rows
    cdef int64_t key_room = to.key_room, value_room = to.value_room
    while left and rows < most_rows and end - p >= SHORT_HEAD:
        q = read_short(p, end, &size)
        if q == NULL or size <= 0 or size > end - q:
            break
        record_end = q + size
        q = read_short(q + 1, end, &timestamp)
        if q == NULL:
            break
        q = read_short(q, end, &delta)
        if q == NULL:
            break
        q = read_short(q, end, &key_size)
        if q == NULL or key_size > record_end - q:
            break
        key = q
        if key_size > 0:
            q += key_size
        if end - q < 2:
            break
        q = read_short(q, end, &value_size)
        if q == NULL or value_size >= record_end - q or key_size < -1 or value_size < -1:
            break
        cost = ROW_COST + max(key_size, 0) + max(value_size, 0)
        offset = base_offset + delta
        if (record_end - q - max(value_size, 0) != 1 or (record_end - 1)[0] != 0 or delta < 0 or delta > last_delta
                or offset < first or offset >= stop or total + cost > max_bytes
                or key_size > key_room - keys.used or value_size > value_room - values.used):
            break
        total += cost
        left -= 1
        if want_key:
            if key_size < 0:
                set_bits(keys.validity, key_run, rows)
                key_run = rows + 1
                keys.nulls += 1
            else:
                memcpy(keys.data + keys.used, key, key_size)
                keys.used += key_size
            keys.offsets[rows + 1] = <int32_t> keys.used
        if want_value:
            if value_size < 0:
                set_bits(values.validity, value_run, rows)
                value_run = rows + 1
                values.nulls += 1
            else:
                memcpy(values.data + values.used, q, value_size)
                values.used += value_size
            values.offsets[rows + 1] = <int32_t> values.used
        if lists != NULL:
            lists[rows + 1] = headers
        timestamp = broker_time if by_broker else <int64_t> (<uint64_t> timestamp + <uint64_t> base_timestamp)
        offsets[rows] = offset
        timestamps[rows] = headrace_micros(timestamp) if java_times else timestamp
        rows += 1
        if offset >= position:
            position = offset + 1
        p = record_end
    if want_key:
        set_bits(keys.validity, key_run, rows)
        keys.rows = rows
        to.key = keys
    if want_value:
        set_bits(values.validity, value_run, rows)
        values.rows = rows
        to.value = values
    if lists != NULL:
        to.lists.nulls += rows - to.rows
        to.lists.rows = rows
    to.rows, to.left, to.total_bytes, to.position = rows, left, total, position
    at[0] = p


cdef void fill(Progress *to, const uint8_t **p, const uint8_t *end, int64_t base_offset, int64_t last_offset,
               int64_t base_timestamp, bint by_broker, int64_t broker_time, int64_t first, int64_t stop,
               int64_t most_rows, int64_t max_bytes) noexcept nogil:
    # Records of one batch into the columns, until it ends, `stop` is reached, a column is full, or headers need room.
    cdef Record record
    cdef int64_t offset, size, rows
    cdef const uint8_t *before
    cdef bint plain = True  # records may be; where one is not, and none before it was, all others are taken not to be
    while to.left and to.rows < most_rows:
        if plain:
            rows = to.rows
            fill_plain(to, p, end, base_offset, last_offset - base_offset, base_timestamp, by_broker, broker_time,
                       first, stop, most_rows, max_bytes)
            if not to.left or to.rows >= most_rows:
                return
            plain = to.rows > rows
        before = p[0]
        to.code = read_record(p, end, last_offset - base_offset, base_timestamp, &record)
        if to.code:
            return
        offset = base_offset + record.delta
        if offset < first:
            to.left -= 1
            plain = True
            continue
        size = ROW_COST + (record.key_size if record.key_size > 0 else 0) + (
            record.value_size if record.value_size > 0 else 0)
        if record.header_count:
            size += header_bytes(&record)
        if offset >= stop or (to.total_bytes + size > max_bytes and to.rows):
            p[0] = before
            to.position = offset
            to.full = True
            return
        if record.key_size > to.key_room - to.key.used or record.value_size > to.value_room - to.value.used:
            p[0] = before  # someone wrote to the bytes after `behind` had looked at them
            return
        if to.want_headers:
            if record.header_count and (to.names.rows + record.header_count > to.header_room
                                        or to.names.used + to.values.used + (record.end - record.headers)
                                        > to.header_bytes):
                p[0] = before
                to.need_headers = record.header_count
                to.need_bytes = record.end - record.headers
                return
            if not fill_headers(to, &record):
                return
        to.total_bytes += size
        to.left -= 1
        if to.want_key:
            put_value(&to.key, record.key, record.key_size)
        if to.want_value:
            put_value(&to.value, record.value, record.value_size)
        end_row(to, offset, broker_time if by_broker else record.timestamp)


cdef const uint8_t *behind(const uint8_t *p, const uint8_t *end, int64_t count) noexcept nogil:
    # Where so many records end, or all do if one of them is damaged.
    cdef int64_t size
    for _ in range(count):
        p = read_varint(p, end, &size)
        if p == NULL or size < 0 or size > end - p:
            return end
        p += size
    return p


cdef inline void end_row(Progress *to, int64_t offset, int64_t timestamp) noexcept nogil:
    # The numbers of a record, which end its row.
    to.offsets[to.rows] = offset
    to.timestamps[to.rows] = headrace_micros(timestamp) if to.java_times else timestamp
    to.rows += 1
    if offset >= to.position:
        to.position = offset + 1


@cython.final
cdef class ColumnBuilder:
    """Columns that grow by the records of one cursor after the other. See the plain twin.

    Nothing else may use a cursor, or the builder, while `append` runs: it fills without the GIL.
    """

    cdef Column _key, _value, _names, _values, _lists
    cdef Block _offsets, _timestamps, _types
    cdef Progress _to
    cdef int64_t _max_bytes, _likely_rows

    def __init__(self, *, bint want_key=True, bint want_value=True, bint want_headers=False, bint java_times=False,
                 int64_t max_column_bytes=MAX_COLUMN_BYTES, int64_t likely_rows=0):
        memset(&self._to, 0, sizeof(Progress))
        self._to.want_key, self._to.want_value, self._to.want_headers = want_key, want_value, want_headers
        self._to.java_times, self._to.ascii = java_times, True
        self._max_bytes, self._likely_rows = max_column_bytes, likely_rows
        self._key, self._value, self._names, self._values, self._lists = (
            Column(), Column(), Column(), Column(), Column())
        self._offsets, self._timestamps, self._types = Block(), Block(), Block()

    @property
    def rows(self):
        return self._to.rows

    @property
    def full(self):
        return bool(self._to.full)

    def append(self, Cursor cursor not None, int64_t max_rows, int64_t end_offset=INT64_MAX, int64_t waiting_bytes=0):
        cdef int64_t before = self._to.rows
        cdef int64_t most_rows = before + min(max_rows, INT64_MAX - before)
        while (cursor._left and cursor._error is None and self._to.rows < most_rows and cursor.position < end_offset
               and not self._to.full):
            if cursor._legacy is not None:
                self._append_legacy(cursor, end_offset)
            elif cursor._unpack():
                self._append_batch(cursor, most_rows, end_offset, waiting_bytes)
        if (cursor._error is not None and self._to.rows == before and max_rows > 0 and not self._to.full
                and cursor.position < end_offset):
            raise CorruptRecordError(cursor._error)
        return self._to.rows - before

    cdef int _append_batch(self, Cursor cursor, int64_t most_rows, int64_t end_offset,
                           int64_t waiting_bytes) except -1:
        # What is left of one batch, or a part of it.
        cdef Progress *to = &self._to
        cdef Origin origin = cursor._origin  # so that the bytes stay while the GIL is free
        cdef const uint8_t *p = cursor._next
        cdef const uint8_t *end = cursor._end
        cdef int64_t before = to.rows, left = cursor._left
        cdef bint by_broker = origin.stamp_type == 2
        cdef Py_ssize_t size = max(end - p, 1)
        cdef int64_t count = max(min(left, size // 7 + 1, most_rows - before), 1)  # a record has 7 bytes at least
        cdef double times = max(waiting_bytes / <double> size, (self._likely_rows - before) / <double> count)
        times = min(times, (most_rows - before) / <double> count, self._max_bytes / <double> size)
        if count < left and cursor._fetch_offset <= cursor._base_offset:  # else some are skipped
            size = behind(p, end, count) - p
        self._reserve(count, size, times)
        to.left, to.position = left, cursor.position
        cursor._left = 0
        with nogil:
            fill(to, &p, end, cursor._base_offset, cursor._last_offset, cursor._base_timestamp, by_broker,
                 cursor._broker_time, cursor._fetch_offset, end_offset, most_rows, self._max_bytes)
        cursor._next, cursor._left, cursor.position = p, to.left, to.position
        self._settle(to.rows - before, by_broker if to.java_times else origin.stamp_type)
        if to.code:
            cursor._fail(reason_of(to.code))
            to.code = FINE
        elif to.left == 0:
            cursor._finish()
        return 0

    cdef int _append_legacy(self, Cursor cursor, int64_t end_offset) except -1:
        # One record of a message set, which has no headers.
        cdef Progress *to = &self._to
        cdef const uint8_t *key = NULL
        cdef const uint8_t *value = NULL
        cdef int64_t key_size = IS_NULL, value_size = IS_NULL, size, timestamp
        old = next(cursor._legacy)
        if old.offset >= cursor._fetch_offset:
            key_held = point_at(old.key, "key", &key, &key_size)
            value_held = point_at(old.value, "value", &value, &value_size)
            size = ROW_COST + max(key_size, 0) + max(value_size, 0)
            if old.offset >= end_offset or (to.total_bytes + size > self._max_bytes and to.rows):
                cursor._legacy = chain((old,), cursor._legacy)
                cursor.position = old.offset
                to.full = True
                return 0
            kind, timestamp = old.timestamp
            if to.java_times and kind == 0:
                timestamp = -1
            self._reserve(1, max(key_size, 0) + max(value_size, 0), 1.0)
            to.total_bytes += size
            to.position = cursor.position
            if to.want_key:
                put_value(&to.key, key, key_size)
            if to.want_value:
                put_value(&to.value, value, value_size)
            if to.want_headers:
                to.lists.nulls += 1
                to.lists.rows += 1
                to.lists.offsets[to.lists.rows] = <int32_t> to.names.rows
            end_row(to, old.offset, timestamp)
            cursor.position = to.position
            self._settle(1, kind - 1 if to.java_times else kind)
        cursor._left -= 1
        if cursor._left == 0:
            cursor._next = cursor._end = NULL
            cursor._finish()
        return 0

    cdef int _reserve(self, Py_ssize_t count, Py_ssize_t size, double times) except -1:
        # Room for so many rows, with so many bytes of keys and values, and for the headers that found none before.
        # Likely are so many times as many rows.
        cdef Progress *to = &self._to
        cdef Py_ssize_t headers = 0, header_bytes = 0, likely = <Py_ssize_t> (times * count)
        to.key_room = to.value_room = INT64_MAX
        if to.want_key:
            self._key.reserve(count, size, &to.key, likely)
            to.key_room = self._key.data.capacity
        if to.want_value:
            self._value.reserve(count, size, &to.value, likely, <Py_ssize_t> (times * size))  # most of all bytes
            to.value_room = self._value.data.capacity
        if to.want_headers:
            if to.need_headers:
                headers, header_bytes = to.need_headers + SPARE_HEADERS, to.need_bytes + SPARE_BYTES
                to.need_headers = to.need_bytes = 0
            self._lists.reserve(count, 0, &to.lists, likely)
            self._names.reserve(headers, header_bytes, &to.names)
            self._values.reserve(headers, header_bytes, &to.values)
            to.header_room = to.names.rows + min(self._names.rows_left(), self._values.rows_left())
            to.header_bytes = to.names.used + to.values.used + min(
                self._names.data.capacity - to.names.used, self._values.data.capacity - to.values.used)
        self._offsets.reserve(8 * count, False, 8 * likely)
        self._timestamps.reserve(8 * count, False, 8 * likely)
        self._types.reserve(4 * count, False, likely)
        to.offsets = <int64_t *> self._offsets.start
        to.timestamps = <int64_t *> self._timestamps.start
        return 0

    cdef int _settle(self, int64_t more, int32_t kind) except -1:
        # So many rows were filled, all with one type of timestamp.
        cdef Progress *to = &self._to
        cdef int64_t row
        if to.want_key:
            self._key.settle(&to.key)
        if to.want_value:
            self._value.settle(&to.value)
        if to.want_headers:
            self._lists.settle(&to.lists)
            self._names.settle(&to.names)
            self._values.settle(&to.values)
        if to.java_times:
            for row in range(to.rows - more, to.rows):
                (<int32_t *> self._types.start)[row] = kind
        elif more:
            memset(self._types.start + to.rows - more, kind, more)
        self._types.used = to.rows * (4 if to.java_times else 1)
        self._offsets.used = self._timestamps.used = 8 * to.rows
        return 0

    def finish(self, int64_t next_offset=-1):
        from headrace.records.columns.columns import Columns, HeaderColumn

        cdef Progress *to = &self._to
        headers = None
        if to.want_headers:
            self._lists.offsets.trim()
            names = self._names if to.ascii else as_text(self._names)
            headers = HeaderColumn(self._lists.validity if to.lists.nulls else None, self._lists.offsets,
                                   names.finish(), self._values.finish(), self._names.rows)
        for block in (self._offsets, self._timestamps, self._types):
            (<Block> block).trim()
        return Columns(to.rows, next_offset, self._key.finish() if to.want_key else None,
                       self._value.finish() if to.want_value else None, self._offsets, self._timestamps, self._types,
                       headers)


def read_columns(data, topic, int32_t partition, int64_t fetch_offset, int64_t end_offset, *, bint want_key=True,
                 bint want_value=True, bint want_headers=False, int64_t max_rows=<int64_t> 1 << 31,
                 bint check_crcs=True, aborted=None, max_decompressed_bytes=MAX_DECOMPRESSED_BYTES,
                 int64_t max_column_bytes=MAX_COLUMN_BYTES):
    """Read the records from `fetch_offset` up to but not including `end_offset` into buffers of Arrow's layout."""
    cursor = data if isinstance(data, Cursor) else Cursor(
        data, topic, partition, fetch_offset, check_crcs=check_crcs, aborted=aborted,
        max_decompressed_bytes=max_decompressed_bytes)
    builder = ColumnBuilder(want_key=want_key, want_value=want_value, want_headers=want_headers, java_times=True,
                            max_column_bytes=max_column_bytes)
    while builder.rows < max_rows and builder.append(cursor, max_rows - builder.rows, end_offset):
        pass
    return builder.finish(min(cursor.position, end_offset))


# Columns for other libraries: Arrow's C data interface in the capsules of its Python protocol, over the same memory.
#
# What is exported is described by tuples, which `headrace.records.columns.arrow_batch` makes:
#     a type: (format, name, nullable, children, dictionary or None)
#     an array: (rows, nulls, buffers or None, children, dictionary or None)
# Source: https://arrow.apache.org/docs/format/CDataInterface.html, and CStreamInterface.html.

cdef enum:
    NULLABLE = 2


cdef struct ArrowSchema:
    const char *format
    const char *name
    const char *metadata
    int64_t flags
    int64_t n_children
    ArrowSchema **children
    ArrowSchema *dictionary
    void (*release)(ArrowSchema *) noexcept nogil
    void *private_data


cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void **buffers
    ArrowArray **children
    ArrowArray *dictionary
    void (*release)(ArrowArray *) noexcept nogil
    void *private_data


cdef struct ArrowStream:
    int (*get_schema)(ArrowStream *, ArrowSchema *) noexcept nogil
    int (*get_next)(ArrowStream *, ArrowArray *) noexcept nogil
    const char *(*get_last_error)(ArrowStream *) noexcept nogil
    void (*release)(ArrowStream *) noexcept nogil
    void *private_data


ctypedef fused Exported:
    ArrowSchema
    ArrowArray


cdef void *zeros(size_t count, size_t size) except NULL:
    cdef void *made = calloc(max(count, <size_t> 1), size)
    if made == NULL:
        raise MemoryError
    return made


cdef void let_go(void *held) noexcept nogil:
    # Others release what they got on any of their threads, also when Python has ended.
    if held != NULL and Py_IsInitialized():
        with gil:
            Py_XDECREF(<PyObject *> held)


cdef void release_parts(Exported *parent) noexcept nogil:
    # Children may have been moved away by whoever took them.
    cdef int64_t at
    for at in range(parent.n_children):
        if parent.children[at].release != NULL:
            parent.children[at].release(parent.children[at])
        free(parent.children[at])
    free(parent.children)
    if parent.dictionary != NULL:
        if parent.dictionary.release != NULL:
            parent.dictionary.release(parent.dictionary)
        free(parent.dictionary)


cdef void release_schema(ArrowSchema *schema) noexcept nogil:
    release_parts(schema)
    let_go(schema.private_data)
    schema.release = NULL


cdef void release_array(ArrowArray *array) noexcept nogil:
    release_parts(array)
    free(array.buffers)
    let_go(array.private_data)
    array.release = NULL


cdef int fill_schema(ArrowSchema *to, tuple kind) except -1:
    # The texts are those of the tuple, which is held.
    memset(to, 0, sizeof(ArrowSchema))
    text, name, nullable, children, dictionary = kind
    Py_INCREF(kind)
    to.private_data = <void *> kind
    to.release = release_schema
    to.format, to.name = PyBytes_AS_STRING(text), PyBytes_AS_STRING(name)
    to.flags = NULLABLE if nullable else 0
    try:
        to.children = <ArrowSchema **> zeros(len(children), sizeof(ArrowSchema *))
        for child in children:
            to.children[to.n_children] = <ArrowSchema *> zeros(1, sizeof(ArrowSchema))
            to.n_children += 1
            fill_schema(to.children[to.n_children - 1], child)
        if dictionary is not None:
            to.dictionary = <ArrowSchema *> zeros(1, sizeof(ArrowSchema))
            fill_schema(to.dictionary, dictionary)
    except BaseException:
        release_schema(to)
        raise
    return 0


cdef int fill_array(ArrowArray *to, tuple array) except -1:
    cdef Pinned pinned
    memset(to, 0, sizeof(ArrowArray))
    to.length, to.null_count, buffers, children, dictionary = array
    cdef list held = []
    Py_INCREF(held)
    to.private_data = <void *> held
    to.release = release_array
    try:
        to.buffers = <const void **> zeros(len(buffers), sizeof(void *))
        for buffer in buffers:
            if buffer is not None:
                pinned = Pinned(buffer)
                held.append(pinned)
                to.buffers[to.n_buffers] = pinned.start
            to.n_buffers += 1
        to.children = <ArrowArray **> zeros(len(children), sizeof(ArrowArray *))
        for child in children:
            to.children[to.n_children] = <ArrowArray *> zeros(1, sizeof(ArrowArray))
            to.n_children += 1
            fill_array(to.children[to.n_children - 1], child)
        if dictionary is not None:
            to.dictionary = <ArrowArray *> zeros(1, sizeof(ArrowArray))
            fill_array(to.dictionary, dictionary)
    except BaseException:
        release_array(to)
        raise
    return 0


# A stream of one array. Its state is a list: the type, and the array until it was taken.


cdef int stream_schema(ArrowStream *stream, ArrowSchema *to) noexcept with gil:
    try:
        fill_schema(to, (<list> stream.private_data)[0])
    except BaseException:
        return ENOMEM
    return 0


cdef int stream_next(ArrowStream *stream, ArrowArray *to) noexcept with gil:
    cdef list state = <list> stream.private_data
    try:
        memset(to, 0, sizeof(ArrowArray))  # released: the end of the stream
        if len(state) > 1:
            fill_array(to, state[1])
            state.pop()
    except BaseException:
        return ENOMEM
    return 0


cdef const char *stream_error(ArrowStream *stream) noexcept nogil:
    return NULL


cdef void release_stream(ArrowStream *stream) noexcept nogil:
    let_go(stream.private_data)
    stream.release = NULL


# Capsules. One that nobody took releases what it holds.


cdef void drop_schema(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void drop_array(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *> PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef void drop_stream(object capsule) noexcept:
    cdef ArrowStream *stream = <ArrowStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


def schema_capsule(tuple kind not None):
    """A type as an "arrow_schema"."""
    cdef ArrowSchema *schema = <ArrowSchema *> zeros(1, sizeof(ArrowSchema))
    capsule = PyCapsule_New(schema, "arrow_schema", drop_schema)
    fill_schema(schema, kind)
    return capsule


def array_capsule(tuple array not None):
    """An array as an "arrow_array"."""
    cdef ArrowArray *made = <ArrowArray *> zeros(1, sizeof(ArrowArray))
    capsule = PyCapsule_New(made, "arrow_array", drop_array)
    fill_array(made, array)
    return capsule


def stream_capsule(tuple kind not None, tuple array not None):
    """One array as an "arrow_array_stream"."""
    cdef ArrowStream *stream = <ArrowStream *> zeros(1, sizeof(ArrowStream))
    capsule = PyCapsule_New(stream, "arrow_array_stream", drop_stream)
    cdef list state = [kind, array]
    Py_INCREF(state)
    stream.private_data = <void *> state
    stream.get_schema, stream.get_next = stream_schema, stream_next
    stream.get_last_error, stream.release = stream_error, release_stream
    return capsule
