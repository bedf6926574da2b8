"""`compile(check=)`, `explain` and the log of captures: a user can ask what is replayed and why."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.program import CaptureError
from tensorlib.program.compiled.replaying import Replay
from tensorlib.program.reads import settings

SCALE = 2.0


class Metres(float):
    """A number of a class of the user's."""


LENGTH = Metres(1.5)


def trained(check):
    """Everything that training a small model leaves behind."""
    tl.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3))
    optimizer = tl.optim.Adam(model.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) * SCALE).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = tl.compile(step, fullgraph=True, check=check)
    losses = [compiled(tl.randn(4, 3)).item() for _ in range(6)]
    state = [x.tolist() for x in model.state_dict().values()]
    return losses, state, tl.rand(2).tolist()


@pytest.mark.parametrize("check", [True, 2])
def test_a_checked_step_trains_as_one_that_is_not(check):
    assert trained(check) == trained(False)


@pytest.mark.filterwarnings("ignore:.*runs in parts:RuntimeWarning")
@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("kind", [tl.optim.SGD, tl.optim.Adam])
def test_a_checked_step_of_an_optimizer_alone_is_done_once(kind, clips):
    def stepped(check):
        w = tl.zeros(2, requires_grad=True)
        optimizer = kind([w], lr=1.0)

        def step():
            if clips:
                nn.utils.clip_grad_norm_([w], 0.5)
            optimizer.step()

        compiled, found = tl.compile(step, check=check), []
        for _ in range(4):
            w.grad = tl.ones(2)
            compiled()
            found.append((w.tolist(), w.grad.tolist()))
        return found

    assert stepped(True) == stepped(False)


def test_a_checked_step_in_parts_is_done_once():
    def trained(check):
        w = tl.zeros(2, requires_grad=True)
        optimizer = tl.optim.Adam([w], lr=1.0)

        def step(x):
            optimizer.zero_grad()
            loss = (w - x).square().sum()
            loss.backward()
            found = loss.item()
            optimizer.step()
            return found

        compiled = tl.compile(step, check=check)
        return [(compiled(tl.ones(2)), w.tolist()) for _ in range(5)]

    with pytest.warns(RuntimeWarning, match="runs in parts"):
        assert trained(True) == trained(False)


@each("function", [
    lambda x: (x * 2, x.shape[0] / 4), lambda x: (x * 2, float("nan")),
    lambda x: (x * 2, 1j * x.shape[0]), lambda x: (x * 2, 10 ** x.shape[0] * 1000),
    lambda x: (x * 2, type(x).__name__), lambda x: (x * 2, [x.shape[0] * 0.5, {"a": 1.5}]),
    lambda x: (x * 2, LENGTH), lambda x: (x * 2, Metres)])
def test_results_that_each_call_makes_anew_are_compared_by_value(function):
    compiled = tl.compile(function, fullgraph=True, check=True)
    wanted, found = repr(function(tl.ones(3))), [compiled(tl.ones(3)) for _ in range(3)]
    assert [repr(x).partition(" at ")[0] for x in found] == [wanted.partition(" at ")[0]] * 3


@pytest.mark.parametrize("check, first", [(True, 1), (3, 3)])
def test_a_replay_that_differs_is_told_of(monkeypatch, check, first):
    f = tl.compile(lambda x: (x * 2).tanh(), check=check, fullgraph=True)
    x = tl.ones(3, requires_grad=True)
    f(x)
    run = Replay.values_for
    for wrong in (lambda found: [x + 1e-3 for x in found], lambda found: [x[:2] for x in found]):
        f._replays = 0
        monkeypatch.setattr(Replay, "values_for", lambda *args: wrong(run(*args)))
        for _ in range(first - 1):
            f(x)
        with pytest.raises(CaptureError, match="result 0 of the replay is not that of the eager"):
            f(x)
        monkeypatch.undo()
        f(x)


def test_what_a_checked_call_raises_is_what_the_function_raises():
    f = tl.compile(nn.functional.nll_loss, check=True, fullgraph=True)
    for _ in range(2):
        assert f(tl.zeros(2, 3), tl.tensor([0, 1])).item() == 0
    with pytest.raises(IndexError):
        f(tl.zeros(2, 3), tl.tensor([0, 7]))


def test_check_takes_a_number_of_calls():
    for check in (-1, 0.5, "all"):
        with pytest.raises(TypeError, match="check is a bool or a number of calls"):
            tl.compile(lambda x: x, check=check)


def test_explain_names_what_is_guarded_and_where_it_was_read(capsys, monkeypatch):
    f = tl.compile(lambda x: x * SCALE)
    f.explain(tl.ones(2))
    told = capsys.readouterr().out
    assert "<lambda>: replayed; 1 kind of calls is captured" in told
    assert "'SCALE' of a dict, test_compile_check.py:" in told
    monkeypatch.setenv("TENSORLIB_LOGS", "recompiles")
    f(tl.ones(3))
    assert "tensor 0 of the arguments is" in capsys.readouterr().err
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    f.explain(tl.ones(3))
    told = capsys.readouterr()
    assert "changed: 'SCALE' of a dict" in told.err and told.err.count("captured again") == 1
    assert "captured again, since" in told.out and "3 kinds of calls are captured" in told.out


def test_explain_says_what_refuses(capsys):
    with pytest.warns(RuntimeWarning, match="runs eagerly"):
        tl.compile(lambda x: x * x.sum().item()).explain(tl.ones(2))
    assert "<lambda>: runs eagerly: item: the value of a tensor" in capsys.readouterr().out


def test_each_public_setting_is_known_to_captures():
    """A function that sets or gives what holds for all code has a place in one of the two lists."""
    named = {name for name in dir(tl) if name.startswith(("get_", "set_", "is_", "are_", "use_"))
             and not isinstance(getattr(tl, name), type) and not hasattr(tl.Tensor, name)}
    assert named - {"is_tensor", "is_storage"} <= settings.GETTERS | settings.SETTERS


def test_what_is_guarded_is_the_users(capsys):
    """Nothing of what records while the function is captured, but for operators of tensors."""
    compiled = tl.compile(lambda x: x * 2)
    compiled.explain(tl.ones(2))
    guarded = capsys.readouterr().out.splitlines()[2:]
    assert len(guarded) == 2 and "<lambda>, test_compile_check.py:" in guarded[0]
    assert "special methods of the class Tensor, test_compile_check.py:" in guarded[1]
