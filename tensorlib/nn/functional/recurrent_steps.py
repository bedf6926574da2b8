"""Recurrent layers over a whole sequence: as one fused operation, and as the formula it replaces.

The rows of `gates` are what the input gives, step after step: sizes[t] rows of step t, one for each
example that is still going on, as in a packed sequence. A layer has its input multiplied by its
weight in one product; what is left is a product with the hidden state and a pass of gates for each
step, which the kernel does.
"""

import math

import numpy as np

from tensorlib import cat, relu, tanh, where
from tensorlib._core.layers import recurrent as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.fused import differentiated_by, stands_for
from tensorlib.ops.declare import op

# ---- one step ------------------------------------------------------------------------------------
# From the contributions of the input and of the hidden state, the latter with its bias, and the
# state: the hidden state and the cell after the step, and what the kernel keeps for its gradient.

def lstm_step(gates, moved, hidden, cell):
    """c := f * c + i * g, h := o * tanh(c)"""
    i, f, g, o = (gates + moved).chunk(4, -1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cell = f * cell + i * g
    return o * cell.tanh(), cell, (i, f, g, o)


def gru_step(gates, moved, hidden, cell):
    """new := tanh(gate + r * m), h := new + z * (h - new)"""
    (r, z, new), (moved_r, moved_z, m) = gates.chunk(3, -1), moved.chunk(3, -1)
    r, z = (r + moved_r).sigmoid(), (z + moved_z).sigmoid()
    new = (new + r * m).tanh()
    return new + z * (hidden - new), cell, (r, z, new, m)


def plain_step(activation):
    """h := activation(gate + m)"""
    def step(gates, moved, hidden, cell):
        return activation(gates + moved), cell, ()
    return step


STEPS = {"lstm": lstm_step, "gru": gru_step, "rnn_tanh": plain_step(tanh),
         "rnn_relu": plain_step(relu)}
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}      # the parts of a row of gates


# ---- one step backward ---------------------------------------------------------------------------
# From the gradients of the hidden state and the cell after the step: those of `gates` and `moved`,
# of the hidden state before it, without the part through `moved`, and of the cell before it.

def lstm_back(dh, dc, acts, out, before, cell_before):
    """With t = tanh(c) = h / o."""
    i, f, g, o = acts.chunk(4, -1)
    t = where(o == 0, 0.0, out / o)
    dc = dc + dh * o * (1 - t * t)
    dz = cat([dc * g * i * (1 - i), dc * cell_before * f * (1 - f), dc * i * (1 - g * g),
              dh * t * o * (1 - o)], -1)
    return dz, dz, dh * 0, dc * f


def gru_back(dh, dc, acts, out, before, cell_before):
    """h = new + z * (before - new)"""
    r, z, new, m = acts.chunk(4, -1)
    d_new, d_z = dh * (1 - z) * (1 - new * new), dh * (before - new) * z * (1 - z)
    d_r = d_new * m * r * (1 - r)
    return cat([d_r, d_z, d_new], -1), cat([d_r, d_z, d_new * r], -1), dh * z, dc


def tanh_back(dh, dc, acts, out, before, cell_before):
    """h = tanh(gate + m)"""
    dz = dh * (1 - out * out)
    return dz, dz, dh * 0, dc


def relu_back(dh, dc, acts, out, before, cell_before):
    """h = relu(gate + m)"""
    dz = where(out > 0, dh, 0.0)
    return dz, dz, dh * 0, dc


BACK = {"lstm": lstm_back, "gru": gru_back, "rnn_tanh": tanh_back, "rnn_relu": relu_back}


# ---- all steps -----------------------------------------------------------------------------------

def ranges(sizes, reverse):
    """The first row and the number of rows of each step, in the order in which they are taken."""
    found, first = [], 0
    for size in sizes:
        found.append((first, size))
        first += size
    return found[::-1] if reverse else found


def in_rows(parts, reverse):
    """The rows of steps that were taken in order or from the last one on."""
    return cat(parts[::-1] if reverse else parts)


def recurrent_formula(gates, weight, bias, hidden, cell, kind, sizes, reverse, projection=None):
    """`recurrent` by operations of their own; with the hidden state projected, if asked for."""
    outs, kept, cells = [], [], []
    for first, size in ranges(sizes, reverse):
        before = hidden[:size]
        moved = before @ weight.mT + bias
        after, cell_after, parts = STEPS[kind](gates[first:first + size], moved, before,
                                               cell[:size])
        if projection is not None:
            after = after @ projection.mT
        outs.append(after)
        kept.append(cat(parts, -1) if parts else after[:, :0])
        hidden = cat([after, hidden[size:]])
        if kind == "lstm":
            cells.append(cell_after)
            cell = cat([cell_after, cell[size:]])
    outs, kept = in_rows(outs, reverse), in_rows(kept, reverse)
    return outs, hidden, cell, kept, in_rows(cells, reverse) if cells else cell


def backward_formula(grad, grad_hidden, grad_cell, gates, weight, bias, hidden, cell, out, acts,
                     cells, kind, sizes, reverse):
    """`recurrent_backward` by operations of their own."""
    steps, befores, slopes, moved = ranges(sizes, reverse), [], [], []
    for first, size in steps:
        befores.append((hidden[:size], cell[:size]))
        hidden = cat([out[first:first + size], hidden[size:]])
        cell = cat([cells[first:first + size], cell[size:]]) if kind == "lstm" else cell
    for (first, size), before in zip(reversed(steps), reversed(befores)):
        rows = slice(first, first + size)
        dz, dm, dh, dc = BACK[kind](grad_hidden[:size] + grad[rows], grad_cell[:size], acts[rows],
                                    out[rows], *before)
        slopes.append(dz)
        moved.append(dm)
        grad_hidden = cat([dh + dm @ weight, grad_hidden[size:]])
        grad_cell = cat([dc, grad_cell[size:]]) if kind == "lstm" else grad_cell
    slopes, moved = in_rows(slopes, not reverse), in_rows(moved, not reverse)
    states = in_rows([state for state, _ in befores], reverse)
    return slopes, moved.mT @ states, moved.sum(0), grad_hidden, grad_cell


# ---- the reference -------------------------------------------------------------------------------

def in_numpy(gates, weight, bias, hidden, cell, kind, sizes, reverse):
    """The reference of `recurrent`; it takes complex numbers, for its derivative."""
    def logistic(x):
        return 1 / (1 + np.exp(-x))
    h, c, n = hidden.copy(), cell.copy(), hidden.shape[1]
    out = np.zeros((len(gates), n), gates.dtype)
    cells = np.zeros((len(gates) if kind == "lstm" else 0, cell.shape[1]), gates.dtype)
    acts = np.zeros((len(gates), 4 * n if kind in ("lstm", "gru") else 0), gates.dtype)
    ends = np.cumsum(sizes)
    for t in range(len(sizes))[::-1 if reverse else 1]:
        rows, k = slice(ends[t] - sizes[t], ends[t]), sizes[t]
        moved, x = h[:k] @ weight.T + bias, gates[rows]
        if kind == "lstm":
            i, f, o = (logistic((x + moved)[:, j * n:(j + 1) * n]) for j in (0, 1, 3))
            g = np.tanh((x + moved)[:, 2 * n:3 * n])
            c[:k] = f * c[:k] + i * g
            h[:k] = o * np.tanh(c[:k])
            acts[rows], cells[rows] = np.hstack([i, f, g, o]), c[:k]
        elif kind == "gru":
            r, z = (logistic((x + moved)[:, j * n:(j + 1) * n]) for j in (0, 1))
            m = moved[:, 2 * n:]
            new = np.tanh(x[:, 2 * n:] + r * m)
            h[:k] = (1 - z) * new + z * h[:k]
            acts[rows] = np.hstack([r, z, new, m])
        else:
            total = x + moved
            h[:k] = np.tanh(total) if kind == "rnn_tanh" else np.where(total.real > 0, total, 0)
        out[rows] = h[:k]
    return out, h, c, acts, cells


def back_in_numpy(g, g_hidden, g_cell, gates, weight, bias, hidden, cell, out, acts, cells, *rest):
    """The reference of `recurrent_backward`: a step of 1e-30 i in each direction, which has no
    error of cancellation (Squire and Trapp, SIAM Review 40(1), 1998)."""
    inputs = [x.astype(complex) for x in (gates, weight, bias, hidden, cell)]
    grads = []
    for x in inputs:
        slopes = np.zeros(x.shape)
        for place in np.ndindex(*x.shape):
            x[place] += 1e-30j
            moved = in_numpy(*inputs, *rest)
            slopes[place] = sum((a * b.imag).sum() for a, b in zip((g, g_hidden, g_cell), moved))
            x[place] -= 1e-30j
        grads.append(slopes / 1e-30)
    return tuple(grads)


CASES = (("lstm", (2, 1), False), ("lstm", (2, 2, 1), True), ("gru", (2, 1), True),
         ("gru", (1, 1), False), ("rnn_tanh", (2, 1), False), ("rnn_relu", (1, 1), True))


def recurrent_samples(rng):
    """Samples of `recurrent`, of two hidden units."""
    n = 2
    for kind, sizes, reverse in CASES:
        width = GATES[kind] * n
        shapes = ((sum(sizes), width), (width, n), (width,), (sizes[0], n),
                  (sizes[0], n) if kind == "lstm" else (0, 0))
        yield (*(rng.uniform(-1, 1, shape) for shape in shapes), kind, sizes, reverse), {}


def back_samples(rng):
    """Samples of `recurrent_backward`."""
    for inputs, _ in recurrent_samples(rng):
        out, hidden, cell, acts, cells = in_numpy(*inputs)
        gs = (rng.uniform(-1, 1, x.shape) for x in (out, hidden, cell))
        yield (*gs, *inputs[:5], out, acts, cells, *inputs[5:]), {}


# ---- the operations ------------------------------------------------------------------------------

@stands_for(backward_formula)
@op(public=False, method=False, takes="floating", tolerance="product", differentiable=False,
    outputs=("g_gates", "g_weight", "g_bias", "g_hidden", "g_cell"), reference=back_in_numpy,
    samples=back_samples,
    # the gradient of the hidden state, and that of its weights
    multiplications=lambda inputs, result: 2 * result[0] * math.prod(inputs[4]))
def recurrent_backward(grad: Tensor, grad_hidden: Tensor, grad_cell: Tensor, gates: Tensor,
                       weight: Tensor, bias: Tensor, hidden: Tensor, cell: Tensor, out: Tensor,
                       acts: Tensor, cells: Tensor, kind, sizes, reverse):
    """The gradients of `recurrent` for its tensors, by one kernel."""
    g_gates, g_weight, g_moved, g_hidden, g_cell = kernels.recurrent_backward(
        grad, grad_hidden, grad_cell, gates, weight, hidden, cell, out, acts, cells, kind, sizes,
        reverse)
    return g_gates, g_weight, g_moved.sum(0), g_hidden, g_cell


@differentiated_by(recurrent_formula, recurrent_backward, "acts", "cells")
@op(public=False, method=False, takes="floating", tolerance="product",
    outputs=("out", "last", "last_cell", "acts", "cells"), reference=in_numpy,
    samples=recurrent_samples, kernel=kernels.recurrent,
    # in each step, and for each example, the hidden state times its weights
    multiplications=lambda inputs, result: inputs[0][0] * math.prod(inputs[1]))
def recurrent(gates: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor, cell: Tensor, kind,
              sizes, reverse):
    """The hidden states after all steps, the last state and cell; then what the gradient needs.

    kind: "lstm", "gru", "rnn_tanh" or "rnn_relu". The first sizes[t] examples take part in step t;
    sizes do not grow. reverse: from the last step to the first.

    Shapes: (sum of sizes, G * H), (G * H, H), (G * H), (B, H), (B, H) -> (sum of sizes, H), (B, H),
    (B, H), ...; G is 4, 3 or 1; without cells that of the cell is (0, 0).
    Raises: RuntimeError for sizes that do not fit.
    """
