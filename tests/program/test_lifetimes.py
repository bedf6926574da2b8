"""What looks at lifetimes and at frames runs eagerly, and a capture keeps no tensor alive."""

import sys
import weakref

import pytest

import tensorlib as tl


def runs_eagerly(f, reason):
    run = tl.compile(f)
    with pytest.warns(RuntimeWarning, match=reason):
        run(tl.ones(2))
    return run


@pytest.mark.parametrize("refer", [
    weakref.ref, lambda x: weakref.finalize(x, print).peek,
    lambda x: weakref.WeakValueDictionary({0: x}).popitem], ids=["ref", "finalize", "dictionary"])
def test_weak_references_to_what_a_call_makes_are_those_of_this_call(refer):
    kept = []

    def f(x):
        y = x * 2
        kept.append(refer(y))
        return y + 1

    run = runs_eagerly(f, "weakref")
    for _ in range(3):
        run(tl.ones(2))
    assert len(kept) == 4
    for each in kept:                      # the dictionary is empty, the others give None
        try:
            assert each() is None
        except KeyError:
            pass


def test_a_capture_lets_go_of_the_tensors_of_its_call():
    x = tl.ones(2)
    alive = weakref.ref(x)

    def f(x):
        return (x * 2).sin()

    run = tl.compile(f)
    run(x)
    del x
    assert alive() is None
    assert tl.equal(run(tl.ones(2)), f(tl.ones(2)))


def test_what_looks_at_the_variables_of_its_caller_sees_all_of_them():
    def names():
        return sorted(sys._getframe(1).f_locals)

    seen = []

    def f(x):
        y = x * 3
        seen.append(names())
        return y + 1

    run = runs_eagerly(f, "_getframe")
    run(tl.ones(2))
    run(tl.ones(2))
    assert seen[1:] == [["names", "seen", "x", "y"]] * 2


def test_a_frame_from_outside_is_asked_in_each_call():
    def caller():
        return sys._getframe(2).f_code.co_name

    def f(x):
        return x * len(caller())

    run = tl.compile(f)

    def one():
        return run(tl.ones(1)).item()

    def three():
        return run(tl.ones(1)).item()

    with pytest.warns(RuntimeWarning, match="frame"):
        one(), three()
    assert [one(), three()] == [one(), three()] and one() != three()
