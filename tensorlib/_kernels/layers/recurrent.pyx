"""One step of recurrent layers after its matrix product: the pass of gates, and its gradient.

A step has `rows` examples and n hidden units. `gates` is the contribution of the input and `moved`
that of the hidden state, its product with the weight; in each row the gates follow one another.
`hidden` and `cell` are the state, which the step replaces:

    void run(const T* gates, const T* moved, const T* bias, T* acts, T* cell, T* cells, T* hidden,
             T* out, Py_ssize_t rows, Py_ssize_t n)

`acts` has what the gradient needs besides `cells` and `out`, the states after the step.

Backward, `dh` and `dc` are the gradients of the state after the step, to which `g`, that of `out`,
is added. They become those of the state before it, without the part that goes through the product.
`dz` and `dm` are the gradients of `gates` and of `moved`, one array if these are equal:

    void back(const T* g, const T* acts, const T* out, const T* before, const T* cell_before,
              T* dh, T* dc, T* dz, T* dm, Py_ssize_t rows, Py_ssize_t n)

The loops are short, so that the compiler vectorises each.
"""

from tensorlib._kernels.vecmath.logistic cimport logistic
from tensorlib._kernels.vecmath.basics cimport floating
from tensorlib._kernels.vecmath.exp cimport tanh

from tensorlib._kernels import FLOATS, rows_for


cdef inline floating gate(floating x) noexcept nogil:
    """logistic(x), where e**-x is no subnormal number: these cost 200 cycles a vector"""
    cdef floating most = 80
    return logistic(most if x > most else x)


cdef inline floating tangent(floating x) noexcept nogil:
    """tanh(x), which is 1 long before e**2x is infinite, for the same reason"""
    cdef floating most = 20, y
    y = most if x > most else x
    return tanh(-most if y < -most else y)


cdef inline void logistics(const floating* x, const floating* y, const floating* b, floating* out,
                           Py_ssize_t n) noexcept nogil:
    """out := logistic(x + y + b)"""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = gate(x[i] + y[i] + b[i])


cdef inline void tangents(const floating* x, const floating* y, const floating* b, floating* out,
                          Py_ssize_t n) noexcept nogil:
    """out := tanh(x + y + b)"""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = tangent(x[i] + y[i] + b[i])


# ---- LSTM: input gate, forget gate, cell, output gate --------------------------------------------

cdef void lstm(const floating* gates, const floating* moved, const floating* bias, floating* acts,
               floating* cell, floating* cells, floating* hidden, floating* out,
               Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """cell := f * cell + i * g; hidden := o * tanh(cell)"""
    cdef Py_ssize_t r, i
    for r in range(rows):
        logistics(gates, moved, bias, acts, 2 * n)
        tangents(gates + 2 * n, moved + 2 * n, bias + 2 * n, acts + 2 * n, n)
        logistics(gates + 3 * n, moved + 3 * n, bias + 3 * n, acts + 3 * n, n)
        for i in range(n):
            cells[i] = acts[n + i] * cell[i] + acts[i] * acts[2 * n + i]
        for i in range(n):
            cell[i] = cells[i]
            out[i] = acts[3 * n + i] * tangent(cells[i])
        for i in range(n):
            hidden[i] = out[i]
        gates, moved, acts = gates + 4 * n, moved + 4 * n, acts + 4 * n
        cell, cells, hidden, out = cell + n, cells + n, hidden + n, out + n


cdef void lstm_back(const floating* g, const floating* acts, const floating* out,
                    const floating* before, const floating* cell_before, floating* dh,
                    floating* dc, floating* dz, floating* dm, Py_ssize_t rows,
                    Py_ssize_t n) noexcept nogil:
    """With t = tanh(cell): dc += dh * o * (1 - t**2), from which all gates but o have theirs"""
    cdef floating zero = 0, one = 1, slope, t, o, f
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            slope, o = dh[i] + g[i], acts[3 * n + i]
            t = out[i] / o                  # a division takes less time than the tangent
            t = zero if o == 0 else t       # nothing passes through a closed gate
            dz[3 * n + i] = slope * t * (o * (one - o))
            dc[i] += slope * o * (one - t * t)
            dh[i] = 0
        for i in range(n):
            f = acts[n + i]
            dz[n + i] = dc[i] * cell_before[i] * (f * (one - f))
        for i in range(n):
            o, t = acts[i], acts[2 * n + i]
            dz[i] = dc[i] * t * (o * (one - o))
            dz[2 * n + i] = dc[i] * o * (one - t * t)
        for i in range(n):
            dc[i] *= acts[n + i]
        g, acts, out, dz = g + n, acts + 4 * n, out + n, dz + 4 * n
        cell_before, dh, dc = cell_before + n, dh + n, dc + n


# ---- GRU: reset gate, update gate, new -----------------------------------------------------------

cdef void gru(const floating* gates, const floating* moved, const floating* bias, floating* acts,
              floating* cell, floating* cells, floating* hidden, floating* out, Py_ssize_t rows,
              Py_ssize_t n) noexcept nogil:
    """new := tanh(gate + r * m), hidden := new + z * (hidden - new); m, kept, too, is `moved` plus
    its bias"""
    cdef Py_ssize_t r, i
    for r in range(rows):
        logistics(gates, moved, bias, acts, 2 * n)
        for i in range(n):
            acts[3 * n + i] = moved[2 * n + i] + bias[2 * n + i]
        for i in range(n):
            acts[2 * n + i] = tangent(gates[2 * n + i] + acts[i] * acts[3 * n + i])
        for i in range(n):
            out[i] = acts[2 * n + i] + acts[n + i] * (hidden[i] - acts[2 * n + i])
        for i in range(n):
            hidden[i] = out[i]
        gates, moved, acts = gates + 3 * n, moved + 3 * n, acts + 4 * n
        hidden, out = hidden + n, out + n


cdef void gru_back(const floating* g, const floating* acts, const floating* out,
                   const floating* before, const floating* cell_before, floating* dh,
                   floating* dc, floating* dz, floating* dm, Py_ssize_t rows,
                   Py_ssize_t n) noexcept nogil:
    cdef floating one = 1, slope, z, new, reset
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            slope, z, new = dh[i] + g[i], acts[n + i], acts[2 * n + i]
            dz[2 * n + i] = slope * (one - z) * (one - new * new)
            dz[n + i] = slope * (before[i] - new) * (z * (one - z))
            dh[i] = slope * z
        for i in range(n):
            reset = acts[i]
            dz[i] = dz[2 * n + i] * acts[3 * n + i] * (reset * (one - reset))
            dm[2 * n + i] = dz[2 * n + i] * reset
        for i in range(2 * n):
            dm[i] = dz[i]
        g, acts, before, dh = g + n, acts + 4 * n, before + n, dh + n
        dz, dm = dz + 3 * n, dm + 3 * n


# ---- without gates -------------------------------------------------------------------------------

cdef void rnn_tanh(const floating* gates, const floating* moved, const floating* bias,
                   floating* acts, floating* cell, floating* cells, floating* hidden,
                   floating* out, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """hidden := tanh(gates + moved + bias)"""
    cdef Py_ssize_t r, i
    for r in range(rows):
        tangents(gates, moved, bias, out, n)
        for i in range(n):
            hidden[i] = out[i]
        gates, moved, hidden, out = gates + n, moved + n, hidden + n, out + n


cdef void rnn_tanh_back(const floating* g, const floating* acts, const floating* out,
                        const floating* before, const floating* cell_before, floating* dh,
                        floating* dc, floating* dz, floating* dm, Py_ssize_t rows,
                        Py_ssize_t n) noexcept nogil:
    cdef floating one = 1
    cdef Py_ssize_t i
    for i in range(rows * n):
        dz[i] = (dh[i] + g[i]) * (one - out[i] * out[i])
        dh[i] = 0


cdef void rnn_relu(const floating* gates, const floating* moved, const floating* bias,
                   floating* acts, floating* cell, floating* cells, floating* hidden,
                   floating* out, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """hidden := gates + moved + bias where that is positive, else 0; NaN stays"""
    cdef floating zero = 0, x
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            x = gates[i] + moved[i] + bias[i]
            out[i] = zero if x <= 0 else x
        for i in range(n):
            hidden[i] = out[i]
        gates, moved, hidden, out = gates + n, moved + n, hidden + n, out + n


cdef void rnn_relu_back(const floating* g, const floating* acts, const floating* out,
                        const floating* before, const floating* cell_before, floating* dh,
                        floating* dc, floating* dz, floating* dm, Py_ssize_t rows,
                        Py_ssize_t n) noexcept nogil:
    cdef floating zero = 0, slope
    cdef Py_ssize_t i
    for i in range(rows * n):
        slope = dh[i] + g[i]
        dz[i] = slope if out[i] != 0 else zero
        dh[i] = 0


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("lstm", <size_t>&lstm[float], <size_t>&lstm[double]),
        ("lstm_back", <size_t>&lstm_back[float], <size_t>&lstm_back[double]),
        ("gru", <size_t>&gru[float], <size_t>&gru[double]),
        ("gru_back", <size_t>&gru_back[float], <size_t>&gru_back[double]),
        ("rnn_tanh", <size_t>&rnn_tanh[float], <size_t>&rnn_tanh[double]),
        ("rnn_tanh_back", <size_t>&rnn_tanh_back[float], <size_t>&rnn_tanh_back[double]),
        ("rnn_relu", <size_t>&rnn_relu[float], <size_t>&rnn_relu[double]),
        ("rnn_relu_back", <size_t>&rnn_relu_back[float], <size_t>&rnn_relu_back[double]),
    ])
