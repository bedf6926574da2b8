"""Work of every kind is shared: what one thread is at for some 20 us, a worker takes part in."""

import time

import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.base import pool

N = 65_536
POSITIONS = tl.arange(255, -1, -1)

WORK = {
    "addition": (lambda x: x + x, (4 * N,)),
    "sine": (lambda x: x.sin(), (N // 2,)),
    "addition of a transposed matrix": (lambda x: x + x.t(), (256, 256)),
    "copy of a transposed matrix": (lambda x: x.t().contiguous(), (512, 512)),
    "sum": (lambda x: x.sum(), (8 * N,)),
    "argmax of rows": (lambda x: x.max(1), (256, 256)),
    "softmax": (lambda x: x.softmax(1), (256, 256)),
    "cat of two": (lambda x: tl.cat((x, x)), (4 * N,)),
    "cat of many": (lambda x: tl.cat(x.unbind(0)), (64, 1024)),
    "gather": (lambda x: x.gather(0, POSITIONS.unsqueeze(1).expand(256, 256)), (256, 256)),
    "index_select": (lambda x: x.index_select(0, POSITIONS), (256, 256)),
    "product, 256 x 256": (lambda x: x @ x, (256, 256)),
    "product of a tall matrix": (lambda x: x @ x[:64], (2048, 64)),
    "matrix and vector": (lambda x: x @ x[0], (512, 512)),
    "products of a batch": (lambda x: x @ x, (64, 32, 32)),
}

pytestmark = pytest.mark.usefixtures("restore_threads")


@pytest.mark.skipif(pool.usable_processors() < 2, reason="needs two processors")
@each("name", WORK)
def test_a_worker_takes_part(name):
    """Where other programs use the processors it may take some time."""
    run, shape = WORK[name]
    x = tl.rand(shape)
    pool.set_num_threads(2)
    before, end = pool.chunks_by_workers(), time.monotonic() + 30
    while pool.chunks_by_workers() == before:
        run(x)
        assert time.monotonic() < end


@each("name", WORK)
def test_the_bits_are_those_of_one_thread(name):
    run, shape = WORK[name]
    x = tl.rand(shape)
    found = []
    for threads in (1, 2, 3):
        pool.set_num_threads(threads)
        result = run(x)
        found.append([part.numpy().tobytes() for part in (
            [result] if isinstance(result, tl.Tensor) else result)])
    assert found[0] == found[1] == found[2]


def test_gather_notices_positions_out_of_range_in_every_part():
    x, positions = tl.rand(512, 256), tl.zeros(512, 256, dtype=tl.int64)
    pool.set_num_threads(2)
    for row in (0, 200, 511):
        wrong = positions.clone()
        wrong[row, 255] = 512
        with pytest.raises(IndexError, match="index 512 is out of bounds"):
            x.gather(0, wrong)
    positions[300, 3] = -1
    assert x.gather(0, positions)[300, 3] == x[511, 3]
