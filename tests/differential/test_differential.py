"""tensorlib against PyTorch, where it is installed: dtypes, shapes, values, gradients and errors.

Each test walks a table and collects every disagreement, so that one failure shows them all.
"""

import warnings

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from peer import DTYPES, disagreement, excused, gradients, run, tensor

import tensorlib as tl
from tensorlib.testing import assert_close, broadcastable_shapes, tolerance

torch = pytest.importorskip("torch")

REALS = np.array([-3.5, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 7.75])
SPECIAL = np.array([np.inf, -np.inf, np.nan, 1e-30, -1e30, 88.0, 1e4])
SMALL_INTEGERS = np.array([0, 1, 2, 3, 5, 7, 11, 100])

UNARY = (
    "neg abs sign exp expm1 exp2 log log1p log2 log10 sqrt rsqrt square reciprocal sin cos tan "
    "asin acos atan sinh cosh tanh sigmoid relu erf floor ceil round trunc isnan isinf isfinite "
    "logical_not bitwise_not"
).split()
BINARY = (
    "add sub mul div remainder pow maximum minimum atan2 eq ne lt le gt ge logical_and logical_or "
    "logical_xor bitwise_and bitwise_or bitwise_xor floor_divide"
).split()
OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "**": lambda a, b: a**b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b, "<": lambda a, b: a < b, "==": lambda a, b: a == b,
    "+=": lambda a, b: a.__iadd__(b), "*=": lambda a, b: a.__imul__(b),
    "/=": lambda a, b: a.__itruediv__(b),
}
DIVISIONS = [None, "floor", "trunc"]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def values_for(dtype, special=True):
    if dtype == "bool":
        return np.array([False, True, True, False])
    if dtype == "uint8":
        return SMALL_INTEGERS
    if "float" not in dtype:
        return np.concatenate([SMALL_INTEGERS, -SMALL_INTEGERS])
    return np.concatenate([REALS, SPECIAL]) if special else REALS


def assert_all_agree(cases):
    """Runs (operation, dtypes, call, arguments of each library, kind); shows every disagreement."""
    found = []
    for operation, dtypes, call, arguments, kind in cases:
        outcomes = [run(call, library, *arguments(library)) for library in (tl, torch)]
        text = disagreement(*outcomes, kind)
        if text is not None and not excused(operation, *dtypes):
            found.append(f"{operation}({', '.join(dtypes)}): {text}")
    assert not found, f"{len(found)} disagreements\n" + "\n".join(found)


@each("name", UNARY)
def test_unary(name):
    def cases():
        for dtype in DTYPES:
            values = values_for(dtype)
            for form in (values, values[:0], values[1], values[:4].reshape(2, 2)):
                yield (
                    name, (dtype,), lambda library, x: getattr(library, name)(x),
                    lambda library, form=form, dtype=dtype: [tensor(library, form, dtype)],
                    "elementwise", )

    assert_all_agree(cases())


def paired(a_dtype, b_dtype):
    """Every value of one dtype against every value of the other, as a column and a row."""
    return values_for(a_dtype)[:, None], values_for(b_dtype)[None, :]


@each("a_dtype", DTYPES)
@each("name", BINARY)
def test_binary(name, a_dtype):
    assert_all_agree(binary_cases(name, a_dtype, lambda library, a,
                                  b: getattr(library, name)(a, b)))


@each("a_dtype", DTYPES)
@each("rounding_mode", DIVISIONS)
def test_division_with_rounding(rounding_mode, a_dtype):
    assert_all_agree(binary_cases(
        f"div({rounding_mode})", a_dtype,
        lambda library, a, b: library.div(a, b, rounding_mode=rounding_mode),
    ))


def binary_cases(name, a_dtype, call):
    for b_dtype in DTYPES:
        a, b = paired(a_dtype, b_dtype)
        if name == "remainder":      # of -1e30 and 1e-30: PyTorch's vectors overflow, C's fmod not
            b = b[(b == 0) | ~(np.abs(b) < 1e-20)][None, :]
        # Integer powers and divisions by zero raise; their own rows keep the others checkable.
        for divisor in (b, b[b != 0][None, :]) if b_dtype != "bool" else (b,):
            positive = np.abs(divisor) if name == "pow" and "float" not in b_dtype else divisor
            for left, right in ((a, positive), (a, positive[0, 1]), (a[1, 0], positive)):
                yield (
                    name, (a_dtype, b_dtype), call,
                    lambda library, left=left, right=right, b_dtype=b_dtype: [
                        tensor(library, left, a_dtype), tensor(library, right, b_dtype)
                    ], "elementwise",
                )


@each("symbol", OPERATORS)
def test_operators_with_python_numbers(symbol):
    operator = OPERATORS[symbol]
    in_place = symbol.endswith("=") and symbol != "=="

    def cases():
        for dtype in DTYPES:
            # not -0.5: PyTorch makes that power rsqrt, which has other zeros and infinities
            for number in (True, 2, -3, 0, 2.5, -0.75, 0.1, float("inf"), 300):
                def forward(library, x, number=number):
                    return operator(x, number)

                def reflected(library, x, number=number):
                    return operator(number, x)

                def arguments(library, dtype=dtype):
                    return [tensor(library, values_for(dtype), dtype)]

                name = (dtype, type(number).__name__)
                yield symbol, name, forward, arguments, "elementwise"
                if not in_place:
                    yield f"reflected {symbol}", name, reflected, arguments, "elementwise"

    assert_all_agree(cases())


def test_three_operands():
    calls = {
        "where": lambda L, a, b: L.where(a > 0, a, b),
        "where with a number": lambda L, a, b: L.where(b > 0, a, 2),
        "where with a float": lambda L, a, b: L.where(b > 0, 0.5, b),
        "clamp by tensors": lambda L, a, b: L.clamp(a, min=b),
        "clamp": lambda L, a, b: a.clamp(-1, 2), "clamp above": lambda L, a, b: a.clamp(max=1),
        "clamp by floats": lambda L, a, b: a.clamp(-0.5, 1.5),
        "crossed clamp": lambda L, a, b: a.clamp(2, -1),
    }

    def cases():
        for name, call in calls.items():
            for a_dtype in DTYPES:
                for b_dtype in DTYPES:
                    yield (
                        name, (a_dtype, b_dtype), call,
                        lambda library, a_dtype=a_dtype, b_dtype=b_dtype: [
                            tensor(library, values_for(a_dtype)[:4], a_dtype),
                            tensor(library, values_for(b_dtype)[:4], b_dtype),
                        ],
                        "elementwise",
                    )

    assert_all_agree(cases())


REDUCTIONS = {
    "sum": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}, {"dim": -1}, {"dtype": "float64"},
            {"dim": 0, "dtype": "int32"}, {"dim": 3}],
    "mean": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}, {"dtype": "float64"}],
    "prod": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}, {"dtype": "float64"}],
    "max": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "min": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "amax": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}],
    "amin": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}],
    "argmax": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "argmin": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "var": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}, {"dim": 1, "correction": 0}],
    "std": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}, {"dim": 1, "correction": 0}],
    "all": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "any": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "logsumexp": [{"dim": 1}, {"dim": (0, 2), "keepdim": True}],
    "softmax": [{"dim": 1}, {"dim": -1}, {"dim": 0, "dtype": "float64"}],
    "log_softmax": [{"dim": 1}, {"dim": -1}, {"dim": 0, "dtype": "float64"}],
}
REDUCED = [
    (name, options) for name, forms in REDUCTIONS.items() for options in forms
]


def reduce(name, options):
    def call(library, x):
        keywords = dict(options)
        if "dtype" in keywords:
            keywords["dtype"] = getattr(library, keywords["dtype"])
        return getattr(library, name)(x, **keywords)

    return call


@each("name, options", REDUCED, ids=lambda value: str(value))
def test_reductions(name, options):
    def cases():
        for dtype in DTYPES:
            for shape in ((2, 3, 4), (1, 1, 1), (2, 0, 3), (3, 2, 0)):
                yield (
                    name, (dtype,), reduce(name, options),
                    lambda library, shape=shape, dtype=dtype: [
                        tensor(library, distinct(shape, dtype), dtype)
                    ],
                    "reduction",
                )
            if "float" in dtype:
                for special in (np.nan, np.inf, -np.inf):
                    array = distinct((2, 3, 4), dtype)
                    array[1, 1, 2] = special
                    yield (
                        name, (dtype, str(special)), reduce(name, options),
                        lambda library, array=array, dtype=dtype: [tensor(library, array, dtype)],
                        "reduction",
                    )

    assert_all_agree(cases())


def distinct(shape, dtype):
    """Values of which no two are equal (but bools), so that the position of a maximum is known."""
    count = int(np.prod(shape))
    array = np.random.default_rng(7).permutation(count).reshape(shape)
    if dtype == "bool":
        return array % 3 > 0
    return array if "float" not in dtype else array / 8.0 - 1


PRODUCTS = {
    "matmul": [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)),
               ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4)),
               ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (2, 3)), ((), (3,))],
    "mm": [((2, 3), (3, 4)), ((2, 3), (3,))],
    "mv": [((2, 3), (3,)), ((2, 3), (2,))],
    "dot": [((3,), (3,)), ((0,), (0,)), ((3,), (4,))],
    "bmm": [((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (4, 3, 4))],
    "outer": [((3,), (4,)), ((0,), (4,)), ((2, 3), (4,))],
}


@each("name", PRODUCTS)
def test_products(name):
    def cases():
        for a_shape, b_shape in PRODUCTS[name]:
            for dtypes in [(dtype, dtype) for dtype in DTYPES] + [("float32", "float64")]:
                yield (
                    name, dtypes, lambda library, a, b: getattr(library, name)(a, b),
                    lambda library, shapes=(a_shape, b_shape), dtypes=dtypes: [
                        tensor(library, distinct(shape, dtype) % 4, dtype)
                        if dtype != "bool" else tensor(library, distinct(shape, dtype), dtype)
                        for shape, dtype in zip(shapes, dtypes)
                    ],
                    "product",
                )

    assert_all_agree(cases())


RESHAPES = {
    "reshape": lambda L, x: (x.reshape(6, 4), x.reshape(-1), x.reshape(2, -1, 2)),
    "view": lambda L, x: (x.view(6, 4), x.view(-1), x.view(2, 12)),
    "transpose": lambda L, x: (x.transpose(0, 2), x.transpose(-1, 1), x.mT),
    "permute": lambda L, x: (x.permute(2, 0, 1), L.permute(x, (1, -1, 0))),
    "squeeze": lambda L, x: (
        x[:1].squeeze(), x[:1].squeeze(0), x.squeeze(0), x[:, :1].squeeze((0, 1))),
    "unsqueeze": lambda L, x: (x.unsqueeze(0), x.unsqueeze(-1), x.unsqueeze(2)),
    "expand": lambda L, x: (x[:1].expand(5, -1, 4), x.expand(2, 2, 3, 4)),
    "flatten": lambda L, x: (x.flatten(), x.flatten(1), x.flatten(0, 1), x[0, 0, 0].flatten()),
    "cat": lambda L, x: (L.cat([x, x]), L.cat((x, x[:, :1]), dim=1), L.cat([x, x[..., :0]], -1)),
    "cat promotes": lambda L, x: L.cat([x, L.ones(1, 3, 4), L.ones(1, 3, 4, dtype=L.int16)]),
    "stack": lambda L, x: (L.stack([x, x]), L.stack([x, x], dim=-1)),
    "split": lambda L, x: (x.split(2, dim=2), x.split(3, dim=2), L.split(x, [1, 2], dim=1)),
    "chunk": lambda L, x: (x.chunk(2, dim=2), x.chunk(3, dim=2), x.chunk(5, dim=2)),
    "contiguous": lambda L, x: (x.transpose(0, 1).contiguous(), x.clone()),
    "iteration": lambda L, x: list(x),
    "casts": lambda L, x: [x.to(getattr(L, dtype)) for dtype in DTYPES],
    "short casts": lambda L, x: (x.long(), x.int(), x.float(), x.double(), x.bool()),
}


@each("name", RESHAPES)
def test_shapes_and_casts(name):
    assert_all_agree(
        (name, (dtype,), RESHAPES[name],
         lambda library, dtype=dtype: [tensor(library, distinct((2, 3, 4), dtype), dtype)], "exact")
        for dtype in DTYPES
    )


def mask(L):
    return L.tensor([[True, False, True], [False, False, True]])


INDICES = {
    "integer": lambda L: 1,
    "negative integer": lambda L: -2,
    "integers": lambda L: (1, -1, 2),
    "slice": lambda L: slice(1, None),
    "far slice": lambda L: slice(-100, 100),
    "empty slice": lambda L: slice(2, 1),
    "stepped slices": lambda L: (slice(None), slice(None, None, 2), slice(3, 0, 1)),
    "ellipsis": lambda L: (..., 1),
    "new axes": lambda L: (None, 0, None, ..., None),
    "list": lambda L: [1, 0, 1],
    "list of a middle dimension": lambda L: (slice(None), [0, 2]),
    "tensor": lambda L: L.tensor([[0, 1], [1, 1]]),
    "negative tensor": lambda L: L.tensor([-1, -2]),
    "int32 tensor": lambda L: L.tensor([1, 0], dtype=L.int32),
    "0-d tensor": lambda L: L.tensor(1),
    "two tensors": lambda L: (L.tensor([0, 1]), L.tensor([2, 0])),
    "broadcast tensors": lambda L: (L.tensor([[0], [1]]), L.tensor([2, 0])),
    "tensors apart": lambda L: (L.tensor([0, 1]), slice(None), L.tensor([2, 0])),
    "tensor and integer apart": lambda L: (0, slice(None), L.tensor([2, 0])),
    "tensor and new axis": lambda L: (L.tensor([0, 1]), None, slice(None), 1),
    "mask": mask,
    "leading mask": lambda L: L.tensor([True, False]),
    "mask and integer": lambda L: (mask(L), 1),
    "mask and slice": lambda L: (mask(L), slice(1, 3)),
    "trailing mask": lambda L: (..., L.tensor([True, False, False, True])),
    "mask of nothing": lambda L: L.tensor([False, False]),
    "True": lambda L: True,
    "False": lambda L: False,
    "empty list": lambda L: [],
    "empty tensor": lambda L: L.tensor([], dtype=L.int64),
    "too far": lambda L: 2,
    "too many": lambda L: (0, 0, 0, 0),
    "tensor too far": lambda L: L.tensor([0, 2]),
    "float tensor": lambda L: L.tensor([0.0]),
    "mask of a wrong shape": lambda L: L.tensor([True, False, True]),
    "shapes that do not broadcast": lambda L: ([0, 1], [0, 1, 2]),
    "reversed slices": lambda L: slice(None, None, -1),
}


@each("name", INDICES)
def test_indexing(name):
    def read(library, x):
        return x[INDICES[name](library)]

    def write(value):
        def call(library, x):
            x[INDICES[name](library)] = value
            return x

        return call

    def write_tensor(library, x):
        index = INDICES[name](library)
        x[index] = x[index] * 0 + library.tensor(9, dtype=library.int8)
        return x

    def cases():
        for dtype in ("bool", "int16", "float32", "float64", "bfloat16"):
            written = name if name == "reversed slices" else "writing a tensor"
            for call in (read, write(1), write(2.5), write(True), write_tensor):
                yield (
                    written if call is write_tensor else name, (dtype,), call,
                    lambda library, dtype=dtype: [
                        tensor(library, distinct((2, 3, 4), dtype), dtype)
                    ],
                    "exact",
                )

    assert_all_agree(cases())


CREATION = {
    "arange": lambda L: (L.arange(5), L.arange(1, 4), L.arange(5, 0, -2), L.arange(0, 1, 0.25),
                         L.arange(3.0), L.arange(3, dtype=L.float64)),
    "linspace": lambda L: (L.linspace(0, 1, 5), L.linspace(3, -2, 4, dtype=L.float64),
                           L.linspace(1, 2, 1), L.linspace(1, 2, 0)),
    "eye": lambda L: (L.eye(3), L.eye(2, 3), L.eye(0), L.eye(2, dtype=L.int64)),
    "full": lambda L: (L.full((2,), 1), L.full((2,), 1.5), L.full((), True), L.full((0, 2), 3.0)),
    "zeros": lambda L: (L.zeros(2, 3), L.zeros((2, 3)), L.zeros(()), L.zeros([0]),
                        L.zeros(2, dtype=L.bool)),
    "like": lambda L: (L.zeros_like(L.ones(2, dtype=L.int8)), L.ones_like(L.zeros(2)),
                       L.full_like(L.ones(2, dtype=L.int64), 3)),
    "tensor": lambda L: (L.tensor(1), L.tensor(1.0), L.tensor(True), L.tensor([]), L.tensor([[]]),
                         L.tensor([1, 2.5]), L.tensor([True, 2]), L.tensor([[1], [2]]),
                         L.tensor([1, 2], dtype=L.float64), L.tensor(range(3))),
    "tensor of arrays": lambda L: (L.tensor(np.arange(3)), L.tensor(np.float32(2)),
                                   L.tensor(np.ones((2, 2), dtype=np.float16))),
}


@each("name", CREATION)
def test_creation(name):
    assert_all_agree([(name, (), CREATION[name], lambda library: [], "elementwise")])


SMOOTH_UNARY = {  # operation: values at which it has a derivative
    **{name: REALS for name in (
        "neg", "abs", "sign", "exp", "expm1", "exp2", "square", "sin", "cos", "tan", "atan", "sinh",
        "cosh", "tanh", "sigmoid", "relu", "erf", "floor", "ceil", "round", "trunc")},
    **{name: np.array([0.25, 0.5, 1.0, 3.75]) for name in (
        "log", "log2", "log10", "sqrt", "rsqrt")},
    "log1p": np.array([-0.5, 0.0, 2.0]),
    "reciprocal": np.array([-2.0, 0.5, 3.0]),
    "asin": np.array([-0.75, 0.0, 0.5]),
    "acos": np.array([-0.75, 0.0, 0.5]),
}


@each("name", SMOOTH_UNARY)
def test_gradients_of_unary_operations(name):
    assert_same_gradients(lambda library, x: getattr(library, name)(x), [SMOOTH_UNARY[name]])


GRADIENTS = {
    "add": lambda L, a, b: L.add(a, b, alpha=3),
    "sub": lambda L, a, b: a - b,
    "rsub": lambda L, a, b: 2 - a * b,
    "mul": lambda L, a, b: a * b,
    "div": lambda L, a, b: a / b,
    "div floor": lambda L, a, b: L.div(a, b, rounding_mode="floor") + a,
    "remainder": lambda L, a, b: L.remainder(a, b),
    "pow": lambda L, a, b: a**b + a**2 + 2**b + a**0.5 + b**-1,
    "maximum": lambda L, a, b: L.maximum(a, b) + L.maximum(a, a * 1),
    "minimum": lambda L, a, b: L.minimum(a, b) + L.minimum(b, b * 1),
    "atan2": lambda L, a, b: L.atan2(a, b),
    "where": lambda L, a, b: L.where(a > b, a, b * 2),
    "clamp": lambda L, a, b: a.clamp(0.5, 1.0) + a.clamp(min=b),
    "sum": lambda L, a, b: (a * b).sum((0, 2), keepdim=True) + a.sum(),
    "mean": lambda L, a, b: (a * b).mean(1) + b.mean(),
    "prod": lambda L, a, b: a.prod(1) + (b - 1).prod(0).sum(),
    "max": lambda L, a, b: a.max(2).values + a.max() + b.amax() + a.amax((0, 1)).sum(),
    "min": lambda L, a, b: a.min(2)[0] + b.min() + a.amin(0).sum(),
    "var": lambda L, a, b: a.var((0, 2)) + a.var() + a.std(1).sum() + b.std(correction=0),
    "logsumexp": lambda L, a, b: a.logsumexp((0, 2)),
    "softmax": lambda L, a, b: a.softmax(1) + a.log_softmax(0) + b.softmax(0).sum(),
    "matmul": lambda L, a, b: (a @ b, b @ a.mT, a @ a.mT),
    "mm": lambda L, a, b: (L.mm(a[0], a[1].t()), L.mv(a[0], b), L.outer(b, b), L.dot(b, b)),
    "bmm": lambda L, a, b: (L.bmm(a, a.mT), b),
    "shapes": lambda L, a, b: (
        a.reshape(6, -1), a.transpose(0, 2), a.permute(1, 0, 2), a.unsqueeze(1), a[:1].squeeze(0),
        b.expand(2, 4), a.flatten(1), a.view(-1)),
    "joins": lambda L, a, b: (
        L.cat([a, a * 2], 1), L.stack([b, b]), *a.split(3, 2), *a.chunk(2, 1), *a),
    "indices": lambda L, a, b: (
        a[0], a[..., 1:], a[:, [0, 0, 2]], a[a > 1], b[None],
        a[L.tensor([1, 1]), L.tensor([0, 0])]),
    "writes": lambda L, a, b: (written(L, a, b), b),
    "copies": lambda L, a, b: (a.clone(), a.mT.contiguous(), a.to(L.float32).to(L.float64), b),
}


def written(L, a, b):
    y = a * 1
    y[0] = b
    y[1, [0, 0, 2]] = 0.0
    y[..., 3] *= 2
    return y


@each("name", GRADIENTS)
def test_gradients(name):
    rng = np.random.default_rng(3)
    assert_same_gradients(GRADIENTS[name],
                          [rng.uniform(0.3, 2.3, (2, 3, 4)), rng.uniform(0.4, 2.0, 4)])


def assert_same_gradients(call, arrays):
    """A call has the same gradients in both libraries."""
    ours, theirs = gradients(call, tl, arrays), gradients(call, torch, arrays)
    for mine, other in zip(ours, theirs):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_close(mine.numpy(), other.numpy(), **tolerance("float64", "gradient"))


@given(
    shapes=broadcastable_shapes(2),
    dtypes=st.tuples(st.sampled_from(DTYPES), st.sampled_from(DTYPES)),
    name=st.sampled_from(["add", "mul", "div", "lt", "maximum", "pow"]),
)
def test_broadcast_results_have_the_same_shape_and_dtype(shapes, dtypes, name):
    def call(library, a, b):
        return getattr(library, name)(a, b)

    def arguments(library):
        return [tensor(library, np.ones(shape), dtype) for shape, dtype in zip(shapes, dtypes)]

    assert_all_agree([(name, dtypes, call, arguments, "elementwise")])
