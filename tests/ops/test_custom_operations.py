"""Operations of one's own: defined again, of two modules, printed, in batches and second order."""

import pickle

import numpy as np
import pytest

import tensorlib as tl
from tensorlib import ops
from tensorlib.func import grad, hessian, jacfwd, vmap

SOURCES = {
    "primitive": """
@ops.primitive
def thing(x):
    return x * SCALE
ops.defvjp(thing, lambda g, ans, x: g * SCALE)
""",
    "compose": "thing = ops.compose('thing', lambda x: x * SCALE)",
    "composite": """
@ops.composite()
def thing(input):
    return input * SCALE
""",
    "op": """
@ops.op()
def thing(input: tl.Tensor):
    return input * SCALE
@thing.vjp("input")
def rule(g):
    return g * SCALE
""",
}


def run(source, module="notebook", scale=1.0):
    """The operation that a cell defines, run in a module of this name."""
    names = {"__name__": module, "ops": ops, "tl": tl, "np": np, "SCALE": scale}
    exec(source, names)
    return names["thing"]


@pytest.mark.parametrize("kind", SOURCES)
def test_a_cell_that_defines_an_operation_runs_twice(kind):
    x = tl.ones(2, requires_grad=True)
    before = run(SOURCES[kind])
    recorded = before(x).sum()
    after = run(SOURCES[kind], scale=10.0)
    assert after(x).tolist() == [10, 10]
    recorded.backward()                       # what was recorded keeps the old rules
    assert x.grad.tolist() == [1, 1]
    after(x).sum().backward()
    assert x.grad.tolist() == [11, 11]
    assert ops.registry["notebook.thing"] is (after if kind == "compose" else after.op)


def test_an_elementwise_operation_is_replaced_with_its_loop_and_its_method():
    source = """
@ops.elementwise(reference=np.REFERENCE, to_float=True, differentiable=False)
def spread_of(input, other):
    "An operation."
thing = spread_of
"""
    first = run(source.replace("REFERENCE", "copysign"))
    second = run(source.replace("REFERENCE", "heaviside"))
    x, y = tl.tensor([-1.0, 2.0]), tl.tensor([3.0, -4.0])
    assert first(x, y).tolist() == [1, -2]
    assert second(x, y).tolist() == x.spread_of(y).tolist() == [0, 1]


def test_lambdas_do_not_collide():
    double, triple = ops.primitive(lambda x: x * 2), ops.primitive(lambda x: x * 3)
    assert double(tl.ones(1)).item() == 2 and triple(tl.ones(1)).item() == 3


def test_two_modules_may_have_an_operation_of_one_name():
    one, other = (run(SOURCES["primitive"], module, scale)
                  for module, scale in (("package_a.special", 2.0), ("package_b", 3.0)))
    assert one(tl.ones(1)).item() == 2 and other(tl.ones(1)).item() == 3
    assert ops.registry["package_a.special.thing"] is one.op
    assert pickle.loads(pickle.dumps(other.op)) is other.op
    with pytest.raises(KeyError, match=r"package_a\.special\.thing or .*package_b\.thing"):
        ops.registry["thing"]


def test_a_name_of_one_module_alone_may_leave_the_module_out():
    names = {"__name__": "package_c", "ops": ops}
    exec("@ops.primitive\ndef only_here(x):\n    return x * 2", names)
    assert ops.registry["only_here"] is names["only_here"].op
    assert ops.call("only_here", tl.ones(1)).outputs[0].item() == 2


def test_names_of_the_library_and_of_tensors_are_protected():
    def relu(input: tl.Tensor):
        return input

    def item(input):
        return input
    for declare in (ops.primitive, ops.op(), ops.composite(), lambda f: ops.compose("relu", f)):
        with pytest.raises(ValueError, match="an operation named 'relu' exists already"):
            declare(relu)
    with pytest.raises(ValueError, match="Tensors have 'item' already"):
        ops.composite()(item)
    assert tl.tensor(1.0).item() == 1.0


def cube_of():
    @ops.primitive
    def cube(x, power=3):
        return x ** power
    ops.defvjp(cube, lambda g, ans, x, power: g * power * x ** (power - 1))
    return cube


def test_a_primitive_prints_as_what_it_is():
    cube = cube_of()
    name = f"{__name__}.cube(x, power)"
    assert repr(cube) == f"<primitive {name}>" and repr(cube.op) == f"<Op {name}>"
    assert "CubeBackward0" in repr(cube(tl.ones(1, requires_grad=True)))


def test_a_primitive_takes_a_batching_rule():
    cube, seen = cube_of(), []

    def rule(info, in_dims, x, power):
        seen.append((info.batch_size, in_dims, tuple(x.shape)))
        return cube(x, power), in_dims[0]
    ops.defvmap(cube, rule)
    x = tl.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    assert vmap(cube)(x).tolist() == (x ** 3).tolist() and seen == [(3, (0,), (3, 2))]
    assert vmap(vmap(cube))(x).tolist() == (x ** 3).tolist()
    assert vmap(grad(lambda x: cube(x).sum()))(x).tolist() == (3 * x ** 2).tolist()
    vmap(cube)(x).sum().backward()
    assert x.grad.tolist() == (3 * x ** 2).tolist()
    ops.defvmap(cube, lambda info, in_dims, x, power: cube(x, power))
    with pytest.raises(RuntimeError, match=r"cube: its batching rule must return \(output"):
        vmap(cube)(x)
    with pytest.raises(TypeError, match="defvmap: the rule of .*cube is int"):
        ops.defvmap(cube, 3)


def test_a_missing_forward_rule_names_its_remedy_and_hessian_does_without():
    cube = cube_of()
    x = tl.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="cube has no forward-mode rule; .*ops.defjvp"):
        jacfwd(cube)(x)
    assert hessian(lambda x: cube(x).sum())(x).tolist() == [[6, 0], [0, 12]]
