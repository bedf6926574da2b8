"""`tensorlib.array_api`: where the standard differs from PyTorch, and gradients through it."""

import inspect

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import array_api as xp

DTYPES = [name for kind in ("bool", "numeric")
          for name in xp.__array_namespace_info__().dtypes(kind=kind)]


def test_tensors_give_the_namespace():
    x = tl.ones(2)
    namespace = x.__array_namespace__()
    assert namespace.sum is xp.sum and namespace.__name__ == "tensorlib.array_api"
    assert x.__array_namespace__(api_version="2025.12") is namespace
    with pytest.raises(ValueError, match=r"^__array_namespace__: has the versions .*'2019.1'"):
        x.__array_namespace__(api_version="2019.1")
    assert xp.__array_api_version__ == "2025.12"
    assert set(xp.__all__) <= set(dir(xp)) and all(hasattr(xp, name) for name in xp.__all__)
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="^to_device: "):
        x.to_device("cpu", stream=1)


@pytest.mark.parametrize("name, dtype", [
    ("int8", "int64"), ("uint8", "uint64"), ("uint16", "uint64"), ("int64", "int64"),
    ("float32", "float32"), ("bool", "int64")])
def test_sums_and_products_of_small_integers_are_wide(name, dtype):
    x = tl.ones(2, 3, dtype=getattr(tl, name))
    for function in (xp.sum, xp.prod):
        assert function(x).dtype == function(x, axis=0).dtype == getattr(tl, dtype)
        assert function(x, dtype=tl.float64).dtype == tl.float64
    for function in (xp.cumulative_sum, xp.cumulative_prod):
        found = function(x, axis=1, include_initial=True)
        assert found.dtype == getattr(tl, dtype) and found.shape == (2, 4)
    assert xp.linalg.trace(x).dtype == getattr(tl, dtype)


def test_reductions_over_no_axes_keep_all_elements():
    x = tl.tensor([[1.0, 2.0], [3.0, 4.0]])
    for function in (xp.sum, xp.prod, xp.max, xp.min, xp.mean):
        assert function(x, axis=()).tolist() == x.tolist()
    assert xp.var(x, axis=()).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert xp.prod(x, axis=(0, 1), keepdims=True).tolist() == [[24.0]]
    assert xp.all(x, axis=()).dtype == xp.any(x).dtype == tl.bool


def test_deviations_have_no_correction_unless_it_is_given():
    x = np.array([[1.0, 2.0, 4.0], [3.0, 4.0, -1.0]])
    for function, numpys in ((xp.std, np.std), (xp.var, np.var)):
        for correction in (0, 1, 1.5):
            found = function(tl.from_numpy(x), axis=1, correction=correction)
            np.testing.assert_allclose(found.numpy(), numpys(x, axis=1, ddof=correction))


def test_dtypes_follow_from_dtypes_alone():
    x, y = tl.ones(2), tl.ones((), dtype=tl.float64)
    assert (x + y).dtype == tl.float32
    assert xp.add(x, y).dtype == xp.where(x > 0, x, y).dtype == tl.float64
    assert xp.result_type(x, y) == tl.float64 and xp.result_type(x, 1.5) == tl.float32
    assert xp.add(tl.ones(2, dtype=tl.int8), 1).dtype == tl.int8
    assert xp.multiply(2.5, x).dtype == tl.float32
    with pytest.raises(TypeError, match="^array_api: "):
        xp.add(1, 2)
    with pytest.raises(TypeError, match="^array_api: takes arrays and Python numbers, got str"):
        xp.add(x, "2")
    assert xp.can_cast(tl.int8, tl.int16) and not xp.can_cast(tl.int64, tl.float32)
    assert not xp.can_cast(tl.uint64, tl.int64) and xp.can_cast(x, tl.float64)


def test_wide_unsigned_integers_meet_others_as_in_numpy():
    names = [name for name in DTYPES if "int" in name]
    for a in names:
        for b in names:
            wanted = np.promote_types(a, b)
            if wanted.kind == "f":                       # uint64 with signed integers
                with pytest.raises(RuntimeError, match="is not supported"):
                    tl.promote_types(getattr(tl, a), getattr(tl, b))
            else:
                assert tl.promote_types(getattr(tl, a), getattr(tl, b)).name == wanted.name
                x, y = tl.tensor([100], dtype=getattr(tl, a)), tl.tensor([27], dtype=getattr(tl, b))
                assert (x + y).dtype.name == wanted.name
                assert xp.multiply(x, y).tolist() == [100 * 27 if wanted.itemsize > 1 else (
                    np.array([100], a) * np.array([27], b)).item()]


def test_operators_of_the_standard():
    x, y = tl.ones(2), tl.ones((), dtype=tl.float64)
    infinity = tl.tensor([float("inf"), -1.0])
    with xp.standard_operators():
        assert (x + y).dtype == tl.float64 and (x + 1.5).dtype == tl.float32
        assert (infinity // 2.0).tolist() == [float("inf"), -1.0]
        assert (tl.tensor([-1.0]) // float("inf")).signbit().item()
        assert (tl.tensor([0.0]) % tl.tensor([-2.0])).signbit().item()
        z = tl.tensor([7.0, float("inf")])
        z //= 2
        assert z.tolist() == [3.0, float("inf")]
        z = tl.tensor([5.0], requires_grad=True)
        (z % 3 + z * y).backward()
        assert z.grad.tolist() == [2.0]
        none = tl.zeros(0, 3, dtype=tl.bool)
        assert tl.ones(2, 3, 4)[none].shape == (0, 4) and tl.ones(2)[none[:, 0]].shape == (0,)
        for key in (none[:, :2], none[:, :, None, None]):
            with pytest.raises(IndexError):
                tl.ones(2, 3, 4)[key]
    assert (x + y).dtype == tl.float32 and (infinity // 2.0)[0].isnan()


def test_conversions_and_copies():
    x = tl.tensor([1.5, -2.5])
    assert xp.astype(x, tl.float32, copy=False) is x
    copied = xp.astype(x, tl.float32)
    copied[0] = 9
    assert x[0] == 1.5 and xp.astype(x, tl.int8).tolist() == [1, -2]
    array = np.ones(3)
    assert np.shares_memory(xp.asarray(array, copy=False).numpy(), array)
    assert not np.shares_memory(xp.asarray(array, copy=True).numpy(), array)
    with pytest.raises(ValueError):
        xp.asarray([1, 2], copy=False)
    assert np.shares_memory(xp.reshape(x, (2, 1), copy=False).numpy(), x.numpy())
    assert not np.shares_memory(xp.reshape(x, (2, 1), copy=True).numpy(), x.numpy())
    with pytest.raises(ValueError):
        xp.reshape(tl.ones(2, 3).T, (6,), copy=False)
    with pytest.raises(RuntimeError, match="cuda"):
        xp.ones((2,), device="cuda")


def test_kinds_and_limits():
    assert xp.isdtype(tl.uint16, "integral") and xp.isdtype(tl.float32, ("bool", "real floating"))
    assert not xp.isdtype(tl.bool, "numeric") and xp.isdtype(tl.int8, tl.int8)
    with pytest.raises(ValueError, match="^isdtype: kind must be "):
        xp.isdtype(tl.int8, "whole")
    assert xp.finfo(tl.float32).dtype is tl.float32 and xp.finfo(tl.ones(2)).bits == 32
    assert xp.iinfo(tl.uint64).max == 2**64 - 1
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["integral"] == tl.int64
    assert info.default_device() in info.devices()
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    with pytest.raises(ValueError, match="^dtypes: kind must be "):
        info.dtypes(kind="text")


def test_unique_elements():
    nan = float("nan")
    found = xp.unique_all(tl.tensor([[3.0, nan, 1.0], [3.0, 3.0, nan]]))
    assert found.values.tolist()[:2] == [1.0, 3.0] and len(found.values) == 4
    assert found.indices.tolist()[:2] == [2, 0] and found.counts.tolist() == [1, 3, 1, 1]
    assert found.inverse_indices.shape == (2, 3)
    x = tl.tensor([5, 2, 2, 9, 5])
    values, inverse = xp.unique_inverse(x)
    assert values[inverse].tolist() == x.tolist()
    assert xp.unique_counts(x).counts.tolist() == [2, 2, 1]
    assert xp.unique_values(x).tolist() == [2, 5, 9]
    assert xp.unique_all(tl.ones(0)).values.shape == (0,)
    assert xp.unique_counts(tl.ones(0)).counts.shape == (0,)
    assert xp.unique_values(tl.tensor(4)).tolist() == [4]


def test_order_and_places():
    x = tl.tensor([2, 1, 2, 3, 1])
    assert xp.argsort(x, descending=True, stable=True).tolist() == [3, 0, 2, 1, 4]
    assert xp.sort(x, descending=True).tolist() == [3, 2, 2, 1, 1]
    sorter = xp.argsort(x)
    assert xp.searchsorted(x, tl.tensor([2]), sorter=sorter).tolist() == [2]
    assert xp.searchsorted(tl.tensor([1, 2, 3]), 2, side="right").item() == 2
    assert xp.argmax(tl.tensor([[1, 5], [7, 2]]), keepdims=True).tolist() == [[2]]
    with pytest.raises(ValueError, match="^nonzero: "):
        xp.nonzero(tl.tensor(1))
    with pytest.raises(ValueError, match="^take: "):
        xp.take(tl.ones(2, 2), tl.tensor([0]))


def test_shapes():
    x = tl.arange(6).reshape(2, 3)
    assert xp.expand_dims(x, (0, -1)).shape == (1, 2, 3, 1)
    assert xp.squeeze(xp.expand_dims(x, 0), 0).shape == (2, 3)
    with pytest.raises(ValueError, match="^squeeze: axis 0 has size 2"):
        xp.squeeze(x, 0)
    with pytest.raises(ValueError, match="^expand_dims: axes stand twice"):
        xp.expand_dims(x, (0, 0))
    with pytest.raises(IndexError, match="^expand_dims: axis 4"):
        xp.expand_dims(x, 4)
    assert xp.concat([x, x], axis=None).shape == (12,)
    assert xp.concat([tl.ones(1, dtype=tl.int8), tl.ones(1, dtype=tl.int32)]).dtype == tl.int32
    assert xp.permute_dims(x, (1, 0)).shape == xp.matrix_transpose(x).shape == (3, 2)
    with pytest.raises(ValueError, match="^matrix_transpose: "):
        xp.matrix_transpose(tl.ones(3))
    assert xp.repeat(x, tl.tensor([1, 2]), axis=0).shape == (3, 3)
    assert xp.repeat(x, 2).shape == (12,) and xp.flip(x).tolist() == [[5, 4, 3], [2, 1, 0]]
    assert len(xp.unstack(x, axis=1)) == 3 and xp.tile(x, (2, 1)).shape == (4, 3)
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert not xp.eye(2, 3, k=2**63).any() and not xp.eye(2, k=-2**70).any()
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]
    assert xp.arange(5, 2).shape == (0,) and xp.meshgrid() == xp.broadcast_arrays() == ()
    with pytest.raises(ValueError):
        xp.broadcast_shapes((2,), (3,))


def test_gradients_batches_and_captures_go_through():
    def loss(x):
        y = xp.clip(xp.add(x, 1.5), 0.0, 2.0)
        parts = xp.concat([y, xp.expand_dims(xp.std(x, axis=0, correction=1), 0)])
        return xp.sum(xp.multiply(parts, xp.matrix_transpose(xp.astype(parts.T, tl.float64))))

    x = tl.tensor([[0.1, -0.7], [0.3, 0.9], [-2.5, 0.2]], dtype=tl.float64, requires_grad=True)
    assert tl.testing.gradcheck(loss, x) and tl.testing.gradgradcheck(loss, x)
    batch = tl.stack([x.detach(), 2 * x.detach()])
    singly = tl.stack([tl.func.grad(loss)(example) for example in batch])
    assert tl.allclose(tl.func.vmap(tl.func.grad(loss))(batch), singly)
    assert tl.compile(loss)(x).item() == loss(x).item()
    assert xp.sum(tl.ones(3, device="meta")).device.type == "meta"


# ---- beside array-api-strict ---------------------------------------------------------------------

def strict():
    module = pytest.importorskip("array_api_strict")
    module.set_array_api_strict_flags(api_version="2024.12")
    return module


def arguments_of(function):
    """The names and kinds of a function's parameters; those by position alone have no names."""
    return [(p.kind, None if p.kind is p.POSITIONAL_ONLY else p.name)
            for p in inspect.signature(function).parameters.values()]


@pytest.mark.filterwarnings("ignore")
def test_signatures_are_those_of_the_strict_namespace():
    peer, looked_at = strict(), 0
    for ours, theirs in ((xp, peer), (xp.linalg, peer.linalg), (xp.fft, peer.fft)):
        for name in theirs.__all__:
            function = getattr(theirs, name, None)
            if not inspect.isfunction(function) or "array_api_strict_flags" in name or (
                    name in ("set_array_api_strict_flags", "get_array_api_strict_flags", "Device",
                             "ArrayAPIStrictFlags", "reset_array_api_strict_flags")):
                continue
            mine = arguments_of(getattr(ours, name))
            for place, (kind, parameter) in enumerate(arguments_of(function)):
                if kind is inspect.Parameter.KEYWORD_ONLY:
                    assert parameter in [p for _, p in mine], name
                elif parameter is not None:
                    assert mine[place][1] in (None, parameter), name
            looked_at += 1
    assert looked_at > 150


@pytest.mark.filterwarnings("ignore")
@each("name", [
    "abs", "add", "argmax", "bitwise_and", "bitwise_invert", "cumulative_sum", "divide", "equal",
    "exp", "floor", "floor_divide", "isfinite", "less", "logical_and", "max", "maximum", "mean",
    "multiply", "negative", "pow", "prod", "sign", "sort", "sqrt", "square", "std", "subtract",
    "sum", "trunc"])
def test_dtypes_are_those_of_the_strict_namespace(name):
    """Where it refuses dtypes, this one may take them."""
    peer, compared = strict(), 0
    function, theirs = getattr(xp, name), getattr(peer, name)
    two = len(inspect.signature(theirs).parameters) > 1 and "x2" in str(inspect.signature(theirs))
    for a in DTYPES:
        for b in DTYPES if two else [None]:
            for shape in ((2,), ()):
                pairs = [(a, (2,))] + ([(b, shape)] if two else [])
                try:
                    wanted = theirs(*[peer.ones(s, dtype=getattr(peer, d)) for d, s in pairs])
                except (TypeError, ValueError):
                    continue
                found = function(*[xp.ones(s, dtype=getattr(xp, d)) for d, s in pairs])
                assert found.dtype.name == str(wanted.dtype).rpartition(".")[2], (a, b)
                assert tuple(found.shape) == tuple(wanted.shape)
                compared += 1
    assert compared


def test_products_of_vectors_broadcast_all_but_their_axis():
    x, y = xp.ones((2, 3), dtype=xp.complex64) * 1j, xp.asarray([1j, 2, 3j])
    assert xp.all(xp.linalg.vecdot(x, y) == 4 - 2j) and xp.vecdot(x, y).shape == (2,)
    assert xp.linalg.cross(x, y).shape == xp.linalg.cross(y, x).shape == (2, 3)
    with pytest.raises(RuntimeError, match="vecdot: axis -1 has sizes 3 and 1"):
        xp.vecdot(x, xp.ones(1))
