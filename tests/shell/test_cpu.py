"""The functions of devices for the one that there is, and functions of numbers that PyTorch may
have as symbols."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import cpu


def test_there_is_one_device():
    assert cpu.is_available() and cpu.is_initialized()
    assert cpu.device_count() == 1 and cpu.current_device() == "cpu"
    assert cpu.set_device("cpu") is None and cpu.synchronize() is None


def test_streams_are_handed_on():
    usual, own, event = cpu.current_stream(), cpu.Stream(), cpu.Event()
    with cpu.stream(own):
        assert cpu.current_stream() is own
        with cpu.stream(None):
            assert cpu.current_stream() is own
        with pytest.raises(ZeroDivisionError), cpu.stream(usual):
            assert cpu.current_stream() is usual
            1 / 0
        assert cpu.current_stream() is own
    assert cpu.current_stream() is usual
    event.record(own)
    assert event.query() and event.wait(own) is event.synchronize() is None
    assert own.wait_stream(usual) is own.wait_event(event) is own.record_event() is None


@each("device, name", [(None, "cpu"), ("cpu", "cpu"), (tl.device("cpu"), "cpu"), ("cuda", "cuda"),
                       ("cuda:1", "cuda"), ("xpu", "xpu"), ("mps", "mps")])
def test_modules_of_devices(device, name):
    assert tl.get_device_module(device) is getattr(tl, name)


@each("device, error", [("meta", "no module for devices of type 'meta'"), (3, "got 3"),
                        ("nothing", "nothing")])
def test_devices_without_a_module(device, error):
    with pytest.raises(RuntimeError, match=error):
        tl.get_device_module(device)


@each("of_device", ["cpu", "cuda"])
def test_older_names_of_mixed_precision_warn(of_device):
    module = getattr(tl, of_device).amp
    for name in ("autocast", "GradScaler"):
        with pytest.warns(FutureWarning, match=rf"use `tensorlib.amp.{name}\('{of_device}'"
                          ) as caught:
            getattr(module, name)(enabled=False)
        assert caught[0].filename == __file__


def test_mixed_precision_under_the_older_name():
    with pytest.warns(FutureWarning), cpu.amp.autocast(dtype=tl.float16):
        assert (tl.ones(2, 2) @ tl.ones(2, 2)).dtype == tl.float16
    with pytest.warns(FutureWarning):
        assert cpu.amp.GradScaler(init_scale=8.0).scale(tl.ones(1)).item() == 8


CALLS = [("sym_float", 3), ("sym_int", 3.7), ("sym_int", -3.7), ("sym_not", False),
         ("sym_ite", True, 1, 2), ("sym_max", 2, 3), ("sym_max", 2.0, 3), ("sym_min", 2, 3.5),
         ("sym_min", 1, 2), ("sym_sqrt", 4), ("sym_sum", [1, 2, 3])]


@each("name, args, expected", [
    (name, args, expected) for (name, *args), expected in zip(
        CALLS, [3.0, 3, -3, True, 1, 3, 3.0, 2.0, 1, 2.0, 6])])
def test_functions_of_symbols_are_those_of_numbers(name, args, expected):
    found = getattr(tl, name)(*args)
    assert found == expected and type(found) is type(expected)


@each("call", CALLS, ids=str)
def test_functions_of_symbols_beside_pytorchs(call):
    torch = pytest.importorskip("torch")
    name, *args = call
    found, theirs = getattr(tl, name)(*args), getattr(torch, name)(*args)
    assert found == theirs and type(found) is type(theirs)


def test_a_choice_takes_a_bool_and_values_of_one_type():
    for args in ((1, 2, 3), (True, 1, 2.0)):
        with pytest.raises(TypeError, match="sym_ite: takes a bool and two values of one type"):
            tl.sym_ite(*args)
