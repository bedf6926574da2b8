"""Nothing that a caller can do reads or writes memory that is not a tensor's.

Four kinds of ways past the checks, each shut out by its place: sizes that overflow, arguments whose
conversion runs code, memory that is let go of while it is used, positions that change after they
were checked. `test_memory_safety_sources.py` holds the places themselves.
"""

import threading

import numpy as np
import pytest
from process import run_python

import tensorlib as tl

TOO_LARGE = (RuntimeError, MemoryError)


# ---- sizes ---------------------------------------------------------------------------------------

def column(n):
    return tl.zeros(1).expand(n)


@pytest.mark.parametrize("call", [
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
    lambda: column(2**50).split(1),
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
    with pytest.raises(TOO_LARGE):
        x.T @ x
    assert (tl.zeros(0, 2**59) @ tl.ones(1, 1).expand(2**59, 3)).shape == (0, 3)


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


@pytest.mark.parametrize("call", [
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
@pytest.mark.parametrize("number", [int, Lying, np.int64])
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


@pytest.mark.parametrize("to", [
    lambda: tl.zeros(1), lambda: tl.zeros(()), lambda: tl.zeros(0), lambda: tl.zeros(2, 2),
    lambda: tl.zeros((1,) * 8),
], ids=["one", "0-d", "empty", "small", "8 dims"])
@pytest.mark.parametrize("kind", [Changing, ChangingFloat], ids=["index", "float"])
@pytest.mark.parametrize("call", CONVERSIONS.values(), ids=CONVERSIONS)
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
        with pytest.raises(tl._core.tensor.numbers.OutOfRangeError):
            call()
    with pytest.raises(OverflowError):
        tl.ones(2) + 10**5000


# ---- memory in use -------------------------------------------------------------------------------

def scribble():
    """Uses memory that was let go of, if any was."""
    tl.memory.empty_cache()
    return [tl.full((n,), -1.0) for n in (10, 100, 1000, 10**5, 10**6) for _ in range(4)]


@pytest.mark.parametrize("n", [3, 1000, 10**6])
@pytest.mark.parametrize("export", [memoryview, np.frombuffer, np.asarray,
                                    lambda x: np.asarray(memoryview(x)), lambda x: x.numpy()])
def test_an_exported_buffer_holds_the_memory(n, export):
    x = tl.ones(n)
    shared = export(x) if export is not np.frombuffer else np.frombuffer(x, np.float32)
    x.data = tl.zeros(1)
    noise = scribble()
    assert np.asarray(shared).tolist() == [1.0] * n and noise
    del x
    noise = scribble()
    assert np.asarray(shared).tolist() == [1.0] * n and noise


def test_a_tensor_may_take_its_own_data():
    for shape in ((3,), (1,) * 7 + (2,)):
        x = tl.ones(shape)
        for _ in range(3):
            x.data = x
            x.data = x.data
            scribble()
        assert x.shape == shape and x.sum() == x.numel() and x.is_contiguous()


def test_a_view_with_other_memory_is_no_view_of_its_base():
    leaf = tl.ones(10, requires_grad=True)
    base = leaf * 1
    view, other = base[2:5], base[5:]
    view.data = tl.zeros(1000)
    assert view._base is None and other._base is base
    view.mul_(2)
    base.sum().backward()
    assert leaf.grad.tolist() == [1.0] * 10


def test_views_of_a_tensor_with_other_memory_keep_what_they_show():
    leaf = tl.ones(10, requires_grad=True)
    base = leaf * 1
    view = base[2:5]
    base.data = tl.zeros(2)
    scribble()
    assert view._base is None and view.tolist() == [1.0] * 3
    view.mul_(3)
    view.sum().backward()
    assert leaf.grad.tolist() == [0, 0, 3, 3, 3, 0, 0, 0, 0, 0]


def test_a_view_resized_by_out_leaves_its_base():
    base = tl.ones(10, requires_grad=True) * 1
    view = base[2:2].detach()
    tl.add(tl.ones(10**5), 1, out=view)
    view.mul_(tl.ones(10**5, requires_grad=True))
    assert view._base is None and base.tolist() == [1.0] * 10
    assert view.sum().item() == 2 * 10**5


@pytest.mark.parametrize("forward", [
    lambda x: x.sin(), lambda x: x * x, lambda x: x.exp(), lambda x: x.abs(), lambda x: x @ x.T,
    lambda x: x.softmax(1), lambda x: x.prod(), lambda x: x.max(1)[0], lambda x: x**3,
    lambda x: tl.where(x > 0, x, x * x), lambda x: x.var(), lambda x: x[[0, 1]], lambda x: x.norm(),
    lambda x: x.gather(1, tl.zeros(300, 300, dtype=tl.int64)), lambda x: x.cumsum(0), lambda x: x / x,
    lambda x: x.logsumexp(1), lambda x: x.clamp(0, 1), lambda x: x.relu(), lambda x: x.sqrt(),
])
@pytest.mark.parametrize("to", [lambda: tl.zeros(1), lambda: tl.zeros(3), lambda: tl.zeros(2, 2)])
def test_a_saved_tensor_may_get_other_memory(forward, to):
    x = tl.rand(300, 300, requires_grad=True)
    y = forward(x)
    x.data = to()
    noise = scribble()
    try:
        y.sum().backward()
    except (RuntimeError, IndexError):
        pass
    assert noise


THREADS = """
import threading
import numpy as np
import tensorlib as tl
tl.memory.set_cache_limit(0)
n = 200_000
x, i = tl.ones(n), tl.zeros(n, dtype=tl.int64)
m, p = tl.ones(400, 500), tl.arange(n)
stop = []
def replace():
    while not stop:
        x.data = tl.ones(n); m.data = tl.ones(400, 500); i.data = tl.zeros(n, dtype=tl.int64)
        x.data = tl.ones(3); m.data = tl.ones(2, 2); i.data = tl.zeros(5, dtype=tl.int64)
def write():
    while not stop:
        places = i.numpy(); places[:] = 10**12; places[:] = -10**12; places[:] = 0
threads = [threading.Thread(target=f) for f in (replace, write)]
for thread in threads: thread.start()
calls = [lambda: x + x, lambda: x.exp(), lambda: x.sum(), lambda: m.sum(0), lambda: m.softmax(1),
         lambda: m @ m.T, lambda: x[i], lambda: x.gather(0, i), lambda: m.max(1), lambda: m.var(1),
         lambda: tl.cat([x, x]), lambda: x.double(), lambda: m.T.contiguous(), lambda: x > 0,
         lambda: x.cumsum(0), lambda: x.fill_(1), lambda: x.uniform_(), lambda: x.count_nonzero(),
         lambda: x.mul_(x), lambda: x.__setitem__(i, 1.0), lambda: m.logsumexp(1), lambda: x[x > 0],
         lambda: x.index_add(0, i, x), lambda: x.scatter_add(0, i, x), lambda: x.tolist(),
         lambda: tl.add(x, 1, out=x), lambda: tl.where(x > 0, x, 0), lambda: x.clone()]
for _ in range(ROUNDS):
    for call in calls:
        try:
            call()
        except (RuntimeError, IndexError, ValueError):
            pass
stop.append(1)
for thread in threads: thread.join()
print("done")
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_may_be_replaced_while_kernels_run(threads):
    source = f"import tensorlib\ntensorlib.set_num_threads({threads})\n" + THREADS
    assert run_python(source.replace("ROUNDS", "15")) == "done\n"


def test_memory_let_go_of_during_work_is_freed_after_it():
    before = tl.memory.stats()["in_use"]
    x = tl.ones(10**6)
    stop = []

    def replace():
        while not stop:
            x.data = tl.ones(10**6)
    thread = threading.Thread(target=replace)
    thread.start()
    for _ in range(20):
        x.exp()
    stop.append(1)
    thread.join()
    x.data = tl.ones(1)
    assert tl.memory.stats()["in_use"] - before < 10**6


# ---- positions -----------------------------------------------------------------------------------

@pytest.mark.parametrize("find", [
    lambda x: x.max(1), lambda x: x.min(1), lambda x: x.sort(1) if hasattr(x, "sort") else x.max(1),
    lambda x: x.max(0), lambda x: x.min(0, keepdim=True),
])
@pytest.mark.parametrize("place", [10**9, -10**9, 2**62, -1, 100])
def test_positions_that_were_returned_may_be_overwritten(find, place):
    x = tl.rand(3, 4, requires_grad=True)
    values, places = find(x)
    places.numpy()[...] = place
    with pytest.raises((IndexError, RuntimeError)):
        values.sum().backward()


@pytest.mark.parametrize("to", [lambda: tl.zeros(1, dtype=tl.int64), lambda: tl.zeros(100, 100),
                                lambda: tl.zeros(3, dtype=tl.int8)])
def test_positions_that_were_returned_may_get_other_memory(to):
    x = tl.rand(3, 4, requires_grad=True)
    values, places = x.max(1)
    places.data = to()
    scribble()
    try:
        values.sum().backward()
    except (IndexError, RuntimeError):
        pass
    else:
        assert x.grad.sum() == 3


@pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bool, tl.int64])
def test_positions_count_from_the_end_where_nothing_was_checked_before(dtype):
    x = tl.arange(12).reshape(3, 4).to(dtype)
    index = tl.tensor([[-1, 0, 2, -3], [1, -2, 0, 2]])
    wanted = np.take_along_axis(x.numpy(), index.numpy(), 0)
    assert x.gather(0, index).tolist() == wanted.tolist()
    for bad in (3, -4, 10**12):
        with pytest.raises(IndexError, match=str(bad)):
            x.gather(0, tl.tensor([[0, bad]]))


def test_positions_may_be_written_by_another_thread():
    x = tl.arange(10)
    index = tl.zeros(10**6, dtype=tl.int64)
    places, stop = index.numpy(), []

    def write():
        while not stop:
            places[500_000:] = 10**9
            places[500_000:] = 0
    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(30):
        for call in (lambda: x.gather(0, index), lambda: x[index]):
            try:
                assert call().sum() == 0
            except IndexError:
                pass
    stop.append(1)
    thread.join()


def test_the_positions_of_a_kept_key_may_be_overwritten():
    x = tl.rand(100, requires_grad=True)
    for key in (tl.tensor([1, 2, 3]), tl.arange(100) % 3 == 0, (tl.tensor([[5]]),)):
        y = x[key]
        (index,) = y.grad_fn.attributes.values() if hasattr(y.grad_fn, "attributes") else (None,)
        for held in index.tensors if index is not None else ():
            held.numpy().view(np.uint8)[:] = 200
        try:
            y.sum().backward()
        except (IndexError, RuntimeError):
            pass
