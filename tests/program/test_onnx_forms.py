"""ONNX: rarer forms of operations, as onnxruntime computes them, and what an export refuses."""

import os

import pytest
from cases import each

import tensorlib as tl
import tensorlib.nn.functional as F
from tensorlib import program

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_models import compare, types  # noqa: E402

from tensorlib.onnx import OnnxExporterError, UnsupportedOperatorError, export  # noqa: E402
from tensorlib.onnx import exporting as onnx_exporting  # noqa: E402

X = tl.arange(120.0).reshape(2, 3, 4, 5)
ROWS, COLUMNS = tl.tensor([1, 0, 1]), tl.tensor([2, 2, 0])         # positions that pick together
IN_A_COLUMN = tl.tensor([[1], [0]])                                 # and that broadcast to them


@each("pick", [
    lambda x, i, j, k: x[i, j], lambda x, i, j, k: x[:, i, j], lambda x, i, j, k: x[:, :, i, j],
    lambda x, i, j, k: x[i, :, j], lambda x, i, j, k: x[:, i, :, j], lambda x, i, j, k: x[k, j],
    lambda x, i, j, k: x[:, j, k], lambda x, i, j, k: x[1, :, i, j],
    lambda x, i, j, k: x[i, 2], lambda x, i, j, k: x[:, 2, i], lambda x, i, j, k: x[i, j, :, 1:3],
    lambda x, i, j, k: x[..., i, j], lambda x, i, j, k: x[i, j, i, j],
    lambda x, i, j, k: x[[1, 0], [2, 1]], lambda x, i, j, k: x[:, [[2], [0]], i],
    lambda x, i, j, k: x[i, None, j], lambda x, i, j, k: x[k, j][0],
    lambda x, i, j, k: x[i, j, 2, k], lambda x, i, j, k: x[:, i[0], j, k],
    lambda x, i, j, k: x[i[0], j], lambda x, i, j, k: x[:, 1, :, i],
])
def test_tensors_of_positions_pick_together(pick):
    compare(pick, (X, ROWS, COLUMNS, IN_A_COLUMN))
    compare(lambda x: pick(x, ROWS, COLUMNS, IN_A_COLUMN), (X,))


BOOLS, OTHERS = tl.tensor([True, True, False, False]), tl.tensor([True, False, True, False])
INTEGERS, DIVISORS = tl.tensor([7, -7, 7, -7, 6]), tl.tensor([3, 3, -3, -3, 2])


@each("call, args", [
    (lambda a, b: (a + b, a * b, tl.maximum(a, b), tl.minimum(a, b)), (BOOLS, OTHERS)),
    (lambda a, b: (a < b, a <= b, a > b, a >= b, a == b, a != b), (BOOLS, OTHERS)),
    (lambda a, b: (tl.stack([a, b]).amax(1), tl.stack([a, b]).amin(0)), (BOOLS, OTHERS)),
    (lambda a, b: (tl.floor_divide(a, b), tl.remainder(a, b), a // b, a % b), (INTEGERS, DIVISORS)),
    (lambda a, b: (tl.fmod(a, b), tl.div(a, b, rounding_mode="trunc")), (INTEGERS, DIVISORS)),
    (lambda a, b: (a.ceil(), a.floor(), a.round(), b.ceil()), (INTEGERS, DIVISORS)),
    (lambda a, b: (tl.floor_divide(a, b), tl.remainder(a, b)), (INTEGERS * 1.5, DIVISORS * 1.25)),
    (lambda x: (*x.max(0), *x.min(0)), (tl.tensor(3.0),)),
    (lambda x: (x.softmax(0), x.log_softmax(0)), (tl.tensor(3.0),)),
    (lambda x: (tl.zeros_like(x) + x, tl.full_like(x, 2.5), x.clone().fill_(3)), (X,)),
    (lambda x: x.reshape(0, 4), (tl.ones(0, 2),)),
    (lambda x: x.index_add(1, COLUMNS[:2], x[:, :2]), (X[:, :, :2, 0],)),
    (lambda x: F.one_hot(x, 5), (ROWS,)),
])
def test_rarer_forms(call, args):
    compare(call, args)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("opset", [19, 20])
def test_gelu_before_and_since_it_is_an_operation_of_onnx(approximate, opset):
    exported = compare(lambda x: F.gelu(x, approximate=approximate), (tl.linspace(-6, 6, 25),),
                       opset_version=opset)
    assert ("Gelu" in types(exported)) == (opset == 20)


def test_sizes_that_are_open_in_shapes():
    compare(lambda x: x.reshape(x.shape[0] * 2, -1), (X[0, 0].t(),), (tl.ones(3, 4),),
            dynamic_axes={"x": [0]})
    compare(lambda x: x.reshape(x.shape[1], 0, x.shape[0]), (tl.ones(2, 3, 0),),
            (tl.ones(4, 5, 0),), dynamic_axes={"x": [0, 1]})
    compare(lambda x, n: x.narrow(0, 1, 2) * n, (X[0], tl.tensor(2.0)))


def test_what_a_constant_becomes_large_by_is_not_stored():
    w = tl.tensor([[1.0], [2.0]])
    exported = compare(lambda x: x + w.expand(2, 3000), (tl.tensor([[3.0]]),))
    assert len(exported.model_proto.SerializeToString()) < 2000


def test_composed_operations_are_exported_by_their_parts():
    layer = tl.ops.compose("dense_in_onnx", lambda x, w, b: (x @ w + b).tanh())
    w, b = tl.linspace(-1, 1, 6).reshape(3, 2), tl.tensor([0.5, -0.5])
    exported = compare(lambda x: layer(layer(x, w, b), w.t(), 0.25 * b.sum()), (tl.eye(3),))
    assert types(exported).count("MatMul") == 2 and types(exported).count("Tanh") == 2


# ---- gradients -----------------------------------------------------------------------------------

def test_a_scan_from_the_last_step_to_the_first():
    text = str(program.trace(lambda x: tl.scan(lambda c, t: (c * 0.5 + t, c * 2), x[0] * 0, x),
                             tl.ones(4, 2)))
    assert text.count("xs=(x,)") == 1
    p = program.parse(text.replace("xs=(x,)", "xs=(x,), reverse=True"))
    x = tl.arange(8.0).reshape(4, 2)
    last, ys = p(x)
    assert last.tolist() == [2.75, 4.625] and ys[:, 0].tolist() == [11, 14, 12, 0]
    for found, wanted in zip(export(p)(x), (last, ys)):
        assert found.tolist() == wanted.tolist()


def test_what_a_loop_keeps_for_its_gradient_is_refused():
    p = program.trace(lambda x: tl.while_loop(lambda a: a.sum() < 9, lambda a: a * a, (x,))[0],
                      tl.full((2,), 2.0))
    export(p)
    p.outputs = program.gradients(p.outputs, p.inputs)[0]
    with pytest.raises(UnsupportedOperatorError, match="while_loop .* keeps values of all steps"):
        export(p)


# ---- what is refused -----------------------------------------------------------------------------

@pytest.mark.parametrize("function, args, words", [
    (lambda x: F.one_hot(x), (ROWS,), "one_hot .* takes a number of classes that is given"),
])
def test_forms_without_a_counterpart(function, args, words):
    with pytest.raises(UnsupportedOperatorError, match=words):
        export(function, args)


@pytest.mark.parametrize("function, x, words", [
    (lambda x: F.avg_pool1d(x, x.shape[2]), tl.ones(1, 2, 4), "takes fixed sizes, but got an open"),
    (lambda x: x * tl.zeros(x.shape[0] ** 2 // 3 + 1, 1, 1, 1), tl.ones(1, 2, 4), "formula"),
    (lambda x: x.reshape(8), tl.ones(1, 2, 4), "reshape"),
    (lambda x: F.pad(x, (1, 1), mode="reflect"), tl.ones(1, 2, 4), "takes fixed sizes"),
])
def test_open_sizes_where_they_can_not_be(function, x, words):
    compare(function, (x,))
    with pytest.raises(Exception, match=words) as raised:
        export(function, (x,), dynamic_axes={"x": [0, 2]})
    assert isinstance(raised.value, OnnxExporterError) or any(
        "other sizes were tried for those that are to stay open" in note
        for note in raised.value.__notes__)


def test_at_most_so_many_open_sizes():
    x = tl.ones(2, 2, 2, 2, 2, 2, 2, 2, 2)
    with pytest.raises(OnnxExporterError, match=r"at most \d different sizes .* got 9: x_dim_0"):
        export(lambda x: x * 2, (x,), dynamic_axes={"x": list(range(9))})


class Named:
    def __init__(self, name=None):
        if name:
            self.__name__ = name


def test_names_of_open_sizes():
    for symbol, name in ((Named("rows"), "rows"), (Named(), "x_dim_0"), ("n", "n")):
        exported = export(lambda x: x * 2, (tl.ones(2, 3),), dynamic_shapes={"x": {0: symbol}})
        (info,) = exported.model_proto.graph.input
        assert [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim] == [name, 3]


@pytest.mark.parametrize("options, words", [
    ({"dynamic_shapes": {"pair": [None]}}, "dynamic_shapes is not nested as the arguments are"),
    ({"input_names": ["a", "a"]}, "input_names must differ, got a, a"),
    ({"output_names": ["y", "y"]}, "output_names must differ, got y, y"),
])
def test_names_and_nesting_that_are_refused(options, words):
    with pytest.raises(ValueError, match=f"onnx.export: {words}"):
        export(lambda pair: (pair[0] + 1, pair[1] * 2), ((tl.ones(2), tl.ones(2)),), **options)


class Nameless:
    __signature__ = 3

    def __call__(self, x):
        return x * 2


def test_a_function_without_a_signature():
    exported = compare(Nameless(), (tl.ones(2),))
    assert len(exported.model_proto.graph.input) == 1


def test_a_parameter_without_a_value():
    p = program.parse("program(x) -> y:\n    input x: float32[2]\n    parameter w: float32[2]\n\n"
                      "    y: float32[2] = mul(x, w)\n")
    with pytest.raises(OnnxExporterError, match="w has no value"):
        export(p)


def test_values_beyond_the_limit_of_a_file_lie_beside_it(tmp_path, monkeypatch):
    w = tl.arange(600.0).reshape(20, 30)
    exported = export(lambda x: x @ w, (tl.ones(1, 20),))
    exported.save(tmp_path / "whole.onnx")
    assert os.listdir(tmp_path) == ["whole.onnx"]
    monkeypatch.setattr(onnx_exporting, "LARGEST_FILE", 2399)
    exported.save(tmp_path / "m.onnx")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data", "whole.onnx"]
    read = onnx.load(tmp_path / "m.onnx")
    assert [onnx.numpy_helper.to_array(x).tolist() for x in read.graph.initializer] == [w.tolist()]
