"""Pictures and figures of graphs."""

import shutil
import sys
import types

import pytest
from pictures import Twice, box, picture

import tensorlib as tl
from tensorlib import graph


@pytest.fixture
def network():
    x = tl.ones(8, 4)
    w = tl.ones(4, 3, requires_grad=True)
    b = tl.zeros(3, requires_grad=True)
    h = (x @ w + b).tanh()
    loss = (h * h).mean() + (w * w).sum()
    return types.SimpleNamespace(x=x, w=w, b=b, h=h, loss=loss)


class TestNodes:
    def test_what_a_node_knows_of_its_inputs(self):
        x = tl.ones(2, 1, 3, 1, 2, dtype=tl.float64, requires_grad=True)
        node = (x * tl.ones(2)).grad_fn
        assert node.operation == "mul"
        assert node.input_layouts == ((tl.float64, (2, 1, 3, 1, 2)), (tl.float32, (2,)))

    def test_saved_values_have_the_names_of_the_rules(self, network):
        assert {k: v.shape for k, v in network.h.grad_fn.saved_values.items()} == {"out": (8, 3)}
        a, b = tl.ones(2, requires_grad=True), tl.ones(2, requires_grad=True)
        saved = (a * b).grad_fn.saved_values
        assert list(saved) == ["input", "other"]
        assert saved["input"].data_ptr() == a.data_ptr() and not saved["input"].requires_grad

    def test_only_what_is_kept_is_there(self):
        a, b = tl.ones(2, requires_grad=True), tl.ones(2)
        assert list((a * b).grad_fn.saved_values) == ["other"]
        assert (a + b).grad_fn.saved_values == {}

    def test_after_a_sweep_nothing_is_saved(self, network):
        node = network.h.grad_fn
        network.loss.backward()
        assert node.saved_values == {}

    def test_leaves_save_nothing(self, network):
        leaf = (network.w * 1).grad_fn.next_functions[0][0]
        assert leaf.saved_values == {} and leaf.input_layouts == ()
        assert leaf.operation == "accumulate_grad"


class TestSummary:
    def test_figures(self, network):
        found = graph.summary(network.loss)
        assert found.by_operation == {
            "accumulate_grad": 2, "add": 2, "matmul": 1, "mean": 1, "mul": 2, "sum": 1, "tanh": 1}
        assert found.nodes == 10
        # add, mean, mul, tanh, add, matmul, the leaf
        assert found.depth == 7
        h, w, x = 8 * 3 * 4, 4 * 3 * 4, 8 * 4 * 4
        assert found.saved_bytes == h + w + x
        assert found.saved_by_operation["mul"] == 2 * h + 2 * w
        assert found.saved_by_operation["tanh"] == h and found.saved_by_operation["add"] == 0

    def test_text(self):
        w = tl.ones(3, requires_grad=True)
        assert repr(graph.summary((w * w).sum())) == (
            "3 nodes, at most 3 in a row; 12 bytes saved\n"
            "operation        nodes  bytes saved\n"
            "accumulate_grad      1            0\n"
            "mul                  1           24\n"
            "sum                  1            0")

    def test_positions_of_an_index_count(self):
        x = tl.ones(6, 4, requires_grad=True)
        picked = x[[0, 2, 1]].sum() + x[x.detach() > 2].sum() + x[1:].sum()
        found = graph.summary(picked)
        assert found.saved_bytes == found.saved_by_operation["getitem"] == 3 * 8 + 6 * 4
        assert box(picture(picked)[0], "getitem_0")[1][1:] == ["saves index 24 B"]
        assert box(picture(picked)[0], "getitem_2")[1][1:] == []
        (g,) = tl.autograd.grad(x.max(1)[0].square().sum(), x, create_graph=True)
        assert box(picture(g)[0], "put_along_0")[1][1:] == ["saves places 48 B"]

    def test_memory_that_is_kept_as_several_views_counts_once(self):
        x = tl.ones(6, 4, requires_grad=True)
        assert graph.summary(x @ x.t()).saved_bytes == 6 * 4 * 4
        assert graph.summary(x[:4] * x[2:]).saved_bytes == 6 * 4 * 4
        assert graph.summary(x * x[::-1]).saved_bytes == 6 * 4 * 4
        assert graph.summary(x[:0] * x[6:]).saved_bytes == 0
        row = tl.ones(4, requires_grad=True)
        found = graph.summary((row * 1).expand(6, 4).square())
        assert found.saved_bytes == 4 * 4 + 4 and found.saved_by_operation["square"] == 6 * 4 * 4

    def test_the_depth_is_that_of_the_longest_way(self):
        x = tl.ones(1, requires_grad=True)
        y = x
        for _ in range(5):
            y = y.tanh()
        assert graph.summary(x + y).depth == graph.summary(y + x).depth == 7

    def test_a_node_that_is_reached_on_exponentially_many_ways_counts_once(self):
        x = tl.ones(1, requires_grad=True)
        for _ in range(200):
            x = x * x
        found = graph.summary(x)
        assert found.nodes == 201 and found.depth == 201

    def test_several_roots(self):
        x = tl.ones(2, requires_grad=True)
        assert graph.summary([x.exp(), x.sin()]).by_operation == {
            "exp": 1, "sin": 1, "accumulate_grad": 1}

    def test_a_leaf_is_a_graph(self):
        found = graph.summary(tl.ones(2, requires_grad=True))
        assert found.nodes == found.depth == 1

    def test_a_graph_much_deeper_than_the_stack(self):
        x = tl.ones(1, requires_grad=True)
        for _ in range(20_000):
            x = x * 1.5
        assert graph.summary(x).depth == 20_001
        assert graph.dot(x).count("->") == 20_001

    def test_looking_changes_nothing(self, network):
        w = network.w.detach().requires_grad_()
        (expected,) = tl.autograd.grad((((network.x @ w).tanh() ** 2).mean() + (w * w).sum()), (w,))
        graph.summary(network.loss)
        graph.dot(network.loss, vars(network))
        network.loss.backward()
        assert network.w.grad.tolist() == expected.tolist()


class TestDot:
    def test_operations_with_their_shapes_and_what_they_save(self, network):
        boxes, arrows = picture(network.loss, vars(network))
        matmul, lines = box(boxes, "matmul_0")
        assert lines == ["float32 (8, 4), float32 (4, 3) → float32 (8, 3)", "saves input 128 B"]
        tanh, lines = box(boxes, "h = tanh")
        assert lines == ["float32 (8, 3) → float32 (8, 3)", "saves out 96 B"]
        bias, lines = box(boxes, "b")
        assert lines == ["float32 (3,)", "leaf, 12 B"]
        assert boxes["root0"] == ["loss", "float32 ()"]
        total, _ = box(boxes, "loss = add")
        assert ("root0", total, "") in arrows

    def test_gradients_that_fan_in_meet_in_a_sum(self, network):
        boxes, arrows = picture(network.loss, {"w": network.w})
        leaf, _ = box(boxes, "w")
        ((source, _, name),) = [arrow for arrow in arrows if arrow[1] == leaf]
        assert name == "w@GRAD" and boxes[source] == ["+"]
        matmul, product = box(boxes, "matmul_0")[0], box(boxes, "mul_1")[0]
        assert {(start, name) for start, end, name in arrows if end == source} == {
            (matmul, "w@GRAD@RENAME@0"), (product, "w@GRAD@RENAME@1"),
            (product, "w@GRAD@RENAME@2")}

    def test_a_gradient_from_one_place_has_no_sum(self):
        x = tl.ones(2, requires_grad=True)
        boxes, arrows = picture(x.exp().sum())
        assert len(boxes) == 4 and all(name == "" for *_, name in arrows)

    def test_a_root_adds_to_the_gradient_too(self):
        y = tl.ones(2, requires_grad=True).exp()
        boxes, arrows = picture([y, y.sin()], {"y": y})
        assert ("root0", "y@GRAD@RENAME@0") in {(start, name) for start, _, name in arrows}

    def test_an_output_that_has_no_gradient_is_left_out(self):
        values, _ = tl.ones(2, 3, requires_grad=True).max(1)
        boxes, _ = picture(values, {"top": values})
        assert box(boxes, "top = max")[1][0] == "float32 (2, 3) → float32 (2,)"

    def test_many_inputs_are_counted(self):
        x = tl.ones(2, requires_grad=True)
        boxes, _ = picture(tl.cat([x] * 10))
        assert box(boxes, "cat_0")[1][0] == (
            "float32 (2,), float32 (2,), float32 (2,), 7 more → float32 (20,)")

    @pytest.mark.parametrize("names", [
        lambda w: {"layer": {"w": w}, "n": 3}, lambda w: [("layer.w", w)],
        lambda w: iter([("layer.w", w)])])
    def test_names(self, names):
        w = tl.ones(2, requires_grad=True)
        box(picture(w.sum(), names(w))[0], "layer.w")

    def test_without_names_things_are_numbered(self):
        a, b = tl.ones(2, requires_grad=True), tl.ones(2, requires_grad=True)
        boxes, _ = picture((a * b).sum())
        assert box(boxes, "leaf_0") and box(boxes, "leaf_1") and box(boxes, "mul_0")

    def test_a_leaf_has_its_own_name(self):
        w, b = tl.ones(2, requires_grad=True), tl.ones(2, requires_grad=True)
        w.name, b.name = "w", "b"
        boxes, arrows = picture((w * w + b).sum(), {"bias": b})
        assert box(boxes, "w") and box(boxes, "bias")
        assert "w@GRAD@RENAME@1" in {name for *_, name in arrows}

    def test_names_that_hold_themselves_end(self):
        w = tl.ones(2, requires_grad=True)
        names = {"w": w}
        names["again"] = names
        box(picture(w.sum(), names)[0], "w")

    def test_any_name_is_text(self):
        w = tl.ones(2, requires_grad=True)
        boxes, _ = picture((w * w).sum(), {'a "b" \\ c': w})
        assert box(boxes, r'a \"b\" \\ c')

    def test_a_name_is_shown_as_it_is(self):
        w = tl.ones(2, requires_grad=True)
        for name, shown in (("<b>&lt;", "<b>&amp;lt;"), ("é→日本", "é→日本"),
                            ("a\tb\0c\r\u2028\ud800", r"a\\tb\\x00c\\r\\u2028\\ud800")):
            assert box(picture(w.sum(), {name: w})[0], shown)
            graph.dot(w.sum(), {name: w}).encode()

    def test_gradients_of_several_outputs_have_names(self):
        x = tl.ones(2, 3, requires_grad=True)
        out, other = Twice.apply(x)
        boxes, arrows = picture((out * other).sum(), {"other": other})
        node, lines = box(boxes, "other = Twice")
        assert lines == ["float32 (2, 3) → float32 (2, 3), float32 (2, 3)", "saves tensor 0 24 B"]
        assert {name for _, end, name in arrows if end == node} == {"Twice_0@GRAD", "other@GRAD"}

    def test_several_roots_are_numbered(self):
        x = tl.ones(2, requires_grad=True)
        boxes, _ = picture([x.exp(), x.sin()])
        assert boxes["root0"][0] == "output 0" and boxes["root1"][0] == "output 1"

    def test_a_thousand_operations_in_a_row(self):
        x = tl.ones(2, requires_grad=True)
        y = x
        for _ in range(1000):
            y = y.tanh()
        boxes, arrows = picture(y, {"x": x})
        found, _ = box(boxes, "tanh_0")
        assert ("root0", found, "") in arrows
        for i in range(1, 1000):
            above, (found, lines) = found, box(boxes, f"tanh_{i}")
            assert (above, found, "") in arrows and lines[1] == "saves out 8 B"
        assert (found, box(boxes, "x")[0], "") in arrows and len(arrows) == 1001


class TestDraw:
    @pytest.mark.parametrize("name", ["loss.dot", "loss.gv"])
    def test_text_needs_nothing(self, network, tmp_path, monkeypatch, name):
        monkeypatch.setitem(sys.modules, "graphviz", None)
        path = tmp_path / name
        assert graph.draw(network.loss, path, vars(network)) == str(path)
        assert path.read_text(encoding="utf-8") == graph.dot(network.loss, vars(network))

    def test_a_missing_package_is_named(self, network, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "graphviz", None)
        with pytest.raises(ImportError, match=r"graph\.draw: \.svg.*tensorlib\[graph\].*\.dot"):
            graph.draw(network.loss, tmp_path / "loss.svg")
        assert not (tmp_path / "loss.svg").exists()

    def test_the_package_gets_the_text_and_the_format(self, network, tmp_path, monkeypatch):
        class Source:
            def __init__(self, text):
                self.text = text

            def pipe(self, format):
                return f"{format}: {self.text}".encode()

        monkeypatch.setitem(sys.modules, "graphviz", types.SimpleNamespace(Source=Source))
        path = tmp_path / "loss.png"
        graph.draw(network.loss, path)
        assert path.read_text(encoding="utf-8") == "png: " + graph.dot(network.loss)

    @pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
    def test_graphviz_draws_it(self, network, tmp_path):
        pytest.importorskip("graphviz")
        path = tmp_path / "loss.svg"
        graph.draw(network.loss, path, vars(network))
        text = path.read_text(encoding="utf-8")
        assert "<svg" in text and "w@GRAD@RENAME@2" in text and "saves out 96 B" in text

    def test_a_path_without_an_ending(self, network, tmp_path):
        with pytest.raises(ValueError, match="ending"):
            graph.draw(network.loss, tmp_path / "loss")


class TestBadInput:
    @pytest.mark.parametrize("function", [graph.dot, graph.summary])
    def test_tensors(self, function):
        name = function.__name__
        with pytest.raises(TypeError, match=f"graph.{name}: expected Tensors, got int"):
            function([3])
        with pytest.raises(TypeError, match="expected Tensors, got int"):
            function(3)
        with pytest.raises(RuntimeError, match="element 1 of tensors has no graph"):
            function([tl.ones(2, requires_grad=True), tl.ones(2)])
        with pytest.raises(ValueError, match="no tensors"):
            function([])

    def test_params(self):
        with pytest.raises(TypeError, match="graph: params must be a mapping.*not list"):
            graph.dot(tl.ones(2, requires_grad=True), [1])
        with pytest.raises(TypeError, match="not int"):
            graph.dot(tl.ones(2, requires_grad=True), 1)
