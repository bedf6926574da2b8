"""Graphs of Python's calls under the names of `torch.fx`: what is traced, changed and run."""

import copy
import math
import operator
import pickle

import pytest

import tensorlib as tl
from tensorlib import fx, nn
from tensorlib.fx.passes.shape_prop import ShapeProp
from tensorlib.nn import functional as F


@fx.wrap
def positive(x, scale):
    return x * scale if x.sum() > 0 else x


fx.wrap("len")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.layers = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
        self.scale = nn.Parameter(tl.tensor(2.0))
        self.register_buffer("offset", tl.ones(2))
        self.plain = tl.arange(2.0)

    def forward(self, x, *, bias=None):
        y = self.layers(self.first(x)) * self.scale + self.offset
        return {"y": y, "z": [y + self.plain, y.size(0)]}


class Positions(nn.Module):
    """Makes tensors of the sizes of another, and takes parts of its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", tl.tril(tl.ones(8, 8)))

    def forward(self, x):
        rows, columns = x.size()
        place = tl.arange(0, columns, device=x.device).unsqueeze(0)
        masked = x.masked_fill(self.mask[:rows, :columns] == 0, float("-inf"))
        return F.softmax(masked, dim=-1) + place + tl.zeros(rows, columns).view(rows, -1)


X = tl.arange(6.0).reshape(2, 3)


def body(traced):
    """The lines of the code, without what frees values."""
    return [line.split(";")[0].strip() for line in traced.code.strip().split("\n")]


def test_a_module_is_traced_into_its_parts():
    module = Net()
    traced = fx.symbolic_trace(module)
    assert isinstance(traced, fx.GraphModule) and type(traced).__name__ == "Net"
    assert body(traced) == [
        "def forward(self, x, bias = None):",
        "first = self.first(x)",
        'layers_0 = getattr(self.layers, "0")(first)',
        'layers_1 = getattr(self.layers, "1")(layers_0)',
        "scale = self.scale",
        "mul = layers_1 * scale",
        "offset = self.offset",
        "add = mul + offset",
        "plain = self.plain",
        "add_1 = add + plain",
        "size = add.size(0)",
        "return {'y': add, 'z': [add_1, size]}"]
    given, wanted = traced(X), module(X)
    assert tl.equal(given["y"], wanted["y"]) and given["z"][1] == 2
    assert traced.first is module.first and traced.scale is module.scale
    given["y"].sum().backward()
    assert module.scale.grad is not None
    traced.graph.lint()
    assert nn.Module.__call__ is nn.Module._call_impl       # as before the trace


def test_the_text_of_a_graph_says_what_each_node_calls():
    traced = fx.symbolic_trace(lambda x, n=2: tl.relu(x)[0, ..., None].clamp(min=0) + n)
    assert str(traced.graph).replace(tl.__name__, "tensorlib").split("\n") == [
        "graph():",
        "    %x : [num_users=1] = placeholder[target=x]",
        "    %n : [num_users=1] = placeholder[target=n](default=2)",
        "    %relu : [num_users=1] = call_function[target=tensorlib.relu](args = (%x,), "
        "kwargs = {})",
        "    %getitem : [num_users=1] = call_function[target=operator.getitem]"
        "(args = (%relu, (0, Ellipsis, None)), kwargs = {})",
        "    %clamp : [num_users=1] = call_method[target=clamp](args = (%getitem,), "
        "kwargs = {min: 0})",
        "    %add : [num_users=1] = call_function[target=operator.add](args = (%clamp, %n), "
        "kwargs = {})",
        "    return add"]


@pytest.mark.parametrize("function, line", [
    pytest.param(lambda x: x - 1, "sub = x - 1", id="operator"),
    pytest.param(lambda x: 3 - x, "sub = 3 - x", id="reflected"),
    pytest.param(lambda x: -x, "neg = -x", id="sign"),
    pytest.param(lambda x: x[..., 1:2], "getitem = x[(Ellipsis, slice(1, 2, None))]", id="slice"),
    pytest.param(lambda x: x.shape, "getattr_1 = x.shape", id="attribute"),
    pytest.param(lambda x: x.view(-1), "view = x.view(-1)", id="method"),
    pytest.param(lambda x: F.softmax(x, dim=0),
                 "softmax = tensorlib.nn.functional.softmax(x, dim = 0)", id="function"),
    pytest.param(lambda x: tl.linalg.inv(x), "linalg_inv = tensorlib.linalg.inv(x)", id="linalg"),
    pytest.param(lambda x: x.to(tl.float64), "to = x.to(tensorlib.float64)", id="dtype"),
    pytest.param(lambda x: x.clamp(max=math.inf), "clamp = x.clamp(max = inf)", id="infinity"),
    pytest.param(lambda x: tl.ones(x.shape[0], 2), "ones = tensorlib.ones(getitem, 2)", id="size"),
    pytest.param(lambda x: positive(x, 2), "positive = test_fx_positive(x, 2)", id="wrapped"),
    pytest.param(lambda x: len(x), "len_1 = len(x)", id="wrapped name"),
    pytest.param(lambda x: math.sqrt(x), "sqrt = math_sqrt(x)", id="math"),
])
def test_what_is_done_with_a_value_is_a_line_of_code(function, line):
    traced = fx.symbolic_trace(function)
    lines = [each.replace(__name__.replace(".", "_"), "test_fx") for each in body(traced)]
    assert line in lines
    assert math.sqrt(4) == 2 and len([1]) == 1              # outside, they are as they were


def test_a_value_is_taken_apart_by_as_many_names():
    def split(x):
        a, b = x.chunk(2, 1)
        return b - a
    assert tl.equal(fx.symbolic_trace(split)(tl.ones(1, 4)), tl.zeros(1, 2))


def test_sizes_that_are_traced_fit_other_shapes():
    module = Positions()
    traced = fx.symbolic_trace(module)
    for x in (X, tl.randn(5, 7)):
        assert tl.equal(traced(x), module(x))


@pytest.mark.parametrize("function, error, message", [
    (lambda x: x if x.sum() > 0 else -x, fx.proxy.TraceError, "inputs to control flow"),
    (lambda x: list(x), fx.proxy.TraceError, "Proxy object cannot be iterated"),
    (lambda x: x.__len__(), RuntimeError, "'len' is not supported in symbolic tracing"),
    (lambda x: x.add(object()), NotImplementedError, "argument of type"),
    (lambda x: x.add({x: 1}), RuntimeError, "Keys for dictionaries"),
])
def test_what_depends_on_values_is_refused(function, error, message):
    with pytest.raises(error, match=message):
        fx.symbolic_trace(function)
    assert tl.equal(tl.relu(X), X)                          # nothing is traced any more


def test_a_value_that_is_held_is_checked():
    def f(x, double=True, y=None):
        return x * 2 if double else x
    traced = fx.symbolic_trace(f, concrete_args={"double": True, "y": None})
    assert tl.equal(traced(X), X * 2)
    with pytest.raises(AssertionError, match="double has been specialized to have value True"):
        traced(X, False)
    with pytest.raises(AssertionError, match="y has been specialized to have value None"):
        traced(X, True, 3)


def test_nodes_are_replaced_and_erased():
    traced = fx.symbolic_trace(lambda x: tl.relu(x) + 1)
    graph = traced.graph
    x, relu, add, output = graph.nodes
    assert relu.users == {add: None} and add.all_input_nodes == [relu] and relu.next is add
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(relu)
    with pytest.raises(TypeError, match="does not support mutation"):
        graph.call_function(tl.cat, ([x, x],)).args[0].append(x)
    with graph.inserting_after(relu):
        negative = graph.call_method("neg", (x,))
    assert relu.replace_all_uses_with(negative) == [add]
    add.target, add.args = operator.mul, (negative, 3)
    assert graph.eliminate_dead_code() and relu not in graph.nodes
    graph.lint()
    traced.recompile()
    assert body(traced)[1:] == ["neg = x.neg()", "add = neg * 3", "return add"]
    assert tl.equal(traced(X), X * -3)


def test_nodes_before_their_arguments_are_found():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(tl.relu, (x,))
    graph.output(y)
    y.prepend(x)
    graph.lint()
    x.prepend(y)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()


def test_a_graph_is_made_by_hand():
    graph = fx.Graph()
    x, weight = graph.placeholder("x"), graph.get_attr("inner.weight")
    value = fx.Proxy(graph.call_method("add", (x,), {"other": weight}))
    graph.output((value * 2).node)
    module = fx.GraphModule({"inner.weight": tl.ones(3)}, graph)
    assert tl.equal(module(X), (X + 1) * 2)
    assert [name for name, _ in module.named_buffers()] == ["inner.weight"]
    with pytest.raises(RuntimeError, match="that target was not provided"):
        fx.GraphModule({}, graph)
    with pytest.raises(ValueError, match="a Callable is expected"):
        graph.call_function("relu")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy,
                                    lambda module: pickle.loads(pickle.dumps(module))])
def test_copies_have_graphs_of_their_own(copied):
    module = fx.symbolic_trace(Net())
    other = copied(module)
    assert other.code == module.code and other.graph is not module.graph
    assert tl.equal(other(X)["y"], module(X)["y"])
    other.graph.output_node().args = (next(iter(other.graph.nodes)),)
    other.recompile()
    assert other(X) is X and isinstance(module(X), dict)


def test_parts_that_are_used_no_more_go():
    traced = fx.symbolic_trace(Net())
    assert traced.add_submodule("extra.part", nn.ReLU()) and hasattr(traced.extra, "part")
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_modules()] == [
        "", "first", "layers", "layers.0", "layers.1"]
    assert traced.delete_submodule("layers.0") and not traced.delete_submodule("layers.0")


def test_an_interpreter_runs_nodes_one_by_one():
    class Tanh(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(tl.tanh if target is tl.relu else target, args, kwargs)
    traced = fx.symbolic_trace(lambda x, n=2: tl.relu(x) * n)
    assert tl.equal(fx.Interpreter(traced).run(X, 3), tl.relu(X) * 3)
    assert tl.equal(Tanh(traced).run(X), tl.tanh(X) * 2)
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x") as error:
        fx.Interpreter(traced).run()
    assert any("While executing %x" in note for note in error.value.__notes__)


def test_a_transformer_makes_a_new_module():
    class Negative(fx.Transformer):
        def call_module(self, target, args, kwargs):
            return -super().call_module(target, args, kwargs)
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    changed = Negative(fx.symbolic_trace(module)).transform()
    assert tl.equal(changed(X), -module[1](-module[0](X)))


def test_shapes_are_noted():
    traced = fx.symbolic_trace(lambda x: x.sum(1))
    ShapeProp(traced).propagate(X)
    metas = [node.meta["tensor_meta"] for node in traced.graph.nodes]
    assert [meta.shape for meta in metas] == [(2, 3), (2,), (2,)]
    assert metas[0].stride == (3, 1) and metas[0].memory_format is tl.contiguous_format


def test_a_tracer_says_which_parts_are_whole():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True
    module = Net()
    graph = Whole().trace(module)
    assert [node.target for node in graph.find_nodes(op="call_module")] == ["first", "layers"]
    assert tl.equal(fx.GraphModule(module, graph)(X)["y"], module(X)["y"])


def test_models_of_the_library_are_traced_into_their_layers():
    traced = fx.symbolic_trace(tl.vision.models.resnet18())
    parts = [node.target for node in traced.graph.find_nodes(op="call_module")]
    assert "layer1.0.conv2" in parts and "layer1.0" not in parts


def test_a_pattern_is_replaced_where_it_is_found():
    def f(x, y):
        return tl.cat([x, y]).sum() + tl.cat([y, x]).sum() * tl.cat([x, x]).mean()
    traced = fx.symbolic_trace(f)
    places = fx.replace_pattern(traced, lambda a, b: tl.cat([a, b]).sum(),
                                lambda a, b: tl.stack([a, b]).amax())
    assert len(places) == 2
    assert traced(X, X + 1) == 6 + 6 * X.mean()


def test_a_pattern_of_which_a_part_is_used_elsewhere_stays():
    def f(x):
        y = tl.relu(x)
        return tl.neg(y) + y
    traced = fx.symbolic_trace(f)
    assert fx.replace_pattern(traced, lambda x: tl.neg(tl.relu(x)), lambda x: x) == []


def test_functions_are_marked_on_top_of_a_module():
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level"):
        fx.wrap("len")
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        fx.wrap(3)


def test_the_rows_of_a_graph_are_printed(capsys):
    fx.symbolic_trace(lambda x: x + 1).graph.print_tabular()
    rows = capsys.readouterr().out.split("\n")
    assert rows[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert set(rows[1]) == {"-", " "} and rows[2].split() == ["placeholder", "x", "x", "()", "{}"]


def test_assertions_stay_in_the_graph():
    def f(x):
        tl._assert(x.shape[-1] == 3, "three")
        return x + 1
    traced = fx.symbolic_trace(f)
    assert "_assert(eq, 'three')" in traced.code and not traced.graph.eliminate_dead_code()
    assert traced(tl.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(AssertionError, match="^three"):
        traced(tl.ones(2))
