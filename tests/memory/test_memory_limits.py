"""Allocations fail, and sizes are beyond the machine: an error that says so, and all goes on."""

import pytest
from cases import each
from process import run_forked

import tensorlib as tl


@pytest.mark.parametrize("run", [
    lambda: tl.tril_indices(2**20, 2**20), lambda: tl.triu_indices(2**20, 2**20),
    lambda: tl.ones(3).repeat_interleave(2**44), lambda: tl.ones(2**44), lambda: tl.arange(2**44),
    lambda: tl.ones(1).expand(2**44).clone(),
    lambda: tl.eye(2**22, 2**22), lambda: tl.rand(2**44),
    lambda: tl.unique_consecutive(tl.ones(1).expand(2**40))])
def test_sizes_beyond_the_machine(run):
    with pytest.raises(tl.OutOfMemoryError):
        run()


@each("n", [2**31 - 1, 2**31, 10**6, 0, -1])
def test_a_number_of_threads_that_no_machine_has(n):
    before = tl.get_num_threads()
    with pytest.raises(RuntimeError, match="set_num_threads"):
        tl.set_num_threads(n)
    assert tl.get_num_threads() == before


LIMITED = """
import resource
import tensorlib as tl
tl.ones(10).sum()
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), used + (300 << 20)))
kept = []
for _ in range(3):
    try:
        x = tl.ones(1 << 20, requires_grad=True)
        for _ in range(1000):
            x = (x * 2).tanh()
    except tl.OutOfMemoryError:
        del x
        y = tl.ones(1000, requires_grad=True)
        (y * y).sum().backward()
        assert y.grad.sum().item() == 2000
print("done")
"""


def test_a_limit_of_addresses():
    assert run_forked(LIMITED) == "done\n"


def test_copies_of_numpys_that_do_not_fit_are_named():
    """NumPy's own error for them is no RuntimeError, as PyTorch's is."""
    with pytest.raises(tl.OutOfMemoryError, match=r"^\w+: Unable to allocate"):
        tl.geqrf(tl.ones(1).expand(2**40, 1))


class TooLong:
    def __iter__(self):
        return iter(bytes(2**60))


def test_pythons_own_error_of_no_memory_is_named():
    """Python 3.14 makes a tuple of a long range until there is no memory left."""
    with pytest.raises(tl.OutOfMemoryError, match="linalg_tensorsolve"):
        tl.linalg.tensorsolve(tl.tensor([0, 1, 1]), tl.ones(2), TooLong())


@pytest.mark.parametrize("shape", [(0, 2**40), (2**40, 0)])
def test_singular_values_of_matrices_without_elements_take_no_time(shape):
    u, values, vh = tl.linalg.svd(tl.ones(*shape), full_matrices=False)
    assert (u.shape, values.shape, vh.shape) == ((shape[0], 0), (0,), (0, shape[1]))
    assert tl.linalg.svdvals(tl.ones(*shape)).shape == (0,)
    assert tl.pinverse(tl.ones(*shape)).shape == shape[::-1]
