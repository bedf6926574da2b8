"""Errors as users read them: names, remedies, and the frames of a traceback."""

import importlib
import pickle
import traceback
import warnings
from pathlib import Path

import pytest
from cases import each
from process import run_python

import tensorlib as tl
from tensorlib import ops
from tensorlib.func import grad, vmap

PACKAGE = str(Path(tl.__file__).parent)
X = tl.ones(2, 3)
ERRORS = ("OutOfMemoryError", "OutOfRangeError", "IndexOutOfRange", "IntegerDivisionByZero",
          "UnfitPower", "UnsupportedDtype", "WrongGradient", "WrongArgument", "DataDependent")


# ---- classes -------------------------------------------------------------------------------------

@each("name", ERRORS)
def test_errors_of_the_documents_are_public(name):
    error = getattr(tl, name)
    assert f"{error.__module__}.{error.__qualname__}" == f"tensorlib.{name}"
    assert isinstance(pickle.loads(pickle.dumps(error("text"))), error)
    assert name in Path(PACKAGE).parent.joinpath("docs/conventions.md").read_text()


@each("name", [
    "serialization.LoadError", "program.CaptureError", "program.ProgramError",
    "onnx.OnnxExporterError", "utils.checkpoint.CheckpointError", "distributed.DistError",
    "distributed.NoGroupError"])
def test_errors_print_under_the_names_by_which_they_are_imported(name):
    module, _, last = f"tensorlib.{name}".rpartition(".")
    error = getattr(importlib.import_module(module), last)
    assert (error.__module__, error.__qualname__) == (module, last)
    assert type(pickle.loads(pickle.dumps(error("text")))) is error


@each("error", [IndexError, RuntimeError])
@each("call", [
    lambda at: tl.gather(X[0], 0, at), lambda at: tl.scatter(X[0], 0, at, 1.0),
    lambda at: tl.scatter_add(X[0], 0, at, tl.ones(1)),
    lambda at: tl.scatter_reduce(X[0], 0, at, tl.ones(1), "amax")])
def test_positions_out_of_range_are_errors_of_both_kinds(call, error):
    for at in (9, -4):
        with pytest.raises(error, match=f"index {at} is out of bounds for dimension 0 with size 3"):
            call(tl.tensor([at]))


def test_errors_print_under_the_name_of_the_package():
    with pytest.raises(tl.IntegerDivisionByZero) as error:
        tl.ones(1, dtype=tl.int64) // 0
    assert traceback.format_exception_only(error.value)[-1].startswith(
        "tensorlib.IntegerDivisionByZero: floor_divide")


# ---- frames --------------------------------------------------------------------------------------

def broken(w):
    return (w @ tl.ones(7)).sum()


CALLS = {
    "operator": lambda: X @ X, "broadcast": lambda: X + tl.ones(7), "index": lambda: X[5],
    "composite": lambda: X.norm("abc"), "of composites": lambda: X.masked_fill(X[0, :2] > 0, 1.0),
    "in place": lambda: X.clone().masked_fill_(tl.ones(2) > 0, 1.0),
    "cat": lambda: tl.cat([X, X[0]]), "view": lambda: X.view(7),
    "backward": lambda: X.sum().backward(),
    "keyword": lambda: X.sum(dims=1), "out": lambda: tl.add(X, X, out=3),
    "select": lambda: X.select(0, 9), "converted": lambda: tl.div(X, X, rounding_mode="up"),
    "random": lambda: tl.randint(3, 3, (2,)), "tensor": lambda: tl.tensor([[1], [2, 3]]),
}


def frames_of(call):
    """For each frame of the error of a call below it, whether it is ours."""
    try:
        call()
    except Exception as error:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        return [file.startswith((PACKAGE, "tensorlib/")) for file in files[1:]]


@each("name", CALLS)
def test_a_traceback_ends_with_the_line_of_the_user_and_at_most_one_frame_of_ours(name):
    assert frames_of(CALLS[name]) in ([False], [False, True])


@each("transform", [grad, vmap, lambda f: vmap(grad(f))])
def test_between_a_transform_and_its_function_stands_one_frame(transform):
    frames = frames_of(lambda: transform(broken)(tl.ones(2, 2, 3)))
    assert frames[0] is False and False in frames[1:]
    assert not any(a and b for a, b in zip(frames, frames[1:]))


def in_parts(x):
    y = x * 2
    print(end=str(x.sum().item())[:0])
    return broken(y) + 1


@each("f", [broken, in_parts, lambda w: tl.cat([w]) @ w], ids=[
    "whole", "in parts", "at once"])
def test_below_a_line_that_calls_a_compiled_function_stands_one_frame(f):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = tl.compile(f)
        for _ in range(3):
            frames = frames_of(lambda: compiled(X))
            assert frames[0] is False and False in frames[1:]
            assert not any(a and b for a, b in zip(frames, frames[1:])), frames


def test_the_error_of_a_compiled_module_has_one_frame_of_ours():
    compiled = tl.compile(tl.nn.Sequential(tl.nn.Linear(5, 2)))
    assert frames_of(lambda: compiled(X)) == [False, True]


def test_what_is_wrong_with_the_arguments_of_a_compiled_function_is_what_python_says():
    with pytest.raises(TypeError, match=r"broken\(\) missing 1 required positional argument: 'w'"):
        tl.compile(broken)()


def test_a_variable_of_the_environment_shows_all_frames(monkeypatch):
    code = ("import traceback, tensorlib as tl\n"
            "try:\n    tl.ones(2, 3) @ tl.ones(5)\n"
            "except RuntimeError as error:\n"
            "    print(len(traceback.extract_tb(error.__traceback__)))")
    assert int(run_python(code)) <= 2
    monkeypatch.setenv("TENSORLIB_TRACEBACK", "full")
    assert int(run_python(code)) > 2


# ---- texts ---------------------------------------------------------------------------------------

@each("call, error, text", [
    (lambda: X.softmax(), TypeError, "softmax.* missing the argument 'dim'"),
    (lambda: X.norm("abc"), ValueError, "norm: p='abc' is not supported"),
    (lambda: X.sum().backward(), RuntimeError, r"backward: .*requires_grad_\(\) on the leaves"),
    (lambda: X[5], IndexError, r"getitem: index 5 is out of bounds .* size 2 .*\(2, 3\)"),
    (lambda: X[0, 0, 0], IndexError, "getitem: too many indices"),
    (lambda: X[[9]], IndexError, "getitem: index 9 .* size 2"),
    (lambda: X.clone().__setitem__((0, 7), 1.0), IndexError, "setitem: index 7 .* size 3"),
    (lambda: X.clone().__setitem__(0, tl.ones(7)), RuntimeError, r"setitem: .*\[7\].*\[3\]"),
    (lambda: X.index_select(0, tl.tensor([7])), IndexError, "^index_select: index 7 .* size 2"),
    (lambda: X.select(1, 9), IndexError, "^select: index 9 .* size 3"),
    (lambda: X.masked_fill(tl.ones(2) > 0, 1.0), RuntimeError, "^masked_fill: .*do not broadcast"),
    (lambda: X.masked_fill(tl.ones(3), 1.0), RuntimeError, "^masked_fill: mask must be bool"),
    (lambda: X.masked_fill(X > 0, "a"), TypeError, "^masked_fill: value must be a number"),
])
def test_an_error_names_the_operation_and_the_remedy(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_rule_in_the_manner_of_autograd_is_told_how_rules_are_written_here():
    @ops.primitive
    def cubed(x):
        return x ** 3
    ops.defvjp(cubed, lambda ans, x: lambda g: g * 3 * x ** 2)
    with pytest.raises(tl.WrongGradient, match=r"returned function.*\(g, ans, \*args\).*autogra"):
        cubed(tl.ones(2, requires_grad=True)).sum().backward()


@each("call, function, nearest", [
    (lambda: X.sum(dims=1), "sum", "dim"), (lambda: X.mean(kepdim=True), "mean", "keepdim"),
    (lambda: tl.add(X, X, alhpa=2), "add", "alpha"), (lambda: tl.cat([X], dims=0), "cat", "dim"),
    (lambda: X.softmax(dims=1), "softmax", "dim"), (lambda: X.tanh(oout=X), "tanh", "out"),
    (lambda: X.std(unbias=1), "std", "unbiased"), (lambda: X.clamp(minn=0), "clamp", "min"),
    (lambda: tl.arange(3, dtpe=1), "arange", "dtype"),
    (lambda: tl.tensor(1.0, requires_gard=True), "tensor", "requires_grad"),
    (lambda: X.addmm(X, X, bta=1), "addmm", "beta"), (lambda: X.to(dtpe=1), "to", "dtype"),
    (lambda: grad(tl.sum, argnum=1), "grad", "argnums"),
    (lambda: tl.full((2,), 1.0, dtyp=1), "full", "dtype"),
    (lambda: tl.zeros(2, 3, dtyp=1), "zeros", "dtype"),
    (lambda: tl.rand(2, sizes=3), "rand", "size"),
    (lambda: X.backward(retain=True), "backward", "retain_graph"),
    (lambda: X.requires_grad_(require_grad=True), "requires_grad_", "requires_grad"),
    (lambda: X.numpy(forc=True), "numpy", "force"),
])
def test_an_unknown_keyword_is_refused_with_the_nearest_argument(call, function, nearest):
    with pytest.raises(TypeError, match=rf"{function}\(\) got an unexpected keyword argument "
                                        rf"'\w+'[;.] [dD]id you mean .*'{nearest}'"):
        call()


def test_an_error_of_the_users_own_stays_what_it_is():
    def user(x, dim):
        return other(x, dims=dim)

    def other(x, dim):
        return x
    with pytest.raises(TypeError, match=r"other\(\) got an unexpected keyword argument 'dims'"
                                        r"(\. Did you mean 'dim'\?)?$"):      # Python's, from 3.13
        grad(lambda x: user(x, 1))(X)


# ---- tensors of other libraries, and modules -----------------------------------------------------

def foreign(name, package):
    """An object of a class of another package, with PyTorch's protocol as its Tensor has it."""
    def again(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
    return type(name, (), {"__module__": package, "__torch_function__": classmethod(again)})()


@each("call", [
    lambda x: tl.matmul(X, x), lambda x: tl.cat([X, x]), lambda x: tl.where(X > 0, X, x),
    lambda x: tl.nn.functional.mse_loss(X, x), lambda x: tl.nn.Linear(3, 2)(x),
    lambda x: tl.nn.Parameter(x), lambda x: tl.optim.SGD([x], lr=0.1), lambda x: tl.relu(x),
])
def test_a_tensor_of_another_library_is_named_with_it(call):
    with pytest.raises(TypeError, match=r"torch\.Tensor"):
        call(foreign("Tensor", "torch"))


def test_public_classes_print_as_the_packages_own():
    assert repr(tl.Tensor) == "<class 'tensorlib.Tensor'>"
    with pytest.raises(AttributeError, match="'tensorlib.Tensor' object has no attribute 'nope'"):
        X.nope
    assert pickle.loads(pickle.dumps(tl.Tensor)) is tl.Tensor


class Net(tl.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = tl.nn.Sequential(tl.nn.Linear(3, 3), tl.nn.Linear(5, 2))

    def forward(self, x):
        return self.layers(x)


@each("name, call", [
    ("addmm", lambda: tl.addmm(X, X, X)), ("baddbmm", lambda: tl.baddbmm(X, X, X)),
    ("broadcast_to", lambda: tl.broadcast_to(X, (2, 2))),
    ("vstack", lambda: tl.vstack([X, tl.ones(4, 5)])),
    ("mse_loss", lambda: tl.nn.MSELoss()(X[0], X[0, :2])),
    ("normalize", lambda: tl.nn.functional.normalize(X, dim=2)),
    ("triplet_margin_loss", lambda: tl.nn.TripletMarginLoss()(X, tl.ones(4, 5), X)),
    ("grad", lambda: tl.autograd.grad(X.clone().requires_grad_() * 2, X)),
])
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_an_error_in_a_part_names_the_function_that_was_called(name, call):
    with pytest.raises((RuntimeError, IndexError), match=f"^{name}: "):
        call()


@each("text, call", [
    ("add: alpha must be a number, not str", lambda: X.add(1, alpha="2")),
    ("requires_grad: must be a bool, not str", lambda: X.clone().requires_grad_("no")),
    ("requires_grad: must be a bool, not int", lambda: setattr(X.clone(), "requires_grad", 1)),
    ("requires_grad: must be a bool, not str", lambda: tl.nn.Linear(3, 2).requires_grad_("no")),
    ("dtype: expected a tensorlib dtype, got 'float32'; did you mean tensorlib.float32",
     lambda: tl.tensor([1.0], dtype="float32")),
    ("data: expected a Tensor, got int", lambda: setattr(X.clone(), "data", 3)),
    ("Tensor does not support deleting items", lambda: X.__delitem__(0)),
])
def test_arguments_of_a_wrong_type(text, call):
    with pytest.raises(TypeError, match=f"^{text}"):
        call()


INTS = tl.ones(1, 3, 4, dtype=tl.int64)


@each("call", [
    lambda: tl.nn.functional.softmax(INTS, 0), lambda: tl.nn.functional.layer_norm(INTS, (4,)),
    lambda: tl.nn.functional.batch_norm(INTS, None, None, training=True),
    lambda: tl.nn.functional.group_norm(INTS, 1),
    lambda: tl.nn.functional.adaptive_avg_pool1d(INTS, 2),
    lambda: tl.nn.functional.cross_entropy(INTS[0], tl.zeros(3).long()),
    lambda: tl.nn.functional.nll_loss(INTS[0], tl.zeros(3).long()),
    lambda: tl.nn.functional.interpolate(INTS, size=2), lambda: tl.rand(2, dtype=tl.int64),
    lambda: INTS.clone().normal_(), lambda: tl.normal(INTS, 1.0), lambda: INTS.lerp(INTS, 0.5),
    lambda: tl.linalg.eigh(INTS[0, :, :3]), lambda: tl.poisson(INTS), lambda: INTS.mean(),
    lambda: tl.nextafter(INTS, INTS), lambda: (INTS[0] > 0) @ (INTS[0].mT > 0)])
def test_a_dtype_that_is_not_supported_is_one_error(call):
    with pytest.raises(tl.UnsupportedDtype, match=r"^[\w.]+: .*tensorlib\.(int64|bool)"):
        call()


def test_products_that_do_not_fit_have_pytorchs_words():
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(3x4 and 5x6\)"):
        tl.ones(3, 4) @ tl.ones(5, 6)
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(6x4 and 5x6\)"):
        tl.ones(2, 3, 4) @ tl.ones(5, 6)
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(2x3 and 5x4\)"):
        tl.nn.Linear(5, 4)(tl.ones(2, 3))


def test_an_error_in_a_module_names_its_place_in_the_model():
    with pytest.raises(RuntimeError, match="expects 5 features, got 3") as error:
        Net()(X)
    assert error.value.__notes__ == [
        "in layers.1: Linear(in_features=5, out_features=2, bias=True)"]
    pickle.loads(pickle.dumps(error.value.__notes__))
    with pytest.raises(RuntimeError) as error:
        tl.nn.Linear(5, 2)(X)
    assert error.value.__notes__ == ["in Linear(in_features=5, out_features=2, bias=True)"]


def test_a_call_of_a_module_has_one_frame_of_ours():
    ours = frames_of(lambda: tl.nn.Linear(5, 2)(X))
    assert sum(ours) == 1, ours
    ours = frames_of(lambda: tl.nn.Sequential(tl.nn.Sequential(tl.nn.Linear(5, 2)))(X))
    assert sum(ours) == 1, ours
