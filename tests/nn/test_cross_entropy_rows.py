"""Cross-entropy with targets that are classes, row by row: short rows are computed side by side."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn.functional import cross_entropy, nll_loss

CLASSES = 1, 2, 10, 31, 32, 33, 100
ROWS = 1, 2, 15, 16, 17, 40
ULP = {"float32": 2.0 ** -23, "float64": 2.0 ** -52}


def logits_and_targets(rows, classes, dtype, seed=0):
    random = np.random.default_rng([seed, rows, classes])
    x = random.normal(size=(rows, classes)) * 5
    return x.astype(dtype), random.integers(0, classes, rows)


def expected(x, targets, g):
    """The losses, and the gradient of their sum weighted by `g`, in float64 or wider."""
    x = x.astype(np.longdouble)
    shifted = np.exp(x - x.max(1, keepdims=True))
    total = shifted.sum(1, keepdims=True)
    losses = np.log(total[:, 0]) + x.max(1) - x[np.arange(len(x)), targets]
    slopes = shifted / total
    slopes[np.arange(len(x)), targets] -= 1
    return losses, slopes * g[:, None]


def found(x, targets, g, **options):
    given = tl.tensor(x, requires_grad=True)
    losses = cross_entropy(given, tl.tensor(targets), reduction="none", **options)
    losses.backward(tl.tensor(g.astype(x.dtype)))
    return losses.detach().numpy(), given.grad.numpy()


@each("dtype", ["float32", "float64"])
@each("classes", CLASSES)
@each("rows", ROWS)
def test_losses_and_gradients_are_right(rows, classes, dtype):
    x, targets = logits_and_targets(rows, classes, dtype)
    g = np.random.default_rng(rows).normal(size=rows)
    losses, slopes = expected(x, targets, g.astype(dtype))
    mine, slope = found(x, targets, g)
    size = ULP[dtype] * np.abs(x).max()
    np.testing.assert_allclose(mine, losses.astype("float64"), rtol=8 * ULP[dtype], atol=8 * size)
    np.testing.assert_allclose(slope, slopes.astype("float64"), rtol=0, atol=16 * size * np.abs(
        g).max())


@pytest.mark.parametrize("classes", CLASSES)
def test_a_row_does_not_depend_on_those_beside_it(classes):
    x, targets = logits_and_targets(37, classes, "float32")
    g = np.linspace(-1, 1, 37)
    losses, slopes = found(x, targets, g)
    for begin, end in (0, 1), (3, 4), (5, 21), (20, 37), (36, 37):
        part = found(x[begin:end], targets[begin:end], g[begin:end])
        np.testing.assert_array_equal(part[0], losses[begin:end])
        np.testing.assert_array_equal(part[1], slopes[begin:end])


@pytest.mark.parametrize("classes", CLASSES)
def test_what_is_not_finite_stays_in_its_row(classes):
    x, targets = logits_and_targets(20, classes, "float32")
    losses, slopes = found(x, targets, np.ones(20))
    spoilt = x.copy()
    spoilt[1, classes - 1], spoilt[6, 0], spoilt[9] = np.nan, np.inf, -np.inf
    mine, slope = found(spoilt, targets, np.ones(20))
    bad = np.isin(np.arange(20), [1, 6, 9])
    assert np.isnan(mine[bad]).all() and np.isnan(slope[bad]).all()
    np.testing.assert_array_equal(mine[~bad], losses[~bad])
    np.testing.assert_array_equal(slope[~bad], slopes[~bad])


@pytest.mark.parametrize("classes", [2, 10, 32, 33])
def test_logits_far_apart(classes):
    x = np.full((3, classes), -np.inf, "float32")
    x[:, 0], x[1, 1], x[2] = 0, -200, np.linspace(3e38, -3e38, classes)
    losses, slopes = found(x, np.zeros(3, "int64"), np.ones(3))
    assert losses.tolist() == [0, 0, 0] and not slopes.any()


@pytest.mark.parametrize("classes", CLASSES)
def test_rows_that_are_ignored_or_do_not_matter(classes):
    x, targets = logits_and_targets(35, classes, "float32")
    g = np.ones(35)
    losses, slopes = found(x, targets, g)
    ignored = np.arange(35) % 3 == 1
    idle = np.arange(35) % 5 == 2
    spoilt = x.copy()
    spoilt[ignored | idle] = np.nan
    g[idle] = 0
    mine, slope = found(spoilt, np.where(ignored, -7, targets), g, ignore_index=-7)
    assert not mine[ignored].any() and not slope[ignored | idle].any()
    rest = ~(ignored | idle)
    np.testing.assert_array_equal(mine[rest], losses[rest])
    np.testing.assert_array_equal(slope[rest], slopes[rest])


@each("classes", CLASSES)
@each("row", [0, 15, 16, 34])
def test_a_target_that_is_no_class_is_refused(classes, row):
    x, targets = logits_and_targets(35, classes, "float32")
    for wrong in classes, -1, 2 ** 62, -2 ** 63:
        other = targets.copy()
        other[row] = wrong
        with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds.*of row {row}$"):
            found(x, other, np.ones(35))
        given = tl.tensor(x, requires_grad=True)           # and where it is written afterwards
        places = tl.tensor(targets)
        losses = cross_entropy(given, places, reduction="none")
        with tl.no_grad():
            places.data[row] = wrong
        with pytest.raises((IndexError, RuntimeError)):
            losses.sum().backward()


def both_ways(x, targets, classes, function=cross_entropy, **options):
    """The losses and gradients of images, and of their pixels as rows."""
    image = tl.tensor(x).requires_grad_()
    loss = function(image, tl.tensor(targets), **options)
    (loss * tl.arange(1, 1 + loss.numel()).reshape(loss.shape)).sum().backward()
    rows = tl.tensor(np.moveaxis(x, 1, -1).reshape(-1, classes)).requires_grad_()
    loss_of_rows = function(rows, tl.tensor(targets.reshape(-1)), **options)
    (loss_of_rows * tl.arange(1, 1 + loss.numel()).reshape(loss_of_rows.shape)).sum().backward()
    slopes = rows.grad.reshape(*targets.shape, classes).movedim(-1, 1)
    return (loss.detach(), image.grad), (loss_of_rows.detach().reshape(loss.shape), slopes)


@each("places", [(1,), (15,), (16,), (17,), (3, 11), (0,)])
@each("classes", CLASSES)
@each("dtype", ["float32", "float64"])
def test_pixels_are_as_rows(dtype, classes, places):
    x, targets = logits_and_targets(2 * int(np.prod(places)), classes, dtype)
    x = np.moveaxis(x.reshape(2, *places, classes), -1, 1)
    targets = np.where(targets % 4 == 3, -1, targets).reshape(2, *places)
    weight = tl.linspace(0.5, 1.5, classes, dtype=getattr(tl, dtype))
    for options in {}, {"weight": weight}, {"label_smoothing": 0.25, "weight": weight}:
        for function in (cross_entropy, nll_loss)[:1 + ("label_smoothing" not in options)]:
            for reduction in "none", "sum", "mean":
                images, rows = both_ways(x, targets, classes, function, ignore_index=-1,
                                         reduction=reduction, **options)
                for mine, other in zip(images, rows, strict=True):
                    tl.testing.assert_close(mine, other, equal_nan=True)
                    if classes <= 32 and not options and reduction == "none":
                        assert tl.equal(mine, other)


def test_pixels_of_any_layout_and_threads():
    x, targets = logits_and_targets(4 * 60 * 50, 7, "float32")
    x, targets = tl.tensor(x).reshape(4, 60, 50, 7), tl.tensor(targets).reshape(4, 60, 50)
    before, bits = tl.get_num_threads(), []
    try:
        for threads in 1, 2, 3:
            tl.set_num_threads(threads)
            for image in x.movedim(-1, 1), x.movedim(-1, 1).contiguous():
                image = image.detach().requires_grad_()
                loss = cross_entropy(image, targets)
                loss.backward()
                bits.append((loss.item(), image.grad.sum(1).abs().max().item(),
                             image.grad.contiguous().numpy().tobytes()))
    finally:
        tl.set_num_threads(before)
    assert len(set(bits)) == 1 and bits[0][1] < 1e-8
    half = cross_entropy(x.movedim(-1, 1).half(), targets)
    assert half.dtype is tl.float16 and abs(half.item() - bits[0][0]) < 1e-2


def test_what_is_no_class_of_a_pixel_is_refused():
    x, wrong = tl.zeros(2, 3, 4, 5), tl.zeros(2, 4, 5, dtype=tl.int64)
    wrong[1, 2, 3] = 3
    for function in cross_entropy, nll_loss:
        for reduction in "none", "sum", "mean":
            with pytest.raises(IndexError, match="Target 3 is out of .* of row 33"):
                function(x, wrong, reduction=reduction)
            with pytest.raises(IndexError):
                function(x, wrong, weight=tl.ones(3), reduction=reduction)
        with pytest.raises(ValueError, match="not a valid value for reduction"):
            function(x, wrong * 0, reduction="most")


def test_weights_of_classes_have_gradients():
    x, targets = logits_and_targets(6, 3, "float64")
    x, targets = tl.tensor(x), tl.tensor(targets)
    for reduction in "none", "sum", "mean":
        assert tl.testing.gradcheck(lambda w, reduction=reduction: cross_entropy(
            x, targets, w, reduction=reduction), tl.ones(3, dtype=tl.float64).requires_grad_())
