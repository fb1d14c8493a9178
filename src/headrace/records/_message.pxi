# Message, and the bytes that it points into.

cdef enum:
    IS_NULL = -1
    IS_OBJECT = -2  # the field was given as an object


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


@cython.final
@cython.no_gc
cdef class Origin:
    # What the messages of one batch share.
    cdef object topic
    cdef object pinned
    cdef int32_t partition
    cdef int32_t leader_epoch
    cdef int stamp_type


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Message:
    """A record or an event. See the plain twin in `headrace.records.message`.

    A message points into the bytes of its batch and keeps them alive; key and value are made when asked for. The
    garbage collector does not look into messages: an object that is given to `set_value()` and refers back to the
    message would never be freed.
    """

    cdef Origin _origin
    cdef object _topic, _key, _value, _headers, _error, _latency
    cdef const uint8_t *_key_at
    cdef const uint8_t *_value_at
    cdef const uint8_t *_headers_at
    cdef Py_ssize_t _key_size, _value_size, _headers_size
    cdef int64_t _offset, _timestamp
    cdef int32_t _partition, _header_count
    cdef int _stamp_type, _leader_epoch

    def __init__(self, topic=None, partition=None, offset=None, key=None, value=None, headers=None, error=None,
                 timestamp=None, latency=None, leader_epoch=None):
        self._topic = topic
        self._partition = -1 if partition is None else partition
        self._offset = -1001 if offset is None else offset
        self._key = key
        self._value = value
        self._headers = headers
        self._error = error
        self._key_size = self._value_size = self._header_count = IS_OBJECT
        if timestamp is not None:
            self._stamp_type, self._timestamp = timestamp
        self._latency = latency
        self._leader_epoch = -1 if leader_epoch is None else leader_epoch

    def topic(self):
        return self._topic if self._origin is None else self._origin.topic

    def partition(self):
        cdef int32_t partition = self._partition if self._origin is None else self._origin.partition
        return partition if partition >= 0 else None

    def offset(self):
        return self._offset if self._offset >= 0 else None

    def key(self):
        if self._key_size >= 0:
            return PyBytes_FromStringAndSize(<const char *> self._key_at, self._key_size)
        return self._key if self._key_size == IS_OBJECT else None

    def value(self):
        if self._value_size >= 0:
            return PyBytes_FromStringAndSize(<const char *> self._value_at, self._value_size)
        return self._value if self._value_size == IS_OBJECT else None

    def headers(self):
        if self._header_count == IS_OBJECT:
            return self._headers
        if self._header_count == 0:
            return None
        return read_headers(self._headers_at, self._headers_at + self._headers_size, self._header_count)

    def timestamp(self):
        return (self._stamp_type, self._timestamp)

    def latency(self):
        return self._latency

    def error(self):
        return self._error

    def leader_epoch(self):
        return self._leader_epoch if self._leader_epoch >= 0 else None

    def set_topic(self, topic):
        if self._origin is not None:
            self._partition = self._origin.partition
            self._own_bytes()
        self._topic = topic

    def set_key(self, key):
        self._key = key
        self._key_size = IS_OBJECT

    def set_value(self, value):
        self._value = value
        self._value_size = IS_OBJECT

    def set_headers(self, headers):
        self._headers = headers
        self._header_count = IS_OBJECT

    def set_error(self, error):
        self._error = error

    cdef int _own_bytes(self) except -1:
        # Take everything out of the batch, so that the message no longer needs it.
        key, value, headers = self.key(), self.value(), self.headers()
        self.set_key(key)
        self.set_value(value)
        self.set_headers(headers)
        self._origin = None
        return 0

    cdef tuple _fields(self):
        cdef int32_t partition = self._partition if self._origin is None else self._origin.partition
        return (self.topic(), partition, self._offset, self.key(), self.value(), self.headers(), self._error,
                self.timestamp(), self._latency, self._leader_epoch)

    def __len__(self):
        if self._value_size >= 0:
            return self._value_size
        return 0 if self._value_size == IS_NULL or self._value is None else len(self._value)

    def __bool__(self):
        return True

    def __eq__(self, other):
        if isinstance(other, Message):
            return (<Message> self)._fields() == (<Message> other)._fields()
        return NotImplemented

    __hash__ = None

    def __reduce__(self):
        return (rebuild, self._fields())

    def __repr__(self):
        if self._error is not None:
            return f"Message{{{self.topic()}[{self.partition()}]@{self.offset()},error={self._error}}}"
        return (f"Message{{{self.topic()}[{self.partition()}]@{self.offset()},key={self.key()!r:.60},"
                f"{len(self)} bytes}}")


cdef inline Message new_message(Origin origin, int64_t offset, int64_t timestamp, const Record *record):
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
