"""New tensors: values, dtypes, options and errors; and writing over old ones."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from cases import each
from tensorlib._core.base.dtypes import BY_NAME, get_default_dtype
from tensorlib._core.base.storage import OutOfMemoryError
from tensorlib._core.base.formats import contiguous_format, preserve_format, strided
from tensorlib._core.tensor.numbers import OutOfRangeError

import tensorlib
from tensorlib import Tensor
from tensorlib.ops.declare import FUNCTIONS

NAMES = list(BY_NAME)
FLOATS = [name for name in NAMES if "float" in name]
WHOLE = [name for name in NAMES if "int" in name]

empty, zeros, ones, full = (FUNCTIONS[name] for name in ("empty", "zeros", "ones", "full"))
arange, linspace, logspace, eye = (
    FUNCTIONS[name] for name in ("arange", "linspace", "logspace", "eye"))
tensor, set_default_dtype = FUNCTIONS["tensor"], FUNCTIONS["set_default_dtype"]


@pytest.fixture
def float64_default():
    before = get_default_dtype()
    set_default_dtype(BY_NAME["float64"])
    yield
    set_default_dtype(before)


# ---- constants -----------------------------------------------------------------------------------

@each("sizes", [(), (0,), (5,), (2, 3), (2, 0, 3), (1, 2, 1, 2, 1, 2)])
@each("name", NAMES)
def test_constants_of_every_dtype(name, sizes):
    dtype = BY_NAME[name]
    for x, value in [(zeros(sizes, dtype=dtype), 0), (ones(sizes, dtype=dtype), 1),
                     (full(sizes, 3, dtype=dtype), 1 if name == "bool" else 3)]:
        assert x.dtype is dtype and tuple(x.shape) == sizes and x.is_contiguous()
        assert (x.double().numpy() == np.full(sizes, value)).all()
    assert tuple(empty(sizes, dtype=dtype).shape) == sizes


@each("make", [zeros, ones, empty])
def test_sizes_may_be_given_in_every_form(make):
    for x in [make(2, 3), make((2, 3)), make([2, 3]), make(size=(2, 3)), make(tensor(2), 3),
              make(np.int64(2), 3), make(zeros(2, 3).shape)]:
        assert tuple(x.shape) == (2, 3)
    assert make([]).shape == make(()).shape == ()


@each("value, name", [(3, "int64"), (2.5, "float32"), (True, "bool"),
                      (np.float64(2), "float32"), (np.int8(2), "int64")])
def test_full_takes_the_dtype_of_its_value(value, name):
    assert full((2,), value).dtype is BY_NAME[name]
    assert full((2,), value).tolist() == [value, value]


def test_a_large_fill_is_the_same_everywhere():
    for dtype in NAMES:
        assert (full((300_001,), 1, dtype=BY_NAME[dtype]).double().numpy() == 1).all()


def test_the_default_dtype_governs(float64_default):
    for x in [zeros(1), ones(1), empty(1), full((1,), 1.0), eye(1), linspace(0, 1, 2),
              logspace(0, 1, 2), arange(1.0), FUNCTIONS["scalar_tensor"](1)]:
        assert x.dtype is BY_NAME["float64"]
    assert arange(2).dtype is BY_NAME["int64"]


def test_python_types_stand_for_dtypes():
    assert zeros(1, dtype=float).dtype is BY_NAME["float64"]
    assert zeros(1, dtype=int).dtype is BY_NAME["int64"]
    assert zeros(1, dtype=bool).dtype is BY_NAME["bool"]
    assert zeros(1, dtype=np.float16).dtype is BY_NAME["float16"]


def test_half_values_round_once():
    value = 1 + 2**-8 + 2**-30          # just above the middle between two bfloat16
    assert full((1,), value, dtype=BY_NAME["bfloat16"]).item() == 1 + 2**-7
    assert full((1,), 1 + 2**-11 + 2**-40, dtype=BY_NAME["float16"]).item() == 1 + 2**-10


@each("call, error", [
    (lambda: zeros(-1), RuntimeError),
    (lambda: zeros(2, -3), RuntimeError),
    (lambda: zeros(2**62, 4), RuntimeError),
    (lambda: zeros(2**70), RuntimeError),
    (lambda: zeros(2**45), OutOfMemoryError),
    (lambda: zeros(2.5), TypeError),
    (lambda: zeros("a"), TypeError),
    (lambda: zeros(), TypeError),
    (lambda: zeros((2,), 3), TypeError),
    (lambda: zeros(2, size=(2,)), TypeError),
    (lambda: zeros(2, dtype="float32"), TypeError),
    (lambda: zeros(2, dtype=3), TypeError),
    (lambda: zeros(2, device="cuda"), RuntimeError),
    (lambda: zeros(2, layout=3), TypeError),
    (lambda: zeros(2, pin_memory=True), RuntimeError),
    (lambda: zeros(2, out=3), TypeError),
    (lambda: zeros(2, out=zeros(2, requires_grad=True)), RuntimeError),
    (lambda: zeros(2, out=zeros(2), dtype=int), RuntimeError),
    (lambda: zeros(2, dtype=int, requires_grad=True), RuntimeError),
    (lambda: empty(2, memory_format=preserve_format), RuntimeError),
    (lambda: full((2,), "a"), TypeError),
    (lambda: full((2,), None), TypeError),
    (lambda: full((2,), tensor([1, 2])), TypeError),
    (lambda: full((2,), 300, dtype=BY_NAME["uint8"]), OutOfRangeError),
    (lambda: full((2,), 2**70), OutOfRangeError),
    (lambda: full((2,), 1e300), OutOfRangeError),
    (lambda: full((2,), 1e5, dtype=BY_NAME["float16"]), OutOfRangeError),
    (lambda: full((2,), float("nan"), dtype=int), OutOfRangeError),
    (lambda: FUNCTIONS["zeros_like"]([1]), TypeError),
    (lambda: FUNCTIONS["zeros_like"](zeros(2), memory_format=3), RuntimeError),
    (lambda: FUNCTIONS["full_like"](zeros(2, dtype=int), 2**64), OutOfRangeError),
    (lambda: eye(-1), RuntimeError),
    (lambda: eye(2, -1), RuntimeError),
    (lambda: eye(2.5), TypeError),
    (lambda: eye(2**40, 2**40), RuntimeError),
    (lambda: linspace(0, 1, -1), RuntimeError),
    (lambda: linspace(0, 1, 2.5), TypeError),
    (lambda: linspace(0, 1, 3, dtype=bool), RuntimeError),
    (lambda: linspace(0, 1j, 3, dtype=float), RuntimeError),
    (lambda: logspace(1j, 1, 3, out=empty(0)), RuntimeError),
    (lambda: logspace(0, 1, 3, base=1j), TypeError),
    (lambda: logspace(0, 1, 3, dtype=bool), RuntimeError),
    (lambda: linspace("a", 1, 3), TypeError),
    (lambda: linspace(0, 300, 3, dtype=BY_NAME["uint8"]), RuntimeError),
    (lambda: logspace(0, float("inf"), 3, dtype=int), RuntimeError),
    (lambda: arange(0, 3, 0.5, dtype=int), ValueError),
    (lambda: set_default_dtype(BY_NAME["int32"]), TypeError),
    (lambda: set_default_dtype(3), TypeError),
])
def test_bad_arguments_are_refused(call, error):
    with pytest.raises(error):
        call()


def test_options_are_accepted():
    x = zeros(2, layout=strided, device="cpu", pin_memory=False, requires_grad=True)
    assert x.requires_grad and x.is_leaf
    assert full((2,), 1.0, requires_grad=True).requires_grad
    for form in (strided, contiguous_format, preserve_format):
        assert pickle.loads(pickle.dumps(form)) is form is copy.deepcopy(form)
    out = zeros(0)
    assert ones(2, 2, out=out) is out and out.tolist() == [[1, 1], [1, 1]]
    out = zeros(3, dtype=int)
    assert full((3,), 2.5, out=out) is out and out.tolist() == [2, 2, 2]
    assert arange(3, out=zeros(3)).tolist() == [0.0, 1.0, 2.0]
    for numbers in (partial(arange, 4), partial(tensorlib.linspace, 0, 3, 4),
                    partial(tensorlib.logspace, 0, 3, 4, base=2), partial(tensorlib.range, 0, 3)):
        x, wanted = zeros(2, 3), numbers().tolist()
        part = x[:, 1:]                      # of as many elements: it keeps its shape
        assert numbers(out=part) is part
        assert x.tolist() == [[0.0, *wanted[:2]], [0.0, *wanted[2:]]]


# ---- as another tensor ---------------------------------------------------------------------------

def test_like_keeps_shape_dtype_and_order_of_dims():
    x = zeros(2, 3, 4, dtype=BY_NAME["int16"]).permute(2, 0, 1)
    for name in ("zeros_like", "ones_like", "empty_like"):
        y = FUNCTIONS[name](x)
        assert y.dtype is x.dtype and y.shape == x.shape and y.stride() == x.stride()
        assert FUNCTIONS[name](x, memory_format=contiguous_format).is_contiguous()
        assert FUNCTIONS[name](x, dtype=BY_NAME["float32"]).dtype is BY_NAME["float32"]
    assert (FUNCTIONS["full_like"](x, 7).numpy() == 7).all()
    assert FUNCTIONS["zeros_like"](zeros(3, 1).expand(3, 4)).is_contiguous()
    assert FUNCTIONS["ones_like"](zeros(3, 4)[:, ::2].t()).stride() == (1, 2)


def test_new_methods_keep_the_dtype():
    x = zeros(2, dtype=BY_NAME["float64"])
    assert x.new_zeros(2, 3).tolist() == [[0.0] * 3] * 2
    assert x.new_ones((2,)).tolist() == [1.0, 1.0]
    assert x.new_full((2,), 3).tolist() == [3.0, 3.0]
    assert x.new_tensor([1, 2]).dtype is x.dtype
    assert tuple(x.new_empty(3).shape) == (3,)
    assert x.new_zeros(2, dtype=int).dtype is BY_NAME["int64"]
    assert x.new_ones(2, requires_grad=True).requires_grad


# ---- evenly spaced -------------------------------------------------------------------------------

@each("args", [
    (5,), (1, 4), (5, 0, -2), (0, 1, 0.1), (0, 1, 0.3), (2.5,), (1.5, -1, -0.5), (0, 0), (-3, 3, 2),
    (0, 0.7, 0.1), (1, 1.3, 0.1), (2**63 - 3, 2**63 - 1), (-2**63, -2**63 + 2), (True,),
    (0, 1_000_000, 3), (0.0, 100_000),
])
def test_arange_has_the_elements_of_numpy(args):
    x, wanted = arange(*args), np.arange(*args)
    assert x.dtype is BY_NAME["float32" if wanted.dtype.kind == "f" else "int64"]
    assert tuple(x.shape) == wanted.shape
    assert np.allclose(x.double().numpy(), wanted)


def test_arange_forms_and_dtypes():
    assert arange(end=3).tolist() == arange(start=0, end=3).tolist() == [0, 1, 2]
    assert arange(tensor(3)).tolist() == [0, 1, 2]
    for name in WHOLE + FLOATS:
        x = arange(1, 7, 2, dtype=BY_NAME[name])
        assert x.dtype is BY_NAME[name] and x.tolist() == [1, 3, 5]
    # as in PyTorch: int64 cuts the bounds before it counts, the others after
    assert arange(0.5, 5, 1.5, dtype=BY_NAME["int64"]).tolist() == [0, 1, 2, 3, 4]
    assert arange(0.5, 5, 1.5, dtype=BY_NAME["int32"]).tolist() == [0, 1, 2]
    assert arange(3.0, requires_grad=True).requires_grad


@each("call, error", [
    (lambda: arange(), TypeError),
    (lambda: arange("a"), TypeError),
    (lambda: arange(1, 2, 3, 4), TypeError),
    (lambda: arange(5, 0), RuntimeError),
    (lambda: arange(0, 5, -1), RuntimeError),
    (lambda: arange(0, 5, 0), RuntimeError),
    (lambda: arange(0, 5, 0.5, dtype=int), RuntimeError),
    (lambda: arange(float("inf")), RuntimeError),
    (lambda: arange(float("nan")), RuntimeError),
    (lambda: arange(1e20), RuntimeError),
    (lambda: arange(0, 1, 1e-300), RuntimeError),
    (lambda: arange(2**62), RuntimeError),
    (lambda: arange(3, dtype=bool), RuntimeError),
    (lambda: arange(0, 300, dtype=BY_NAME["uint8"]), OutOfRangeError),
    (lambda: arange(3, requires_grad=True), RuntimeError),
])
def test_bad_ranges_are_refused(call, error):
    with pytest.raises(error, match=None if error is TypeError else "arange|require"):
        call()


@each("args", [(0, 1, 5), (0, 1, 0), (3, 1, 1), (-2.5, 7.5, 101), (0, -10, 4),
               (5, 5, 3), (0, 1, 200_000)])
def test_linspace_and_logspace(args):
    wanted = np.linspace(*args)
    assert np.allclose(linspace(*args).numpy(), wanted, atol=1e-6)
    assert np.allclose(linspace(*args, dtype=BY_NAME["float64"]).numpy(), wanted, rtol=1e-15)
    assert np.allclose(logspace(*args, base=2.0).numpy(), 2.0**wanted, rtol=1e-6)


@each("args", [(0, 3j, 5), (1j, 2 + 3j, 4), (2 - 1j, 0.5, 1), (0, 1j, 0),
               (1 - 2j, -3 + 1j, 50_000)])
@each("name, digits", [("complex64", 1e-6), ("complex128", 1e-14)])
def test_numbers_between_complex_bounds(args, name, digits):
    wanted = np.linspace(*args)
    for found, numbers in ((linspace(*args, dtype=BY_NAME[name]), wanted),
                           (linspace(*args, out=empty(0, dtype=BY_NAME[name])), wanted),
                           (logspace(*args, base=2.0, dtype=BY_NAME[name]), 2.0**wanted)):
        assert found.dtype is BY_NAME[name] and found.shape == wanted.shape
        assert np.allclose(found.numpy(), numbers, rtol=digits, atol=digits)
    assert linspace(*args).dtype is logspace(*args).dtype is BY_NAME["complex64"]


def test_linspace_ends_exactly_and_is_symmetric():
    x = linspace(-0.1, 0.1, 1001).numpy()
    assert x[0] == np.float32(-0.1) and x[-1] == np.float32(0.1)
    assert (x[:500] == -x[:500:-1]).all()
    assert x[500] == np.float32(-3.259629e-09)        # PyTorch's, as the step is rounded
    assert linspace(0, 10, 5, dtype=int).tolist() == [0, 2, 5, 7, 10]
    assert logspace(0, 3, 4, base=2, dtype=int).tolist() == [1, 2, 4, 8]


@each("made, wanted", [
    (lambda kind: linspace(0.9, 5.5, 4, dtype=kind), [0, 1, 3, 5]),
    (lambda kind: linspace(4.3, -3, 8, dtype=kind), [4, 3, 2, 1, 0, -1, -2, -3]),
    (lambda kind: linspace(0.9, 5.5, 4, out=empty(0, dtype=kind)), [0, 1, 3, 5]),
    (lambda kind: linspace(0.9, 5.5, 1, dtype=kind), [0]),
    (lambda kind: logspace(0.5, 2.5, 3, dtype=kind), [1, 10, 100]),
    (lambda kind: logspace(-3.2, 3, 4, base=2, dtype=kind), [0, 0, 2, 8]),
    (lambda kind: logspace(1.5, 5.5, 1, dtype=kind), [31])])
def test_bounds_of_integers_are_cut_first(made, wanted):
    for name in ("int8", "int32", "int64"):
        assert made(BY_NAME[name]).tolist() == wanted


# ---- matrices ------------------------------------------------------------------------------------

@each("n, m", [(3, None), (2, 4), (4, 2), (0, 3), (3, 0), (1, 1)])
def test_eye(n, m):
    for name in NAMES:
        x = eye(n, m, dtype=BY_NAME[name])
        assert (x.double().numpy() == np.eye(n, m)).all()


@each("diagonal", [-9, -2, -1, 0, 1, 2, 9, 2**62, -2**62])
@each("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 3), (0, 3), (3, 0), (2, 0, 3)])
def test_triangles(shape, diagonal):
    values = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    x = tensor(values)
    assert (x.tril(diagonal).numpy() == np.tril(values, diagonal)).all()
    assert (x.triu(diagonal).numpy() == np.triu(values, diagonal)).all()
    turned = x.transpose(-1, -2)
    assert (turned.tril(diagonal).numpy() == np.tril(values.swapaxes(-1, -2), diagonal)).all()


def test_triangle_gradients_and_errors():
    x = ones(3, 3, requires_grad=True)
    x.tril(-1).backward(full((3, 3), 2.0))
    assert x.grad.tolist() == [[0, 0, 0], [2, 0, 0], [2, 2, 0]]
    with pytest.raises(RuntimeError, match="tril"):
        ones(3).tril()
    assert FUNCTIONS["tril_indices"](3, 3, -1).tolist() == [[1, 2, 2], [0, 0, 1]]
    assert FUNCTIONS["triu_indices"](2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]


# ---- writing over --------------------------------------------------------------------------------

def test_fill_zero_and_copy_write_in_place():
    x = zeros(2, 3)
    assert x.fill_(2) is x and x.tolist() == [[2, 2, 2]] * 2
    assert x.zero_() is x and x.tolist() == [[0, 0, 0]] * 2
    assert x.copy_(tensor([1, 2, 3])) is x and x.tolist() == [[1, 2, 3]] * 2
    x.t()[1].fill_(tensor(9))
    assert x.tolist() == [[1, 9, 3]] * 2
    x[:, ::2].zero_()
    assert x.tolist() == [[0, 9, 0]] * 2
    x.copy_(x.flip(1) if hasattr(x, "flip") else x[:, ::-1])
    assert x.tolist() == [[0, 9, 0]] * 2
    x[0].copy_(7)
    assert x.tolist() == [[7, 7, 7], [0, 9, 0]]


def test_a_copy_from_overlapping_memory():
    x = arange(6)
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


def test_copy_casts():
    for source in NAMES:
        for target in NAMES:
            x = zeros(2, dtype=BY_NAME[target]).copy_(ones(2, dtype=BY_NAME[source]))
            assert x.dtype is BY_NAME[target] and x.tolist() == [1, 1]


@each("call, error", [
    (lambda: zeros(2).copy_(tensor([1, 2, 3])), RuntimeError),
    (lambda: zeros(2).copy_(tensor([[1, 2]])), RuntimeError),
    (lambda: zeros(2).copy_("a"), TypeError),
    (lambda: zeros(1, 2).expand(3, 2).copy_(1), RuntimeError),
    (lambda: zeros(1, 2).expand(3, 2).fill_(1), RuntimeError),
    (lambda: zeros(2).fill_("a"), TypeError),
    (lambda: zeros(2).fill_(tensor([1])), RuntimeError),
    (lambda: zeros(2, dtype=BY_NAME["int8"]).fill_(300), OutOfRangeError),
    (lambda: zeros(2, requires_grad=True).fill_(1), RuntimeError),
    (lambda: zeros(2, requires_grad=True).copy_(1), RuntimeError),
    (lambda: zeros(2, requires_grad=True)[0].zero_(), RuntimeError),
])
def test_bad_writes_are_refused(call, error):
    with pytest.raises(error):
        call()


def grads(loss, *leaves):
    loss.backward(FUNCTIONS["ones_like"](loss))
    return [None if x.grad is None else x.grad.tolist() for x in leaves]


def test_copy_gives_its_gradient_to_the_source():
    a, b = ones(2, 3, requires_grad=True), ones(3, requires_grad=True)
    x = a * 2
    x.copy_(b)
    assert grads(x * 3, a, b) == [[[0, 0, 0]] * 2, [6, 6, 6]]


def test_copy_into_a_view_goes_through_its_base():
    a, b = ones(4, requires_grad=True), ones(2, requires_grad=True)
    x = a * 2
    x[1:3].copy_(b)
    assert grads(x * 5, a, b) == [[10, 0, 0, 10], [5, 5]]


def test_copy_makes_a_plain_tensor_part_of_the_graph():
    b = ones(2, requires_grad=True, dtype=BY_NAME["float64"])
    x = zeros(2)
    x.copy_(b)
    assert x.requires_grad
    assert grads(x * 5, b) == [[5, 5]]
    assert b.grad.dtype is b.dtype


def test_fill_stops_the_gradient_of_what_was_there():
    a, b = ones(3, requires_grad=True), tensor(2.0, requires_grad=True)
    x = a * 2
    x[0].zero_()
    x[2].fill_(b)
    assert grads(x, a, b) == [[0, 2, 0], 1]
    y = a.detach() * 2
    assert not y.fill_(3).requires_grad


def test_a_saved_value_that_was_overwritten_is_noticed():
    a = ones(3, requires_grad=True)
    x = a * 2
    y = x * x
    x.zero_()
    with pytest.raises(RuntimeError):
        y.backward(ones(3))


# ---- the constructors from data, under their public names ----------------------------------------

def test_constructors_are_public():
    array = np.ones(2)
    assert FUNCTIONS["from_numpy"](array).data_ptr() == array.ctypes.data
    assert FUNCTIONS["as_tensor"](array, device="cpu").data_ptr() == array.ctypes.data
    assert FUNCTIONS["asarray"](array, requires_grad=True).requires_grad
    assert FUNCTIONS["frombuffer"](array, dtype=BY_NAME["float64"]).tolist() == [1, 1]
    assert tensor([1.0], requires_grad=True, device="cpu").requires_grad
    assert isinstance(tensor(1), Tensor) and tensor.__module__ == tensorlib.__name__
    with pytest.raises(RuntimeError):
        tensor(1, device="cuda")


@pytest.mark.filterwarnings("ignore:range is deprecated")
@each("bounds, options, expected", [
    ((1, 4), {}, [1.0, 2.0, 3.0, 4.0]), ((0, 1, 0.3), {}, [0, 0.3, 0.6, 0.9]), ((2, 2), {}, [2.0]),
    ((0, 1, 0.1), {}, [i / 10 for i in range(11)]), ((3,), {"end": 4}, [3.0, 4.0]),
    ((4, 1, -1), {"dtype": tensorlib.int64}, [4, 3, 2, 1]), ((4, 1.5, -1), {}, [4.0, 3.0, 2.0]),
    ((1.9, 5.5, 1.5), {"dtype": tensorlib.int64}, [1, 2, 3, 4, 5]),
    ((2**60, 2**60 + 3), {"dtype": tensorlib.int64}, [2**60 + i for i in range(4)]),
    ((100, 127, 9), {"dtype": tensorlib.int8}, [100, 109, 118, 127]),
])
def test_a_range_has_its_end(bounds, options, expected):
    found = tensorlib.range(*bounds, **options)
    assert found.dtype == options.get("dtype", tensorlib.float32)
    assert found.tolist() == tensorlib.tensor(expected, dtype=found.dtype).tolist()
    out = tensorlib.empty(0, dtype=found.dtype)
    assert tensorlib.range(*bounds, **{**options, "out": out}) is out and out.equal(found)


@pytest.mark.filterwarnings("ignore:range is deprecated")
@each("bounds, options, error, words", [
    ((1, 4, 0), {}, RuntimeError, "range: from 1 to 4 there is no step of 0"),
    ((1, 4, -1), {}, RuntimeError, "there is no step of -1"),
    ((4, 1), {}, RuntimeError, "there is no step of 1"),
    ((0, 1, 0.5), {"dtype": tensorlib.int64}, RuntimeError, "there is no step of 0"),
    ((0, float("inf")), {}, RuntimeError, "range: unsupported range"),
    ((0, 1e30), {}, RuntimeError, "range: .* elements are too many"),
    ((0, 500), {"dtype": tensorlib.int8}, RuntimeError, "range: 500 does not fit"),
    ((3,), {}, TypeError, "range: end must be given"), (("a", 1), {}, TypeError, "range: start"),
])
def test_ranges_that_are_refused(bounds, options, error, words):
    with pytest.raises(error, match=words):
        tensorlib.range(*bounds, **options)


def test_a_range_warns_where_it_is_called():
    with pytest.warns(UserWarning, match="range is deprecated") as caught:
        tensorlib.range(0, 1)
    assert caught[0].filename == __file__


@each("upper", [False, True])
@each("diagonal", [-400, -3, 0, 1, 250])
@pytest.mark.parametrize("shape", [(3, 200), (200, 3), (2, 130, 140), (700, 900), (0, 200)])
def test_triangles_of_short_and_long_rows(shape, diagonal, upper):
    x = np.random.default_rng(0).normal(size=shape)
    wanted = (np.triu if upper else np.tril)(x, diagonal)
    for given in (tensorlib.from_numpy(x), tensorlib.from_numpy(x).mT.contiguous().mT):
        found = given.triu(diagonal) if upper else given.tril(diagonal)
        assert np.array_equal(found, wanted)
