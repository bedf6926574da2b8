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

cdef extern from "triangles.h" nogil:
    void triangle_substitute_float()
    void triangle_squares_float()
    void triangle_factor_float()
    void triangle_eliminate_float()
    void triangle_substitute_double()
    void triangle_factor_double()
    void triangle_eliminate_double()

cdef extern from "reflections.h" nogil:
    void reflection_reflect_float()
    void reflection_weigh_float()
    void reflection_reflect_double()
    void reflection_weigh_double()


def table():
    """(name, input dtypes, output dtype, address) of every function"""
    return [(name, (dtype,), dtype, address) for name, dtype, address in (
        ("substitute", "float32", <size_t>&triangle_substitute_float),
        ("squares", "float32", <size_t>&triangle_squares_float),
        ("factor", "float32", <size_t>&triangle_factor_float),
        ("eliminate", "float32", <size_t>&triangle_eliminate_float),
        ("eliminate", "float64", <size_t>&triangle_eliminate_double),
        ("substitute", "float64", <size_t>&triangle_substitute_double),
        ("factor", "float64", <size_t>&triangle_factor_double),
        ("reflect", "float32", <size_t>&reflection_reflect_float),
        ("weigh", "float32", <size_t>&reflection_weigh_float),
        ("reflect", "float64", <size_t>&reflection_reflect_double),
        ("weigh", "float64", <size_t>&reflection_weigh_double))]
