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
