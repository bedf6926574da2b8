"""What passes leave out and join, and that the bits stay."""

import pytest

import tensorlib as tl
from tensorlib import program
from tensorlib.program.passes import enabled, optimized
from tensorlib.program.run.plan import plan


@pytest.fixture
def without(request):
    """A pass that does not run meanwhile."""
    enabled[request.param] = False
    yield request.param
    enabled[request.param] = True


def traced(f, *examples):
    p = program.trace(f, *examples)
    return p, p.outputs if type(p.outputs) is tuple else (p.outputs,)


def left(p, wanted):
    return [call.type for call in optimized(p.block.ops, wanted, p.inputs)]


def test_calls_that_nothing_depends_on_are_left_out():
    def f(x):
        (x * 3).exp()
        return x + 1

    p, wanted = traced(f, tl.ones(2))
    assert left(p, wanted) == ["add"]


def test_what_writes_and_what_draws_stays():
    kept = tl.zeros(2)

    def f(x):
        kept.add_(x * 2)
        tl.rand(2)
        return x + 1

    p, wanted = traced(f, tl.ones(2))
    assert left(p, wanted) == ["mul", "add_", "rand", "add"]


@pytest.mark.parametrize("without", ["dead"], indirect=True)
def test_dead_code_stays_where_the_pass_is_off(without):
    p, wanted = traced(lambda x: (x.exp(), x + 1)[1], tl.ones(2))
    assert left(p, wanted) == ["exp", "add"]


def steps(f, *inputs):
    """The steps of the machine of a function, and what it gives."""
    p, wanted = traced(f, *inputs)
    machine = plan(p.block.ops, dict(zip(p.inputs, inputs)), wanted)
    return machine.describe(), machine(inputs)


def chain(x, y):
    a = (x * y + 0.25).tanh()
    return (a * a - y).exp() / 3


@pytest.mark.parametrize("size", [1, 500, 300_000])
def test_a_chain_is_one_step(size):
    x, y = tl.linspace(-1, 1, size), tl.linspace(0, 2, size)
    found, (out,) = steps(chain, x, y)
    assert found == ["tiles"] and tl.equal(out, chain(x, y))


@pytest.mark.parametrize("n, kinds", [(512, ["tiles"]), (513, ["loop"] * 7),
                                      (8191, ["loop"] * 7), (8192, ["tiles"])])
def test_a_chain_that_stays_in_the_cache_is_written_over_its_operand(n, kinds):
    x, y = tl.linspace(-1, 1, n), tl.linspace(0, 2, n)
    found, (out,) = steps(chain, x, y)
    assert found == kinds and tl.equal(out, chain(x, y))


@pytest.mark.parametrize("without", ["fusion"], indirect=True)
def test_a_chain_is_as_many_steps_as_calls_where_the_pass_is_off(without):
    x, y = tl.linspace(-1, 1, 500), tl.linspace(0, 2, 500)
    found, (out,) = steps(chain, x, y)
    assert found == ["loop"] * 7 and tl.equal(out, chain(x, y))


def test_a_value_that_is_read_twice_or_wanted_is_not_joined():
    def f(x):
        a = x.sin()
        b = a.cos()
        return b * a, b

    x = tl.linspace(-1, 1, 100)
    found, (first, second) = steps(f, x)
    assert found == ["loop"] * 3
    assert tl.equal(first, f(x)[0]) and tl.equal(second, f(x)[1])


def test_other_dtypes_and_shapes_keep_their_bits():
    def f(x, column, row, flags):
        return tl.where(flags, (x * column + row).relu(), row - 1).half().float() * 1.5

    x, column, row = tl.randn(30, 40), tl.randn(30, 1), tl.randn(40)
    flags = tl.randn(30, 40) > 0
    found, (out,) = steps(f, x, column, row, flags)
    assert tl.equal(out, f(x, column, row, flags)) and "tiles" in found


def test_a_long_chain_is_cut():
    def f(x):
        for i in range(40):
            x = x * (1 + i / 100) + 0.5
        return x

    x = tl.linspace(-1, 1, 300)
    found, (out,) = steps(f, x)
    assert 40 // 14 < len(found) < 40 and tl.equal(out, f(x))
