"""Control flow that programs can capture: branches and loops as functions.

On Tensors these run as the Python code that they represent, and are recorded like all eager code.
While a program is traced or built by hand each is one call, whose functions become its blocks. The
results are new contiguous tensors, whatever the layout of the results of a branch or a step.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorlib._core.base.error_names import type_name
from tensorlib._core.interpreters.capture import capture
from tensorlib._core.sweep.graph_reader import begin_epoch
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import flatten, unflatten
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.foreign import members
from tensorlib.program.building.blocks import (
    BranchMismatch,
    check_alike,
    cond_call,
    scan_call,
    while_call,
)
from tensorlib.program.building.builder import Builder
from tensorlib.program.building.variable_methods import builder_for
from tensorlib.program.capture.recorder import Recorder
from tensorlib.program.ir.model import Variable
from tensorlib.program.run.running_control import entered, owned, truth


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
         operands: Sequence[Any] = ()) -> Any:
    """The result of `true_fn(*operands)` if `pred` is true, else of `false_fn(*operands)`.

    pred: one bool: a Tensor, a Variable of a program or a Python bool. Only one of the functions,
    which may also read captured tensors, runs. In a program both become blocks of one call; there
    they must return the same nesting, shapes and dtypes.

    Gradient: that of the branch that ran. Raises: TypeError for a predicate that is not a bool,
    RuntimeError for several bools, BranchMismatch for branches with different kinds of results.

    >>> x = tensorlib.tensor(3.0, requires_grad=True)
    >>> tensorlib.cond(x > 2, lambda: x * x, lambda: -x).backward()
    >>> x.grad
    tensor(6.)
    """
    check_functions("cond", true_fn, false_fn)
    began = begin_epoch()
    operands = tuple(operands) if isinstance(operands, (tuple, list)) else (operands,)
    if isinstance(pred, bool):
        return with_own_memory(true_fn(*operands) if pred else false_fn(*operands), began)
    if not isinstance(pred, Tensor):
        raise TypeError(f"cond: the predicate must be a bool or a Tensor of one, got "
                        f"{type_name(pred)}")
    home = home_of(pred, operands)
    if home is None:
        taken = true_fn if truth("cond", pred) else false_fn
        return with_own_memory(taken(*operands), began)
    return captured(home, cond_call, (pred, true_fn, false_fn, operands), lambda: cond(
        pred, true_fn, false_fn, operands))


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any],
               loop_vars: Iterable[Any]) -> tuple[Any, ...]:
    """The loop variables after `loop_vars = body_fn(*loop_vars)` ran while `cond_fn(*loop_vars)`.

    Both functions take the variables as separate arguments. The body returns a tuple of as many, of
    the same shapes and dtypes; the condition one bool.

    Gradient: through each step that ran. In a program the loop saves for the backward part what
    that needs of each step; without a backward part it runs in constant memory. Raises: as `cond`.

    >>> x = tensorlib.tensor(1.0, requires_grad=True)
    >>> n, y = tensorlib.while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, y * 2 * x),
    ...                             (tensorlib.tensor(0), x))
    >>> y
    tensor(8., grad_fn=<MulBackward0>)
    >>> y.backward(); x.grad
    tensor(32.)
    """
    check_functions("while_loop", cond_fn, body_fn)
    began = begin_epoch()
    if isinstance(loop_vars, Tensor) or not isinstance(loop_vars, (tuple, list)):
        raise TypeError("while_loop: loop_vars must be a tuple or a list, got "
                        f"{type(loop_vars).__name__}")
    values = tuple(map(as_tensors, loop_vars))
    home = home_of(values)
    if home is not None:
        return tuple(captured(home, while_call, (cond_fn, body_fn, values),
                              lambda: while_loop(cond_fn, body_fn, values)))
    while truth("while_loop", cond_fn(*values)):
        made = body_fn(*map(entered_all, values))
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        made = tuple(map(as_tensors, made))
        check_alike("while_loop", "loop_vars", values, "what the body returned", made)
        values = made
    found: tuple[Any, ...] = with_own_memory(values, began)
    return found


def scan(f: Callable[..., Any], init: Any, xs: Any) -> tuple[Any, Any]:
    """The last carry, and the ys of all steps stacked, of `carry, y = f(carry, x)`.

    The carry begins with `init`; x is `xs[0]`, `xs[1]`, ... of tensors, or nested containers of
    tensors, of one first size. The carry keeps its nesting, shapes and dtypes.

    Gradient: through all steps. Raises: as `cond`; ValueError for tensors in `xs` of different
    first sizes.

    >>> total, sums = tensorlib.scan(lambda c, x: (c + x, c + x), tensorlib.tensor(0.),
    ...                              tensorlib.tensor([1., 2., 3.]))
    >>> total, sums
    (tensor(6.), tensor([1., 3., 6.]))
    """
    check_functions("scan", f)
    began = begin_epoch()
    leaves, structure = flatten(xs, "scan: xs")
    steps = {x.shape[0] if isinstance(x, Tensor) and x.ndim else None for x in leaves}
    if not leaves or len(steps) != 1 or not all(
            isinstance(x, Tensor) and x.ndim for x in leaves):
        raise ValueError("scan: xs must be tensors, or containers of tensors, of one first size, "
                         f"got {[tuple(getattr(x, 'shape', ())) for x in leaves]}")
    carry = as_tensors(init)
    home = home_of(carry, xs)
    if home is not None:
        last, all_ys = captured(home, scan_call, (f, carry, xs), lambda: scan(f, carry, xs))
        return last, all_ys
    ys = []
    for i in range(len(leaves[0])):
        before = carry
        made = f(entered_all(carry), unflatten(structure, [x[i] for x in leaves]))
        carry, y = pair_of(made)
        check_alike("scan", "init", before, "the carry that f returned", carry)
        ys.append(y)
    return with_own_memory((carry, stacked(ys)), began)


def case(pred_fn_pairs: Sequence[tuple[Any, Callable[[], Any]]],
         default: Callable[[], Any] | None = None) -> Any:
    """The result of the function of the first true predicate, else of `default()`.

    Without a default the last function is used. Raises: as `cond`.

    >>> x = tensorlib.tensor(0.3)
    >>> tensorlib.case([(x < 0, lambda: -x), (x < 1, lambda: x * x)], lambda: x.sqrt())
    tensor(0.0900)
    """
    pairs = list(members("case", pred_fn_pairs))
    if not pairs:
        raise ValueError("case: takes at least one pair of a predicate and a function")
    if default is None:
        if len(pairs) == 1:
            return pairs[0][1]()
        default = pairs.pop()[1]
    check_functions("case", default, *(function for _, function in pairs))
    (pred, function), rest = pairs[0], pairs[1:]
    return cond(pred, function, (lambda: case(rest, default)) if rest else default)


def switch_case(branch_index: Any, branch_fns: Any,
                default: Callable[[], Any] | None = None) -> Any:
    """The result of the function with the number `branch_index`, else of `default()`.

    branch_fns: a sequence of functions, or of pairs of a number and a function, or a dict. Without
    a default the function with the largest number is used. Raises: as `cond`.

    >>> i = tensorlib.tensor(1)
    >>> tensorlib.switch_case(i, [lambda: i + 10, lambda: i + 20])
    tensor(21)
    """
    items = list(branch_fns.items()) if isinstance(branch_fns, dict) else [
        x if isinstance(x, tuple) else (i, x)
        for i, x in enumerate(members("switch_case", branch_fns))]
    if not items:
        raise ValueError("switch_case: takes at least one function")
    if len({number for number, _ in items}) != len(items):
        raise ValueError("switch_case: two functions have the same number")
    check_functions("switch_case", *(function for _, function in items))
    items.sort(key=lambda item: item[0])
    if default is None:
        default = items.pop()[1] if len(items) > 1 else items[0][1]
    if isinstance(branch_index, int):
        return dict(items).get(branch_index, default)()
    return case([(branch_index == number, function) for number, function in items], default)


# ---- where it runs -------------------------------------------------------------------------------

def home_of(*values: Any) -> Any:
    """The Recorder or Builder that captures a call with these values, or None."""
    found = capture()
    if found is not None:
        return found
    leaves = flatten(values)[0]
    return builder_for(values) if any(type(x) is Variable for x in leaves) else None


def captured(home: Any, make: Callable[..., Any], args: tuple[Any, ...],
             eager: Callable[[], Any]) -> Any:
    """The result of a call of control flow in a program, whose functions become blocks.

    While a function is traced, the call also runs eagerly, for the values.
    """
    if isinstance(home, Builder):
        return make(home, *args)
    assert isinstance(home, Recorder)
    return home.control(make, args, eager)


def check_functions(name: str, *functions: Any) -> None:
    """Raises: TypeError for an object that is not callable."""
    for function in functions:
        if not callable(function):
            raise TypeError(f"{name}: takes functions, got {type(function).__name__}")


def with_own_memory(result: Any, began: int) -> Any:
    """A container in which tensors from before the call, their views, and those that share memory
    are copied, since a branch may or may not return its operands."""
    leaves, structure = flatten(result)
    return unflatten(structure, owned(leaves, began, packed=True))


def entered_all(value: Any) -> Any:
    """A container of what a step begins with."""
    leaves, structure = flatten(value)
    return unflatten(structure, [*map(entered, leaves)])


def as_tensors(value: Any) -> Any:
    """A container with its numbers converted to tensors."""
    leaves, structure = flatten(value)
    return unflatten(structure, [
        x if isinstance(x, Tensor) else FUNCTIONS["tensor"](x) for x in leaves])


def pair_of(made: Any) -> tuple[Any, Any]:
    """The carry and the y that a step returned. Raises: TypeError for other results."""
    if not isinstance(made, tuple) or len(made) != 2:
        raise TypeError("scan: f must return (carry, y), got "
                        + (f"a tuple of {len(made)}" if isinstance(made, tuple)
                           else type(made).__name__))
    return as_tensors(made[0]), as_tensors(made[1])


def stacked(ys: list[Any]) -> Any:
    """The ys of all steps as one container of stacked tensors."""
    if not ys:
        raise ValueError("scan: xs has no steps, so that the shapes of the ys are not known")
    first, structure = flatten(ys[0])
    columns = [[] for _ in first]                             # type: ignore[var-annotated]
    for y in ys:
        leaves, found = flatten(y)
        if found != structure:
            raise BranchMismatch(f"scan: f returned {structure} in one step and {found} in another")
        for column, leaf in zip(columns, leaves):
            column.append(leaf)
    return unflatten(structure, [FUNCTIONS["stack"](column) for column in columns])
