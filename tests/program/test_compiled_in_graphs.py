"""Compiled functions in the graphs of callers: which gradients arrive, and who sees values."""

import itertools
import re

import pytest
from beside_eager import agrees
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.program.compiled import states
from tensorlib.utils.checkpoint import checkpoint
from test_compile_agrees import same


def leaves():
    return [tl.arange(3.0).requires_grad_() for _ in range(3)]


def several(x, v, w):
    return x * v, x.log() * w, (x + v) * w, x.detach() + 1


@each("create_graph", [False, True])
@each("used", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_what_is_not_used_gives_no_gradient(used, create_graph):
    compiled = tl.compile(several)
    for _ in range(3):
        found = []
        for f in (several, compiled):
            given = leaves()
            outputs = f(*given)
            found.append(tl.autograd.grad(
                sum(outputs[i].sum() for i in used), given, allow_unused=True,
                create_graph=create_graph))
        for wanted, g in zip(*found):
            assert (wanted is None) == (g is None)
            assert g is None or create_graph or same(wanted, g)       # log(0) is no NaN for others


def test_parameters_that_a_loss_does_not_reach_keep_no_gradient():
    model = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    f = tl.compile(lambda x: (model["a"](x).sum(), model["b"](x).sum()))
    for _ in range(3):
        model.zero_grad()
        f(tl.ones(1, 2))[0].backward()
        assert model["a"].weight.grad is not None and model["b"].weight.grad is None


def test_hooks_on_saved_values_around_a_call_see_each_of_them():
    f, g = tl.compile(lambda x: x.sin().exp()), lambda x: x.sin().exp()
    x = tl.ones(3, requires_grad=True)
    f(x)
    for function in (g, f, f):
        seen = []
        with tl.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t * 2, lambda t: t):
            out = function(x)
        grad, = tl.autograd.grad(out.sum(), x)
        if function is g:
            wanted, count = grad, len(seen)
        assert same(wanted, grad) and len(seen) == count


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_compiled_parts_in_checkpoints(use_reentrant):
    layer = nn.Linear(3, 3)
    f = tl.compile(lambda x: layer(x).tanh())
    for k in range(3):
        grads = []
        for function in (f, lambda x: layer(x).tanh()):
            x = tl.full((2, 3), float(k), requires_grad=True)
            layer.zero_grad()
            checkpoint(function, x, use_reentrant=use_reentrant).sum().backward()
            grads.append([x.grad, layer.weight.grad])
        assert all(map(same, *grads))


def test_what_a_gradient_needs_the_shape_of_may_be_written():
    f = tl.compile(lambda x: (x * 2)[1:])
    for _ in range(3):
        w = tl.ones(3, 3, requires_grad=True)
        f(w).mul_(5).sum().backward()
        assert w.grad.tolist() == [[0.0] * 3, [10.0] * 3, [10.0] * 3]
    total = tl.compile(lambda x: (x * 2).sum())
    for _ in range(3):
        x = tl.ones(3, requires_grad=True) * 1
        found = total(x)
        x.add_(1)
        found.backward()


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.t(), lambda x: (x * 2, x[0])[1]])
def test_a_view_of_a_leaf_cannot_be_written_in_a_graph(view):
    f = tl.compile(view)
    for _ in range(3):
        leaf = tl.ones(3, 3, requires_grad=True)
        f(leaf)
        with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
            f(leaf).mul_(5)
        x = leaf * 1
        grad, = tl.autograd.grad(f(x).sum(), x)
        wanted, = tl.autograd.grad(view(x).sum(), x)
        assert same(grad, wanted) and x.tolist() == [[1.0] * 3] * 3
        plain = tl.ones(3, 3)
        f(plain).mul_(5)
        assert plain.sum() > 9


@each("view", [
    lambda y: y.view(-1), lambda y: y.t(), lambda y: y.unsqueeze(0), lambda y: y[0]])
@each("dtype", [tl.float16, tl.bfloat16, tl.float32])
def test_a_result_and_a_view_of_it_have_gradients(view, dtype):
    def build():
        def f(x):
            y = x * 2
            return y, view(y)
        return f, [tl.arange(6.0).reshape(2, 3).to(dtype).requires_grad_() for _ in range(3)]

    assert not agrees(build)


@pytest.mark.parametrize("f", [
    lambda x: x.median() * x, lambda x: tl.linalg.slogdet(x)[1] * x, lambda x: x.nanmedian() + x,
    lambda x: tl.histc(x.detach(), 3)])
def test_what_looks_at_elements_and_gives_a_number_or_a_vector_is_captured(f):
    def matrix(k):
        return (tl.eye(3) * (2 + k) + tl.arange(9.0).reshape(3, 3).sin()).requires_grad_()

    assert not agrees(lambda: (f, [matrix(k) for k in range(3)]))


def test_variables_of_a_program_are_no_examples_and_are_given_to_the_function_itself():
    f = tl.compile(lambda x: (x * 2).tanh(), fullgraph=True)
    with tl.program.Program() as p:
        x = tl.program.data("x", (2,))
        y = f(x)
    assert [call.type for call in p.block.ops] == ["mul", "tanh"]
    assert p.run({"x": tl.ones(2)}, y).tolist() == f(tl.ones(2)).tolist()
    with pytest.raises(TypeError, match="trace: a is the Variable x of a program"):
        tl.program.trace(lambda a: a + 1, x)


@each("order", list(itertools.permutations(range(3))), ids=str)
@each("retain", [False, True])
@each("written", [None, "x", "w"])
def test_results_are_differentiated_one_after_the_other(order, retain, written):
    """Those that have nothing in common, without `retain_graph`; others raise."""
    def seen(wrap):
        w, v = tl.ones(2, requires_grad=True), tl.ones(2, requires_grad=True)
        f, log = wrap(lambda x: ((x * w).exp(), (x * v).sin(), (x + w) * v)), []
        for _ in range(3):
            x = tl.tensor([0.5, -1.5])
            results = f(x)
            for k in (*order, order[0]):
                try:
                    results[k].sum().backward(retain_graph=retain)
                except RuntimeError as error:
                    log.append(re.sub(r"\w+Backward0 saved", "saved", str(error)))
                log += [None if p.grad is None else p.grad.tolist() for p in (w, v)]
                with tl.no_grad():
                    {"x": x, "w": w}.get(written, tl.ones(2)).add_(1)
        return log

    assert seen(tl.compile) == seen(lambda f: f)


def test_what_is_retained_is_swept_again_after_another_result_was_not():
    def f(x):
        return x.exp(), x.sin()

    def swept(g):
        x = tl.ones(2, requires_grad=True)
        a, b = g(x)
        a.sum().backward()
        b.sum().backward(retain_graph=True)
        b.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            b.sum().backward()
        return x.grad

    compiled = tl.compile(f)
    for _ in range(3):
        assert swept(compiled).equal(swept(f))


@pytest.mark.parametrize("f", [
    lambda x: x.sort(1)[0], lambda x: x.cummax(0)[0], lambda x: x.gather(1, x.argmax(1, True)),
    lambda x: nn.functional.cross_entropy(x, x.argmax(1)),
])
def test_positions_that_a_graph_keeps_are_kept_by_nobody_else(f):
    compiled, x = tl.compile(f, fullgraph=True), tl.randn(3, 4, requires_grad=True)
    for _ in range(2):
        assert tl.autograd.grad(compiled(x).sum(), x)[0].equal(
            tl.autograd.grad(f(x).sum(), x)[0])


def swept(w, v):
    def f(x):
        w.grad = None
        loss = (x * w).sum()
        loss.backward()
        return loss
    return f


def swept_and_retained(w, v):
    def f(x):
        w.grad = None
        loss = (x * w).sum()
        loss.backward(retain_graph=True)
        return loss
    return f


def swept_beside(w, v):
    def f(x):
        w.grad = None
        loss = (x * w).exp().sum()
        loss.backward()
        return (x * v).sin().sum(), loss, x.sum()
    return f


def swept_through_a_part(w, v):
    def f(x):
        y = (x * w).exp()
        g, = tl.autograd.grad(y.sum(), w)
        return g * 2, y + v
    return f


def not_swept(w, v):
    return lambda x: (x * w).sin().sum()


def everything(results, w, v):
    sum(x.sum() for x in results if x.requires_grad).backward()


def the_last(results, w, v):
    results[-1].sum().backward()


def of_one_leaf(results, w, v):
    return [tl.autograd.grad(x.sum(), v, allow_unused=True) for x in results if x.requires_grad]


def with_a_graph(results, w, v):
    return [tl.autograd.grad(x.sum(), w, create_graph=True, allow_unused=True) for x in results
            if x.requires_grad]


@each("use", [everything, the_last, of_one_leaf, with_a_graph])
@each("make", [
    swept, swept_and_retained, swept_beside, swept_through_a_part, not_swept])
def test_a_graph_that_the_function_swept_is_not_swept_again(make, use):
    """What a sweep inside of the function released is not there for one outside; the error names
    the same operation."""
    logs = []
    for wrap in (lambda f: f, tl.compile):
        w, v = tl.arange(3.0).requires_grad_(), tl.ones(3, requires_grad=True)
        f, log = wrap(make(w, v)), []
        for _ in range(3):
            results = f(tl.tensor([0.5, 1.0, 2.0]))
            results = results if isinstance(results, tuple) else (results,)
            for _ in range(2 if use is the_last else 1):
                try:
                    log.append(repr(use(results, w, v)).partition("grad_fn")[0])
                except RuntimeError as error:
                    log.append(str(error).partition("\n")[0])
            log.append([None if x.grad is None else x.grad.tolist() for x in (w, v)])
        logs.append(log)
    assert logs[1] == logs[0]


def test_results_of_a_graph_that_the_function_swept_have_hooks_and_gradients_between_them():
    w = tl.ones(3, requires_grad=True)

    def f(x):
        w.grad = None
        y = (x * w).exp()
        loss = y.sum()
        loss.backward()
        return loss, y

    logs = []
    for g in (f, *[tl.compile(f)] * 3):
        loss, y = g(tl.arange(3.0))
        log, loss_of_y = [], (y * 2).sum()
        y.register_hook(lambda g: log.append(g.tolist()))
        log.append(tl.autograd.grad(loss, y)[0].tolist())
        with pytest.raises(RuntimeError, match="ExpBackward0 saved were released"):
            loss_of_y.backward()
        logs.append(log)
    assert logs[1:] == logs[:1] * 3


def slope(f, x, create_graph):
    return tl.autograd.grad(f(x).sum(), x, create_graph=create_graph)[0]


def test_where_most_gradients_have_a_graph_calls_become_eager(capsys):
    f, x = tl.compile(lambda x: x.sin().exp()), tl.ones(3, requires_grad=True)
    found = [slope(f, x, True) for _ in range(12)]
    assert all(g.requires_grad for g in found)
    wanted = slope(f._f, x, False)
    assert all(same(g.detach(), wanted) for g in found)
    f.explain(x)
    assert "runs eagerly: most of its replays" in capsys.readouterr().out
    assert same(slope(f, x, False), slope(f._f, x, False))


def test_where_few_gradients_have_a_graph_calls_are_replayed(capsys):
    f, x = tl.compile(lambda x: x.sin().exp()), tl.ones(3, requires_grad=True)
    for i in range(60):
        slope(f, x, i % 3 == 0)
    f.explain(x)
    assert "replayed" in capsys.readouterr().out


def test_a_call_that_became_eager_copies_nothing_to_undo_it(monkeypatch):
    count, copied = tl.zeros(1, dtype=tl.int64), []

    @tl.compile
    def f(x):
        count.add_(1)
        return x.sin()[count % 3].exp()

    monkeypatch.setattr(states, "elements", lambda x: copied.append(x) or x.detach().clone())
    x = tl.ones(3, requires_grad=True)
    for _ in range(12):
        slope(f, x, True)
    assert copied and f._entries[0].replay.outdone
    copied.clear()
    slope(f, x, True)
    assert not copied and count.item() == 13


# ---- the graph around a call ---------------------------------------------------------------------

def test_what_was_written_in_the_graph_of_an_argument_is_nothing_to_the_function():
    f = tl.compile(lambda x: x * 2, fullgraph=True)
    for _ in range(2):
        x = tl.ones(3, requires_grad=True).exp()
        with tl.no_grad():
            x.add_(1)
        assert tl.equal(f(x), x * 2)


@pytest.mark.parametrize("f", [
    lambda x, y, w: ((x ** 2).sum(), (y ** 3).sum()),
    lambda x, y, w: ((x * w).sum(), (y * w).sum()),
    lambda x, y, w: ((x * w).sum() * w, (y.detach() * w).exp() * y)])
def test_graphs_of_arguments_that_a_result_is_not_made_of_are_there_for_another(f):
    compiled, grads = tl.compile(f), []
    for function in (f, compiled, compiled, compiled):
        leaves = [tl.tensor([0.5, k], requires_grad=True) for k in (1.0, 2.0, 3.0)]
        first, second = function(*(x.tanh() for x in leaves[:2]), leaves[2] * 1)
        tl.autograd.grad(first.sum(), leaves[0])
        grads.append(tl.autograd.grad(second.sum(), leaves[1])[0].tolist())
    assert grads == grads[:1] * 4


def test_a_second_sweep_names_the_node_of_the_call_that_let_go_of_its_values():
    def f(x):
        y = (x * 1)[tl.tensor([2, 0])]
        return y * 2, y * 3

    compiled = tl.compile(f)
    for k in range(3):
        x = tl.ones(3, requires_grad=True) * k
        y, z = compiled(x)
        y.sum().backward()
        with pytest.raises(RuntimeError, match="that MulBackward0 saved were released"):
            z.sum().backward()


PLACES = tl.tensor([2, 0])


@each("f", [
    lambda x: x[PLACES], lambda x: x.sort()[0], lambda x: x.gather(0, PLACES + 0),
    lambda x: x.topk(2)[0], lambda x: x.take(PLACES), lambda x: (x + 1)[PLACES].sum() + x,
    lambda x: nn.functional.embedding(PLACES + 0, x.view(3, 1)), lambda x: x.sin()[PLACES],
])
def test_positions_are_there_for_a_second_sweep_as_in_an_eager_graph(f):
    compiled, found = tl.compile(f), []
    for function in (f, compiled, compiled, compiled):
        x = tl.tensor([1.0, -2.0, 0.5], requires_grad=True)
        y, told = function(x), ""
        y.sum().backward()
        try:
            y.sum().backward()
        except RuntimeError as error:
            told = str(error)
        found.append((x.grad.tolist(), told))
    assert found == found[:1] * 4


# ---- results of which others are computed --------------------------------------------------------

ACTS = [(kind, place) for kind in ("retain", "hook") for place in (0, 1)]


@pytest.mark.parametrize("f", [
    lambda x: (x.sin()[:2], x.sin()), lambda x: (lambda y: (y * 3, y))(x.sin()),
    lambda x: (lambda y: (y[:2], y))(x.exp()), lambda x: (lambda y: (y.sum() * y, y * 2))(x * 2)])
@each("acts", [x for n in (1, 2, 3) for x in itertools.permutations(ACTS, n)], ids=str)
def test_hooks_of_results_see_what_comes_by_in_whatever_order_they_are_put(f, acts):
    def seen(f):
        x = tl.tensor([0.5, -1.0, 2.0, 0.25], requires_grad=True)
        results = f(x)
        for kind, place in acts:
            if kind == "retain":
                results[place].retain_grad()
            else:
                results[place].register_hook(lambda g: g * 2)
        for _ in range(2):
            tl.autograd.backward([y.sum() * 2 for y in results], retain_graph=True)
        return [x.grad.tolist(), *(y.grad.tolist() for y in results if y.retains_grad)]

    compiled = tl.compile(f)
    assert [seen(compiled) for _ in range(3)] == [seen(f)] * 3


# ---- sweeps with a graph after others ------------------------------------------------------------

@each("f", [
    lambda v, w: (w.flip(0) * 3, v.relu()), lambda v, w: (w.softmax(0), w[PLACES] * v[:2]),
    lambda v, w: (w.sin(), v * w)])
@each("same", [False, True])
@each("retain", [False, True])
def test_a_sweep_with_a_graph_after_one_through_a_part(f, same, retain):
    def seen(f):
        w = tl.tensor([0.5, -1.0, 2.0], requires_grad=True)
        results, told = f(w if same else w * 1, w), ""
        first = tl.autograd.grad(results[0].sum(), w, retain_graph=retain)[0].tolist()
        for y in (results[1], sum(y.sum() for y in results)):
            try:
                y.sum().backward(create_graph=True, retain_graph=retain)
            except RuntimeError as error:
                told = str(error)
                break
        return first, w.grad is not None and w.grad.tolist(), told

    compiled = tl.compile(f)
    assert [seen(compiled) for _ in range(3)] == [seen(f)] * 3


# ---- sweeps for some inputs ----------------------------------------------------------------------

@each("asked", [(0,), (1,), (2,), (0, 1), (3,), (4,), (2, 3)])
@each("used", [(0,), (0, 1), (1, 2), (0, 1, 2)])
@each("times", [1, 2])
def test_nothing_runs_that_does_not_lead_to_what_is_asked_for(asked, used, times):
    """Nor behind results of the call: hooks there are not called, and values are not released."""
    def seen(f):
        given, ran, told = [x + 1 for x in leaves()], [], []
        results = given
        for _ in range(times):
            results = f(*results[:3])
        behind = [y * 3 for y in results[:3]]
        for i, y in enumerate(behind):
            y.register_hook(lambda g, i=i: ran.append(i))
        ends = [y.sin().sum() for y in behind]
        found = tl.autograd.grad([ends[i] for i in used],
                                 [[*given, *results][i] for i in asked], allow_unused=True)
        for y in ends:
            try:
                tl.autograd.grad(y, given, allow_unused=True, retain_graph=True)
            except RuntimeError as error:
                told.append(str(error))
        return [None if g is None else g.tolist() for g in found], ran, told

    compiled = tl.compile(several)
    assert [seen(compiled) for _ in range(3)] == [seen(several)] * 3


def test_a_call_whose_backward_part_has_no_machine_is_replayed_once():
    f = tl.compile(lambda x, y: tl.cholesky_solve(y, x).square().sum(), fullgraph=True)
    for k in range(4):
        leaves = [(tl.eye(5) * 3 + tl.ones(5, 5).tril() * k).requires_grad_(),
                  tl.ones(5, 2).requires_grad_()]
        wanted = tl.autograd.grad(tl.cholesky_solve(leaves[1], leaves[0]).square().sum(), leaves)
        found = tl.autograd.grad(f(*leaves), leaves)
        assert [g.tolist() for g in found] == [g.tolist() for g in wanted]
    assert f._entries[0].replay.outdone
