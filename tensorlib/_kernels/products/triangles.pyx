"""Triangular systems and factors of Cholesky and Gauss (`triangles.h`), and Householder reflections
(`reflections.h`); strides are in elements.

    void substitute(const T* l, Py_ssize_t l_row, Py_ssize_t l_col, T* t, Py_ssize_t t_row,
                    Py_ssize_t n, Py_ssize_t m, int unit)
    void squares(const T* t, Py_ssize_t t_row, Py_ssize_t n, Py_ssize_t m, double* d)
    Py_ssize_t factor(T* u, Py_ssize_t u_row, Py_ssize_t n, double* d)
    Py_ssize_t eliminate(T* p, Py_ssize_t p_row, Py_ssize_t n, Py_ssize_t m, Py_ssize_t* places)
    void reflect(T* p, T* v, Py_ssize_t row, T* factors, Py_ssize_t n, Py_ssize_t m)
    void weigh(const T* s, const T* factors, T* t, Py_ssize_t n)
"""

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "products/triangles.h" nogil:
    void triangle_substitute_float()
    void triangle_squares_float()
    void triangle_factor_float()
    void triangle_eliminate_float()
    void triangle_substitute_double()
    void triangle_factor_double()
    void triangle_eliminate_double()

cdef extern from "products/reflections.h" nogil:
    void reflection_reflect_float()
    void reflection_weigh_float()
    void reflection_reflect_double()
    void reflection_weigh_double()


def table():
    """(name, input dtypes, output dtype, address) of every function"""
    return rows_for(FLOATS, [
        ("substitute", <size_t>&triangle_substitute_float, <size_t>&triangle_substitute_double),
        ("factor", <size_t>&triangle_factor_float, <size_t>&triangle_factor_double),
        ("eliminate", <size_t>&triangle_eliminate_float, <size_t>&triangle_eliminate_double),
        ("reflect", <size_t>&reflection_reflect_float, <size_t>&reflection_reflect_double),
        ("weigh", <size_t>&reflection_weigh_float, <size_t>&reflection_weigh_double),
        ("squares", <size_t>&triangle_squares_float),
    ])
