"""Declaring operations: the decorators that make one visible block into a registered operation.

`@elementwise` is for operations that a loop does element by element, `@op` for all others,
`@composite` for functions made of operations, which need no rule of their own. From the declaration
follow the function, the method, its in-place and `out=` forms, the gradient and the tests.
"""

from contextlib import contextmanager
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from types import FunctionType

from tensorlib._core.apply.operators import (
    make_binary,
    make_checked,
    make_general,
    make_inplace,
    make_nary,
    make_sized,
    make_unary,
)
from tensorlib._core.base.storage import OutOfMemoryError
from tensorlib._core.create.overwrite import write_result
from tensorlib._core.graph.op import Op, find
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib.ops.formulas import trace
from tensorlib.ops.outside import outside_graph

FUNCTIONS = {}  # every public function by name, in the order of declaration

_MAKERS = {1: make_unary, 2: make_binary}


class Tensors:
    """The annotation of a parameter that is a sequence of tensors."""


def publish(name, function, doc, method=True, public=True):
    """Makes `function` the public function, and by default the method, of this name."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = "tensorlib"
    function.__doc__ = doc
    if public:
        FUNCTIONS[name] = function
    if method:
        attach(name, function)
    return function


def alias(name, function, method=True):
    """Publishes an operation under a second name of PyTorch's."""
    FUNCTIONS[name] = function
    if method:
        attach(name, function)
        inplace = getattr(Tensor, function.__name__ + "_", None)
        if inplace is not None:
            attach(name + "_", inplace)


def in_place(name):
    """Publishes the method `NAME_` of a function that is not element-wise, and returns it.

    It writes what the function gives over the elements of its first tensor.
    """
    def method(self, *args, **kwargs):
        if "out" in kwargs:
            raise TypeError(f"{name}_: takes no out: the result goes into the tensor itself")
        return write_result(name + "_", self, FUNCTIONS[name](self, *args, **kwargs))
    function = FUNCTIONS[name]
    function.inplace = method
    method.__signature__ = Signature(
        [p for p in signature(function).parameters.values() if p.name != "out"])
    return publish(name + "_", method, f"In-place form of `{name}`.", public=False)


@contextmanager
def within_memory(name):
    """A context in which sizes beyond memory are an OutOfMemoryError that names the operation.

    For what NumPy makes: its own error for that is a MemoryError alone.
    """
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"{name}: {error}") from None


def check_tensors():
    """Puts the functions, methods and records in Python behind a check that tensors are Tensors.

    A method of one tensor needs none. The compiled functions check for themselves, and so do those
    that add arguments to an element-wise operation, whose operands may be numbers.
    """
    made = {}                                    # aliases stay the same function
    for names, put in ((FUNCTIONS, FUNCTIONS.__setitem__), (dict(vars(Tensor)), attach)):
        for name, function in names.items():
            places = _tensor_places(function)
            if not places or (put is attach and len(places) == 1):
                continue
            if function not in made:
                made[function] = wraps(function)(
                    make_checked(function.__name__, places, function))
            put(name, made[function])
            if getattr(getattr(function, "op", None), "function", None) is function:
                function.op.function = made[function]


def _tensor_places(function):
    """Which parameters of a public function in Python must be tensors, and their places.

    The first is one by its name, others by their annotation. None where the function `checks` them.
    """
    op = getattr(function, "op", None)
    if type(function) is not FunctionType or hasattr(function, "checks") or (
            op is not None and op.elementwise and len(op.arguments) == 2):
        return {}
    return {name: place for place, name in enumerate(_parameters(function))
            if function.__annotations__.get(name) is Tensor
            or place == 0 and name in ("input", "self", "tensor", "condition")}


def _parameters(function):
    """The names of a function's parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def elementwise(*, reference=None, samples=None, kernel=None, edges=(), to_float=False, boolean=(),
                refuses=None, differentiable=True, public=True, method=True, inplace=True,
                **testing):
    """Declares an operation that the loop `kernel` (by default of its name) does on each element.

    to_float: integers are computed as the default float. boolean: arguments that are bool. refuses:
    "zero" or "negative", integers that are an error in the last argument.
    reference, samples, edges: the NumPy function it must equal, inputs to try, values to try it at;
    `tensorlib.testing.check_op` uses them.
    """
    def decorate(function):
        name, arguments = function.__name__, _parameters(function)
        record = Op(
            name, function.__doc__, arguments, loop=kernel or name, to_float=to_float,
            refuses=refuses,
            boolean_inputs=tuple(arguments.index(a) for a in boolean),
            differentiable=differentiable, linearity="deriv" if differentiable else "",
            testing={"reference": reference, "samples": samples, "edges": edges,
                     "refuses": refuses, **testing})
        made = _MAKERS.get(len(arguments), make_nary)(record)
        publish(name, made, function.__doc__, method, public)
        made.__signature__ = _signature(record.arguments, "out")
        made.inplace = make_inplace(record)
        made.inplace.__signature__ = _signature(record.arguments)
        publish(name + "_", made.inplace, f"In-place form of `{name}`.", method and inplace,
                public=False)
        made.op = record
        record.function = made
        made.deriv = _deriv_of(record)
        return made
    return decorate


@cache
def _signature(arguments, *by_keyword, variadic=None):
    """The signature of a compiled function, which has not its own names; equal ones are shared."""
    found = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in arguments]
    if variadic:
        found.append(Parameter(variadic, Parameter.VAR_POSITIONAL))
    found += [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in by_keyword]
    return Signature(found)


def _deriv_of(record):
    """The decorator `NAME.deriv`, for one argument or (unary operations) without a name."""
    def deriv(argument=None, *, fused=None):
        def decorate(formula):
            which = record.arguments[0] if argument is None or callable(argument) else argument
            booleans = {record.arguments[i] for i in record.boolean_inputs}
            program, constant = trace(formula, booleans, fused)
            record.add_rule(which, formula, program, constant)
            return formula
        return decorate(argument) if callable(argument) else decorate
    return deriv


def op(*, reference=None, samples=None, linear=False, multilinear=False, view=False,
       differentiable=True, outputs=("out",), public=True, method=True, name=None, kernel=None,
       maker=make_general, **testing):
    """Declares an operation by its forward function on tensors outside the graph.

    Parameters annotated `Tensor` are its tensors and come first; `Tensors` is a sequence of them;
    the rest are attributes. linear, multilinear: the kind of map, from which the forward-mode rule
    follows. view: the result looks at the input's storage. kernel, maker: the compiled forward, and
    what makes the function that is called, for operations too hot for a Python frame; the decorated
    function is then only the signature and the docstring. Declared outside the library, the forward
    function may be made of any operations and of NumPy: it runs outside the graph.

    `@NAME.vjp("x")` adds the gradient of argument x; the parameters of the rule name what it needs
    and so what is kept. `@NAME.jvp` adds the forward-mode rule, from the tangents `d_x` (zeros
    where an argument has none) and whatever a gradient rule may name.
    """
    def decorate(forward):
        called = name or forward.__name__
        if kernel is None and not forward.__module__.startswith("tensorlib."):
            run = outside_graph(called, forward)
        else:
            run = kernel or forward
        record = _record(
            called, forward, run, linear, multilinear, view, differentiable, outputs,
            {"reference": reference, "samples": samples, **testing})
        made = publish(called, maker(record), forward.__doc__, method, public)
        if maker is make_sized:
            made.__signature__ = _signature(record.arguments, variadic=record.attributes[0])
        elif maker is make_general:
            made.__wrapped__ = forward          # where `inspect.signature` looks
        elif not record.attributes:
            made.__signature__ = _signature(record.arguments, "out")
        made.op = record
        record.function = made

        def vjp(argument=None):
            def add(rule):
                record.add_rule(None if callable(argument) else argument, rule)
                return rule
            return add(argument) if callable(argument) else add

        def jvp(rule):
            record.add_tangent(rule)
            return rule

        made.vjp, made.jvp = vjp, jvp
        return made
    return decorate


def _defaults(function):
    """The defaults of a function's parameters, by name."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    defaults = dict(zip(reversed(positional), reversed(function.__defaults__ or ())))
    return {**defaults, **(function.__kwdefaults__ or {})}


def _record(name, forward, run, linear, multilinear, view, differentiable, outputs, testing):
    """The Op of a forward function, whose annotations say which parameters are tensors."""
    annotations = forward.__annotations__
    parameters = _parameters(forward)
    arguments = [p for p in parameters if annotations.get(p) in (Tensor, Tensors)]
    attributes = parameters[len(arguments):]
    defaults = _defaults(forward)
    return Op(
        name, forward.__doc__, arguments, attributes, [defaults.get(a) for a in attributes],
        outputs,
        forward=run, variadic=Tensors in annotations.values(), is_view=view,
        differentiable=differentiable,
        linearity="linear" if linear else "multilinear" if multilinear else "", testing=testing)


def composite(*, reference=None, samples=None, differentiable=True, method=True, public=True,
              outputs=("out",), **testing):
    """Declares a function made of operations; its gradient is theirs.

    Parameters without a default are its tensors, or one annotated `Tensors` a sequence of them; the
    rest are attributes.
    """
    def decorate(function):
        name = function.__name__
        defaults = _defaults(function)
        arguments = [p for p in _parameters(function) if p not in defaults]
        attributes = [p for p in _parameters(function) if p in defaults]
        record = Op(
            name, function.__doc__, arguments, attributes, [defaults[a] for a in attributes],
            outputs, forward=function, variadic=Tensors in function.__annotations__.values(),
            differentiable=differentiable, linearity="composite",
            testing={"reference": reference, "samples": samples, **testing})
        publish(name, function, function.__doc__, method, public)
        function.op = record
        record.function = function
        return function
    return decorate


__all__ = ["FUNCTIONS", "Tensors", "alias", "check_tensors", "composite", "elementwise", "find",
           "in_place", "op", "publish"]
