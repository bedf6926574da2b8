"""The types of calls: the names of their inputs and outputs, and the function that runs them.

A type is the name of an operation of the registry (`tanh`), of its backward operation
(`tanh_gradient`, to any order), of its form in place (`tanh_`), of a method that writes (`copy_`),
or of one of the few operations that only programs have: control flow, and sums of gradients.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from operator import getitem
from typing import Any, NamedTuple

from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.graph.op import Op, registry
from tensorlib._core.index.keys import Index, parse, put
from tensorlib._core.interpreters.stack import current_layer
from tensorlib._core.layout import views
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.gradients import grad
from tensorlib.autograd.modes import enable_grad, is_grad_enabled, no_grad
from tensorlib.ops.declare import FUNCTIONS, run_resolved
from tensorlib.ops.lazy import name_of, operations
from tensorlib.ops.value_checks import CHECKS
from tensorlib.program.ir.model import OpCall, Variable, variables_in
from tensorlib.program.ir.stacks import Stack

# The methods that write to a tensor: their other arguments, tensors and attributes.
WRITERS = {
    "copy_": (("src",), ()), "fill_": ((), ("value",)), "zero_": ((), ()),
    "uniform_": ((), ("from_", "to")), "normal_": ((), ("mean", "std")),
    "random_": ((), ("from_", "to")), "bernoulli_": ((), ("p",)),
}
COPIES = ("copy_", "fill_", "zero_")        # those that copy elements;
DRAWING = WRITERS.keys() - COPIES    # the others draw random numbers, and have no out-of-place form
NUMBERS = bool, int, float, complex
HIGHEST = 6                  # orders of backward operations, whose rules grow with each
RUNNERS: dict[str, Callable[[Op], Callable[..., Any]]] = {}     # by the names of operations
WRITTEN: dict[str, Callable[..., Any]] = {}     # the functions that run their in-place forms


def run_by(operation: Any) -> Callable[[Any], Any]:
    """Decorates a function that takes the record of an operation, and returns what runs its
    calls."""
    def declare(runner: Any) -> Any:
        RUNNERS[name_of(operation)] = runner
        return runner
    return declare


def written_by(operation: Any) -> Callable[[Any], Any]:
    """Decorates the function that runs the in-place form of an operation."""
    def declare(function: Any) -> Any:
        WRITTEN[name_of(operation)] = function
        return function
    return declare


class UnknownType(ValueError):
    """A call of an operation that does not exist."""

    __module__ = "tensorlib.program"


class Form(NamedTuple):
    """The form of the calls of one type.

    arguments, attributes: their names. variadic: the one argument is a sequence. op: the record of
    the operation, or None. run: a function of the values of the arguments, and of the attributes by
    name; None for control flow, which the interpreter runs. Types that are not operations also
    have: effect: whether it does more than compute its results. writes: whether it writes to
    existing values. pure: whether the same values always give the same bits.
    """

    arguments: tuple[str, ...]
    attributes: tuple[str, ...]
    variadic: bool
    op: Op | None
    run: Callable[..., Any] | None
    effect: bool = False
    writes: bool = False
    pure: bool = False


@cache
def form_of(type: str) -> Form:
    """The form of calls of this type. Raises: UnknownType, with the nearest names."""
    if type in OWN:
        return OWN[type]
    if type in WRITERS:
        tensors, attributes = WRITERS[type]
        return Form(("input", *tensors), attributes, False, None, getattr(Tensor, type))
    op = operation(type)
    if op is not None and op.draws is not None:
        return Form(op.arguments, (*op.draws, "dtype", "generator"), False, op,
                    lambda *tensors, **given: op.function(*tensors, **given))
    if op is None and type.endswith("_"):
        op = operation(type[:-1])
        if op is not None and op.name in WRITTEN:
            return Form(op.arguments, op.attributes, False, op, WRITTEN[op.name])
        inplace = getattr(getattr(op, "function", None), "inplace", None)
        if inplace is not None:
            return Form(op.arguments, op.attributes, op.variadic, op,
                        getattr(inplace, "canonical", inplace))
        method = getattr(Tensor, type, None)
        if op is not None and method is not None:
            return Form(op.arguments, op.attributes, op.variadic, op, method)
        op = None
    if op is None:
        raise UnknownType(f"program: no operation {type!r}")
    return Form(op.arguments, op.attributes, op.variadic, op, runner(op))


@cache
def registered(type: str) -> Op | None:
    """The operation of the registry of this name; None for a backward operation, and for what only
    programs have. The registry loads all there is before it says that it has no such name, so it is
    not asked about writes in place: no name in it ends with "_".
    """
    base = type.removesuffix("_gradient")
    if type in OWN or type.endswith("_") or base != type and registered(base) is not None:
        return None
    if type not in registry:
        return None
    return registry[type]


@cache
def record_of(type: str) -> Op | None:
    """The operation of the registry that a type is of: for a backward operation, its forward one.

    None for a form in place and for what only programs have.
    """
    found = registered(type)
    while found is None and type.endswith("_gradient"):
        type = type.removesuffix("_gradient")
        found = registered(type)
    return found


def is_draw(type: str) -> bool:
    """Whether calls of a type draw random numbers, anew in each run."""
    op = registered(type)
    return op is not None and op.draws is not None


@cache
def cuts(type: str) -> bool:
    """Whether calls of a type return the memory of their input, without its gradient."""
    op = registered(type)
    return op is not None and op.may_view and not op.differentiable


def is_sized_by_values(call: OpCall) -> bool:
    """Whether the shape of a call's result depends on elements, as for `x[mask]`."""
    op = registered(call.type)
    return op is not None and (op.sized_by_values or bool(op.key) and op.may_view and any(
        x.dtype.name == "bool" for x in variables_in(call.attributes)))


def is_indexed(type: str) -> bool:
    """Whether calls of a type, or of the operation that they are the gradient of, have an index
    expression.
    """
    op = record_of(type)
    return op is not None and bool(op.key)


def operation(type: str) -> Op | None:
    """The operation, or backward operation, of this name; or None."""
    if type.count("_gradient") > HIGHEST:
        return None
    found = registered(type)
    if found is not None:
        return found
    base = operation(type.removesuffix("_gradient")) if type.endswith("_gradient") else None
    return None if base is None else base.gradient


def runner(op: Op) -> Callable[..., Any]:
    """The function that runs an operation on its tensors, with its attributes by keyword."""
    if op.name in RUNNERS:
        return RUNNERS[op.name](op)
    if is_indexed(op.name):
        return lambda *tensors, index, **given: op.function(
            *as_written(tensors), index=parsed(index, tensors, given), **given)
    if op.linearity == "composite" and registered(op.name) is not None:
        return lambda *tensors, **given: run_resolved(op, tensors, given)
    function = getattr(op.function, "canonical", op.function)
    if registered(op.name) is None and op.linearity == "composite":
        return lambda *tensors, **given: function(*as_operands(tensors), **given)
    if registered(op.name) is None or not op.attributes:
        return function
    defaults = dict(zip(op.attributes, op.defaults))
    return lambda *tensors, **given: function(*tensors, **{**defaults, **given})


def as_written(values: tuple[Any, ...]) -> list[Any]:
    """The values, with numbers in the dtype of the first one, to which they are written."""
    return [x if isinstance(x, Tensor) or not isinstance(x, NUMBERS)
            else FUNCTIONS["tensor"](x, dtype=values[0].dtype) for x in values]


def as_operands(values: tuple[Any, ...]) -> Sequence[Any]:
    """The values with numbers as tensors of the dtype in which the last of them is computed."""
    for x in values:
        if isinstance(x, NUMBERS):
            break
    else:
        return values
    dtype = next((x.dtype for x in reversed(values) if isinstance(x, Tensor)), None)
    if dtype is not None and dtype.itemsize == 2:
        dtype = None                                  # half types are computed in float32
    return [FUNCTIONS["tensor"](x, dtype=dtype) if isinstance(x, NUMBERS) else x
            for x in values]


@run_by(operations.copy)
def copying(op: Op) -> Callable[..., Any]:
    """A function that runs a copy, also of a number."""
    return lambda *tensors: op.function(*as_written(tensors))


@run_by(operations.getitem)
def picking(op: Op) -> Callable[..., Any]:
    """A function that reads at an index expression, unparsed ones as in Python."""
    def run(input: Any, *, index: Any) -> Any:
        return op.function(input, index=index) if type(index) is Index else input[index]
    run.as_it_stands = getitem           # type: ignore[attr-defined]
    return run


@run_by(operations.put_index)
def putting(op: Op) -> Callable[..., Any]:
    """A function that writes to a copy at an index expression, as in Python."""
    def run(input: Any, values: Any, *, index: Any) -> Any:
        if type(input) is not Tensor or is_grad_enabled() or current_layer() is not None:
            return op.function(*as_written((input, values)), index=parsed(index, (input,), {}))
        out = views.clone(input)
        if type(index) is Index:
            put(out, index, views.to_dtype(as_written((input, values))[1], input.dtype), False)
        else:
            out[index] = values
        return out
    return run


def parsed(index: Any, tensors: tuple[Any, ...], given: Mapping[str, Any]) -> Index:
    """The parsed index expression, for a tensor of the shape that is indexed."""
    if isinstance(index, Index):
        return index
    if "shape" in given:
        shape = given["shape"]
    elif "likes" in given:
        shape = given["likes"][0][0]
    else:
        return parse(tensors[0], index)
    return parse(sized(tuple(shape)), index)


@lru_cache(256)
def sized(shape: tuple[int, ...]) -> Tensor:
    """A tensor of a shape that has one element in memory."""
    return FUNCTIONS["zeros"](()).expand(shape)


@written_by(operations.put_index)
def write_at_index(input: Tensor, values: Any, *, index: Any) -> Tensor:
    """`input`, after `values` were written to it at the index expression."""
    input[index] = values
    return input


def is_fill(input: Any, value: Any, key: Any) -> bool:
    """Whether a number is written at a mask: `masked_fill`, whose sizes do not depend on values."""
    return (isinstance(input, Variable) and isinstance(key, Variable) and key.dtype.name == "bool"
            and input.shape == key.shape and has_gradients(input.dtype)
            and (type(value) in (int, float) or isinstance(value, Variable)
                 and not value.shape and value.dtype == input.dtype and value.stop_gradient))


def write_of(name: str, values: list[Any], kwargs: dict[str, Any], line: str) -> OpCall:
    """The call in place of a method `name`, or of "setitem", and its arguments."""
    if name == "setitem" and is_fill(*values):
        name, values = "masked_fill_", [values[0], values[2], values[1]]
    type = "put_index_" if name == "setitem" else name
    form = form_of(type)
    attributes = dict(zip(form.attributes, values[len(form.arguments):]))
    attributes.update((key, x) for key, x in kwargs.items() if x is not None)
    return OpCall(type, dict(zip(form.arguments, values)), (values[0],), attributes, line)


def value_of_write(call: OpCall) -> OpCall:
    """A call, without outputs so far, that computes the value of a write. For a random draw, it
    copies the tensor `onto` which the draw then writes."""
    if call.type in COPIES:
        src = call.inputs.get("src", call.attributes.get("value", 0.0))
        return OpCall(operations.copy.name, {"input": call.inputs["input"], "src": src}, ())
    if call.type in DRAWING:
        return copied(call)
    return OpCall(call.type[:-1], call.inputs, (), call.attributes)


def copied(call: OpCall) -> OpCall:
    """A call, without outputs so far, that copies the tensor that a write writes to."""
    return OpCall(operations.clone.name, {"input": call.inputs["input"]}, ())


def onto(call: OpCall, x: Variable) -> OpCall:
    """A write with the input `input`, to a variable."""
    return OpCall(call.type, {**call.inputs, "input": x}, (x,), call.attributes, call.line)


# ---- calls that only programs have ---------------------------------------------------------------

def summed(parts: tuple[Any, ...]) -> Any:
    """The sum of the parts, from the first to the last."""
    if type(parts[0]) is Stack:
        return Stack(map(summed, zip(*parts)))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def placeholder(shape: tuple[int | None, ...], dtype: Any) -> Tensor:
    """Zeros, in place of a value that was not computed and is not read."""
    return FUNCTIONS["zeros"](tuple(size or 0 for size in shape), dtype=dtype)


def zeros_of(input: Any) -> Any:
    """Zeros like a value, or like each of a stack."""
    if type(input) is Stack:
        return Stack(map(zeros_of, input))
    return FUNCTIONS["zeros_like"](input)


def with_grad(param: Tensor, grad: Tensor | None, strides: Any = None) -> tuple[()]:
    """Makes `grad` the `.grad` of a parameter. strides: those that it has in the eager call."""
    param.grad = grad
    return ()


def grad_of(param: Tensor) -> Tensor:
    """The `.grad` of a parameter; zeros where it has none."""
    return FUNCTIONS["zeros_like"](param.detach()) if param.grad is None else param.grad


def applied(args: tuple[Any, ...], function: Any, requires: Any = ()) -> Any:
    """The result of an autograd.Function. requires: which of the arguments require a gradient, as
    its forward may ask."""
    if not requires:
        return function.apply(*args)
    with no_grad():
        return function.apply(*leaves_of(args, requires))


def hooked(input: Tensor, hook: Any) -> tuple[()]:
    """Registers a hook on a tensor that requires a gradient; None makes it retain its gradient."""
    if hook is None:
        input.retain_grad()
    else:
        input.register_hook(hook)
    return ()


def leaves_of(args: Any, requires: Any) -> Any:
    """The arguments, also those in containers, some of them as leaves that require a gradient."""
    if type(requires) is tuple:
        return type(args)(map(leaves_of, args, requires))
    return args.detach().requires_grad_() if requires else args


def function_gradient(args: tuple[Any, ...], grads: tuple[Any, ...], function: Any,
                      wanted: tuple[bool, ...], requires: Any = ()) -> tuple[Any, ...]:
    """The wanted gradients of an autograd.Function, which runs once more."""
    with enable_grad():
        own = [x.detach().requires_grad_() if is_wanted else leaves_of(x, needs) for
               x, is_wanted, needs in zip(args, wanted, requires or (False,) * len(args))]
        found = function.apply(*own)
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        pairs = [(x, g) for x, g in zip(outputs, grads) if g is not None and x.requires_grad]
        inputs = [x for x, is_wanted in zip(own, wanted) if is_wanted]
        made = iter(grad([x for x, _ in pairs], inputs, [g for _, g in pairs],
                         materialize_grads=True) if pairs and inputs else map(zeros_of, inputs))
    return tuple(next(made) if is_wanted else None for is_wanted in wanted)


def made_check(values: Tensor, name: str, facts: tuple[Any, ...] = ()) -> tuple[()]:
    """Raises what a check of the library raises for some elements."""
    CHECKS[name](values.detach(), *facts)
    return ()


def take_step(optimizer: Any) -> None:
    """Runs the step of an optimiser's class. What an attribute of the optimiser itself does in its
    place was captured as calls of its own."""
    type(optimizer).step(optimizer)


def stepped(params: tuple[Tensor, ...], grads: tuple[Tensor, ...], optimizer: Any) -> tuple[()]:
    """Runs an optimiser's step on parameters with these gradients."""
    for param, g in zip(params, grads):
        param.grad = g
    take_step(optimizer)
    return ()


# The sum of gradients has the name of the reduction, and `parts` in the place of its `input`.
OWN = {
    "sum of parts": Form(("parts",), (), True, None, summed, pure=True),
    "zeros_like": Form(("input",), ("dtype",), False, None, zeros_of, pure=True),
    "set_grad": Form(("param", "grad"), ("strides",), False, None, with_grad, effect=True),
    "function": Form(("args",), ("function", "requires"), False, None, applied, writes=True),
    "function_gradient": Form(("args", "grads"), ("function", "wanted", "requires"), False, None,
                              function_gradient, writes=True),
    "hook": Form(("input",), ("hook",), False, None, hooked, writes=True),
    "check": Form(("values",), ("name", "facts"), False, None, made_check, effect=True),
    "get_grad": Form(("param",), (), False, None, grad_of),
    "optimizer_step": Form(("params", "grads"), ("optimizer",), False, None, stepped,
                           effect=True, writes=True),
    "cond": Form(("pred",), ("true_block", "false_block", "gradient"), False, None, None),
    "while_loop": Form(("init",), ("cond_block", "body_block", "kept"), False, None, None),
    "scan": Form(("init", "xs"), ("sub_block", "reverse", "kept"), False, None, None),
    "placeholder": Form((), ("shape", "dtype"), False, None, placeholder, pure=True),
}


def is_sum_of_parts(call: Any) -> bool:
    """Whether a call is a sum of gradients."""
    return "parts" in call.inputs


def form_of_call(call: Any) -> Form:
    """The form of a call, by its type and its arguments."""
    if is_sum_of_parts(call):
        return OWN["sum of parts"]
    return form_of(call.type)
