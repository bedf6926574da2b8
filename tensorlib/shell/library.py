"""Operations of your own under PyTorch's names: `custom_op`, and what is registered with one.

Each is an `autograd.Function` here; `tensorlib.ops.primitive` is a shorter way to the same. A
captured function calls such an operation itself, between the parts that are replayed.

>>> from tensorlib import Tensor, library
>>> @library.custom_op("doc::sine", mutates_args=())
... def sine(x: Tensor) -> Tensor:
...     return tensorlib.from_numpy(np.sin(x.numpy()))
>>> def keep(ctx, inputs, output):
...     ctx.save_for_backward(*inputs)
>>> sine.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=keep)
>>> x = tensorlib.zeros(2, requires_grad=True)
>>> tensorlib.ops.doc.sine(x).sum().backward()
>>> x.grad
tensor([1., 1.])
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

import tensorlib as tl
from tensorlib import Tensor, ops
from tensorlib._core.base.explained import explain
from tensorlib._core.interpreters.stack import tell
from tensorlib.autograd import Function
from tensorlib.utils import _pytree

from .compiler import is_compiling, refuse

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "impl", "opcheck", "register_autograd",
           "register_fake", "register_kernel", "register_vmap", "triton_op", "wrap_triton"]

Rule = Callable[..., Any]

_defined: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """What `custom_op` makes of a function: the operation, which is called as the function is.

    It has the methods `register_fake`, `register_autograd`, `register_kernel` and `register_vmap`,
    which do what the functions of these names do.
    """

    def __init__(self, name: str, fn: Rule, mutates_args: str | Iterable[str]) -> None:
        self._name, self._kernel = name, fn
        self._signature = inspect.signature(fn)
        self._mutated = checked_mutations(name, self._signature, mutates_args)
        self._fake: Rule | None = None
        self._backward: Rule | None = None
        self._setup: Rule | None = None
        self._vmap: Rule | None = None
        self._whole: Rule | None = None            # does it all, its gradient is that of its parts
        self.__name__, self.__doc__ = name.rpartition("::")[2], fn.__doc__
        self._function = function_of(self)

    @property
    def default(self) -> CustomOpDef:
        """The operation itself, which PyTorch has for each kind of argument."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = tuple(bound.arguments.values())
        if self._whole is not None:
            return self._called(self._whole, values)
        tell("effect", "definition", self)
        if self._mutated and is_compiling():
            refuse(f"{self._name} writes to its arguments, which is not captured")
        if any(x.is_meta for x in tensors_in(values)):
            return self._run_fake(values)
        if not self._mutated:
            return self._function.apply(*values)
        for name in self._mutated:
            if tl.is_grad_enabled() and any(
                    x.requires_grad for x in tensors_in(bound.arguments[name])):
                raise RuntimeError(f"{self._name}: {name} requires a gradient and is written to, "
                                   "which is not recorded; call it under no_grad()")
        with tl.no_grad():
            return self._run(values)

    def _run(self, values: Sequence[Any]) -> Any:
        """The kernel on these values of its parameters, tensors outside the graph."""
        detached = _pytree.tree_map(
            lambda x: x.detach() if isinstance(x, Tensor) and x.requires_grad else x, list(values))
        return self._called(self._kernel, detached)

    def _run_fake(self, values: Sequence[Any]) -> Any:
        if self._fake is None:
            raise RuntimeError(f"{self._name}: there is no way to find the result's shape without "
                               "elements; give one by register_fake")
        return self._called(self._fake, values)

    def _called(self, function: Rule, values: Sequence[Any]) -> Any:
        """A function on values of the parameters, those by keyword only under their names."""
        kinds = [p.kind is p.KEYWORD_ONLY for p in self._signature.parameters.values()]
        names = list(self._signature.parameters)
        return function(*(x for x, named in zip(values, kinds, strict=True) if not named), **{
            name: x for name, x, named in zip(names, values, kinds, strict=True) if named})

    def register_fake(self, fn: Rule) -> Rule:
        """Has `fn`, of the same arguments, give results on `meta`: sizes and dtypes alone."""
        self._fake = fn
        return fn

    def register_autograd(self, backward: Rule, /, *, setup_context: Rule | None = None) -> None:
        """Gives the gradient: `backward(ctx, *grads)` returns one for each argument, or None.

        setup_context: `(ctx, inputs, output)`, which keeps on `ctx` what `backward` needs.
        Raises: RuntimeError for an operation that writes to its arguments.
        """
        if self._mutated:
            raise RuntimeError(f"register_autograd: {self._name} writes to {self._mutated[0]}; an "
                               "operation with a gradient writes to no argument")
        self._backward, self._setup = backward, setup_context

    def register_kernel(self, device_types: Any, fn: Rule | None = None, /) -> Any:
        """Has `fn` compute on these devices; for others than "cpu" it is taken and never called.

        Without `fn` this is a decorator.
        """
        def register(function: Rule) -> Rule:
            devices = [device_types] if isinstance(device_types, str) else device_types
            if devices is None or "cpu" in devices:
                self._kernel = function
            return function
        return register if fn is None else register(fn)

    def register_vmap(self, fn: Rule | None = None, /) -> Any:
        """Gives the rule for `vmap`: `(info, in_dims, *args)` to the result and its dim.

        Without `fn` this is a decorator.
        """
        def register(function: Rule) -> Rule:
            self._vmap = function
            self._function = function_of(self)
            return function
        return register if fn is None else register(fn)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


def checked_mutations(name: str, signature: inspect.Signature,
                      mutates_args: str | Iterable[str]) -> list[str]:
    """The names of the arguments that are written to. Raises: ValueError for what are none."""
    known = list(signature.parameters)
    if mutates_args == "unknown":
        return known
    if isinstance(mutates_args, str):
        raise ValueError(f"custom_op: mutates_args of {name} must be names of its arguments or "
                         f"'unknown', got {mutates_args!r}")
    found = list(mutates_args)
    if strange := [each for each in found if each not in known]:
        raise ValueError(f"custom_op: {name} has no argument {strange[0]!r}, which mutates_args "
                         "names")
    return found


def function_of(op: CustomOpDef) -> type[Function]:
    """The `autograd.Function` that runs an operation, and its gradient as it is at that time."""
    def forward(*inputs: Any) -> Any:
        return op._run(inputs)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        if op._setup is not None:
            op._setup(ctx=ctx, inputs=inputs, output=output)

    def backward(ctx: Any, *grads: Any) -> Any:
        if op._backward is None:
            raise RuntimeError(f"backward: {op._name} has no gradient; give it one by "
                               "register_autograd")
        return op._backward(ctx, *grads)

    parts = {"forward": forward, "setup_context": setup_context, "backward": backward}
    if op._vmap is not None:
        parts["vmap"] = op._vmap
    return type(op.__name__, (Function,), {               # it runs code of the user's, as theirs
        "__module__": getattr(op._kernel, "__module__", None), **{
            name: staticmethod(part) for name, part in parts.items()}})


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors among values and in lists of them."""
    return [x for x in _pytree.tree_leaves(value) if isinstance(x, Tensor)]


def custom_op(name: str, fn: Rule | None = None, /, *, mutates_args: str | Iterable[str],
              device_types: Any = None, schema: str | None = None) -> Any:
    """`fn` as an operation of its own: what it does with tensors is not recorded.

    Args:
        name: "namespace::name"; the operation is `tensorlib.ops.namespace.name`, too.
        fn: a function of tensors, numbers and lists of them; without it this is a decorator.
        mutates_args: names of the arguments that it writes to, or "unknown".
        device_types: where it computes, as in `register_kernel`.
        schema: changes nothing; the parameters of `fn` are those of the operation.
    Raises: ValueError for a name without a namespace, for the namespace of a part of the library,
    and for names in `mutates_args` that are not arguments.
    """
    def define(function: Rule) -> CustomOpDef:
        namespace, separator, last = name.partition("::")
        if not (separator and namespace.isidentifier() and last.isidentifier()):
            raise ValueError(f"custom_op: expected a name like 'namespace::name', got {name!r}")
        home = vars(ops).get(namespace)
        if home is not None and not isinstance(home, SimpleNamespace):
            raise ValueError(f"custom_op: {namespace!r} is a name of tensorlib.ops; call the "
                             "namespace something else")
        made = CustomOpDef(name, function, mutates_args)
        if device_types is not None and "cpu" not in (
                [device_types] if isinstance(device_types, str) else device_types):
            made._kernel = unavailable(name, device_types)
        if home is None:
            home = SimpleNamespace()
            setattr(ops, namespace, home)
        setattr(home, last, made)
        _defined[name] = made
        return made
    return define if fn is None else define(fn)


def triton_op(name: str, fn: Rule | None = None, /, *, mutates_args: str | Iterable[str],
              schema: str | None = None) -> Any:
    """`custom_op` of a function that may call kernels of Triton's, of which none can run here."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any) -> NoReturn:
    """Raises NotImplementedError: kernels of Triton's are for GPUs."""
    raise NotImplementedError("wrap_triton: kernels of Triton's are for GPUs, and tensors are on "
                              "the CPU")


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Makes an operation of a name, "namespace::name", and of parameters as PyTorch writes them.

    schema: as "(Tensor x, int n=1, *, Tensor? weight=None) -> Tensor". Tensor(a!) is written to.
    lib, tags: change nothing. What computes it is given by `impl`. Raises: ValueError.

    >>> from tensorlib import library
    >>> library.define("doc::twice", "(Tensor x) -> Tensor")
    >>> library.impl("doc::twice", "cpu", lambda x: x * 2)
    >>> tensorlib.ops.doc.twice(tensorlib.ones(2))
    tensor([2., 2.])
    """
    written = re.fullmatch(r"\s*\((.*)\)\s*->.*", schema, re.DOTALL)
    if written is None:
        raise ValueError(f"define: expected a schema as '(Tensor x) -> Tensor', got {schema!r}")
    kind, parameters, mutated = inspect.Parameter.POSITIONAL_OR_KEYWORD, [], []
    for text in re.split(r",(?![^\[(]*[\])])", written[1]):
        head, _, default = map(str.strip, text.partition("="))
        if head == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif head:
            name = head.split()[-1]
            if not name.isidentifier():
                raise ValueError(f"define: {qualname} has a parameter without a name: {head!r}")
            mutated += [name] * ("!" in head)
            parameters.append(inspect.Parameter(
                name, kind, default=ast.literal_eval(default) if default else inspect._empty))
    kernel = unavailable(qualname, ())
    kernel.__signature__ = inspect.Signature(parameters)      # type: ignore[attr-defined]
    custom_op(qualname, kernel, mutates_args=mutated)


def impl(qualname: Any, types: Any = "", func: Any = None, *, lib: Any = None) -> Any:
    """Has a function compute what `define` made, on devices or for one of PyTorch's dispatch keys.

    "Meta" is for sizes alone, as `register_fake`; a key with "Autograd" for all that is done, whose
    gradient is that of its parts. In the older form, `impl(lib, name, key)`, the operation is one
    of a `Library`. Without `func` this is a decorator. Raises: ValueError, TypeError.

    >>> from tensorlib import library
    >>> library.define("doc::half", "(Tensor x) -> Tensor")
    >>> @library.impl("doc::half", "cpu")
    ... def half(x):
    ...     return x / 2
    >>> tensorlib.ops.doc.half(tensorlib.ones(2))
    tensor([0.5000, 0.5000])
    """
    if isinstance(qualname, Library):
        qualname, types, func = qualname.named(types), func or qualname.dispatch_key, None
    op = found("impl", qualname)

    def register(function: Rule) -> Rule:
        for key in [types] if isinstance(types, str) else types:
            if key == "Meta":
                op._fake = function
            elif key == "CompositeExplicitAutograd" or key.lower() in ("cpu", "default"):
                op._kernel = function
            elif not key or "Autograd" in key:
                op._whole = function
        return function
    return register if func is None else register(func) and None


class Library:
    """A namespace in which operations are defined, and given what computes them, one by one.

    kind: "DEF", "FRAGMENT" or "IMPL". dispatch_key: what `impl` takes where it is given none.
    Raises: ValueError for another kind.

    >>> from tensorlib import library
    >>> lib = library.Library("doc", "FRAGMENT")
    >>> lib.define("thrice(Tensor x) -> Tensor")
    'thrice'
    >>> lib.impl("thrice", lambda x: x * 3, "CPU")
    >>> tensorlib.ops.doc.thrice(tensorlib.ones(2))
    tensor([3., 3.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def named(self, name: str) -> str:
        """The whole name of an operation, whose overloads are one."""
        return f"{self.ns}::{name.rpartition('::')[2].partition('.')[0]}"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Makes the operation of a schema that begins with its name; gives the name.

        Raises: ValueError.
        """
        name, bracket, rest = schema.strip().partition("(")
        define(self.named(name), bracket + rest)
        return name.strip()

    def impl(self, op_name: str, fn: Rule, dispatch_key: str = "", **options: Any) -> None:
        """Has a function compute an operation, as `library.impl` does. Raises: ValueError."""
        impl(self.named(op_name), dispatch_key or self.dispatch_key, fn)


def unavailable(name: str, device_types: Any) -> Rule:
    """The kernel of an operation that has none for the CPU."""
    def refuse(*args: Any, **kwargs: Any) -> None:
        where = f"computes on {device_types!r} alone" if device_types else "has no kernel"
        raise NotImplementedError(f"{name}: {where}; give it a kernel for 'cpu' by register_kernel")
    return refuse


def found(what: str, op: str | CustomOpDef) -> CustomOpDef:
    """The operation of a name. Raises: ValueError, TypeError."""
    if isinstance(op, CustomOpDef):
        return op
    if not isinstance(op, str):
        raise TypeError(f"{what}: op must be the name of an operation or what custom_op made, got "
                        f"{type(op).__name__}")
    if op not in _defined:
        raise ValueError(f"{what}: no operation {op!r} was made by custom_op or define")
    return _defined[op]


def register_fake(op: str | CustomOpDef, func: Rule | None = None, /, *, lib: Any = None,
                  allow_override: bool = False) -> Any:
    """Has a function, of the operation's arguments, give its results on `meta`.

    lib, allow_override: change nothing. Without `func` this is a decorator.
    Raises: ValueError for an unknown name, TypeError.
    """
    register = found("register_fake", op).register_fake
    return register if func is None else register(func)


def register_autograd(op: str | CustomOpDef, backward: Rule, /, *,
                      setup_context: Rule | None = None, lib: Any = None) -> None:
    """Gives an operation its gradient, as `CustomOpDef.register_autograd` does.

    lib: changes nothing. Raises: ValueError for an unknown name, TypeError.
    """
    found("register_autograd", op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: str | CustomOpDef, device_types: Any, func: Rule | None = None, /, *,
                    lib: Any = None) -> Any:
    """Has a function compute an operation on these devices; without `func`, a decorator.

    lib: changes nothing. Raises: ValueError for an unknown name, TypeError.
    """
    return found("register_kernel", op).register_kernel(device_types, func)


def register_vmap(op: str | CustomOpDef, func: Rule | None = None, /, *, lib: Any = None) -> Any:
    """Gives an operation its rule for `vmap`; without `func`, a decorator.

    lib: changes nothing. Raises: ValueError for an unknown name, TypeError.
    """
    return found("register_vmap", op).register_vmap(func)


def opcheck(op: CustomOpDef, args: Sequence[Any], kwargs: dict[str, Any] | None = None, *,
            test_utils: Sequence[str] = ("test_schema", "test_autograd_registration",
                                         "test_faketensor"),
            raise_exception: bool = True) -> dict[str, Any]:
    """What checks of an operation on these arguments give: "SUCCESS", or the error.

    "test_schema" asks whether it writes to arguments that `mutates_args` does not name,
    "test_autograd_registration" whether it has a gradient if an argument wants one, and
    "test_faketensor" whether `register_fake` gives the sizes and dtypes of the results.
    Raises: AssertionError for the first check that fails, unless `raise_exception` is False;
    ValueError for a check that is not here.
    """
    op, kwargs = found("opcheck", op), kwargs or {}
    report: dict[str, Any] = {}
    for name in [test_utils] if isinstance(test_utils, str) else test_utils:
        check = CHECKS.get(name)
        if check is None:
            raise ValueError(f"opcheck: {name!r} is none of {', '.join(CHECKS)}")
        try:
            check(op, args, kwargs)
            report[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise AssertionError(f"opcheck: {name} of {op._name}: {error}") from error
            report[name] = error
    return report


def check_writes(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    """Raises RuntimeError if an operation writes to an argument that it does not name."""
    bound = op._signature.bind(*args, **kwargs)
    bound.apply_defaults()
    given = {name: tensors_in(value) for name, value in bound.arguments.items()}
    before = {name: [x.detach().clone() for x in xs] for name, xs in given.items()}
    op(*args, **kwargs)
    for name, xs in given.items():
        if name not in op._mutated and not all(
                tl.allclose(x.detach(), old, rtol=0, atol=0, equal_nan=True)
                for x, old in zip(xs, before[name], strict=True)):
            raise RuntimeError(f"{name} was written to, which mutates_args does not name")


def check_gradient(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    """Raises RuntimeError if an argument wants a gradient and the operation has none."""
    if op._backward is None and any(x.requires_grad for x in tensors_in((args, kwargs))):
        raise RuntimeError("an argument requires a gradient, and register_autograd gave none")


def check_fake(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    """Raises RuntimeError if what has no elements looks other than what the kernel gives."""
    def bare(x: Any) -> Any:
        return x.detach().to("meta") if isinstance(x, Tensor) else x
    fake = tensors_in(op(*_pytree.tree_map(bare, list(args)), **_pytree.tree_map(bare, kwargs)))
    real = tensors_in(op(*args, **kwargs))
    looks = [[(tuple(x.shape), x.dtype) for x in xs] for xs in (fake, real)]
    if looks[0] != looks[1]:
        raise RuntimeError(f"register_fake gives {looks[0]}, the kernel {looks[1]}")


CHECKS: dict[str, Rule] = {
    "test_schema": check_writes, "test_autograd_registration": check_gradient,
    "test_faketensor": check_fake}

explain(vars(), __all__)
