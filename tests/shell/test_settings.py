"""Settings that change no result, older kinds of tensors and names of devices."""

import pytest
from cases import each

import tensorlib as tl


@pytest.fixture
def restored():
    """Settings are as they were, whatever a test sets."""
    yield
    tl.use_deterministic_algorithms(False)
    tl.set_float32_matmul_precision("highest")
    tl.set_warn_always(False)
    tl.set_default_dtype(tl.float32)


def deterministic():
    return (tl.get_deterministic_debug_mode(), tl.are_deterministic_algorithms_enabled(),
            tl.is_deterministic_algorithms_warn_only_enabled())


LEVELS = [(0, False, False), (1, True, True), (2, True, False)]


@pytest.mark.parametrize("mode, warn_only, level", [
    (False, False, 0), (False, True, 0), (True, True, 1), (True, False, 2)])
def test_deterministic_algorithms(mode, warn_only, level, restored):
    tl.set_deterministic_debug_mode(2 - level)
    tl.use_deterministic_algorithms(mode, warn_only=warn_only)
    assert deterministic() == LEVELS[level]


def test_deterministic_algorithms_warn_not_unless_asked(restored):
    tl.use_deterministic_algorithms(True)
    assert deterministic() == LEVELS[2]


@pytest.mark.parametrize("level, name", [(0, "default"), (1, "warn"), (2, "error")])
def test_the_debug_mode_is_the_same_by_name_and_number(level, name, restored):
    for mode in (name, level):
        tl.set_deterministic_debug_mode((level + 1) % 3)
        tl.set_deterministic_debug_mode(mode)
        assert deterministic() == LEVELS[level]


@each("call, error, words", [
    (lambda: tl.use_deterministic_algorithms(1), TypeError, "mode must be a bool, got 1"),
    (lambda: tl.use_deterministic_algorithms(True, warn_only="a"), TypeError, "warn_only must"),
    (lambda: tl.set_deterministic_debug_mode("no"), RuntimeError, "expected one of default.*'no'"),
    (lambda: tl.set_deterministic_debug_mode(3), RuntimeError, "or 0, 1, 2, got 3"),
    (lambda: tl.set_deterministic_debug_mode(-1), RuntimeError, "got -1"),
    (lambda: tl.set_deterministic_debug_mode(1.0), TypeError, "a str or an int, but got float"),
    (lambda: tl.set_default_device("cuda"), RuntimeError, "set_default_device: .* CUDA enabled"),
    (lambda: tl.set_default_device(3.5), TypeError, "set_default_device: .*got 3.5"),
])
def test_what_settings_refuse_changes_nothing(call, error, words):
    with pytest.raises(error, match=words):
        call()
    assert deterministic() == LEVELS[0]


def test_the_precision_of_products_is_kept(restored):
    x = tl.tensor([[1 + 2.0**-20]])
    for precision in ("medium", "high", "highest"):
        assert tl.set_float32_matmul_precision(precision) is None
        assert tl.get_float32_matmul_precision() == precision
        assert (x @ x).item() == 1 + 2.0**-19
    tl.set_float32_matmul_precision("high")
    with pytest.warns(UserWarning, match="'low' is not one of highest, high, medium") as caught:
        tl.set_float32_matmul_precision("low")
    assert caught[0].filename == __file__ and tl.get_float32_matmul_precision() == "high"


def test_settings_that_say_what_is(restored):
    for device in (None, "cpu", "cpu:0", tl.device("cpu")):
        tl.set_default_device(device)
        assert tl.get_default_device() == tl.device("cpu") == tl.ones(2).device
    assert tl.set_flush_denormal(True) is False and tl.tensor(2.0**-140).item() == 2.0**-140
    for told in (True, False):
        tl.set_warn_always(told)
        assert tl.is_warn_always_enabled() is told


# ---- kinds of tensors ----------------------------------------------------------------------------

KINDS = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
         "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
         "Bool": "bool"}


@each("name, dtype", KINDS.items())
def test_a_kind_makes_and_knows_tensors_of_its_dtype(name, dtype):
    kind, dtype = getattr(tl, f"{name}Tensor"), getattr(tl, dtype)
    other = tl.zeros(2, dtype=tl.int64 if dtype.is_floating_point else tl.float32)
    assert kind(2, 3).shape == (2, 3) and kind().shape == (0,) and kind(2).dtype == dtype
    assert kind([1, 0]).dtype == dtype and kind([1, 0], device="cpu").tolist() == [1, 0]
    assert kind(tl.ones(2, dtype=dtype)).tolist() == [1, 1]
    assert isinstance(tl.ones(2, dtype=dtype), kind)
    assert not isinstance(other, kind) and not isinstance(1, kind)
    assert repr(kind) == f"<class 'tensorlib.{name}Tensor'>"
    with pytest.raises(TypeError, match=f"{name}Tensor: expected a tensor of {dtype}, got one of "
                                        f"{other.dtype}; x.to"):
        kind(other)
    for device, words in (("cuda", "CUDA enabled"), ("meta", "got 'meta'")):
        with pytest.raises(RuntimeError, match=f"{name}Tensor: .*{words}"):
            kind(2, device=device)


@pytest.mark.parametrize("name", KINDS)
def test_the_default_is_set_by_floating_kinds_alone(name, restored):
    kind = getattr(tl, f"{name}Tensor")
    for given in (kind, f"torch.{name}Tensor", f"tensorlib.{name}Tensor"):
        tl.set_default_dtype(tl.float64 if kind.dtype != tl.float64 else tl.float32)
        before = tl.get_default_dtype()
        if kind.dtype.is_floating_point:
            tl.set_default_tensor_type(given)
            assert tl.get_default_dtype() == kind.dtype == tl.ones(1).dtype
        else:
            with pytest.raises(TypeError, match="only floating-point types are supported"):
                tl.set_default_tensor_type(given)
            assert tl.get_default_dtype() == before


@pytest.mark.parametrize("given, words", [
    ("torch.StrangeTensor", "type torch.StrangeTensor not available; expected one of FloatTensor"),
    ("FloatTensor", "type FloatTensor not available"),
    ("torch.cuda.FloatTensor", "type torch.cuda.FloatTensor not available"),
    (tl.float64, "only floating-point types .* got tensorlib.float64"), (3, "only floating-point"),
])
def test_what_is_no_kind_is_refused(given, words):
    with pytest.raises(TypeError, match=f"set_default_tensor_type: {words}"):
        tl.set_default_tensor_type(given)
    assert tl.get_default_dtype() == tl.float32


# ---- devices -------------------------------------------------------------------------------------

@pytest.mark.parametrize("given, kind, index", [
    (("cpu",), "cpu", None), (("cuda:0",), "cuda", 0), (("cuda", 0), "cuda", 0),
    (("xpu:12",), "xpu", 12), (("mps", 3), "mps", 3), ((tl.device("cuda:5"),), "cuda", 5)])
def test_names_of_devices(given, kind, index):
    device = tl.device(*given)
    assert (device.type, device.index) == (kind, index)
    assert str(device) == (kind if index is None else f"{kind}:{index}")
    assert eval(repr(device), {"device": tl.device}) == device
    assert hash(device) == hash(tl.device(kind, index)) and device != kind
    assert device not in {tl.device(kind, 7), tl.device("hip", index)}


@each("given, error, words", [
    ((None,), TypeError, "expected a name as 'cpu', got None"),
    ((True,), TypeError, "expected a name as 'cpu', got True"),
    ((tl.device("cpu"), 1), TypeError, "expected a name as 'cpu'"),
    ((1,), AssertionError, "1 is the number of an accelerator"),
    (("tpu",), RuntimeError, "expected one of cpu, cuda, .* at the start, got 'tpu'"),
    (("cuda:1", 1), RuntimeError, "'cuda:1' has a number, and index=1 was given"),
    (("cuda:",), RuntimeError, "expected a number after the colon, got 'cuda:'"),
    (("cuda:01",), RuntimeError, "expected a number after the colon"),
    (("cuda:-1",), RuntimeError, "expected a number after the colon"),
    (("cuda:\u0661",), RuntimeError, "expected a number after the colon"),
    (("cuda:10000",), RuntimeError, "expected a number after the colon"),
    (("cuda", -1), RuntimeError, "index must be 0 or more, got -1"),
    (("cuda", 1.5), TypeError, "index must be an int, got 1.5"),
    (("cuda", True), TypeError, "index must be an int, got True"),
])
def test_names_that_no_device_has(given, error, words):
    with pytest.raises(error, match=f"device: {words}") as caught:
        tl.device(*given)
    assert isinstance(caught.value, TypeError) == (error is TypeError)


@pytest.mark.parametrize("where", [3.5, True, ["cpu"]])
def test_what_is_no_device(where):
    with pytest.raises(TypeError, match=r"zeros: device must be a device or its name, got"):
        tl.zeros(2, device=where)


def test_how_limits_look():
    """The words of PyTorch."""
    assert repr(tl.finfo(tl.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)")
    assert repr(tl.finfo(tl.float16)).startswith(
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e")
