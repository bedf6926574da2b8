"""Nothing that a caller can do reads or writes memory that is not a tensor's.

Here are sizes that overflow and arguments whose conversion runs code; `test_memory_in_use.py` has
memory that is released while it is used, and positions that change after they were checked. The
places by which all this is shut out are held by `test_memory_safety_sources.py`.
"""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.tensor.numbers import OutOfRangeError

TOO_LARGE = (RuntimeError, MemoryError)


# ---- sizes ---------------------------------------------------------------------------------------

def column(n):
    return tl.zeros(1).expand(n)


@each("call", [
    lambda: tl.zeros(2**40, 0) @ tl.zeros(0, 2**40),
    lambda: tl.zeros(2**30, 1, 0) @ tl.zeros(1, 0, 2**40),
    lambda: tl.where(column(2**22)[:, None, None] > 0, column(2**22)[None, :, None],
                     column(2**22)[None, None, :]),
    lambda: column(2**30)[:, None] + column(2**30)[None, :],
    lambda: column(2**31)[:, None] == column(2**31)[None, :],
    lambda: tl.zeros(3, 6148914691236517206, 0).sum(2),
    lambda: tl.zeros(2**40, 2**40, 0),
    lambda: tl.cat([tl.zeros(1).expand(2**62)] * 4),
    lambda: tl.cat([column(2**58)] * 40),
    lambda: tl.stack([column(2**58)] * 40),
    lambda: tl.ones(1).expand(2**63 - 1).nbytes,
    lambda: memoryview(tl.ones(1).expand(2**62)),
    lambda: tl.ones(1).expand(2**40, 2**40),
    lambda: tl.ones(1, 1).repeat(2**40, 2**40),
    lambda: tl.ones(1).tile(2**40, 2**40),
    lambda: column(2**40).repeat_interleave(2**30),
    lambda: tl.zeros(2, 3, 4).repeat_interleave(2**62),    # 24 times it is 0 in 64 bits
    lambda: np.repeat(tl.zeros(2, 3, 4), 2**62),
    lambda: column(2**59).diag(),
    lambda: tl.eye(2**40, 2**40),
    lambda: column(2**45).unsqueeze(1).expand(-1, 2**45),
    lambda: column(2**40)[:, None].gather(0, tl.zeros(1, 1, dtype=tl.int64).expand(2**50, 1)),
    lambda: column(2**58)[tl.zeros(1, dtype=tl.int64).expand(2**58)[None].expand(2**3, 2**58)],
    lambda: tl.from_numpy(np.broadcast_to(np.int8(1), 2**62)),
    lambda: tl.tensor([np.broadcast_to(np.int8(1), 2**60)] * 4),
    lambda: column(2**58).to(tl.float64),
    lambda: column(2**50).clone(),
    lambda: column(2**50)[None].tril(),
    lambda: column(2**50).cumsum(0),
    lambda: tl.zeros(0, 3).chunk(2**62),
    lambda: tl.zeros(0, 3).tensor_split(2**40),
    lambda: column(2**50).split(1),
    lambda: tl.zeros(0, 3).split(tl.zeros(1, dtype=tl.int64).expand(2**40)),
    lambda: tl.hstack(column(2**40)),
    lambda: column(2**50).unbind(),
])
def test_sizes_beyond_memory_are_refused(call):
    with pytest.raises(TOO_LARGE):
        call()


def test_the_largest_views_count_their_bytes():
    x = tl.ones(1, dtype=tl.float64).expand(2**59)
    assert x.numel() == 2**59 and x.nbytes == 2**62
    assert memoryview(x).nbytes == 2**62
    assert tl.Size([2**40, 2**40]).numel() == 2**80


def test_a_product_over_a_broadcast_dim_counts_its_work():
    x = tl.ones(1, 1).expand(3, 2**57)
    for call in (lambda: x.T @ x, lambda: x @ x.T, lambda: tl.zeros(0, 2**57) @ x.T):
        with pytest.raises(TOO_LARGE):
            call()


# ---- arguments -----------------------------------------------------------------------------------

class Lying(int):
    """An int whose comparisons and sums say what suits."""

    def __lt__(self, other): return False
    def __gt__(self, other): return False
    def __le__(self, other): return True
    def __ge__(self, other): return True
    def __eq__(self, other): return True
    def __add__(self, other): return 0
    __radd__ = __sub__ = __rsub__ = __mod__ = __mul__ = __rmul__ = __add__
    __hash__ = int.__hash__


@each("call", [
    lambda x, n: x.narrow(0, n(1), n(10**6)),
    lambda x, n: x.narrow(0, n(-10**6), n(2)),
    lambda x, n: x.narrow(n(7), 0, 1),
    lambda x, n: x.select(0, n(10**6)),
    lambda x, n: x[n(10**6)],
    lambda x, n: x.split([n(10**6), n(-10**6 + 4)]),
    lambda x, n: x.unfold(0, n(10**6), n(1)) if hasattr(x, "unfold") else x[n(2**40)],
    lambda x, n: x.reshape(n(2), n(10**6)),
    lambda x, n: x.transpose(n(0), n(9)),
    lambda x, n: x.permute(n(0), n(0)),
    lambda x, n: x.sum(n(5)),
    lambda x, n: x.index_select(0, tl.tensor([n(10**6)])),
    lambda x, n: x.gather(0, tl.tensor([[n(10**6)]])),
])
@each("number", [int, Lying, np.int64])
def test_integers_are_what_they_are_not_what_they_say(call, number):
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
        call(tl.arange(16.0).reshape(4, 4), number)


def test_small_integers_of_numpy_do_not_wrap():
    x = tl.arange(400.0)
    assert x.narrow(0, np.int8(100), np.int8(100)).tolist() == list(range(100, 200))
    assert tl.ones(3).repeat(np.int8(100)).shape == (300,)
    with pytest.raises(RuntimeError):
        x.narrow(0, np.int64(5), np.int64(2**63 - 1))


class Changing:
    """A number that, when it is converted, gives tensors other memory."""

    def __init__(self, value, *tensors, to=lambda: tl.zeros(1)):
        self.value, self.tensors, self.to = value, tensors, to

    def change(self):
        for x in self.tensors:
            x.data = self.to()
        tl.memory.empty_cache()
        self.noise = [tl.full((1000,), 7.0) for _ in range(10)]
        return self.value

    __index__ = __int__ = change

    def __float__(self):
        return float(self.change())

    def __len__(self):
        return self.change() + 1

    def __getitem__(self, i):
        if i > self.value:
            raise IndexError
        return self.change()


class ChangingFloat(float):
    def __float__(self):
        self.x.data = tl.zeros(1)
        tl.memory.empty_cache()
        return 1.0


CONVERSIONS = {
    "index": lambda x, n: x[n],
    "index of several": lambda x, n: x[1, n],
    "slice": lambda x, n: x[n:],
    "slice of the last": lambda x, n: x[..., 1:n],
    "slice step": lambda x, n: x[::n],
    "list": lambda x, n: x[[n, 0]],
    "positions and a slice": lambda x, n: x[[0, 1], n:],
    "mask and an index": lambda x, n: x[tl.ones(400, dtype=tl.bool), n],
    "write": lambda x, n: x.__setitem__(n, 1.0),
    "write a value": lambda x, n: x.__setitem__(slice(None), n),
    "write a sequence": lambda x, n: x.__setitem__(0, [n] * 300),
    "narrow": lambda x, n: x.narrow(0, n, 300),
    "narrow dim": lambda x, n: x.narrow(n, 0, 300),
    "select": lambda x, n: x.select(0, n),
    "diagonal": lambda x, n: x.diagonal(n),
    "diagonal dim": lambda x, n: x.diagonal(0, 0, n),
    "size": lambda x, n: x.size(n),
    "stride": lambda x, n: x.stride(n),
    "sum": lambda x, n: x.sum(n),
    "sum over several": lambda x, n: x.sum((0, n)),
    "sum over the first": lambda x, n: x.sum([n, 0]),
    "max": lambda x, n: x.max(n),
    "argmax": lambda x, n: x.argmax(n),
    "var": lambda x, n: x.var(n),
    "var of a correction": lambda x, n: x.var(0, correction=n),
    "cumsum": lambda x, n: x.cumsum(n),
    "softmax": lambda x, n: x.softmax(n),
    "logsumexp": lambda x, n: x.logsumexp(n),
    "transpose": lambda x, n: x.transpose(0, n),
    "permute": lambda x, n: x.permute(0, n),
    "permute a sequence": lambda x, n: x.permute([n, 0]),
    "squeeze": lambda x, n: x.squeeze(n),
    "unsqueeze": lambda x, n: x.unsqueeze(n),
    "unsqueeze_": lambda x, n: x.unsqueeze_(n),
    "transpose_": lambda x, n: x.transpose_(0, n),
    "reshape": lambda x, n: x.reshape(n, -1),
    "view": lambda x, n: x.view([-1, n]),
    "expand": lambda x, n: x.expand(n, 400, 300),
    "repeat": lambda x, n: x.repeat(n, 1),
    "flip": lambda x, n: x.flip(n),
    "roll": lambda x, n: x.roll(n, 0),
    "movedim": lambda x, n: x.movedim(0, n),
    "flatten": lambda x, n: x.flatten(0, n),
    "unflatten": lambda x, n: x.unflatten(0, (n, -1)),
    "split": lambda x, n: x.split([n, 399]),
    "chunk": lambda x, n: x.chunk(n),
    "cat": lambda x, n: tl.cat([x, x], n),
    "stack": lambda x, n: tl.stack([x, x], n),
    "unbind": lambda x, n: x.unbind(n),
    "tril": lambda x, n: x.tril(n),
    "triu": lambda x, n: x.triu(n),
    "gather": lambda x, n: x.gather(n, tl.zeros(2, 2, dtype=tl.int64)),
    "index_select": lambda x, n: x.index_select(n, tl.tensor([0, 299])),
    "index_add": lambda x, n: x.index_add(n, tl.tensor([0]), tl.ones(400, 1)),
    "scatter": lambda x, n: x.scatter(n, tl.zeros(1, 1, dtype=tl.int64), 1.0),
    "repeat_interleave": lambda x, n: x.repeat_interleave(2, n),
    "add": lambda x, n: x + n,
    "add in place": lambda x, n: x.__iadd__(n),
    "mul_": lambda x, n: x.mul_(n),
    "fill_": lambda x, n: x.fill_(n),
    "uniform_": lambda x, n: x.uniform_(0, n),
    "normal_": lambda x, n: x.normal_(0, n),
    "bernoulli_": lambda x, n: x.bernoulli_(n),
    "clamp": lambda x, n: x.clamp(0, n),
    "pow": lambda x, n: x**n,
    "new_full": lambda x, n: x.new_full((3, n), n),
    "masked_fill": lambda x, n: x.masked_fill(tl.ones(400, 300, dtype=tl.bool), n),
    "where": lambda x, n: tl.where(x > 0, x, n),
    "out": lambda x, n: tl.add(x, n, out=x),
    "tensor": lambda x, n: tl.tensor([x, n]),
    "copy_": lambda x, n: x.copy_(n),
}


def look(found):
    """Reads every element of what a call gave."""
    for x in found if isinstance(found, (tuple, list)) else (found,):
        if isinstance(x, tl.Tensor):
            x.detach().double().sum().item()


@each("to", [
    lambda: tl.zeros(1), lambda: tl.zeros(()), lambda: tl.zeros(0), lambda: tl.zeros(2, 2),
    lambda: tl.zeros((1,) * 8),
], ids=["one", "0-d", "empty", "small", "8 dims"])
@each("kind", [Changing, ChangingFloat], ids=["index", "float"])
@each("call", CONVERSIONS.values(), ids=CONVERSIONS)
def test_converting_an_argument_may_change_the_tensor(call, kind, to):
    x = tl.ones(400, 300)
    if kind is Changing:
        n = Changing(1, x, to=to)
    else:
        n = ChangingFloat(1.0)
        n.x = x
    try:
        found = call(x, n)
    except (RuntimeError, IndexError, TypeError, ValueError):
        found = x
    look(found)
    look(x)


def test_the_list_that_is_read_may_shrink():
    class Shrinking(np.float64):
        rows = ()

        @property
        def dtype(self):
            for row in self.rows:
                row.clear()
            tl.memory.empty_cache()
            return np.dtype(np.float64)

        def __float__(self):
            return float(len(str(self.dtype)))

    for outer in (False, True):
        for dtype in (None, tl.float32, tl.int64, tl.bool, tl.float16):
            for place in (0, 50, 100):
                rows = [[float(i) for i in range(1000, 1101)] for _ in range(50)]
                rows[7][place] = Shrinking(1.0)
                Shrinking.rows = [rows] if outer else rows
                try:
                    x = tl.tensor(rows, dtype=dtype)
                except ValueError as error:
                    assert "changed" in str(error)
                else:
                    assert x.shape == (50, 101) and x.double().sum() > 0


@pytest.mark.parametrize("call", [
    lambda x, dims: x.sum(dims), lambda x, dims: x.cumsum(dims), lambda x, dims: x.permute(dims),
    lambda x, dims: x.softmax(dims), lambda x, dims: x.squeeze(dims),
    lambda x, dims: x.amax(dims), lambda x, dims: x.flip(dims)])
def test_dims_in_a_list_that_holds_itself_are_refused(call):
    dims = []
    dims.append(dims)
    with pytest.raises((TypeError, RuntimeError)):
        call(tl.ones(2, 2), dims)


def test_numbers_that_give_themselves_as_items_are_taken():
    class Itself(np.float32):
        def item(self, *args):
            return self

    x = tl.ones(2)
    for number in (np.longdouble(2), Itself(2)):
        assert (x + number).tolist() == [3, 3]
        assert x.fill_(number).tolist() == [2, 2]
        assert tl.full((2,), number).tolist() == [2, 2]
        x = tl.ones(2)
    for call in (lambda: tl.tensor(Itself(2)), lambda: tl.tensor([1.0, Itself(2)]),
                 lambda: tl.tensor([Itself(2)], dtype=tl.int64)):
        assert call().reshape(-1)[-1].item() == 2


@pytest.mark.parametrize("number", [2**63, -2**63 - 1, 10**4000, -10**400])
def test_integers_beyond_64_bits_are_out_of_range(number):
    for call in (lambda: tl.ones(2, dtype=tl.int64) + number, lambda: number - tl.tensor([True])):
        with pytest.raises(OutOfRangeError):
            call()
    with pytest.raises(OverflowError):
        tl.ones(2) + 10**5000
