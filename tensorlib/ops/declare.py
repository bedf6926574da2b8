"""Declaring operations: the decorators that make one visible block into a registered operation.

`@elementwise` is for operations that a loop does element by element, `@op` for all others,
`@composite` for functions made of operations, which need no rule of their own. From the declaration
follow the function, the method, its in-place and `out=` forms, the gradient and the tests.

Where PyTorch's function takes more arguments, or in more forms, than the operation, `convert` is a
function with the signature of the call. It returns the tuple of the operation's own arguments, or a
list `[function, *arguments]` where another operation handles the call. It leaves the operation's
own arguments unchanged, so that rules can call the function too, and a call with all arguments by
position gives just these, unless it has a parameter annotated `Tensor`. For speed it may have two
attributes: `alone`, a function for calls with one tensor and nothing else, and `at_once`, one that
handles most calls.
"""

from functools import partial, wraps
from inspect import CO_VARARGS
from types import FunctionType

from tensorlib._core.apply.converted import make_checked, make_converted
from tensorlib._core.apply.operators import OPTIONS, make_elementwise, make_general, make_sized
from tensorlib._core.base.call_wrappers import make_offered
from tensorlib._core.graph.op import Op, find
from tensorlib._core.tensor.tensor import Tensor
from tensorlib._core.tiles.loops import fill_from_ufuncs
from tensorlib.ops.complete import check_keywords, check_loop, check_names, is_ours, own_name
from tensorlib.ops.facts import facts_of
from tensorlib.ops.formulas import program_of, trace
from tensorlib.ops.foreign import outside_graph
from tensorlib.ops.pending import FUNCTIONS, put_operation
from tensorlib.ops.publish import (
    alias,
    all_parameters,
    check_tensors,
    defaults,
    names_signature,
    parameters,
    publish,
    publish_in_place,
    tensor_places,
    under_name,
    with_out,
)

MANY = 2**31 - 1                # more arguments than any call has


class Tensors:
    """The annotation of a parameter that is a sequence of tensors."""


# ---- element by element --------------------------------------------------------------------------

def elementwise(*, reference=None, samples=None, kernel=None, formula=None, ufuncs=(), edges=(),
                to_float=False, boolean=(), factors=(), refuses=None, no_bools=None,
                differentiable=True, public=True, method=True, inplace=True, convert=None,
                slopes={}, **declared):
    """Declares an operation that the loop `kernel` (by default of its name) runs on each element.

    Dtypes for which the kernels have no such loop get NumPy's, from `reference` where that is a
    ufunc, else from `ufuncs`. Or the operation is a `formula` of its tensors, whose loops run one
    after the other on each tile: `lambda input, other, value: input.add(other * value)` has two.

    to_float: integers are computed as the default float.
    complex: it takes complex numbers. A formula gives the derivative, of which gradients take the
    conjugate; of a function with real values, the number whose product with a change has the change
    of the value as its real part.
    boolean: arguments that are bool. no_bools: the errors for one argument that is bool, and for
    all. refuses: "zero" or "negative", integers that are an error in the last argument.
    factors: arguments of which a Python number is not rounded to the half type beside it.
    convert: translates the arguments of a call into those of the operation.
    slopes: derivatives that are the same number everywhere, by argument; `@NAME.deriv("x")` adds
    the formula of another.
    reference, samples, edges: the NumPy function that it must equal, inputs, and values to try it
    at; `tensorlib.testing.check_op` uses them.

    Raises: ValueError for a name that the library has, a loop that does not exist or takes others,
    and where `boolean` names no argument; TypeError for a keyword that no declaration has.
    """
    def decorate(function):
        name, arguments = function.__name__, parameters(function)
        facts, testing = facts_of(function, declared, True, refuses)
        check_keywords("elementwise", name, testing)
        registered = own_name(name, function, method)
        check_names("elementwise", name, arguments, ("out",), boolean)
        loop, program = kernel, None
        if formula is not None:
            loop, program = f"formula of {name}", program_of(formula)
        elif kernel is None:
            bools = "bool" in testing.get("takes", "bool")
            loop = name if is_ours(function) else loop_of((reference, *ufuncs), bools)
            fill_from_ufuncs(loop, len(arguments), (reference, *ufuncs), bools,
                             declared.get("complex", False))
        if formula is None:
            check_loop(name, loop, arguments)
        record = Op(
            registered, function.__doc__, arguments, loop=loop, program=program,
            to_float=to_float, refuses=refuses, no_bools=no_bools,
            boolean_inputs=tuple(arguments.index(a) for a in boolean), factors=factors,
            differentiable=differentiable, linearity="deriv" if differentiable else "",
            takes_out=True, convert=convert,
            testing={"reference": reference, "samples": samples, "edges": edges,
                     "refuses": refuses, **testing}, **facts)
        put_operation(record)
        made, inplace_made = make_elementwise(record), make_elementwise(record, True)
        if convert is None:
            made.__signature__ = names_signature(record.arguments, "out")
            inplace_made.__signature__ = names_signature(record.arguments)
        else:
            made = converted(name, made, convert, takes_out=True, binary=record)
            inplace_made = converted(name + "_", inplace_made, convert, in_place=True,
                                     binary=record)
        publish(name, made, function.__doc__, method, public and is_ours(function))
        made.inplace = publish(name + "_", inplace_made, f"In-place form of `{name}`.",
                               method and inplace, public=False)
        made.op = record
        record.function = made
        made.deriv = _deriv_of(record)
        for argument, slope in slopes.items():
            made.deriv(argument)(constant(slope))
        return made
    return decorate


KEPT_UFUNCS = []         # of loops that were declared outside of the library


def loop_of(ufuncs, bools):
    """The name of the loops made from these ufuncs, which are replaced if declared again."""
    KEPT_UFUNCS.extend(u for u in ufuncs if u not in KEPT_UFUNCS)
    return f"loops of {', '.join(f'{u} {id(u)}' for u in ufuncs)}{' with bools' if bools else ''}"


def option_of(record, convert):
    """The one option that a `convert` takes besides two tensors, or None."""
    names, code = parameters(convert), convert.__code__
    if (record is None or convert.__defaults__ or code.co_flags & CO_VARARGS
            or not record.arguments == ("input", "other") == names[:code.co_argcount]):
        return None
    return names[2] if len(names) == 3 and names[2] in OPTIONS else None


def converted(name, call, convert, takes_out=False, in_place=False, binary=None):
    """The function `call` of an operation with the arguments of `convert`.

    Its `canonical` is `call` itself. binary: the record of an operation on two tensors with one
    option; calls without the option skip `convert`.
    """
    code, given = convert.__code__, convert.__defaults__ or ()
    most = MANY if code.co_flags & CO_VARARGS else code.co_argcount
    places = tensor_places(convert, by_name=False)
    option = option_of(binary, convert)
    if option is not None and not places:
        made = make_elementwise(binary, in_place, option, under_name(convert, name))
    else:
        made = make_converted(name, places, under_name(convert, name), call,
                              code.co_argcount - len(given), most, in_place,
                              getattr(convert, "alone", None), getattr(convert, "at_once", None))
    made.__wrapped__ = convert              # where `inspect.signature` looks
    made.canonical = call
    if takes_out:
        made.__signature__ = with_out(convert)
    return made


def _deriv_of(record):
    """The decorator `NAME.deriv`, for one argument or (unary operations) without a name."""
    def deriv(argument=None, *, fused=None):
        def decorate(formula):
            which = record.arguments[0] if argument is None or callable(argument) else argument
            booleans = {record.arguments[i] for i in record.boolean_inputs}
            program, constant = trace(formula, booleans, fused)
            record.add_rule(which, formula, program, constant, conjugate=(
                lambda: trace(formula, booleans, conjugate=True)[0]))
            return formula
        return decorate(argument) if callable(argument) else decorate
    return deriv


def constant(number):
    """The formula of a derivative that is this number everywhere."""
    return lambda: number


# ---- all others ----------------------------------------------------------------------------------

def op(*, reference=None, samples=None, linear=False, multilinear=False, view=False,
       differentiable=True, outputs=("out",), public=True, method=True, name=None, kernel=None,
       maker=make_general, convert=None, out=False, inplace=False, **declared):
    """Declares an operation by its forward function on tensors outside the graph.

    Parameters annotated `Tensor` are its tensors and come first; `Tensors` is a sequence of them;
    the rest are attributes. Declared outside the library, the forward function may use any
    operations and NumPy: it runs outside the graph.

    linear, multilinear: the kind of map, from which the forward-mode rule follows.
    view: the result shares the memory of the input, or "maybe" does.
    out, inplace: it has `out=`, and a method `NAME_`; inplace may be the function that writes.
    kernel, maker: the compiled forward, and what makes the function that is called, for operations
    too hot for a Python frame; the decorated function is then only signature and docstring.
    complex: it takes complex numbers, which views do anyway; rules give the transpose of the
    derivative, and conjugates are taken around them.
    convert: translates the arguments of a call into those of the operation.

    `@NAME.vjp("x")` adds the gradient of argument x; the parameters of the rule name what it needs
    and so what is kept. `@NAME.jvp` adds the forward-mode rule, from the tangents `d_x` (zeros
    where an argument has none) and whatever a gradient rule may name. `@NAME.symmetric("x")` adds
    one rule as both, where the derivative is its own transpose and no other argument has one.

    Raises: ValueError for a name that the library has, a differentiable operation without tensors,
    tensors after attributes, and parameters with names that rules use themselves; TypeError for a
    keyword that no declaration has.
    """
    def decorate(forward):
        called = name or forward.__name__
        facts, testing = facts_of(forward, declared)
        facts.setdefault("takes_complex", bool(view))
        check_keywords("op", called, testing)
        annotations, names = forward.__annotations__, parameters(forward)
        arguments = [p for p in names if annotations.get(p) in (Tensor, Tensors)]
        attributes = [p for p in names if p not in arguments]
        registered = own_name(called, forward, method)
        check_names("op", called, names, outputs)
        check_tensor_places("op", called, names, arguments, differentiable)
        if linear and multilinear:
            raise ValueError(f"op: {called} is declared linear and multilinear; a map that is "
                             "linear in each of several arguments is multilinear alone")
        run = kernel or forward
        if kernel is None and not is_ours(forward):
            run = outside_graph(registered, forward)
        own = defaults(forward)
        record = Op(
            registered, forward.__doc__, arguments, attributes,
            [own.get(a) for a in attributes],
            outputs, forward=run, variadic=Tensors in annotations.values(),
            is_view=view is True, may_view=bool(view), differentiable=differentiable,
            takes_out=out, convert=convert,
            returns=annotations.get("return", Tensor),
            linearity="linear" if linear else "multilinear" if multilinear else "",
            testing={"reference": reference, "samples": samples, **testing}, **facts)
        put_operation(record)
        made = maker(record)
        if maker is make_sized:
            made.__signature__ = names_signature(record.arguments, variadic=attributes[0])
        elif maker is make_general:
            made.__wrapped__ = forward          # where `inspect.signature` looks
            if out:
                made.__signature__ = with_out(forward)
        elif out and not attributes:
            made.__signature__ = names_signature(record.arguments, "out")
        if convert is not None:
            made = converted(called, made, convert, takes_out=out)
        publish(called, made, forward.__doc__, method, public and is_ours(forward))
        made.op = record
        record.function = made
        _add_rules_to(made, record)
        if inplace:
            publish_in_place(called, made, write=in_place_writer(called, inplace))
        return made
    return decorate


def in_place_writer(name, inplace, between=None):
    """What the method `NAME_` runs if its declaration says so, or None."""
    return checked(name + "_", inplace, False, None, between) if callable(inplace) else None


def check_tensor_places(what, name, names, arguments, differentiable):
    """Raises ValueError if a declaration has no tensors to differentiate, or not in front."""
    if not arguments and differentiable:
        raise ValueError(f"{what}: {name} has no tensors: annotate those among its parameters "
                         f"({', '.join(names) or 'none'}) with Tensor, or a sequence with Tensors, "
                         "or declare differentiable=False")
    late = [p for i, p in enumerate(arguments) if names[i] != p]
    if late:
        raise ValueError(f"{what}: {name} takes its tensors first, but {late[0]!r} stands after "
                         f"{names[names.index(late[0]) - 1]!r}")


def _add_rules_to(made, record):
    """Gives the function of an operation its decorators `vjp`, `jvp` and `symmetric`."""
    def vjp(argument=None):
        def add(rule):
            record.add_rule(None if callable(argument) else argument, rule,
                            names=getattr(rule, "names", None))
            return rule
        return add(argument) if callable(argument) else add

    def jvp(rule):
        record.add_tangent(rule)
        return rule

    def symmetric(argument):
        def add(rule):
            record.add_tangent(rule, tuple(
                f"d_{argument}" if name == "g" else name for name in parameters(rule)))
            return vjp(argument)(rule)
        return add

    made.vjp, made.jvp, made.symmetric = vjp, jvp, symmetric


# ---- made of operations --------------------------------------------------------------------------

def composite(*, reference=None, samples=None, differentiable=True, method=True, public=True,
              outputs=("out",), tensors=None, out=False, inplace=False, random=False, between=None,
              factors=None, view=False, rounds_once=None, **declared):
    """Declares a function made of operations; its gradient is theirs.

    `@NAME.formula` adds a function for calls with proxies, such as examples of a batch, where the
    function itself does with Tensors what is not an operation.

    Its tensors are the parameters without a default that are annotated `Tensor` or not at all, or
    one annotated `Tensors`, a sequence of them; or those that `tensors` names. The rest are
    attributes; there may be no tensors, as of functions that make new ones. A function that returns
    no Tensor says what it returns by its annotation.

    out, inplace: it has `out=`, and a method `NAME_`; inplace may be "of a copy" where the gradient
    needs what is overwritten, or a function that writes the result over its first tensor.
    random: it draws numbers. view: "maybe", the result may share the input's memory.
    between: the keyword of a number that older scripts write after the first tensor. factors: the
    keywords of one that they write before or after the first tensor, and of one after both.
    rounds_once: half types are computed in float32 and rounded at the end, by default where there
    is a `tolerance`; a function whose only operation does so itself need not say it.
    reference: the NumPy function that it must equal; if it is `random`, a function that gives the
    least and the greatest value of each element.

    Raises: ValueError for a name that is taken; TypeError for a keyword that no declaration has.
    """
    def decorate(function):
        name, names, own = function.__name__, all_parameters(function), defaults(function)
        facts, testing = facts_of(function, declared)
        check_keywords("composite", name, testing)
        annotations = getattr(function, "__annotations__", {})
        arguments = tensors if tensors is not None else [
            p for p in names if p not in own and p in parameters(function)
            and annotations.get(p, Tensor) in (Tensor, Tensors)]
        registered = own_name(name, function, method)
        check_names("composite", name, names, (), arguments)
        attributes = [p for p in names if p not in arguments]
        record = Op(
            registered, function.__doc__, arguments, attributes,
            [own.get(a) for a in attributes],
            outputs, forward=function, variadic=Tensors in annotations.values(),
            differentiable=differentiable and not random, linearity="composite",
            takes_out=out or "out" in names, random=random,
            returns=annotations.get("return", Tensor),
            places=[names.index(a) for a in arguments], may_view=bool(view),
            testing={"reference": reference, "samples": samples, **testing}, **facts)
        put_operation(record)
        widens = rounds_once
        if widens is None:
            widens = "tolerance" in testing and "dtypes" not in testing and not view
        made = checked(name, function, out, record if is_seen_whole(record) else None, between,
                       widens, factors)
        publish(name, made, function.__doc__, False, public and is_ours(function))
        if method:
            publish(name, made, function.__doc__, True, public=False)
        made.op = function.op = record
        made.formula = partial(_set_formula, record)
        record.function = made
        if inplace:
            publish_in_place(name, made, inplace == "of a copy",
                             in_place_writer(name, inplace, between))
        return made
    return decorate


def _set_formula(record, function):
    """The decorator `NAME.formula`."""
    record.formula = function
    return function


def is_seen_whole(record):
    """Whether a capture records a composed function as one call: it has no gradient.

    Random functions with gradients are recorded as their parts.
    """
    return not record.differentiable and record.returns is Tensor and (
        not record.random or record.whole)


def checked(name, function, out, op=None, between=None, widens=False, factors=None):
    """A wrapper of a function in Python that checks its tensors, and adds `out=`.

    op: its record, if a capture records it as a whole. between, factors: see `composite`. widens:
    it computes half types in float32.
    """
    places = tensor_places(function) if type(function) is FunctionType else {}
    if not places and not out and not widens:
        return offered(function) if is_ours(function) else function
    made = wraps(function)(make_checked(name, places, function, out, op, between, widens,
                                         factors))
    if out:
        made.__signature__ = with_out(function)
    return made


def offered(function, of_one=None):
    """A wrapper of a function in Python that offers its calls to interpreters and overriding
    classes; a compiled function itself. of_one: as in `make_offered`."""
    if type(function) is not FunctionType:
        return function
    return wraps(function)(make_offered(function, of_one))


# ---- calls in their canonical form ---------------------------------------------------------------

def resolved(op, args, kwargs):
    """The operation that handles a call of `op`, its tensors, and the given attributes by name."""
    while op.convert is not None:
        given = op.convert(*args, **kwargs)
        kwargs = {}
        if isinstance(given, tuple):
            args = given
            break
        op, args = given[0].op, given[1:]
    rest = iter(op.attributes)
    count = len(op.arguments) + len(op.attributes)
    names = [op.arguments[op.places.index(i)] if i in op.places else next(rest)
             for i in range(count)]
    named = {**dict(zip(names, args)), **kwargs}
    return op, tuple(named.pop(name) for name in op.arguments), named


def run_resolved(op, tensors, attributes):
    """The result of an operation for its tensors and its attributes by name."""
    if op.places == tuple(range(len(tensors))):
        return op.function(*tensors, **attributes)
    if op.variadic:                              # after the parameters before its `*tensors`
        missing = [name for name in op.attributes[:op.places[0]] if name not in attributes]
        if missing:
            raise TypeError(f"{op.name}: missing required argument {missing[0]!r}")
        before = [attributes[name] for name in op.attributes[:op.places[0]]]
        rest = {name: attributes[name] for name in op.attributes[op.places[0]:]
                if name in attributes}
        return op.function(*before, *tensors, **rest)
    return op.function(**dict(zip(op.arguments, tensors)), **attributes)


__all__ = ["FUNCTIONS", "Tensors", "alias", "check_tensors", "composite", "elementwise",
           "find", "op", "publish", "resolved", "run_resolved"]
