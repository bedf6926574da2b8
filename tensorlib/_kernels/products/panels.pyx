"""Products by panels (`panel_product.h`) for each dtype; strides are in elements.

    void pack(const T* b, Py_ssize_t b_row, Py_ssize_t b_col, T* p, Py_ssize_t k, Py_ssize_t n)
    void product(const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p, Py_ssize_t p_row,
                 Py_ssize_t panel, T* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                 Py_ssize_t depth, Py_ssize_t n, const T* base, Py_ssize_t base_row)
    void windows(const T* a, const Py_ssize_t* places, const Py_ssize_t* taps, const T* p,
                 Py_ssize_t first, Py_ssize_t k, Py_ssize_t all, T* y, Py_ssize_t y_row,
                 Py_ssize_t m, Py_ssize_t n)
    void runs(const T* x, const Py_ssize_t* taps, const T* w, T* y, Py_ssize_t y_row,
              Py_ssize_t m, Py_ssize_t k, Py_ssize_t n)
    void turn(const T* x, Py_ssize_t x_row, T* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t n)

For bfloat16 (`pair_product.h`, `tile_product.h`), if this processor multiplies pairs:

    void pack(const uint16_t* b, Py_ssize_t b_row, Py_ssize_t b_col, uint32_t* p, Py_ssize_t k,
              Py_ssize_t count)
    void product(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p, void* y,
                 Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t count, int how)
    void few(const uint16_t* a, Py_ssize_t a_row, const uint16_t* b, Py_ssize_t b_row,
             Py_ssize_t b_col, float* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
             Py_ssize_t n)
    void windows(const uint32_t* a, ...), of pairs in float32, as above
    void mix(const uint16_t* a, const uint16_t* b, uint32_t* p, Py_ssize_t n)
    void round(const float* x, uint16_t* y, Py_ssize_t n)
    void nearest(const float* x, uint16_t* y, Py_ssize_t n)
"""

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "products/panel_product.h" nogil:
    void panel_pack_float()
    void panel_product_float()
    void panel_turn_float()
    void panel_windows_float()
    void panel_runs_float()
    void panel_pack_double()
    void panel_product_double()
    void panel_turn_double()
    void panel_windows_double()
    void panel_runs_double()
    enum: panel_LANES_float, panel_LANES_double

cdef extern from "products/pair_product.h" nogil:
    bint HAS_PAIRS
    void pair_pack()
    void pair_few()
    void pair_mix()
    void pair_nearest()
    void pair_round()

cdef extern from "products/tile_product.h" nogil:
    void tile_product()
    void tile_windows()


def table():
    """(name, input dtypes, output dtype, address) of every function; for "lanes" the number of
    elements in a vector"""
    functions = rows_for(FLOATS, [
        ("pack", <size_t>&panel_pack_float, <size_t>&panel_pack_double),
        ("product", <size_t>&panel_product_float, <size_t>&panel_product_double),
        ("turn", <size_t>&panel_turn_float, <size_t>&panel_turn_double),
        ("windows", <size_t>&panel_windows_float, <size_t>&panel_windows_double),
        ("runs", <size_t>&panel_runs_float, <size_t>&panel_runs_double),
        ("lanes", <size_t>panel_LANES_float, <size_t>panel_LANES_double),
    ])
    if HAS_PAIRS:
        functions += rows_for(("bfloat16",), [
            ("pack_pairs", <size_t>&pair_pack), ("product_of_pairs", <size_t>&tile_product),
            ("few", <size_t>&pair_few), ("windows", <size_t>&tile_windows),
            ("mix", <size_t>&pair_mix), ("nearest", <size_t>&pair_nearest),
            ("round", <size_t>&pair_round),
        ])
    return functions
