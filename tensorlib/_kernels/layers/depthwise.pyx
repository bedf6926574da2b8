"""Depthwise convolutions (`depthwise.h`): sums of shifted rows.

    void products(const T* x, Py_ssize_t x_row, const Py_ssize_t* taps, const T* w,
                  Py_ssize_t n_taps, T* y, Py_ssize_t y_row, Py_ssize_t rows, Py_ssize_t n,
                  int tall)
        y[r, i] := sum of w[k] * x[r, taps[k] + i], for rows x_row and y_row apart
        tall: of how many equal rows the taps are made, x_row apart; 0 for taps in any places
    void dots(const T* g, const T* x, const Py_ssize_t* taps, Py_ssize_t n_taps, double* totals,
              Py_ssize_t n)
        totals[k] += sum of g[i] * x[taps[k] + i]
    void copy(const T* x, Py_ssize_t x_row, T* y, Py_ssize_t y_row, Py_ssize_t rows, Py_ssize_t n)
        y[r, i] := x[r, i]
    void split(const T* x, Py_ssize_t x_row, T* even, T* odd, Py_ssize_t y_row, Py_ssize_t rows,
               Py_ssize_t n, int odd_first)
        even[r, i] := x[r, 2 i], odd[r, i] := x[r, 2 i + 1]; with `odd_first` x begins at 1
    void join(const T* even, const T* odd, T* x, Py_ssize_t n, int odd_first)
        back, of one row
    void lane_products(const T* x, Py_ssize_t x_step, const Py_ssize_t* taps, const T* w,
                       const Py_ssize_t* order, Py_ssize_t n_taps, T* y, Py_ssize_t y_step,
                       Py_ssize_t places, Py_ssize_t channels)
        y[p, c] := sum of w[order[k] + c] * x[taps[k] + p x_step + c]
    void lane_dots(const T* g, const T* x, Py_ssize_t x_step, const Py_ssize_t* taps,
                   const Py_ssize_t* order, Py_ssize_t n_taps, T* totals, Py_ssize_t g_step,
                   Py_ssize_t places, Py_ssize_t channels)
        totals[order[k] + c] += sum over p of g[p g_step + c] * x[taps[k] + p x_step + c]

Those of lanes, of float32 alone, take no fewer channels than a vector has. The first two read, and
`products` writes, to the end of the vector of up to 64 bytes in which the last element of a row
lies; where that is in the next row of y, it is written again.
"""

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "layers/depthwise.h" nogil:
    void depthwise_products_float()
    void depthwise_products_double()
    void depthwise_dots_float()
    void depthwise_dots_double()
    void depthwise_lane_products()
    void depthwise_lane_dots()
    void depthwise_copy_float()
    void depthwise_copy_double()
    void depthwise_split_float()
    void depthwise_split_double()
    void depthwise_join_float()
    void depthwise_join_double()


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("products", <size_t>&depthwise_products_float, <size_t>&depthwise_products_double),
        ("dots", <size_t>&depthwise_dots_float, <size_t>&depthwise_dots_double),
        ("copy", <size_t>&depthwise_copy_float, <size_t>&depthwise_copy_double),
        ("split", <size_t>&depthwise_split_float, <size_t>&depthwise_split_double),
        ("join", <size_t>&depthwise_join_float, <size_t>&depthwise_join_double),
        ("lane_products", <size_t>&depthwise_lane_products),              # of float32 alone
        ("lane_dots", <size_t>&depthwise_lane_dots),
    ])
