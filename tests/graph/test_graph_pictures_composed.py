"""Pictures and figures of composed operations: what is inside."""

import itertools
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import Twice, box, everything

import tensorlib as tl
from tensorlib import graph, ops

NUMBERS = itertools.count()


def fresh():
    """The name of an operation that does not exist."""
    return f"graph_views_{next(NUMBERS)}"


def layer(x, w):
    return (x @ w).tanh()


@pytest.fixture(scope="module")
def dense():
    return ops.compose("graph_views_dense", layer)


@pytest.fixture(scope="module")
def block(dense):
    return ops.compose("graph_views_block", lambda x, w: (dense(dense(x, w), w), x.sum()))


def connections(tensors):
    """How often which operation sends a gradient to which: a picture without its sums and ports."""
    boxes, arrows, _ = everything(tensors)
    after = {}
    for source, target, _ in arrows:
        after.setdefault(source, []).append(target)

    def kind(number):
        """Of a box that stays: what it is; None for the others."""
        if boxes[number] == ["+"] or re.search("_(in|out)", number):
            return None
        return "root" if number.startswith("root") else re.sub("_[0-9]+$", "", boxes[number][0])

    found, seen = Counter(), {number for number in boxes if number.startswith("root")}
    stack = [(number, kind(number)) for number in seen]
    while stack:
        number, source = stack.pop()
        for target in after.get(number, ()):
            if kind(target) is None:
                stack.append((target, source))
                continue
            found[source, kind(target)] += 1
            if target not in seen:
                seen.add(target)
                stack.append((target, kind(target)))
    return found


def test_its_operations_are_drawn_in_a_box(dense):
    x, w = tl.ones(2, 3), tl.ones(3, 4, requires_grad=True)
    h = dense(x, w)
    boxes, arrows, around = everything(h.sum(), {"w": w, "h": h})
    ((number, (title, within)),) = around.items()
    assert title == "h = graph_views_dense"
    tanh, matmul = box(boxes, "tanh_0"), box(boxes, "matmul_0")
    assert matmul[1] == ["float32 (2, 3), float32 (3, 4) → float32 (2, 4)", "saves input 24 B"]
    assert tanh[1][1] == "saves out 32 B"
    start, end = f"{number}_out0", f"{number}_in1"
    assert boxes[start] == ["output", "float32 (2, 4)"] and boxes[end][0] == "w"
    assert within == {start, tanh[0], matmul[0], end}
    (leaf,) = [number for number, lines in boxes.items() if lines[-1] == "leaf, 48 B"]
    assert {(box(boxes, "sum_0")[0], start, ""), (start, tanh[0], ""), (tanh[0], matmul[0], ""),
            (matmul[0], end, ""), (end, leaf, "")} <= set(arrows)


def test_boxes_nest(dense, block):
    x, w = tl.ones(2, 3, requires_grad=True), tl.ones(3, 3, requires_grad=True)
    y, z = block(x, w)
    boxes, arrows, around = everything([y, z], {"x": x, "w": w})
    outer, first, second = around
    assert [around[n][0] for n in around] == [
        "graph_views_block_0", "graph_views_dense_0", "graph_views_dense_1"]
    assert around[first][1] | around[second][1] < around[outer][1]
    assert not around[first][1] & around[second][1]
    assert (f"{first}_in0", f"{second}_out0", "") in arrows
    assert ("root1", f"{outer}_out1", "") in arrows
    # w is used twice inside, so the parts of its gradient meet there, and x too
    (total,) = {end for start, end, _ in arrows if start == f"{first}_in1"}
    assert boxes[total] == ["+"] and total in around[outer][1]
    assert {(f"{first}_in1", total, "w@GRAD@RENAME@0"), (f"{second}_in1", total,
            "w@GRAD@RENAME@1"), (total, f"{outer}_in1", "w@GRAD")} <= set(arrows)
    assert {"x@GRAD@RENAME@0", "x@GRAD@RENAME@1"} <= {name for *_, name in arrows}


def test_what_it_captures_leaves_the_box(dense):
    x, w = tl.ones(2, 3), tl.ones(3, 3, requires_grad=True)
    deep = w * 2
    inner = ops.compose("graph_views_inner", lambda x: x @ deep)
    op = ops.compose("graph_views_outer", lambda x: inner(x) + inner(x + w[0]))
    boxes, arrows, around = everything(op(x).sum(), {"w": w, "deep": deep})
    outer = next(iter(around))
    leaving = {boxes[start][0]: boxes[end][0] for start, end, _ in arrows
               if start.startswith(f"{outer}_in")}
    assert leaving == {"w, captured": "+", "deep, captured": "deep = mul"}


KINDS = ["exp", "add", "mul", "views", "parts"]


def program(x, y, steps):
    """What steps make of two vectors, each of values before it: all that is new."""
    values = [x, y]
    for kind, i, k in steps:
        a, b = values[i % len(values)], values[k % len(values)]
        if kind == "parts":
            values.extend(Twice.apply(a))
        elif kind == "views":
            values.append(a.view(2, 2).t().reshape(4))
        else:
            values.append(a.exp() if kind == "exp" else getattr(a, kind)(b))
    return tuple(values[2:] or values)


@given(steps=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 50), st.integers(0, 50)),
                      max_size=12), cut=st.integers(0, 12))
def test_without_the_boxes_it_is_the_picture_of_the_function(steps, cut):
    """The same operations send gradients to the same, for any program."""
    y = tl.ones(4, requires_grad=True)

    def first(x):
        return program(x, y, steps[:cut])[-1]

    def rest(a, b):
        return program(a, b, steps[cut:])

    op, inner = ops.compose(fresh(), first), ops.compose(fresh(), rest)
    outer = ops.compose(fresh(), lambda x: inner(op(x), x))
    x = tl.ones(4, requires_grad=True)
    x.name, y.name = "x", "y"
    assert connections(outer(x * 1)) == connections(rest(first(z := x * 1), z))


def test_what_passes_through():
    """A function that does nothing, one output twice, and outputs that nothing asks for."""
    op = ops.compose("graph_views_same", lambda x, w: (x, x, w.exp()))
    x, w = tl.ones(2, requires_grad=True), tl.ones(2, requires_grad=True)
    boxes, arrows, around = everything(op(x, w)[0].sum(), {"x": x, "w": w})
    (number,) = around
    assert boxes[f"{number}_out2"][0] == "output 2" and f"{number}_out2" not in {
        end for _, end, _ in arrows}
    assert {name for *_, name in arrows} >= {"x@GRAD@RENAME@0", "x@GRAD@RENAME@1"}


def test_summary_counts_what_is_inside(block):
    x, w = tl.ones(2, 3), tl.ones(3, 3, requires_grad=True)
    found = graph.summary(block(x, w)[0].sum())
    assert found.by_operation == {
        "sum": 1, "graph_views_block": 1, "graph_views_dense": 2, "matmul": 2, "tanh": 2,
        "accumulate_grad": 1}
    # sum, block, and twice dense, tanh, matmul, then the leaf
    assert found.depth == 9
    plain = graph.summary(layer(layer(x, w), w).sum())
    assert found.saved_bytes == plain.saved_bytes > 0
    assert found.saved_by_operation["matmul"] == plain.saved_by_operation["matmul"]


def test_its_longest_way_counts():
    slow = ops.compose("graph_views_slow", lambda x: x.exp().exp().exp())
    x = tl.ones(2, requires_grad=True)
    for y in (slow(x) + x.exp().exp(), x.exp().exp() + slow(x)):
        assert graph.summary(y).depth == 6       # add, slow, its three, the leaf


def test_once_released_it_is_a_node(dense):
    x, w = tl.ones(2, 3), tl.ones(3, 4, requires_grad=True)
    y = dense(x, w).sum()
    y.backward()
    assert graph.summary(y).by_operation == {
        "sum": 1, "graph_views_dense": 1, "accumulate_grad": 1}
    boxes, _, around = everything(y)
    assert not around and len(box(boxes, "graph_views_dense_0")[1]) == 1


def test_deep_nests():
    """As deep as Python runs them."""
    op = ops.compose("graph_views_nest0", lambda x: x.exp())
    for i in range(1, 100):
        op = ops.compose(f"graph_views_nest{i}", lambda x, op=op: op(x))
    y = op(tl.ones(2, requires_grad=True))
    assert graph.summary(y).depth == 102
    _, _, around = everything(y)
    assert [len(within) for _, within in around.values()] == list(range(201, 2, -2))


def test_looking_changes_nothing(block):
    x, w = tl.ones(2, 3), tl.full((3, 3), 0.1, requires_grad=True)
    y = block(x, w)[0].sum()
    graph.summary(y), graph.dot(y)
    y.backward()
    expected = w.detach().requires_grad_()
    layer(layer(x, expected), expected).sum().backward()
    assert w.grad.tolist() == expected.grad.tolist()
