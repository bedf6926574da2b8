"""Writing in place into tensors of a graph, through views too, as PyTorch's autograd notes have it.

Gradients are held against finite differences: a program that writes in place is a function like any
other. What is refused comes after.
"""

import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib.testing import assert_close, gradcheck, gradgradcheck


def leaf(*sizes, start=1.0):
    """Numbers from `start` in steps of a quarter."""
    count = 1
    for size in sizes:
        count *= size
    values = tl.arange(count, dtype=tl.float64) * 0.25 + start
    return values.reshape(sizes).clone().requires_grad_()


# ---- programs ------------------------------------------------------------------------------------
# Each takes x and z of sizes (4, 4), writes into `y` made of x, and gives what is differentiated.

def chain_of_views(x, z):
    y = x * 2
    a = y[1:3]
    b = a[:, 1:]
    c = b.t()
    d = c[0]
    d.mul_(3)
    b += z[:2, 1:]
    c[1] *= 2
    return y * y, c * c, d


def views_made_before_and_after(x, z):
    y = x * 1
    before = y[0]
    y.mul_(z)
    after = y[0]
    after.add_(before)
    return before * after, y * y


def views_written_in_turn(x, z):
    y = x * 1
    row, column = y[1], y[:, 1]
    row.mul_(z[0])
    column.mul_(z[1])
    row.add_(column)
    return y * y, row, column * row


def masked_update(x, z):
    y = x * 1
    mask = y > 2
    y[mask] += z[mask] * y[mask]
    return y * y


def masked_constants(x, z):
    y = x * x
    y[y > 9] = z[0, 0]
    y[0, 0] = 5.0
    y[[1, 2]] = y[[2, 1]] * 2
    return y * x


def copies(x, z):
    y = x * 1
    y.copy_(z * z)
    y[1:].copy_(x[:3])
    y[0].copy_(z[0, 0])
    return y * y


def into_a_plain_tensor(x, z):
    y = tl.ones(4, 4, dtype=tl.float64)
    first, second = y[0], y[1]
    second.mul_(x[1])
    y[2] = z[2]
    return y * y, first * second


def of_itself(x, z):
    y = x * 1
    y.mul_(y)
    y[1:].add_(y[:-1])
    y[:, 1:].mul_(y[:, :-1])
    y.t().mul_(y)
    y[0].mul_(y.view(16)[:4])
    y.mul_(y[0, 0])
    return y * 1e-6


def swapped_rows(x, z):
    y = x * 1
    y[0], y[1] = y[1].clone() * z[0], y[0].clone()
    return y[0] * 2 + y[1]


def shapes(x, z):
    y = x * 1
    y.reshape(-1)[2:9].mul_(3)
    y.view(2, 8)[0].add_(z.reshape(2, 8)[1])
    y.permute(1, 0)[0].mul_(2)
    y.diagonal().mul_(z[0])
    y.narrow(1, 0, 1).add_(y.narrow(1, 1, 1))
    y.unsqueeze(0)[0, 0, 0] = 2.0
    y.flatten()[5] = z[3, 3]
    return y * y


def expanded_view_of_what_is_written(x, z):
    y = x[:, :1] * 1
    wide = y.expand(4, 4)
    y.mul_(2)
    return wide * z * wide


def functions(x, z):
    y = x * 1
    y.sin_()
    y[0].square_()
    y[1:].cos_()
    y.neg_()
    y.abs_()
    y.exp_()
    return y * z


def arithmetic(x, z):
    y = x * 1
    y /= z
    y -= z
    y *= z
    y **= 2
    y.sub_(x)
    return y


def clamped(x, z):
    y = x * 1
    y.clamp_(1.7, 3.9)
    return y * y


def constants(x, z):
    y = x * x
    y[1:3].zero_()
    y[0].fill_(3.0)
    y[3].fill_(z[1, 1] * 2)
    return y * y


def random_numbers(x, z):
    y = x * x
    y[1:].uniform_()
    return y[:1] * z[:1]


def recurrence(x, z):
    y = tl.zeros(5, dtype=tl.float64)
    for i in range(4):
        y[i + 1] = y[i] * 0.5 + x[i, 0] ** 2 * z[0, i]
    return y


def broadcast_operands(x, z):
    y = x * 1
    y.add_(z[0])
    y[:, 0] = z[0, 1]
    y[0] = x[:, 1]
    return y * y


def roundings(x, z):
    y = x * 1
    y[0].floor_()
    return y * x


def comparisons(x, z):
    y = x * 1
    y[0].gt_(1.4)
    y[1:].isfinite()
    return y * x


PROGRAMS = [
    chain_of_views, views_made_before_and_after, views_written_in_turn, masked_update,
    masked_constants, copies, into_a_plain_tensor, of_itself, swapped_rows, shapes,
    expanded_view_of_what_is_written, functions, arithmetic, clamped, constants, random_numbers,
    recurrence, broadcast_operands, roundings, comparisons,
]


@each("program", PROGRAMS)
@each("check", [gradcheck, gradgradcheck])
def test_derivatives_of_programs_that_write_in_place(program, check):
    inputs = leaf(4, 4, start=1.1), leaf(4, 4, start=0.7)
    assert check(program, inputs)


# Programs by chance: each step takes a view of a view, or writes into one what others give.
VIEWS = {
    "row": lambda v: v[0], "rest": lambda v: v[1:], "columns": lambda v: v[..., ::2],
    "turned": lambda v: v.t() if v.ndim == 2 else v, "backwards": lambda v: v[::-1],
    "flat": lambda v: v.reshape(-1), "wide": lambda v: v.unsqueeze(0),
    "inside": lambda v: v.narrow(0, 0, 1),
}
WRITES = {
    "scale": lambda v, s: v.mul_(s), "shift": lambda v, s: v.add_(s), "sine": lambda v, s: v.sin_(),
    "divide": lambda v, s: v.div_(s + 3), "fill": lambda v, s: v.fill_(s),
    "assign": lambda v, s: v.__setitem__(Ellipsis, s), "mask": lambda v, s: mask(v, s),
    "square": lambda v, s: v.mul_(v), "neighbour": lambda v, s: v[1:].add_(v[:-1]),
}


def mask(v, s):
    v[v > 0.5] = s


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([*VIEWS, *WRITES]), st.integers(0, 9),
                          st.integers(0, 9)), min_size=1, max_size=9))
def test_programs_by_chance(steps):
    def program(x):
        views = [x.sin()]
        for name, i, k in steps:
            view, other = views[i % len(views)], views[k % len(views)]
            if name in VIEWS:
                if view.ndim and view.numel() > 1:
                    views.append(VIEWS[name](view))
            elif view.ndim:
                WRITES[name](view, other.clone().cos().sum() * 0.2)
        return [view * 1 for view in views]

    assert gradcheck(program, leaf(3, 3, start=0.3))


# ---- what views and bases become -----------------------------------------------------------------

def test_a_write_of_what_requires_grad_makes_base_and_views_require_it():
    y = tl.ones(2, 3, dtype=tl.float64)
    other, view = y[0], y[1]
    view.mul_(leaf(3))
    assert y.requires_grad and view.requires_grad and other.requires_grad
    assert not y.is_leaf and view._base is y


def test_a_comparison_in_place_ends_the_history():
    """Its result does not depend on the old value: that gets a gradient of zero."""
    x = leaf(3)
    y = x * 1
    y.gt_(1.2)
    (y * x).sum().backward()
    assert_close(x.grad, [0.0, 1.0, 1.0])


def test_dtypes_of_both_sides_are_kept():
    x, y = leaf(3), tl.ones(3)
    y.mul_(x)
    y.sum().backward()
    assert y.dtype is tl.float32 and x.grad.dtype is tl.float64
    assert_close(x.grad, [1.0, 1.0, 1.0])


def test_detach_shares_memory_and_version():
    x = leaf(3)
    y = x.exp()
    detached, before = y.detach(), y._version
    detached.add_(1)
    assert y._version == before + 1 == detached._version
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_data_shares_memory_but_no_version():
    x = leaf(2)
    y = x.exp()
    y.data.mul_(2)
    assert y._version == 0
    y.sum().backward()
    assert_close(x.grad, 2 * x.detach().exp())


def test_a_write_into_a_detached_tensor_leaves_the_graph_alone():
    x = leaf(3)
    y = x * 1
    detached = y.detach()
    detached.mul_(leaf(3))
    assert detached.requires_grad
    y.sum().backward()
    assert_close(x.grad, [1.0, 1.0, 1.0])


def test_an_update_under_no_grad_is_not_recorded():
    x = leaf(3)
    with tl.no_grad():
        x += 1
        x[0] = 7.0
        x[1:].zero_()
    assert x.is_leaf
    (x * x).sum().backward()
    assert_close(x.grad, [14.0, 0.0, 0.0])


def test_views_made_in_no_grad_see_later_writes_into_their_base():
    """Where PyTorch raises, the gradient is that of the value which the view shows."""
    x = leaf(3)
    y = x * 1
    with tl.no_grad():
        view = y[1:]
    y.mul_(2)
    view.sum().backward()
    assert_close(x.grad, [0.0, 2.0, 2.0])


@pytest.mark.parametrize("cut", [lambda y: y.split(2), lambda y: y.chunk(2), lambda y: y.unbind(0)])
def test_one_of_several_views_sees_a_write_into_its_base(cut):
    x = leaf(4)
    y = x * 1
    part = cut(y)[0]
    y.mul_(2)
    (part * part).sum().backward()
    expected = [8.0, 10.0, 0.0, 0.0] if part.ndim else [8.0, 0.0, 0.0, 0.0]
    assert_close(x.grad, expected)


def test_out_under_no_grad():
    x, out = leaf(2), tl.zeros(2, dtype=tl.float64)
    with tl.no_grad():
        tl.add(x, x, out=out)
    assert_close(out, [2.0, 2.5])
    assert not out.requires_grad and out._version > 0


def test_a_view_that_requires_grad_of_a_base_that_does_not():
    y = tl.ones(4, dtype=tl.float64)
    view = y[1:].requires_grad_()
    y.mul_(2)
    (view * view).sum().backward()
    assert_close(view.grad, [4.0, 4.0, 4.0])
    assert not y.requires_grad


# ---- what is refused -----------------------------------------------------------------------------

def write_into_leaf(x, y):
    x += 1


def write_into_part_of_leaf(x, y):
    x[0] = 1.0


def write_into_view_of_leaf(x, y):
    x[1:].mul_(2)


def write_into_view_made_without_grad(x, y):
    with tl.no_grad():
        view = y[1:]
    view.mul_(2)


def write_into_expanded(x, y):
    y[:1].expand(3).add_(1)


def write_into_split(x, y):
    y.split(2)[0].mul_(2)


def write_into_chunk(x, y):
    y.chunk(2)[0].mul_(2)


def write_into_unbound(x, y):
    y.unbind(0)[0].mul_(2)


def write_into_view_of_split(x, y):
    y.split(2)[0][:1].mul_(2)


def assign_into_split(x, y):
    y.split(2)[0][0] = 1.0


def fill_split(x, y):
    y.split(2)[0].zero_()


def broadcast_to_more(x, y):
    y.add_(tl.ones(2, 4, dtype=tl.float64))


def out_with_gradient(x, y):
    tl.add(x, x, out=tl.zeros(4, dtype=tl.float64))


def out_that_requires_grad(x, y):
    tl.add(tl.ones(4, dtype=tl.float64), 1, out=y)


def detach_view(x, y):
    y[1:].detach_()


@each(
    "program, text",
    [(write_into_leaf, "leaf"), (write_into_part_of_leaf, "leaf"),
     (write_into_view_of_leaf, "view of a leaf"),
     (write_into_view_made_without_grad, "no_grad mode"), (write_into_expanded, "expanded"),
     (write_into_split, "multiple views"), (write_into_chunk, "multiple views"),
     (write_into_unbound, "multiple views"), (write_into_view_of_split, "multiple views"),
     (assign_into_split, "multiple views"), (fill_split, "multiple views"),
     (broadcast_to_more, "shape"), (out_with_gradient, "out="), (out_that_requires_grad, "out="),
     (detach_view, "detach")],
)
def test_writes_that_are_refused_change_nothing(program, text):
    x = leaf(4)
    y = x * 1
    with pytest.raises(RuntimeError, match=text):
        program(x, y)
    assert_close([x, y], [[1.0, 1.25, 1.5, 1.75]] * 2)
    y.sum().backward()
    assert_close(x.grad, [1.0] * 4)


@pytest.mark.parametrize("cut", [lambda y: y.split(2), lambda y: y.unbind(0)])
def test_writes_into_several_views_without_a_graph(cut):
    y = tl.ones(4)
    cut(y)[0].mul_(2)
    x = leaf(4)
    z = x * 1
    with tl.no_grad():
        cut(z)[0].mul_(2)
    assert y[0] == 2 and z[0] == 2


# ---- saved values that were written over ---------------------------------------------------------

def through_a_view(y):
    y[0] = 1.0


def through_the_base(y):
    y.mul_(2)


def through_out(y):
    with tl.no_grad():
        tl.add(y, 1, out=y)


def through_another_view(y):
    y[2:].zero_()                     # not what was saved, but in the same memory, as in PyTorch


@each(
    "write", [through_a_view, through_the_base, through_out, through_another_view])
@each(
    "save, name",
    [(lambda y: y * y, "mul"), (lambda y: y[:2].sin(), "sin"), (lambda y: y / y[1].clone(), "div")])
def test_a_saved_value_written_over_is_noticed(write, save, name):
    y = leaf(4) * 1
    loss = save(y).sum()
    write(y)
    with pytest.raises(RuntimeError, match=f"inplace operation: .* of {name}.*clone"):
        loss.backward()


def test_a_row_of_a_recurrence_that_is_saved_is_noticed():
    x, y = leaf(5), tl.zeros(6, dtype=tl.float64)
    for i in range(5):
        y[i + 1] = y[i] * x[i]
    with pytest.raises(RuntimeError, match="mul.*version"):
        y.sum().backward()


def test_a_value_that_the_write_itself_needs_is_kept():
    """`exp_` needs its output and `sin_` its input: the one is there, the other is copied."""
    x = leaf(2)
    y = x * 1
    y.sin_()
    y.exp_()
    y.sum().backward()
    assert_close(x.grad, x.detach().sin().exp() * x.detach().cos())
