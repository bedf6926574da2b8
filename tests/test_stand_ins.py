"""Modules that scripts for PyTorch import: of random numbers, and of groups of processes."""

import pytest

import tensorlib as tl
from tensorlib import distributed


def test_what_is_drawn_in_a_fork_changes_nothing():
    tl.random.manual_seed(4)
    expected = tl.rand(3).tolist()
    for raised in (False, True):
        tl.manual_seed(4)
        try:
            with tl.random.fork_rng(devices=[]):
                tl.random.manual_seed(9)
                tl.rand(7)
                if raised:
                    raise KeyError
        except KeyError:
            pass
        assert tl.rand(3).tolist() == expected
    tl.manual_seed(4)
    with tl.random.fork_rng(enabled=False):
        assert tl.rand(3).tolist() == expected
    assert tl.rand(3).tolist() != expected


def test_the_generators_functions_are_those_of_the_package():
    for name in set(tl.random.__all__) - {"fork_rng"}:
        assert getattr(tl.random, name) is getattr(tl, name)


def test_there_are_no_groups_of_processes():
    assert not distributed.is_available() and not distributed.is_initialized()
    for ask in (distributed.get_rank, distributed.get_world_size):
        with pytest.raises(ValueError, match=f"{ask.__name__}: there are no process groups"):
            ask()
    with pytest.raises(RuntimeError, match="init_process_group: there are no process groups"):
        distributed.init_process_group("gloo", rank=0, world_size=1)


def test_functions_for_a_compiler_run_as_they_are():
    def double(x):
        return x + x if x.sum() > 0 else x - 1

    module = tl.nn.Linear(2, 2)
    for same in (tl.jit.script(double), tl.jit.trace(double, tl.ones(2), check_trace=False),
                 tl.jit.script_if_tracing(double), tl.jit.ignore(double), tl.jit.unused(double),
                 tl.jit.ignore(drop=True)(double), tl.jit.export(double)):
        assert same is double
    for same in (tl.jit.script(module), tl.jit.trace(module, (tl.ones(2),)),
                 tl.jit.trace_module(module, {"forward": tl.ones(2)}), tl.jit.freeze(module.eval()),
                 tl.jit.optimize_for_inference(module)):
        assert same is module
    assert not tl.jit.is_scripting() and not tl.jit.is_tracing()
    assert tl.jit.annotate(list[int], [3]) == [3] and tl.jit.Attribute(2.5, float) == 2.5
    assert tl.jit.isinstance(3, int) and not tl.jit.isinstance(3.0, int)
    with pytest.raises(RuntimeError, match=r"jit.save: .* tensorlib.save\(m.state_dict\(\), f\)"):
        tl.jit.save(module, "model.pt")
    with pytest.raises(RuntimeError, match="jit.load: programs of PyTorch's compiler"):
        tl.jit.load("model.pt")


def test_threads_between_operations_are_a_setting():
    assert tl.get_num_interop_threads() == 1
    tl.set_num_interop_threads(4)
    assert tl.get_num_interop_threads() == 4
    tl.set_num_interop_threads(1)
    with pytest.raises(RuntimeError, match="expects a positive number of threads, got 0"):
        tl.set_num_interop_threads(0)
    for wrong in ("2", 2.0, True):
        with pytest.raises(TypeError, match="set_num_interop_threads: expects an int"):
            tl.set_num_interop_threads(wrong)


def test_old_names_of_interpolate_warn():
    x = tl.arange(8.0).reshape(1, 2, 2, 2)
    functional = tl.nn.functional
    with pytest.warns(UserWarning, match="upsample_nearest. is deprecated"):
        assert functional.upsample_nearest(x, scale_factor=2).equal(
            functional.interpolate(x, scale_factor=2))
    with pytest.warns(UserWarning, match="upsample_bilinear. is deprecated"):
        assert functional.upsample_bilinear(x, 3).equal(
            functional.interpolate(x, 3, mode="bilinear", align_corners=True))
