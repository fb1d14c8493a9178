# Bytes into records. Errors are small numbers while the GIL may be released, and become exceptions in `reason_of`.

cdef enum:
    FINE = 0
    BAD_NUMBER = 1
    BAD_LENGTH = 2
    BAD_PLACE = 3
    BAD_FIELD = 4
    BAD_COUNT = 5
    BAD_NAME = 6
    BAD_END = 7
    BAD_REST = 8

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


cdef struct Head:
    # A batch's header.
    int64_t base_offset, last_offset, base_timestamp, max_timestamp, producer_id
    int32_t leader_epoch, epoch, base_sequence, count, attributes, magic
    Py_ssize_t size


cdef int read_head(const uint8_t *p, Py_ssize_t left, Head *head, object topic, object partition) except -1:
    # 1 for a whole batch, 2 for a message of an old format, 0 at the end.
    cdef int64_t length, delta
    if left < 17:
        return 0
    if <signed char> p[16] < 2 and p[16] < 128:
        return 2
    head.base_offset = <int64_t> headrace_get(p, 8)
    head.magic = <signed char> p[16]
    if head.magic != 2:
        raise CorruptRecordError(
            f"batch at offset {head.base_offset} of {topic}[{partition}]: unknown format {head.magic}")
    if left < HEADER:
        return 0
    length = <int32_t> headrace_get(p + 8, 4)
    head.leader_epoch = <int32_t> headrace_get(p + 12, 4)
    head.attributes = <int32_t> <short> headrace_get(p + 21, 2)
    delta = <int32_t> headrace_get(p + 23, 4)
    head.base_timestamp = <int64_t> headrace_get(p + 27, 8)
    head.max_timestamp = <int64_t> headrace_get(p + 35, 8)
    head.producer_id = <int64_t> headrace_get(p + 43, 8)
    head.epoch = <short> headrace_get(p + 51, 2)
    head.base_sequence = <int32_t> headrace_get(p + 53, 4)
    head.count = <int32_t> headrace_get(p + 57, 4)
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
    cdef uint32_t expected = <uint32_t> headrace_get(p + 17, 4)
    cdef uint32_t found = sum_bytes(p + SUMMED_FROM, head.size - SUMMED_FROM)
    if found != expected:
        raise CorruptRecordError(f"batch at offset {head.base_offset} of {topic}[{partition}]: checksum is "
                                 f"{found:#010x}, header says {expected:#010x}")
    return 0


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
            info = message_set.read_info(BatchInfo._make, memoryview(data), at, topic, partition)
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
            message_set.check_sum(memoryview(data), at, info.size, topic, partition)
        elif read_head(pinned.start + at, pinned.size - at, &head, topic, partition) == 1:
            # Read again, and checked again: the bytes may be someone's who writes to them.
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
        # A record has 7 bytes at least; what the header says may be far more than there is.
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
        info = message_set.read_info(BatchInfo._make, view, self._at, self._topic, self._partition)
        if info is None:
            return False
        self._at += info.size
        self._last_offset = info.last_offset
        if info.last_offset < self._fetch_offset:
            return True
        if self._check_crcs:
            message_set.check_sum(view, info.position, info.size, self._topic, self._partition)
        self._left, _, self._legacy = message_set.read_set(view, info.position, self._limit, self._check_crcs)
        return False

    cdef bint _is_visible(self, const Head *head) except -1:
        cdef Py_ssize_t begin
        if self._aborted is not None:
            while self._aborted and self._aborted[len(self._aborted) - 1][1] <= head.last_offset:
                self._aborting.add(self._aborted.pop()[0])
        if head.attributes & CONTROL:
            if self._aborting and head.producer_id in self._aborting:
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
