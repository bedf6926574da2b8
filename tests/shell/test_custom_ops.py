"""`tensorlib.library`: operations of one's own under PyTorch's names."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib import Tensor, library
from tensorlib.testing import gradcheck


def keep_inputs(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.factor = inputs[1]


@library.custom_op("tests::scaled_sine", mutates_args=())
def scaled_sine(x: Tensor, factor: float = 1.0, *, offset: float = 0.0) -> Tensor:
    """factor * sin(x) + offset, by NumPy."""
    return tl.from_numpy(factor * np.sin(x.numpy()) + offset).to(x.dtype)


scaled_sine.register_autograd(
    lambda ctx, g: (g * ctx.factor * ctx.saved_tensors[0].cos(), None, None),
    setup_context=keep_inputs)
scaled_sine.register_fake(lambda x, factor=1.0, *, offset=0.0: tl.empty_like(x))


@library.custom_op("tests::add_one_", mutates_args={"x"})
def add_one_(x: Tensor) -> None:
    x.add_(1)


def test_a_call_is_that_of_the_function_with_its_gradient():
    x = tl.tensor([0.0, 1.0], dtype=tl.float64, requires_grad=True)
    y = scaled_sine(x, 2.0, offset=1.0)
    assert y.tolist() == (2 * np.sin(x.detach().numpy()) + 1).tolist()
    assert tl.equal(tl.ops.tests.scaled_sine(x, offset=1.0, factor=2.0), y)
    assert tl.ops.tests.scaled_sine.default is scaled_sine
    assert gradcheck(lambda v: scaled_sine(v, 2.0), (x,))
    assert scaled_sine.__doc__.startswith("factor * sin") and "scaled_sine" in repr(scaled_sine)


def test_without_elements_the_fake_one_runs():
    y = scaled_sine(tl.ones(2, 3, device="meta", dtype=tl.float16))
    assert y.is_meta and y.shape == (2, 3) and y.dtype is tl.float16
    with pytest.raises(RuntimeError, match="tests::add_one_: there is no way .* register_fake"):
        add_one_(tl.ones(2, device="meta"))


def test_batches_go_by_the_rule_or_one_by_one():
    x = tl.rand(3, 2)
    with pytest.warns(UserWarning):
        assert tl.vmap(scaled_sine)(x).tolist() == scaled_sine(x).tolist()

    @library.custom_op("tests::row_sum", mutates_args=())
    def row_sum(x: Tensor) -> Tensor:
        return tl.from_numpy(np.asarray(x.numpy().sum(-1)))

    @row_sum.register_vmap
    def rule(info, in_dims, x):
        return row_sum(x.movedim(in_dims[0], 0)), 0

    assert tl.equal(tl.vmap(row_sum, in_dims=1)(x), row_sum(x.t().clone()))


def test_what_writes_to_an_argument():
    x = tl.zeros(2)
    assert add_one_(x) is None and x.tolist() == [1, 1]
    leaf = tl.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="x requires a gradient and is written to"):
        add_one_(leaf)
    with tl.no_grad():
        add_one_(leaf)
    assert leaf.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="add_one_ writes to x"):
        add_one_.register_autograd(lambda ctx, g: g)


def test_captured_calls_are_eager_ones():
    compiled = tl.compile(lambda x: scaled_sine(x * 2, 3.0).sum())
    for values in ([1.0, 2.0], [3.0, -1.0], [0.5, 0.0]):
        x, y = (tl.tensor(values, requires_grad=True) for _ in range(2))
        compiled(x).backward()
        scaled_sine(y * 2, 3.0).sum().backward()
        assert x.grad.tolist() == y.grad.tolist()


def test_kernels_of_devices():
    op = library.custom_op("tests::placed", lambda x: x, mutates_args=(), device_types="cuda")
    with pytest.raises(NotImplementedError, match="tests::placed: computes on 'cuda' alone"):
        op(tl.ones(2))
    library.register_kernel("tests::placed", "cuda", lambda x: x - 1)
    library.register_kernel("tests::placed", ["cpu", "cuda"])(lambda x: x + 1)
    assert op(tl.ones(2)).tolist() == [2, 2]


def test_checks_of_an_operation():
    x = tl.rand(3, requires_grad=True)
    assert set(library.opcheck(scaled_sine, (x, 2.0)).values()) == {"SUCCESS"}

    @library.custom_op("tests::sly", mutates_args=())
    def sly(x: Tensor) -> Tensor:
        x.mul_(2)
        return x.clone()

    sly.register_fake(lambda x: x.new_empty(1))
    report = library.opcheck(sly, (tl.ones(3, requires_grad=False),), raise_exception=False)
    assert "x was written to" in str(report["test_schema"])
    assert "register_fake gives" in str(report["test_faketensor"])
    with pytest.raises(AssertionError, match="test_autograd_registration of tests::sly"):
        library.opcheck("tests::sly", (x,), test_utils="test_autograd_registration")
    y = sly(x)
    with pytest.raises(RuntimeError, match="tests::sly has no gradient; give it one by regis"):
        y.sum().backward()


@pytest.mark.parametrize("call, error, message", [
    (lambda: library.custom_op("sine", len, mutates_args=()), ValueError, "namespace::name"),
    (lambda: library.custom_op("create::f", abs, mutates_args=()), ValueError, "tensorlib.ops"),
    (lambda: library.custom_op("tests::f", lambda x: x, mutates_args=["y"]), ValueError,
     "no argument 'y'"),
    (lambda: library.custom_op("tests::f", lambda x: x, mutates_args="x"), ValueError,
     "or 'unknown', got 'x'"),
    (lambda: library.register_fake("tests::absent", len), ValueError, "no operation 'tests::abs"),
    (lambda: library.opcheck(scaled_sine, (tl.ones(2),), test_utils="test_shema"), ValueError,
     "opcheck: 'test_shema' is none of test_schema"),
    (lambda: library.register_vmap(3, len), TypeError, "must be the name of an operation"),
])
def test_what_is_no_operation(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_operations_that_are_defined_by_a_schema():
    lib = library.Library("defined", "DEF")
    assert lib.define("add_n(Tensor x, int n=1, *, float[] w=[1.0, 2.0]) -> Tensor") == "add_n"

    @library.impl(lib, "add_n", "CPU")
    def add_n(x, n, *, w):
        return x + n + sum(w)

    run = tl.ops.defined.add_n
    assert run(tl.ones(2)).tolist() == [5, 5] and run(tl.ones(1), 3, w=[]).tolist() == [4]
    with pytest.raises(TypeError):
        run()
    lib.define("cube(Tensor a) -> Tensor")
    lib.impl("cube", lambda a: a ** 3, "CPU")
    lib.impl("cube", tl.empty_like, "Meta")
    library.register_autograd(
        "defined::cube", lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    x = tl.tensor([2.0], requires_grad=True)
    tl.ops.defined.cube(x).backward()
    assert x.grad.tolist() == [12] and tl.ops.defined.cube(tl.ones(3, device="meta")).shape == (3,)
    more = library.Library("defined", "FRAGMENT", "CompositeImplicitAutograd")
    more.define("muladd(Tensor a, Tensor b) -> Tensor")
    more.impl("muladd", lambda a, b: a * b + 1)            # its gradient is that of its parts
    x.grad = None
    more.impl("muladd", lambda a: None, "CUDA")
    tl.ops.defined.muladd(x, tl.tensor([3.0])).backward()
    assert x.grad.tolist() == [3]


def test_schemas_say_what_is_written_to():
    library.define("defined_too::add_", "(Tensor(a!) x, Tensor y) -> ()")

    @library.impl("defined_too::add_", "cpu")
    def add_(x, y):
        x.add_(y)

    x = tl.zeros(2)
    tl.ops.defined_too.add_(x, tl.ones(2))
    assert x.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="written to"):
        tl.ops.defined_too.add_(tl.zeros(2, requires_grad=True), tl.ones(2))
    library.define("defined_too::none", "(Tensor x) -> Tensor")
    for call, error in ((lambda: tl.ops.defined_too.none(x), NotImplementedError),
                        (lambda: library.Library("defined", "OTHER"), ValueError),
                        (lambda: library.define("defined_too::bad", "Tensor x"), ValueError),
                        (lambda: library.define("defined_too::bad", "(int 3) -> ()"), ValueError),
                        (lambda: library.impl("defined_too::nothing", "cpu", len), ValueError)):
        with pytest.raises(error):
            call()


def test_functions_that_may_call_kernels_of_triton_are_operations():
    @library.triton_op("tests::doubled", mutates_args=())
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    assert tl.equal(doubled(tl.ones(2)), tl.ops.tests.doubled(tl.ones(2)))
    with pytest.raises(NotImplementedError, match="kernels of Triton's are for GPUs"):
        library.wrap_triton(doubled)
