"""What a captured call runs of the user's, it runs as often as the eager call, and not unseen."""

import pathlib
import warnings

import pytest

import tensorlib as tl


class Place:
    """An object that says which place it is, and counts who asks."""

    asked = 0

    def __init__(self, place):
        self.place = place

    def __index__(self):
        Place.asked += 1
        return self.place


@pytest.mark.parametrize("f", [
    lambda x, i: x[i], lambda x, i: x[:, i:], lambda x, i: x.select(0, i),
    lambda x, i: x.narrow(0, i, 1), lambda x, i: x.roll(i)])
def test_an_object_is_asked_for_its_number_as_by_the_eager_call(f):
    counts = []
    for wrap in (lambda f: f, tl.compile):
        place, x, Place.asked = Place(1), tl.arange(9.0).reshape(3, 3), 0
        compiled = wrap(lambda x: f(x, place))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for k in (1, 1, 0, 2):
                place.place = k
                assert compiled(x).tolist() == f(x, k).tolist()
        counts.append(Place.asked)
    assert counts[0] == counts[1]


class Counted(tl.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Counted.calls += 1
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_a_function_that_counts_its_calls_is_not_planned():
    x = tl.ones(3, requires_grad=True)
    Counted.calls = 0
    compiled = tl.compile(lambda x: Counted.apply(x).sum())
    with pytest.warns(RuntimeWarning, match="each call changes calls of the class Counted"):
        for k in range(1, 5):
            compiled(x)
            assert Counted.calls == k


def test_paths_are_asked_for_in_a_captured_function(tmp_path):
    path = tmp_path / "scale"
    path.write_text("2")
    with pytest.warns(RuntimeWarning, match="pathlib.py"):
        found = tl.compile(lambda x: x * float(pathlib.Path(path).read_text()))(tl.ones(1))
    assert found.item() == 2


def test_who_refuses_to_keep_a_tensor_of_inference_mode_is_named():
    compiled = tl.compile(lambda x, w: x * w)
    w = tl.ones(2, requires_grad=True)
    compiled(tl.ones(2), w)
    with tl.inference_mode():
        x = tl.ones(2)
    with pytest.raises(RuntimeError, match="^mul: inference tensors cannot be saved"):
        compiled(x, w)


def test_integers_below_a_bound_are_drawn_by_replays():
    compiled = tl.compile(lambda x: x + tl.randint(5, (3,)), fullgraph=True)
    for _ in range(3):
        tl.manual_seed(1)
        wanted = tl.randint(5, (3,)).tolist()
        tl.manual_seed(1)
        assert compiled(tl.zeros(3)).tolist() == wanted
    assert compiled._entries[0].replay is not None
