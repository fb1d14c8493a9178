# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""Record batches in C: the same names as the plain twin, which documents them, and the same answers.

Bytes from the network are read through `read_varint` and `read_record` alone, which check every step against the end.
Nothing here calls back into the application. What is shared between threads is guarded by critical sections, which
cost nothing where the GIL does the same.

    _message.pxi       Message, and the bytes that it points into
    _write.pxi         records and batches into bytes
    _delivery.pxi      what becomes of a record, for asyncio and for whoever waits for it
    _topic_buffer.pxi  the open batches of a topic
    _read.pxi          bytes into records
    _columns.pxi       bytes into Arrow's buffers, and back

The GIL is released while columns are filled and round sums of more than `GIL_BYTES`. A smaller sum takes less time
than getting the GIL back from a busy thread would (5 ms), and snappy, lz4 and zstd release it themselves. Others have a
turn every `TURN_NS` while columns are appended.
"""

import os
from time import monotonic

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.math cimport INFINITY
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcpy, memmove, memset

from headrace.errors import CorruptRecordError, KafkaException
from headrace.records.legacy import message_set
from headrace.records.batch import MAX_DECOMPRESSED_BYTES
from headrace.records.columns.columns import MAX_COLUMN_BYTES, BinaryColumn, Columns, HeaderColumn
from headrace.records.columns.columns import read_columns as plain_read_columns
from headrace.records.compression import compress, decompress
from headrace.records.control import aborts
from headrace.records.delivery import DoneCallback
from headrace.records.hashing import PARTITIONERS
from headrace.records.header import BatchInfo
from headrace.records.message import encode_headers, encode_text, rebuild
from headrace.records.topic_buffer import count_parts, no_partition, queue_full, sums_of, too_large

cdef extern from "Python.h":
    ctypedef struct PyObject:
        pass
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
    int PyList_SetSlice(object target, Py_ssize_t low, Py_ssize_t high, PyObject *items) except -1

cdef enum:
    SEND_RETURN = 0  # PySendResult
    SEND_ERROR = -1

cdef extern from "_native.h":
    void headrace_setup(int portable_only)
    uint32_t headrace_crc32c(uint32_t value, const uint8_t *p, size_t size) nogil
    uint32_t headrace_crc32c_portable(uint32_t value, const uint8_t *p, size_t size) nogil
    uint32_t headrace_crc32(const uint8_t *p, size_t size) nogil
    uint32_t headrace_murmur2(const uint8_t *p, size_t size) nogil
    uint32_t headrace_fnv1a(const uint8_t *p, size_t size) nogil
    int64_t headrace_now_ns() nogil
    int64_t headrace_micros(int64_t ms) nogil
    uint64_t headrace_get(const uint8_t *p, int size) nogil
    void headrace_put(uint8_t *p, int size, uint64_t x) nogil
    void headrace_set_send(object type, int (*send)(PyObject *, PyObject *, PyObject **) except SEND_ERROR)
    int headrace_load(const int *number) nogil
    void headrace_store(int *number, int value) nogil
    void headrace_watch(const int *number, int value, int64_t timeout_ns) nogil
    void *headrace_map(size_t size) nogil
    void headrace_unmap(void *p, size_t size) nogil

headrace_setup(0)

cdef enum:
    HEADER = 61
    SUMMED_FROM = 21
    CODEC_MASK = 0x07
    LOG_APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    GIL_BYTES = 4194304
    HAND_OVER_NS = 10_000  # what a thread that watches needs to get the GIL that another has let go
    TURN_NS = 10_000_000  # 10 ms, longer than the switch interval, 5 ms, after which whoever waits has asked for the GIL
    AHEAD = 16777216
    OVERHEAD = 16
    CALLBACK = 512
    WOKEN = 1

OVERHEAD_BYTES = OVERHEAD
CALLBACK_BYTES = CALLBACK
WAKE = WOKEN


cdef class Pinned:
    """A buffer held in place for as long as this object lives."""

    cdef Py_buffer view
    cdef const uint8_t *start
    cdef Py_ssize_t size

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
    """The same without the processor's instruction."""
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


include "_message.pxi"
include "_write.pxi"
include "_delivery.pxi"
include "_topic_buffer.pxi"
include "_read.pxi"
include "_columns.pxi"
