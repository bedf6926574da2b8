"""Variables where tensors go: what they say of themselves, writes, functions, gradients."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program
from tensorlib.program import CaptureError, Program, ProgramError

X = tl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def run(build, *given, **tensors):
    """What a program gives that a function builds of inputs of these shapes."""
    with Program() as p:
        found = build(*(program.data(f"x{i}", tuple(x.shape), x.dtype)
                        for i, x in enumerate(given)))
    return p.run({f"x{i}": x for i, x in enumerate(given)}, found)


def test_what_a_variable_says_of_itself():
    with Program():
        x, open_one = program.data("x", (2, 3)), program.data("y", (None, 3))
        scalar = program.data("z", ())
    assert len(x) == 2 and x.numel() == x.nelement() == 6 and scalar.numel() == 1
    assert x.size() == (2, 3) and x.size(1) == 3 and x.size(-1) == 3 and open_one.size(0) is None
    assert x.dim() == x.ndim == 2 and x.itemsize == x.element_size() == 4
    assert not x.is_meta and not x.is_complex()
    with pytest.raises(TypeError, match="len.. of a 0-d tensor"):
        len(scalar)
    for ask, name in ((len, "len"), (lambda v: v.numel(), "numel"), (list, "len")):
        with pytest.raises(CaptureError, match=f"{name}: .*y.* known only when the program runs"):
            ask(open_one)


@pytest.mark.parametrize("ask", [bool, float, int, lambda x: x.item(), lambda x: x.tolist(),
                                 lambda x: tl.equal(x, x), lambda x: tl.allclose(x, x)])
def test_a_variable_has_no_number_yet(ask):
    with Program():
        x = program.data("x", (1,))
        with pytest.raises(CaptureError, match="no value yet, test_variables_by_hand.py:"):
            ask(x)


def test_parts_along_the_first_dim():
    assert run(lambda x: sum(part * (i + 1) for i, part in enumerate(x)), X).tolist() == [9, 12, 15]
    a, b = run(lambda x: list(x), X)
    assert a.tolist() == [1, 2, 3] and b.tolist() == [4, 5, 6]


def test_variables_know_their_program_outside_of_it():
    """What is called on them after the program was built goes behind what is there."""
    with Program() as p:
        x = program.data("x", (2, 3))
        y = x * 2
    z = y[1] + x.detach().sum(0)
    assert p.run({"x": X}, z).tolist() == [13, 17, 21]
    y[0] = z
    y += 1
    assert p.run({"x": X}, y).tolist() == [[14, 18, 22], [9, 11, 13]]
    assert p.run({"x": X}, z).tolist() == [13, 17, 21]


def test_writes_into_variables():
    def build(x):
        y = x * 1
        y[:, 1] = 0
        y[1].fill_(7)
        y.add_(1)
        return y
    assert run(build, X)[0].tolist() == [2, 1, 4]
    def copied(x):
        y = x * 1
        y.copy_(x.flip(0))
        return y
    assert run(copied, X).tolist() == [[4, 5, 6], [1, 2, 3]]


def test_writes_into_what_was_made_of_numbers_here():
    def build(x):
        made = tl.zeros(2, 3)
        made[0] = x[1]
        made.mul_(2)
        other, filled = tl.zeros(2, 3), tl.zeros(2, 3)
        other.copy_(tl.tensor([1.0, 2.0, 3.0]))
        filled.fill_(x[1, 0])
        zeros = tl.ones(2, 3)
        zeros.add_(1).zero_()
        drawn = tl.zeros(2, 3)
        drawn.uniform_(1, 2)
        return [made + x, other * x, filled + x, zeros + 0, drawn + 0, drawn * 1]
    made, other, filled, zeros, drawn, same = run(build, X)
    assert zeros.tolist() == [[0, 0, 0]] * 2
    assert (1 <= drawn).all() and (drawn < 2).all() and (drawn == same).all()
    assert len(set(drawn.flatten().tolist())) == 6
    assert made.tolist() == [[9, 12, 15], [4, 5, 6]]
    assert other.tolist() == [[1, 4, 9], [4, 10, 18]]
    assert filled.tolist() == [[5, 6, 7], [8, 9, 10]]


INDEX = tl.tensor([[0, 1], [1, 0]])
SOURCE = tl.tensor([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0], [70.0, 80.0, 90.0]])


@each("call", [
    lambda x, i, s: x.scatter(0, i, s), lambda x, i, s: x.scatter(1, i, s),
    lambda x, i, s: x.scatter(-1, i, 7.0), lambda x, i, s: x.scatter_add(1, i, s),
    lambda x, i, s: tl.scatter(x, 0, i, -1.0), lambda x, i, s: x.index_copy(1, i[0], s[:2, :2]),
    lambda x, i, s: x.index_fill(1, i[0], 5.0), lambda x, i, s: x.index_add(1, i[1], s[:2, :2]),
    lambda x, i, s: x.index_add(0, i[0], s[:2]),
])
def test_what_scatters_gives_what_it_gives_for_tensors(call):
    assert run(call, X, INDEX, SOURCE).tolist() == call(X, INDEX, SOURCE).tolist()


def test_what_scatters_into_a_number_is_refused():
    with Program():
        x, i = program.data("x", ()), program.data("i", (1,), tl.int64)
        with pytest.raises(CaptureError, match="index_fill: can't be part of a program in this"):
            x.index_fill(0, i, 1.0)


def test_what_a_program_being_built_does_not_take():
    loss = tl.ones(2, requires_grad=True).sum()
    with Program():
        x = program.data("x", (2,))
        with pytest.raises(CaptureError, match="add: out= can.t be captured, test_vari.*returned"):
            tl.add(tl.ones(2), tl.ones(2), out=tl.zeros(2))
        for name, write in (("add", lambda: tl.add(x, x, out=tl.zeros(2))),
                            ("copy_", lambda: tl.zeros(2).copy_(x))):
            with pytest.raises(RuntimeError, match=f"{name}: a tensor that is no variable of the "
                                                   "program .* use the form that returns a new"):
                write()
        with pytest.raises(CaptureError, match="backward: can't run while .*append_backward"):
            loss.backward()


class Doubled(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y * 2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 2, None


def test_functions_of_ones_own():
    with Program() as p:
        x, y = program.data("x", (3,)), program.data("y", (3,))
        z = Doubled.apply(x, y)
    (g,) = program.gradients(z, x)
    feed = {"x": tl.tensor([1.0, 2.0, 3.0]), "y": tl.tensor([4.0, 5.0, 6.0])}
    assert [v.tolist() for v in p.run(feed, [z, g])] == [[8, 20, 36], [8, 10, 12]]
    with pytest.raises(ProgramError, match="the gradient of an autograd.Function can't be diff"):
        program.gradients(g, y)


class Spoils(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.add_(1) * 2

    @staticmethod
    def backward(ctx, g):
        return g


def test_a_function_that_writes_is_not_captured():
    with pytest.raises(CaptureError, match="Spoils: an autograd.Function that writes in place"):
        program.trace(lambda x: Spoils.apply(x * 1), tl.ones(2))


# ---- gradients -----------------------------------------------------------------------------------

def test_what_takes_no_part_in_a_gradient():
    with Program() as p:
        x = program.data("x", (2, 3))
        w = program.parameter("w", [1.0, 2.0, 3.0])
        side = x * 1
        side.fill_(0)                             # written in place, and not asked for
        largest, place = (x * w).max(1)
        loss = largest.sum()
    (g,) = program.gradients(loss, w)
    assert p.run({"x": X}, g).tolist() == [0, 0, 9]
    assert program.gradients(place, w) == [None]


def test_gradients_are_added_to_the_ones_before():
    """Of two sweeps in a step, and to those from before it, as in eager code."""
    results = []
    for traced in (True, False):
        w = tl.tensor([1.0, 3.0], requires_grad=True)
        w.grad = tl.tensor([10.0, 20.0])

        def step(x):
            (x * w).sum().backward()
            (x * w * w).sum().backward()
            return w.grad * 1

        run_step = program.trace(step, tl.ones(2)) if traced else step
        if not traced:
            step(tl.ones(2))
        results.append([run_step(tl.tensor([1.0, 2.0])).tolist() for _ in range(2)]
                       + [w.grad.tolist()])
    assert results[0] == results[1] == [[16, 41], [19, 55], [19, 55]]


def test_a_weight_of_a_gradient_that_the_program_knows():
    w = tl.tensor([1.0, 3.0], requires_grad=True)

    def step(x):
        w.grad = None
        (w * w).backward(x * 2)
        return w.grad

    p = program.trace(step, tl.ones(2))
    assert p(tl.tensor([1.0, 5.0])).tolist() == [4, 60] and p(tl.ones(2)).tolist() == [4, 12]


def test_a_sweep_that_leaves_out_what_leads_to_some_is_not_captured():
    w = tl.ones(2, requires_grad=True)

    def step(x):
        y = x * w
        y.sum().backward(no_grad_set=[y])

    with pytest.raises(CaptureError, match="backward: no_grad_set can't be captured, test_vari"):
        program.trace(step, tl.ones(2))


@pytest.mark.parametrize("make", [tl.zeros_like, tl.ones_like, lambda x: tl.full_like(x, 3.0)])
def test_a_constant_is_made_like_a_variable(make):
    assert tl.equal(run(lambda x: x + make(x) * 2, X), X + make(X) * 2)


@pytest.mark.parametrize("function", [
    lambda x: x[x > 2], lambda x: x.masked_select(x > 2), lambda x: (x > 2).nonzero(),
    lambda x: (x > 2).nonzero(as_tuple=True)[1], lambda x: tl.where(x > 2)[0],
    lambda x: x.trunc().unique(), lambda x: tl.bincount(x[0].long()),
])
def test_sizes_that_follow_from_elements_are_open(function):
    with Program() as p:
        y = function(program.data("x", (2, 3)))
    assert set(y.shape) == {None} and len(p.persistables()) == 0
    for x in (X, -X + 7, X * 0 + 3):
        assert tl.equal(p.run({"x": x}, y), function(x))


def test_gradients_are_of_the_sizes_that_follow_from_the_elements_of_a_run():
    """Not of those of the example, of which one element was picked."""
    p = program.trace(lambda x: (x[x > 5] * 2).mean() + x.masked_select(x > 5).var(correction=0), X)
    slope = program.gradients(p.outputs, p.inputs)
    for x in (X, X + 2, X * 2):
        leaf = x.clone().requires_grad_()
        wanted = ((leaf[x > 5] * 2).mean() + leaf.masked_select(x > 5).var(correction=0))
        wanted.backward()
        found = p.run({"x": x}, [p.outputs, *slope])
        assert tl.equal(found[0], wanted) and tl.equal(found[1], leaf.grad)


@pytest.mark.parametrize("function, shape", [
    (lambda x: x.diag(), [None]), (lambda x: tl.linalg.svdvals(x), [None]),
    (lambda x: x[:5], [None, 4]), (lambda x: x[:, :5], [None, 4])])
def test_a_size_that_few_rows_change_is_open(function, shape):
    with Program() as p:
        y = function(program.data("x", (None, 4)))
    assert list(y.shape) == shape
    assert tl.allclose(p.run({"x": X[:, :1].expand(2, 4)}, y), function(X[:, :1].expand(2, 4)))


@each("name", [
    "a b", "1a", "a#", "None", "float32", "slice", "_", "x'", "-", "\n"])
def test_a_name_is_refused_that_no_text_could_have(name):
    with Program():
        for make in (lambda: program.data(name, (2,)), lambda: program.parameter(name, [1.0])):
            with pytest.raises(ValueError, match="is no name for a variable"):
                make()


@pytest.mark.parametrize("shape, dtype, error, message", [
    (2.0, None, TypeError, "shape must be a sequence, got float"),
    ((2**62,), None, ValueError, "below 2[*][*]62"),
    ((2,), tl.ones(2), TypeError, "takes a tensorlib dtype"),
    ((2,), "float32", TypeError, "takes a tensorlib dtype, got 'float32'")])
def test_what_an_input_is_not_made_of(shape, dtype, error, message):
    with Program():
        with pytest.raises(error, match=f"data: {message}|data: .*{message}"):
            program.data("x", shape, dtype)


def test_what_is_built_without_a_graph_has_no_gradient():
    with Program() as p:
        x = program.data("x", (2, 3))
        with tl.no_grad():
            doubled = x * 2
        y = doubled * x
    assert tl.equal(p.run({"x": X}, program.gradients(y, x))[0], X * 2)


@pytest.mark.parametrize("name", ["max", "sort", "kthvalue", "slogdet"])
def test_several_results_have_the_names_that_they_have_of_tensors(name):
    ask = {"max": lambda x: x.max(1).values, "sort": lambda x: x.sort(1).indices,
           "kthvalue": lambda x: tl.kthvalue(x, 2).values,
           "slogdet": lambda x: tl.linalg.slogdet(x[:, :2]).logabsdet}[name]
    assert tl.equal(run(ask, X), ask(X))
