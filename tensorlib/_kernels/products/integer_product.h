/* y := a @ b of matrices of integers of any strides, which wrap around as integers do.

   A panel is two vectors of columns of b: rows of b as they lie, or packed, with zeros behind the
   last column. Four rows of a at a time meet a panel, with all sums in registers. Bytes are
   multiplied as 16 bits, of which the low half is the same: processors have no product of bytes. */
#pragma once

#include <stdint.h>

#if defined(__AVX512F__)
#define LANE_BYTES 64
#elif defined(__AVX2__)
#define LANE_BYTES 32
#else
#define LANE_BYTES 16
#endif

/* GCC 12 keeps the sums in memory where it leaves a loop over them. */
#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < count; r++)

enum {
    PANEL_DEPTH = 128,       /* rows of b in a packed panel, at most 16 KB */
    PACKED_FROM = 8,         /* rows of a; for fewer, rows of b are read where they lie */
    FEW = 8                  /* rows of a or columns of b, for which each sum is one of its own */
};

/* NAME: of the function. T: the type of the elements; W: the unsigned one that they are multiplied
   in. Strides are in bytes; rows of y are contiguous. */
#define INTEGER_PRODUCT(NAME, T, W)                                                              \
    typedef W NAME##_lanes __attribute__((vector_size(LANE_BYTES)));                             \
    typedef T NAME##_run __attribute__((vector_size(LANE_BYTES / sizeof(W) * sizeof(T)),         \
                                        aligned(sizeof(T)), may_alias));                         \
    enum { NAME##_HALF = LANE_BYTES / sizeof(W), NAME##_COLUMNS = 2 * NAME##_HALF };             \
                                                                                                 \
    static void NAME##_pack(const char* b, Py_ssize_t row, Py_ssize_t col, Py_ssize_t k,         \
                            Py_ssize_t n, T* panel) {                                            \
        for (Py_ssize_t l = 0; l < k; l++, b += row, panel += NAME##_COLUMNS) {                  \
            Py_ssize_t j = 0;                                                                    \
            if (col == sizeof(T))                                                                \
                for (; j < n; j++) panel[j] = ((const T*)b)[j];                                  \
            for (; j < n; j++) panel[j] = *(const T*)(b + j * col);                              \
            for (; j < NAME##_COLUMNS; j++) panel[j] = 0;                                        \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* `count` rows of y += those of a @ the panel b, or := for the first of its rows */         \
    static inline __attribute__((always_inline)) void NAME##_rows(                               \
            int count, const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* b,         \
            Py_ssize_t b_row, char* y, Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t n,             \
            int first) {                                                                         \
        NAME##_lanes sums[4][2] = {{{0}}};                                                       \
        for (Py_ssize_t l = 0; l < k; l++, a += a_col, b += b_row) {                             \
            const NAME##_run* row = (const NAME##_run*)b;                                        \
            NAME##_lanes left = __builtin_convertvector(row[0], NAME##_lanes);                   \
            NAME##_lanes right = __builtin_convertvector(row[1], NAME##_lanes);                  \
            EACH_ROW {                                                                           \
                W factor = (W)*(const T*)(a + r * a_row);                                        \
                sums[r][0] += factor * left;                                                     \
                sums[r][1] += factor * right;                                                    \
            }                                                                                    \
        }                                                                                        \
        for (int r = 0; r < count; r++) {                                                        \
            const W* sum = (const W*)sums[r];                                                    \
            T* to = (T*)(y + r * y_row);                                                         \
            if (first && n == NAME##_COLUMNS) {                                                  \
                ((NAME##_run*)to)[0] = __builtin_convertvector(sums[r][0], NAME##_run);          \
                ((NAME##_run*)to)[1] = __builtin_convertvector(sums[r][1], NAME##_run);          \
            } else {                                                                             \
                for (Py_ssize_t j = 0; j < n; j++)                                               \
                    to[j] = (T)(first ? sum[j] : (W)(sum[j] + (W)to[j]));                        \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void NAME##_panel(const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* b,   \
                             Py_ssize_t b_row, char* y, Py_ssize_t y_row, Py_ssize_t m,          \
                             Py_ssize_t k, Py_ssize_t n, int first) {                            \
        Py_ssize_t i = 0;                                                                        \
        for (; i + 4 <= m; i += 4)                                                               \
            NAME##_rows(4, a + i * a_row, a_row, a_col, b, b_row, y + i * y_row, y_row, k, n,    \
                        first);                                                                  \
        for (; i < m; i++)                                                                       \
            NAME##_rows(1, a + i * a_row, a_row, a_col, b, b_row, y + i * y_row, y_row, k, n,    \
                        first);                                                                  \
    }                                                                                            \
                                                                                                 \
    static void NAME##_by_panels(const char* a, Py_ssize_t a_row, Py_ssize_t a_col,              \
                                 const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* y,     \
                                 Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) {   \
        T packed[PANEL_DEPTH * NAME##_COLUMNS];                                                  \
        for (Py_ssize_t j = 0; j < n; j += NAME##_COLUMNS) {                                     \
            Py_ssize_t width = n - j < NAME##_COLUMNS ? n - j : NAME##_COLUMNS, l = 0;           \
            if (b_col == sizeof(T) && width == NAME##_COLUMNS && m < PACKED_FROM) {              \
                NAME##_panel(a, a_row, a_col, b + j * b_col, b_row, y + j * sizeof(T), y_row, m, \
                             k, width, 1);                                                       \
                continue;                                                                        \
            }                                                                                    \
            do {                                                                                 \
                Py_ssize_t depth = k - l < PANEL_DEPTH ? k - l : PANEL_DEPTH;                    \
                NAME##_pack(b + l * b_row + j * b_col, b_row, b_col, depth, width, packed);      \
                NAME##_panel(a + l * a_col, a_row, a_col, (const char*)packed,                   \
                             NAME##_COLUMNS * sizeof(T), y + j * sizeof(T), y_row, m, depth,     \
                             width, l == 0);                                                     \
                l += depth;                                                                      \
            } while (l < k);                                                                     \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* Each element a sum of its own, along rows of a and columns of b. */                       \
    static void NAME##_by_sums(const char* a, Py_ssize_t a_row, Py_ssize_t a_col,                \
                               const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* y,       \
                               Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) {     \
        int runs = a_col == sizeof(T) && b_row == sizeof(T);                                     \
        for (Py_ssize_t i = 0; i < m; i++, a += a_row, y += y_row)                               \
            for (Py_ssize_t j = 0; j < n; j++) {                                                 \
                const char* column = b + j * b_col;                                              \
                W sum = 0;                                                                       \
                if (runs)                                                                        \
                    for (Py_ssize_t l = 0; l < k; l++)                                           \
                        sum += (W)((const T*)a)[l] * (W)((const T*)column)[l];                   \
                else                                                                             \
                    for (Py_ssize_t l = 0; l < k; l++)                                           \
                        sum += (W)*(const T*)(a + l * a_col)                                     \
                             * (W)*(const T*)(column + l * b_row);                               \
                ((T*)y)[j] = (T)sum;                                                             \
            }                                                                                    \
    }                                                                                            \
                                                                                                 \
    static void NAME(const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* b,           \
                     Py_ssize_t b_row, Py_ssize_t b_col, char* y, Py_ssize_t y_row,              \
                     Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) {                                 \
        int runs = a_col == sizeof(T) && b_row == sizeof(T);                                     \
        if (n < FEW || (runs && (m < FEW || n <= NAME##_HALF)))                                  \
            NAME##_by_sums(a, a_row, a_col, b, b_row, b_col, y, y_row, m, k, n);                 \
        else                                                                                     \
            NAME##_by_panels(a, a_row, a_col, b, b_row, b_col, y, y_row, m, k, n);               \
    }

INTEGER_PRODUCT(product_of_8_bits, uint8_t, uint16_t)
INTEGER_PRODUCT(product_of_16_bits, uint16_t, uint16_t)
INTEGER_PRODUCT(product_of_32_bits, uint32_t, uint32_t)
INTEGER_PRODUCT(product_of_64_bits, uint64_t, uint64_t)
