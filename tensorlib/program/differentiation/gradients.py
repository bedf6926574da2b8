"""`append_backward`, `gradients` and `minimize`, which add a backward part to a program."""

from collections.abc import Iterable, Sequence
from typing import Any

from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.differentiation.backward import Backward, Callback, dependents
from tensorlib.program.differentiation.checkpoints import visit_in_segments
from tensorlib.program.differentiation.control_gradients import visit_control
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.model import OpCall, Variable, agree
from tensorlib.program.program import Program, items


def append_backward(loss: Variable, parameter_list: Iterable[Variable | str] | None = None,
                    no_grad_set: Iterable[Variable | str] | None = None,
                    callbacks: Iterable[Callback] | None = None,
                    checkpoints: Iterable[Variable | str] | None = None,
                    ) -> list[tuple[Variable, Variable]]:
    """The parameters and their gradients, `w` and `w@GRAD`, which are appended to the program.

    loss: a variable of one element, of the program's own block. parameter_list: Variables or names;
    by default every trainable parameter. Those that the loss does not depend on are left out.
    no_grad_set: Variables or names whose gradients are taken as zero, with all variables that have
    `stop_gradient`. callbacks: functions of the block and the call, called after each call that is
    appended. checkpoints: the variables to keep; what lies between them is computed again.

    Where several calls read `w`, the parts of its gradient are `w@GRAD@RENAME@0`, ..., and a call
    of `sum` adds them. What is appended can be differentiated again.

    Raises: TypeError for what is no Variable or name; ValueError for a loss of several elements or
    of another program, and for a name that is not there.

    >>> from tensorlib import program
    >>> w = tensorlib.tensor([1., 2.], requires_grad=True)
    >>> p = program.trace(lambda x: (x * w).sum(), tensorlib.ones(2))
    >>> [(parameter, gradient)] = program.append_backward(p.outputs)
    >>> p.run({"x": tensorlib.tensor([3., 4.])}, gradient)
    tensor([3., 4.])
    """
    name = "append_backward"
    program = program_of(name, loss)
    if not loss.dtype.is_floating_point or loss.shape.count(1) != len(loss.shape):
        raise ValueError(f"{name}: the loss must be one element of a floating dtype, got {loss!r}")
    if parameter_list is None:
        wanted = [x for x in program.persistables() if x.trainable]
    else:
        wanted = own_variables(name, "parameter_list", program, parameter_list)
    functions = items(name, "callbacks", callbacks or ())
    for function in functions:
        if not callable(function):
            raise TypeError(f"{name}: callbacks takes functions, got {type(function).__name__}")
    kept = None if checkpoints is None else own_variables(name, "checkpoints", program, checkpoints)
    start = program.block.new_variable(f"{loss.name}@GRAD", loss.shape, loss.dtype)
    first = OpCall("ones_like", {"input": loss}, (start,), {}, user_line())
    none = own_variables(name, "no_grad_set", program, no_grad_set or ())
    found = extended(program, [(loss, start)], wanted, none, functions, kept, [first])
    return [(x, g) for x, g in zip(wanted, found) if g is not None]


def gradients(targets: Variable | Sequence[Variable], inputs: Variable | Sequence[Variable],
              target_gradients: Any = None,
              no_grad_set: Iterable[Variable | str] | None = None) -> list[Variable | None]:
    """The gradient of each input as a variable, None where no target depends on it.

    The gradient of the sum of the targets, weighted by `target_gradients`: a Variable for each, or
    None for ones. `no_grad_set` as in `append_backward`.
    Raises: TypeError, ValueError for what is no variable of the targets' program, and for a target
    gradient of another shape.

    >>> from tensorlib import program
    >>> p = program.trace(lambda x: x * x * x, tensorlib.ones(2))
    >>> x, = p.inputs
    >>> first, = program.gradients(p.outputs, x)
    >>> second, = program.gradients(first, x)
    >>> p.run({"x": tensorlib.tensor([1., 2.])}, [first, second])
    [tensor([ 3., 12.]), tensor([ 6., 12.])]
    """
    name = "gradients"
    first_target = targets if type(targets) is Variable else next(
        iter(items(name, "targets", targets)), None)
    if first_target is None:
        raise ValueError(f"{name}: takes at least one target")
    program = program_of(name, first_target)
    given = own_variables(name, "targets", program, targets)
    wanted = own_variables(name, "inputs", program, inputs)
    weights = [target_gradients] if type(target_gradients) is Variable else (
        [None] * len(given) if target_gradients is None else
        items(name, "target_gradients", target_gradients))
    if len(weights) != len(given):
        raise ValueError(f"{name}: got {len(given)} targets and {len(weights)} target_gradients")
    first, starts = [], []
    for x, g in zip(given, weights):
        if g is None:
            g = program.block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
            first.append(OpCall("ones_like", {"input": x}, (g,), {}, user_line()))
        else:
            g, = own_variables(name, "target_gradients", program, [g])
            if not agree(g.shape, x.shape):
                raise ValueError(f"{name}: the target {x!r} has the target gradient {g!r}")
            if g.dtype != x.dtype:               # as a sweep begins with what it is given
                with program:
                    g = g.to(x.dtype)            # type: ignore[attr-defined]
        starts.append((x, g))
    none = own_variables(name, "no_grad_set", program, no_grad_set or ())
    return extended(program, starts, wanted, none, [], None, first)


def minimize(loss: Variable, optimizer: Any,
             no_grad_set: Iterable[Variable | str] | None = None,
             ) -> list[tuple[Variable, Variable]]:
    """The parameters and gradients of `append_backward`, after the update was appended as well.

    Then running the program is a training step. optimizer: one of `tensorlib.optim`, made with
    `p.parameters()`; any object with `param_groups`, dicts that have the parameters' Tensors in
    "params", and `step()`, which changes these by their `.grad`. What it keeps, its rates and its
    counts of steps, it reads and changes at each run.
    Raises: as `append_backward`; TypeError for what is no optimiser; ValueError for one that has a
    parameter which the program does not have.
    """
    program = program_of("minimize", loss)
    if not callable(getattr(optimizer, "step", None)) or not hasattr(optimizer, "param_groups"):
        raise TypeError(f"minimize: takes an optimiser, with param_groups and step(), got "
                        f"{type(optimizer).__name__}")
    by_id = {id(x.value): x for x in program.persistables()}
    updated = []
    groups = optimizer.param_groups
    if not isinstance(groups, list) or not all(
            isinstance(x, dict) and "params" in x for x in groups):
        raise TypeError("minimize: param_groups must be a list of dicts with 'params'")
    for group in groups:
        for tensor in group["params"]:
            if id(tensor) not in by_id:
                raise ValueError("minimize: the optimiser has a parameter of shape "
                                 f"{tuple(tensor.shape)} that the program does not have; make it "
                                 "with p.parameters()")
            updated.append(by_id[id(tensor)])
    pairs = append_backward(loss, updated, no_grad_set)
    program.block.ops.append(OpCall(
        "optimizer_step", {"params": tuple(x for x, _ in pairs),
                           "grads": tuple(g for _, g in pairs)},
        (), {"optimizer": optimizer}, user_line()))
    return pairs


def extended(program: Program, starts: list[tuple[Variable, Variable]], wanted: list[Variable],
             no_grad: list[Variable], callbacks: list[Callback], kept: list[Variable] | None,
             first: list[OpCall]) -> list[Variable | None]:
    """The gradients of the wanted variables, which begin with those of `starts`.

    Raises: ProgramError for what can't be differentiated, after which the calls are as before.
    """
    calls = list(program.block.ops)
    none = set(no_grad)
    depends = dependents(calls, [x for x in wanted if x not in none], none)
    work = Backward(program.block, program.block, depends, visit_control, callbacks)
    try:
        for call in first:
            work.append(call)
        for x, g in starts:
            work.add(x, g)
        if kept is None:
            work.visit(calls)
        else:
            visit_in_segments(work, calls, kept)
        return [None if x in none else work.total(x) for x in wanted]
    except BaseException:
        del program.block.ops[len(calls):]       # add nothing if not all could be added
        raise


def program_of(name: str, x: Any) -> Program:
    """The program of a variable of its own block. Raises: TypeError, ValueError."""
    if type(x) is not Variable:
        kind = "a Tensor" if isinstance(x, Tensor) else type_name(x)
        raise TypeError(f"{name}: takes a Variable of a program, got {kind}")
    if x.block is None or x.block.parent is not None:
        raise ValueError(f"{name}: {x.name} is a variable of a branch or a loop, not of the "
                         "program's own block")
    program: Program = x.block.program
    return program


def own_variables(name: str, what: str, program: Program, given: Iterable[Any]) -> list[Variable]:
    """Variables of a program, given themselves or by name. Raises: TypeError, ValueError."""
    if isinstance(given, str) or type(given) is Variable:
        given = [given]
    found = []
    for x in items(name, what, given):
        if not isinstance(x, str) and type(x) is not Variable:
            raise TypeError(f"{name}: {what} takes Variables and names of them, got "
                            f"{type(x).__name__}")
        try:
            found.append(program.own_variable(f"{name}: {what}", x))
        except KeyError:
            raise ValueError(f"{name}: {what} names {x!r}, but the program has no such variable"
                             ) from None
    return found
