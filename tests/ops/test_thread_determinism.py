"""The same bits with one thread and with two, of results and gradients: every operation, with
samples that are large enough for threads to share the work, LAPACK's included."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.distributions import MultivariateNormal
from tensorlib.testing.catalogue import call, dtypes_taken, is_data, outputs, samples
from tests.ops.catalogue import operations

MOST = 40_000            # elements of a tensor; the work of a matrix is more than its size
LARGEST = 500_000        # elements of a result


def factor_of(arrays):
    """By how much dims can be longer for the largest array to have some MOST elements."""
    return min(int((MOST / x.size) ** (1 / x.ndim)) for x in arrays if x.ndim and x.size)


def enlarged(op, sample, rng):
    """A float32 sample with longer dims; None where it has no real numbers to enlarge."""
    data = [x for i, x in enumerate(sample.arrays) if is_data(op, i, x)]
    if not any(x.ndim and x.size for x in data):
        return None
    times = factor_of([x for x in sample.arrays if x.ndim])
    while times > 1 and result_size(op, sample, times) > LARGEST:
        times //= 2

    def longer(i, array):
        shape = longer_shape(array, times)
        if not of_float32(op, i, array):
            return np.resize(array, shape)
        return np.resize(array.astype(np.float32), shape) * rng.uniform(0.9, 1, shape).astype("f")
    return sample.map(longer)


def of_float32(op, place, array):
    """Whether an array is of the numbers that become those of a float32 sample."""
    return is_data(op, place, array) and array.dtype.kind == "f"


def longer_shape(array, times):
    """The shape with `times` as many elements along each dim that has more than one."""
    return tuple(n * times if n > 1 else n for n in array.shape)


def result_size(op, sample, times):
    """How many elements the results for the longer sample have together, from the shapes alone; 0
    where that follows from values."""
    def empty(i, x):
        dtype = tl.float32 if of_float32(op, i, x) else tl.tensor(x[:0]).dtype
        return tl.empty(longer_shape(x, times), dtype=dtype, device="meta")
    try:
        given = sample.map(lambda i, x: empty(i, x) if x.ndim else tl.tensor(x))
        return sum(x.numel() for x in outputs(call(op, given)))
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
        return 0


def bits_with(threads, op, sample):
    """The bits of what an operation gives, and of its gradients; None where it refuses."""
    tl.set_num_threads(threads)
    given = sample.map(lambda i, x: tl.tensor(x).requires_grad_(
        op.differentiable and x.dtype == np.float32))
    try:
        results = outputs(call(op, given))
        found = [x.detach() for x in results]
        roots = [x for x in results if x.requires_grad]
        if roots:
            leaves = [x for x in given.arrays if x.requires_grad]
            grads = tl.autograd.grad(roots, leaves, [tl.ones_like(x) for x in roots],
                                     allow_unused=True)
            found += [g for g in grads if g is not None]
    except (RuntimeError, ValueError, IndexError, AssertionError):
        return None
    return [x.numpy().tobytes() for x in found]


@pytest.fixture
def threads():
    before = tl.get_num_threads()
    yield
    tl.set_num_threads(before)


@operations("layouts", lambda op: not (op.random or op.may_view) and op.returns is tl.Tensor
            and op.name != "combinations")        # of so many elements there is no room for
def test_bits_do_not_depend_on_the_number_of_threads(op, threads):
    if "float32" not in dtypes_taken(op):
        return
    rng = np.random.default_rng(0)
    for sample in samples(op)[:3]:
        larger = enlarged(op, sample, rng)
        if larger is not None:
            assert bits_with(1, op, larger) == bits_with(2, op, larger)


def test_matrices_of_libraries_too(threads):
    """Samples of `linalg` that fit no longer when all dims grow, and what draws by factors."""
    rng = np.random.default_rng(0)
    square, tall, wide = (rng.normal(size=shape).astype(np.float32)
                          for shape in ((200, 200), (300, 170), (170, 300)))
    found = []
    for n in (1, 2):
        tl.set_num_threads(n)
        tl.manual_seed(0)
        a, b, c = (tl.tensor(x, requires_grad=True) for x in (square, tall, wide))
        for out in (tl.linalg.pinv(a), tl.linalg.pinv(b), tl.linalg.pinv(c),
                    tl.linalg.lstsq(b, tl.ones(300, 3)).solution,
                    tl.linalg.lstsq(c, tl.ones(170, 3)).solution, tl.linalg.inv(a),
                    tl.linalg.det(a / 10), tl.linalg.qr(b).R, tl.linalg.svdvals(c)):
            found.append((n, out.detach().numpy().tobytes()))
            out.square().sum().backward()
        found += [(n, x.grad.numpy().tobytes()) for x in (a, b, c)]
        covariance = (a.detach() @ a.detach().mT + 200 * tl.eye(200)).requires_grad_()
        normal = MultivariateNormal(tl.zeros(200), covariance)
        sample = normal.rsample((20,))
        normal.log_prob(sample.detach()).sum().backward()
        found += [(n, x.detach().numpy().tobytes()) for x in (sample, covariance.grad)]
    ones, twos = ([x for k, x in found if k == n] for n in (1, 2))
    assert len(ones) == len(twos) and [x == y for x, y in zip(ones, twos)] == [True] * len(ones)
