"""Compiled functions that call functions with a cache, and what they keep for later calls."""

import functools

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn

NAN = float("nan")
ARGUMENTS = [
    ((3,), {}), ((3,), {}), ((3.0,), {}), ((True,), {}), ((1,), {}), (("a",), {}),
    ((("a", 1),), {}), ((), {"p": 1}), ((1, 2), {"p": 1, "q": 2}), ((1, 2), {"q": 2, "p": 1}),
    ((NAN,), {}), (([1],), {}), ((tl.float32,), {}), ((None,), {}), ((-0.0,), {}), ((0,), {}),
    ((3,), {})]


def logs(build):
    """What calls of an eager function and of a compiled one do, and the compiled one."""
    found = []
    for wrap in (lambda f: f, tl.compile):
        tl.manual_seed(0)
        log = []
        compiled = build(wrap, log)
        found.append([*log, tl.rand(2).tolist()])
    return *found, compiled


def drawing(maxsize, typed=False):
    """A function with a cache, which draws its result, and the arguments it was called with."""
    calls = []

    @functools.lru_cache(maxsize, typed)
    def drawn(*args, **kwargs):
        calls.append((args, kwargs))
        return tl.rand(3) * len(args)
    return drawn, calls


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@each("maxsize, typed", [(None, False), (None, True), (128, False), (128, True), (2, False),
                         (0, False)])
def test_a_cache_is_read_and_counted_as_in_eager_calls(maxsize, typed):
    def build(wrap, log):
        drawn, calls = drawing(maxsize, typed)
        f = wrap(lambda x, *args, **kwargs: x * drawn(*args, **kwargs) + tl.rand(3))

        def call(*args, **kwargs):
            try:
                log.append(f(tl.ones(3), *args, **kwargs).tolist())
            except TypeError as error:
                log.append(str(error))
            log.append((tuple(drawn.cache_info()), len(calls)))

        for args, kwargs in ARGUMENTS:
            for _ in range(3):
                call(*args, **kwargs)
        drawn.cache_clear()
        for _ in range(4):
            call(3)
        return f

    eager, compiled, _ = logs(build)
    assert eager == compiled


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(tl.ones(4))

    @functools.cache
    def table(self, n, dtype):
        return tl.arange(float(n)).outer(tl.arange(4.0)).cos().to(dtype)

    def forward(self, x):
        return x * self.table(len(x), x.dtype) * self.scale


def test_a_method_with_a_cache_is_captured_from_the_second_call_on():
    def build(wrap, log):
        f = wrap(Table())
        for n in (2, 2, 2, 3, 3, 2):
            y = f(tl.ones(n, 4))
            y.sum().backward()
            log.append((y.tolist(), f.scale.grad.tolist(), tuple(Table.table.cache_info())))
        Table.table.cache_clear()
        return f

    eager, compiled, f = logs(build)
    assert eager == compiled
    assert len(f._entries) == 2 and all(way.replay for way in f._entries)


def test_what_is_in_a_result_from_a_cache_is_guarded():
    def build(wrap, log):
        @functools.cache
        def options():
            return {"scale": 2.0, "more": [1.0]}

        f = wrap(lambda x: x * options()["scale"] + options()["more"][0])
        for change in (lambda found: None, lambda found: found.update(scale=3.0),
                       lambda found: found["more"].insert(0, 5.0)):
            change(options())
            log += [(f(tl.ones(2)).tolist(), tuple(options.cache_info())) for _ in range(3)]
        return f

    eager, compiled, f = logs(build)
    assert eager == compiled and f._entries[0].replay is not None


def test_a_tensor_that_the_first_call_keeps_for_later_ones_is_captured_then():
    class Masked(nn.Module):
        mask = None

        def forward(self, x):
            if self.mask is None or self.mask.shape != x.shape:
                self.mask = tl.ones(x.shape).tril()
            return x * self.mask

    def build(wrap, log):
        f = wrap(Masked())
        log += [f(tl.ones(n, n)).tolist() for n in (2, 2, 2, 3, 3)]
        return f

    eager, compiled, f = logs(build)
    assert eager == compiled
    assert [way.replay is not None for way in f._entries] == [True, True]


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
def test_a_tensor_that_each_call_keeps_is_named():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x + 1

    compiled = tl.compile(f)
    for _ in range(4):
        compiled(tl.ones(2))
    with pytest.raises(tl.program.CaptureError, match="kept outside of it that was made by mul"):
        tl.compile(f, fullgraph=True)(tl.ones(2))
    assert len(kept) == 5 and "kept outside" in compiled._entries[0].why
