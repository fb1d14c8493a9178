# Bytes into Arrow's buffers, and back. See the plain twin in `headrace.records.columns.columns`.

cdef enum:
    ROW_COST = 28  # bytes of a row in the columns of a fixed size and of offsets, so that empty records cost as well
    HEADER_COST = 8  # offsets of a header's name and value


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

    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size, Sink *sink) except -1:
        self.validity.used = (self.rows + 7) // 8
        self.validity.reserve(rows // 8 + 2, True)
        self.offsets.reserve(4 * rows)
        self.data.reserve(size)
        sink.validity = self.validity.start
        sink.offsets = <int32_t *> self.offsets.start
        sink.data = self.data.start
        sink.used = self.data.used
        sink.rows = self.rows
        sink.nulls = self.nulls
        return 0

    cdef int settle(self, const Sink *sink) except -1:
        self.rows = sink.rows
        self.nulls = sink.nulls
        self.validity.used = (sink.rows + 7) // 8
        self.offsets.used = 4 * (sink.rows + 1)
        self.data.used = sink.used
        return 0

    cdef object finish(self):
        return BinaryColumn(self.validity if self.nulls else None, self.offsets, self.data)


cdef struct Progress:
    # The state of a fill, in and out.
    Sink key, value, lists, names, values
    int64_t *offsets
    int64_t *timestamps
    int32_t *types
    int64_t rows, left, position, total_bytes
    bint want_key, want_value, want_headers, ascii, full
    int code


cdef bint fill_headers(Progress *to, const Record *record) noexcept nogil:
    # False when someone wrote to the bytes after `read_record` had checked them.
    cdef const uint8_t *p = record.headers
    cdef const uint8_t *name = NULL
    cdef const uint8_t *value = NULL
    cdef int64_t name_size = 0, size = 0, index, at
    for index in range(record.header_count):
        p = read_field(p, record.end, &name, &name_size, &to.code)
        if p != NULL:
            p = read_field(p, record.end, &value, &size, &to.code)
        if p == NULL or name_size < 0:
            to.code = to.code or BAD_NAME
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


cdef void fill(Progress *to, const uint8_t **p, const uint8_t *end, int64_t base_offset, int64_t last_offset,
               int64_t base_timestamp, bint by_broker, int64_t broker_time, int64_t first, int64_t stop,
               int64_t max_rows, int64_t max_bytes) noexcept nogil:
    # Records of one batch into the columns, until it ends, `stop` is reached or a column is full.
    cdef Record record
    cdef int64_t offset
    cdef const uint8_t *before
    while to.left and to.rows < max_rows:
        before = p[0]
        to.code = read_record(p, end, last_offset - base_offset, base_timestamp, &record)
        if to.code:
            return
        offset = base_offset + record.delta
        if offset < first:
            to.left -= 1
            continue
        to.total_bytes += ROW_COST + (record.key_size if record.key_size > 0 else 0) + (
            record.value_size if record.value_size > 0 else 0)
        if record.header_count:
            to.total_bytes += header_bytes(&record)
        if offset >= stop or (to.total_bytes > max_bytes and to.rows):
            p[0] = before
            to.position = offset
            to.full = True
            return
        if to.want_headers and not fill_headers(to, &record):
            return
        to.left -= 1
        if to.want_key:
            put_value(&to.key, record.key, record.key_size)
        if to.want_value:
            put_value(&to.value, record.value, record.value_size)
        to.offsets[to.rows] = offset
        to.timestamps[to.rows] = headrace_micros(broker_time if by_broker else record.timestamp)
        to.types[to.rows] = by_broker
        to.rows += 1
        if offset >= to.position:
            to.position = offset + 1


def read_columns(data, topic, int32_t partition, int64_t fetch_offset, int64_t end_offset, *, bint want_key=True,
                 bint want_value=True, bint want_headers=False, int64_t max_rows=<int64_t> 1 << 31,
                 bint check_crcs=True, aborted=None, max_decompressed_bytes=MAX_DECOMPRESSED_BYTES,
                 int64_t max_column_bytes=MAX_COLUMN_BYTES):
    """Read the records from `fetch_offset` up to but not including `end_offset` into buffers of Arrow's layout."""
    cdef Cursor cursor = Cursor(data, topic, partition, fetch_offset, check_crcs=check_crcs, aborted=aborted,
                                max_decompressed_bytes=max_decompressed_bytes)
    cdef Column key = Column(), value = Column(), names = Column(), values = Column()
    cdef Block offsets = Block(), timestamps = Block(), types = Block(), lists = Block(), list_validity = Block()
    cdef Progress to
    cdef Py_ssize_t size, count
    memset(&to, 0, sizeof(Progress))
    to.want_key, to.want_value, to.want_headers, to.ascii = want_key, want_value, want_headers, True
    to.position = cursor.position
    lists.reserve(64, True)
    lists.used = 4
    if want_key or want_value:  # most of the bytes are one of the two: few reallocations
        value.data.reserve(cursor._pinned.size if want_value else 0)
    while cursor._left and cursor._error is None and to.rows < max_rows and to.position < end_offset and not to.full:
        if cursor._legacy is not None:
            return plain_read_columns(
                data, topic, partition, fetch_offset, end_offset, want_key=want_key, want_value=want_value,
                want_headers=want_headers, max_rows=max_rows, check_crcs=check_crcs, aborted=aborted,
                max_decompressed_bytes=max_decompressed_bytes, max_column_bytes=max_column_bytes)
        if not cursor._unpack():
            break
        size = cursor._end - cursor._next
        count = min(cursor._left, size // 7 + 1, max_rows - to.rows)  # a record has 7 bytes at least
        if want_key:
            key.reserve(count, size, &to.key)
        if want_value:
            value.reserve(count, size, &to.value)
        if want_headers:
            names.reserve(size // 2 + 1, size, &to.names)
            values.reserve(size // 2 + 1, size, &to.values)
            list_validity.reserve(count // 8 + 2, True)
            lists.reserve(4 * count)
            to.lists.validity = list_validity.start
            to.lists.offsets = <int32_t *> lists.start
        offsets.reserve(8 * count)
        timestamps.reserve(8 * count)
        types.reserve(4 * count)
        to.offsets = <int64_t *> offsets.start
        to.timestamps = <int64_t *> timestamps.start
        to.types = <int32_t *> types.start
        to.left = cursor._left
        with nogil:
            fill(&to, &cursor._next, cursor._end, cursor._base_offset, cursor._last_offset, cursor._base_timestamp,
                 cursor._origin.stamp_type == 2, cursor._broker_time, fetch_offset, end_offset, max_rows,
                 max_column_bytes)
        cursor._left = to.left
        if want_key:
            key.settle(&to.key)
        if want_value:
            value.settle(&to.value)
        if want_headers:
            names.settle(&to.names)
            values.settle(&to.values)
            list_validity.used = (to.rows + 7) // 8
            lists.used = 4 * (to.rows + 1)
        offsets.used = 8 * to.rows
        timestamps.used = 8 * to.rows
        types.used = 4 * to.rows
        if to.code:
            cursor._fail(reason_of(to.code))
        elif to.left == 0:
            cursor._finish()
            to.position = max(to.position, cursor.position)
    if cursor._error is not None and to.rows < max_rows and to.position < end_offset and not to.full:
        raise CorruptRecordError(cursor._error)
    return Columns(
        to.rows,
        min(to.position, end_offset),
        key.finish() if want_key else None,
        value.finish() if want_value else None,
        offsets,
        timestamps,
        types,
        HeaderColumn(list_validity if to.lists.nulls else None, lists, names.finish(), values.finish(), names.rows,
                     bool(to.ascii)) if want_headers else None,
    )


cdef struct Source:
    # An Arrow array to read from.
    const uint8_t *validity
    const uint8_t *offsets
    const uint8_t *data
    int64_t rows, size, first
    bint large, given


cdef object source_of(column, Source *source, list pins):
    # Look into an Arrow array's buffers; they stay in place as long as `pins` lives.
    cdef Pinned pinned
    source.given = column is not None
    source.validity = source.data = NULL
    source.size = 0
    if column is None:
        return None
    validity, offsets, data, source.first, source.large = column
    pinned = Pinned(offsets)
    pins.append(pinned)
    source.offsets = pinned.start
    source.rows = pinned.size // (8 if source.large else 4) - 1
    if validity is not None:
        pinned = Pinned(validity)
        pins.append(pinned)
        source.validity = pinned.start
        source.rows = min(source.rows, 8 * pinned.size)
    if data is not None:
        pinned = Pinned(data)
        pins.append(pinned)
        source.data = pinned.start
        source.size = pinned.size
    return None


cdef inline bint span(const Source *source, int64_t row, int64_t *begin, int64_t *end) except -1:
    # Where a row's bytes or entries begin and end; False for null.
    if row < 0 or source.first < 0 or row >= source.rows - source.first:
        raise IndexError("a row lies outside of its Arrow buffers")
    row += source.first
    if source.validity != NULL and not source.validity[row >> 3] >> (row & 7) & 1:
        return False
    if source.large:
        begin[0] = (<const int64_t *> source.offsets)[row]
        end[0] = (<const int64_t *> source.offsets)[row + 1]
    else:
        begin[0] = (<const int32_t *> source.offsets)[row]
        end[0] = (<const int32_t *> source.offsets)[row + 1]
    if begin[0] < 0 or end[0] < begin[0]:
        raise IndexError("the offsets of an Arrow array are damaged")
    return True


cdef inline int cell(const Source *source, int64_t row, const uint8_t **data, int64_t *size) except -1:
    cdef int64_t begin = 0, end = 0
    size[0] = IS_NULL
    if source.given and span(source, row, &begin, &end):
        if end > source.size:
            raise IndexError("the offsets of an Arrow array are damaged")
        data[0] = source.data + begin
        size[0] = end - begin
    return 0


cdef int header_cells(const Source *sources, int64_t row, Block block, Fields *fields, int64_t *size) except -1:
    # The headers of a row as they follow their count, in `block`.
    cdef int64_t begin = 0, end = 0, at, length = 0
    cdef const uint8_t *data = NULL
    cdef uint8_t *p
    cdef int part
    block.used = 0
    fields.header_count = 0
    fields.headers_size = 0
    if not span(&sources[0], row, &begin, &end):
        return 0
    for at in range(begin, end):
        for part in range(1, 3):
            cell(&sources[part], at, &data, &length)
            if part == 1 and length < 0:
                length = 0  # a name cannot be null
            block.reserve(SLACK + max(length, 0))
            p = write_bytes(block.start + block.used, data, length)
            block.used = p - block.start
            size[0] += max(length, 0)
    fields.headers = block.start
    fields.headers_size = block.used
    fields.header_count = end - begin
    return 0


cdef int put_values(RecordAccumulator buffer, const Source *values, int64_t *row, int64_t stop, int64_t now_ns,
                    teller) except -1:
    # Append rows of values alone from `row` on, as long as they only follow the one before: same turn, same batch, and
    # room for more. Any other row is left to `RecordAccumulator.put`, which sees to the rest: they must agree.
    cdef BufferPool budget = buffer._budget
    cdef const uint8_t *data = NULL
    cdef int64_t size = 0, cost, total = 0
    if buffer._by_lot == NEVER or buffer.sticky < 0 or (
            <uint64_t> (now_ns // 1_000_000 - buffer._turn_began_ms) >= <uint64_t> buffer._turn_ms):
        return 0
    slot = <object> PyList_GET_ITEM(buffer._slots, buffer.sticky)
    if slot is None:
        return 0
    cdef ClosedBatch batch = <ClosedBatch> slot
    cdef BatchBuilder builder = batch._builder
    if batch._teller is not teller or not builder.count:
        return 0
    cdef int64_t before = builder.count, used = builder._used, timestamp_ms = now_ns // 1_000_000
    cdef int64_t delta = <int64_t> (<uint64_t> timestamp_ms - <uint64_t> builder._base_timestamp)
    cdef int64_t rows = min(buffer._batch_count - 1 - max(buffer._turn_count, before),
                            budget.max_messages - budget.messages)
    cdef int64_t room = min(buffer._batch_bytes - buffer._turn_bytes,
                            min(builder._max_bytes, builder._data.capacity) - used)
    cdef int64_t budget_room = budget.max_bytes - budget.bytes
    stop = min(stop, row[0] + rows)
    try:
        while row[0] < stop:
            cell(values, row[0], &data, &size)
            cost = OVERHEAD + max(size, 0)
            if (size > buffer._message_bytes or builder._used - used + max(size, 0) + SLACK > room
                    or total + cost > budget_room):
                break
            builder.add_value(delta, data, size)
            total += cost
            row[0] += 1
    finally:
        rows = builder.count - before
        if rows:
            builder._max_timestamp = max(builder._max_timestamp, timestamp_ms)
        budget.messages += rows
        budget.bytes += total
        budget.ahead_bytes += total
        batch.cost_bytes += total
        batch.data_bytes += total
        buffer._turn_count += rows
        buffer._turn_bytes += builder._used - used
    return 0


def append_columns(RecordAccumulator buffer not None, int64_t start, int64_t stop, key, value, partitions, timestamps,
                   headers, teller=None):
    """Append rows of Arrow arrays to a topic's buffer, as many as the budget allows; returns how many."""
    cdef Source key_source, value_source
    cdef Source header_sources[3]
    cdef Fields fields
    cdef Pinned partition_view = None, timestamp_view = None
    cdef int64_t row, size, timestamp, now_ns = headrace_now_ns(), since_ns = now_ns
    cdef Py_ssize_t partition
    cdef list pins = []
    cdef Block block = Block()
    source_of(key, &key_source, pins)
    source_of(value, &value_source, pins)
    if headers is not None:
        for row in range(3):
            source_of(headers[row], &header_sources[row], pins)
    if not 0 <= start <= stop:
        raise IndexError(f"there are no rows {start} to {stop}")
    if partitions is not None:
        partition_view = Pinned(partitions)
        if partition_view.size // 4 < stop:
            raise IndexError("the column of partitions is too short")
    if timestamps is not None:
        timestamp_view = Pinned(timestamps)
        if timestamp_view.size // 8 < stop:
            raise IndexError("the column of timestamps is too short")
    memset(&fields, 0, sizeof(Fields))
    cdef BufferPool budget = buffer._budget
    cdef bint values_only = key is None and partitions is None and timestamps is None and headers is None
    row = start
    try:
        with cython.critical_section(buffer, budget):
            while row < stop:
                if values_only:
                    put_values(buffer, &value_source, &row, min(stop, row | 63), now_ns, teller)
                    if row == stop:
                        break
                if row & 63 == 63:
                    now_ns = headrace_now_ns()
                    if now_ns - since_ns >= TURN_NS:
                        with nogil:  # others have their turn, as between the lines of a Python program
                            pass
                        since_ns = now_ns = headrace_now_ns()
                cell(&key_source, row, &fields.key, &fields.key_size)
                cell(&value_source, row, &fields.value, &fields.value_size)
                size = max(fields.key_size, 0) + max(fields.value_size, 0)
                if headers is not None:
                    header_cells(header_sources, row, block, &fields, &size)
                partition = -1 if partition_view is None else (<const int32_t *> partition_view.start)[row]
                timestamp = 0 if timestamp_view is None else (<const int64_t *> timestamp_view.start)[row]
                if timestamp < 0:
                    raise ValueError(f"timestamp must not be negative: {timestamp}")
                if buffer.put(partition, timestamp, now_ns, &fields, size, None, teller) < 0:
                    break
                row += 1
    except Exception as refused:
        refused.appended = row - start
        raise
    return row - start
