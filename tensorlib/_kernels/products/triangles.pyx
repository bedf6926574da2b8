"""Triangular systems and factors of Cholesky and Gauss (`triangles.h`), Householder reflections
(`reflections.h`), and reflections and rotations of symmetric matrices (`symmetric.h`); strides are
in elements.

    void substitute(const T* l, Py_ssize_t l_row, Py_ssize_t l_col, T* t, Py_ssize_t t_row,
                    Py_ssize_t n, Py_ssize_t m, int unit)
    void squares(const T* t, Py_ssize_t t_row, Py_ssize_t n, Py_ssize_t m, double* d)
    Py_ssize_t factor(T* u, Py_ssize_t u_row, Py_ssize_t n, double* d)
    Py_ssize_t eliminate(T* p, Py_ssize_t p_row, Py_ssize_t n, Py_ssize_t m, Py_ssize_t* places)
    void reflect(T* p, T* v, Py_ssize_t row, T* factors, Py_ssize_t n, Py_ssize_t m)
    void weigh(const T* s, const T* factors, T* t, Py_ssize_t n)
    void reduce(T* a, Py_ssize_t row, Py_ssize_t n, double* d, double* e, T* tau, T* work)
    void multiply(const T* a, T* q, Py_ssize_t row, Py_ssize_t n, const T* tau, T* work)
    int rotate(double* d, double* e, Py_ssize_t n, T* z, Py_ssize_t row)
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

cdef extern from "products/symmetric.h" nogil:
    void symmetric_reduce_float()
    void symmetric_multiply_float()
    void symmetric_rotate_float()
    void symmetric_reduce_double()
    void symmetric_multiply_double()
    void symmetric_rotate_double()


def table():
    """(name, input dtypes, output dtype, address) of every function"""
    return rows_for(FLOATS, [
        ("substitute", <size_t>&triangle_substitute_float, <size_t>&triangle_substitute_double),
        ("factor", <size_t>&triangle_factor_float, <size_t>&triangle_factor_double),
        ("eliminate", <size_t>&triangle_eliminate_float, <size_t>&triangle_eliminate_double),
        ("reflect", <size_t>&reflection_reflect_float, <size_t>&reflection_reflect_double),
        ("weigh", <size_t>&reflection_weigh_float, <size_t>&reflection_weigh_double),
        ("reduce", <size_t>&symmetric_reduce_float, <size_t>&symmetric_reduce_double),
        ("multiply", <size_t>&symmetric_multiply_float, <size_t>&symmetric_multiply_double),
        ("rotate", <size_t>&symmetric_rotate_float, <size_t>&symmetric_rotate_double),
        ("squares", <size_t>&triangle_squares_float),
    ])
