/* The transforms of Winograd's convolutions with windows of 3 x 3.

   Two outputs beside each other of a window of 3 need 6 products; 4 will do (S. Winograd,
   Arithmetic Complexity of Computations, 1980). In two dims 16 do instead of 36, F(2 x 2, 3 x 3) of
   Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015 (arXiv:1509.09308):

       y = A.T [(G w G.T) * (B.T x B)] A        for a tile y of 2 x 2 and its window x of 4 x 4

       B.T = 1  0 -1  0      G = 1    0    0       A.T = 1  1  1  0
             0  1  1  0          1/2  1/2  1/2           0  1 -1 -1
             0 -1  1  0          1/2 -1/2  1/2
             0  1  0 -1          0    0    1

   Summed over channels, each of the 16 products of elements is a product of matrices. So all 16
   have a matrix of their own, `step` elements apart, with a row for each tile and a column for each
   channel. Images have their channels last here, filled up to a multiple of WINOGRAD_LANES. */
#pragma once

#include <stdint.h>

#include "products/panel_product.h"

enum { WINOGRAD_LANES = 16 };

typedef struct {                    /* rows of tiles of one image */
    Py_ssize_t size[2], pad[2];     /* of the image that is read */
    Py_ssize_t out[2];              /* of the result: rows and columns of tiles are half of it */
    Py_ssize_t first, rows;         /* of tiles */
    Py_ssize_t channels, step;
} WinogradTiles;

typedef float winograd_vector __attribute__((vector_size(PANEL_BYTES), aligned(4), may_alias));
enum { WINOGRAD_VECTOR = PANEL_BYTES / 4 };

#define WINOGRAD_AT(p) (*(winograd_vector*)(p))
#define WINOGRAD_GET(p) (*(const winograd_vector*)(p))

static inline Py_ssize_t winograd_half(Py_ssize_t n) { return (n + 1) / 2; }

static inline Py_ssize_t winograd_clip(Py_ssize_t row, Py_ssize_t size) {
    return row < 0 ? 0 : row < size ? row : size;
}

/* v := B.T x B of each tile. `x` has the rows of the image that the tiles see, from the first one
   on; `zeros` has a zero for each channel. */
static void winograd_input(const float* x, const float* zeros, float* v, const WinogradTiles* t) {
    const Py_ssize_t channels = t->channels, wide = t->size[1], cols = winograd_half(t->out[1]);
    const Py_ssize_t top = winograd_clip(2 * t->first - t->pad[0], t->size[0]);
    for (Py_ssize_t row = t->first; row < t->first + t->rows; row++)
        for (Py_ssize_t col = 0; col < cols; col++, v += channels) {
            const float* at[4][4];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) {
                    Py_ssize_t y = 2 * row + i - t->pad[0], z = 2 * col + j - t->pad[1];
                    int inside = y >= 0 && y < t->size[0] && z >= 0 && z < wide;
                    at[i][j] = inside ? x + ((y - top) * wide + z) * channels : zeros;
                }
            for (Py_ssize_t c = 0; c < channels; c += WINOGRAD_VECTOR) {
                winograd_vector d[4][4];
                for (int j = 0; j < 4; j++) {
                    winograd_vector x1 = WINOGRAD_GET(at[1][j] + c);
                    winograd_vector x2 = WINOGRAD_GET(at[2][j] + c);
                    d[0][j] = WINOGRAD_GET(at[0][j] + c) - x2, d[1][j] = x1 + x2;
                    d[2][j] = x2 - x1, d[3][j] = x1 - WINOGRAD_GET(at[3][j] + c);
                }
                float* to = v + c;
                for (int i = 0; i < 4; i++, to += 4 * t->step) {
                    WINOGRAD_AT(to) = d[i][0] - d[i][2];
                    WINOGRAD_AT(to + t->step) = d[i][1] + d[i][2];
                    WINOGRAD_AT(to + 2 * t->step) = d[i][2] - d[i][1];
                    WINOGRAD_AT(to + 3 * t->step) = d[i][1] - d[i][3];
                }
            }
        }
}

/* y := A.T m A of each tile, the rows of the result that the tiles have */
static void winograd_output(const float* m, float* y, const WinogradTiles* t) {
    const Py_ssize_t channels = t->channels, wide = t->out[1], cols = winograd_half(wide);
    for (Py_ssize_t row = 0; row < t->rows; row++)
        for (Py_ssize_t col = 0; col < cols; col++, m += channels) {
            const int below = 2 * (t->first + row) + 1 < t->out[0], right = 2 * col + 1 < wide;
            float* to = y + (2 * row * wide + 2 * col) * channels;
            for (Py_ssize_t c = 0; c < channels; c += WINOGRAD_VECTOR, to += WINOGRAD_VECTOR) {
                winograd_vector s[2][4];
                for (int j = 0; j < 4; j++) {
                    const float* from = m + c + j * t->step;
                    winograd_vector m0 = WINOGRAD_GET(from), m1 = WINOGRAD_GET(from + 4 * t->step);
                    winograd_vector m2 = WINOGRAD_GET(from + 8 * t->step);
                    s[0][j] = m0 + m1 + m2, s[1][j] = m1 - m2 - WINOGRAD_GET(from + 12 * t->step);
                }
                for (int i = 0; i <= below; i++) {
                    float* line = to + i * wide * channels;
                    WINOGRAD_AT(line) = s[i][0] + s[i][1] + s[i][2];
                    if (right) WINOGRAD_AT(line + channels) = s[i][1] - s[i][2] - s[i][3];
                }
            }
        }
}

/* p := A y A.T of each tile y, in panels of which each has a row for `all` tiles, after the first
   `done`. `y` has the rows of the result that the tiles have. */
static void winograd_gradient(const float* y, const float* zeros, float* p, const WinogradTiles* t,
                              Py_ssize_t all, Py_ssize_t done) {
    enum { WIDTH = 2 * WINOGRAD_VECTOR };
    const Py_ssize_t channels = t->channels, wide = t->out[1], cols = winograd_half(wide);
    for (Py_ssize_t row = 0; row < t->rows; row++)
        for (Py_ssize_t col = 0; col < cols; col++, done++) {
            const int below = 2 * (t->first + row) + 1 < t->out[0], right = 2 * col + 1 < wide;
            const float* y00 = y + (2 * row * wide + 2 * col) * channels;
            const float* y01 = right ? y00 + channels : zeros;
            const float* y10 = below ? y00 + wide * channels : zeros;
            const float* y11 = below && right ? y00 + (wide + 1) * channels : zeros;
            for (Py_ssize_t c = 0; c < channels; c += WINOGRAD_VECTOR) {
                winograd_vector g[4][2];
                g[0][0] = WINOGRAD_GET(y00 + c), g[3][0] = WINOGRAD_GET(y10 + c);
                g[0][1] = WINOGRAD_GET(y01 + c), g[3][1] = WINOGRAD_GET(y11 + c);
                for (int j = 0; j < 2; j++) {
                    g[1][j] = g[0][j] + g[3][j];
                    g[2][j] = g[0][j] - g[3][j];
                    g[3][j] = -g[3][j];
                }
                float* to = p + (c / WIDTH * all + done) * WIDTH + c % WIDTH;
                for (int i = 0; i < 4; i++, to += 4 * t->step) {
                    WINOGRAD_AT(to) = g[i][0];
                    WINOGRAD_AT(to + t->step) = g[i][0] + g[i][1];
                    WINOGRAD_AT(to + 2 * t->step) = g[i][0] - g[i][1];
                    WINOGRAD_AT(to + 3 * t->step) = -g[i][1];
                }
            }
        }
}

/* p := G w G.T of w (n, 9, outs) in panels of 16 matrices, `step` elements apart, that have `depth`
   rows, after the first `done`. The elements of a window are `tap` elements apart, which may be
   negative; outs is a multiple of WINOGRAD_LANES. */
static void winograd_filter(const float* w, Py_ssize_t tap, float* p, Py_ssize_t n, Py_ssize_t outs,
                            Py_ssize_t depth, Py_ssize_t done, Py_ssize_t step) {
    enum { WIDTH = 2 * WINOGRAD_VECTOR };
    for (Py_ssize_t i = 0; i < n; i++, w += 9 * outs)
        for (Py_ssize_t k = 0; k < outs; k += WINOGRAD_VECTOR) {
            winograd_vector f[4][3];
            for (int j = 0; j < 3; j++) {
                winograd_vector mid = WINOGRAD_GET(w + (3 + j) * tap + k) * 0.5f, ends;
                f[0][j] = WINOGRAD_GET(w + j * tap + k);
                f[3][j] = WINOGRAD_GET(w + (6 + j) * tap + k);
                ends = f[0][j] * 0.5f + f[3][j] * 0.5f;
                f[1][j] = ends + mid, f[2][j] = ends - mid;
            }
            float* to = p + (k / WIDTH * depth + done + i) * WIDTH + k % WIDTH;
            for (int j = 0; j < 4; j++, to += 4 * step) {
                winograd_vector mid = f[j][1] * 0.5f, ends = f[j][0] * 0.5f + f[j][2] * 0.5f;
                WINOGRAD_AT(to) = f[j][0];
                WINOGRAD_AT(to + step) = ends + mid;
                WINOGRAD_AT(to + 2 * step) = ends - mid;
                WINOGRAD_AT(to + 3 * step) = f[j][2];
            }
        }
}

/* w (n, 3, 3, outs) := G.T u G of u (16, n, outs) */
static void winograd_filter_back(const float* u, float* w, Py_ssize_t n, Py_ssize_t outs) {
    for (Py_ssize_t i = 0; i < n; i++, w += 9 * outs, u += outs)
        for (Py_ssize_t k = 0; k < outs; k += WINOGRAD_VECTOR) {
            winograd_vector f[3][4];
            for (int j = 0; j < 4; j++) {
                const float* from = u + j * n * outs + k;
                winograd_vector u1 = WINOGRAD_GET(from + 4 * n * outs) * 0.5f;
                winograd_vector u2 = WINOGRAD_GET(from + 8 * n * outs) * 0.5f;
                f[0][j] = WINOGRAD_GET(from) + (u1 + u2);
                f[1][j] = u1 - u2;
                f[2][j] = (u1 + u2) + WINOGRAD_GET(from + 12 * n * outs);
            }
            for (int j = 0; j < 3; j++) {
                winograd_vector u1 = f[j][1] * 0.5f, u2 = f[j][2] * 0.5f;
                WINOGRAD_AT(w + 3 * j * outs + k) = f[j][0] + (u1 + u2);
                WINOGRAD_AT(w + (3 * j + 1) * outs + k) = u1 - u2;
                WINOGRAD_AT(w + (3 * j + 2) * outs + k) = (u1 + u2) + f[j][3];
            }
        }
}

/* Whether all of n elements are finite */
static int winograd_finite(const float* x, Py_ssize_t n) {
    uint32_t most = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return most < 0x7f800000;
}
