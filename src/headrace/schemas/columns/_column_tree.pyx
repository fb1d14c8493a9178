# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, binding=False, embedsignature=True
"""Trees of columns in C, and the tuples of `headrace.schemas.columns.arrow_tree`."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc

from headrace.schemas.columns.arrow_tree import Grown


cdef class GrownColumns:
    """The memory of columns, which lives as long as an array that is made of it."""

    def __dealloc__(self):
        clear(&self.root)


cdef object grown_of(Column *column):
    # A `Grown`.
    cdef list dropped = [(<int64_t *> column.dropped.at)[i] for i in range(<Py_ssize_t> (column.dropped.size // 8))]
    cdef list children = [grown_of(&column.children[i]) for i in range(column.count)]
    return Grown(column.rows, column.nulls, (<size_t> column.validity.at, column.validity.size),
                 (<size_t> column.offsets.at, column.offsets.size), (<size_t> column.data.at, column.data.size),
                 dropped, children)


cdef int lay_out(Column *column, layout) except -1:
    # An empty tree of a `Layout`.
    column.kind, column.width, column.is_required = layout.kind, layout.width, layout.is_required
    column.cells = 0
    if start_column(column) != FINE:
        raise MemoryError
    if layout.children:
        column.children = <Column *> calloc(len(layout.children), sizeof(Column))
        if column.children == NULL:
            raise MemoryError
        column.count = len(layout.children)
        for i in range(column.count):
            lay_out(&column.children[i], layout.children[i])
            column.cells += column.children[i].cells
    column.cells += column.kind != STRUCT
    return 0


cdef int look_at(View *view, seen) except -1:
    # A view of a `Seen`; None has no values.
    if seen is None:
        return 0
    view.is_there = 1
    view.offset = seen.offset
    view.validity = <const uint8_t *> <size_t> seen.validity
    view.offsets = <const int32_t *> <size_t> seen.offsets
    view.data = <const uint8_t *> <size_t> seen.data
    if seen.children:
        view.children = <View *> calloc(len(seen.children), sizeof(View))
        if view.children == NULL:
            raise MemoryError
        view.count = len(seen.children)
        for i in range(view.count):
            look_at(&view.children[i], seen.children[i])
    return 0


cdef int raise_fault(int fault) except -1:
    if fault == NO_MEMORY:
        raise MemoryError
    if fault == TOO_LARGE:
        raise OverflowError("a column takes more than 1 GiB: read or write fewer records at a time")
    return 0
