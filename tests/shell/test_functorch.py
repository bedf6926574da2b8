"""Modules as functions of their parameters, under the names of `functorch`."""

import pytest
from process import run_forked

import tensorlib as tl
from tensorlib import nn
from tensorlib.functorch import (
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
    vmap,
)
from tensorlib.testing import assert_close

X = tl.arange(6.0).reshape(3, 2)


def test_a_module_is_a_function_of_copies_of_its_parameters():
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    call, params = make_functional(model)
    assert [x.shape for x in params] == [x.shape for x in model.parameters()]
    assert params[0] is not model[0].weight and params[0].requires_grad
    assert tl.equal(call(params, X), model(X))
    assert not call([tl.zeros_like(x) for x in params], X).any()
    grads = tl.func.grad(lambda params: call(params, X).sum())(params)
    model(X).sum().backward()
    assert_close(grads, tuple(x.grad for x in model.parameters()))
    assert not any(x.requires_grad for x in make_functional(model, True)[1])


def test_parameters_that_are_shared_are_given_once():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    call, params = make_functional(model)
    assert len(params) == 3 and tl.equal(call(params, X), model(X))
    with pytest.raises(ValueError):
        call(params[:2], X)


def test_buffers_are_arguments_too():
    model = nn.BatchNorm1d(2).eval()
    call, params, buffers = make_functional_with_buffers(model)
    assert len(buffers) == 3
    moved = [x + 1 if x.is_floating_point() else x for x in buffers]
    assert not tl.equal(call(params, moved, X), model(X))
    assert tl.equal(call(params, buffers, X), model(X))


def test_an_ensemble_is_mapped_over():
    models = [nn.Linear(2, 3) for _ in range(4)]
    call, params, buffers = combine_state_for_ensemble(models)
    assert_close(vmap(call, (0, 0, None))(params, buffers, X), tl.stack([m(X) for m in models]))
    for wrong in ([], [models[0], nn.Tanh()], [models[0], nn.Linear(2, 3).eval()]):
        with pytest.raises(RuntimeError, match="combine_state_for_ensemble: expected"):
            combine_state_for_ensemble(wrong)


def test_scripts_import_it_by_its_own_name():
    run_forked("""
from tensorlib import as_torch
as_torch.install()
import functorch, torch
from functorch import make_functional, vmap
assert vmap is torch.vmap and functorch.grad is torch.func.grad
""")
