"""Where tensors are made when no device is asked for: `with device(...)`, `set_default_device`."""

import threading

import numpy as np
import pytest

import tensorlib as tl
from tests.cases import each

MAKERS = {
    "tensor": lambda: tl.tensor([1.0]),
    "as_tensor": lambda: tl.as_tensor(np.ones(2)),
    "asarray": lambda: tl.asarray([1.0]),
    "scalar_tensor": lambda: tl.scalar_tensor(1.0),
    "full": lambda: tl.full((2,), 1.0),
    "empty_strided": lambda: tl.empty_strided((2,), (1,)),
    "eye": lambda: tl.eye(2),
    "linspace": lambda: tl.linspace(0, 1, 3),
    "randint": lambda: tl.randint(0, 3, (2,)),
    "randperm": lambda: tl.randperm(3),
    "tril_indices": lambda: tl.tril_indices(3, 3),
    "hann_window": lambda: tl.hann_window(3),
    "kaiser_window": lambda: tl.kaiser_window(3),
    "fftfreq": lambda: tl.fft.fftfreq(3),
    "Linear": lambda: tl.nn.Linear(2, 3).weight,
    "LSTM": lambda: tl.nn.LSTM(2, 3).weight_hh_l0,
    "BatchNorm1d": lambda: tl.nn.BatchNorm1d(2).running_mean,
    **{name: lambda name=name: getattr(tl, name)(2)
       for name in ("ones", "zeros", "empty", "rand", "randn", "arange")},
}
ONE = tl.ones(2, 3, requires_grad=True)
BESIDE = {                         # what is not made on the default device
    "ones_like": lambda: tl.ones_like(ONE),
    "new_zeros": lambda: ONE.new_zeros(2),
    "from_numpy": lambda: tl.from_numpy(np.ones(2)),
    "one_hot": lambda: tl.nn.functional.one_hot(ONE.long()),
    "stft": lambda: tl.stft(tl.ones_like(ONE[0]), 2, 1, return_complex=True),
    "median": lambda: ONE.median(0).values,
    "grad": lambda: tl.autograd.grad(ONE.cumprod(1).sum() + ONE.norm() + ONE[[0, 1]].std(), ONE)[0],
    "asked for": lambda: tl.ones(2, device="cpu"),
}


@each("make", MAKERS.values(), ids=MAKERS)
def test_in_a_block_of_a_device_tensors_are_made_on_it(make):
    with tl.device("meta"):
        assert make().is_meta
        with tl.device("cpu"):
            assert not make().is_meta
        assert make().is_meta
    assert not make().is_meta


@each("make", BESIDE.values(), ids=BESIDE)
def test_what_has_a_device_already_is_made_there(make):
    wanted = make()
    with tl.device("meta"):
        got = make()
    np.testing.assert_array_equal(got.detach().numpy(), wanted.detach().numpy())


def test_a_tensor_that_is_given_as_data_goes_to_the_device():
    with tl.device("meta"):
        assert tl.as_tensor(ONE).is_meta and tl.asarray(ONE.detach()).is_meta


def test_a_device_can_be_entered_in_itself_and_is_left_after_an_error():
    meta = tl.device("meta")
    with pytest.raises(ValueError):
        with meta as found, meta:
            assert found is meta
            raise ValueError
    assert tl.get_default_device() == tl.device("cpu") and not tl.ones(1).is_meta


def test_who_leaves_what_was_not_entered_changes_nothing():
    tl.ones(1, device="meta")
    for _ in range(3):
        tl.device("cpu").__exit__(None, None, None)
    assert tl.get_default_device().type == "cpu" and tl.ones(1).device.type == "cpu"
    with tl.device("meta"):
        assert tl.ones(1).is_meta
    assert not tl.ones(1).is_meta


def test_a_device_that_holds_no_tensors_is_refused():
    with pytest.raises(AssertionError, match="not compiled with CUDA enabled"):
        with tl.device("cuda"):
            pass
    assert not tl.ones(1).is_meta


def test_too_many_blocks_are_refused_and_all_are_left():
    def within(n):
        with tl.device("meta"):
            return within(n - 1) if n else tl.ones(1)
    assert within(61).is_meta
    with pytest.raises(RecursionError, match="62 blocks"):
        within(62)
    assert not tl.ones(1).is_meta


def test_the_default_device_is_that_of_a_thread():
    found = []
    try:
        tl.set_default_device("meta")
        assert tl.get_default_device() == tl.device("meta") and tl.ones(1).is_meta
        with tl.device("cpu"):
            assert tl.get_default_device() == tl.device("cpu") and not tl.ones(1).is_meta
        thread = threading.Thread(target=lambda: found.append(tl.ones(1).is_meta))
        thread.start()
        thread.join()
    finally:
        tl.set_default_device(None)
    assert found == [False] and not tl.ones(1).is_meta


def test_a_compiled_function_makes_tensors_where_the_eager_one_does():
    def f(x):
        with tl.device("meta"):
            y = tl.ones(2)
        return x + tl.ones(2), tl.zeros(2), y

    compiled, x = tl.compile(f), tl.ones(2)
    for _ in range(2):
        assert [y.is_meta for y in compiled(x)] == [False, False, True]
    with tl.device("meta"):
        with pytest.raises(RuntimeError, match="two devices"):
            compiled(x)
        assert all(y.is_meta for y in compiled(tl.ones(2)))
    assert [y.is_meta for y in compiled(x)] == [False, False, True]
