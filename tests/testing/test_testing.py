"""tensorlib.testing itself: what passes, what fails, and what the failures say."""

import doctest
import importlib

import numpy as np
import pytest
from cases import each
from hypothesis import find, given
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib import testing
from tensorlib.testing import (
    GradcheckError,
    assert_close,
    broadcastable_shapes,
    dtypes,
    gradcheck,
    gradgradcheck,
    shapes,
    tensors,
    tolerance,
)

NAN, INF = float("nan"), float("inf")


def doubles(*values):
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
@pytest.mark.parametrize("name", ["closeness", "strategies", "tolerances"])
def test_the_examples_in_the_docstrings(name):
    module = importlib.import_module(f"tensorlib.testing.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


def test_every_public_name_is_there():
    assert set(dir(testing)) == set(testing.__all__)
    assert all(hasattr(testing, name) for name in testing.__all__)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        testing.missing


class TestAssertClose:
    @pytest.mark.parametrize("actual, expected", [
        (tl.tensor([1.0, 2.0]), tl.tensor([1.0, 2.0 + 1e-7])),
        (tl.tensor([1, 2]), np.array([1, 2])),
        (tl.tensor(1.0), 1.0),
        (tl.tensor([[1.0], [2.0]]), [[1.0], [2.0]]),
        (tl.tensor([INF, -INF]), [INF, -INF]),
        (tl.tensor([1.0], dtype=tl.bfloat16), tl.tensor([1.0078125], dtype=tl.bfloat16)),
        (tl.zeros(0, 3), tl.zeros(0, 3)),
        ({"a": [1.0, (tl.ones(2), 2)]}, {"a": (1.0, [tl.ones(2), 2])}),
        (True, True),
        (2**60, 2**60),
    ])
    def test_close(self, actual, expected):
        assert_close(actual, expected)

    @pytest.mark.parametrize("actual, expected, says", [
        (tl.tensor([1.0, 2.0, 5.0]), [1.0, 2.0, 3.0], [
            r"Mismatched elements: 1 / 3 \(33.3%\)", r"absolute difference: 2.0 at index \(2,\)",
            r"relative difference: 0.66\d+ at index \(2,\)", r"expected 3.0 but got 5.0"]),
        (tl.tensor(1.0), 2.0, ["Scalars are not close!", "Expected 2.0 but got 1.0"]),
        (tl.zeros(2), tl.zeros(3), [r"'shape' do not match: \(2,\) != \(3,\)"]),
        (tl.zeros(1), tl.zeros(()), ["attribute 'shape'"]),
        (tl.zeros(1), tl.zeros(1, dtype=tl.float64), ["'dtype' do not match: float32 != float64"]),
        (tl.tensor([2**60 + 1]), tl.tensor([2**60]), ["Tensor-likes are not equal!"]),
        (tl.tensor([True, False]), [True, True], ["1 / 2", "not equal!"]),
        (tl.tensor([200], dtype=tl.uint8), tl.tensor([201], dtype=tl.uint8), ["difference: 1.0"]),
        (tl.tensor([1.0]), [INF], ["absolute difference: inf"]),
        (tl.tensor([INF]), [1.0], ["absolute difference: inf"]),
        (tl.tensor([-INF]), [INF], ["absolute difference: inf"]),
        (tl.tensor([NAN]), [NAN], ["1 / 1"]),
        (tl.tensor([NAN, 5.0]), [1.0, 1.0], ["2 / 2", r"difference: nan at index \(0,\)"]),
        ([1, 2], [1], ["The length of the sequences mismatch: 2 != 1"]),
        ({"a": 1}, {"b": 1}, ["Missing: 'b'", "Unexpected: 'a'"]),
        ({"a": [1.0, (2.0,)]}, {"a": [1.0, (3.0,)]}, [r"for item \['a'\]\[1\]\[0\]"]),
    ])
    def test_not_close(self, actual, expected, says):
        with pytest.raises(AssertionError) as raised:
            assert_close(actual, expected)
        for text in says:
            assert raised.match(text)

    def test_nan_is_close_to_nan_on_request(self):
        assert_close(tl.tensor([NAN, 1.0]), [NAN, 1.0], equal_nan=True)
        with pytest.raises(AssertionError):
            assert_close(tl.tensor([NAN, 1.0]), [1.0, NAN], equal_nan=True)

    def test_given_tolerances_count(self):
        assert_close(1.0, 1.4, rtol=0.0, atol=0.5)
        assert_close(1.0, 1.4, rtol=0.5, atol=0.0)
        with pytest.raises(AssertionError):
            assert_close(1.0, 1.0 + 1e-9, rtol=0.0, atol=0.0)
        with pytest.raises(ValueError, match="both"):
            assert_close(1.0, 1.0, rtol=0.1)

    def test_dtypes_may_differ_on_request(self):
        assert_close(tl.ones(1), tl.ones(1, dtype=tl.float64), check_dtype=False)
        assert_close(tl.ones(1), tl.ones(1, dtype=tl.int8), check_dtype=False)

    @pytest.mark.parametrize("options, actual, expected, says", [
        ({"check_stride": True}, tl.ones(2, 3), tl.ones(3, 2).T, "'stride()' do not match: (3, 1)"),
        ({}, tl.ones(2, device="meta"), tl.ones(3, device="meta"), "'shape' do not match"),
        ({}, None, tl.ones(2), "None mismatch: None is not tensor([1., 1.])"),
        ({}, [1.0], [None], "None mismatch: 1.0 is not None"),
        ({}, tl.eye(2).to_sparse(), tl.eye(2), "attribute 'layout' do not match"),
        ({}, tl.ones(2, device="meta"), tl.ones(2), "attribute 'device' do not match")])
    def test_what_else_of_tensors_is_compared(self, options, actual, expected, says):
        with pytest.raises(AssertionError) as caught:
            assert_close(actual, expected, **options)
        assert says in str(caught.value)

    def test_what_else_of_tensors_may_differ_on_request(self):
        assert_close(tl.eye(2).to_sparse(), tl.eye(2), check_layout=False)
        assert_close(tl.ones(2, 1, 3), tl.ones(3, 1, 2).T.contiguous(), check_stride=True)
        assert_close(tl.ones(2, 3), tl.ones(3, 2).T)
        assert_close([None, tl.ones(2, device="meta")], [None, tl.zeros(2, device="meta")])
        assert_close(tl.ones(2), [1.0, 1.0])
        with pytest.raises(TypeError, match="types do not match"):
            assert_close(tl.ones(2), [1.0, 1.0], allow_subclasses=False)

    def test_messages_can_be_replaced(self):
        with pytest.raises(AssertionError, match="^mine$"):
            assert_close(1, 2, msg="mine")
        with pytest.raises(AssertionError, match="^step 3: Scalars"):
            assert_close(1, 2, msg=lambda text: f"step 3: {text}")

    @pytest.mark.parametrize("value", ["text", object(), ["a"]])
    def test_what_it_does_not_take(self, value):
        with pytest.raises(TypeError, match="assert_close: got"):
            assert_close(value, value)

    def test_gradients_are_left_out(self):
        x = doubles(1.0)
        assert_close(x * 2, [2.0])


def wrong(factor):
    """A function whose gradient is `factor` times what it should be."""
    return lambda x: x * x * factor + (x * x).detach() * (1 - factor)


class TestGradcheck:
    def test_right_gradients_pass(self):
        a, b = doubles(0.5, -1.0), doubles(2.0, 3.0)
        assert gradcheck(lambda a, b: (a * b, (a / b).sum(), a.argmax()), (a, b))
        assert gradgradcheck(lambda a, b: (a * b.exp(), (a / b).sum()), (a, b))

    @pytest.mark.parametrize("factor", [0.0, 0.5, 0.99])
    def test_wrong_gradients_do_not(self, factor):
        with pytest.raises(GradcheckError, match="output 0 with respect to input 0") as raised:
            gradcheck(wrong(factor), doubles(1.0, 2.0))
        assert raised.match("numerical:") and raised.match("analytical:")
        assert gradcheck(wrong(factor), doubles(1.0, 2.0), raise_exception=False) is False
        assert isinstance(raised.value, RuntimeError)

    ALL = {"check_forward_ad": True, "check_batched_grad": True,
           "check_batched_forward_grad": True}

    def test_outputs_without_grad_beside_others_are_not_looked_at(self):
        x = tl.tensor([0.5, -2.0], dtype=tl.float64, requires_grad=True)
        assert gradcheck(lambda x: (x * 2, x.detach() * 3), x)
        assert not gradcheck(lambda x: x.detach() * 3, x, raise_exception=False)
        assert gradcheck(lambda x: x.detach().sign(), x)

    def test_forward_mode_and_batches(self):
        a, b, none = doubles(0.5, -1.0), doubles(2.0, 3.0), tl.ones(0, 2, dtype=tl.float64)

        def fn(a, b, none):
            return a * b.exp(), (a / b).sum(), a.argmax(), none.sum(1)
        assert gradcheck(fn, (a, b, none.requires_grad_()), **self.ALL)
        assert gradgradcheck(lambda a, b: (a * b.exp()).sin(), (a, b), check_fwd_over_rev=True,
                             check_batched_grad=True)
        assert gradcheck is tl.autograd.gradcheck and gradgradcheck is tl.autograd.gradgradcheck

    def test_a_wrong_forward_rule(self):
        class Wrong(tl.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

            @staticmethod
            def jvp(ctx, dx):
                return dx * 3

        assert gradcheck(Wrong.apply, doubles(1.0, 2.0))
        for backward in (True, False):
            with pytest.raises(GradcheckError, match=r"numerical .*, forward-mode 3\.0"):
                gradcheck(Wrong.apply, doubles(1.0), check_forward_ad=True,
                          check_backward_ad=backward)

    @pytest.mark.parametrize("options", [
        {"check_backward_ad": False}, {"check_batched_forward_grad": True},
        {"check_forward_ad": True, "check_backward_ad": False, "check_batched_grad": True}])
    def test_checks_of_nothing(self, options):
        with pytest.raises(ValueError, match="gradcheck: "):
            gradcheck(lambda x: x, doubles(1.0), **options)

    def test_the_positions_in_the_message(self):
        plain, x, y = tl.ones(2, dtype=tl.float64), doubles(1.0, 2.0), doubles(3.0, 4.0)
        with pytest.raises(GradcheckError, match="output 1 with respect to input 2"):
            gradcheck(lambda p, x, y: (p * x * y, x * y.detach()), (plain, x, y))

    def test_a_wrong_second_derivative(self):
        x = doubles(1.0, 2.0)
        with pytest.raises(GradcheckError):
            gradgradcheck(lambda x: x * (x * x).detach() / 3 * 3, x)

    def test_inputs_are_put_back_and_keep_their_layout(self):
        base = tl.arange(6, dtype=tl.float64).reshape(2, 3)
        x = base.t().requires_grad_()
        strides = []

        def fn(x):
            strides.append(tuple(x.stride()))
            return x.sin()

        assert gradcheck(fn, x)
        assert set(strides) == {(1, 3)}
        assert base.flatten().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        assert x.grad is None

    def test_functions_that_close_over_their_inputs(self):
        x = doubles(1.0, 2.0)
        assert gradcheck(lambda *_: (x * x).sum(), x)

    @pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
    def test_scalars_and_empty_inputs(self, shape):
        assert gradcheck(lambda x: x * x, tl.ones(shape, dtype=tl.float64, requires_grad=True))

    def test_a_gradient_that_changes_between_sweeps(self):
        factors = iter(range(1, 1000))

        def unsteady(x):
            y = x * 1
            y.register_hook(lambda g: g * (1 + 1e-7 * next(factors)))
            return y

        with pytest.raises(GradcheckError, match="two sweeps differ"):
            gradcheck(unsteady, doubles(1.0))
        assert gradcheck(unsteady, doubles(1.0), nondet_tol=1e-3)

    @pytest.mark.parametrize("x, says", [
        (lambda: tl.ones(2, dtype=tl.float64), "requires grad"),
        (lambda: tl.ones(2, requires_grad=True), "float64"),
        (lambda: tl.ones(1, dtype=tl.float64).expand(3).requires_grad_(), "overlaps"),
    ])
    def test_inputs_that_cannot_be_checked(self, x, says):
        for check in (gradcheck, gradgradcheck):
            with pytest.raises(ValueError, match=f"{check.__name__}: .*{says}"):
                check(lambda x: x * x, x())


@pytest.mark.parametrize("fast_mode", [True, False])
def test_second_derivatives_of_functions_that_read_their_parameters(fast_mode):
    layer = tl.nn.Linear(3, 4).double()
    x = tl.randn(2, 3, dtype=tl.float64, requires_grad=True)
    assert gradgradcheck(lambda x, *parameters: layer(x), (x, *layer.parameters()),
                         fast_mode=fast_mode)


class TestStrategies:
    @given(st.data())
    def test_tensors_are_what_was_asked_for(self, data):
        dtype = data.draw(dtypes())
        shape = data.draw(shapes(min_dims=1, max_dims=2, min_side=1, max_side=4))
        x = data.draw(tensors(dtype=dtype, shape=shape))
        assert x.dtype == dtype and tuple(x.shape) == shape
        assert not x.requires_grad and x.is_leaf

    @pytest.mark.parametrize("layout, holds", [
        ("contiguous", lambda x: x.is_contiguous()),
        ("transposed", lambda x: x.stride()[0] < x.stride()[1]),
        ("strided", lambda x: x.stride()[1] == 2),
        ("expanded", lambda x: x.stride()[0] == 0),
        ("reversed", lambda x: x.stride()[0] < 0),
    ])
    def test_layouts(self, layout, holds):
        @given(tensors(shape=(3, 2), layouts=[layout], requires_grad=True))
        def check(x):
            assert holds(x)
            assert x.requires_grad and x.is_leaf

        check()

    def test_elements(self):
        @given(tensors(dtype=tl.float64, elements=st.sampled_from([0.1, NAN])))
        def check(x):
            assert bool(((x == 0.1) | (x != x)).all())

        check()

    @given(tensors(dtype=dtypes(), layouts=["contiguous", "transposed", "strided", "expanded"]))
    def test_the_gaps_of_a_layout_are_not_part_of_it(self, x):
        assert bool((x.double().abs() <= 100).all())
        if x.dtype == tl.bool:
            assert bool((x | ~x).all())

    @given(broadcastable_shapes(3, max_dims=2, max_side=3))
    def test_broadcastable_shapes(self, triple):
        full = np.broadcast_shapes(*triple)
        assert len(triple) == 3 and len(full) <= 2 and max(full, default=0) <= 3

    def test_they_shrink_to_what_is_easy_to_read(self):
        assert find(shapes(), lambda shape: True) == ()
        assert find(shapes(), lambda shape: max(shape, default=0) > 3) == (4,)
        x = find(tensors(), lambda x: x.numel() > 1 and bool((x > 0.5).any()))
        assert tuple(x.shape) == (2,) and x.is_contiguous()
        assert sorted(x.tolist()) in ([0.0, 1.0], [1.0, 1.0])

    @pytest.mark.parametrize("make, says", [
        (lambda: dtypes("float"), "dtypes: kinds"),
        (lambda: dtypes(()), "dtypes: kinds"),
        (lambda: find(tensors(layouts=["diagonal"]), lambda x: True), "tensors: layouts"),
    ])
    def test_bad_arguments(self, make, says):
        with pytest.raises(ValueError, match=says):
            make()


def test_tolerances_widen_with_the_work():
    near, far = tolerance(tl.float32), tolerance(tl.float32, "gradient")
    assert near["rtol"] < far["rtol"] and near["atol"] < far["atol"]
    assert tolerance(np.dtype("float64")) == tolerance("float64") == tolerance(tl.float64)
    assert tolerance(tl.int64, "gradient") == {"rtol": 0.0, "atol": 0.0}
    with pytest.raises(ValueError, match="kind is 'sloppy'"):
        tolerance("float32", "sloppy")


DTYPES = [tl.bool, tl.uint8, tl.int8, tl.int64, tl.float16, tl.bfloat16, tl.float32, tl.float64]


@each("dtype", DTYPES, ids=str)
def test_made_tensors_are_within_bounds(dtype):
    x = tl.testing.make_tensor(40, 5, dtype=dtype)
    least = 0 if dtype in (tl.bool, tl.uint8) else -9
    assert x.shape == (40, 5) and x.dtype is dtype
    assert ((x.double() >= least) & (x.double() <= 9)).all() and len(x.unique()) > 1
    apart = tl.testing.make_tensor((4, 5), dtype=dtype, noncontiguous=True, exclude_zero=True)
    assert apart.shape == (4, 5) and not apart.is_contiguous() and (apart != 0).all()
    assert tl.testing.make_tensor((), dtype=dtype, low=0, high=1).shape == ()
    if dtype.is_floating_point:
        assert tl.testing.make_tensor(2, dtype=dtype, requires_grad=True).requires_grad


@pytest.mark.parametrize("given", [
    {"dtype": tl.int8, "requires_grad": True}, {"dtype": tl.int8, "low": 200, "high": 300},
    {"dtype": tl.float32, "low": 2, "high": 1}, {"dtype": tl.float32, "low": float("nan")},
    {"dtype": tl.int64, "low": 1, "high": 1},
    {"dtype": tl.float32, "noncontiguous": True, "memory_format": tl.contiguous_format}])
def test_made_tensors_refuse_other_bounds(given):
    with pytest.raises(ValueError, match="make_tensor"):
        tl.testing.make_tensor(3, **given)
    limits = tl.finfo(tl.float32)
    wide = tl.testing.make_tensor(9, dtype=tl.float32, low=limits.min, high=limits.max)
    assert wide.isfinite().all()
    with pytest.warns(FutureWarning, match="low == high"):
        assert tl.testing.make_tensor(2, dtype=tl.float32, low=3, high=3).tolist() == [3, 3]


# ---- fast mode -----------------------------------------------------------------------------------

class WrongInOnePlace(tl.autograd.Function):
    """The square, with a derivative that is wrong for one element of many."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        factors = tl.full_like(x, 2.0)
        factors[0] = 2.5
        return g * x * factors


@pytest.mark.parametrize("dtype", [tl.float64, tl.complex128])
def test_fast_mode_agrees_with_the_whole_jacobian(dtype):
    x = tl.testing.make_tensor(4, 3, dtype=dtype, device="cpu", requires_grad=True)
    modes = dict(check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True)
    assert gradcheck(lambda x: (x.exp() @ x.mT, x.conj() * 2, x.abs()), x, fast_mode=True, **modes)
    assert gradgradcheck(lambda x: x.sin() @ x.mT, x, fast_mode=True)
    with pytest.raises(GradcheckError, match="first d output.0. / d input.0."):
        gradcheck(WrongInOnePlace.apply, x, fast_mode=True)
    assert not gradcheck(WrongInOnePlace.apply, x, fast_mode=True, raise_exception=False)


def test_fast_mode_calls_the_function_as_often_for_many_elements():
    counts = []
    for n in (2, 200):
        calls = []
        x = tl.linspace(0.1, 1.0, n, dtype=tl.float64).requires_grad_()
        assert gradcheck(lambda x: calls.append(1) or x.exp(), x, fast_mode=True)
        counts.append(len(calls))
    assert counts[0] == counts[1] < 10


def test_fast_mode_allows_each_of_many_elements_atol():
    x = tl.full((20_000,), 1e-6, dtype=tl.float64, requires_grad=True)

    class NearlySquare(tl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 1e-5

    assert gradcheck(NearlySquare.apply, x, fast_mode=True)


def test_the_older_form_of_assert_close():
    x = tl.tensor([1.0, float("nan")])
    tl.testing.assert_allclose(x, [1.00009, float("nan")])
    tl.testing.assert_allclose([1, 2], tl.tensor([1.0, 2.0], dtype=tl.float64))
    for actual, expected in ((x, [1.0002, float("nan")]), (x, [1.0, 1.0]), ([1, 2], [1, 3])):
        with pytest.raises(AssertionError):
            tl.testing.assert_allclose(actual, expected)
    with pytest.raises(AssertionError, match="^far$"):
        tl.testing.assert_allclose(x, x + 1, msg="far")


def test_gradcheck_leaves_earlier_graphs_as_they_are():
    x = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True)
    y = x.square()
    assert gradcheck(tl.square, x) and gradgradcheck(tl.square, x) and x._version == 0
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]
