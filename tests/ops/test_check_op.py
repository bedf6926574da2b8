"""Operations declared outside the library, and `check_op`, which runs the tests that follow."""

import numpy as np
import pytest
from cases import each
from catalogue import named

import tensorlib as tl
from tensorlib import ops
from tensorlib.ops import registry
from tensorlib.ops.samples import pairs, reals
from tensorlib.testing import check_op


def real(*shape, seed=0):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


def test_an_elementwise_operation_from_outside_on_an_existing_loop():
    def half_tanh(input):
        """The hyperbolic tangent again."""

    half_tanh = ops.elementwise(kernel="tanh", reference=np.tanh, samples=reals(-2, 2),
                                edges=(0.0, 1.0), to_float=True)(named(half_tanh))

    @half_tanh.deriv
    def deriv(out):
        return 1 - out * out

    assert check_op(half_tanh)


def test_a_derivative_may_be_written_with_numpys_functions():
    def cosine(input):
        """The cosine again."""

    cosine = ops.elementwise(kernel="cos", reference=np.cos, samples=reals(-2, 2),
                             to_float=True)(named(cosine))

    @cosine.deriv
    def deriv(input):
        return -np.sin(input) * np.exp(0.0 * np.square(input))

    assert check_op(cosine)


def test_an_elementwise_operation_from_outside_on_the_loops_of_its_reference():
    """In each dtype that NumPy's ufunc has, with nothing else said."""
    def longest(input, other):
        """The square root of the sum of the squares."""

    longest = ops.elementwise(reference=np.hypot, samples=pairs(low=0.3), edges=(0.0, 1.0, -2.0),
                              to_float=True)(named(longest))

    @longest.deriv("input")
    def deriv_input(input, out):
        return input / out

    @longest.deriv("other")
    def deriv_other(other, out):
        return other / out

    assert check_op(longest)
    assert longest(tl.tensor([3, 5]), 4.0 * tl.ones(2)).tolist() == pytest.approx([5, 41 ** 0.5])


@pytest.mark.parametrize("reference", [np.negative, np.divmod, np.linalg.norm])
def test_a_reference_with_other_arguments_or_results_gives_no_loops(reference):
    def both(input, other):
        """Nothing."""
    with pytest.raises(ValueError, match="has no loop"):
        ops.elementwise(reference=reference, differentiable=False)(named(both))


@pytest.mark.parametrize("takes, error", [("bool integer floating", False), ("floating", True)])
def test_loops_for_bool_are_taken_where_the_operation_takes_bool(takes, error):
    def least(input, other):
        """The smaller."""
    least = ops.elementwise(reference=np.minimum, takes=takes, differentiable=False)(named(least))
    x, y = tl.tensor([True, True]), tl.tensor([True, False])
    if error:
        with pytest.raises(RuntimeError, match="not implemented for"):
            least(x, y)
    else:
        assert least(x, y).tolist() == [True, False]


def test_an_operation_from_outside_with_a_forward_of_operations():
    def blend(input: tl.Tensor, other: tl.Tensor, k=0.5):
        """input * k + other * (1 - k)."""
        return input * k + other * (1 - k)

    blend = ops.op(reference=lambda a, b, k=0.5: a * k + b * (1 - k), samples=pairs(),
                   takes="floating")(named(blend))

    @blend.vjp("input")
    def blend_vjp_input(g, k):
        return g * k

    @blend.vjp("other")
    def blend_vjp_other(g, k):
        return g * (1 - k)

    @blend.jvp
    def blend_jvp(d_input, d_other, k):
        return d_input * k + d_other * (1 - k)

    assert check_op(blend)
    assert blend(real(2), real(2)).grad_fn.next_functions[0][0].name() == "AccumulateGrad"


def test_check_op_finds_a_wrong_rule():
    wrong = ops.primitive(named(lambda x: x.exp()))
    ops.defvjp(wrong, lambda g, ans, x: g * ans * 1.001)
    with pytest.raises(AssertionError, match="rtol|differ|close") as caught:
        check_op(wrong, samples=reals(-1, 1), reference=np.sin)
    assert f"check_op: {wrong.op.name}: check_values()" in caught.value.__notes__
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        check_op(wrong, samples=reals(-1, 1), reference=np.exp)
    with pytest.raises(ValueError, match="declares no samples"):
        check_op(wrong)
    with pytest.raises(TypeError, match="not int"):
        check_op(3)


# ---- what it leaves as it was --------------------------------------------------------------------

def everything():
    """What a check could leave behind: the registry, each declaration, and the modes."""
    declared = {name: (dict(op.testing), tuple(op.rules)) for name, op in registry.items()}
    return (declared, tl.get_default_dtype(), tl.is_grad_enabled(), tl.is_inference_mode_enabled(),
            tl.get_rng_state().tolist(), tl.get_num_threads())


@each("name", ["tanh", "where", "cat", "softmax", "put_index", "logsumexp"])
def test_it_leaves_the_library_as_it_was(name):
    before = everything()
    declared = registry[name].testing
    assert check_op(name, samples=declared["samples"], reference=declared["reference"],
                    dtypes=["float64"])
    assert everything() == before


def test_also_where_it_fails():
    before = everything()
    with pytest.raises(AssertionError):
        check_op("tanh", samples=reals(-1, 1), reference=np.sin, dtypes=["float64"])
    assert everything() == before


def test_an_operation_may_change_the_modes():
    """They are put back, and the checks run in the usual ones wherever they are called."""
    def careless(x):
        tl.set_default_dtype(tl.float64)
        tl.rand(1)
        return x.exp()

    careless = ops.primitive(named(careless))
    ops.defvjp(careless, lambda g, ans, x: g * ans)
    before = everything()
    with tl.no_grad():
        assert check_op(careless, samples=reals(-1, 1), reference=np.exp, dtypes=["float64"])
        assert not tl.is_grad_enabled()
    with tl.inference_mode():
        assert check_op("exp")
        assert tl.is_inference_mode_enabled()
    assert everything() == before
    tl.set_default_dtype(tl.float64)
    try:
        assert check_op("exp")
        assert tl.get_default_dtype() == tl.float64
    finally:
        tl.set_default_dtype(tl.float32)


# ---- what it cannot look at, and what it is told not to ------------------------------------------

def test_samples_must_be_there_and_have_a_derivative():
    def doubled(x):
        return x * 2

    doubled = ops.primitive(named(doubled))
    ops.defvjp(doubled, lambda g, ans, x: g * 2)
    with pytest.raises(ValueError, match="check_op: samples gave none"):
        check_op(doubled, samples=lambda rng: iter(()), reference=lambda x: x * 2)
    with pytest.raises(AssertionError, match="none of its samples can be differentiated"):
        check_op(doubled, samples=lambda rng: [((np.arange(3),), {})], reference=lambda x: x * 2,
                 dtypes=["int64"])


@pytest.mark.parametrize("waive", [{}, {"values": "its values are wrong on purpose"}])
def test_an_aspect_that_is_waived_is_not_looked_at(waive):
    def shifted(x):
        """x + 1, whose reference says otherwise."""
        return x + 1

    shifted = ops.op(reference=lambda x: x + 2, samples=reals(-1, 1), takes="floating",
                     differentiable=False, waive=waive)(named(shifted))
    if waive:
        assert check_op(shifted)
    else:
        with pytest.raises(AssertionError):
            check_op(shifted)
