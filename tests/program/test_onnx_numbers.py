"""Elements, dtypes and sizes that ONNX's operations treat in another way, or do not take."""

import pytest
from cases import each

import tensorlib as tl

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_models import compare, export  # noqa: E402

INF, NAN = float("inf"), float("nan")
FLOATS = tl.tensor([NAN, INF, -INF, 0.0, -0.0, 1.5, -1.5, 2.5, -2.5, 1.0, 0.6, 3.0, -3.0])
DIVISORS = tl.tensor([2.0, 3.0, NAN, INF, 0.0, -INF, 0.4, -0.4, 0.5, 0.1, 0.2, -7.0, 2.0])
INTS = tl.tensor([-128, -7, -6, -1, 0, 1, 5, 6, 127])
OTHERS = tl.tensor([3, 2, -3, 2, -5, 7, -4, 4, -2])
BYTES = tl.tensor([0, 1, 2, 250, 255], dtype=tl.uint8)
BOOLS = tl.tensor([True, False, True])


@each("dtype", [tl.float32, tl.float64])
@each("name", ["floor_divide", "remainder", "fmod", "fmax", "fmin", "xlogy"])
def test_pairs_of_floats(name, dtype):
    compare(getattr(tl, name), (FLOATS.to(dtype), DIVISORS.to(dtype)))


@each("dtype", [tl.int8, tl.int32, tl.int64])
@each("name", ["floor_divide", "remainder", "fmod", "fmax", "fmin"])
def test_pairs_of_integers(name, dtype):
    compare(getattr(tl, name), (INTS.to(dtype), OTHERS.to(dtype)))


@pytest.mark.parametrize("name", ["sign", "log1p", "trunc", "frac", "isnan", "isinf", "isfinite"])
def test_floats(name):
    compare(getattr(tl, name), (FLOATS,))


OF_BOOLS = ["sign", "isnan", "isinf", "isfinite", "any", "all", "argsort"]


@each("name, x", [
    (name, x) for x in (INTS, INTS.int(), INTS.to(tl.int8), BYTES, BOOLS)
    for name in [*OF_BOOLS, *["neg", "trunc", "relu", "square"] * (x is not BOOLS)]])
def test_whole_numbers(name, x):
    compare(getattr(tl, name), (x,))


def test_powers_of_bytes_wrap_around():
    compare(lambda x: x ** 3, (BYTES,))


@pytest.mark.parametrize("function", [tl.any, tl.all, tl.sum, lambda x: x.any(0)])
def test_reductions_of_nothing(function):
    compare(function, (tl.ones(0, 3),))


def test_a_number_is_flipped_into_itself():
    compare(lambda x: x.flip(()) * 2, (tl.tensor(3.0),))


def test_a_dtype_that_an_operation_of_onnx_does_not_take_is_named_with_its_line():
    with pytest.raises(tl.onnx.UnsupportedOperatorError,
                       match=r"Sin.* unsupported type: .*bfloat16.*\(test_onnx_numbers.py:\d+\)"):
        export(lambda x: x.sin(), (tl.ones(2, dtype=tl.bfloat16),))


@pytest.mark.parametrize("layer", [tl.nn.Conv2d(2, 3, 3, padding=1),
                                   tl.nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1)])
def test_windows_of_half_types_with_a_bias_are_summed_in_float32(layer):
    compare(layer.half(), (tl.rand(1, 2, 5, 5).half(),))
    x = tl.rand(1, 2, 5, 5).bfloat16()                # whose windows ONNX does not take themselves
    nodes = [node.op_type for node in export(layer.bfloat16(), (x,)).model_proto.graph.node]
    assert nodes[0] == nodes[-1] == "Cast" and not {"Add"} & set(nodes)


@pytest.mark.parametrize("kind", [tl.nn.RNN, tl.nn.LSTM, tl.nn.GRU])
def test_a_recurrent_layer_of_an_open_batch_and_fixed_steps(kind):
    layer = kind(3, 2, num_layers=2, bidirectional=True, batch_first=True)
    compare(lambda x: layer(x)[0], (tl.rand(2, 4, 3),), (tl.rand(5, 4, 3),),
            dynamic_axes={"x": {0: "batch"}})


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_maxima_of_windows_that_cover_a_plane(size):
    x = tl.linspace(-1, 1, 70).sin().reshape(2, 1, 5, 7)
    compare(lambda x: tl.nn.functional.adaptive_max_pool2d(x, (size, 2)), (x,))


@pytest.mark.parametrize("p", [0, 1, 2, 3, INF])
def test_distances_of_rows(p):
    compare(lambda x, y: tl.cdist(x, y, p), (tl.rand(4, 3), tl.rand(5, 3)))
