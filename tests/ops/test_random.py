"""Random tensors: distributions, reproducibility, generators and errors."""

import copy
import math
import pickle

import numpy as np
import pytest
from cases import each
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.tensor.numbers import OutOfRangeError

import tensorlib as tl

N = 200_000
FLOATS = ("float16", "bfloat16", "float32", "float64")
RESOLUTION = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 0, "float64": 0}


@pytest.fixture(autouse=True)
def seeded():
    before = tl.get_rng_state()
    tl.manual_seed(1234)
    yield
    tl.set_rng_state(before)


def values(x):
    return x.double().numpy()


def ks_distance(sample, cdf):
    """The largest difference of the empirical distribution function and `cdf`."""
    sample = np.sort(sample)
    expected, n = cdf(sample), len(sample)
    return max((np.arange(1, n + 1) / n - expected).max(), (expected - np.arange(n) / n).max())


def normal_cdf(x):
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])


def chi_square(counts, expected):
    """The statistic, in standard deviations of its distribution from its mean."""
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = len(counts) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


# ---- distributions -------------------------------------------------------------------------------

@pytest.mark.parametrize("name", FLOATS)
def test_rand_is_uniform(name):
    x = tl.rand(N, dtype=BY_NAME[name])
    u = values(x)
    assert x.dtype is BY_NAME[name] and u.min() >= 0 and u.max() < 1
    centre = 0.5 - RESOLUTION[name] / 2
    assert abs(u.mean() - centre) < 4 / math.sqrt(12 * N)
    assert abs(u.var() - 1 / 12) < 0.001
    assert ks_distance(u, lambda v: v) < 2 / math.sqrt(N) + RESOLUTION[name]


@pytest.mark.parametrize("name", FLOATS)
def test_randn_is_normal(name):
    z = values(tl.randn(N, dtype=BY_NAME[name]))
    rounding = {"float16": 2**-11, "bfloat16": 2**-7}.get(name, 0)
    assert abs(z.mean()) < 4 / math.sqrt(N)
    assert abs(z.var() - 1) < 0.02
    assert abs((z**3).mean()) < 0.05 and abs((z**4).mean() - 3) < 0.15
    assert ks_distance(z[:20_000], normal_cdf) < 2 / math.sqrt(20_000) + rounding


@pytest.mark.parametrize("low, high", [(0, 10), (-3, 4), (5, 6), (-2**63, 2**63 - 1), (0, 2**40)])
def test_randint_is_uniform(low, high):
    x = tl.randint(low, high, (N,))
    got = x.numpy()
    assert x.dtype is tl.int64 and got.min() >= low and got.max() < high
    bins = min(high - low, 16)
    places = ((got.astype(object) - low) * bins // (high - low)).astype(np.int64)
    if bins > 1:
        assert abs(chi_square(np.bincount(places, minlength=bins), N / bins)) < 4


@each("p", [0.0, 0.1, 0.5, 0.999, 1.0])
def test_bernoulli_has_its_probability(p):
    allowed = 4 * math.sqrt(p * (1 - p) / N)
    for x in [tl.empty(N).bernoulli_(p), tl.bernoulli(tl.full((N,), p)),
              tl.bernoulli(tl.empty(N), p), tl.empty(N, dtype=tl.int64).bernoulli_(p),
              tl.empty(N, dtype=tl.bool).bernoulli_(tl.tensor(p)),
              tl.empty(2, N // 2).bernoulli_(tl.full((2, 1), p))]:
        drawn = values(x)
        assert set(np.unique(drawn)) <= {0.0, 1.0}
        assert abs(drawn.mean() - p) <= allowed


def test_bernoulli_takes_a_probability_for_each_element():
    p = tl.tensor([0.0, 1.0, 0.0, 1.0], dtype=tl.float64)
    assert tl.bernoulli(p).tolist() == p.tolist()
    assert tl.bernoulli(p).dtype is tl.float64
    assert tl.zeros(3, 4).bernoulli_(p).tolist() == [p.tolist()] * 3
    for kind in (tl.bool, tl.int64, tl.float32):
        out = tl.empty(4, dtype=kind)
        assert tl.bernoulli(p, out=out) is out and out.tolist() == p.tolist()


@each("n", [0, 1, 2, 7, 1000, 100_000])
def test_randperm_is_a_permutation(n):
    x = tl.randperm(n)
    assert x.dtype is tl.int64 and sorted(x.tolist()) == list(range(n))


def test_every_permutation_is_as_likely():
    counts = {}
    for _ in range(6000):
        order = tuple(tl.randperm(3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert abs(chi_square(np.array(list(counts.values())), 1000)) < 4


def test_uniform_and_normal_in_place():
    x = tl.empty(N).uniform_(-2, 3)
    assert x.numpy().min() >= -2 and x.numpy().max() < 3
    assert abs(values(x).mean() - 0.5) < 0.02
    x = tl.empty(N, dtype=tl.float64).normal_(5, 2)
    assert abs(values(x).mean() - 5) < 0.02 and abs(values(x).std() - 2) < 0.02
    assert tl.empty(3).normal_(1, 0).tolist() == [1, 1, 1]
    assert tl.empty(3).uniform_(2, 2).tolist() == [2, 2, 2]


@each("name", FLOATS)
@each("low, high", [(1, 1 + 2**-5), (-1e-3, 0), (-2, -1), (0, 2**-10)])
def test_uniform_never_reaches_its_upper_bound(name, low, high):
    drawn = values(tl.empty(N, dtype=BY_NAME[name]).uniform_(low, high))
    assert drawn.max() < high and drawn.min() >= values(tl.tensor(low, dtype=BY_NAME[name]))


def test_random_covers_what_the_dtype_holds():
    assert set(tl.empty(1000, dtype=tl.bool).random_().tolist()) == {False, True}
    drawn = tl.empty(N, dtype=tl.int8).random_().numpy()
    assert drawn.min() == 0 and drawn.max() == 127
    drawn = tl.empty(N, dtype=tl.uint8).random_().numpy()
    assert drawn.min() == 0 and drawn.max() == 255
    assert values(tl.empty(N).random_()).max() <= 2**24
    assert set(tl.empty(1000).random_(3).tolist()) == {0, 1, 2}
    assert set(tl.empty(1000, dtype=tl.int16).random_(-1, 1).tolist()) == {-1, 0}
    drawn = tl.empty(N, dtype=tl.int8).random_(120, None)
    assert set(drawn.tolist()) == set(range(120, 128))
    assert values(tl.empty(N).random_(5, None)).min() >= 5


def test_normal_with_tensors():
    mean, std = tl.tensor([[0.0], [100.0]]), tl.tensor([1.0, 10.0, 0.0])
    x = tl.normal(mean.expand(2, 1), std)
    assert tuple(x.shape) == (2, 3) and x[:, 2].tolist() == [0, 100]
    drawn = values(tl.normal(tl.full((N,), 3.0), 2.0))
    assert abs(drawn.mean() - 3) < 0.03 and abs(drawn.std() - 2) < 0.03
    assert tuple(tl.normal(0.0, tl.ones(3)).shape) == (3,)
    assert tl.normal(mean=0.0, std=1.0, size=(2, 3), dtype=tl.float64).dtype is tl.float64
    assert tl.normal(0.0, 1.0, (2,), requires_grad=True).requires_grad


def test_multinomial():
    weights = tl.tensor([1.0, 0.0, 3.0])
    drawn = tl.multinomial(weights, N, replacement=True).numpy()
    assert abs((drawn == 2).mean() - 0.75) < 0.005 and not (drawn == 1).any()
    both = tl.multinomial(tl.tensor([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]), 2)
    assert [sorted(row) for row in both.tolist()] == [[1, 2], [0, 1]]
    first = np.array([tl.multinomial(weights, 1).item() for _ in range(2000)])
    assert abs((first == 2).mean() - 0.75) < 0.05


def test_multinomial_of_no_rows_and_of_no_indices():
    for replacement in (False, True):
        assert tl.multinomial(tl.zeros(0, 3), 2, replacement).shape == (0, 2)
        for shape in ((0,), (2, 0)):
            with pytest.raises(RuntimeError, match="sum to 0"):
                tl.multinomial(tl.zeros(shape), 1, replacement)


# ---- independence and reproducibility ------------------------------------------------------------

def test_calls_are_independent():
    x, y = values(tl.randn(N)), values(tl.randn(N))
    assert abs((x * y).mean()) < 4 / math.sqrt(N)
    assert abs((x[:-1] * x[1:]).mean()) < 4 / math.sqrt(N)
    u, v = (values(tl.rand(N, generator=tl.Generator().manual_seed(seed))) for seed in (0, 1))
    assert abs(np.corrcoef(u, v)[0, 1]) < 4 / math.sqrt(N)


def draw_all(n):
    return [tl.rand(n), tl.randn(n, dtype=tl.float64), tl.randint(100, (n,)), tl.randperm(n),
            tl.rand(n, dtype=tl.float16), tl.empty(n).bernoulli_(0.3), tl.empty(n).uniform_(-1, 5)]


def test_a_seed_gives_the_same_numbers_for_any_number_of_threads():
    threads, drawn = tl.get_num_threads(), []
    try:
        for n in (1, 2, 5):
            tl.set_num_threads(n)
            tl.manual_seed(7)
            drawn.append(draw_all(100_003))
    finally:
        tl.set_num_threads(threads)
    for others in zip(*drawn):
        assert len({x.numpy().tobytes() for x in others}) == 1


def test_numbers_do_not_depend_on_layout():
    def draw(make):
        tl.manual_seed(3)
        return make().uniform_().tolist()
    wanted = draw(lambda: tl.empty(3, 4))
    assert draw(lambda: tl.empty(4, 3).t()) == wanted
    assert draw(lambda: tl.empty(3, 8)[:, ::2]) == wanted


def test_seeds_and_states():
    g = tl.Generator()
    assert g.initial_seed() == 67280421310721 and g.device == tl.device("cpu")
    assert g.manual_seed(-1) is g and g.initial_seed() == 2**64 - 1
    state = g.get_state()
    first = tl.rand(5, generator=g).tolist()
    assert state.dtype is tl.uint8 and g.set_state(state) is g
    assert tl.rand(5, generator=g).tolist() == first != tl.rand(5, generator=g).tolist()
    assert g.seed() == g.initial_seed()
    assert tl.manual_seed(5) is tl.default_generator and tl.initial_seed() == 5
    state = tl.get_rng_state()
    first = tl.randn(3).tolist()
    tl.set_rng_state(state)
    assert tl.randn(3).tolist() == first
    assert isinstance(tl.seed(), int) and tl.seed() != tl.seed()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, tl.Generator.clone_state,
                                    lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_of_generators_go_on_alike(copied):
    g = tl.Generator().manual_seed(9)
    tl.rand(3, generator=g)
    twin = copied(g)
    assert tl.rand(4, generator=twin).tolist() == tl.rand(4, generator=g).tolist()
    tl.rand(1, generator=g)
    assert tl.rand(4, generator=twin).tolist() != tl.rand(4, generator=g).tolist()


def test_a_given_generator_leaves_the_default_one_alone():
    state = tl.get_rng_state().tolist()
    g = tl.Generator()
    x = tl.empty(3)
    for draw in [tl.rand, tl.randn, tl.randperm]:
        draw(3, generator=g)
    tl.randint(3, (2,), generator=g)
    tl.bernoulli(x.zero_(), generator=g)
    tl.normal(x, 1.0, generator=g)
    tl.multinomial(tl.ones(3), 2, generator=g)
    x.uniform_(generator=g).normal_(generator=g).random_(generator=g).bernoulli_(generator=g)
    assert tl.get_rng_state().tolist() == state


# ---- forms and options ---------------------------------------------------------------------------

def test_forms():
    assert tuple(tl.rand(2, 3).shape) == tuple(tl.randn((2, 3)).shape) == (2, 3)
    assert tl.rand(()).shape == () and tuple(tl.rand(0, 3).shape) == (0, 3)
    assert tuple(tl.randint(high=10, size=(2,)).shape) == (2,)
    assert tl.randint(low=3, high=4, size=(2,)).tolist() == [3, 3]
    assert tl.randint(1, (2, 2)).tolist() == [[0, 0], [0, 0]]
    for name in ("bool", "uint8", "int32", *FLOATS):
        assert tl.randint(0, 2, (2,), dtype=BY_NAME[name]).dtype is BY_NAME[name]
    assert tl.randperm(5, dtype=tl.float32).dtype is tl.float32
    x = tl.zeros(2, 3, dtype=tl.float64)
    for like in (tl.rand_like(x), tl.randn_like(x), tl.randint_like(x, 5),
                 tl.randint_like(x, 1, 5)):
        assert like.dtype is x.dtype and like.shape == x.shape
    assert tl.rand_like(tl.zeros(2, dtype=int), dtype=tl.float32).dtype is tl.float32
    assert tl.randn(2, requires_grad=True).requires_grad
    out = tl.empty(0)
    assert tl.rand(2, out=out) is out and tuple(out.shape) == (2,)
    assert tl.randperm(3, out=tl.empty(3)).dtype is tl.float32


def test_a_draw_in_place_stops_the_gradient():
    a = tl.ones(3, requires_grad=True)
    x = a * 2
    x[:2].uniform_()
    x.backward(tl.ones(3))
    assert a.grad.tolist() == [0, 0, 2]


@each("call, error, match", [
    (lambda: tl.Generator("cuda"), RuntimeError, "cpu"),
    (lambda: tl.Generator().manual_seed(2**64), OutOfRangeError, "manual_seed"),
    (lambda: tl.Generator().manual_seed(-2**63 - 1), OutOfRangeError, "manual_seed"),
    (lambda: tl.Generator().manual_seed(1.5), RuntimeError, "manual_seed"),
    (lambda: tl.Generator().manual_seed(tl.tensor(3)), RuntimeError, "manual_seed"),
    (lambda: tl.manual_seed("a"), ValueError, "manual_seed"),
    (lambda: tl.Generator().set_state([1]), TypeError, "set_state"),
    (lambda: tl.Generator().set_state(tl.zeros(16)), TypeError, "set_state"),
    (lambda: tl.Generator().set_state(tl.zeros(3, dtype=tl.uint8)), RuntimeError, "set_state"),
    (lambda: tl.rand(2, dtype=int), RuntimeError, "rand"),
    (lambda: tl.randn(2, dtype=int), RuntimeError, "randn"),
    (lambda: tl.rand(2, generator=3), TypeError, "generator"),
    (lambda: tl.rand(-1), RuntimeError, "rand"),
    (lambda: tl.rand(), TypeError, "rand"),
    (lambda: tl.rand(2**62), RuntimeError, "rand"),
    (lambda: tl.rand_like([1]), TypeError, "rand_like"),
    (lambda: tl.randint(5, 5, (2,)), RuntimeError, "randint"),
    (lambda: tl.randint(10), TypeError, "randint"),
    (lambda: tl.randint(5.5, (2,)), TypeError, "randint"),
    (lambda: tl.randint(0, 300, (2,), dtype=tl.uint8), OutOfRangeError, "randint"),
    (lambda: tl.randint(-1, 3, (2,), dtype=tl.uint8), OutOfRangeError, "randint"),
    (lambda: tl.randint(0, 3, (2,), dtype=tl.bool), OutOfRangeError, "randint"),
    (lambda: tl.randint(0, 2**64, (2,)), OutOfRangeError, "randint"),
    (lambda: tl.randperm(-1), RuntimeError, "randperm"),
    (lambda: tl.randperm(2.5), TypeError, "randperm"),
    (lambda: tl.randperm(300, dtype=tl.uint8), RuntimeError, "randperm"),
    (lambda: tl.randperm(5, dtype=tl.bool), RuntimeError, "randperm"),
    (lambda: tl.zeros(2).uniform_(2, 1), RuntimeError, "uniform_"),
    (lambda: tl.zeros(2).uniform_(0, float("inf")), RuntimeError, "uniform_"),
    (lambda: tl.zeros(2).uniform_(-3e38, 3e38), RuntimeError, "uniform_"),
    (lambda: tl.zeros(2, dtype=int).uniform_(), RuntimeError, "uniform_"),
    (lambda: tl.zeros(2).normal_(0, -1), RuntimeError, "normal_"),
    (lambda: tl.zeros(2).normal_(0, float("nan")), RuntimeError, "normal_"),
    (lambda: tl.zeros(2, requires_grad=True).normal_(), RuntimeError, "normal_.*leaf"),
    (lambda: tl.zeros(1, 2).expand(3, 2).uniform_(), RuntimeError, "uniform_"),
    (lambda: tl.zeros(2).random_(0), RuntimeError, "random_"),
    (lambda: tl.zeros(2).random_(5, 3), RuntimeError, "random_"),
    (lambda: tl.zeros(2, dtype=tl.int8).random_(0, 300), OutOfRangeError, "random_"),
    (lambda: tl.zeros(2).bernoulli_(1.5), RuntimeError, "bernoulli_"),
    (lambda: tl.zeros(2).bernoulli_(tl.ones(3)), RuntimeError, "bernoulli_"),
    (lambda: tl.bernoulli(tl.tensor([0.5, 1.5])), RuntimeError, "bernoulli"),
    (lambda: tl.bernoulli(tl.tensor([float("nan")])), RuntimeError, "bernoulli"),
    (lambda: tl.bernoulli(tl.tensor([1])), RuntimeError, "bernoulli"),
    (lambda: tl.normal(0.0, -1.0, (2,)), RuntimeError, "std"),
    (lambda: tl.normal(0.0, 1.0), TypeError, "normal"),
    (lambda: tl.normal(tl.zeros(2), -tl.ones(1)), RuntimeError, "normal"),
    (lambda: tl.normal(tl.zeros(2), 1.0, (2,)), TypeError, "normal"),
    (lambda: tl.normal(tl.zeros(2, dtype=int), 1.0), RuntimeError, "normal"),
    (lambda: tl.multinomial(tl.ones(3), 4), RuntimeError, "multinomial"),
    (lambda: tl.multinomial(tl.ones(3), 0), RuntimeError, "multinomial"),
    (lambda: tl.multinomial(-tl.ones(3), 1), RuntimeError, "multinomial"),
    (lambda: tl.multinomial(tl.zeros(3), 1), RuntimeError, "multinomial"),
    (lambda: tl.multinomial(tl.ones(3, dtype=int), 1), RuntimeError, "multinomial"),
    (lambda: tl.multinomial(tl.ones(1, 2, 3), 1), RuntimeError, "multinomial"),
])
def test_bad_arguments_are_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()
