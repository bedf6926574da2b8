"""Functions in parts whose inner functions read variables that are bound again later."""

import warnings

import tensorlib as tl
from cases import each


def bound_after_the_function(x):
    def inner(y):
        return y * v

    float(x[0])
    v = x * 2
    return inner(x), v


def bound_again(x):
    def inner(y):
        return y * v

    v = x.sum().item()
    first = inner(x)
    v = v + 1
    return first, inner(x)


def bound_in_a_loop(x):
    kept = []
    for k in range(3):
        v = x * k
        float(v[0])
        kept.append(lambda: v * k)
    return [f() for f in kept]


def carried_by_a_loop(x):
    def inner():
        return v

    v, found = x, []
    for k in range(3):
        float(x[0])
        v = v * 2 + k
        found.append(inner() + 1)
    return found


def read_by_a_generator(x):
    found = []
    for k in range(3):
        float(x[0])
        y = x * k
        found.append(y * j for j in range(2))
    return [[*g] for g in found]


def read_by_a_method(x):
    class Inner:
        def get(self):
            return v

    float(x[0])
    v = x * 3
    first = Inner().get() * 2
    v = x * 4
    return first, Inner().get() * 2


def summed_at_once(x):
    total = 0.0
    for k in range(3):
        y = x * k
        loss = sum((y * j).sum() for j in range(3))
        total += loss.item()
    return total, loss


def with_a_function_as_a_default(x, twice=lambda z: z * 2):
    y = x * 3
    total = y.sum().item()
    return twice(y) + total


def listed(x):
    y = x * 2
    float(x[0])
    z = y + 1
    return z, sorted(locals())


def evaluated(x):
    y = x * 3
    x = x + len(y)
    float(x[0])
    return eval("y + 1"), x


def asked_of_another(x):
    y = x * 2
    float(x[0])
    return y, len(vars(tl.nn.Identity())) > 0


def stacked(x):
    y = tl.stack([x, x * 2]).exp()
    float(x[0])
    return tl.stack([y, y])


KINDS = {f.__name__: f for f in (
    bound_after_the_function, bound_again, bound_in_a_loop, carried_by_a_loop, read_by_a_generator,
    read_by_a_method, summed_at_once, with_a_function_as_a_default,
    listed, evaluated, asked_of_another, stacked)}


@each("name", KINDS)
def test_inner_functions_read_the_variables_as_they_are_then(name):
    f = KINDS[name]
    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(4):
            x = tl.arange(3.0) + k
            assert repr(compiled(x)) == repr(f(x))


@each("f", [summed_at_once, asked_of_another, stacked])
def test_parts_are_replayed_around_what_is_at_once_or_of_no_frame(f):
    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            compiled(tl.ones(3))
    (parts,) = [way.parts for way in compiled._entries]
    assert any(way.replay for part in parts.parts for way in part._entries)
