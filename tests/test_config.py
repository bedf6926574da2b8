"""What users can ask of the installation and of the memory, and set."""

import os
import time

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.utils import collect_env
from tensorlib._core.products.blas import blas_info


def test_show_config_prints_what_it_returns(capsys):
    assert tl.show_config() is None
    printed = capsys.readouterr().out
    config = tl.show_config(mode="dicts")
    assert not capsys.readouterr().out
    for section, entries in config.items():
        assert f"{section}:" in printed
        assert all(f"  {name}:" in printed for name in entries)
    assert config["versions"]["tensorlib"] == tl.__version__ and tl.__version__ in printed
    assert config["versions"]["NumPy"] == np.__version__
    assert config["versions"]["compiler"].split()[0] in ("GCC", "Clang")
    assert config["kernels"]["level"] in config["kernels"]["available"]
    if not os.environ.get("TENSORLIB_ISA"):
        assert config["kernels"]["level"] == config["kernels"]["available"][0]
    assert config["BLAS"]["name"]


def test_show_config_refuses_other_modes():
    with pytest.raises(ValueError, match="show_config.*'json'"):
        tl.show_config("json")


def test_the_number_of_threads_governs_the_blas():
    before = tl.get_num_threads()
    try:
        for n in (1, 2):
            tl.set_num_threads(n)
            assert tl.get_num_threads() == n
            assert tl.show_config("dicts")["threads"]["in use"] == n
            assert blas_info()["threads"] in (n, None)
    finally:
        tl.set_num_threads(before)


@pytest.mark.parametrize("n, error", [(0, RuntimeError), (-1, RuntimeError), (1.5, TypeError),
                                      ("2", TypeError), (True, TypeError)])
def test_bad_numbers_of_threads_are_refused(n, error):
    with pytest.raises(error, match="set_num_threads"):
        tl.set_num_threads(n)


def test_memory_is_counted_and_reused():
    tl.memory.empty_cache()                  # small blocks stay
    tl.memory.reset_peak()
    before = tl.memory.stats()
    x = tl.empty(1 << 20)
    during = tl.memory.stats()
    assert during["in_use"] - before["in_use"] >= x.nbytes
    assert during["peak"] >= during["in_use"]
    del x
    after = tl.memory.stats()
    assert after["in_use"] == before["in_use"] and after["kept"] - before["kept"] >= 1 << 22
    tl.empty(1 << 20)
    assert tl.memory.stats()["reused"] > after["reused"]
    tl.memory.empty_cache()
    assert tl.memory.stats()["kept"] - before["kept"] < 1 << 20


def test_the_cache_has_a_limit():
    tl.memory.empty_cache()
    before = tl.memory.stats()
    try:
        tl.memory.set_cache_limit(0)
        tl.empty(1 << 20)
        assert tl.memory.stats()["kept"] - before["kept"] < 1 << 20
        with pytest.raises(ValueError, match="set_cache_limit"):
            tl.memory.set_cache_limit(-1)
    finally:
        tl.memory.set_cache_limit(before["limit"])


def test_memory_that_nobody_asks_for_is_given_back_after_a_while():
    tl.memory.empty_cache()
    try:
        tl.memory.set_cache_time(0.02)
        tl.empty(1 << 20)
        kept = tl.memory.stats()["kept"]
        assert kept >= 1 << 22
        time.sleep(0.1)
        tl.empty(1 << 12)                        # freed too: the allocator looks
        assert tl.memory.stats()["kept"] <= kept - (1 << 22) + (1 << 15)
        with pytest.raises(ValueError, match="set_cache_time"):
            tl.memory.set_cache_time(float("nan"))
    finally:
        tl.memory.set_cache_time(10)


def test_no_more_is_kept_than_makes_twice_what_was_in_use():
    tl.memory.empty_cache()
    try:
        tl.memory.set_cache_time(0)              # forgets what was in use before
        tl.memory.set_cache_time(1000)
        tl.memory.reset_peak()
        for n in range(40):                      # each of a size class of its own
            tl.empty(int(1 << 20) * (16 + n) // 16)
            now = tl.memory.stats()
            assert now["in_use"] + now["kept"] <= 2 * now["peak"] + (1 << 20)
        assert now["released"]
    finally:
        tl.memory.set_cache_time(10)


def test_what_does_not_fit_raises_one_error_under_two_names():
    with pytest.raises(tl.memory.OutOfMemoryError, match="zeros") as caught:
        tl.zeros(2**45)
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, RuntimeError)


def test_the_text_of_the_environment_is_what_is_printed(capsys):
    collect_env.main()
    printed = capsys.readouterr().out
    assert [x.split(":")[0] for x in printed.splitlines()] == [
        x.split(":")[0] for x in collect_env.get_pretty_env_info().splitlines()]
