"""Checks of declarations, when they are made and when the registry is complete."""

from tensorlib._core.base.error_names import nearest
from tensorlib._core.graph.op import declared
from tensorlib._core.tensor.tensor import Tensor
from tensorlib._core.tiles.loops import loop_arity, loop_names
from tensorlib.ops.pending import FUNCTIONS, is_imported_here

# Further keywords of declarations, for `tensorlib.testing.check_op`.
TESTING = ("reference", "samples", "edges", "dtypes", "errors", "prepare", "takes", "refuses",
           "result_dtype", "signed_zeros", "tolerance", "waive")
FROM_OUTSIDE = set()    # names of methods that declarations outside of the library may replace
# Names that rules use for themselves.
RESERVED = ("g", "node")


def check_keywords(what, name, testing):
    """Raises TypeError for a keyword that no declaration has."""
    for keyword in testing:
        if keyword not in TESTING:
            raise TypeError(f"{what}: {name} is declared with {keyword!r}, which no declaration "
                            f"has{hint(keyword, TESTING)}")


def own_name(name, function, method=False):
    """The name under which the operation that `function` declares is registered.

    Outside the library it has the name of the module as a prefix, and a declaration replaces an
    earlier one, since cells of notebooks are run again; existing nodes keep the earlier one.
    method: it is to be a method of Tensors, too.

    Raises: ValueError for a name that the library has.
    """
    if is_ours(function) or is_imported_here():
        return name
    if name in declared or name in FUNCTIONS:
        raise ValueError(f"ops: an operation named {name!r} exists already")
    if method and name in vars(Tensor) and name not in FROM_OUTSIDE:
        raise ValueError(f"ops: Tensors have {name!r} already")
    if method:
        FROM_OUTSIDE.update((name, name + "_"))
    return f"{getattr(function, '__module__', None) or '__main__'}.{name}"


def is_ours(function):
    """Whether a function is the library's own; `__module__` of public ones is the package."""
    return f"{getattr(function, '__module__', None)}.".startswith("tensorlib.")


def check_names(what, name, parameters, outputs, named=()):
    """Raises ValueError for parameters that rules could not name, and where `named` has names that
    are no parameters."""
    for taken in {*RESERVED, *outputs}.intersection(parameters):
        raise ValueError(f"{what}: {name} has a parameter {taken!r}, which rules use themselves; "
                         "call it something else")
    for stray in set(named).difference(parameters):
        raise ValueError(f"{what}: {name} has no argument {stray!r}; it takes "
                         f"{', '.join(parameters)}")


def check_loop(name, loop, arguments):
    """Raises ValueError unless the loop of an element-wise operation exists and takes these."""
    arity = loop_arity(loop)
    if not arity:
        raise ValueError(f"elementwise: {name} has no loop {loop!r}{hint(loop, loop_names())}")
    if arity != len(arguments):
        raise ValueError(f"elementwise: {name} takes {', '.join(arguments)}, but its loop {loop!r} "
                         f"{arity} {'argument' if arity == 1 else 'arguments'}")


def hint(name, names):
    """The end of an error message for an unknown name: similar ones."""
    near = nearest(name, names)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def missing(op):
    """What the declaration of an operation lacks, as texts."""
    ruled = op.linearity == "composite" or any(rule is not None for rule in op.rules)
    if op.differentiable and not (ruled or op.tangent_rule):
        rule = "deriv" if op.elementwise else "vjp"
        yield (f"it is differentiable, but has no rule for any of {', '.join(op.arguments)}; add "
               f"@{op.name.rpartition('.')[2]}.{rule}, or declare differentiable=False")


def missing_for_tests(op):
    """What an operation of the library lacks for the tests that follow from its declaration."""
    for keyword in ("reference", "samples"):
        if not op.testing.get(keyword):
            yield f"it is declared without {keyword}"


def check_registry(operations=declared):
    """Raises ValueError for an operation of the library that is not declared in full."""
    for op in [op for name, op in operations.items() if "." not in name]:
        for text in (*missing(op), *missing_for_tests(op)):
            raise ValueError(f"ops: {op.name}: {text}")
