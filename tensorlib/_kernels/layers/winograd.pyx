"""The transforms of Winograd's convolutions (`winograd.h`), of float32.

    void input(const float* x, const float* zeros, float* v, const WinogradTiles* t)
    void output(const float* m, float* y, const WinogradTiles* t)
    void gradient(const float* y, const float* zeros, float* p, const WinogradTiles* t,
                  Py_ssize_t all, Py_ssize_t done)
    void filter(const float* w, Py_ssize_t tap, float* p, Py_ssize_t n, Py_ssize_t outs,
                Py_ssize_t depth, Py_ssize_t done, Py_ssize_t step)
    void filter_back(const float* u, float* w, Py_ssize_t n, Py_ssize_t outs)
    int finite(const float* x, Py_ssize_t n)
"""

cdef extern from "layers/winograd.h" nogil:
    void winograd_input()
    void winograd_output()
    void winograd_gradient()
    void winograd_filter()
    void winograd_filter_back()
    void winograd_finite()


def table():
    """(name, input dtypes, output dtype, address) of every function"""
    return [(name, ("float32",), "float32", address) for name, address in (
        ("input", <size_t>&winograd_input), ("output", <size_t>&winograd_output),
        ("gradient", <size_t>&winograd_gradient), ("filter", <size_t>&winograd_filter),
        ("filter_back", <size_t>&winograd_filter_back), ("finite", <size_t>&winograd_finite))]
