"""Models as ONNX: what onnxruntime computes from the file is what the model computes."""

import io
import re
import sys
from pathlib import Path

import pytest
from cases import each

import tensorlib as tl
import tensorlib.nn.functional as F
from tensorlib import nn, program

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_models import compare, types  # noqa: E402

from tensorlib.onnx import (  # noqa: E402
    OnnxExporterError,
    UnsupportedOperatorError,
    export,
    is_in_onnx_export,
)


class Block(nn.Module):
    """A block of a transformer, as it is usually written."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.5),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
                   for part in self.attention(self.norm1(x)).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, longest=16):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(longest, 8)
        self.blocks = nn.ModuleList([Block(8, 2), Block(8, 2)])
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 11, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(tl.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Masked(nn.Module):
    """Attention with a buffer of which a part is taken, as older models have it."""

    def __init__(self, longest=12):
        super().__init__()
        self.register_buffer("mask", tl.tril(tl.ones(longest, longest)))

    def forward(self, x):
        T = x.shape[1]
        scores = x @ x.transpose(-2, -1) * 0.3
        scores = scores.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        return scores.softmax(-1) @ x


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(3, 4, batch_first=True, **options)
        self.head = nn.Linear(8 if options.get("bidirectional") else 4, 2)

    def forward(self, x):
        y, states = self.layer(x)
        return self.head(y[:, -1]), states


def images():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, padding="same", groups=2), nn.GroupNorm(2, 4), nn.SiLU(),
        nn.AvgPool2d(2), nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1), nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3), nn.LogSoftmax(-1))


def test_a_perceptron_is_two_products():
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    x = tl.randn(4, 3)
    exported = compare(model, (x,), (tl.randn(7, 3),), (x[:1],),
                       dynamic_axes={"input": {0: "batch"}})
    assert types(exported) == ["Gemm", "Tanh", "Gemm"]
    assert repr(exported) == "ONNXProgram(input) -> output, of 3 nodes"
    (info,) = exported.model_proto.graph.input
    assert [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim] == ["batch", 3]
    assert {x.name for x in exported.model_proto.graph.initializer} == {
        "_0.weight", "_0.bias", "_2.weight", "_2.bias"}


def test_the_example_of_the_page_on_programs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "programs.md").read_text()
    (text,) = (part for part in re.findall("```py\n(.*?)```", page, re.S) if "onnx" in part)
    names = {"tl": tl, "nn": nn}
    exec(text, names)
    assert repr(names["exported"]) in text and names["scores"].shape == (9, 2)
    assert (tmp_path / "model.onnx").exists()


def test_a_convolutional_network_with_an_open_batch():
    compare(images(), (tl.randn(2, 1, 8, 8),), (tl.randn(1, 1, 8, 8),), (tl.randn(5, 1, 8, 8),),
            dynamic_axes={"input": {0: "batch"}})


def test_images_of_open_sizes():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True))
    compare(lambda x: model(x).mean((2, 3)), (tl.randn(2, 1, 9, 8),), (tl.randn(1, 1, 14, 7),),
            dynamic_shapes={"x": {0: "batch", 2: "height", 3: "width"}})


@each("layer, x", [
    (nn.Conv1d(3, 4, 3, stride=2, dilation=2), tl.randn(2, 3, 12)),
    (nn.Conv3d(1, 2, 2, padding=1), tl.randn(2, 1, 3, 4, 5)),
    (nn.BatchNorm1d(3), tl.randn(4, 3)), (nn.InstanceNorm2d(3, affine=True), tl.randn(2, 3, 4, 4)),
    (nn.MaxPool1d(3, 2, padding=1), tl.randn(2, 3, 8)), (nn.AvgPool3d(2), tl.randn(1, 2, 4, 4, 4)),
    (nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), tl.randn(2, 1, 7, 7)),
    (nn.AvgPool2d(2, divisor_override=3), tl.randn(2, 1, 4, 4)),
    (nn.ZeroPad2d(1), tl.ones(1, 2, 2)),
    (nn.MaxPool2d(2), tl.randn(3, 4, 4)), (nn.RMSNorm(4), tl.randn(3, 4)),
    (nn.ReflectionPad2d(1), tl.randn(1, 2, 3, 3)),
    (nn.Upsample(scale_factor=2), tl.randn(1, 2, 3, 3)),
    (nn.Upsample(scale_factor=2, mode="bilinear"), tl.randn(1, 2, 3, 3)),
    (nn.PReLU(3), tl.randn(2, 3, 4)), (nn.GELU("tanh"), tl.randn(5)), (nn.GLU(), tl.randn(3, 4)),
    (nn.Softplus(2.0, 3.0), tl.randn(9) * 4), (nn.ELU(0.5), tl.randn(9)),
    (nn.CELU(2.0), tl.randn(9)), (nn.LeakyReLU(0.2), tl.randn(9)),
    (nn.Hardtanh(-0.5, 2.0), tl.randn(9)), (nn.Mish(), tl.randn(9)),
    (nn.Embedding(5, 3), tl.tensor([[0, 4], [2, 2]])), (nn.Bilinear(3, 3, 2), None)],
    ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else "")
def test_layers(layer, x):
    compare(layer, (x,) if x is not None else (tl.randn(2, 3), tl.randn(2, 3)))


@pytest.mark.parametrize("kind, options", [
    (nn.LSTM, {}), (nn.GRU, {}), (nn.RNN, {}), (nn.RNN, {"nonlinearity": "relu"}),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True}), (nn.LSTM, {"bias": False}),
    (nn.GRU, {"num_layers": 2, "bidirectional": True})])
def test_recurrent_layers_with_open_batch_and_length(kind, options):
    exported = compare(
        Recurrent(kind, **options), (tl.randn(2, 5, 3),), (tl.randn(4, 7, 3),),
        (tl.randn(1, 1, 3),), dynamic_axes={"x": {0: "batch", 1: "length"}})
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    assert sum(type in ("LSTM", "GRU", "RNN") for type in types(exported)) == count


def test_a_recurrent_layer_of_one_fixed_size_with_states():
    model = nn.LSTM(3, 4)
    compare(lambda x, h, c: model(x, (h, c)),
            (tl.randn(5, 2, 3), tl.randn(1, 2, 4), tl.randn(1, 2, 4)))


def test_a_transformer_with_open_batch_and_length():
    ids = tl.tensor([[1, 2, 3], [4, 5, 6]])
    compare(GPT(), (ids,), (tl.tensor([[1, 2, 3, 4, 5, 6, 7]]),), (ids[:, :1],),
            dynamic_shapes={"ids": {0: "batch", 1: "length"}})


def test_a_sequence_as_long_as_a_model_takes_is_tried_shorter():
    ids = tl.arange(16).reshape(1, 16) % 11
    compare(GPT(16), (ids,), (ids[:, :5],), dynamic_axes={"ids": {0: "batch", 1: "length"}})
    compare(Masked(), (tl.randn(2, 12, 3),), (tl.randn(1, 4, 3),), (tl.randn(3, 1, 3),),
            dynamic_axes={"x": [0, 1]})


@pytest.mark.parametrize("layer", [
    nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")])
def test_layers_of_transformers(layer):
    compare(layer, (tl.randn(2, 5, 8),), (tl.randn(3, 4, 8),),
            dynamic_axes={"src": {0: "batch", 1: "length"}})


def test_attention_of_two_sequences_with_a_mask_and_weights():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    mask = tl.zeros(2, 4, dtype=tl.bool)
    mask[0, 2:] = True
    compare(lambda q, k, mask: layer(q, k, k, key_padding_mask=mask),
            (tl.randn(2, 3, 8), tl.randn(2, 4, 8), mask))
    seen = tl.tensor([[True, True, False], [False, False, False]])
    compare(lambda q, k: F.scaled_dot_product_attention(q, k, k, attn_mask=seen),
            (tl.randn(1, 2, 4), tl.randn(1, 3, 4)))            # the second row sees nothing


# ---- control flow --------------------------------------------------------------------------------

def newton(a):
    def going(x, step):
        return step.abs() > 1e-6

    def body(x, step):
        better = (x + a / x) / 2
        return better, better - x
    return tl.while_loop(going, body, (a, a))[0]


def branches(x):
    return tl.cond(x.sum() > 0, lambda: (x * 2, x), lambda: tl.cond(
        x[0] > -1, lambda: (x.exp(), x), lambda: (-x, x + 1)))


def running(x):
    weight = tl.eye(3) * 0.5

    def step(h, t):
        h = (h @ weight + t).tanh()
        return h, (h.sum(), {"twice": h * 2})
    return tl.scan(step, tl.zeros(3), x)


def both(x):
    def body(n, a):
        inner = tl.while_loop(lambda k, b: k < n + 1, lambda k, b: (k + 1, (b * x).sin() + a),
                              (tl.tensor(0), a))
        return n + 1, tl.cond(inner[1].sum() > 0, lambda: inner[1].tanh(), lambda: inner[1] * 0.5)
    return tl.while_loop(lambda n, a: n < 3, body, (tl.tensor(0), x))[1]


def never(x):
    return tl.while_loop(lambda n, a: n < 0, lambda n, a: (n + 1, a * 2), (tl.tensor(0), x))[1]


def test_loops_and_branches_are_those_of_onnx():
    assert types(compare(newton, (tl.tensor(2.0),), (tl.tensor(9.0),)))[-1] == "Loop"
    exported = compare(branches, (tl.tensor([1.0, 2.0]),), (tl.tensor([-2.0, 1.0, -1.0]),),
                       (tl.tensor([0.0, -1.0]),), dynamic_axes={"x": [0]})
    assert "If" in types(exported)
    assert types(compare(running, (tl.randn(5, 3),), (tl.randn(2, 3),),
                         dynamic_axes={"x": {0: "length"}})) == ["Scan"]
    compare(both, (tl.randn(3),), (tl.randn(3),))
    compare(never, (tl.randn(3),))


# ---- sizes ---------------------------------------------------------------------------------------

def sized(x, y=None, *, scale=2.0):
    n, z = x.shape[0], x * scale + y["k"]
    return {"a": z, "none": None, "more": (
        z.mean(0), z.sum() / n, z.flatten(), z.reshape(n * z.shape[1]), z[:-1], x.var(0),
        z[None].expand(2, -1, -1), tl.arange(2 * n + 1), tl.ones(n, 2) * z[:, :1], x.std(0),
        x.repeat(1, 2).view(n, 2, -1), tl.full((n, n), 0.5), x[:, 0].max(0)[0], x.argmax(),
        tl.zeros_like(x), x.cumsum(0), x.split(1, 1)[0], x[[0, 1]], tl.cat([x, x])[n:], x.flip(0),
        x.roll(1, 0), x.unsqueeze(1).squeeze(), x.topk(2, 0)[0], x.sort(0)[1], x[n - 1], n * x,
        x.T, x.t() @ x, F.pad(x, (1, 2)), F.one_hot(x.argmax(1), 3), x.new_zeros(n).sum(), 3)}


def test_formulas_of_open_sizes():
    y = {"k": tl.ones(3)}
    exported = compare(sized, (tl.randn(4, 3), y), (tl.randn(2, 3), y), (tl.randn(9, 3), y),
                       kwargs={"scale": 3.0}, dynamic_shapes={"x": {0: "n"}})
    assert [x.name for x in exported.model_proto.graph.input] == ["x", "y_0"]


def test_one_name_is_one_size():
    def function(x, y):
        return x @ y.T, x.shape[0] + y.shape[1] + tl.zeros(1)

    shapes = ({0: "m", 1: "k"}, {0: "n", 1: "k"})
    compare(function, (tl.randn(2, 3), tl.randn(4, 3)), (tl.randn(5, 2), tl.randn(1, 2)),
            dynamic_shapes=shapes)
    compare(function, (tl.randn(2, 3), tl.randn(4, 3)), dynamic_shapes=((None, "k"), (None, "k")))
    with pytest.raises(ValueError, match="'k' is 3 in one example and 2 in another"):
        export(function, (tl.ones(1, 3), tl.ones(1, 2)), dynamic_shapes=shapes)


def test_nested_arguments_have_nested_sizes():
    def function(pair, named):
        return pair[0] + pair[1] * named["a"]

    compare(function, ((tl.randn(3), tl.randn(3)), {"a": tl.randn(3)}),
            ((tl.randn(5), tl.randn(5)), {"a": tl.randn(5)}),
            dynamic_shapes={"pair": ({0: "n"}, ["n"]), "named": {"a": {0: "n"}}})


def unrolled(x):
    h = x[0]
    for i in range(x.shape[0]):
        h = h * x[i]
    return h


@pytest.mark.parametrize("function, message", [
    (unrolled, r"calls.*while_loop"),
    (lambda x: x.sin() if x.shape[0] % 2 else x.cos(), r"instead of \w+ .*test_onnx.py"),
    (lambda x: x * tl.linspace(0.0, 1.0, x.shape[0]), "constant.*other values"),
    (lambda x: x / x.shape[0] ** 0.5, "other of div")])
def test_what_depends_on_an_open_size_in_python_is_an_error(function, message):
    with pytest.raises(OnnxExporterError, match=message):
        export(function, (tl.randn(4),), dynamic_axes={"x": [0]})
    compare(function, (tl.randn(4),))


# ---- programs, names and files -------------------------------------------------------------------

def test_a_program_by_hand():
    with program.Program() as p:
        x = program.data("x", (None, 2))
        w = program.parameter("w", [[1.0, -1.0], [0.5, 2.0]])
        p.outputs = (x @ w).tanh().var(0)
    exported = export(p)
    x = tl.randn(5, 2)
    assert tl.allclose(exported(x)[0], p.run({"x": x}, p.outputs), atol=1e-6)
    with pytest.raises(ValueError, match="takes no args"):
        export(p, (x,))


def test_names_and_files(tmp_path):
    model, x = nn.Linear(3, 2), tl.randn(4, 3)
    path, stream = tmp_path / "model.onnx", io.BytesIO()
    for file in (path, stream):
        export(model, x, file, input_names=["features"], output_names=["scores"], opset_version=18,
               export_params=True, do_constant_folding=True, dynamo=True)
    assert path.read_bytes() == stream.getvalue()
    read = onnx.load(path)
    assert [x.name for x in (*read.graph.input, *read.graph.output)] == ["features", "scores"]
    assert read.opset_import[0].version == 18 and read.producer_name == "tensorlib"
    assert read.graph.node[0].doc_string.startswith("test_onnx.py:")


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23])
def test_every_opset(opset):
    compare(GPT(), (tl.tensor([[1, 2, 3]]),), opset_version=opset)


def test_the_graph_is_printed_on_request(capsys):
    export(nn.Linear(3, 2), tl.ones(1, 3), verbose=True)
    assert "Gemm" in capsys.readouterr().out


def test_an_export_is_in_eval_mode_and_leaves_the_mode_as_it_was():
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3), nn.Linear(3, 2))
    model[1].eval()
    seen = []
    model[2].register_forward_hook(lambda *_: seen.append((model.training, is_in_onnx_export())))
    exported = export(model, tl.ones(2, 3))
    assert seen == [(False, True)] and not is_in_onnx_export()
    assert [m.training for m in model] == [True, False, True] and model.training
    assert model[1].num_batches_tracked == 0
    assert tl.allclose(exported(tl.ones(2, 3))[0], model.eval()(tl.ones(2, 3)), atol=1e-6)


def test_results_that_are_inputs_or_constants():
    w = tl.tensor([1.0, 2.0])
    compare(lambda x: (x, w, x, x + 1, w * 2), (tl.ones(2),))


# ---- what is refused -----------------------------------------------------------------------------

state = tl.zeros(2)


@pytest.mark.parametrize("function, message", [
    (lambda x: x.inverse(), r"linalg_inv_ex \(test_onnx.py:\d+\): has no counterpart"),
    (lambda x: x + tl.rand(2), r"rand \(test_onnx.py:\d+\): draws random numbers"),
    (lambda x: x[x > 0], r"getitem \(test_onnx.py:\d+\): with a mask"),
    (lambda x: x.round(decimals=2).median(0)[0], r"median \(test_onnx.py:\d+\)"),
    (lambda x: F.max_pool1d(x, 2, return_indices=True)[1], r"max_pool \(.*max_pool_1 has no"),
    (lambda x: x + state.add_(1), r"add_ \(test_onnx.py:\d+\): writes in place")])
def test_an_operation_without_counterpart_is_named_with_its_line(function, message):
    with pytest.raises(UnsupportedOperatorError, match=message):
        export(function, (tl.eye(2),))


@each("options, error, message", [
    ({"opset_version": 11}, ValueError, "18 to 23, got 11"),
    ({"opset_version": "18"}, ValueError, "18 to 23"),
    ({"export_params": False}, ValueError, "export_params"),
    ({"input_names": ["a", "b"]}, ValueError, "2 input_names for 1"),
    ({"output_names": ["a", "b"]}, ValueError, "2 output_names for 1"),
    ({"dynamic_axes": {"y": [0]}, "output_names": ["out"]}, ValueError, "'y'.*inputs are x"),
    ({"dynamic_axes": {"x": [2]}}, ValueError, r"\(2, 3\) has no dim 2"),
    ({"dynamic_axes": [0]}, TypeError, "dict, got list"),
    ({"dynamic_shapes": {"z": [0]}}, ValueError, "'z'.*arguments are x"),
    ({"dynamic_shapes": [None, None]}, ValueError, "1 arguments"),
    ({"dynamic_shapes": [("a",)]}, ValueError, "1 dims for x, which has 2"),
    ({"dynamic_axes": {"x": {0: "x", 1: "x"}}}, ValueError, "'x' is 2 in one"),
])
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        export(lambda x: x * 2, (tl.ones(2, 3),), **options)


def test_what_is_no_model():
    with pytest.raises(TypeError, match="takes a Module, a function or a Program, got int"):
        export(3, (tl.ones(1),))
    with pytest.raises(program.CaptureError, match="while_loop"):
        export(lambda x: x if x.sum() > 0 else -x, (tl.ones(1),))
    exported = export(lambda x: x * 2, (tl.ones(1),))
    with pytest.raises(TypeError, match=r"takes 1 tensors \(x\), got 2"):
        exported(tl.ones(1), tl.ones(1))


def test_the_package_is_asked_for_only_when_something_is_exported(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match="pip install onnx"):
        export(lambda x: x, (tl.ones(1),))
