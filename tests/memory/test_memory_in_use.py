"""Memory is kept for as long as it is used, and positions are checked on the copy that is used."""

import copy
import gc
import threading

import numpy as np
import pytest
from cases import each
from process import run_forked

import tensorlib as tl
from tensorlib._core.index.keys import parse, take
from tensorlib.ops.index.putting import put_index

# ---- memory in use -------------------------------------------------------------------------------

def scribble():
    """Uses memory that was released, if any was."""
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
    lambda x: x.gather(1, tl.zeros(300, 300, dtype=tl.int64)), lambda x: x.cumsum(0),
    lambda x: x / x,
    lambda x: x.logsumexp(1), lambda x: x.clamp(0, 1), lambda x: x.relu(), lambda x: x.sqrt(),
])
@each("to", [lambda: tl.zeros(1), lambda: tl.zeros(3), lambda: tl.zeros(2, 2)])
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
h, t = m.half(), m.T                # of which reductions and scans make copies before they begin
stop = []
def replace():
    while not stop:
        x.data = tl.ones(n); m.data = tl.ones(400, 500); i.data = tl.zeros(n, dtype=tl.int64)
        h.data = tl.ones(400, 500).half(); t.data = tl.ones(500, 400).T
        x.data = tl.ones(3); m.data = tl.ones(2, 2); i.data = tl.zeros(5, dtype=tl.int64)
        h.data = tl.ones(2, 2).half(); t.data = tl.ones(2, 2)
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
         lambda: tl.add(x, 1, out=x), lambda: tl.where(x > 0, x, 0), lambda: x.clone(),
         lambda: h.max(0), lambda: h.var(0), lambda: m.softmax(0), lambda: m.norm(),
         lambda: h.mean(0), lambda: t.cummax(0), lambda: t.cumprod(1), lambda: t.logcumsumexp(0),
         lambda: t.cumsum(1), lambda: t.norm(dim=1), lambda: h.logsumexp(0),
         lambda: t.std(0), lambda: t.argmax(), lambda: tl.complex(x, x), lambda: h @ h[0],
         lambda: m[:, p[:90]], lambda: x.index_select(0, i)]
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
    assert run_forked(source.replace("ROUNDS", "15")) == "done\n"


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
    lambda x: x.max(1), lambda x: x.min(1), lambda x: x.median(1), lambda x: x.max(0),
    lambda x: x.min(0, keepdim=True),
])
@each("place", [10**9, -10**9, 2**62, -1, 100])
def test_positions_that_were_returned_may_be_overwritten(find, place):
    x = tl.rand(3, 4, requires_grad=True)
    values, places = find(x)
    places.numpy()[...] = place
    with pytest.raises((IndexError, RuntimeError)):
        values.sum().backward()


@pytest.mark.parametrize("find", [lambda x: x.sort(1), lambda x: x.topk(2), lambda x: x.cummax(0)])
def test_positions_that_were_picked_by_were_copied_before(find):
    x = tl.rand(3, 4, requires_grad=True)
    values, places = find(x)
    places.numpy()[...] = 10**9
    values.sum().backward()
    assert x.grad.sum() == values.numel()


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


def test_nobody_sees_the_positions_of_a_kept_key():
    x = tl.rand(100, requires_grad=True)
    for key in (tl.tensor([1, 2, 3]), tl.arange(100) % 3 == 0, (tl.tensor([[5]]),)):
        index = parse(x, key)
        for seen in (*index.tensors, *index.places):
            seen.numpy().view(np.uint8)[...] = 200
        y = put_index(x, tl.zeros(()), index)
        assert y[key].sum() == 0
        assert not gc.get_referents(index)
        with pytest.raises(TypeError):
            copy.copy(index)
        with pytest.raises(IndexError):
            take(tl.rand(2), index)
