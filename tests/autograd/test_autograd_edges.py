"""Rare ways into the engine: decorated classes, Functions without rules, structures, refusals."""

import pytest

import tensorlib as tl
from tensorlib import func, nn, ops
from tensorlib.autograd import Function, checkpoint, graph, gradcheck, tree
from tensorlib.testing import assert_close


@pytest.mark.parametrize("mode, wanted", [(tl.no_grad, False), (tl.enable_grad, True)])
def test_a_decorated_class_is_made_in_the_mode(mode, wanted):
    class Plain:
        def __init__(self, x):
            self.doubled = x * 2

        def again(self, x):
            return x * 2

    decorated = mode()(Plain)
    x = tl.ones(1, requires_grad=True)
    with tl.set_grad_enabled(not wanted):
        made = decorated(x)
        assert decorated is Plain and isinstance(made, Plain)
        assert made.doubled.requires_grad is wanted
        assert made.again(x).requires_grad is not wanted      # methods are as they were
        assert tl.is_grad_enabled() is not wanted


class Plain(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g


def test_rules_that_a_function_has_not():
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        Plain.jvp(None, tl.ones(1))
    with pytest.raises(NotImplementedError, match="runs example by example"):
        Plain.vmap(None, (0,), tl.ones(1))
    with pytest.raises(NotImplementedError, match="Plain: You must implement the jvp function"):
        func.jvp(Plain.apply, (tl.ones(2),), (tl.ones(2),))


class Halves(Function):
    """Both halves of each example; its vmap gives one place for all outputs, or none."""

    place = 0

    @staticmethod
    def forward(x):
        return x[:2] * 1, x[2:] * 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @classmethod
    def vmap(cls, info, dims, x):
        x = x.movedim(dims[0], 1) if cls.place == 1 else x.movedim(dims[0], 0)
        if cls.place is None:
            return Halves.apply(x[0]), None
        return ((x[:2] * 1, x[2:] * 1) if cls.place == 1 else (x[:, :2] * 1, x[:, 2:] * 1)), (
            cls.place)


@pytest.mark.parametrize("place", [0, 1, None])
def test_one_place_of_the_batch_serves_for_all_outputs(place):
    kind = type("Halves", (Halves,), {"place": place})
    x = tl.arange(12.0).reshape(3, 4)
    first, second = func.vmap(kind.apply)(x)
    if place is None:
        x = x[:1].expand(3, 4)                                # the first example's, for all
    assert (first.tolist(), second.tolist()) == (x[:, :2].tolist(), x[:, 2:].tolist())


def test_structures_are_written_like_containers():
    _, structure = tree.flatten({"a": [1.0, None, (2.0,)], "b": (3.0, 4.0)})
    assert repr(structure) == "{'a': [*, None, (*,)], 'b': (*, *)}"
    with pytest.raises(ValueError, match=r"in_dims is not compatible .*: \(0, 1, 0\) for \(\[\*"):
        func.vmap(lambda x: x, (0, 1, 0))([tl.ones(2)])


CALLS = [
    (TypeError, "get_gradient_edge: expects a Tensor, got float",
     lambda: graph.get_gradient_edge(1.0)),
    (TypeError, "stack_module_state: expected modules, got a sequence of dict",
     lambda: func.stack_module_state([{}])),
    (RuntimeError, "grad: expected the function to return a Tensor, got NoneType",
     lambda: func.grad(lambda x: None)(tl.ones(2))),
    (RuntimeError, "grad_and_value: expected the function to return a Tensor, got tuple",
     lambda: func.grad_and_value(lambda x: (x, x))(tl.ones(2))),
]


@pytest.mark.parametrize("error, words, call", CALLS)
def test_what_is_refused(error, words, call):
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)


def test_states_of_modules_are_stacked():
    models = [nn.BatchNorm1d(2) for _ in range(3)]
    for i, model in enumerate(models):
        nn.init.constant_(model.weight, i)
    params, buffers = func.stack_module_state(models)
    assert params["weight"].tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert buffers["running_var"].shape == (3, 2)


def test_a_recomputation_that_saves_less_is_refused():
    runs = []

    def fewer_each_time(x):
        runs.append(0)
        x = x.sin()
        return x.exp() if len(runs) == 1 else x

    x = tl.ones(2, requires_grad=True)
    out = checkpoint(fewer_each_time, x, use_reentrant=False).sum()
    with pytest.raises(RuntimeError, match=r"a different number of tensors was saved during the "
                                           r"original forward \(2\) and recomputation \(1\)"):
        out.backward()
    assert x.grad is None and len(runs) == 2


def test_a_gradient_of_another_shape_is_found_out():
    class Wrong(Plain):
        @staticmethod
        def backward(ctx, g):
            return g.sum()

    x = tl.ones(2, dtype=tl.float64, requires_grad=True)
    with pytest.raises(RuntimeError):
        gradcheck(lambda x: Wrong.apply(x).sum(), (x,))
    assert x.grad is None


def test_second_derivatives_of_an_operation_without_forward_rule():
    @ops.primitive
    def cubed_without_forward_mode(x):
        return x.numpy() ** 3

    ops.defvjp(cubed_without_forward_mode, lambda g, ans, x: g * 3 * ans / x)
    x = tl.tensor([1.0, 2.0], dtype=tl.float64)
    found = func.hessian(lambda x: cubed_without_forward_mode(x).sum())(x)
    assert_close(found, tl.diag(6 * x))


def test_a_primitive_of_several_results_gives_its_own_tensors():
    @ops.primitive
    def halves_from_outside(x):
        return [x[:1], x]

    x = tl.tensor([1.0, 2.0])
    first, second = halves_from_outside(x)
    assert (first.tolist(), second.tolist()) == ([1.0], [1.0, 2.0])
    assert second is not x and first._base is None


def test_what_a_primitive_cannot_take():
    with pytest.raises(ValueError, match=r"has the parameter \*\*options; parameters without"):
        ops.primitive(lambda x, **options: x)


def test_the_backward_operation_of_a_call_describes_itself():
    call = ops.call("tanh", tl.tensor([0.5]))
    assert repr(call).startswith("Call(op=<Op tanh(input)>, inputs=(tensor([0.5000]),), outputs=(")
    assert repr(call).endswith(", attributes={})")
    assert repr(ops.build_grad_op(call)) == "GradOp(tanh_gradient: out, grad_out -> grad_input)"
