"""What threads may share without a lock of the user's, on interpreters with and without a GIL.

Each test runs threads that do the same at once, most of them on the same objects, and compares what
comes out with what one thread gives.
"""

import queue
import sys

import pytest
from process import run_python
from together import together

import tensorlib as tl
from tensorlib import nn


@pytest.fixture(autouse=True)
def often():
    """With a GIL threads take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def trained(seed, steps=12):
    """The loss of each step of a small training, which follows from the seed alone."""
    g = tl.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 3))
    for p in model.parameters():
        p.data = tl.randn(p.shape, generator=g) / 4
    optimizer = [tl.optim.SGD, tl.optim.Adam, tl.optim.AdamW][seed % 3](model.parameters(), lr=0.01)
    x, y = tl.randn(20, 6, generator=g), tl.randint(3, (20,), generator=g)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_models_of_their_own():
    wanted = [trained(seed) for seed in range(8)]

    def call(k, i):
        assert trained((k + i) % 8) == wanted[(k + i) % 8]

    together(call, times=10)


def test_gradients_that_all_accumulate_into_the_same_leaves():
    w, b = tl.ones(5, 3, requires_grad=True), tl.zeros(3, requires_grad=True)
    x = tl.ones(2, 5)

    def call(k, i):
        (x @ w + b).sum().backward()

    together(call)
    assert w.grad.unique().tolist() == [2.0 * 4 * 60] and b.grad.unique().tolist() == [2.0 * 4 * 60]


def test_gradients_that_are_read_and_dropped_while_they_grow():
    w = tl.ones(5, requires_grad=True)

    def call(k, i):
        if k < 2:
            (w * 3).sum().backward()
        elif k == 2:
            w.grad = None
        else:
            g = w.grad
            assert g is None or g.shape == (5,) and float(g[0]) % 3 == 0

    together(call, times=400)


def test_a_module_that_all_evaluate():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 8),
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)).eval()
    given = [tl.randn(3, 1, 8, 8) for _ in range(4)]
    wanted = [model(x) for x in given]
    grads = [tl.autograd.grad(y.sum(), list(model.parameters())) for y in wanted]

    def call(k, i):
        with tl.set_grad_enabled(i % 2 == 0):
            y = model(given[k])
        assert tl.equal(y, wanted[k]) and y.requires_grad == (i % 2 == 0)
        if i % 4 == 0:
            found = tl.autograd.grad(y.sum(), list(model.parameters()))
            assert all(map(tl.equal, found, grads[k]))

    together(call, times=16)


def test_views_of_what_is_shared_come_and_go():
    w = tl.arange(12.0).reshape(3, 4).clone().requires_grad_()
    kept = []

    def call(k, i):
        kept.append([w[j % 3] for j in range(5)] + [w.t(), w.view(-1), w[1:, ::2]])
        if len(kept) > 20:
            kept.pop()                       # they die on other threads than those they are of
        y = w.detach().view(12)
        assert y[k].item() == k and (w.t() * 1).sum().item() == 66.0

    together(call, times=200)
    w.requires_grad_(False)
    w.add_(1)
    assert w.view(-1)[0].item() == 1.0


def test_compiled_functions_that_all_call():
    w = tl.randn(8, 8, requires_grad=True)
    given = [tl.randn(k + 1, 8) for k in range(4)]
    compiled = tl.compile(lambda x: (x @ w).tanh().sum())
    plain = tl.compile(lambda x: (x * 2 - 1).relu().sum(0))
    for x in given:                          # captured by one thread, replayed by all
        compiled(x), plain(x)
    wanted = [(x @ w).tanh().sum() for x in given]
    grads = [tl.autograd.grad(y, w)[0] for y in wanted]

    def call(k, i):
        x = given[(k + i) % 4]
        assert tl.equal(plain(x), (x * 2 - 1).relu().sum(0))
        y = compiled(x)
        assert tl.equal(y, wanted[(k + i) % 4])
        assert tl.equal(tl.autograd.grad(y, w)[0], grads[(k + i) % 4])

    together(call)


def test_draws_are_those_of_one_thread_in_some_order():
    tl.manual_seed(3)
    wanted = sorted(tl.rand(2).tolist() for _ in range(4 * 200))
    tl.manual_seed(3)
    drawn = []
    together(lambda k, i: drawn.append(tl.rand(2).tolist()), times=200)
    assert sorted(drawn) == wanted


def test_settings_and_optimisers_are_made_meanwhile():
    w = tl.ones(50, requires_grad=True)
    threads, limit = tl.get_num_threads(), tl.memory.stats()["limit"]

    def settings():
        for n in (1, 2):
            tl.set_num_threads(n)
        tl.memory.set_cache_limit(1 << 20)
        tl.memory.empty_cache()
        tl.memory.set_cache_limit(limit)
        assert tl.memory.stats()["in_use"] >= 0

    def optimisers():
        handle = w.register_hook(lambda g: None)
        tl.optim.Adam([w], lr=0.0)
        handle.remove()

    def interpreters():
        with tl.utils.flop_counter.FlopCounterMode(display=False) as counter:
            tl.ones(4, 4) @ tl.ones(4, 4)
        assert counter.get_total_flops() == 2 * 4**3
        assert tl.ones(3, 2, device="meta").sum(0).shape == (2,)

    def call(k, i):
        with tl.no_grad():
            assert not (w * 2).requires_grad
        y = (w * 2).requires_grad_() if i % 3 == 0 else (w * 2).exp()
        assert y.requires_grad and tl.isfinite(tl.autograd.grad(y.sum(), w)[0]).all()
        big = tl.ones(40_000) * 2
        assert big.sum().item() == 80_000

    try:
        together(call, times=100, others=[settings, optimisers, interpreters])
    finally:
        tl.set_num_threads(threads)


def test_a_profile_of_all_threads():
    from tensorlib.profiler import profile

    w = tl.ones(3, requires_grad=True)

    def profiles():
        with profile() as taken:
            (w * 2).sum().backward()
        assert any(e.key == "mul" for e in taken.key_averages())

    together(lambda k, i: (w.exp() + 1).sum().backward(), times=100, others=[profiles])


def test_graphs_go_from_thread_to_thread():
    made, x = queue.Queue(), tl.ones(4, requires_grad=True)

    def call(k, i):
        if k < 2:
            made.put((x * 2).exp().sum())
        else:
            made.get(timeout=30).backward()

    together(call)
    assert tl.allclose(x.grad, tl.full((4,), 2 * 120 * tl.exp(tl.tensor(2.0)).item()))


def test_one_graph_that_all_sweep():
    """A sweep refuses a graph that another thread is in, and the others are whole."""
    x = tl.ones(3, requires_grad=True)
    h = x
    for _ in range(30):
        h = h * 1.0 + 0.0
    loss = h.sum()
    done = []

    def call(k, i):
        try:
            loss.backward(retain_graph=True)
            done.append(k)
        except RuntimeError as error:
            assert "another thread is running backward" in str(error)

    together(call)
    assert x.grad.tolist() == [float(len(done))] * 3


def test_loaders_over_one_dataset():
    data = tl.utils.data.TensorDataset(tl.arange(40.0).reshape(20, 2), tl.arange(20))

    def call(k, i):
        loader = tl.utils.data.DataLoader(data, batch_size=6, shuffle=True)
        seen = [label for x, y in loader for label in y.tolist() if x.shape[1] == 2]
        assert sorted(seen) == list(range(20))

    together(call, times=8)


FIRST = """
import threading
import tensorlib as tl
barrier, raised = threading.Barrier(4), []
names = "exp tanh sinh erf log1p deg2rad sigmoid softmax cumsum sort std median fft.fft".split()
dtypes = [tl.float64, tl.float32, tl.float16, tl.bfloat16]
def calls(k):
    found = []
    for name in names:
        function = tl
        for part in name.split("."):
            function = getattr(function, part)
        for dtype in dtypes[:2] if name in ("fft.fft", "median", "sort") else dtypes:
            x = (tl.arange(6, dtype=tl.float64) / 7).to(dtype).requires_grad_()
            args = (0,) if name in ("softmax", "cumsum") else ()
            y = function(x, *args)
            y = y[0] if isinstance(y, tuple) else y
            found.append(y.abs().double().sum().item())
            if dtype.is_floating_point and y.dtype != tl.complex64:
                (g,) = tl.autograd.grad(y.abs().sum(), x, create_graph=True)
                found.append(g.double().sum().item())
    z = (tl.arange(6.0) + 1j).requires_grad_()
    found.append(tl.autograd.grad((z * z.exp()).abs().sum(), z)[0].abs().sum().item())
    found.append(tl.einsum("ij,jk->ik", tl.ones(2, 3), tl.ones(3, 4)).sum().item())
    return found
results = [None] * 4
def work(k):
    try:
        barrier.wait()
        results[k] = calls(k)
    except BaseException as error:
        raised.append(error)
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if raised: raise raised[0]
assert all(str(found) == str(calls(0)) for found in results)
print("done")
"""


def test_the_first_use_of_operations_by_all_at_once():
    assert run_python(FIRST) == "done\n"


def test_the_interpreter_keeps_to_do_without_a_global_lock():
    """Where there is none, importing the library does not bring it back."""
    found = run_python("import sys; on = getattr(sys, '_is_gil_enabled', lambda: True); was = on();"
                       "import tensorlib; print(on() == was)")
    assert found == "True\n"
