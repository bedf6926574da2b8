"""Branches and loops in compiled functions: what they give has memory of its own, and gradients do
not depend on what was differentiated before."""

from beside_eager import agrees
from cases import each

import tensorlib as tl
from tensorlib import program


def vectors():
    return [tl.arange(3.0) * 0.3 + k for k in (0.1, -1.5, 0.7)]


def positive(x):
    return x.sum() > 0


FORMS = {
    "an_operand": lambda x: (tl.cond(positive(x), lambda: x, lambda: x * 2), x * 3),
    "an_operand_that_is_read": lambda x: tl.cond(positive(x), lambda: x, lambda: -x) * x + x,
    "a_view": lambda x: (tl.cond(positive(x), lambda: x[:2], lambda: x[1:]), x + 1),
    "one_value_twice": lambda x: tl.cond(positive(x), lambda: (x * 2,) * 2,
                                         lambda: (x * 1, x * 3)),
    "two_branches": lambda x: (tl.cond(positive(x), lambda: x, lambda: -x),
                               tl.cond(positive(x), lambda: -x, lambda: x)),
    "a_result_that_is_written": lambda x: (
        tl.cond(positive(x), lambda: x, lambda: x * 2).add_(1), x * 1),
    "an_operand_that_is_written": lambda x: (
        tl.cond(positive(x), lambda: x.add_(1), lambda: x * 2), x * 1),
    "a_part_that_is_written": lambda x: (
        tl.cond(positive(x), lambda: x[:1].add_(1), lambda: x[:1] * 2), x * 1),
    "no_steps": lambda x: (lambda i, y: (y, x * y, i))(*tl.while_loop(
        lambda i, y: (i < 3) & (x.sum() < 0), lambda i, y: (i + 1, y * 2), (tl.tensor(0), x))),
    "what_stays": lambda x: tl.while_loop(
        lambda a, b: a.sum() < 5, lambda a, b: (a + 1, b), (x * 1, x)),
    "what_changes_places": lambda x: tl.while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a), (tl.tensor(0), x, x * 2)),
    "a_carry_that_is_written": lambda x: (lambda y: (y, tl.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.mul_(2)), (tl.tensor(0), y))))(x * 1),
    "a_carry_that_stays": lambda x: (tl.scan(lambda c, t: (c, c * t), x, x), x * 2),
    "a_branch_in_a_loop": lambda x: tl.while_loop(lambda i, y: i < 2, lambda i, y: (
        i + 1, tl.cond(positive(y), lambda: y, lambda: y.exp())), (tl.tensor(0), x))[1],
}


@each("name", FORMS)
def test_control_flow_never_gives_what_it_was_given(name):
    agrees(lambda: (FORMS[name], vectors()))


def test_results_have_memory_of_their_own_where_nothing_is_captured():
    x = tl.ones(3, requires_grad=True)
    found = [tl.cond(True, lambda: x, lambda: -x), tl.cond(x.sum() > 0, lambda: x, lambda: -x),
             tl.while_loop(lambda y: y.sum() > 9, lambda y: (y,), (x,))[0],
             *tl.cond(True, lambda: (x[:2], x[:2]), lambda: (x, x)),
             tl.scan(lambda c, t: (c, t), x, x)[0]]
    memory = [y.untyped_storage().data_ptr() for y in (x, *found)]
    assert len(set(memory)) == len(memory)
    (g,) = tl.autograd.grad(sum(y.sum() for y in found), x)
    assert tl.equal(g, tl.tensor([6.0, 6.0, 4.0]))


PAIRS = {
    "while_loop": lambda x, z: tl.while_loop(
        lambda a, b: a.sum() < 5, lambda a, b: (a + b.abs() * z + 1, b * 0.9 * z), (x, z * 2)),
    "scan": lambda x, z: tl.scan(
        lambda c, t: (c * t.sin(), c.cos() * t), z, tl.stack([x, z])),
    "cond": lambda x, z: tl.cond(
        x.sum() > 0, lambda: ((x * z).sin(), x.exp() * z), lambda: (z.cos() * x, (x * z).exp())),
    "branch_in_a_loop": lambda x, z: tl.while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, *tl.cond(
            a.sum() > 0, lambda: (a * b.sin(), b * z + a * x),
            lambda: (b.exp() * a, a * x * z * b))),
        (tl.tensor(0), x, z))[1:],
}


@each("order", [((0,), (0,)), ((1,), (0,)), ((0, 1), (1,)),
                ((1,), (1, 0), (0,)), ((0,), (1,), (0, 1))])
@each("name", PAIRS)
def test_gradients_of_some_results_in_any_order_and_once_more(name, order):
    compiled = tl.compile(PAIRS[name], fullgraph=True)
    for i in range(3):
        x = (tl.arange(3.0) * 0.3 + 0.1 * i).double().requires_grad_()
        z = (tl.ones(3) * 0.7 + 0.1 * i).double().requires_grad_()
        given, found = PAIRS[name](x, z), compiled(x, z)
        for places in order:
            logs = []
            for results in (given, found):
                loss = sum(results[k].sum() * (k + 1) for k in places)
                first = tl.autograd.grad(loss, (x, z), create_graph=True, materialize_grads=True)
                second = tl.autograd.grad(sum((g * g).sum() for g in first), (x, z),
                                          retain_graph=True, materialize_grads=True)
                logs.append([*first, *second, *tl.autograd.grad(
                    loss, (x, z), retain_graph=True, materialize_grads=True)])
            for a, b in zip(*logs):
                tl.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


def test_differentiating_a_program_again_gives_the_same():
    def twice(x):
        return tl.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * b, b.sin()),
                             (tl.tensor(0), x, x * 2))[1:]

    x = tl.tensor(0.5)
    p = program.trace(twice, x)
    slopes = [program.gradients(target, p.inputs)[0] for target in (*p.outputs, p.outputs[0])]
    first, second, again = p.run({"x": x}, slopes)
    y = x.clone().requires_grad_()
    a, b = twice(y)
    assert tl.equal(first, again)
    tl.testing.assert_close(first, tl.autograd.grad(a, y, retain_graph=True)[0])
    tl.testing.assert_close(second, tl.autograd.grad(b, y)[0])
