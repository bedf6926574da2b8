"""What tensors look like. The expected texts are PyTorch's."""

import math
import time

import numpy as np
import pytest
from cases import each
from tensorlib._core.arrays import printing
from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.arrays.convert import tensor
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.tensor.tensor import Tensor


INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def default_options():
    yield
    printing.set_printoptions(profile="default")


def ramp(*shape):
    return from_numpy((np.arange(math.prod(shape)) / 3).reshape(shape).astype("f4"))


@each(("data", "text"), [
    (1, "tensor(1)"), (-1.5, "tensor(-1.5000)"), (True, "tensor(True)"), (NAN, "tensor(nan)"),
    ([], "tensor([])"), ([[]], "tensor([], size=(1, 0))"), ([1.0, 2.0], "tensor([1., 2.])"),
    ([1, 20, -3], "tensor([ 1, 20, -3])"), ([True, False], "tensor([ True, False])"),
    ([0.5, 100.5, -3], "tensor([  0.5000, 100.5000,  -3.0000])"),
    ([INF, -INF, 1.5], "tensor([   inf,   -inf, 1.5000])"), ([NAN, 1.0], "tensor([nan, 1.])"),
    ([0.0, -0.0], "tensor([0., -0.])"), ([1e-5], "tensor([1.0000e-05])"),
    ([1e10, 1.0], "tensor([1.0000e+10, 1.0000e+00])"),
    ([1e8, 2e8], "tensor([1.0000e+08, 2.0000e+08])"),
    ([123456.0, 1e6], "tensor([ 123456., 1000000.])"),
    ([[1.0, 2.5], [-3.0, 4.0]], "tensor([[ 1.0000,  2.5000],\n        [-3.0000,  4.0000]])"),
    ([[[1], [2]], [[3], [4]]],
     "tensor([[[1],\n         [2]],\n\n        [[3],\n         [4]]])"),
    (list(range(25)),
     "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,"
     + "\n        18, 19, 20, 21, 22, 23, 24])"),
])
def test_elements(data, text):
    assert repr(tensor(data)) == text
    assert str(tensor(data)) == text


@each(("data", "name", "text"), [
    (1, "float64", "tensor(1., dtype=tensorlib.float64)"),
    ([1.5], "bfloat16", "tensor([1.5000], dtype=tensorlib.bfloat16)"),
    ([1.5], "float16", "tensor([1.5000], dtype=tensorlib.float16)"),
    ([1, 2], "uint8", "tensor([1, 2], dtype=tensorlib.uint8)"),
    ([1, 0], "bool", "tensor([ True, False])"), ([1], "int64", "tensor([1])"),
    ([], "int64", "tensor([], dtype=tensorlib.int64)"),
    ([[]], "float64", "tensor([], size=(1, 0), dtype=tensorlib.float64)"),
])
def test_dtype_is_shown_unless_it_is_plain(data, name, text):
    assert repr(tensor(data, dtype=BY_NAME[name])) == text


def test_requires_grad_is_shown():
    assert repr(tensor([[1.0]], requires_grad=True)) == "tensor([[1.]], requires_grad=True)"
    x = tensor([i / 3 for i in range(7)], dtype=BY_NAME["float64"], requires_grad=True)
    assert repr(x) == (
        "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000],\n"
        "       dtype=tensorlib.float64, requires_grad=True)")


def test_summaries():
    assert repr(ramp(1001)) == (
        "tensor([0.0000e+00, 3.3333e-01, 6.6667e-01,  ..., 3.3267e+02, 3.3300e+02,\n"
        "        3.3333e+02])")
    text = repr(from_numpy(np.arange(2000).reshape(40, 50)))
    assert text.splitlines()[0] == "tensor([[   0,    1,    2,  ...,   47,   48,   49],"
    assert text.splitlines()[3] == "        ...,"
    assert len(text.splitlines()) == 7
    # only dims with a middle lose it
    assert repr(from_numpy(np.zeros((2, 1000)))).count("...") == 2


def test_a_large_tensor_prints_at_once():
    x = from_numpy(np.broadcast_to(np.float32(1), (10**4, 10**5)))
    begin = time.perf_counter()
    text = repr(x)
    assert time.perf_counter() - begin < 0.5
    assert text.count("1.") == 36


def test_strided_tensors_print_their_elements():
    assert repr(from_numpy(np.arange(4)[::-2])) == "tensor([3, 1])"


@pytest.mark.parametrize(("options", "data", "text"), [
    ({"precision": 2}, [1 / 3], "tensor([0.33])"),
    ({"sci_mode": True}, [1.0], "tensor([1.0000e+00])"),
    ({"sci_mode": False}, [1e-5, 1.0], "tensor([0.0000, 1.0000])"),
    ({"linewidth": 20}, [1, 2, 3, 4, 5, 6], "tensor([1, 2, 3, 4,\n        5, 6])"),
    ({"threshold": 4, "edgeitems": 1}, [1, 2, 3, 4, 5], "tensor([1,  ..., 5])"),
    ({"threshold": 4, "edgeitems": 0}, [1, 2, 3, 4, 5], "tensor([...])"),
    ({"profile": "short"}, [1 / 3], "tensor([0.33])"),
])
def test_options(options, data, text):
    plain = repr(tensor(data))
    with printing.printoptions(**options):
        changed = repr(tensor(data))
    assert changed == text
    assert repr(tensor(data)) == plain != changed


def test_full_profile_shows_everything():
    printing.set_printoptions(profile="full")
    assert "..." not in repr(ramp(1001))
    assert printing.get_printoptions()["threshold"] == math.inf


@pytest.mark.parametrize("options", [
    {"precision": -1}, {"precision": 1.5}, {"edgeitems": "3"}, {"profile": "long"},
    {"threshold": NAN},
])
def test_wrong_options(options):
    before = printing.get_printoptions()
    with pytest.raises(ValueError, match="set_printoptions"):
        printing.set_printoptions(**options)
    assert printing.get_printoptions() == before


def test_format():
    assert f"{tensor(1.2345):.2f}" == "1.23"
    assert f"{tensor(3):4d}" == "   3"
    assert f"{tensor([1.0])}" == "tensor([1.])"
    for x, text in ((tensor(2), "2"), (tensor(2.5, requires_grad=True) * 2, "5.0"),
                    (tensor(True), "True"), (tensor(1 + 2j), "(1+2j)")):
        assert f"{x}" == format(x) == text
    weight = tensor(2.0).as_subclass(Weight)
    assert f"{weight}" == "Weight(2.)" and f"{weight:.1f}" == "2.0"
    assert f"{tensor(1.0, device='meta')}".startswith("tensor(..., device='meta'")
    for x in (tensor([1.0]), tensor(1.0, device="meta")):
        with pytest.raises(TypeError):
            f"{x:.2f}"


def test_subclasses_show_their_name():
    assert repr(Weight([1.0])) == "Weight([1.])"


class Weight(Tensor):
    pass
