"""Compiled functions whose arguments, tensors from outside and results share memory: as eager."""

import pytest
from beside_eager import agrees, raised, seen, tensors_in
from cases import each

import tensorlib as tl
from tensorlib import nn


def matrices(grad):
    return [(tl.arange(12.0) * 0.5 + i).reshape(3, 4).requires_grad_(grad) for i in range(3)]


# Functions of a matrix, with and without a gradient. What is returned is written into afterwards.
GIVEN_BACK = {
    "the_argument": lambda x: x,
    "the_argument_twice": lambda x: (x, x),
    "another_shape": lambda x: x.view(4, 3),
    "transposed": lambda x: x.T,
    "a_row": lambda x: x[1],
    "every_second_row": lambda x: x[::2],
    "expanded": lambda x: x[:, :1].expand(3, 5),
    "rows": lambda x: x.unbind(0),
    "columns": lambda x: x.split(2, 1),
    "the_diagonal": lambda x: x.diagonal(),
    "flat": lambda x: (x.reshape(-1), x.flatten(), x.contiguous(), x.to(tl.float32)),
    "flat_of_transposed": lambda x: x.T.reshape(-1),
    "a_view_of_a_view": lambda x: x.view(-1)[2:].view(5, 2)[1],
    "detached": lambda x: (x.detach(), x[0].detach()),
    "one_result_twice": lambda x: (x * 2,) * 2,
    "a_result_and_its_view": lambda x: (lambda y: (y, y[0], y.T))(x * 2),
    "two_views_of_one_result": lambda x: (lambda y: (y[0], y[1:]))(x * 2),
    "a_result_and_it_detached": lambda x: (lambda y: (y, y.detach()))(x * 2),
    "an_expanded_result": lambda x: (x * 2)[:, :1].expand(3, 5),
    "zeros": lambda x: (tl.zeros(3), x * 2),
    "a_part_of_a_constant": lambda x: tl.tensor([1.0, 2.0, 3.0])[1:],
    "an_expanded_constant": lambda x: tl.zeros(1).expand(3),
    "constants": lambda x: (tl.arange(4), tl.eye(3), tl.linspace(0, 1, 3), tl.ones_like(x),
                            tl.full_like(x, 2.0), x.new_zeros(2), tl.tril_indices(3, 3)),
    "a_constant_and_its_view": lambda x: (lambda z: (z, z[1:], z * x[0, 0]))(tl.zeros(3)),
    "nothing": lambda x: x[:0],
    "one_number": lambda x: x[0, 0],
}


@each("grad", [False, True])
@each("name", GIVEN_BACK)
def test_results_share_memory_as_those_of_a_call(name, grad):
    agrees(lambda: (GIVEN_BACK[name], matrices(grad)))


def without_grad(function):
    def run(x):
        with tl.no_grad():
            function(x)
        return x * 2
    return run


def written(x, write):
    write(x)
    return x


# Each writes into what it is given and returns something; of a copy of a matrix, or of constants.
WRITES = {
    "a_row": lambda y: (y, written(y[0], lambda v: v.add_(1))),
    "an_element": lambda y: written(y, lambda y: y[1].__setitem__(2, 7.0)),
    "every_second_row": lambda y: (y[::2].mul_(2), y),
    "a_column_of_the_transposed": lambda y: (y.T[0].fill_(5.0), y),
    "the_diagonal": lambda y: (y.diagonal().fill_(2.0), y),
    "flat": lambda y: (y.view(-1)[2:5].zero_(), y),
    "two_views": lambda y: (y[0].add_(1), y[:, 0].mul_(2), y),
    "a_view_that_was_read": lambda y: (lambda v: (v * 1, y.add_(1), v, v * 2))(y[1]),
    "a_view_that_is_returned": lambda y: (lambda v: (y.add_(1), v)[1])(y[0]),
    "both_are_returned": lambda y: (lambda v: (y.add_(1), v))(y[0]),
    "one_row_by_the_next": lambda y: (y[1:].add_(y[:-1]), y),
    "it_and_itself": lambda y: (y.add_(y), y.mul_(y)),
    "it_by_its_transposed": lambda y: (y[:, :3].add_(y[:, :3].T), y),
    "copied": lambda y: (tl.empty(3, 4).copy_(y), y.copy_(y * 2)),
    "an_expanded_view": lambda y: y[:, :1].expand(3, 4).add_(1),
    "an_expanded_element": lambda y: written(y[:, :1].expand(3, 4), lambda v: v.fill_(1)),
    "overlapping_windows": lambda y: y.as_strided((3, 2), (1, 1), 0).mul_(2),
    "detached": lambda y: (y.detach().mul_(2), y * 3),
    "by_data": lambda y: (y.data.mul_(2), y),
    "by_data_what_a_gradient_needs": lambda y: (lambda z: (y.data.mul_(2), z)[1])(y * y),
    "what_a_gradient_needs": lambda y: (lambda z: (y.zero_(), z)[1])(y * y),
    "relu_then_an_element": lambda y: (written(y.relu_(), lambda y: y[0].zero_()) * y).sum(),
    "by_a_mask": lambda y: written(y, lambda y: y.__setitem__(y.detach() > 2, 0.0)),
    "at_places": lambda y: written(y, lambda y: y.__setitem__(tl.tensor([0, 2]), 1.0)),
    "its_dims": lambda y: (y.transpose_(0, 1), y.unsqueeze_(0), y * 2),
    "drawn": lambda y: (y.detach()[0].normal_(), y * 1),
    "another_dtype": lambda y: (y.detach().view(tl.int32)[0].zero_(), y * 1),
    "its_size": lambda y: y.resize_(2, 2),
    "its_memory": lambda y: y.set_(tl.zeros(2)),
}


@each("grad", [False, True])
@each("name", WRITES)
def test_writes_into_what_a_function_made_are_those_of_a_call(name, grad):
    agrees(lambda: (lambda x: WRITES[name](x * 1), matrices(grad)))


@each("name", WRITES)
def test_writes_into_a_constant_begin_with_the_constant_in_each_run(name):
    agrees(lambda: (lambda x: (WRITES[name](tl.ones(3, 4)), x + 1), matrices(False)))


@each("name", [x for x in WRITES if x not in ("its_size", "its_memory")])
def test_writes_into_an_argument_are_those_of_a_call(name):
    agrees(lambda: (WRITES[name], matrices(False)))


@each("name", [x for x in WRITES if x not in ("its_size", "its_memory")])
def test_writes_into_a_leaf_or_into_what_has_a_gradient_keep_the_graph_of_the_caller(name):
    agrees(lambda: (WRITES[name], matrices(True)))
    agrees(lambda: (without_grad(WRITES[name]), matrices(True)))

    def of_leaves():
        leaves = matrices(True)
        return WRITES[name], [x * (i + 1) for i, x in enumerate(leaves)], leaves

    agrees(of_leaves)
    agrees(lambda: (WRITES[name], [x.unsqueeze(0)[0] for x in of_leaves()[1]]))


# ---- two arguments -------------------------------------------------------------------------------

def pair(kind):
    x = tl.arange(9.0).reshape(3, 3)
    return x, {"apart": lambda: x + 1, "same": lambda: x, "view": lambda: x[:],
               "turned": lambda: x.T, "detached": x.detach}[kind]()


ORDERS = [("apart", "same", "view", "apart"), ("same", "apart", "view", "same"),
          ("view", "turned", "apart", "view"), ("turned", "apart", "detached", "turned")]
OF_TWO = {
    "one_is_written": lambda x, y: (x.add_(1), y * 2)[1],
    "a_part_is_written": lambda x, y: (y[0].zero_(), x * 2, x[1].fill_(5.0), y + 1),
    "a_view_is_read_after_it": lambda x, y: (lambda v: (y.add_(1), v * 1)[1])(x[0]),
    "both_are_returned": lambda x, y: (x, y, x + y),
    "one_is_copied": lambda x, y: (x.copy_(y * 1), y * 1),
}


@each("order", ORDERS)
@each("name", OF_TWO)
def test_arguments_that_share_memory_are_another_kind_of_call(name, order):
    agrees(lambda: (OF_TWO[name], [pair(kind) for kind in order]))


@pytest.mark.parametrize("places", [(0, 6, 0, 2), (0, 2, 0, 6), (0, 0, 2, 1), (0, 3, 0, 2)])
def test_arguments_that_overlap_are_written_as_in_a_call(places):
    def calls():
        memory = [tl.arange(12.0) for _ in range(2)]
        a, b, c, d = places
        return [(memory[0][a:a + 4], memory[0][b:b + 4]), (memory[1][c:c + 4], memory[1][d:d + 4])]

    agrees(lambda: (lambda x, y: (x.mul_(2), y + 1)[1], calls()))


def test_a_write_into_what_the_gradient_of_another_argument_needs_is_an_error_in_each_call():
    def f(x, d):
        y = x * x
        d.add_(1)
        return y

    def calls():
        x = tl.arange(3.0).requires_grad_()
        return [(tl.ones(3, requires_grad=True), tl.ones(3)), (x, x.detach())]

    agrees(lambda: (f, calls()))


# ---- tensors from outside ------------------------------------------------------------------------

OUTSIDE = {
    "returned": lambda w, v: lambda x: w,
    "a_view_returned": lambda w, v: lambda x: (w[1:3], x + w[:3]),
    "written_and_a_view_read": lambda w, v: lambda x: (w.mul_(2), x + v)[1],
    "written_by_its_view": lambda w, v: lambda x: (v.mul_(2), x + w[:3])[1],
    "written_while_it_is_an_argument": lambda w, v: lambda x: (x.add_(1), w * 2)[1],
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_tensors_from_outside_that_share_memory_are_as_in_a_call(name):
    def build():
        w = tl.arange(6.0)
        v = w[:3]
        return OUTSIDE[name](w, v), [tl.zeros(3), w[:3], tl.zeros(3), w[3:]], [w, v]

    agrees(build)


def test_a_tensor_from_outside_that_lies_where_a_view_does_is_returned_itself():
    def build():
        w = tl.arange(3.0)
        return lambda x: (x.narrow(0, 0, 3) * 2, w), [w.view(3, 1)[:, 0] for _ in range(3)], [w]

    agrees(build)


def test_a_parameter_that_is_detached_and_written_is_as_in_a_call():
    def build():
        w = tl.arange(3.0).requires_grad_()
        d = w.detach()
        return lambda x: (d.add_(1), w * x)[1], [tl.ones(3), tl.ones(3)], [w, d]

    agrees(build)


@pytest.mark.parametrize("view", [lambda g: g, lambda g: g.view(-1), lambda g: g.detach()])
def test_a_gradient_that_is_returned_is_the_one_that_was_set(view):
    w = tl.ones(3, requires_grad=True)

    def f(x):
        w.grad = None
        (x * w).sum().backward()
        return view(w.grad)

    compiled = tl.compile(f)
    with pytest.warns(RuntimeWarning, match="returns a .grad that it sets"):
        for _ in range(3):
            compiled(tl.ones(3)).mul_(5)
            assert w.grad.tolist() == [5, 5, 5]


def test_a_gradient_from_before_that_is_returned_is_that_of_each_call():
    w = tl.ones(3, requires_grad=True)
    optimizer = tl.optim.SGD([w], lr=0.5)

    def f(x):
        optimizer.step()
        return w.grad

    compiled = tl.compile(f, fullgraph=True)
    for k in range(3):
        w.grad = tl.full((3,), float(k))
        assert compiled(tl.ones(3)) is w.grad


# ---- where a tensor lies -------------------------------------------------------------------------

def test_a_view_beyond_an_argument_is_bounded_by_the_memory_that_is_there():
    def calls():
        return [tl.arange(10.0)[:2], tl.arange(10.0)[4:6], tl.arange(10.0)[6:8], tl.ones(2)]

    agrees(lambda: (lambda x: x.as_strided((6,), (1,)) * 2, calls()))
    agrees(lambda: (lambda x: x.as_strided((4,), (1,), 0) * 2,
                    [tl.arange(10.0)[2:4], tl.arange(3.0)[1:3], tl.arange(9.0)[5:7]]))


FACTS = {
    "is_leaf": lambda x: x * (2 if x.is_leaf else 3),
    "_base": lambda x: x * (2 if x._base is None else 3),
    "data_ptr": lambda x: x * (2 if x.data_ptr() == 0 else 3),
    "_version": lambda x: x * x._version,
    "storage_offset": lambda x: x * x.storage_offset(),
    "untyped_storage": lambda x: x * x.untyped_storage().nbytes(),
    "is_contiguous": lambda x: x * (2 if x.is_contiguous() else 3),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_an_argument_that_are_read_are_those_of_each(name):
    def calls():
        leaf = tl.ones(3, requires_grad=True)
        return [leaf, leaf * 1, tl.ones(3), tl.ones(5)[2:], tl.ones(3).add_(1), tl.ones(6)[::2]]

    agrees(lambda: (FACTS[name], calls()))


def test_a_function_in_inference_mode_gives_inference_tensors():
    def f(x):
        with tl.inference_mode():
            return x * 2

    assert not agrees(lambda: (f, matrices(False)))


def test_the_first_state_of_a_cell_is_made_in_each_run():
    def build():
        cell, layer = nn.LSTMCell(3, 2), nn.LSTM(3, 2)

        def f(x):
            h, c = cell(x)
            y, (last, _) = layer(x[None])
            last.add_(1)
            return h, c, y, last

        return f, [tl.rand(4, 3) for _ in range(3)]

    agrees(build)


@each("view", [
    lambda x: x[1:], lambda x: x.t(), lambda x: x.chunk(2), lambda x: x.detach()[0],
    lambda x: (x, x * 2, x.view(-1), x.unsqueeze(0).squeeze(0)), lambda x: (x * 2)[0] + x[0],
    lambda x: (x * 2)[1:], lambda x: (x.exp()).split(2), lambda x: x.cumsum(0).t()[1],
    lambda x: (lambda y, z: (y[1:], z[0], y[:2]))(x * 2, x + 1), lambda x: x[[0, 2]].view(-1),
    lambda x: (lambda y: (y[1:], y, y.t()))(x * 2), lambda x: (lambda y: (y, y[1:]))(tl.zeros(3))])
def test_results_know_what_they_are_views_of(view):
    """Also of what nobody else has: a temporary, which those that are views of it share."""
    def seen_of(f, x, w):
        found = tensors_in(f(x))
        log = [(y._base is x, y is x) for y in found]
        log += [[y._base is z or y._base is z._base for z in found] for y in found]
        log += [y._base if y._base is None else seen(y._base) for y in found]
        for y in found:
            log.append(raised(lambda y=y: seen(y.mul_(w[:1].sum())))[1])
        return [*log, x.requires_grad, *map(seen, (x, *found))]

    compiled = tl.compile(view)
    for k in range(3):
        w = tl.ones(2, requires_grad=True)
        logs = [seen_of(f, tl.arange(16.0).reshape(4, 4), w) for f in (view, compiled)]
        assert logs[0] == logs[1]


# ---- memory that tensors from outside share, until their `data` is set ---------------------------

PARTS = {"all": lambda w: w[:], "detached": lambda w: w.detach(), "data": lambda w: w.data,
         "some": lambda w: w[1:3], "in another shape": lambda w: w.view(2, 2)}


def reads_both(x, w, v):
    return x * w.sum() + v.sum()


def writes_one(x, w, v):
    y = v * 2
    w.add_(1)
    return x * y.sum() + v.sum()


def gives_a_view(x, w, v):
    w.add_(1)
    return v[:1], x + 1


@each("f", [reads_both, writes_one, gives_a_view])
@each("part", PARTS)
@each("shared", [True, False])
@pytest.mark.filterwarnings("ignore:compile")
def test_tensors_from_outside_share_memory_in_another_way(f, part, shared):
    def history(wrap):
        w, v = tl.arange(4.0), PARTS[part](tl.arange(4.0))
        if shared:
            v = PARTS[part](w)
        g, found = wrap(lambda x: f(x, w, v)), []
        for k in range(6):
            if k == 2:
                v.data = PARTS[part](tl.full((4,), 10.0) if shared else w)
            if k == 4:
                w.data = tl.full((4,), 100.0)
            found.append(list(map(seen, (*tensors_in([g(tl.ones(1))]), w, v))))
        return found

    assert history(lambda f: f) == history(tl.compile)


@pytest.mark.filterwarnings("ignore:compile")
def test_a_tensor_from_outside_leaves_the_memory_of_an_argument():
    def history(wrap):
        w, found = tl.arange(4.0), []

        def f(x):
            y = x.float().reshape(-1)
            w.mul_(2)
            return w[:], y

        g, x = wrap(f), w[:]
        for k in range(4):
            if k == 2:
                w.data = tl.full((4,), 10.0)
            found.append(list(map(seen, (*g(x), w, x))))
        return found

    assert history(lambda f: f) == history(tl.compile)


def test_tied_weights_are_untied():
    def history(wrap):
        model, found = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), []
        with tl.no_grad():
            for x in model.parameters():
                x.fill_(0.5)
        model[1].weight.data = model[0].weight.data
        f = wrap(model)
        for k in range(4):
            if k == 2:
                model[0].weight.data = tl.ones(2, 2)
            found.append(seen(f(tl.ones(2))))
        return found

    assert history(lambda f: f) == history(tl.compile)
