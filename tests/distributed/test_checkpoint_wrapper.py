"""Modules within a model that compute their values again on the way back."""

import pytest
from process import run_forked

import tensorlib as tl
from tensorlib import nn
from tensorlib.distributed.algorithms._checkpoint import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)

X = tl.arange(6.0).reshape(3, 2)
WRAPPERS = [checkpoint_wrapper, offload_wrapper,
            lambda x: checkpoint_wrapper(x, CheckpointImpl.REENTRANT),
            lambda x: checkpoint_wrapper(x, checkpoint_fn=lambda call, *args, extra: call(*args),
                                         extra=1)]


def model():
    tl.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Sequential(nn.Linear(3, 1)))


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_values_gradients_and_names_are_those_of_the_model(wrapper):
    plain, wrapped = model(), model()
    apply_activation_checkpointing(wrapped, wrapper, lambda x: isinstance(x, nn.Linear))
    assert type(wrapped[0]) is not nn.Linear is not type(wrapped[2][0])
    assert wrapped[0].in_features == 2
    for each in (plain, wrapped):
        each(X).sum().backward()
    assert tl.equal(plain(X), wrapped(X))
    assert all(tl.equal(x.grad, y.grad) for x, y in zip(plain.parameters(), wrapped.parameters()))
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    assert [name for name, _ in wrapped[0].named_parameters()] == ["weight", "bias"]
    for each, other in ((plain, wrapped), (wrapped, plain)):
        other.load_state_dict({name: x + 1 for name, x in each.state_dict().items()})
        assert tl.equal(other[0].weight, each[0].weight + 1)


def test_the_forward_runs_again_on_the_way_back():
    calls = []

    class Counted(nn.Module):
        def forward(self, x, *, scale):
            calls.append(scale)
            return (x * scale).tanh()

    checkpoint_wrapper(Counted())(X.clone().requires_grad_(), scale=2).sum().backward()
    assert calls == [2, 2]


def test_what_is_inside_is_wrapped_first_and_the_model_is_not():
    wrapped = model()
    apply_activation_checkpointing(wrapped)
    assert type(wrapped) is nn.Sequential
    assert all(type(x) is CheckpointWrapper for x in wrapped) and type(wrapped[2][0]
                                                                       ) is CheckpointWrapper
    with pytest.raises(NotImplementedError, match="check_fn says which"):
        apply_activation_checkpointing(model(), auto_wrap_policy=lambda **of: True)


def test_scripts_import_them_by_the_names_of_pytorch():
    run_forked("""
from tensorlib import as_torch
as_torch.install()
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl, checkpoint_wrapper)
assert callable(checkpoint_wrapper)
""")
