# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""Topics of a Metadata reply, in C: gone over once, and read no further than to their names (decision 0047).

Only what is ordinary is taken. Whatever is not (null, a tagged field, a length that reaches too far, a name that is not
UTF-8) ends it, and the codec goes on from there: it says what is wrong, and what `TopicRow` is. Every read is checked
against the end; what was gone over can be read later.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, int16_t, int32_t, uint8_t, uint32_t, uint64_t

from headrace.wire.primitives import read_uuid

cdef enum:
    IDS_FROM = 10  # version
    LONGEST_NAME = 32767
    ID_BYTES = 16
    PARTITION_BYTES = 14  # its numbers: error code, partition, leader and epoch
    NUMBER_BYTES = 4
    NUMBER_LISTS = 3  # replicas, in-sync replicas, offline replicas


@cython.final
@cython.no_gc
cdef class TopicRow:
    """A topic, with the names of `MetadataResponseTopic`. Its partitions are made anew each time they are asked for."""

    cdef readonly str name
    cdef readonly bytes raw
    cdef readonly int error_code
    cdef readonly int topic_authorized_operations
    cdef readonly bint is_internal
    cdef TopicReader reader
    cdef Py_ssize_t id_at

    def __init__(self):
        raise TypeError("a row is read from a reply")

    @property
    def topic_id(self):
        """The topic's id; zero where the version has none."""
        return read_uuid(self.raw[self.id_at:self.id_at + ID_BYTES]) if self.id_at else self.whole().topic_id

    @property
    def partitions(self):
        """Its partitions, as the codec reads them."""
        return self.whole().partitions

    def whole(self):
        """All of it, as the codec reads it."""
        return self.reader.whole(self.raw)

    def __repr__(self):
        return f"TopicRow({self.whole()!r})"


@cython.final
cdef class TopicReader:
    """Reads arrays of topics in one flexible version.

    Args:
        version: of the reply.
        whole: reads a topic from its bytes.
    """

    cdef int version
    cdef object whole

    def __init__(self, int version, object whole):
        self.version = version
        self.whole = whole

    def __call__(self, object data, Py_ssize_t position, Py_ssize_t count):
        """Read topics, at most `count`, from a position on.

        Returns:
            The rows, as many as are ordinary, and the position behind them.
        """
        cdef Py_buffer view
        cdef list rows = []
        cdef TopicRow row
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if position < 0 or position > view.len:
                return rows, position
            while count > 0:
                row = self.read(<const uint8_t *>view.buf + position, view.len - position)
                if row is None:
                    break
                position += len(row.raw)
                rows.append(row)
                count -= 1
        finally:
            PyBuffer_Release(&view)
        return rows, position

    cdef TopicRow read(self, const uint8_t *data, Py_ssize_t end):
        """The topic that begins here, None if it is not ordinary."""
        cdef TopicRow row
        cdef Py_ssize_t p = 2, name_at, id_at = 0, size, partitions
        if end < p:
            return None
        size = length_at(data, &p, end)
        if size < 0 or size > LONGEST_NAME or size > end - p:
            return None
        name_at = p
        p += size
        if self.version >= IDS_FROM:
            id_at = p
            p += ID_BYTES
        p += 1  # whether it is internal
        if p > end:
            return None
        partitions = length_at(data, &p, end)
        if partitions < 0:
            return None
        while partitions > 0:
            p = behind_partition(data, p, end)
            if p < 0:
                return None
            partitions -= 1
        if end - p < NUMBER_BYTES + 1 or data[p + NUMBER_BYTES]:
            return None
        row = TopicRow.__new__(TopicRow)
        try:
            row.name = PyUnicode_DecodeUTF8(<const char *>data + name_at, size, NULL)
        except UnicodeDecodeError:
            return None
        row.error_code = <int16_t>(data[0] << 8 | data[1])
        row.id_at = id_at
        row.is_internal = data[name_at + size + (ID_BYTES if id_at else 0)] != 0
        row.topic_authorized_operations = number_at(data + p)
        row.raw = PyBytes_FromStringAndSize(<const char *>data, p + NUMBER_BYTES + 1)
        row.reader = self
        return row


cdef inline int32_t number_at(const uint8_t *data) noexcept nogil:
    return <int32_t>(<uint32_t>data[0] << 24 | <uint32_t>data[1] << 16 | <uint32_t>data[2] << 8 | data[3])


cdef inline Py_ssize_t length_at(const uint8_t *data, Py_ssize_t *position, Py_ssize_t end) noexcept nogil:
    """A compact length, behind which the position is then; negative for null and where it cannot be read."""
    cdef Py_ssize_t p = position[0]
    cdef uint64_t above = 0
    cdef int shift = 0
    while p < end:
        above |= <uint64_t>(data[p] & 0x7F) << shift
        p += 1
        if data[p - 1] < 0x80:
            position[0] = p
            return <Py_ssize_t>above - 1 if above <= INT32_MAX else -1
        shift += 7
        if shift > 28:
            break
    return -1


cdef Py_ssize_t behind_partition(const uint8_t *data, Py_ssize_t p, Py_ssize_t end) noexcept nogil:
    """The position behind a partition; negative if it is not ordinary."""
    cdef Py_ssize_t count
    cdef int left
    if end - p < PARTITION_BYTES:
        return -1
    p += PARTITION_BYTES
    for left in range(NUMBER_LISTS):
        count = length_at(data, &p, end)
        if count < 0 or count > (end - p) // NUMBER_BYTES:
            return -1
        p += count * NUMBER_BYTES
    return p + 1 if p < end and not data[p] else -1
