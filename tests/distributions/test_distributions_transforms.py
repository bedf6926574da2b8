"""Transforms beside their formulas and finite differences; the sets between which they lead."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import distributions as d
from tensorlib.distributions import constraints
from tensorlib.testing import assert_close

nan, inf = math.nan, math.inf


def wide(x):
    return tl.tensor(x, dtype=tl.float64)


def broken(x):
    """Parts of a stick: each takes a share of what is left."""
    shares, left = [], 1.0
    for i, one in enumerate(x):
        part = 1 / (1 + np.exp(-one) * (len(x) - i))
        shares.append(left * part)
        left -= shares[-1]
    return np.array([*shares, left])


NUMBERS, POSITIVE = [0.3, -1.0, 2.0], [0.3, 1.0, 2.5]
ROOT = [[0.3, 5.0], [-1.0, 2.0]]
# what it is, where it is tried, its formula, the dims of a value on both sides, its sign
TRANSFORMS = [
    (d.ExpTransform(), NUMBERS, np.exp, (0, 0), 1),
    (d.PowerTransform(2.5), POSITIVE, lambda x: x**2.5, (0, 0), 1),
    (d.PowerTransform(-0.5), POSITIVE, lambda x: x**-0.5, (0, 0), -1),
    (d.PowerTransform(wide(-0.5)), POSITIVE, lambda x: x**-0.5, (0, 0), -1),
    (d.SigmoidTransform(), NUMBERS, lambda x: 1 / (1 + np.exp(-x)), (0, 0), 1),
    (d.SoftplusTransform(), NUMBERS, lambda x: np.log1p(np.exp(x)), (0, 0), 1),
    (d.TanhTransform(), NUMBERS, np.tanh, (0, 0), 1),
    (d.AffineTransform(1.0, -2.0), NUMBERS, lambda x: 1 - 2 * x, (0, 0), -1),
    (d.AffineTransform(wide(1.0), wide(3.0)), NUMBERS, lambda x: 1 + 3 * x, (0, 0), 1),
    (d.AffineTransform(0.5, 2.0, event_dim=1), NUMBERS, lambda x: 0.5 + 2 * x, (1, 1), 1),
    (d.StickBreakingTransform(), NUMBERS, broken, (1, 1), None),
    (d.ReshapeTransform((3,), (3, 1)), NUMBERS, lambda x: x[:, None], (1, 2), None),
    (d.IndependentTransform(d.ExpTransform(), 1), NUMBERS, np.exp, (1, 1), 1),
    (d.ComposeTransform([d.AffineTransform(1.0, -3.0), d.TanhTransform()]), NUMBERS,
     lambda x: np.tanh(1 - 3 * x), (0, 0), -1),
    (d.ComposeTransform([d.ExpTransform(), d.ReshapeTransform((3,), (1, 3))]), NUMBERS,
     lambda x: np.exp(x)[None], (1, 2), None),
    (d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.StickBreakingTransform()]), NUMBERS,
     lambda x: broken(2 * x), (1, 1), None),
    (d.identity_transform, NUMBERS, lambda x: x, (0, 0), 1),
    (d.ExpTransform().inv, POSITIVE, np.log, (0, 0), 1),
    (d.ComposeTransform([d.AffineTransform(1.0, -3.0), d.ExpTransform()]).inv, POSITIVE,
     lambda x: (np.log(x) - 1) / -3, (0, 0), -1),
]
EACH = pytest.mark.parametrize("transform, points, formula, dims, sign", TRANSFORMS, ids=[
    f"{i}-{one[0]!r}" for i, one in enumerate(TRANSFORMS)])


@EACH
def test_values_and_back(transform, points, formula, dims, sign):
    x = wide(points)
    y = transform(x)
    np.testing.assert_allclose(y.numpy(), formula(np.array(points)), rtol=1e-12)
    assert_close(transform.inv(y), x)
    assert transform.bijective is transform.inv.bijective is True
    assert transform.domain.check(x).all() and transform.codomain.check(y).all()
    assert transform.forward_shape((5, *x.shape)) == transform.inv.inverse_shape(
        (5, *x.shape)) == (5, *y.shape)
    assert transform.inverse_shape((5, *y.shape)) == transform.inv.forward_shape(
        (5, *y.shape)) == (5, *x.shape)


@EACH
def test_logarithms_of_determinants(transform, points, formula, dims, sign):
    x, step = np.array(points), 1e-6
    jacobian = np.stack([(formula(x + e) - formula(x - e)).ravel() / (2 * step)
                         for e in step * np.eye(3)], -1)[:3]    # the last share is what is left
    expected = np.log(abs(np.diag(jacobian))) if dims[0] == 0 else np.linalg.slogdet(jacobian)[1]
    y = transform(wide(points))
    found = transform.log_abs_det_jacobian(wide(points), y)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(transform.inv.log_abs_det_jacobian(y, wide(points)).numpy(),
                               -expected, rtol=1e-6, atol=1e-8)


def assert_equal_by_rows(function, *batches):
    """Whether a function of batches gives what it gives of each of their rows."""
    rows = [function(*one) for one in zip(*batches)]
    assert_close(function(*batches), tl.stack(rows))


@each("transform, points", [
    *(one[:2] for one in TRANSFORMS), (d.SoftmaxTransform(), NUMBERS),
    (d.AbsTransform(), NUMBERS), (d.LowerCholeskyTransform(), ROOT)])
def test_batches(transform, points):
    x = tl.stack([wide(points), wide(points) * 0.8, wide(points) * 1.1])
    y = transform(x)
    assert_equal_by_rows(transform, x)
    assert_equal_by_rows(transform.inv, y)
    assert_equal_by_rows(transform, tl.stack([x, x * 0.9]))
    assert_equal_by_rows(transform.inv, tl.stack([y, y]))
    if transform.bijective:
        assert_equal_by_rows(transform.log_abs_det_jacobian, x, y)


@EACH
def test_dims_and_signs(transform, points, formula, dims, sign):
    assert (transform.domain.event_dim, transform.codomain.event_dim) == dims
    assert (transform.inv.codomain.event_dim, transform.inv.domain.event_dim) == dims
    assert transform.inv.inv is transform
    if dims[0] == dims[1]:
        assert transform.event_dim == transform.inv.event_dim == dims[0]
    else:
        with pytest.raises(ValueError, match="either .domain.event_dim or .codomain.event_dim"):
            transform.event_dim
    for one in (transform, transform.inv):
        if sign is None:
            with pytest.raises(NotImplementedError, match="has no sign"):
                one.sign
        else:
            assert one.sign == sign


@EACH
def test_caches(transform, points, formula, dims, sign):
    cached, x = transform.with_cache(), wide(points)
    assert cached._cache_size == 1 and type(cached) is type(transform)
    y = cached(x)
    assert cached(x) is y and cached.inv(y) is x and y.equal(transform(x))
    other = y.clone()
    back = cached.inv(other)
    assert back is not x and cached.inv(other) is back and cached(back) is other
    assert_close(back, x)
    assert transform.with_cache(0)(x).equal(y)


def test_what_chooses_an_inverse():
    x = wide([[0.3, -1.0, 2.0]])
    softmax, absolute, root = d.SoftmaxTransform(), d.AbsTransform(), d.LowerCholeskyTransform()
    assert_close(softmax(x), x.exp() / x.exp().sum(-1, True))
    assert_close(softmax.inv(softmax(x)), softmax(x).log())
    assert absolute(x).equal(x.abs()) and absolute.inv(x) is x
    lower = wide([[math.exp(0.3), 0.0], [-1.0, math.exp(2.0)]])
    assert_close(root(wide(ROOT)), lower)
    assert_close(root.inv(lower), wide(ROOT).tril())
    for one in (softmax, absolute, root):
        assert one.bijective is False
        with pytest.raises(NotImplementedError, match=f"{type(one).__name__} has no sign"):
            one.sign
    assert (softmax.event_dim, absolute.event_dim, root.event_dim) == (1, 0, 2)
    assert softmax.forward_shape((2, 3)) == softmax.inverse_shape((2, 3)) == (2, 3)
    with pytest.raises(NotImplementedError, match="AbsTransform has no sign"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), absolute).cdf(tl.tensor(1.0))


def kinds():
    """Transforms no two of which are equal."""
    return [
        d.ExpTransform(), d.SigmoidTransform(), d.SoftplusTransform(), d.TanhTransform(),
        d.AbsTransform(), d.SoftmaxTransform(), d.StickBreakingTransform(),
        d.LowerCholeskyTransform(), d.PowerTransform(2.0), d.PowerTransform(3.0),
        d.PowerTransform(tl.tensor([2.0, 3.0])), d.AffineTransform(1.0, 2.0),
        d.AffineTransform(2.0, 2.0), d.AffineTransform(1.0, 3.0),
        d.AffineTransform(1.0, tl.tensor([2.0, 3.0])), d.ComposeTransform([]),
        d.ComposeTransform([d.ExpTransform()]), d.ComposeTransform([d.TanhTransform()]),
        d.ExpTransform().inv, d.TanhTransform().inv]


def test_which_transforms_are_equal():
    for i, one in enumerate(kinds()):
        assert [j for j, other in enumerate(kinds()) if one == other] == [i]
        assert hash(one) != hash(kinds()[i])             # by identity, as those of modules
    assert d.AffineTransform(tl.tensor(1.0), 2.0) == d.AffineTransform(1.0, tl.tensor(2.0))
    for make in (lambda: d.ReshapeTransform((2,), (2, 1)), lambda: d.IndependentTransform(
            d.ExpTransform(), 1), d.Transform):
        one = make()
        assert one == one and one != make()


@each("transform, text", [
    (d.ExpTransform(), "ExpTransform()"),
    (d.ExpTransform().inv, "_InverseTransform(ExpTransform())"),
    (d.ComposeTransform([d.ExpTransform(), d.TanhTransform()]),
     "ComposeTransform(\n    ExpTransform(),\n    TanhTransform()\n)"),
    (d.IndependentTransform(d.TanhTransform(), 2), "IndependentTransform(TanhTransform(), 2)")])
def test_texts(transform, text):
    assert repr(transform) == text


RESHAPE = d.ReshapeTransform((2,), (1, 2))


@each("call, error, words", [
    (lambda: d.ExpTransform(cache_size=2), ValueError, "cache_size must be 0 or 1"),
    (lambda: d.ExpTransform(cache_size=-1), ValueError, "cache_size must be 0 or 1"),
    (lambda: d.ReshapeTransform((2,), (1, 3)), ValueError, "different numbers of elements"),
    (lambda: RESHAPE(tl.zeros(3)), ValueError, r"expected \(3,\) to end with \(2,\)"),
    (lambda: RESHAPE(tl.zeros(())), ValueError, r"expected \(\) to end with \(2,\)"),
    (lambda: RESHAPE.inverse_shape((2,)), ValueError, r"expected \(2,\) to end with \(1, 2\)"),
    (lambda: RESHAPE.inverse_shape((2, 2)), ValueError, r"\(2, 2\) to end with \(1, 2\)"),
    (lambda: d.StickBreakingTransform().forward_shape(()), ValueError, "Too few dimensions"),
    (lambda: d.StickBreakingTransform().inverse_shape(()), ValueError, "Too few dimensions"),
    (lambda: d.SoftmaxTransform().forward_shape(()), ValueError, "Too few dimensions"),
    (lambda: d.ComposeTransform([d.ExpTransform(), 3]), TypeError,
     "ComposeTransform: part 1 must be a Transform, not int"),
    (lambda: d.IndependentTransform(3, 1), TypeError,
     "IndependentTransform: base_transform must be a Transform, not int"),
    (lambda: d.Transform()(3), NotImplementedError, None),
    (lambda: d.Transform().inv(3), NotImplementedError, None),
    (lambda: d.SoftmaxTransform().log_abs_det_jacobian(tl.ones(2), tl.ones(2)),
     NotImplementedError, None),
])
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_transforms_of_ones_own_have_caches_of_their_own():
    class Scaled(d.Transform):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

    with pytest.raises(NotImplementedError, match="Scaled'>.with_cache is not implemented"):
        Scaled(2).with_cache()
    assert Scaled(2).with_cache(0).factor == 2


# ---- constraints ---------------------------------------------------------------------------------

MATRICES = [[[1, 2], [3, 4]], [[-2, 0], [5, 1]], [[2, 0], [5, 1]], [[0, 0], [0, 1]]]
SYMMETRIC = [[[2, 1], [1, 2]], [[1, 2], [2, 1]], [[0, 0], [0, 1]]]
# a set, values, which of them are in it, the dims of a value, whether it is discrete
SETS = [
    (constraints.real, [0, inf, nan], [1, 1, 0], 0, False),
    (constraints.boolean, [0, 1, 0.5, 2], [1, 1, 0, 0], 0, True),
    (constraints.integer_interval(1, 3), [0, 1, 1.5, 3, 4], [0, 1, 0, 1, 0], 0, True),
    (constraints.nonnegative_integer, [-1, 0, 0.5, 3], [0, 1, 0, 1], 0, True),
    (constraints.positive_integer, [0, 1, 1.5], [0, 1, 0], 0, True),
    (constraints.one_hot, [[0, 1], [1, 1], [0.5, 0.5], [0, 0]], [1, 0, 0, 0], 1, True),
    (constraints.positive, [-1, 0, 1e-9], [0, 0, 1], 0, False),
    (constraints.nonnegative, [-1, 0, 1], [0, 1, 1], 0, False),
    (constraints.less_than(1), [0, 1, 1.5, nan], [1, 0, 0, 0], 0, False),
    (constraints.interval(1, 3), [0, 1, 3, 4], [0, 1, 1, 0], 0, False),
    (constraints.unit_interval, [-0.1, 0, 1, 1.1], [0, 1, 1, 0], 0, False),
    (constraints.half_open_interval(1, 3), [0, 1, 3], [0, 1, 0], 0, False),
    (constraints.simplex, [[0.5, 0.5], [1.5, -0.5], [0.5, 0.4]], [1, 0, 0], 1, False),
    (constraints.multinomial(3), [[0, 1], [3, 1], [-1, 4], [1, 2]], [1, 0, 0, 1], 1, True),
    (constraints.lower_triangular, MATRICES, [0, 1, 1, 1], 2, False),
    (constraints.lower_cholesky, MATRICES, [0, 0, 1, 0], 2, False),
    (constraints.square, MATRICES, [1, 1, 1, 1], 2, False),
    (constraints.symmetric, MATRICES, [0, 0, 0, 1], 2, False),
    (constraints.symmetric, SYMMETRIC, [1, 1, 1], 2, False),
    (constraints.positive_definite, SYMMETRIC, [1, 0, 0], 2, False),
    *((one, [[[1, 2, 3], [4, 5, 6]]], [0], 2, False) for one in (
        constraints.square, constraints.symmetric, constraints.positive_definite)),
    (constraints.real_vector, [[1, nan], [1, 2]], [0, 1], 1, False),
    (constraints.independent(constraints.boolean, 2), [[[1, 0]], [[1, 2]]], [1, 0], 2, True),
    (constraints.independent(constraints.simplex, 1), [[[1, 0], [0, 1]], [[1, 0], [1, 1]]],
     [1, 0], 2, False),
]


@each("constraint, values, held, event_dim, is_discrete", SETS)
def test_sets_of_values(constraint, values, held, event_dim, is_discrete):
    found = constraint.check(tl.tensor(values, dtype=tl.float32))
    assert found.dtype == tl.bool and found.tolist() == [bool(one) for one in held]
    assert (constraint.event_dim, constraint.is_discrete) == (event_dim, is_discrete)


def test_sets_that_depend_on_other_values():
    class Own(d.Distribution):
        arg_constraints = {"loc": constraints.dependent(event_dim=1)}

        @constraints.dependent_property(is_discrete=True, event_dim=1)
        def support(self):
            return constraints.multinomial(3)

        @constraints.dependent_property(event_dim=2)
        def other(self):
            return constraints.square

    assert constraints.is_dependent(constraints.dependent) and constraints.is_dependent(Own.support)
    assert (Own.support.is_discrete, Own.support.event_dim) == (True, 1)
    known = Own.arg_constraints["loc"]
    assert constraints.is_dependent(known) and known.event_dim == 1
    assert (known(is_discrete=True).is_discrete, known(is_discrete=True).event_dim) == (True, 1)
    assert known(event_dim=0).event_dim == 0 and Own.other.event_dim == 2
    for unknown in (constraints.dependent, known, Own.other):
        with pytest.raises(NotImplementedError, match="is_discrete of a dependent constraint"):
            unknown.is_discrete
    own = Own(validate_args=False)
    assert own.other is constraints.square and own.support.upper_bound == 3
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        constraints.dependent.check(tl.ones(2))
    with pytest.raises(ValueError, match=r"Expected value.dim\(\) >= 2 but got 1"):
        constraints.independent(constraints.real, 2).check(tl.ones(2))
    with pytest.raises(NotImplementedError):
        constraints.Constraint().check(tl.ones(2))


BIJECTED = [
    (constraints.real, lambda x: x), (constraints.positive, np.exp),
    (constraints.nonnegative, np.exp), (constraints.greater_than(2.0), lambda x: np.exp(x) + 2),
    (constraints.greater_than_eq(tl.zeros(1)), np.exp),
    (constraints.less_than(2.0), lambda x: 2 - np.exp(x)),
    (constraints.unit_interval, lambda x: 1 / (1 + np.exp(-x))),
    (constraints.interval(1.0, 4.0), lambda x: 1 + 3 / (1 + np.exp(-x))),
    (constraints.interval(0.0, 2.0), lambda x: 2 / (1 + np.exp(-x))),
    (constraints.interval(tl.tensor([0.0]), tl.tensor([1.0])), lambda x: 1 / (1 + np.exp(-x))),
    (constraints.half_open_interval(1.0, 4.0), lambda x: 1 + 3 / (1 + np.exp(-x))),
    (constraints.real_vector, lambda x: x),
    (constraints.independent(constraints.positive, 1), np.exp),
]


@each("constraint, formula", BIJECTED)
@each("registry", [d.biject_to, d.transform_to])
def test_from_all_numbers_to_sets(registry, constraint, formula):
    transform = registry(constraint)
    y = transform(wide(NUMBERS))
    np.testing.assert_allclose(y.numpy(), formula(np.array(NUMBERS)), rtol=1e-12)
    assert constraint.check(y).all() and transform.codomain.event_dim == constraint.event_dim
    if isinstance(constraint, constraints.independent):
        assert transform.log_abs_det_jacobian(wide(NUMBERS), y).ndim == 0


def test_registries_differ_for_shares():
    assert d.biject_to(constraints.simplex) == d.StickBreakingTransform()
    assert d.transform_to(constraints.simplex) == d.SoftmaxTransform()
    assert d.biject_to(constraints.lower_cholesky) == d.LowerCholeskyTransform()
    assert d.biject_to(constraints.interval(0, 1)) == d.SigmoidTransform()
    assert d.biject_to(constraints.positive) == d.ExpTransform()


def test_sets_of_ones_own_are_registered():
    class Own(constraints.Constraint):
        pass

    with pytest.raises(NotImplementedError, match="Cannot transform Own constraints"):
        d.biject_to(Own())

    @d.biject_to.register(Own)
    def exponential(constraint):
        return d.ExpTransform()

    assert d.biject_to(Own()) == exponential(None) == d.ExpTransform()
    with pytest.raises(NotImplementedError, match="Cannot transform Own constraints"):
        d.transform_to(Own())
    d.biject_to.register(Own(), lambda constraint: d.TanhTransform())
    assert d.biject_to(Own()) == d.TanhTransform()
    for wrong in (3, int):
        with pytest.raises(TypeError, match="either a Constraint subclass or instance, but got"):
            d.biject_to.register(wrong, len)


def test_halves_are_transformed_distributions():
    for kind, base in ((d.HalfNormal, d.Normal), (d.HalfCauchy, d.Cauchy)):
        half = kind(tl.tensor([1.0, 2.0]))
        assert isinstance(half, d.TransformedDistribution)
        assert type(half.base_dist) is base and half.scale is half.base_dist.scale
        assert half.expand((3, 2)).scale.shape == (3, 2)
        half.base_dist.scale = tl.tensor([3.0, 3.0])
        expected = kind(3.0).log_prob(tl.tensor(2.0))
        assert_close(half.log_prob(tl.tensor([2.0, 2.0])), expected.expand(2))
        with pytest.raises(ValueError, match="scale"):
            kind(-1.0)


class Learnt(d.Transform, tl.nn.Module):
    """A transform that is a module as well, as in flows."""

    domain = codomain = constraints.real
    bijective = True

    def __init__(self, cache_size=0):
        super().__init__(cache_size)
        self.shift = tl.nn.Parameter(tl.ones(()))
        self.inversions = 0

    def _call(self, x):
        return x + self.shift

    def _inverse(self, y):
        self.inversions += 1
        return y - self.shift

    def log_abs_det_jacobian(self, x, y):
        return tl.zeros_like(x)

    __hash__ = tl.nn.Module.__hash__


@each("cache_size", [0, 1])
def test_a_transform_may_be_a_module(cache_size):
    transform = Learnt(cache_size)
    assert [name for name, _ in transform.named_parameters()] == ["shift"]
    flow = d.TransformedDistribution(d.Normal(0.0, 1.0), [transform])
    x = flow.rsample()
    (flow.log_prob(x) + x).backward()
    assert transform.shift.grad is not None and transform.inversions == 1 - cache_size
    assert (transform._inv_call(transform(x)) - x).abs() < 1e-6
    assert cache_size == 0 or transform._cached_x_y[0] is x
