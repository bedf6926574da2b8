"""Modules under the names that PyTorch has for them, and what libraries look for in these."""

import importlib
import sys

import pytest
from cases import each
from process import run_forked

import tensorlib as tl

HOMES = {
    "distributions.categorical": ("Categorical", "distributions"),
    "distributions.normal": ("Normal", "distributions"),
    "distributions.multivariate_normal": ("MultivariateNormal", "distributions"),
    "distributions.relaxed_bernoulli": ("RelaxedBernoulli", "distributions"),
    "autograd.grad_mode": ("no_grad", "autograd"),
    "autograd.profiler": ("record_function", "profiler"),
    "nn.modules.activation": ("MultiheadAttention", "nn"),
    "nn.modules.conv": ("_ConvTransposeNd", "nn.modules.conv"),
    "nn.common_types": ("_size_2_t", "nn.common_types"),
    "cuda.amp.grad_scaler": ("GradScaler", "amp"),
    "cuda.amp.autocast_mode": ("autocast", "amp"),
    "utils.model_zoo": ("load_url", "hub"),
}


@each("path", sorted(HOMES))
def test_an_import_by_path_gives_the_same_object(path):
    name, home = HOMES[path]
    found = getattr(importlib.import_module(f"tensorlib.{path}"), name)
    assert found is getattr(importlib.import_module(f"tensorlib.{home}"), name)
    assert sys.modules[f"tensorlib.{path}"] is importlib.import_module(f"tensorlib.{path}")


def test_modules_say_of_themselves_what_they_did_before():
    module = importlib.import_module("tensorlib.distributions.gamma")
    assert module.__name__ == module.__spec__.name == "tensorlib.distributions.positive"
    assert importlib.import_module("tensorlib.distributions.positive") is module


@pytest.mark.parametrize("path", ["distributions.nothing", "distributions.Normal", "nn.Linear",
                                  "autograd.backward", "optim.adam.Adam"])
def test_what_is_no_module_is_not_found(path):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"tensorlib.{path}")


def test_under_the_name_of_torch():
    run_forked("""
from tensorlib import as_torch
as_torch.install()
from torch.distributions.categorical import Categorical
import torch.utils.model_zoo as zoo, torch.autograd.profiler as profiler, torch.distributions as d
assert Categorical is d.Categorical and zoo.load_url and profiler.record_function
assert importlib.util.find_spec("torch.distributions.nothing") is None
""".replace("import torch.utils", "import importlib.util, torch.utils", 1))


def test_settings_of_a_compiler_keep_what_they_are_told():
    config = tl._dynamo.config
    with config.patch(cache_size_limit=3, suppress_errors=True):
        assert config.cache_size_limit == 3 and config.suppress_errors
        with config.patch("verbose", 7), config.patch({"recompile_limit": 1}):
            assert config.verbose == 7 and config.recompile_limit == 1
    assert config.cache_size_limit == 8 and config.recompile_limit == 8
    tl._inductor.config.triton.unique_kernel_names = True
    tl._dynamo.mark_dynamic(tl.ones(2), 0)
    tl._dynamo.graph_break()
    tl._dynamo.reset()


def test_gradients_in_one_vector():
    xs = [tl.arange(6.0).reshape(2, 3), tl.tensor(7.0), tl.ones(0)]
    flat = tl._utils._flatten_dense_tensors(xs)
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, 7]
    back = tl._utils._unflatten_dense_tensors(flat, xs)
    assert all(tl.equal(x, y) for x, y in zip(xs, back, strict=True))
    assert tl._utils._flatten_dense_tensors([]).shape == (0,)
    mixed = [tl.ones(4), tl.ones(2).double(), tl.ones(1), tl.ones(5)]
    groups = list(tl._utils._take_tensors(mixed, 20))
    assert [[x.numel() for x in group] for group in groups] == [[4, 1], [5], [2]]
