# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""The append path in C. It has the names and results of the plain twin, which documents them.

    BufferPool             how much may wait
    ClosedBatch            a batch that left its accumulator, and the reports of its records
    ReportRun              those reports while they are served
    DeliveryFuture         what becomes of a record, for asyncio
    RecordAccumulator      where a topic's records go
    OpenBatches            the open batches of all topics
    Alarm                  tells a loop when the first of them has lingered
    FutureCondition        what guards a future
    DirectLane, ...        the way of a batch that its own thread sends
    TlsPipe                a TLS connection without its socket, lent with it
    DirectReplies          the replies to those batches, where threads that wait for reports take them
    FetchLanes, FetchLane  the way of fetches whose replies are taken by the thread that waits for them
    append_columns         Arrow's buffers into an accumulator
    ProduceFastPath, ...   `produce()` with what it needs at hand
    SpinWait               to see at once what another thread has done

Batches, messages and the format of a record are `headrace.records._batch`'s, cimported through its .pxd; the docstring
there lists what crosses. What is shared between threads is guarded by critical sections, which cost nothing where the
GIL does the same. Others have a turn every `TURN_NS` while columns are appended.
"""

import os
import ssl
from _thread import RLock, allocate_lock
from operator import length_hint
from time import monotonic

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.pythread cimport (
    NOWAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_get_thread_ident,
    PyThread_release_lock,
    PyThread_type_lock,
)
from cpython.ref cimport Py_INCREF
from libc.errno cimport EINTR, errno
from libc.math cimport INFINITY, ceil
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from headrace.records._batch cimport (
    CRC32,
    FINE,
    FNV1A,
    HEADER,
    IS_NULL,
    MURMUR2,
    NO_HASH,
    SLACK,
    Batch,
    BatchBuilder,
    Block,
    Fields,
    Head,
    MemoryPool,
    Message,
    Origin,
    Pinned,
    Record,
    add_headers,
    get_number,
    hash_key,
    new_message,
    point_at,
    put_number,
    read_field,
    read_head,
    read_record,
    write_bytes,
    write_uvarint,
)

from headrace.buffers.buffer_pool import queue_full
from headrace.buffers.delivery_future import DoneCallback
from headrace.buffers.refusals import count_parts, milliseconds, no_partition, sums_of, too_large
from headrace.errors import CorruptRecordError, KafkaException
from headrace.records.hashing import PARTITIONERS
from headrace.records.message import encode_headers

cdef extern from "Python.h":
    ctypedef struct PyObject:
        pass
    int PyErr_CheckSignals() except -1
    int PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds, int interrupted) nogil

cdef enum:
    SEND_RETURN = 0  # PySendResult
    SEND_ERROR = -1

cdef extern from "_buffer.h":
    int64_t headrace_now_ns() nogil
    void headrace_set_send(object type, int (*send)(PyObject *, PyObject *, PyObject **) except SEND_ERROR)
    int headrace_load(const int *number) nogil
    void headrace_store(int *number, int value) nogil
    void headrace_add(int *number, int value) nogil
    void headrace_watch(const int *number, int value, int64_t timeout_ns) nogil
    double headrace_clock() nogil
    enum:
        MOST_EVENTS "HEADRACE_MOST_EVENTS"  # that the loop is told of at a time
        HAS_EPOLL "HEADRACE_HAS_EPOLL"
    cdef struct headrace_turns:
        int under_way
    int headrace_in_turn
    void headrace_begin_turn(headrace_turns *turns) nogil
    void headrace_end_turn(headrace_turns *turns) nogil
    void headrace_await_turn(headrace_turns *turns, int under_way, int64_t timeout_ns) nogil
    int headrace_epoll(int epoll, int milliseconds, int *files, int *ready) nogil
    void headrace_pause(int64_t nanoseconds) nogil
    void headrace_drain(int wake) nogil
    int headrace_alarm() nogil
    void headrace_set_alarm(int file, int64_t at_ns) nogil
    int headrace_close "close" (int file) nogil
    enum:
        MOST_FILES "HEADRACE_MOST_FILES"  # that a thread waits for at a time
    int headrace_poll(const int *files, int count, double seconds) nogil
    int64_t headrace_receive(int file, uint8_t *data, size_t size) nogil
    int64_t headrace_send(int file, const uint8_t *head, size_t head_size, const uint8_t *data, size_t size,
                          const uint8_t *tail, size_t tail_size) nogil

cdef enum:
    ASIDE_NS = 1_000_000  # the longest that a caller waits for the end of a loop's turn
    PAUSE_NS = 50_000  # as long as a step of a loop
    PAUSE_CALLS = 64
    FEW = 64
    HAND_OVER_NS = 10_000  # what a thread that watches needs to get the GIL that another has let go
    TURN_NS = 10_000_000  # 10 ms, longer than the switch interval, 5 ms, after which a waiting thread asks for the GIL
    AHEAD = 16777216
    TLS_PIECE = 16384  # the longest that is in one record of TLS
    TLS_QUEUED = 65536
    TLS_PATIENCE_US = 1000000
    OVERHEAD = 16
    CALLBACK = 512
    WOKEN = 1

    NEVER = 0
    NULL_KEYS = 1
    EMPTY_KEYS = 2
    ALWAYS = 3
    ANY_KEYS = 4

    NUMBERS = 12  # of the numbers of a record, in bytes: about as many as there are at most

    DIRECT = 16384  # the largest batch that is sent by its own thread
    STEM = 1024  # the longest head of its request, which is made on the stack
    START = 12  # length, API, version, correlation id
    OFFSETS = 24  # base offset, log append time, log start offset
    REPLY = 65536  # the largest reply that is taken by the thread that waits for it
    MOST_PARTITIONS = 16  # of such a reply
    REPLIES = 2048  # the same for replies to direct batches, several of which may come together
    QUIET_S = 30  # a partition that was not used for so long goes the general way, which looks whether it is known still

OVERHEAD_BYTES = OVERHEAD
CALLBACK_BYTES = CALLBACK
WAKE = WOKEN

cdef dict HASHES = {"random": NO_HASH, "consistent": CRC32, "consistent_random": CRC32, "murmur2": MURMUR2,
                    "murmur2_random": MURMUR2, "fnv1a": FNV1A, "fnv1a_random": FNV1A, "uniform_sticky": NO_HASH}
cdef dict BY_LOT = {"never": NEVER, "null": NULL_KEYS, "empty": EMPTY_KEYS, "always": ALWAYS, "any": ANY_KEYS}


@cython.final
cdef class BufferPool:
    """How many records, and bytes of them, may wait in a producer at one time."""

    cdef readonly int64_t max_messages, max_bytes, messages, bytes, ahead_bytes
    cdef MemoryPool memory

    def __init__(self, int64_t max_messages, int64_t max_bytes):
        self.max_messages = max_messages or <int64_t> 1 << 62
        self.max_bytes = max_bytes
        self.memory = MemoryPool()

    @property
    def is_far_ahead(self):
        return self.ahead_bytes > AHEAD

    @property
    def is_roomy(self):
        return self.messages <= self.max_messages - self.max_messages // 16 and (
            self.bytes <= self.max_bytes - self.max_bytes // 16)

    @cython.critical_section
    def take(self, int64_t messages, int64_t size_bytes):
        return self.charge(messages, size_bytes)

    @cython.critical_section
    def admit(self, queue, record, int64_t size_bytes):
        if not self.charge(1, size_bytes):
            return False
        queue.append(record)
        return True

    @cython.critical_section
    def release(self, int64_t messages, int64_t size_bytes):
        self.messages -= messages
        self.bytes -= size_bytes

    @cython.critical_section
    def answer(self, int64_t data_bytes):
        self.ahead_bytes -= data_bytes

    cdef inline void recount(self, int64_t counted_bytes, int64_t size_bytes) noexcept:
        self.bytes += size_bytes - counted_bytes

    cdef inline bint fits(self, int64_t messages, int64_t size_bytes) noexcept:
        return not self.messages or (self.messages + messages <= self.max_messages
                                     and self.bytes + size_bytes <= self.max_bytes)

    cdef inline void count_in(self, int64_t messages, int64_t size_bytes) noexcept:
        self.messages += messages
        self.bytes += size_bytes

    cdef inline bint charge(self, int64_t messages, int64_t size_bytes) noexcept:
        if not self.fits(messages, size_bytes):
            return False
        self.count_in(messages, size_bytes)
        return True


@cython.final
cdef class ClosedBatch:
    """A batch that was taken out of a `RecordAccumulator`: it takes no more records and is not sealed yet."""

    cdef BatchBuilder _builder
    cdef double *_appended_at  # of each record in `reports`
    cdef Py_ssize_t _times
    cdef readonly object topic, reports, runs
    cdef object _listener  # of the last record
    cdef readonly bint has_deliveries
    cdef Py_ssize_t _deliveries  # how many of them the cost of this batch holds
    cdef list _watching  # those of them that are awaited
    cdef list _moved  # where each record is since the batch was divided: (batch, index)
    cdef object _result, _error
    cdef int64_t _base_offset, _stamp_ms
    cdef int _stamp_type
    cdef double _settled_at
    cdef Origin _origin  # of the messages of records that were asked for
    cdef Py_ssize_t *_places  # where those records begin
    cdef Py_ssize_t _placed  # how many places are known
    cdef readonly int32_t partition
    cdef readonly double opened_at
    cdef int64_t _opened_ns  # since the epoch, at the same moment
    cdef readonly int64_t cost_bytes, data_bytes

    def __cinit__(self, Py_ssize_t max_bytes=0, Py_ssize_t max_count=0):
        self._builder = BatchBuilder.__new__(BatchBuilder, max_bytes, max_count)

    def __dealloc__(self):
        free(self._appended_at)
        free(self._places)

    @property
    def count(self):
        return self._builder.count

    @property
    def size_bytes(self):
        return self._builder._used

    def seal(self, int codec=0, int level=-1):
        return self._builder.seal(codec, level)

    def split(self, parts):
        cdef list made = [self.sibling() for _ in range(count_parts(parts, self._builder.count))]
        cdef BatchBuilder builder = self._builder
        cdef ClosedBatch batch
        cdef Record record
        cdef Fields fields
        cdef int64_t size
        cdef Py_ssize_t index = 0
        cdef dict runs = dict(self.runs or ())
        cdef Pinned pinned = Pinned(builder.records())
        cdef const uint8_t *p = pinned.start + min(HEADER, pinned.size)
        cdef const uint8_t *end = pinned.start + min(builder._used, pinned.size)
        cdef list moved = []
        listener = None
        for part in parts:
            if read_record(&p, end, builder.count, builder._base_timestamp, &record):
                raise SystemError("a batch in memory was overwritten")
            batch = <ClosedBatch> made[part]
            fields = Fields(record.key, record.key_size, record.value, record.value_size,
                            record.headers, record.end - record.headers, record.header_count)
            batch._builder.add(record.timestamp, &fields)
            size = OVERHEAD + max(record.key_size, 0) + max(record.value_size, 0) + headers_bytes(&record)
            batch.data_bytes += size
            batch.cost_bytes += size
            if self.reports is not None and index < len(self.reports) and self.reports[index] is not None:
                batch.report_to(self.reports[index], self._appended_at[index])
                batch.cost_bytes += CALLBACK
            listener = runs.get(index, listener)
            if listener is not batch._listener:
                batch.begin_run(listener)
            if self.has_deliveries:
                moved.append((batch, batch._builder.count - 1))
                batch.has_deliveries = True
            index += 1
        if self.has_deliveries:
            self._moved = moved
            batch = <ClosedBatch> made[0]  # which records have one is not known: only the sum has to be right
            batch._deliveries = self._deliveries
            batch.cost_bytes += CALLBACK * self._deliveries
            for delivery in self._watching or ():
                (<DeliveryFuture> delivery).is_settled()  # finds its new place
                (<DeliveryFuture> delivery)._batch.watch(delivery)
            self._watching = None
        return made

    cdef ClosedBatch sibling(self):
        # An empty batch of any size beside this one.
        cdef ClosedBatch batch = ClosedBatch.__new__(ClosedBatch, INT32_MAX, INT32_MAX)
        batch.topic = self.topic
        batch.partition = self.partition
        batch.opened_at = self.opened_at
        return batch

    cdef int report_to(self, callback, double appended_at) except -1:
        # Keep the callback of the last record.
        cdef Py_ssize_t index = self._builder.count - 1
        cdef double *grown
        if self.reports is None:
            self.reports = []
        cdef list reports = self.reports
        if index >= self._times:
            grown = <double *> realloc(self._appended_at, max(2 * self._times, index + 1, 64) * sizeof(double))
            if grown == NULL:
                raise MemoryError
            self._appended_at = grown
            self._times = max(2 * self._times, index + 1, 64)
        while PyList_GET_SIZE(reports) < index:
            reports.append(None)
        self._appended_at[index] = appended_at
        reports.append(callback)
        return 0

    cdef int deliver_to(self, DeliveryFuture delivery, double appended_at) except -1:
        # The delivery is about the last record. It knows the batch, so that the batch need not know it.
        delivery._batch = self
        delivery._index = self._builder.count - 1
        delivery._appended_at = appended_at
        self.has_deliveries = True
        self._deliveries += 1
        return 0

    cdef int watch(self, delivery) except -1:
        if self._watching is None:
            self._watching = []
        self._watching.append(delivery)
        return 0

    cdef int begin_run(self, listener) except -1:
        # The last record is the first of other rows than the one before.
        if self.runs is None:
            self.runs = []
        self.runs.append((self._builder.count - 1, listener))
        self._listener = listener
        return 0

    def messages(self, int64_t base_offset, int timestamp_type, int64_t timestamp_ms, error, double now_s):
        cdef Reports made = Reports.__new__(Reports)
        cdef BatchBuilder builder = self._builder
        cdef Pinned pinned = Pinned(builder.records())
        made.batch = self
        made.callbacks = self.reports
        made.origin = self.origin(pinned, timestamp_type)
        made.p = pinned.start + min(HEADER, pinned.size)
        made.end = pinned.start + min(builder._used, pinned.size)
        made.base_offset = base_offset
        made.timestamp_ms = timestamp_ms
        made.error = error
        made.now_s = now_s
        return made

    cdef Origin origin(self, Pinned pinned, int timestamp_type):
        cdef Origin origin = Origin.__new__(Origin)
        origin.topic = self.topic
        origin.partition = self.partition
        origin.leader_epoch = -1
        origin.stamp_type = 2 if timestamp_type == 2 else 1
        origin.pinned = pinned
        return origin

    def settle(self, result):
        cdef list watching = self._watching
        self._result = result
        self._error = result.error
        self._base_offset = result.base_offset
        self._stamp_type = result.timestamp_type
        self._stamp_ms = result.timestamp_ms
        self._settled_at = result.at_s
        self._watching = None
        for delivery in watching or ():
            (<DeliveryFuture> delivery).resolve()

    cdef Message message_at(self, Py_ssize_t index, double appended_at):
        # The delivered record at `index`; raises why it was not.
        cdef Record record
        cdef Message message
        if self._error is not None:
            self._result.retrieved = True
            raise KafkaException(self._error)
        if self._origin is None:
            self.begin_places()
        while self._placed <= index:
            self.read_at(self._placed - 1, &record)
        self.read_at(index, &record)
        message = new_message(self._origin, self._base_offset + index if self._base_offset >= 0 else -1001,
                              self._stamp_ms if self._origin.stamp_type == 2 else record.timestamp, &record)
        message._latency = max(self._settled_at - appended_at, 0.0)
        return message

    cdef int begin_places(self) except -1:
        cdef Pinned pinned = Pinned(self._builder.records())
        self._places = <Py_ssize_t *> malloc((self._builder.count + 1) * sizeof(Py_ssize_t))
        if self._places == NULL:
            raise MemoryError
        self._places[0] = min(HEADER, pinned.size)
        self._placed = 1
        self._origin = self.origin(pinned, self._stamp_type)
        return 0

    cdef int read_at(self, Py_ssize_t index, Record *record) except -1:
        # A record whose place is known; then that of the next one is: as a rule they are asked for in order.
        cdef BatchBuilder builder = self._builder
        cdef Pinned pinned = self._origin.pinned
        cdef const uint8_t *p = pinned.start + self._places[index]
        if read_record(&p, pinned.start + min(builder._used, pinned.size), builder.count, builder._base_timestamp,
                       record):
            raise SystemError("a batch in memory was overwritten")
        if index + 1 == self._placed:
            self._places[self._placed] = p - pinned.start
            self._placed += 1
        return 0


@cython.final
cdef class Reports:
    """The delivery reports of a batch that are left. Each is made when it is its turn: thousands at one time would keep
    the garbage collector busy."""

    cdef ClosedBatch batch
    cdef list callbacks
    cdef Origin origin
    cdef const uint8_t *p
    cdef const uint8_t *end
    cdef Py_ssize_t index
    cdef int64_t base_offset, timestamp_ms
    cdef object error
    cdef double now_s

    def __iter__(self):
        return self

    def __next__(self):
        cdef ClosedBatch batch = self.batch
        cdef Record record
        cdef Message message
        cdef Py_ssize_t index
        if self.callbacks is not None:
            while self.index < min(PyList_GET_SIZE(self.callbacks), batch._times):
                if read_record(&self.p, self.end, batch._builder.count, batch._builder._base_timestamp, &record):
                    raise SystemError("a batch in memory was overwritten")
                index = self.index
                self.index += 1
                callback = <object> PyList_GET_ITEM(self.callbacks, index)
                if callback is None:
                    continue
                message = new_message(self.origin, self.base_offset + index if self.base_offset >= 0 else -1001,
                                      self.timestamp_ms if self.origin.stamp_type == 2 else record.timestamp, &record)
                message._error = self.error
                message._latency = max(self.now_s - batch._appended_at[index], 0.0)
                return callback, message
        raise StopIteration

    def __length_hint__(self):
        cdef Py_ssize_t left = 0, index
        if self.callbacks is not None:
            for index in range(self.index, PyList_GET_SIZE(self.callbacks)):
                left += <object> PyList_GET_ITEM(self.callbacks, index) is not None
        return left


@cython.final
cdef class ReportRun:
    """The delivery reports of a batch while they are served; see the plain twin."""

    cdef object _reports, _passed_over
    cdef readonly object error
    cdef BufferPool _pool
    cdef int64_t _messages, _cost_bytes
    cdef readonly bint begun

    def __init__(self, reports, error, BufferPool pool not None, int64_t messages, int64_t cost_bytes,
                 passed_over=None):
        self._reports = reports
        self.error = error
        self._pool = pool
        self._messages = messages
        self._cost_bytes = cost_bytes
        self._passed_over = passed_over

    @cython.critical_section
    def begin(self):
        if self.begun:
            return False
        self.begun = True
        self._pool.release(self._messages, self._cost_bytes)
        return True

    def __iter__(self):
        return self

    def __next__(self):
        with cython.critical_section(self):  # several threads may serve one run
            while True:
                report = next(self._reports)
                if self._passed_over is None or not isinstance((<tuple> report)[0], self._passed_over):
                    return report

    def __length_hint__(self):
        return length_hint(self._reports)


cdef int surely(action) except -1:
    # Call what must be done even if Ctrl-C comes just when it begins: once more, then.
    try:
        action()
    except BaseException:
        action()
        raise
    return 0


cdef inline int64_t stamp_of(timestamp) except? -1:
    # C would cut a float off.
    return timestamp if type(timestamp) is int else milliseconds(timestamp)


cdef int64_t headers_bytes(const Record *record) noexcept:
    # Names and values of a record's headers, without their lengths.
    cdef const uint8_t *p = record.headers
    cdef const uint8_t *data = NULL
    cdef int64_t total = 0, size = 0, index
    cdef int code = FINE
    for index in range(2 * record.header_count):
        p = read_field(p, record.end, &data, &size, &code)
        if p == NULL:
            return total
        total += max(size, 0)
    return total


# What becomes of a record, for asyncio. See the plain twin in `headrace.buffers.delivery_future`.


@cython.final
@cython.no_gc
@cython.freelist(8192)
cdef class DeliveryFuture:
    """What becomes of one record; see the plain twin.

    The garbage collector does not look into deliveries, which would cost as much again. So they must not refer to the
    loop or the producer before somebody looks.
    """

    cdef ClosedBatch _batch
    cdef Py_ssize_t _index
    cdef double _appended_at
    cdef object _future, _make_future

    _asyncio_future_blocking = False

    def __init__(self, make_future):
        self._make_future = make_future

    def __await__(self):
        if self._future is None and self.is_settled():
            return self
        return self.as_future().__await__()

    def __iter__(self):
        return self.__await__()

    def __next__(self):  # only after `__await__`, which has made sure that it is done
        raise StopIteration(self.result())

    def done(self):
        return self.is_settled() or self.cancelled()

    def result(self):
        if self._future is None and self.is_settled():
            return self.outcome()
        return self.as_future().result()

    def exception(self):
        return self.as_future().exception()

    def cancelled(self):
        return self._future is not None and self._future.cancelled()

    def cancel(self, msg=None):
        return self.as_future().cancel(msg)

    def get_loop(self):
        return self.as_future().get_loop()

    def add_done_callback(self, callback, *, context=None):
        self.as_future().add_done_callback(DoneCallback(callback, self), context=context)

    def remove_done_callback(self, callback):
        return self.as_future().remove_done_callback(DoneCallback(callback, self))

    cdef as_future(self):
        if self._future is None:
            self._future = self._make_future()
            if self.is_settled():
                self.resolve()
            elif self._batch is not None:
                self._batch.watch(self)
        return self._future

    cdef bint is_settled(self) except -1:
        if self._batch is None:  # the record was not appended
            return False
        while self._batch._moved is not None:
            self._batch, self._index = self._batch._moved[self._index]
        return self._batch._result is not None

    cdef Message outcome(self):
        return self._batch.message_at(self._index, self._appended_at)

    cdef int resolve(self) except -1:
        if self._future.done():  # cancelled
            return 0
        try:
            message = self.outcome()
        except KafkaException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(message)
        return 0


# A TLS connection without its socket. See the plain twin in `headrace.buffers.lanes.tls_pipe`.


cdef object stuck():
    return ConnectionAbortedError("a thread was interrupted while it used TLS, and did not go on at once")


@cython.final
cdef class TlsPipe:
    """What is to be sent is sealed here, and what came is opened; see the plain twin.

    `put` and `move` are steps in which nothing of Python runs. The session's calls let other threads run, and signals.
    """

    cdef PyThread_type_lock _lock
    cdef readonly int file
    cdef unsigned long _holder
    cdef bint _sends, _receives, _over, _is_stuck
    cdef readonly bint ended
    cdef object _error
    cdef object _session, _incoming, _outgoing
    cdef bytearray _queued, _inside, _opened
    cdef bytes _unsent

    def __cinit__(self, session, incoming, outgoing, int file):
        self._session = getattr(session, "_sslobj", session)  # without a frame of Python for each call
        self._incoming, self._outgoing, self.file = incoming, outgoing, file
        self._queued, self._inside, self._opened = bytearray(), bytearray(), bytearray(TLS_PIECE)
        self._unsent = b""
        self._lock = PyThread_allocate_lock()
        if self._lock == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self._lock != NULL:
            PyThread_free_lock(self._lock)

    cdef bint acquire(self) noexcept:
        # False for good if this thread has it already, below a signal's handler that may wait for whoever needs it, or
        # another thread has it for longer than any step takes.
        cdef int acquired = 0
        if self._is_stuck:
            return False
        if not PyThread_acquire_lock(self._lock, NOWAIT_LOCK):
            if self._holder != PyThread_get_thread_ident():
                with nogil:
                    acquired = PyThread_acquire_lock_timed(self._lock, TLS_PATIENCE_US, 0)
            if not acquired:
                self._is_stuck = True
                return False
        self._holder = PyThread_get_thread_ident()
        return True

    cdef inline void release(self) noexcept:
        self._holder = 0
        PyThread_release_lock(self._lock)

    cdef int acquire_surely(self) except -1:
        if not self.acquire():
            raise stuck()
        return 0

    @property
    def error(self):
        return stuck() if self._is_stuck else self._error

    def feed(self, data):
        self.acquire_surely()
        try:
            self._incoming.write(data)
        finally:
            self.release()

    def read_into(self, view not None):
        cdef Py_ssize_t filled = 0, size = len(view), count
        self.acquire_surely()
        try:
            while filled < size and not self._receives and self._unread():
                try:
                    count = self._session.read(size - filled, view[filled:] if filled else view)
                except ssl.SSLWantReadError:
                    break
                if count == 0:
                    self.ended = True
                    break
                filled += count
        finally:
            self.release()
        return filled

    def seal(self, data):
        self.acquire_surely()
        try:
            self._session.write(data)
            return self._outgoing.read()
        finally:
            self.release()

    @property
    def unread(self):
        self.acquire_surely()
        try:
            return self._unread()
        finally:
            self.release()

    cdef bint _unread(self) except -1:
        return not self.ended and (self._incoming.pending > 0 or self._session.pending() > 0)

    def begin_sending(self):
        self._sends = True

    def end_sending(self):
        cdef bytes unsent = b""
        self._sends = False
        if self.acquire():
            try:
                self._seal_queued()
                unsent, self._unsent = self._unsent + self._outgoing.read(), b""
            except Exception as error:
                self._error = error
            finally:
                self.release()
        return unsent or None

    def begin_receiving(self):
        self._receives, self._over = True, False

    def end_receiving(self):
        self._receives = False
        if self.acquire():  # else somebody is at it
            self.release()
        inside = bytes(self._inside)
        PyByteArray_Resize(self._inside, 0)
        return inside

    cdef int64_t put_pieces(self, const uint8_t *head, Py_ssize_t head_size, const uint8_t *data, Py_ssize_t size,
                            const uint8_t *tail, Py_ssize_t tail_size) except -1:
        # Queue three pieces, all of them or none: how many bytes.
        cdef Py_ssize_t used = PyByteArray_GET_SIZE(self._queued), whole = head_size + size + tail_size
        cdef uint8_t *p
        if (not self._sends or PyBytes_GET_SIZE(self._unsent) or self._error is not None or self._is_stuck
                or used + whole > TLS_QUEUED):
            return 0
        PyByteArray_Resize(self._queued, used + whole)
        p = <uint8_t *> PyByteArray_AS_STRING(self._queued) + used
        memcpy(p, head, head_size)
        if size:
            memcpy(p + head_size, data, size)
        if tail_size:
            memcpy(p + head_size + size, tail, tail_size)
        return whole

    def put(self, bytes data not None):
        return self.put_pieces(<const uint8_t *> PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), NULL, 0, NULL, 0)

    cpdef bint push(self) except -1:
        PyErr_CheckSignals()  # a handler has its turn before the lock is held, whenever it can
        if not self.acquire():
            return False
        try:
            return self._push()
        except ssl.SSLError as error:
            self._error = error
            return False
        finally:
            self.release()

    cdef bint _push(self) except -1:
        cdef bytes data
        cdef int64_t sent
        cdef Py_ssize_t size
        if not self._sends:  # the loop has taken it back, and sends what is left
            return True
        self._seal_queued()
        data = self._outgoing.read()
        if PyBytes_GET_SIZE(self._unsent):
            data = self._unsent + data
        size = PyBytes_GET_SIZE(data)
        if size == 0:
            return True
        sent = 0
        if self._sends:  # else the loop has given this up meanwhile, and the file may be another's
            sent = headrace_send(self.file, <const uint8_t *> PyBytes_AS_STRING(data), size, NULL, 0, NULL, 0)
        self._unsent = b"" if sent == size else data[max(sent, 0):]
        return sent == size

    cdef int _seal_queued(self) except -1:
        cdef bytes data
        while PyByteArray_GET_SIZE(self._queued):
            data = bytes(self._queued)
            PyByteArray_Resize(self._queued, 0)
            try:
                self._session.write(data)
            except BaseException:  # what a signal's handler raised, perhaps: then it is sealed
                if self._outgoing.pending == 0:
                    self._queued[:0] = data
                raise
        return 0

    cpdef int pull(self) except -1:
        PyErr_CheckSignals()  # as in `push`
        if not self.acquire():
            self._over = self._over or self._is_stuck
            return 0
        try:
            if self._receives and PyByteArray_GET_SIZE(self._inside) == 0:
                self._over = self._pull()
        except ssl.SSLError as error:
            self._error = error
            self._over = True
        finally:
            self.release()
        return 0

    cdef bint _pull(self) except -1:
        # Receive; whether this was the end.
        cdef uint8_t[TLS_PIECE] received
        cdef int64_t count = headrace_receive(self.file, received, TLS_PIECE)
        if count > 0:
            self._incoming.write(<bytes> received[:count])
        self._open()
        return count == 0 or count == -2 or self.ended

    cdef int _open(self) except -1:
        cdef Py_ssize_t count, used
        while self._unread():
            PyErr_CheckSignals()  # here nothing is lost
            try:
                count = self._session.read(TLS_PIECE, self._opened)
            except ssl.SSLWantReadError:
                return 0
            except ssl.SSLError:
                raise
            except BaseException:  # a signal came just when something was opened, which is lost with it
                self._error, self._over = ConnectionAbortedError("interrupted while TLS was read"), True
                raise
            if count == 0:
                self.ended = True
            used = PyByteArray_GET_SIZE(self._inside)
            PyByteArray_Resize(self._inside, used + count)
            memcpy(PyByteArray_AS_STRING(self._inside) + used, PyByteArray_AS_STRING(self._opened), count)
        return 0

    cdef int64_t move(self, uint8_t *data, Py_ssize_t size) except -3:
        # Take what was pulled, as `headrace_receive` does.
        cdef Py_ssize_t inside = PyByteArray_GET_SIZE(self._inside), count = min(inside, size)
        cdef char *p = PyByteArray_AS_STRING(self._inside)
        if count == 0:
            return 0 if self._over else -1
        memcpy(data, p, count)
        memmove(p, p + count, inside - count)
        PyByteArray_Resize(self._inside, inside - count)
        return count

    cdef inline bint has_more(self) noexcept:
        return PyByteArray_GET_SIZE(self._inside) > 0

    def take(self, Py_ssize_t size):
        cdef bytearray taken = bytearray(size)
        cdef int64_t count = self.move(<uint8_t *> PyByteArray_AS_STRING(taken), size)
        return None if count < 0 else bytes(taken[:count])


# The way of a batch that its own thread sends. See the plain twin in `headrace.buffers.lanes.direct_lane`.


@cython.final
cdef class DirectPartition:
    """What all direct requests of one partition have in common; see the plain twin."""

    cdef DirectLane _lane
    cdef object _owner
    cdef bytes _stem, _tail, _before, _after
    cdef int _api, _version, _epoch
    cdef bint _flexible
    cdef int64_t _producer_id
    cdef int32_t _sequence  # of the next record
    cdef double _used_at

    def __init__(self, DirectLane lane not None, owner, request not None, reply not None, producer not None,
                 double used_at):
        self._lane = lane
        self._owner = owner
        self._api, self._version, self._stem, self._tail, self._flexible = request
        self._before, self._after = reply
        self._producer_id, self._epoch, self._sequence = producer
        self._used_at = used_at

    cdef Py_ssize_t frame_bytes(self, Batch sealed) noexcept:
        # Size of the frame with a batch.
        cdef Py_ssize_t size = sealed._data.size, length = 4
        if self._flexible:
            length = 1 if size < 0x7F else 2 if size < 0x3FFF else 3
        return START + PyBytes_GET_SIZE(self._stem) + length + size + PyBytes_GET_SIZE(self._tail)

    cdef inline Py_ssize_t reply_bytes(self) noexcept:
        # The length of the usual reply.
        return 8 + PyBytes_GET_SIZE(self._before) + OFFSETS + PyBytes_GET_SIZE(self._after)

    cdef Py_ssize_t measure(self, const uint8_t *p, const uint8_t *end, int32_t correlation_id) noexcept:
        # The length of the usual reply, if the bytes begin with one; else 0.
        cdef Py_ssize_t after = PyBytes_GET_SIZE(self._after), size = self.reply_bytes()
        if (end - p < size or get_number(p, 4) != <uint64_t> (size - 4)
                or get_number(p + 4, 4) != <uint64_t> correlation_id
                or memcmp(p + 8, PyBytes_AS_STRING(self._before), PyBytes_GET_SIZE(self._before))
                or memcmp(p + size - after, PyBytes_AS_STRING(self._after), after)):
            return 0
        return size


@cython.final
cdef class DirectLane:
    """One connection for batches that their own threads send; see the plain twin.

    Sending is one step for all other threads: from the last look at what may have changed to the end no Python object
    is made, so that neither the garbage collector nor a signal comes in between.
    """

    cdef TlsPipe _pipe  # None without TLS
    cdef int _file  # of the socket that was lent last; -1 while nothing may be sent
    cdef double _until
    cdef readonly int32_t correlation_id
    cdef Py_ssize_t _most, _first
    cdef readonly Py_ssize_t in_flight
    cdef list _ways, _batches, _sealed  # rings: those in flight, from `_first` on
    cdef double *_sent_at
    cdef bytes _rest
    cdef object _on_rest
    cdef readonly bint failed
    cdef bint _told
    cdef readonly double looked_at, answered_at
    cdef DirectReplies _replies  # None while the loop reads
    cdef int _read_file  # of the socket that was lent last
    cdef uint8_t _data[REPLIES]
    cdef Py_ssize_t _filled
    cdef list _answered

    def __init__(self, Py_ssize_t most, on_rest):
        self._file = self._read_file = -1
        self._most = most
        self._ways, self._batches, self._sealed = [None] * most, [None] * most, [None] * most
        self._on_rest = on_rest
        self._answered = []
        free(self._sent_at)
        self._sent_at = <double *> malloc(most * sizeof(double))
        if self._sent_at == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._sent_at)

    @property
    def is_read(self):
        return self._replies is not None

    @cython.critical_section
    def start(self, lent, int32_t correlation_id, double until):
        self.correlation_id = correlation_id
        self._until = until
        self._pipe = <TlsPipe> lent if type(lent) is TlsPipe else None
        if self._pipe is not None:
            self._pipe.begin_sending()
            lent = self._pipe.file
        self._file = self._read_file = lent

    @cython.critical_section
    def stop(self):
        cdef list taken = []
        cdef Py_ssize_t place
        cdef DirectPartition way
        rest = self._rest
        self._file = -1
        self._rest = None
        if self._pipe is not None:
            rest = self._pipe.end_sending()
        while self.in_flight:
            place = self._first
            way = <DirectPartition> self._ways[place]
            taken.append((way._owner, self._batches[place], self._sealed[place],
                          way.frame_bytes(<Batch> self._sealed[place]), self._sent_at[place]))
            self.drop()
        return taken, rest

    cdef int drop(self) except -1:
        # The oldest in flight is no more.
        self._ways[self._first] = self._batches[self._first] = self._sealed[self._first] = None
        self._first = (self._first + 1) % self._most
        self.in_flight -= 1
        return 0

    cdef inline bint is_open(self, DirectPartition way, ClosedBatch batch, double now) noexcept:
        # Whether a batch may be sent.
        return (self._file >= 0 and self.in_flight < self._most and now < self._until
                and now - way._used_at <= QUIET_S and batch._builder._used <= DIRECT
                and PyBytes_GET_SIZE(way._stem) + 5 <= STEM)

    cdef bint send(self, DirectPartition way, ClosedBatch batch, Batch sealed, bint packed=False) except -1:
        # Write the request with a batch of records; False if it has to go the general way. `packed`: it is sealed.
        cdef uint8_t head[START + STEM]
        cdef Py_ssize_t stem = PyBytes_GET_SIZE(way._stem), tail = PyBytes_GET_SIZE(way._tail), size, whole, place
        cdef uint8_t *p = head + START
        cdef int64_t sent
        cdef double now = headrace_clock()  # a batch that has lingered was opened long ago
        if not self.is_open(way, batch, now):
            return False
        if not packed:
            batch._builder.seal_into(sealed)
        sealed.put_producer(way._producer_id, way._epoch, way._sequence, False)
        sealed.sum()
        size = sealed._data.size
        memcpy(p, PyBytes_AS_STRING(way._stem), stem)
        p += stem
        if way._flexible:
            p = write_uvarint(p, size + 1)
        else:
            put_number(p, 4, size)
            p += 4
        whole = way.frame_bytes(sealed)
        put_number(head, 4, whole - 4)
        put_number(head + 4, 2, way._api)
        put_number(head + 6, 2, way._version)
        put_number(head + 8, 4, self.correlation_id)
        if self._pipe is not None:
            sent = self._pipe.put_pieces(head, p - head, sealed._data.start, size,
                                         <const uint8_t *> PyBytes_AS_STRING(way._tail), tail)
        else:
            sent = headrace_send(self._file, head, p - head, sealed._data.start, size,
                                 <const uint8_t *> PyBytes_AS_STRING(way._tail), tail)
        if sent <= 0:  # no room, or the connection is gone: whoever comes next finds out
            return False
        place = (self._first + self.in_flight) % self._most
        self._ways[place] = way
        self._batches[place] = batch
        self._sealed[place] = sealed
        self._sent_at[place] = now
        self.in_flight += 1
        self.correlation_id = (self.correlation_id + 1) & INT32_MAX
        way._used_at = now
        if way._producer_id >= 0:
            way._sequence = (way._sequence + <int32_t> batch._builder.count) & INT32_MAX
        if self._replies is not None and not self._replies.serves(batch):
            self.failed = True
        if sent < whole:
            self._file = -1
            self._rest = (head[:p - head] + bytes(sealed.data) + way._tail)[sent:]
        return True

    cdef int end_step(self) except -1:
        # What follows a batch that was sent, and may be interrupted.
        if self._rest is not None or not self.push():
            surely(self._on_rest)
        elif self.failed and not self._told and self._replies is not None:
            self._replies.tell()
        return 0

    cdef bint push(self) except -1:
        # Send what waits behind the step; False if the loop has to.
        try:
            return self._pipe is None or self._pipe.push()
        except BaseException:  # a signal
            surely(self._on_rest)
            raise

    @cython.critical_section
    def take(self, data, Py_ssize_t count):
        cdef Pinned pinned
        cdef const uint8_t *p
        cdef const uint8_t *end
        cdef const uint8_t *numbers
        cdef DirectPartition way
        cdef Py_ssize_t index, size, replies = 0
        cdef list taken = []
        if not self.in_flight or self._rest is not None:
            return taken
        pinned = Pinned(data)
        p = pinned.start
        end = p + min(count, pinned.size)
        while p < end and replies < self.in_flight:
            way = <DirectPartition> self._ways[(self._first + replies) % self._most]
            size = way.measure(p, end, (self.correlation_id - <int32_t> (self.in_flight - replies)) & INT32_MAX)
            if size == 0:
                return taken
            p += size
            replies += 1
        if p != end:
            return taken
        p = pinned.start
        for index in range(replies):
            way = <DirectPartition> self._ways[self._first]
            numbers = p + 8 + PyBytes_GET_SIZE(way._before)
            taken.append((way._owner, self._batches[self._first],
                          <int64_t> get_number(numbers, 8), <int64_t> get_number(numbers + 8, 8),
                          way.frame_bytes(<Batch> self._sealed[self._first]), way.reply_bytes(),
                          self._sent_at[self._first]))
            p = numbers + OFFSETS + PyBytes_GET_SIZE(way._after)
            self.drop()
        return taken

    def read_by(self, DirectReplies replies not None):
        cdef Py_ssize_t index
        if self._pipe is not None:
            self._pipe.begin_receiving()
        self._filled = 0
        self.failed = self._told = False
        for index in range(self.in_flight):
            self.failed = self.failed or not replies.serves(
                <ClosedBatch> self._batches[(self._first + index) % self._most])
        self.looked_at = self.answered_at = headrace_clock()
        self._replies = replies
        replies._lanes.append(self)

    def read_by_loop(self):
        replies = self._replies
        if replies is None:
            return b""
        self._replies = None
        self.failed = False
        if self in (<DirectReplies> replies)._lanes:
            (<DirectReplies> replies)._lanes.remove(self)
        (<DirectReplies> replies).wake()
        # First: another thread may be about to take some of it.
        opened = self._pipe.end_receiving() if self._pipe is not None else b""
        return self._data[:self._filled] + opened

    def take_answered(self):
        answered, self._answered = self._answered, []
        return answered

    cdef bint receive(self, DirectReplies to) except -1:
        # Bytes may have come: take the replies that are whole. False if the loop has to read.
        cdef int64_t count
        cdef Py_ssize_t size
        cdef DirectPartition way
        cdef ClosedBatch batch
        cdef const uint8_t *numbers
        cdef int64_t base_offset, log_append_ms
        cdef double now = headrace_clock()
        self.looked_at = now
        if self._pipe is not None:
            self._pipe.pull()
            if self._replies is not to:  # others had a turn
                return True
            count = self._pipe.move(self._data + self._filled, REPLIES - self._filled)
        else:
            count = headrace_receive(self._read_file, self._data + self._filled, REPLIES - self._filled)
        if count <= 0:
            return count == -1
        self._filled += count
        while self._filled and self._replies is to:
            if not self.in_flight or self._rest is not None:
                return False
            way = <DirectPartition> self._ways[self._first]
            size = way.measure(self._data, self._data + self._filled,
                               (self.correlation_id - <int32_t> self.in_flight) & INT32_MAX)
            if size == 0:  # unusual, or the rest is still to come
                return self._filled < way.reply_bytes() and (
                    self._filled < 4 or get_number(self._data, 4) == <uint64_t> (way.reply_bytes() - 4))
            batch = <ClosedBatch> self._batches[self._first]
            numbers = self._data + 8 + PyBytes_GET_SIZE(way._before)
            base_offset, log_append_ms = <int64_t> get_number(numbers, 8), <int64_t> get_number(numbers + 8, 8)
            run = None
            if batch.reports is not None:
                reports = batch.messages(base_offset, 2 if log_append_ms >= 0 else 1, log_append_ms, None, now)
                run = ReportRun(reports, None, to._pool, batch.count, batch.cost_bytes)
            answered = (way._owner, batch.count, batch._builder._used, base_offset,
                        way.frame_bytes(<Batch> self._sealed[self._first]), size,
                        self._sent_at[self._first], now)
            if self._replies is not to or not self.in_flight or self._batches[self._first] is not batch:
                continue  # others had a turn while these were made
            # From here to the end nothing of Python runs.
            if run is not None:
                to._runs.append(run)
            else:
                to._pool.messages -= batch.count
                to._pool.bytes -= batch.cost_bytes
                to._unreported = True
            self._answered.append(answered)
            to._pool.ahead_bytes -= batch.data_bytes
            to._taken += 1
            self.answered_at = now
            self._filled -= size
            memmove(self._data, self._data + size, self._filled)
            self.drop()
        return self._pipe is None or not self._pipe.has_more()  # for which nobody would be woken


@cython.final
cdef class DirectReplies:
    """Where threads that wait for reports take the replies to direct batches; see the plain twin.

    What takes a reply is one step for all other threads and for signals: nothing of Python runs between the record's
    end in flight and its report in the queue.
    """

    cdef object _runs, _on_failed, _on_done, _others
    cdef BufferPool _pool
    cdef list _lanes
    cdef int _wake
    cdef int64_t _taken
    cdef bint _unreported  # batches without callbacks were taken, and nobody was told
    cdef readonly Py_ssize_t waiting

    def __init__(self, runs, BufferPool pool not None, others, int wake, on_failed, on_done):
        self._runs, self._pool, self._others = runs, pool, others
        self._on_failed, self._on_done = on_failed, on_done
        self._lanes = []
        self._wake = wake

    @property
    def ready(self):
        cdef DirectLane lane
        for lane in self._lanes:
            if lane.failed:
                return False
        return bool(self._lanes)

    @property
    def has_room(self):
        return len(self._lanes) < MOST_FILES - 1

    cdef bint serves(self, ClosedBatch batch) except -1:
        # Whether nobody waits for the batch but who serves reports.
        cdef Py_ssize_t index
        if batch.has_deliveries or batch.runs is not None:
            return False
        if batch.reports is not None:
            for index in range(PyList_GET_SIZE(<list> batch.reports)):
                if isinstance(<object> PyList_GET_ITEM(<list> batch.reports, index), self._others):
                    return False
        return True

    def wake(self):
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def end(self):
        self._wake = -1
        self._lanes.clear()

    def look(self):
        self.read_all(False)

    cdef int tell(self) except -1:
        # Have the loop take back those that failed. Who is interrupted before that was noted says it once more.
        cdef DirectLane lane
        surely(self._on_failed)
        for lane in self._lanes:
            lane._told = lane.failed
        return 0

    cdef int read_all(self, bint idle) except -1:
        # Take what has come, also where nothing is in flight if so wanted; tell who has to know.
        cdef Py_ssize_t index = 0
        cdef DirectLane lane
        cdef bint failed = False
        while index < len(self._lanes):
            lane = <DirectLane> self._lanes[index]
            index += 1
            if not lane.failed and (lane.in_flight or idle):
                try:
                    if not lane.receive(self):
                        lane.failed = True
                except BaseException:
                    lane.failed = True
                    raise
            failed = failed or (lane.failed and not lane._told)
        if failed:
            self.tell()
        if self._unreported:
            surely(self._on_done)
            self._unreported = False
        return 0

    def receive(self, double timeout_s, awake=None):
        cdef int files[MOST_FILES]
        cdef int count, found, wake = self._wake
        cdef int64_t taken = self._taken
        cdef double left, until = headrace_clock() + timeout_s
        while self.ready and not self._runs and self._taken == taken:
            count = 1
            files[0] = wake
            for lane in self._lanes[:MOST_FILES - 1]:
                files[count] = (<DirectLane> lane)._read_file
                count += 1
            left = max(until - headrace_clock(), 0.0)
            PyErr_CheckSignals()
            self.waiting += 1  # from here on nobody empties the eventfd in front of this thread
            if awake is not None and awake.acquire(False):
                self.waiting -= 1
                return
            with nogil:
                found = headrace_poll(files, count, left)
            self.waiting -= 1
            if found < 0:
                continue
            if found & 2 and self.waiting == 0 and self._wake == wake:  # else others have not seen it yet
                headrace_drain(wake)
            self.read_all(True)
            if found & 2 or left == 0.0:
                return


cdef struct Arrived:  # what a reply has of one partition
    const uint8_t *data
    int64_t length, records, high_watermark, last_stable, log_start, next_offset
    int32_t partition, leader_epoch, last_epoch  # the one that was asked with, and that of the last batch


@cython.final
cdef class FetchLanes:
    """Where one thread waits for the replies of all its lanes; see the plain twin."""

    cdef int _wake  # -1 for none
    cdef readonly list lanes
    cdef readonly object queue, make
    cdef readonly int64_t received_bytes
    cdef readonly double answered_at

    def __cinit__(self, queue, make):
        self._wake = -1
        self.queue, self.make = queue, make
        self.lanes = []

    def begin(self, int wake):
        self._wake = wake

    def end(self):
        self._wake = -1

    def wake(self):
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    @property
    def has_room(self):
        return len(self.lanes) < MOST_FILES - 1

    @property
    def ready(self):
        cdef FetchLane lane
        for lane in self.lanes:
            if lane.lent:
                return True
        return self._is_to_be_told()

    cdef bint _is_to_be_told(self) except -1:
        cdef FetchLane lane
        for lane in self.lanes:
            if lane.failed and not lane.told:
                return True
        return False

    def receive(self, double timeout_s):
        if not self._is_to_be_told():  # who was to tell it may have been interrupted
            self._receive(timeout_s)
        return self._is_to_be_told()

    cdef int _receive(self, double timeout_s) except -1:
        cdef int[MOST_FILES] files
        cdef int wake, found, count, index
        cdef double left, until = headrace_clock() + timeout_s
        cdef FetchLane lane
        cdef list lent
        while len(self.queue) == 0:
            lent, count = [], 1
            for lane in self.lanes:
                if lane.lent and count < MOST_FILES:  # `has_room` may not have been asked
                    lent.append(lane)
                    files[count] = lane.file
                    count += 1
            if count == 1:
                return 0
            files[0] = wake = self._wake
            left = max(until - headrace_clock(), 0.0)
            PyErr_CheckSignals()
            with nogil:
                found = headrace_poll(files, count, left)
            if found < 0:
                continue
            if found & 2 and self._wake == wake:
                headrace_drain(wake)
            if found & 1:
                for index in range(count - 1):
                    lane = lent[index]
                    if lane.lent and lane.file == files[index + 1]:
                        try:
                            if not (lane.take(self) and lane.push()):
                                lane.lent, lane.failed = False, True
                        except BaseException:  # no memory
                            lane.lent, lane.failed = False, True
                            raise
            if found & 2 or self._is_to_be_told() or (found == 0 and left == 0.0):
                return 0
        return 0


@cython.final
cdef class FetchLane:
    """One connection whose replies the thread that waits for records takes by itself; see the plain twin.

    What takes a reply is one step for all other threads and for signals: nothing of Python runs between the request
    for what follows and the place where the records are found.
    """

    cdef readonly bint lent, failed
    cdef public bint told
    cdef readonly int file  # -1 for none
    cdef readonly int32_t correlation_id, session_epoch, partition
    cdef readonly int64_t sent_bytes, reply_bytes, exchanges
    cdef readonly double written_at
    cdef TlsPipe _pipe  # None without TLS
    cdef object _topic, _known, _phase
    cdef bytes _request, _empty_request, _before, _between, _tail, _empty_reply
    cdef Py_ssize_t _epoch_at, _partition_at, _leader_at, _offset_at, _empty_epoch_at, _known_at
    cdef Py_ssize_t _partition_size
    cdef bint _flexible
    cdef uint8_t *_data
    cdef Py_ssize_t _filled
    cdef bytes _rest
    cdef int64_t _stops

    def __cinit__(self):
        self.file = -1

    def __dealloc__(self):
        free(self._data)

    def start(self, lent, shapes not None, session not None, in_flight not None):
        request, reply = shapes
        if self._data == NULL:
            self._data = <uint8_t *> malloc(REPLY)
            if self._data == NULL:
                raise MemoryError
        (self._request, (self._epoch_at, self._partition_at, self._leader_at, self._offset_at),
         self._partition_size) = request[0]
        self._empty_request, (self._empty_epoch_at,), _ = request[1]
        self._before, self._known_at, self._between, self._flexible, self._tail = reply[0]
        self._empty_reply = reply[1]
        self._topic, self._known, self._phase = session
        self.correlation_id, self.session_epoch, self.partition, self.written_at = in_flight
        self.exchanges = self.sent_bytes = self.reply_bytes = self._filled = 0
        self._rest = None
        self._pipe = <TlsPipe> lent if type(lent) is TlsPipe else None
        if self._pipe is not None:
            self._pipe.begin_sending()
            self._pipe.begin_receiving()
            lent = self._pipe.file
        self.file = lent
        self.failed = self.told = False
        self.lent = True

    def stop(self):
        self._stops += 1
        opened, unsent = b"", None
        if self._pipe is not None:
            opened, unsent = self._pipe.end_receiving(), self._pipe.end_sending()
        data, rest = self._data[:self._filled] + opened, unsent or self._rest
        self.lent = self.failed = self.told = False
        self.file = -1
        self._filled = 0
        self._rest = self._known = None
        return data, rest

    cdef bint take(self, FetchLanes to) except -1:
        # Take what has come; False if it is to be read in the general way.
        cdef int64_t count, size, stops = self._stops
        if self._pipe is not None:
            self._pipe.pull()
            if self._stops != stops:  # others had a turn
                return True
            count = self._pipe.move(self._data + self._filled, REPLY - self._filled)
        else:
            count = headrace_receive(self.file, self._data + self._filled, REPLY - self._filled)
        if count < 0:
            return count == -1
        self._filled += count
        if count == 0:
            return False
        if self._filled < 4:
            return True
        size = <int32_t> get_number(self._data, 4)
        if size < 4 or size > REPLY - 4 or self._filled > size + 4:
            return False
        return self._filled < size + 4 or self._reply(self._data + 4, size, to)

    cdef bint push(self) except -1:
        # Send what waits behind the step; False if the loop has to.
        return self._pipe is None or self._pipe.push()

    cdef bint _reply(self, const uint8_t *p, Py_ssize_t size, FetchLanes to) except -1:
        # A whole reply, without its length.
        cdef Py_ssize_t empty = PyBytes_GET_SIZE(self._empty_reply)
        if <int32_t> get_number(p, 4) != self.correlation_id:
            return False
        if size - 4 == empty and memcmp(p + 4, PyBytes_AS_STRING(self._empty_reply), empty) == 0:
            if not self._send(self._empty_request, NULL, 0, to):
                return False
            self._filled = 0
            return True
        return self._records(p, size, to)

    cdef bint _records(self, const uint8_t *p, Py_ssize_t size, FetchLanes to) except -1:
        # A reply with records, as it is expected.
        cdef Arrived[MOST_PARTITIONS] parts
        cdef int count = self._partitions(p + 4, p + size, parts), index, other
        cdef Arrived *part
        cdef Py_ssize_t used
        cdef int64_t offset
        cdef int32_t first_epoch
        cdef Head batch
        cdef int64_t stops = self._stops
        cdef int64_t[MOST_PARTITIONS] offsets
        cdef list fetched, all_asked
        if count == 0:
            return False
        known = self._known
        fetched, all_asked = [], []
        for index in range(count):
            part = &parts[index]
            asked = known.get((self._topic, part.partition))
            if asked is None:
                return False
            for other in range(index):
                if parts[other].partition == part.partition:
                    return False
            offsets[index] = offset = asked.fetch_offset
            used, part.records, part.next_offset, first_epoch = 0, 0, offset, -1
            while used < part.length:
                try:
                    if read_head(part.data + used, part.length - used, &batch, self._topic, part.partition) != 1:
                        break
                except CorruptRecordError:
                    return False
                if batch.size > part.length - used:
                    break
                if used == 0:
                    first_epoch = batch.leader_epoch
                part.last_epoch = batch.leader_epoch
                part.next_offset = batch.last_offset + 1
                part.records += batch.count
                used += batch.size
            if used != part.length or part.next_offset <= offset:
                return False
            part.leader_epoch = asked.leader_epoch
            all_asked.append(asked)
            fetched.append(to.make(
                asked.state, asked.epoch, offset, part.next_offset, part.last_epoch, part.data[:part.length],
                part.records, first_epoch if first_epoch == part.last_epoch else -1))
        # Others had a turn meanwhile. From here to the end nothing of Python runs.
        if self._stops != stops:
            return True
        for index in range(count):
            asked = all_asked[index]
            state, offset = asked.state, offsets[index]
            if (state.epoch != asked.epoch or state.fetch_offset != offset or asked.fetch_offset != offset
                    or state.phase is not self._phase or state.paused or state.stop_offset is not None):
                return False
        if not self._send(self._request, parts, count, to):
            return False
        to.queue.extend(fetched)
        for index in range(count):
            part = &parts[index]
            asked = all_asked[index]
            state = asked.state
            asked.fetch_offset = state.fetch_offset = part.next_offset
            state.fetch_epoch = part.last_epoch
            state.attempts = 0
            state.high_watermark, state.last_stable, state.log_start = (
                part.high_watermark, part.last_stable, part.log_start)
            state.received_bytes = state.received_bytes + part.length
            state.received_records = state.received_records + part.records
            to.received_bytes += part.length
        self._filled = 0
        return True

    cdef int _partitions(self, const uint8_t *at, const uint8_t *end, Arrived *parts) noexcept:
        # The partitions of a reply that is as expected, how many; 0 for another reply.
        cdef const uint8_t *before = <const uint8_t *> PyBytes_AS_STRING(self._before)
        cdef const uint8_t *between = <const uint8_t *> PyBytes_AS_STRING(self._between)
        cdef const uint8_t *tail = <const uint8_t *> PyBytes_AS_STRING(self._tail)
        cdef Py_ssize_t known = self._known_at, head = PyBytes_GET_SIZE(self._before) - known - 4
        cdef Py_ssize_t middle = PyBytes_GET_SIZE(self._between), behind = PyBytes_GET_SIZE(self._tail)
        cdef Py_ssize_t ends = 1 if self._flexible else 0  # bytes behind the records of each partition
        cdef int count = 1, index
        cdef uint64_t length
        cdef Py_ssize_t width
        cdef Arrived *part
        if end - at < known + behind or memcmp(at, before, known - ends):
            return 0
        if self._flexible:
            count = <int> at[known - 1] - 1
            if count < 1 or count > MOST_PARTITIONS:
                return 0
        at += known
        end -= behind - ends
        if memcmp(end, tail + ends, behind - ends):
            return 0
        for index in range(count):
            part = &parts[index]
            if end - at < 4 + head + OFFSETS + middle + 4:
                return 0
            part.partition = <int32_t> get_number(at, 4)
            if memcmp(at + 4, before + known + 4, head):
                return 0
            at += 4 + head
            part.high_watermark = <int64_t> get_number(at, 8)
            part.last_stable = <int64_t> get_number(at + 8, 8)
            part.log_start = <int64_t> get_number(at + 16, 8)
            at += OFFSETS
            if memcmp(at, between, middle):
                return 0
            at += middle
            if self._flexible:
                length = width = 0
                while width < 3:
                    length |= <uint64_t> (at[width] & 0x7F) << (7 * width)
                    width += 1
                    if at[width - 1] < 0x80:
                        break
                if at[width - 1] >= 0x80 or (at[width - 1] == 0 and width > 1) or length == 0:
                    return 0
                length -= 1
            else:
                width = 4
                length = get_number(at, 4)
            at += width
            if length < HEADER or length > <uint64_t> (end - at - ends):
                return 0
            part.data, part.length = at, length
            at += length
            if ends and at[0] != tail[0]:
                return 0
            at += ends
        return count if at == end else 0

    cdef bint _send(self, bytes request, const Arrived *parts, int count, FetchLanes to) except -1:
        # Ask for what comes next; False, with nothing changed, if that has to go the general way.
        cdef uint8_t frame[STEM]
        cdef const uint8_t *shape = <const uint8_t *> PyBytes_AS_STRING(request)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(request), at = self._partition_at, each = self._partition_size, place
        cdef int32_t correlation_id = (self.correlation_id + 1) & INT32_MAX
        cdef int32_t epoch = 1 if self.session_epoch == INT32_MAX else self.session_epoch + 1
        cdef int64_t sent
        cdef int index
        if size + max(count - 1, 0) * each > STEM:
            return False
        if count == 0:
            memcpy(frame, shape, size)
            put_number(frame + self._empty_epoch_at, 4, <uint32_t> epoch)
        else:
            memcpy(frame, shape, at)
            memcpy(frame + at + count * each, shape + at + each, size - at - each)
            for index in range(count):
                place = index * each
                memcpy(frame + at + place, shape + at, each)
                put_number(frame + at + place, 4, <uint32_t> parts[index].partition)
                put_number(frame + self._leader_at + place, 4, <uint32_t> parts[index].leader_epoch)
                put_number(frame + self._offset_at + place, 8, <uint64_t> parts[index].next_offset)
            if count > 1:
                size += (count - 1) * each
                frame[at - 1] = <uint8_t> (count + 1)
                put_number(frame, 4, <uint64_t> (size - 4))
            put_number(frame + self._epoch_at, 4, <uint32_t> epoch)
        put_number(frame + 8, 4, <uint32_t> correlation_id)
        if self._pipe is not None:
            sent = self._pipe.put_pieces(frame, size, NULL, 0, NULL, 0)
        else:
            sent = headrace_send(self.file, frame, size, NULL, 0, NULL, 0)
        if sent <= 0:
            return False
        if sent < size:
            self._rest = frame[sent:size]
            self.lent, self.failed = False, True
        to.answered_at = self.written_at = headrace_clock()
        self.correlation_id, self.session_epoch = correlation_id, epoch
        self.partition = parts[0].partition if count == 1 else -1
        self.exchanges += 1
        self.sent_bytes += size
        self.reply_bytes += self._filled
        return True


cdef inline bint is_held(ClosedBatch batch, dict held) except -1:
    # Nothing is made here that the garbage collector counts: it would let other threads in.
    partitions = held.get(batch.topic)
    return partitions is not None and batch.partition in partitions


@cython.final
cdef class Alarm:
    """A file that can be read from a time on; see the plain twin."""

    cdef readonly int file
    cdef readonly double at
    cdef OpenBatches _batches  # that set it

    exists = bool(HAS_EPOLL)

    def __cinit__(self):
        self.file, self.at = -1, INFINITY

    def __init__(self):
        self.file = headrace_alarm()
        if self.file < 0:
            raise OSError(errno, os.strerror(errno))

    def __dealloc__(self):
        if self.file >= 0:
            headrace_close(self.file)

    def set(self, double at):
        self.ring(at)

    cdef inline void ring(self, double at) noexcept:
        # A microsecond late: a clock that is read then shows the time.
        self.at = at
        headrace_set_alarm(self.file, <int64_t> (1e9 * max(at, 0.0)) + 1000)

    def answer(self):
        headrace_drain(self.file)

    def close(self):
        if self.file >= 0:
            headrace_close(self.file)
            self.file = -1


@cython.final
cdef class OpenBatches:
    """The batches of all topics that take records, and those that are full. It guards the accumulators."""

    cdef dict _open  # each with its accumulator, the oldest first
    cdef dict _full  # the same
    cdef bint _timed  # the next `ready` comes without a wake-up before a batch that is opened now has lingered
    cdef double _linger_s  # 0: a batch that is opened is sent at once
    cdef int _codec, _level  # 0: batches are not compressed
    cdef double _flushed_at, _flushed_before  # when `send_open` sent a batch
    cdef Alarm _alarm  # None for none
    cdef bint _is_set  # it rings before a batch that is opened now has lingered; then `ready` is called
    cdef dict _flushing  # while there is something in it, batches do not linger

    def __init__(self, double linger_s=0.0, int codec=0, int level=-1):
        self._open, self._full = {}, {}
        self._linger_s, self._codec, self._level = linger_s, codec, level
        self._flushed_at = self._flushed_before = -INFINITY
        self._flushing = {}

    @property
    def rings(self):
        return self._alarm is not None

    @cython.critical_section
    def ring(self, Alarm alarm=None, dict flushing=None):
        if self._alarm is not None:
            self._alarm._batches = None
        if alarm is not None:
            alarm._batches = self
        self._alarm, self._is_set = alarm, False
        self._flushing = {} if flushing is None else flushing

    @cython.critical_section
    def ready(self, opened_before=None, dict held=None):
        cdef double limit
        cdef list due = []
        cdef dict taken
        if opened_before is not None:
            limit = opened_before
            for batch in self._open:
                if (<ClosedBatch> batch).opened_at > limit:
                    break
                if not held or not is_held(<ClosedBatch> batch, held):
                    due.append(batch)
            for batch in due:
                (<RecordAccumulator> self._open[batch]).close(<ClosedBatch> batch)
        taken, self._full = self._full, {}
        for batch, accumulator in taken.items():
            if (<RecordAccumulator> accumulator)._direct is not None:
                (<RecordAccumulator> accumulator)._direct[(<ClosedBatch> batch).partition] = None
        if self._alarm is not None and len(taken) == 1 and not held:  # `next_deadline` may not be called
            self.set_alarm()
        return list(taken)

    cdef int set_alarm(self) except -1:
        # For the oldest open batch, or leave it as it is if it rings before that in any case.
        cdef double at
        self._timed = False
        self._is_set = self._is_set and headrace_clock() < self._alarm.at
        for batch in self._open:
            at = (<ClosedBatch> batch).opened_at + self._linger_s
            if not (self._is_set and self._alarm.at <= at):
                self._alarm.ring(at)
            self._is_set = True
            break
        return 0

    cdef inline bint is_expected(self, double opened_at) noexcept:
        # Whether nobody has to be woken for a batch that is opened: an alarm rings when it has lingered at the latest.
        if self._alarm is None or self._flushing:
            return self._timed
        if not (self._timed or self._is_set):
            self._alarm.ring(opened_at + self._linger_s)
            self._is_set = True
        return True

    @cython.critical_section
    def next_deadline(self, double linger_s, dict held=None):
        cdef double deadline = INFINITY, now = headrace_clock()
        self._timed = True
        if self._full:
            return -INFINITY
        for batch in self._open:
            if not held or not is_held(<ClosedBatch> batch, held):
                deadline = (<ClosedBatch> batch).opened_at + linger_s
                break
        if self._alarm is not None:
            self._is_set = self._is_set and now < self._alarm.at
            if self._is_set and self._alarm.at <= deadline:
                self._timed = False
                return None
        if deadline < INFINITY:
            return deadline
        self._timed = now - self._flushed_before < self._linger_s
        return now + self._linger_s if self._timed else None

    cdef bint send_lingered(self) except -1:
        return not self._flushing and self.send_lone(headrace_clock() - self._linger_s)

    cpdef bint send_lone(self, double opened_before) except -1:
        cdef list due = []
        with cython.critical_section(self):
            for batch in self._open:
                if (<ClosedBatch> batch).opened_at > opened_before:
                    break
                due.append(batch)  # no pair: the collector may run where one is made, and others change what is open
                if len(due) > 1:
                    break
            if len(due) != 1 or self._full:
                return False
            batch = due[0]
            accumulator = self._open[batch]
        if not (<RecordAccumulator> accumulator).send((<ClosedBatch> batch).partition):
            return False
        with cython.critical_section(self):
            if self._alarm is not None:
                self.set_alarm()
        return True

    def send_open(self):
        # A copy is one step; a list of pairs is not: the collector may run between two of them, and other threads with it.
        for batch, accumulator in self._open.copy().items():
            if batch in self._open:
                if not (<RecordAccumulator> accumulator).send((<ClosedBatch> batch).partition):
                    return False
                self._flushed_before, self._flushed_at = self._flushed_at, headrace_clock()
        return not self._full


@cython.final
cdef class RecordAccumulator:
    """The open batches of one topic: where `produce()` puts records."""

    cdef readonly object topic
    cdef readonly Py_ssize_t partition_count
    cdef object _on_no_partition
    cdef BufferPool _buffer_pool
    cdef int _hash, _by_lot
    cdef Py_ssize_t _batch_bytes, _batch_count, _message_bytes
    cdef readonly Py_ssize_t sticky
    cdef Py_ssize_t _turn_count, _turn_bytes
    cdef int64_t _turn_ms, _turn_began_ms
    cdef list _sums  # of the partitions' weights up to each; None while all weigh alike
    cdef uint64_t _random
    cdef list _slots  # by partition: the open batch or None
    cdef readonly OpenBatches open_batches
    cdef Block _scratch  # the headers of the record that is appended
    cdef list _direct  # by partition: the way of its batches that are alone, or None; None for all
    cdef Py_ssize_t _opened  # the partition whose batch was opened last

    def __init__(self, topic, Py_ssize_t partition_count, BufferPool buffer_pool not None,
                 OpenBatches open_batches=None, *, partitioner="consistent_random", Py_ssize_t batch_bytes=1_000_000,
                 Py_ssize_t batch_count=10_000, Py_ssize_t message_bytes=1_000_000, int64_t turn_ms=900_000, seed=None,
                 on_no_partition=bool):
        self.topic = topic
        self.open_batches = OpenBatches() if open_batches is None else open_batches
        self._on_no_partition = on_no_partition
        self._buffer_pool = buffer_pool
        self._hash = HASHES[partitioner]
        self._by_lot = BY_LOT[PARTITIONERS[partitioner][1]]
        self._batch_bytes = batch_bytes
        self._batch_count = batch_count
        self._message_bytes = message_bytes
        self._random = (int.from_bytes(os.urandom(8), "little") if seed is None else seed) or 1
        self._turn_ms = turn_ms
        self.sticky = -1
        self._slots = [None] * partition_count
        self.partition_count = partition_count
        self._scratch = Block()

    def append(self, value=None, key=None, Py_ssize_t partition=-1, timestamp_ms=0, headers=None,
               callback=None, int64_t counted_bytes=-1):
        cdef int woken = self.add(value, key, partition, stamp_of(timestamp_ms), headers, callback, counted_bytes)
        if woken < 0:
            raise queue_full(self._buffer_pool)
        return woken

    cdef int add(self, value, key, Py_ssize_t partition, int64_t timestamp_ms, headers, callback,
                 int64_t counted_bytes) except -2:
        # As `append`, but -1 when the pool is used up.
        cdef Fields fields
        cdef int64_t size
        cdef BufferPool pool = self._buffer_pool
        cdef int woken
        with cython.critical_section(self.open_batches, pool):
            raw_key = point_at(key, "key", &fields.key, &fields.key_size)
            raw_value = point_at(value, "value", &fields.value, &fields.value_size)
            size = (fields.key_size if fields.key_size > 0 else 0) + (
                fields.value_size if fields.value_size > 0 else 0)
            fields.headers = NULL
            fields.headers_size = fields.header_count = 0
            if headers is not None:
                self._scratch.used = 0
                pairs = list((<dict> headers).items()) if type(headers) is dict else headers
                if type(pairs) is not list or not add_headers(self._scratch, <list> pairs, False, &size):
                    pairs = encode_headers(headers)  # the slow way, which also raises the right error
                    self._scratch.used = 0
                    add_headers(self._scratch, pairs, True, &size)
                fields.headers = self._scratch.start
                fields.headers_size = self._scratch.used
                fields.header_count = PyList_GET_SIZE(pairs)
            if timestamp_ms < 0:
                self.check(size, partition)
                raise ValueError(f"timestamp must not be negative: {timestamp_ms}")
            woken = self.put(partition, timestamp_ms, headrace_now_ns(), &fields, size, callback, None, counted_bytes)
        if (woken > 0 and self._direct is not None and self.open_batches._linger_s == 0
                and not self.open_batches._codec and self.send_plain(self._opened)):
            woken = 0
        return woken

    def lend(self, Py_ssize_t partition, DirectPartition way=None):
        with cython.critical_section(self.open_batches):
            if self._direct is None:
                self._direct = [None] * len(self._slots)
            self._direct[partition] = way

    cdef bint send(self, Py_ssize_t partition) except -1:
        # Send the open batch of a partition from this thread, if that may; False if the loop has to.
        return self.send_packed(partition) if self.open_batches._codec else self.send_plain(partition)

    cdef bint send_plain(self, Py_ssize_t partition) except -1:
        # The same where batches are not compressed, in one step.
        cdef Batch sealed = Batch.__new__(Batch)  # before the looks: others may have a turn here
        cdef DirectLane lane
        cdef OpenBatches batches = self.open_batches
        if self._direct is None:
            return False
        with cython.critical_section(batches):  # the loop's thread may end the way, and let go of it, at this moment
            way = self._direct[partition]
        if way is None:
            return False
        lane = (<DirectPartition> way)._lane
        with cython.critical_section(batches, lane):
            slot = self._slots[partition]
            if (slot is None or batches._full or self._direct[partition] is not way
                    or not lane.send(<DirectPartition> way, <ClosedBatch> slot, sealed)):
                return False
            self._slots[partition] = None
            del batches._open[slot]
        lane.end_step()
        return True

    cdef bint send_packed(self, Py_ssize_t partition) except -1:
        # The same where they are. Meanwhile the batch counts as full, so that nothing is sent which would overtake it,
        # and the loop may take it, or end the way.
        cdef DirectLane lane
        cdef OpenBatches batches = self.open_batches
        cdef Batch sealed
        with cython.critical_section(batches):
            way = None if self._direct is None else self._direct[partition]
            slot = self._slots[partition]
            if way is None or slot is None or batches._full:
                return False
            lane = (<DirectPartition> way)._lane
            if not lane.is_open(<DirectPartition> way, <ClosedBatch> slot, headrace_clock()):
                return False
            self.close(<ClosedBatch> slot)
        sealed = <Batch> (<ClosedBatch> slot)._builder.seal(batches._codec, batches._level)
        with cython.critical_section(batches, lane):
            if (slot not in batches._full or self._direct[partition] is not way
                    or not lane.send(<DirectPartition> way, <ClosedBatch> slot, sealed, True)):
                return False
            del batches._full[slot]
        lane.end_step()
        return True

    cdef inline int check(self, int64_t size, Py_ssize_t partition) except -1:
        if size > self._message_bytes:
            raise too_large(self.topic, size, self._message_bytes)
        # Counted from -1, "any", as 0: what is below that is the largest of all.
        if <size_t> partition + 1 > <size_t> self.partition_count or self.partition_count <= 0:
            self._on_no_partition()
            raise no_partition(self.topic, partition, self.partition_count)
        return 0

    cdef int put(self, Py_ssize_t partition, int64_t timestamp_ms, int64_t now_ns, const Fields *fields, int64_t size,
                 callback, listener, int64_t counted_bytes) except -2:
        # Append a record; WAKE or 0, -1 when the pool is used up. The clock is read once for each: it is not cheap.
        cdef ClosedBatch batch
        cdef int woken = 0
        cdef bint at_random = False
        cdef Py_ssize_t used = 0
        cdef double appended_at
        self.check(size, partition)
        cdef int64_t cost = OVERHEAD + size + (CALLBACK if callback is not None else 0)
        if counted_bytes < 0 and not self._buffer_pool.fits(1, cost):
            return -1
        if timestamp_ms == 0:
            timestamp_ms = now_ns // 1_000_000
        if partition < 0:
            at_random = self.is_at_random(fields.key_size)
            if at_random:
                woken = self.turn(size, now_ns // 1_000_000)
            partition = self.sticky if at_random else self.place(fields)
        slot = <object> PyList_GET_ITEM(self._slots, partition)
        if slot is not None:
            batch = <ClosedBatch> slot
            used = batch._builder._used
            if not batch._builder.add(timestamp_ms, fields):
                self.close(batch)
                slot = None
        if slot is None:
            batch = self.open(partition, now_ns, timestamp_ms, fields)
            used = 0
            woken |= not self.open_batches.is_expected(batch.opened_at)
        if counted_bytes >= 0:  # not before it is in a batch: what there was no memory for would wait for ever
            self._buffer_pool.recount(counted_bytes, cost)
        else:
            self._buffer_pool.count_in(1, cost)
        if at_random:
            self._turn_bytes += batch._builder._used - used
            self._turn_count += 1
        batch.cost_bytes += cost
        batch.data_bytes += OVERHEAD + size
        self._buffer_pool.ahead_bytes += OVERHEAD + size
        if callback is not None:
            appended_at = batch.opened_at + 1e-9 * (now_ns - batch._opened_ns)
            if type(callback) is DeliveryFuture:
                batch.deliver_to(<DeliveryFuture> callback, appended_at)
            else:
                batch.report_to(callback, appended_at)
        if listener is not batch._listener:
            batch.begin_run(listener)
        if batch._builder.count >= self._batch_count:
            self.close(batch)
            woken = WOKEN
        return woken

    cdef ClosedBatch open(self, Py_ssize_t partition, int64_t now_ns, int64_t timestamp_ms, const Fields *fields):
        # With its first record: there is no batch without one, not even where memory ends.
        cdef ClosedBatch batch = ClosedBatch.__new__(ClosedBatch, self._batch_bytes, self._batch_count)
        batch._builder._pool = self._buffer_pool.memory
        batch.topic = self.topic
        batch.partition = partition
        batch.opened_at = monotonic()
        batch._opened_ns = now_ns
        batch._builder.add(timestamp_ms, fields)
        self.open_batches._open[batch] = self
        self._slots[partition] = batch
        self._opened = partition
        return batch

    cdef int close(self, ClosedBatch batch) except -1:
        self._slots[batch.partition] = None
        del self.open_batches._open[batch]
        self.open_batches._full[batch] = self
        return 0

    cdef inline bint is_at_random(self, int64_t key_size) noexcept:
        # Whether neither the record nor its key decides where it goes, so that it takes part in a turn.
        if key_size < 0:
            return self._by_lot != NEVER
        return self._by_lot == ANY_KEYS or (key_size == 0 and self._by_lot == EMPTY_KEYS)

    cdef inline int turn(self, int64_t size, int64_t now_ms) except -1:
        # See to it that there is a turn with room for one more record. WOKEN if a batch is full thereby, or 0.
        if (self.sticky >= 0 and self._turn_count < self._batch_count
                and self._turn_bytes + size + NUMBERS <= self._batch_bytes
                and <uint64_t> (now_ms - self._turn_began_ms) < <uint64_t> self._turn_ms):
            return 0
        cdef int woken = 0
        if self.sticky >= 0:
            slot = self._slots[self.sticky]
            if slot is not None and (<ClosedBatch> slot)._builder._used + size + NUMBERS > self._batch_bytes:
                self.close(slot)
                woken = WOKEN
        self.sticky = self.draw()
        self._turn_began_ms = now_ms
        self._turn_bytes = self._turn_count = 0
        return woken

    cdef inline Py_ssize_t place(self, const Fields *fields) except -1:
        cdef size_t size = fields.key_size if fields.key_size > 0 else 0
        if self._hash == NO_HASH:
            return self.draw()
        return hash_key(self._hash, fields.key, size) % <uint64_t> self.partition_count

    cdef inline Py_ssize_t draw(self) except -1:
        # A partition at random (xorshift64*).
        cdef uint64_t x = self._random
        cdef int64_t point
        cdef Py_ssize_t low = 0, high, middle
        x ^= x >> 12
        x ^= x << 25
        x ^= x >> 27
        self._random = x
        x = (x * <uint64_t> 0x2545F4914F6CDD1D) >> 32
        cdef list sums = self._sums
        if sums is None:
            return <Py_ssize_t> (x % <uint64_t> self.partition_count)
        high = PyList_GET_SIZE(sums) - 1
        point = <int64_t> (x % <uint64_t> sums[high])
        while low < high:
            middle = (low + high) // 2
            if <int64_t> sums[middle] > point:
                high = middle
            else:
                low = middle + 1
        return low

    def weigh(self, weights=None):
        with cython.critical_section(self.open_batches):
            self._sums = None if weights is None else sums_of(weights, self.partition_count)
            if weights is not None and self.sticky >= 0 and not any(weights[self.sticky:self.sticky + 1]):
                self.sticky = -1

    def grow(self, Py_ssize_t partition_count):
        cdef Py_ssize_t added
        with cython.critical_section(self.open_batches):
            added = partition_count - len(self._slots)
            if added > 0:
                self._slots += [None] * added
                if self._direct is not None:
                    self._direct += [None] * added
            if partition_count > self.partition_count:
                self.partition_count = partition_count

    def shrink(self, Py_ssize_t partition_count):
        # The slots stay: open batches of partitions that are gone are taken out of them.
        with cython.critical_section(self.open_batches):
            if 0 < partition_count < self.partition_count:
                self.partition_count = partition_count
                self._sums = None
                self.sticky = -1


# Arrow's buffers into an accumulator. See the plain twin in `headrace.buffers.column_input`.


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


cdef int put_values(RecordAccumulator accumulator, const Source *values, int64_t *row, int64_t stop,
                    int64_t now_ns, listener) except -1:
    # Append rows of values alone from `row` on, as long as they only follow the one before: same turn, same batch, and
    # room for more. Any other row is left to `RecordAccumulator.put`, which sees to the rest: they must agree.
    cdef BufferPool pool = accumulator._buffer_pool
    cdef const uint8_t *data = NULL
    cdef int64_t size = 0, cost, total = 0
    if accumulator._by_lot == NEVER or accumulator.sticky < 0 or (
            <uint64_t> (now_ns // 1_000_000 - accumulator._turn_began_ms) >= <uint64_t> accumulator._turn_ms):
        return 0
    slot = <object> PyList_GET_ITEM(accumulator._slots, accumulator.sticky)
    if slot is None:
        return 0
    cdef ClosedBatch batch = <ClosedBatch> slot
    cdef BatchBuilder builder = batch._builder
    if batch._listener is not listener or not builder.count:
        return 0
    cdef int64_t before = builder.count, used = builder._used, timestamp_ms = now_ns // 1_000_000
    cdef int64_t delta = <int64_t> (<uint64_t> timestamp_ms - <uint64_t> builder._base_timestamp)
    cdef int64_t rows = min(accumulator._batch_count - 1 - max(accumulator._turn_count, before),
                            pool.max_messages - pool.messages)
    cdef int64_t room = min(accumulator._batch_bytes - accumulator._turn_bytes,
                            min(builder._max_bytes, builder._data.capacity) - used)
    cdef int64_t bytes_room = pool.max_bytes - pool.bytes
    stop = min(stop, row[0] + rows)
    try:
        while row[0] < stop:
            cell(values, row[0], &data, &size)
            cost = OVERHEAD + max(size, 0)
            if (size > accumulator._message_bytes or builder._used - used + max(size, 0) + SLACK > room
                    or total + cost > bytes_room):
                break
            builder.add_value(delta, data, size)
            total += cost
            row[0] += 1
    finally:
        rows = builder.count - before
        if rows:
            builder._max_timestamp = max(builder._max_timestamp, timestamp_ms)
        pool.messages += rows
        pool.bytes += total
        pool.ahead_bytes += total
        batch.cost_bytes += total
        batch.data_bytes += total
        accumulator._turn_count += rows
        accumulator._turn_bytes += builder._used - used
    return 0


def append_columns(RecordAccumulator accumulator not None, int64_t start, int64_t stop, key, value, partitions,
                   timestamps, headers, listener=None):
    """Append rows of Arrow arrays to a topic's accumulator, as many as the pool allows; returns how many."""
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
    cdef BufferPool pool = accumulator._buffer_pool
    cdef bint values_only = key is None and partitions is None and timestamps is None and headers is None
    row = start
    try:
        with cython.critical_section(accumulator.open_batches, pool):
            while row < stop:
                if values_only:
                    put_values(accumulator, &value_source, &row, min(stop, row | 63), now_ns, listener)
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
                if accumulator.put(partition, timestamp, now_ns, &fields, size, None, listener, -1) < 0:
                    break
                row += 1
    except Exception as refused:
        refused.appended = row - start
        raise
    return row - start


# `produce()` with what it needs at hand. See the plain twins in `headrace.buffers.fast_path`.


@cython.final
cdef class ProduceFastPath:
    """`Producer.produce` with what it needs at hand; anything unusual is left to `otherwise`."""

    cdef dict _open
    cdef object _otherwise, _wake, _default
    cdef BufferPool _pool
    cdef LoopTurns _turns

    def __init__(self, dict open not None, BufferPool pool not None, LoopTurns turns not None, otherwise, wake,
                 default=None):
        self._open = open
        self._pool = pool
        self._turns = turns
        self._otherwise = otherwise
        self._wake = wake
        self._default = default

    def produce(self, topic, value=None, key=None, Py_ssize_t partition=-1, callback=None, on_delivery=None,
                timestamp=0, headers=None):
        """Put a record on its way; see `headrace.Producer.produce`."""
        cdef int64_t stamp = stamp_of(timestamp)
        if callback is None:
            callback = self._default if on_delivery is None else on_delivery
        cdef int woken = -1
        found = self._open.get(topic)
        if found is not None:
            if self._pool.messages < FEW:
                self._turns.aside()
            woken = (<RecordAccumulator> found).add(value, key, partition, stamp, headers, callback, -1)
        if woken < 0:
            self._otherwise(topic, value, key, partition, stamp, headers, callback)
        elif woken:
            surely(self._wake)


@cython.final
cdef class Polling:
    """How a producer is polled; see the plain twin."""

    cdef public int64_t polls
    cdef public DirectReplies replies


@cython.final
cdef class LoopTurns:
    """Who is in the way of loops' threads steps aside while one of them has something to do; see the plain twin."""

    cdef headrace_turns _turns
    cdef int _calls
    cdef dict _alarms  # by file

    selects = bool(HAS_EPOLL)

    def __init__(self):
        self._alarms = {}

    def watch(self, Alarm alarm not None):
        self._alarms[alarm.file] = alarm

    def unwatch(self, Alarm alarm not None):
        self._alarms.pop(alarm.file, None)

    def step_aside(self):
        return self.aside()

    cdef bint aside(self):
        cdef int under_way
        if not HAS_EPOLL:
            self._calls = (self._calls + 1) % PAUSE_CALLS
            if self._calls:
                return False
            with nogil:
                headrace_pause(PAUSE_NS)
            return True
        under_way = headrace_load(&self._turns.under_way)
        if under_way == 0 or headrace_in_turn:
            return False
        with nogil:
            headrace_await_turn(&self._turns, under_way, ASIDE_NS)
        return True


cdef inline int milliseconds_of(double seconds) noexcept:
    return <int> min(ceil(max(seconds, 0.0) * 1e3), 2e9)


@cython.final
cdef class LoopTurn:
    """The turns of one loop; see the plain twin."""

    cdef LoopTurns _all
    cdef bint _under_way

    def __init__(self, LoopTurns all_turns not None):
        self._all = all_turns

    def __dealloc__(self):
        if self._under_way:
            headrace_end_turn(&self._all._turns)

    def select(self, int file, dict keys not None, timeout=None):
        cdef int[MOST_EVENTS] files
        cdef int[MOST_EVENTS] ready
        cdef int found, index, error, answered, milliseconds = -1
        cdef double until = 0.0
        cdef list chosen = []
        if timeout is not None:
            milliseconds = milliseconds_of(timeout)
            until = headrace_clock() + <double> timeout
        while True:
            self.end()
            self._under_way = True
            with nogil:
                found = headrace_epoll(file, milliseconds, files, ready)
                error = errno
                headrace_begin_turn(&self._all._turns)
            if found < 0 and error != EINTR:
                raise OSError(error, os.strerror(error))
            answered = 0
            for index in range(found):
                if self.answers(files[index]):
                    answered += 1
                    continue
                key = keys.get(files[index])
                if key is not None:
                    chosen.append((key, ready[index] & <int> key.events))
            if chosen or answered == 0 or milliseconds == 0:
                return chosen
            if milliseconds > 0:
                milliseconds = milliseconds_of(until - headrace_clock())

    cdef bint answers(self, int file) except -1:
        # Whether it is an alarm, and what it rang for was done without a turn of the loop.
        cdef Alarm alarm
        if not self._all._alarms:
            return False
        found = self._all._alarms.get(file)
        if found is None:
            return False
        alarm = <Alarm> found
        alarm.answer()  # first: when one batch is sent it is set for the next, and may ring at once
        try:
            return alarm._batches is not None and alarm._batches.send_lingered()
        except Exception:  # no memory: the loop's turn shows it to somebody
            return False

    def end(self):
        if self._under_way:
            self._under_way = False
            headrace_end_turn(&self._all._turns)


@cython.final
cdef class ServeFastPath:
    """`Producer.poll(0)` while no callback is due; see the plain twin."""

    cdef Polling _polling
    cdef LoopTurns _turns
    cdef object _client, _otherwise
    cdef tuple _queues

    def __init__(self, Polling polling not None, tuple queues not None, LoopTurns turns not None, client, otherwise):
        self._polling = polling
        self._queues = queues
        self._turns = turns
        self._client = client
        self._otherwise = otherwise

    def poll(self, timeout=-1):
        """Call the callbacks that are due; see `headrace.Producer.poll`."""
        cdef Polling polling = self._polling
        polling.polls += 1
        if polling.replies is not None and polling.replies._lanes:
            polling.replies.look()
        if (type(timeout) is int and timeout == 0 and not self._client.closed and not self._is_due()
                and not (self._turns.aside() and self._is_due())):
            return 0
        return self._otherwise(timeout)

    cdef bint _is_due(self) except -1:
        for queue in self._queues:
            if queue:
                return True
        return False


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Accepted:
    """A coroutine that has done its work when it is made; see the plain twin."""

    cdef DeliveryFuture _delivery  # None once it was awaited

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration(self.take())

    def send(self, _value):
        raise StopIteration(self.take())

    def throw(self, kind, value=None, traceback=None):
        self._delivery = None
        raise kind if value is None else value

    def close(self):
        self._delivery = None

    cdef DeliveryFuture take(self):
        delivery = self._delivery
        if delivery is None:
            raise RuntimeError("cannot reuse already awaited coroutine")
        self._delivery = None
        return delivery


cdef int send_accepted(PyObject *accepted, PyObject *_, PyObject **result) except SEND_ERROR:
    # What `await` calls: unlike `__next__` it needs no exception to carry the result.
    result[0] = NULL
    delivery = (<Accepted> accepted).take()
    Py_INCREF(delivery)
    result[0] = <PyObject *> delivery
    return SEND_RETURN


cdef int send_delivery(PyObject *delivery, PyObject *_, PyObject **result) except SEND_ERROR:
    result[0] = NULL
    message = (<DeliveryFuture> delivery).result()
    Py_INCREF(message)
    result[0] = <PyObject *> message
    return SEND_RETURN


headrace_set_send(Accepted, send_accepted)
headrace_set_send(DeliveryFuture, send_delivery)


@cython.final
cdef class AIOProduceFastPath:
    """`AIOProducer.produce` with what it needs at hand; anything unusual is left to `otherwise`."""

    cdef dict _open
    cdef object _otherwise, _wake, _make_future, _yield_to_loop
    cdef int64_t _turn_ns

    def __init__(self, dict open not None, otherwise, wake, make_future, yield_to_loop):
        self._turn_ns = headrace_now_ns()
        self._open = open
        self._otherwise = otherwise
        self._wake = wake
        self._make_future = make_future
        self._yield_to_loop = yield_to_loop

    def produce(self, topic, value=None, key=None, Py_ssize_t partition=-1, on_delivery=None, timestamp=0,
                headers=None):
        """Put a record on its way; see `headrace.aio.AIOProducer.produce`."""
        cdef int64_t stamp = stamp_of(timestamp)
        cdef Accepted accepted
        cdef DeliveryFuture delivery
        cdef RecordAccumulator accumulator
        cdef int woken = -1
        cdef int64_t now_ns
        if on_delivery is None:
            try:
                found = self._open.get(topic)
                if found is not None:
                    accumulator = <RecordAccumulator> found
                    delivery = DeliveryFuture.__new__(DeliveryFuture)
                    delivery._make_future = self._make_future
                    woken = accumulator.add(value, key, partition, stamp, headers, delivery, -1)
            except Exception:
                pass  # what refused it once refuses it again
        if woken < 0:
            return self._otherwise(topic, value, key, partition, on_delivery, stamp, headers)
        now_ns = headrace_now_ns()
        if woken:
            self._wake()
        if (woken and accumulator.open_batches._full) or <uint64_t> (now_ns - self._turn_ns) >= TURN_NS:
            self._turn_ns = now_ns
            return yielded(self._yield_to_loop, delivery)
        accepted = Accepted.__new__(Accepted)
        accepted._delivery = delivery
        return accepted


async def yielded(yield_to_loop, delivery):
    await yield_to_loop()
    return delivery


@cython.final
@cython.no_gc
cdef class Tether:
    """Ends behind the object that holds it; see the plain twin."""

    cdef object __weakref__


@cython.final
cdef class FutureCondition:
    """What guards a future, and wakes who waits for it; see the plain twin."""

    cdef object _lock
    cdef list _waiting

    def __init__(self, lock=None):
        self._lock = RLock() if lock is None else lock
        self._waiting = []

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_raised):
        self._lock.release()

    def acquire(self):
        return self._lock.acquire()

    def release(self):
        self._lock.release()

    def wait(self, timeout=None):
        """Wait, without the lock, until it is told; False if that does not happen in so many seconds."""
        awake = self.waiter()
        self._lock.release()
        try:
            return awake.acquire(True, -1 if timeout is None else max(timeout, 0.0))
        finally:
            self._waiting.remove(awake)
            self.acquire_surely()

    def sleep(self, over, timeout=None):
        """Wait until what makes `over` true calls `notify_all`; without the lock at any time."""
        awake = self.waiter()
        try:
            if not over():  # what becomes true behind this look finds the waiter
                awake.acquire(True, -1 if timeout is None else max(timeout, 0.0))
        finally:
            self._waiting.remove(awake)

    cdef waiter(self):
        awake = allocate_lock()
        awake.acquire()
        self._waiting.append(awake)
        return awake

    cdef int acquire_surely(self) except -1:
        raised = None
        while True:
            try:
                self._lock.acquire()
                break
            except BaseException as interrupt:  # a signal's, while another thread has it
                raised = interrupt
        if raised is not None:
            raise raised
        return 0

    def notify_all(self):
        for awake in list(self._waiting):
            try:
                awake.release()
            except RuntimeError:  # it is awake already
                pass


cdef enum:
    NOBODY = 0
    WATCHED = 1
    CHANGED = 2


@cython.final
cdef class SpinWait:
    """Lets a thread see at once what another has done; see the plain twin."""

    cdef int _state

    def wait(self, happened, double timeout_s):
        headrace_store(&self._state, WATCHED)  # before the look at what has happened: what comes then is seen as well
        try:
            if not happened():
                with nogil:
                    headrace_watch(&self._state, WATCHED, <int64_t> (timeout_s * 1e9))
        finally:
            headrace_store(&self._state, NOBODY)

    def notify(self):
        if headrace_load(&self._state) == WATCHED:
            headrace_store(&self._state, CHANGED)
            with nogil:
                headrace_watch(&self._state, CHANGED, HAND_OVER_NS)
