"""Operations with arbitrary functions as forward and gradient rules, as in HIPS/autograd."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tensorlib._core.apply.operators import make_general
from tensorlib._core.base.error_names import type_name
from tensorlib._core.graph.op import Op, find
from tensorlib._core.sweep.rules import WrongGradient
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.complete import own_name
from tensorlib.ops.pending import put_operation
from tensorlib.ops.foreign import outside_graph

Rule = Callable[..., Any]
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def signature_of(what, name, fun):
    """Names of the tensors `fun` takes, of its attributes, the attributes' defaults, and whether it
    takes any number of tensors, `*args`.

    Parameters without a default are tensors; those with one, or by keyword only, are attributes.
    Raises: ValueError for a function that takes no tensor, or has parameters of another kind.
    """
    parameters = inspect.signature(fun).parameters.values()
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    arguments = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL
                 or p.kind in _POSITIONAL and p.default is p.empty]
    rest = [p for p in parameters if p.name not in arguments]
    if not arguments:
        raise ValueError(f"{what}: {name} takes no tensor: it has no parameter without a default")
    if variadic and any(p.kind in _POSITIONAL for p in parameters):
        raise ValueError(f"{what}: {name} takes any number of tensors, *{arguments[-1]}; beside "
                         "them it can have parameters by keyword only")
    for p in rest:
        if p.kind is p.VAR_KEYWORD:
            raise ValueError(
                f"{what}: {name} has the parameter {p}; parameters without a default are its "
                "tensors, those with one its attributes, and there are no others")
    defaults = [None if p.default is p.empty else p.default for p in rest]
    return arguments, [p.name for p in rest], defaults, variadic


def starred(function):
    """`function` of a sequence of tensors, which then also takes them as separate arguments."""
    def called(*tensors, **attributes):
        if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
            tensors = tensors[0]
        return function(tuple(tensors), **attributes)
    return called


def primitive(fun: Rule) -> Rule:
    """`fun` as an operation of its own, whose gradient `defvjp` gives.

    It runs outside the graph, on Tensors for its parameters without a default, or for `*args`;
    parameters with a default or by keyword only are attributes. It may compute with NumPy.

    Its name has the module as a prefix; a new definition replaces an earlier one, which nodes that
    were recorded before keep. Raises: ValueError for a name that the library has.

    >>> from tensorlib import ops
    >>> @ops.primitive
    ... def logsumexp_of(x):
    ...     return np.logaddexp.reduce(x.numpy())
    >>> ops.defvjp(logsumexp_of, lambda g, ans, x: g * (x - ans).exp())
    >>> x = tensorlib.tensor([0., 0.], requires_grad=True)
    >>> logsumexp_of(x).backward()
    >>> x.grad
    tensor([0.5000, 0.5000])
    """
    name = getattr(fun, "__name__", None)
    if name is None or not callable(fun):
        raise TypeError(f"primitive: fun must be a function with a name, not {type(fun).__name__}")
    arguments, attributes, defaults, variadic = signature_of("primitive", name, fun)
    if taken := {"g", "out", "node"} & {*arguments, *attributes}:
        raise ValueError(f"primitive: {name} has a parameter {taken.pop()!r}, which rules use "
                         "themselves; call it something else")
    registered = own_name(name, fun)
    run = outside_graph(registered, (lambda xs, **given: fun(*xs, **given)) if variadic else fun)
    record = Op(registered, fun.__doc__ or "", arguments, attributes, defaults,
                forward=run, variadic=variadic, takes_complex=True, testing={"takes": "floating"},
                family=fun.__module__ or "")
    put_operation(record)
    called = make_general(record)
    made = functools.wraps(fun)(Primitive(starred(called) if variadic else called))
    made.op = record
    record.function = made
    return made


def defvjp(
    op: Rule | Op | str, *vjps: Rule | None, argnums: Sequence[int] | None = None
) -> None:
    """Gives the gradient rules of a `primitive`, one for each argument or for those in `argnums`.

    A rule takes `(g, ans, *args)`: the gradient of the result, the result, the arguments and then
    the attributes, as far as it has parameters. It returns the gradient of its argument. Its
    arguments are saved until it has run, except for parameters whose name begins with `_`: these
    get None. None instead of a rule is a gradient of zero. A rule composed of operations can itself
    be differentiated. A primitive of `*args` has one rule, which returns a tuple of all gradients.

    Raises: ValueError for more rules than arguments, and for an operation with rules of its own.
    """
    record = primitive_record("defvjp", op)
    for name, vjp in named_rules("defvjp", record, vjps, argnums):
        if record.variadic:
            add_rule_for_all(record, vjp)
        elif vjp is None:
            record.add_rule(name, no_gradient, constant=0, names=("g",))
        else:
            record.add_rule(name, *by_names(record, vjp))


def defjvp(
    op: Rule | Op | str, *jvps: Rule | None, argnums: Sequence[int] | None = None
) -> None:
    """Gives the forward-mode rules of a `primitive`, one for each argument or for `argnums`.

    A rule takes `(g, ans, *args, **attributes)`, with the tangent of its argument as `g`, and
    returns its contribution to the tangent of the result. None instead of a rule is a zero tangent.

    Raises: ValueError as `defvjp`.
    """
    record = primitive_record("defjvp", op)
    if record.variadic:
        raise ValueError(f"defjvp: {record.name} takes any number of tensors; forward-mode rules "
                         "are for a fixed number")
    before = record.tangent_rule.function.rules if record.tangent_rule else {}
    rules = {**before, **dict(named_rules("defjvp", record, jvps, argnums))}
    tangents = [f"d_{name}" for name in record.arguments]
    record.add_tangent(TangentRule(record, rules), (
        *tangents, record.outputs[0], *record.arguments, *record.attributes))


def defvmap(op: Rule | Op | str, rule: Rule) -> None:
    """Gives the batching rule of a `primitive`: what it does for all examples of a `vmap` at once.

    The rule takes `(info, in_dims, *args, **attributes)` as PyTorch's `register_vmap` has it:
    `info.batch_size`, for each tensor the dim that counts the examples, or None for one that all
    share, the tensors and the attributes. It returns the result and the dim there.

    >>> from tensorlib import ops
    >>> @ops.primitive
    ... def doubled(x):
    ...     return x.numpy() * 2
    >>> ops.defvmap(doubled, lambda info, in_dims, x: (doubled(x), in_dims[0]))
    >>> tensorlib.func.vmap(doubled)(tensorlib.tensor([1., 2.]))
    tensor([2., 4.])
    """
    record = primitive_record("defvmap", op)
    if not callable(rule):
        raise TypeError(f"defvmap: the rule of {record.name} is {type(rule).__name__}, not a "
                        "function")
    record.function.batching = rule


class NoForwardRule(RuntimeError):
    """Forward mode reached an operation without a rule for it."""


class Primitive(functools.partial):
    """The compiled function of the operation `op`, which `primitive` returns."""

    def __repr__(self):
        parameters = ", ".join((*self.op.arguments, *self.op.attributes))
        return f"<primitive {self.op.name}({parameters})>"


class TangentRule:
    """The forward-mode rule of a primitive: the sum of the rules of its arguments."""

    def __init__(self, record, rules):
        self.record = record
        self.rules = rules

    def __call__(self, *values):
        n = len(self.record.arguments)
        tangents, ans, args = values[:n], values[n], values[n + 1:2 * n + 1]
        attributes = dict(zip(self.record.attributes, values[2 * n + 1:]))
        total = ans.detach() * 0
        for name, tangent in zip(self.record.arguments, tangents):
            if name not in self.rules and bool((tangent != 0).any()):
                raise NoForwardRule(f"jvp: {self.record.name} has no forward-mode rule for its "
                                    f"argument {name!r}; give it one by ops.defjvp")
            if self.rules.get(name) is not None:
                total = total + self.moved(name, tangent, ans, args, attributes)
        return total

    def moved(self, name, tangent, ans, args, attributes):
        """The result of the rule of one argument, which must have the shape and dtype of `ans`."""
        whose = f"the forward-mode rule of {self.record.name} for its argument {name!r}"
        try:
            moved = self.rules[name](tangent, ans, *args, **attributes)
        except Exception as error:
            error.add_note(f"jvp: raised in {whose}")
            raise
        if not isinstance(moved, Tensor):
            raise WrongGradient(f"jvp: {whose} returned {type_name(moved)}, not a Tensor")
        if moved.shape != ans.shape:
            raise WrongGradient(f"jvp: {whose} returned shape {tuple(moved.shape)}; the result has "
                                f"shape {tuple(ans.shape)}")
        return moved.to(ans.dtype)


def add_rule_for_all(record, vjp):
    """Registers the one rule of a primitive of `*args`."""
    if vjp is None:
        raise ValueError(f"defvjp: {record.name} takes any number of tensors and needs a rule that "
                         "gives the gradients of all")

    def rule(g, ans, tensors, *attributes):
        return vjp(g, ans, *tensors, **dict(zip(record.attributes, attributes)))
    record.add_rule(None, rule, names=(
        "g", record.outputs[0], record.arguments[0], *record.attributes))


def no_gradient(g):
    """Zero, the derivative."""
    return 0


def primitive_record(what, op):
    """The record of an operation that `primitive` made."""
    record = find(op) if isinstance(op, str) else getattr(op, "op", op)
    if not isinstance(record, Op):
        raise TypeError(f"{what}: op must be what primitive made, not {type(op).__name__}")
    if not isinstance(record.function, Primitive):
        raise ValueError(f"{what}: {record.name} is not a primitive and has rules of its own")
    return record


def named_rules(what, record, rules, argnums):
    """Pairs of an argument's name and its rule."""
    places = range(len(rules)) if argnums is None else tuple(argnums)
    if len(places) != len(rules):
        raise ValueError(f"{what}: {record.name} got {len(rules)} rules for {len(places)} argnums")
    for place, rule in zip(places, rules):
        if not 0 <= place < len(record.arguments):
            raise ValueError(f"{what}: {record.name} takes {', '.join(record.arguments)}; there is "
                             f"no argument {place}")
        if rule is not None and not callable(rule):
            raise TypeError(f"{what}: the rule of {record.name} for its argument "
                            f"{record.arguments[place]!r} is {type(rule).__name__}, not a function")
        yield record.arguments[place], rule


def by_names(record, vjp):
    """A rule that is called by position, and the names of its arguments."""
    parameters = list(inspect.signature(vjp).parameters.values())
    available = ["g", record.outputs[0], *record.arguments, *record.attributes]
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        available = available[:sum(p.kind in _POSITIONAL for p in parameters)]
    kept = [i for i, name in enumerate(available)
            if i >= len(parameters) or not parameters[i].name.startswith("_")]
    if len(kept) == len(available):
        return vjp, None, None, False, tuple(available)

    def rule(*values):
        given = [None] * len(available)
        for i, value in zip(kept, values):
            given[i] = value
        return vjp(*given)
    return rule, None, None, False, tuple(available[i] for i in kept)
