"""What a captured call runs of the user's, it runs as often as the eager call, and not unseen."""

import contextlib
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
    x = tl.ones(3)
    Counted.calls = 0
    compiled = tl.compile(lambda x: Counted.apply(x).sum())
    with pytest.warns(RuntimeWarning, match="each call changes calls of the class Counted"):
        for k in range(1, 5):
            compiled(x)
            assert Counted.calls == k


class Noisy(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        noise = tl.rand(3)
        ctx.save_for_backward(noise)
        return x * noise

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Dropping(Noisy):
    @staticmethod
    def forward(ctx, x):
        noise = tl.nn.functional.dropout(tl.ones(3))
        ctx.save_for_backward(noise)
        return x * noise


class Averaged(Noisy):
    average = tl.zeros(3)

    @staticmethod
    def forward(ctx, x):
        Averaged.average.lerp_(x, 0.5)
        ctx.save_for_backward(tl.ones(3))
        return x * 1


@pytest.mark.parametrize("cls, why", [
    (Noisy, "draws numbers"), (Dropping, "draws numbers"),
    (Averaged, "writes into what was there before")])
def test_a_function_that_can_not_run_once_more_for_its_gradient_is_not_captured(cls, why):
    found = []
    for wrap in (lambda f: f, tl.compile):
        tl.manual_seed(0)
        Averaged.average.zero_()
        function = wrap(lambda x: cls.apply(x))
        for k in range(3):
            x = tl.full((3,), 1.0 + k, requires_grad=True)
            warned = wrap is tl.compile and not k
            with pytest.warns(RuntimeWarning, match=f"Function that {why}") if (
                    warned) else contextlib.nullcontext():
                y = function(x)
            y.sum().backward()
            found.append((y.tolist(), x.grad.tolist(), Averaged.average.tolist()))
    assert found[:3] == found[3:]


class Kept(tl.autograd.Function):
    scale = 2.0

    @staticmethod
    def forward(ctx, x):
        ctx.scale = Kept.scale
        return x * ctx.scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale


def test_what_a_function_has_read_is_not_read_again_for_its_gradient(monkeypatch):
    compiled = tl.compile(lambda x: Kept.apply(x), fullgraph=True)
    for _ in range(3):
        x = tl.ones(2, requires_grad=True)
        y = compiled(x)
        with monkeypatch.context() as patch:
            patch.setattr(Kept, "scale", 50.0)
            y.sum().backward()
        assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("make", [
    lambda a: tl.distributions.Gamma(a, 1.0), lambda a: tl.distributions.Beta(a, a)])
def test_numbers_with_a_gradient_of_their_distribution_are_drawn_once(make):
    found = []
    for wrap in (lambda f: f, tl.compile):
        tl.manual_seed(0)
        function = wrap(lambda a: make(a).rsample())
        for k in range(3):
            a = tl.ones(3, requires_grad=True)
            with pytest.warns(RuntimeWarning, match="draws numbers") if (
                    wrap is tl.compile and not k) else contextlib.nullcontext():
                y = function(a)
            y.sum().backward()
            found.append((y.tolist(), a.grad.tolist(), tl.get_rng_state().tolist()))
    assert found[:3] == found[3:]


@pytest.mark.parametrize("used", [False, True])
def test_gamma_numbers_without_a_gradient_are_drawn_whoever_reads_them(used):
    found = []
    for wrap in (lambda f: f, tl.compile):
        tl.manual_seed(0)
        function = wrap(lambda a: (tl.distributions.Gamma(a, 1.0).sample(), a * 2)[not used])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append([(function(tl.ones(3)).tolist(), tl.get_rng_state().tolist())
                          for _ in range(3)])
    assert found[0] == found[1]


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
