"""Recurrent layers as functions of their weights: packed sequences beside padded ones, and cells.
"""

import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
KINDS = pytest.mark.parametrize("kind", GATES)
FLAGS = (True, 2, 0.0, False, True)        # has_biases, num_layers, dropout, train, bidirectional


def states(kind, batch):
    """Those to begin with, of two layers in two directions."""
    hidden = tl.randn(4, batch, 2)
    return (hidden, tl.randn(4, batch, 2)) if kind == "lstm" else hidden


def weights(kind):
    """Those of two layers in two directions, of 3 numbers and 2 units."""
    rows = GATES[kind] * 2
    return [tl.randn(shape) for width in (3, 3, 4, 4)
            for shape in ((rows, width), (rows, 2), (rows,), (rows,))]


def of_example(start, i):
    """The states of one sequence."""
    if isinstance(start, tuple):
        return tuple(x[:, i:i + 1] for x in start)
    return start[:, i:i + 1]


@KINDS
def test_a_packed_sequence_gives_what_each_sequence_gives_alone(kind):
    tl.manual_seed(3)
    function, lengths = getattr(tl, kind), (3, 1)
    params, start = weights(kind), states(kind, 2)
    data = tl.randn(4, 3)                  # of both sequences, then of what the longer one has more
    rows = [[0, 2, 3], [1]]
    out, *ends = function(data, tl.tensor([2, 1, 1]), start, params, *FLAGS)
    assert out.shape == (4, 4)
    for i, length in enumerate(lengths):
        alone, *alone_ends = function(data[rows[i]].unsqueeze(1), of_example(start, i), params,
                                      *FLAGS, False)
        assert alone.shape == (length, 1, 4)
        assert_close(out[rows[i]], alone[:, 0])
        for packed, own in zip(ends, alone_ends, strict=True):
            assert_close(packed[:, i:i + 1], own)


@KINDS
def test_one_step_of_a_layer_is_its_cell(kind):
    tl.manual_seed(4)
    params, rows = weights(kind)[:4], tl.randn(5, 3)
    hidden, cell = tl.randn(5, 2), tl.randn(5, 2)
    start = (hidden, cell) if kind == "lstm" else hidden
    layered = ((hidden.unsqueeze(0), cell.unsqueeze(0)) if kind == "lstm"
               else hidden.unsqueeze(0))
    found = getattr(tl, f"{kind}_cell")(rows, start, *params)
    out, *ends = getattr(tl, kind)(rows.unsqueeze(0), layered, params, True, 1, 0.0, False,
                                     False, False)
    found = found if kind == "lstm" else (found,)
    assert_close(out[0], found[0])
    for own, end in zip(found, ends, strict=True):
        assert_close(own, end[0])


def test_the_two_kinds_of_simple_layers_differ_in_what_they_cut():
    w = [tl.tensor([[2.0]]), tl.tensor([[0.5]]), tl.tensor([0.25]), tl.tensor([0.25])]
    x, hidden = tl.tensor([[1.0], [-3.0]]), tl.tensor([[1.0], [1.0]])
    assert tl.rnn_relu_cell(x, hidden, *w).tolist() == [[3.0], [0.0]]
    assert_close(tl.rnn_tanh_cell(x, hidden, *w), tl.tensor([[3.0], [-5.0]]).tanh())


@pytest.mark.parametrize("hx", [(tl.ones(1, 2),), (tl.ones(1, 2),) * 3, tl.ones(2, 1, 2),
                                [tl.ones(1, 2), None]])
def test_the_state_of_a_cell_with_memory_is_a_pair(hx):
    with pytest.raises(TypeError, match="lstm_cell: hx must be a pair of Tensors"):
        tl.lstm_cell(tl.ones(1, 3), hx, *weights("lstm")[:4])


@KINDS
@pytest.mark.parametrize("units", [5, 130])
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_cells_of_half_types_are_near_those_of_float32(kind, units, dtype):
    rows, start = GATES[kind] * units, [tl.rand(7, units) for _ in range(1 + (kind == "lstm"))]
    exact = [x.to(dtype).float() for x in (
        tl.rand(7, 3), *start, *(tl.randn(shape) * 0.1 for shape in (
            (rows, 3), (rows, units), (rows,), (rows,))))]
    cell = getattr(tl, f"{kind}_cell")
    found = []
    for inputs in (exact, [x.to(dtype) for x in exact]):
        inputs = [x.requires_grad_() for x in inputs]
        x, *state = inputs[:-4]
        out = cell(x, state if kind == "lstm" else state[0], *inputs[-4:])
        out = out[0] if kind == "lstm" else out
        out.backward(tl.ones_like(out))
        found.append([out, *(x.grad for x in inputs)])
    for wanted, near in zip(*found, strict=True):
        assert near.dtype == dtype
        size = wanted.abs().max()
        assert (near.float() - wanted).abs().max() < 12 * tl.finfo(dtype).eps * size


@KINDS
def test_cells_of_large_sums_are_shut_or_open(kind):
    inputs = tl.tensor([[-1e4], [-200.0], [200.0], [1e4], [float("nan")]], dtype=tl.float64)
    for dtype in (tl.float32, tl.float64):
        x, state = inputs.to(dtype), tl.zeros(5, 1, dtype=dtype)
        w = tl.ones(GATES[kind], 1, dtype=dtype)
        found = getattr(tl, f"{kind}_cell")(x, (state, state) if kind == "lstm" else state, w, w)
        found = found[0] if kind == "lstm" else found
        wanted = {"rnn_tanh": [-1, -1, 1, 1], "rnn_relu": [0, 0, 200, 1e4], "gru": [-1, -1, 0, 0],
                  "lstm": [0, 0, 0.76159416, 0.76159416]}[kind]
        assert_close(found[:4, 0], tl.tensor(wanted, dtype=dtype), atol=1e-7, rtol=1e-7)
        assert found[4].isnan()


@pytest.mark.parametrize("places, shape", [((2,), (2, 4)), ((2, 3), (1, 1)), ((3,), (2, 1)),
                                           ((4,), (1,)), ((5,), (2, 1))])
def test_weights_of_other_shapes_are_refused(places, shape):
    inputs = [tl.ones(s) for s in ((2, 3), (2, 2), (2, 3), (2, 2), (2,), (2,))]
    for place in places:
        inputs[place] = tl.ones(shape)
    with pytest.raises(RuntimeError):
        tl.rnn_tanh_cell(*inputs)


@pytest.mark.parametrize("shapes", [((2, 3), (4, 2)), ((3,), (4, 3)), ((2, 3), (3,))])
def test_products_in_float32_are_of_matrices(shapes):
    product = tl.ops.registry["wide_linear"].function
    x, w = (tl.ones(shape, dtype=tl.bfloat16) for shape in shapes)
    with pytest.raises(RuntimeError, match="wide_linear: expected two matrices"):
        product(x, w)
    with pytest.raises(RuntimeError, match="wide_linear: expected two matrices"):
        product(tl.ones(2, 3), tl.ones(4, 3, dtype=tl.bfloat16))


@each("dtype", [tl.float32, tl.bfloat16, tl.complex64])
@each("name, rows", [("gru_cell", 3), ("lstm_cell", 4), ("rnn_relu_cell", 1)])
def test_a_cell_refuses_weights_of_other_shapes(name, rows, dtype):
    input, hidden = tl.ones(3, 2, dtype=dtype), tl.ones(3, 1, dtype=dtype)
    state = (hidden, hidden) if name == "lstm_cell" else hidden
    for first, second in (((rows + 1, 2), (rows, 1)), ((rows, 2), (rows + 1, 1)),
                          ((rows, 3), (rows, 1)), ((rows, 2), (rows, 2)),
                          ((rows, 2, 1), (rows, 1))):
        with pytest.raises(RuntimeError, match=name[:3]):
            getattr(tl, name)(input, state, tl.ones(first, dtype=dtype),
                              tl.ones(second, dtype=dtype))
