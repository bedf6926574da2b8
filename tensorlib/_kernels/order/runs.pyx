"""Runs of equal neighbours, and items that are marked by bytes of 0 or 1.

    differ     void run(const T* x, char* marks, Py_ssize_t rows)
    take       Py_ssize_t run(const char* x, const char* marks, char* y, Py_ssize_t rows)
    places     Py_ssize_t run(const char* marks, int64_t* places, Py_ssize_t rows,
                              Py_ssize_t first)
    sums       void run(const char* marks, int64_t* sums, Py_ssize_t rows, Py_ssize_t sum)

`take` and `places` return the number of marks, and may write one more item. `differ` is by dtype,
as NaN differs from itself, and `take` by size of the items.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "order/marked_items.h" nogil:
    size_t take_marked(const char* x, const char* marks, char* y, size_t rows, size_t size,
                       size_t* count)
    size_t place_marked(const char* marks, int64_t* places, size_t rows, int64_t first,
                        size_t* count)
    size_t sum_marked(const char* marks, int64_t* sums, size_t rows, int64_t* sum)

ctypedef fused compared:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double

ctypedef fused item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void differ(const compared* x, char* marks, Py_ssize_t rows) noexcept nogil:
    """marks := whether an element differs from the one before, as the first one does"""
    cdef Py_ssize_t i
    if rows:
        marks[0] = 1
    for i in range(1, rows):
        marks[i] = x[i] != x[i - 1]


cdef Py_ssize_t take(const item* x, const char* marks, item* y, Py_ssize_t rows) noexcept nogil:
    """y := the marked elements"""
    cdef size_t count = 0
    cdef Py_ssize_t k, i = <Py_ssize_t>take_marked(<const char*>x, marks, <char*>y, rows,
                                                   sizeof(item), &count)
    k = count
    for i in range(i, rows):
        y[k] = x[i]                  # no branch: items that are not marked are overwritten
        k += marks[i]
    return k


cdef Py_ssize_t places_of(const char* marks, int64_t* places, Py_ssize_t rows,
                          Py_ssize_t first) noexcept nogil:
    """places := those of the marks, counted from `first`"""
    cdef size_t count = 0
    cdef Py_ssize_t k, i = <Py_ssize_t>place_marked(marks, places, rows, first, &count)
    k = count
    for i in range(i, rows):
        places[k] = first + i
        k += marks[i]
    return k


cdef void sums_of(const char* marks, int64_t* sums, Py_ssize_t rows,
                  Py_ssize_t sum) noexcept nogil:
    """sums := `sum` and how many marks there are up to each row and with it"""
    cdef int64_t k = sum
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>sum_marked(marks, sums, rows, &k), rows):
        k += marks[i]
        sums[i] = k


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    differs = {
        "uint8": <size_t>&differ[uint8_t], "uint16": <size_t>&differ[uint16_t],
        "uint32": <size_t>&differ[uint32_t], "uint64": <size_t>&differ[uint64_t],
        "float32": <size_t>&differ[float], "float64": <size_t>&differ[double],
    }
    takes = {
        "uint8": <size_t>&take[uint8_t], "uint16": <size_t>&take[uint16_t],
        "uint32": <size_t>&take[uint32_t], "uint64": <size_t>&take[uint64_t],
    }
    return ([("differ", (dtype,), "bool", address) for dtype, address in differs.items()]
            + [("take", (dtype,), dtype, address) for dtype, address in takes.items()]
            + [("places", ("bool",), "int64", <size_t>&places_of),
               ("sums", ("bool",), "int64", <size_t>&sums_of)])
