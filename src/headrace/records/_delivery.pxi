# What becomes of a record, for asyncio. See the plain twin in `headrace.records.delivery`.

cdef class OpenBatch


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Delivery:
    """What becomes of one record; see the plain twin.

    The garbage collector does not look into deliveries, which would cost as much again. So they must not refer to the
    loop or the producer before somebody looks.
    """

    cdef OpenBatch _batch  # once it is done
    cdef Py_ssize_t _index
    cdef object _future, _make_future

    _asyncio_future_blocking = False

    def __init__(self, make_future):
        self._make_future = make_future

    def __await__(self):
        if self._future is None and self._batch is not None:
            return self._batch.message_at(self._index)
        return (yield from self.as_future())

    def __iter__(self):
        return self.__await__()

    def done(self):
        return self._batch is not None or self.cancelled()

    def result(self):
        if self._future is None and self._batch is not None:
            return self._batch.message_at(self._index)
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
            if self._batch is not None:
                self.resolve()
        return self._future

    cdef int settle(self, OpenBatch batch, Py_ssize_t index) except -1:
        # The batch is done; this is about the record at `index`.
        self._batch = batch
        self._index = index
        if self._future is not None:
            self.resolve()
        return 0

    cdef int resolve(self) except -1:
        if self._future.done():  # cancelled
            return 0
        try:
            message = self._batch.message_at(self._index)
        except KafkaException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(message)
        return 0


@cython.final
cdef class AIOIntake:
    """`AIOProducer.produce` with what it needs at hand; anything unusual is left to `otherwise`."""

    cdef dict _open
    cdef object _otherwise, _wake, _make_future, _ease

    def __init__(self, dict open not None, otherwise, wake, make_future, ease):
        self._open = open
        self._otherwise = otherwise
        self._wake = wake
        self._make_future = make_future
        self._ease = ease

    async def produce(self, topic, value=None, key=None, Py_ssize_t partition=-1, on_delivery=None,
                      int64_t timestamp=0, headers=None):
        """Put a record on its way; see `headrace.aio.AIOProducer.produce`."""
        cdef Delivery delivery
        cdef TopicBuffer buffer
        cdef int woken
        if on_delivery is None:
            found = self._open.get(topic)
            if found is not None:
                buffer = <TopicBuffer> found
                delivery = Delivery.__new__(Delivery)
                delivery._make_future = self._make_future
                woken = buffer.add(value, key, partition, timestamp, headers, delivery)
                if woken >= 0:
                    if woken:
                        self._wake()
                        if buffer._full:
                            await self._ease()
                    return delivery
        return await self._otherwise(topic, value, key, partition, on_delivery, timestamp, headers)
