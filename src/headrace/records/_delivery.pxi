# What becomes of a record, for asyncio and for whoever waits for it. See the plain twin in `headrace.records.delivery`.

cdef class ClosedBatch


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
        return self._batch._fate is not None

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
    cdef object _otherwise, _wake, _make_future, _ease

    def __init__(self, dict open not None, otherwise, wake, make_future, ease):
        self._open = open
        self._otherwise = otherwise
        self._wake = wake
        self._make_future = make_future
        self._ease = ease

    def produce(self, topic, value=None, key=None, Py_ssize_t partition=-1, on_delivery=None, int64_t timestamp=0,
                headers=None):
        """Put a record on its way; see `headrace.aio.AIOProducer.produce`."""
        cdef Accepted accepted
        cdef DeliveryFuture delivery
        cdef RecordAccumulator buffer
        cdef int woken = -1
        if on_delivery is None:
            try:
                found = self._open.get(topic)
                if found is not None:
                    buffer = <RecordAccumulator> found
                    delivery = DeliveryFuture.__new__(DeliveryFuture)
                    delivery._make_future = self._make_future
                    woken = buffer.add(value, key, partition, timestamp, headers, delivery)
            except Exception:
                pass  # what refuses it once refuses it twice
        if woken < 0:
            return self._otherwise(topic, value, key, partition, on_delivery, timestamp, headers)
        if woken:
            self._wake()
            if buffer._full:
                return eased(self._ease, delivery)
        accepted = Accepted.__new__(Accepted)
        accepted._delivery = delivery
        return accepted


async def eased(ease, delivery):
    await ease()
    return delivery


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

    def tell(self):
        if headrace_load(&self._state) == WATCHED:
            headrace_store(&self._state, CHANGED)
            with nogil:
                headrace_watch(&self._state, CHANGED, HAND_OVER_NS)
