"""How results of captured code lie in memory: as those of the eager call.

The target of a write keeps its strides, whatever those of the source. What control flow gives lies
row by row, whichever branch is taken.
"""

import pytest
from cases import each

import tensorlib as tl


def plain(x, source):
    y = x * 2.0
    y.copy_(source)
    return y


def behind_a_branch(x, source):
    y = tl.cond(x.sum() > -1e9, lambda a: a * 2.0, lambda a: a * 3.0, (x,))
    y.copy_(source)
    return y + 0.0, y


def behind_a_scan(x, source):
    y, _ = tl.scan(lambda carry, row: (carry * 2.0 + row, carry), x, tl.stack([x, x]))
    y.add_(1.0)
    y.copy_(source)
    return y


@each("f", [plain, behind_a_branch, behind_a_scan])
@each("turn", [lambda x: x, tl.t, lambda x: x[:1].expand(3, 3)])
def test_the_target_keeps_its_strides(f, turn):
    compiled = tl.compile(f)
    for _ in range(3):
        x, source = tl.randn(3, 3), turn(tl.randn(3, 3))
        found, wanted = compiled(x, source), f(x, source)
        pairs = zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]
        for y, z in pairs:
            assert y.stride() == z.stride() and y.equal(z)


VIEWS = {
    "columns": lambda y: y[:, 1:],
    "a row": lambda y: y[1],
    "an element": lambda y: y[2, 1],
    "every second": lambda y: y[::2, ::3],
    "transposed": tl.t,
    "diagonal": lambda y: y.diagonal(),
    "below the diagonal": lambda y: y.diagonal(-1),
    "windows": lambda y: y.unfold(1, 2, 1),
    "a dim more": lambda y: y[:, None, 1:3],
    "none": lambda y: y[:, 4:],
    "expanded": lambda y: y[:, :1].expand(3, 5),
}
LAYOUTS = {
    "packed": lambda: tl.randn(3, 4),
    "transposed": lambda: tl.randn(4, 3).t(),
    "with gaps": lambda: tl.randn(5, 6)[1:4, ::2][:, :3].repeat(1, 2)[:, :4],
}


@each("view", VIEWS.values(), ids=VIEWS)
@each("first", LAYOUTS.values(), ids=LAYOUTS)
@each("second", LAYOUTS.values(), ids=LAYOUTS)
def test_a_write_into_what_a_branch_gave_is_seen_by_its_views(view, first, second):
    def f(taken, a, b):
        y = tl.cond(taken, lambda: a, lambda: b)
        part = view(y)
        y.mul_(2.0)
        if view is not VIEWS["windows"] and view is not VIEWS["expanded"]:
            part.add_(1.0)
        return y, part + 0.0, y * 1.0, part.sum()

    compiled = tl.compile(f)
    for taken in (True, False, True):
        given = tl.tensor(taken), first(), second()
        for found, wanted in zip(compiled(*given), f(*given)):
            assert found.equal(wanted) and found.stride() == wanted.stride()


def looks(y):
    return y * float(y.stride(0)), y.is_contiguous()


def views_the_memory(y):
    part = y.as_strided((2, 2), (3, 6))
    y.mul_(2.0)
    return part + 0.0, y


def reshapes_and_writes(y):
    flat = y.reshape(-1)
    flat.mul_(2.0)
    return flat, y


BRANCHES = {
    "cond": lambda taken, a, b: tl.cond(taken, lambda: a, lambda: b),
    "cond of results": lambda taken, a, b: tl.cond(taken, lambda: a * 2.0, lambda: b + 1.0),
    "while_loop": lambda taken, a, b: tl.while_loop(
        lambda n, x: n < 1, lambda n, x: (n + 1, b * 3.0), (tl.where(taken, 0, 1), a))[1],
    "scan": lambda taken, a, b: tl.scan(lambda x, n: (b * n, n), a, tl.ones(2))[0],
}


@each("made", BRANCHES.values(), ids=BRANCHES)
@each("use", [looks, views_the_memory, reshapes_and_writes])
def test_what_control_flow_gives_lies_row_by_row(made, use):
    compiled = tl.compile(f := lambda taken, a, b: use(made(taken, a, b)))
    for taken in (True, False, True, False):
        given = tl.tensor(taken), tl.randn(3, 4), tl.randn(4, 3).t()
        for found, wanted in zip(compiled(*given), f(*given)):
            assert found is wanted or found.equal(wanted) and found.stride() == wanted.stride()


@pytest.mark.parametrize("made", BRANCHES.values(), ids=BRANCHES)
def test_gradients_of_control_flow_lie_as_the_eager_ones(made):
    def f(taken, a, b):
        loss = (made(taken, a, b).t() * tl.arange(3.0)).sum() + a.exp().sum() + b.exp().sum()
        return tl.autograd.grad(loss, (a, b))

    compiled = tl.compile(f)
    for taken in (True, False, True, False):
        given = (tl.tensor(taken), tl.randn(3, 4, requires_grad=True),
                 tl.randn(4, 3).t().requires_grad_())
        for found, wanted in zip(compiled(*given), f(*given)):
            assert found.equal(wanted) and found.stride() == wanted.stride()


@pytest.mark.parametrize("view", [
    lambda row: row.expand(3, 3), lambda row: row[0].as_strided((2, 2), (1, 1)),
])
def test_a_row_is_written_of_what_shares_elements(view):
    """All that lies in the place of an element changes with it."""
    def f(x):
        y = view(x.sum(0, keepdim=True))
        y[0] = x[1, :y.shape[1]]
        return y, y * 1.0

    compiled = tl.compile(f)
    for _ in range(3):
        x = tl.randn(3, 3)
        for found, wanted in zip(compiled(x), f(x)):
            assert found.equal(wanted) and found.stride() == wanted.stride()


# ---- gradients of views, in dims of at most one element ------------------------------------------

VIEWED = [lambda w: w.t().sin(), lambda w: w.t() * 2, lambda w: w.mT,
          lambda w: tl.einsum("ij->ji", w), lambda w: w.t() @ tl.ones(w.shape[0], 2),
          lambda w: w.expand(2, *w.shape)]


@each("f", VIEWED)
@each("shape", [(1, 3), (3, 1), (0, 3), (3, 0), (2, 3)], ids=str)
def test_strides_of_gradients_are_those_of_an_eager_sweep(f, shape):
    def step(w):
        w.grad = None
        f(w).sum().backward()

    def strides(step, f):
        w, found = tl.nn.Parameter(tl.ones(shape)), []
        for _ in range(3):
            step(w)
            found.append(w.grad.stride())
            w.grad = None
            f(w).sum().backward()
            found.append(w.grad.stride())
        return found

    w = tl.nn.Parameter(tl.ones(shape))
    closed = tl.compile(lambda: step(w))
    found = []
    for _ in range(3):
        closed()
        found.append(w.grad.stride())
    assert strides(step, tl.compile(f)) == strides(step, f) == [w.grad.stride()] * 6
    assert found == [w.grad.stride()] * 3
