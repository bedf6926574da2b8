"""`compiler.set_stance`: what calls of compiled functions do for which there is no replay."""

import pytest

import tensorlib as tl
from tensorlib.compiler import set_stance

KNOWN = tl.ones(3)


@pytest.fixture(autouse=True)
def _default():
    yield
    set_stance("default")


@pytest.fixture
def runs():
    """The calls of `compiled` that ran eagerly after its first ones."""
    return []


@pytest.fixture
def compiled(runs):
    def counted(x):
        runs.append(x)
        return doubled(x)

    def doubled(x):
        return x * 2

    function = tl.compile(doubled)
    for _ in range(2):
        function(KNOWN)
    function._f = counted
    return function


def test_nothing_is_replayed_under_force_eager(compiled, runs):
    compiled(KNOWN)
    assert not runs
    set_stance("force_eager")
    assert compiled(KNOWN).tolist() == compiled(KNOWN).tolist() == [2.0] * 3 and len(runs) == 2
    set_stance("default")
    compiled(KNOWN)
    assert len(runs) == 2


def test_a_stance_is_of_a_block_or_of_a_function(compiled, runs):
    @set_stance("force_eager")
    def eager():
        return compiled(KNOWN)

    compiled(KNOWN)                                        # the decorator alone changes nothing
    assert not runs
    eager()
    with set_stance("force_eager"):
        compiled(KNOWN)
        with set_stance("default"):
            compiled(KNOWN)
        compiled(KNOWN)
    compiled(KNOWN)
    assert len(runs) == 3


def test_new_kinds_of_calls_run_eagerly_or_are_errors(compiled, runs):
    new = tl.ones(2, 2, dtype=tl.float64)
    with set_stance("eager_on_recompile"):
        for _ in range(3):
            assert compiled(new).tolist() == [[2.0, 2.0]] * 2 and compiled(KNOWN).sum() == 6
    assert len(runs) == 3
    with set_stance("fail_on_recompile"):
        assert compiled(KNOWN).sum() == 6 and len(runs) == 3
        with pytest.raises(RuntimeError, match="counted would be captured .*fail_on_recompile"):
            compiled(new)


@pytest.mark.parametrize("stance", ["eager_then_compile", "aot_eager_then_compile"])
def test_a_first_call_is_eager_by_default(stance, compiled, runs):
    with set_stance(stance, skip_guard_eval_unsafe=True, force_backend="eager"):
        compiled(KNOWN)
    assert not runs


def test_a_stance_in_a_captured_function_has_it_run_eagerly():
    @tl.compile
    def function(x):
        with set_stance("force_eager"):
            return x + 1

    with pytest.warns(RuntimeWarning, match=r"set_stance\('force_eager'\) can't be captured"):
        function(tl.ones(2))
    assert function(tl.ones(2)).tolist() == [2.0, 2.0]


def test_bad_input():
    with pytest.raises(ValueError, match="stance must be one of default, force_eager, .*'fast'"):
        set_stance("fast")
