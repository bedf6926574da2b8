"""Householder reflections (`reflections.h`); strides are in elements.

    void reflect(T* p, T* v, Py_ssize_t row, T* factors, Py_ssize_t n, Py_ssize_t m)
    void weigh(const T* s, const T* factors, T* t, Py_ssize_t n)
"""

cdef extern from "reflections.h" nogil:
    void reflection_reflect_float()
    void reflection_weigh_float()
    void reflection_reflect_double()
    void reflection_weigh_double()


def table():
    """(name, input dtypes, output dtype, address) of every function"""
    return [(name, (dtype,), dtype, address) for name, dtype, address in (
        ("reflect", "float32", <size_t>&reflection_reflect_float),
        ("weigh", "float32", <size_t>&reflection_weigh_float),
        ("reflect", "float64", <size_t>&reflection_reflect_double),
        ("weigh", "float64", <size_t>&reflection_weigh_double))]
