"""Publishes functions and methods: their names, forms (in place, `out=`) and checks."""

from functools import cache, wraps
from inspect import CO_VARARGS, Parameter, Signature
from types import FunctionType

from tensorlib._core.apply.converted import make_checked
from tensorlib._core.base.call_wrappers import name_errors
from tensorlib._core.create.overwrite import make_in_place
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib._core.base.explained import explained
from tensorlib.ops.pending import FUNCTIONS, method_named, put_function, put_method

OUT = Parameter("out", Parameter.KEYWORD_ONLY, default=None)


def publish(name, function, doc, method=True, public=True):
    """Makes `function` the public function, and by default the method, of this name."""
    if (getattr(function, "__module__", None) or "").startswith("tensorlib._core"):
        name_errors(function, True)
    function.__name__ = function.__qualname__ = name
    function.__module__ = "tensorlib"
    function.__doc__ = doc
    if doc and not doc.startswith("In-place form of"):      # whose docstring has the description
        function.__doc__ = explained(doc, name, [p.name for p in signature_parameters(function)])
    if public:
        put_function(name, function)
    if method:
        put_method(name, function)
    return function


def is_public_operation(value):
    """Whether a value is the public function of an operation."""
    return FUNCTIONS.get(getattr(value, "__name__", None)) is value


def alias(name, function, method=True):
    """Publishes an operation under a second name of PyTorch's."""
    put_function(name, function)
    if method:
        put_method(name, function)
        inplace = method_named(function.__name__ + "_")
        if inplace is not None:
            put_method(name + "_", inplace)


def publish_in_place(name, function, kept=False, write=None):
    """Publishes the method `NAME_` of a function that is not element-wise.

    It writes the result of the function over its first tensor, or `write` does all of it. kept: the
    gradient needs the old elements, so the function runs on a copy.
    """
    method = make_in_place(name + "_", function, kept, write)
    function.inplace = method
    method.__signature__ = Signature(
        [p for p in signature_parameters(function) if p.name != "out"],
        __validate_parameters__=False)
    return publish(name + "_", method, f"In-place form of `{name}`.", public=False)


# ---- signatures and parameters -------------------------------------------------------------------

@cache
def names_signature(arguments, *by_keyword, variadic=None):
    """The signature of a compiled function, which lacks its own; equal ones are shared."""
    found = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in arguments]
    if variadic:
        found.append(Parameter(variadic, Parameter.VAR_POSITIONAL))
    found += [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in by_keyword]
    return Signature(found)


def with_out(function):
    """The signature of a function in Python to which `out=` was added."""
    return Signature([*signature_parameters(function), OUT], __validate_parameters__=False,
                     return_annotation=function.__annotations__.get("return", Parameter.empty))


def signature_parameters(function):
    """The parameters of `inspect.signature`, which takes 50 us: too long for each of many."""
    while not hasattr(function, "__signature__") and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if hasattr(function, "__signature__"):
        return list(function.__signature__.parameters.values())
    code, given, annotations = function.__code__, defaults(function), function.__annotations__
    kinds = [Parameter.POSITIONAL_OR_KEYWORD] * code.co_argcount
    if code.co_flags & CO_VARARGS:
        kinds.append(Parameter.VAR_POSITIONAL)
    kinds += [Parameter.KEYWORD_ONLY] * code.co_kwonlyargcount
    return [Parameter(name, kind, default=given.get(name, Parameter.empty),
                      annotation=annotations.get(name, Parameter.empty))
            for name, kind in zip(all_parameters(function), kinds, strict=True)]


def parameters(function):
    """The names of a function's parameters."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[:count]


def all_parameters(function):
    """The names of a function's parameters, including that of `*args`."""
    code, names = function.__code__, list(parameters(function))
    if code.co_flags & CO_VARARGS:
        names.insert(code.co_argcount, code.co_varnames[len(names)])
    return names


def defaults(function):
    """The defaults of a function's parameters, by name."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    found = dict(zip(reversed(positional), reversed(function.__defaults__ or ())))
    return {**found, **(function.__kwdefaults__ or {})}


def under_name(function, name):
    """A copy of a function in Python under a name of its own, which Python's errors show.

    Both have the same attributes, also those that are given later.
    """
    copy = FunctionType(function.__code__, function.__globals__, name, function.__defaults__,
                        function.__closure__)
    copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, name
    copy.__dict__ = function.__dict__
    return copy


# ---- the check that tensors are Tensors ----------------------------------------------------------

def attach_checked(name, function):
    """Makes a function in Python the method of this name, behind the check of its `self`."""
    put_method(name, wraps(function)(make_checked(name, tensor_places(function), function)))


def check_tensors(functions=FUNCTIONS, methods=None):
    """Puts functions, methods and records in Python behind a check that tensors are Tensors.

    methods: a dict, by default what Tensors have. Compiled functions check for themselves.
    """
    made = {}                                    # aliases stay the same function
    put_checked = attach if methods is None else methods.__setitem__
    if methods is None:
        methods = dict(vars(Tensor))
    for names, put in ((functions, functions.__setitem__), (methods, put_checked)):
        for name, function in names.items():
            places = _unchecked_places(function)
            if not places:
                continue
            if function not in made:
                made[function] = wraps(function)(
                    make_checked(function.__name__, places, function))
            put(name, made[function])
            if getattr(getattr(function, "op", None), "function", None) is function:
                function.op.function = made[function]


def _unchecked_places(function):
    """The parameters of a public function to be checked; none if it `checks` itself."""
    if type(function) is not FunctionType or hasattr(function, "checks"):
        return {}
    return tensor_places(function)


def tensor_places(function, by_name=True):
    """Which parameters must be tensors, and their positions.

    They are recognised by their annotation, the first one without annotation also by its name.
    """
    annotations = function.__annotations__
    return {name: place for place, name in enumerate(parameters(function))
            if annotations.get(name) is Tensor or by_name and place == 0
            and name in ("input", "self", "tensor", "condition") and name not in annotations}
