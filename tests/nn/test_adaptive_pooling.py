"""Adaptive pools of means: windows that differ in size, and their gradients."""

import numpy as np
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F
from tensorlib.testing import assert_close

CASES = [  # the plane, and how many windows
    ((32, 30), (7, 4)), ((5, 3), (9, 2)), ((8, 8), (4, 2)), ((64, 65), (1, 1)), ((7, 7), (1, 3)),
    ((1, 9), (1, 4)), ((90, 90), (2, 2)), ((90, 90), (2, 7)), ((6, 6), (6, 6)), ((4, 6), (0, 3)),
]


def weights(size, count):
    """What each window takes of each element, along a dim."""
    found = np.zeros((count, size))
    for i in range(count):
        part = slice(i * size // count, -(-(i + 1) * size // count))
        found[i, part] = 1 / len(range(*part.indices(size)))
    return found


@each("dtype", ["float16", "float32", "float64"])
@each("size, counts", CASES, ids=str)
def test_means_and_their_gradients(size, counts, dtype):
    rng = np.random.default_rng(0)
    x = tl.from_numpy(rng.random((3, 20, *size)).astype(dtype)).requires_grad_()
    g = tl.from_numpy(rng.random((3, 20, *counts)).astype(dtype))
    rows, columns = (weights(*each) for each in zip(size, counts))
    out = F.adaptive_avg_pool2d(x, counts)
    out.backward(g)
    near = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    wanted = rows @ x.detach().numpy().astype(float) @ columns.T
    assert_close(out.detach().numpy(), wanted.astype(dtype), rtol=near, atol=near)
    wanted = rows.T @ g.numpy().astype(float) @ columns
    assert_close(x.grad.numpy(), wanted.astype(dtype), rtol=near, atol=near)


def test_an_infinity_stays_in_its_windows():
    x = tl.zeros(1, 1, 5)
    x[0, 0, 4] = float("inf")
    assert F.adaptive_avg_pool1d(x, 3).tolist() == [[[0.0, 0.0, float("inf")]]]


def test_layouts_batches_and_two_threads_agree():
    x = tl.from_numpy(np.random.default_rng(0).random((6, 40, 40, 33)).astype("float32"))
    before, found = tl.get_num_threads(), []
    try:
        for n_threads in (1, 2):
            tl.set_num_threads(n_threads)
            found.append(F.adaptive_avg_pool2d(x, (7, 5)))
    finally:
        tl.set_num_threads(before)
    copied = x.transpose(2, 3).contiguous().transpose(2, 3)
    found += [F.adaptive_avg_pool2d(copied, (7, 5)), tl.stack(
        [F.adaptive_avg_pool2d(one, (7, 5)) for one in x]),
        tl.func.vmap(lambda one: F.adaptive_avg_pool2d(one, (7, 5)))(x)]
    for other in found[1:]:
        np.testing.assert_array_equal(other.numpy(), found[0].numpy())
