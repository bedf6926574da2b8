"""Running one call, in Python: simple, and with the bits of eager code.

All values are in one dict by variable. A block that runs again overwrites its variables.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.ir.call_types import Form, form_of_call
from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.ir.nested import mapped
from tensorlib.program.ir.stacks import Stack

Values = dict[Variable, Any]
Lookup = Callable[[Variable], Any]


def value_of(x: Variable, values: Values) -> Any:
    """The value of a variable. Raises: RuntimeError where it has none."""
    if x in values:
        return values[x]
    if x.value is None:
        raise RuntimeError(f"program: {x.name} has no value"
                           + ("" if x.persistable else ", since what writes it has not run"))
    return x.value


def run_call(call: OpCall, values: Values) -> None:
    """Runs one call that has no blocks. What it raises says where the call came from."""
    try:
        results = results_of(call, values)
    except Exception as error:
        add_place(error, call)
        raise
    for x, result in zip(call.outputs, results):
        if x is not None:
            values[x] = result


def add_place(error: Exception, call: OpCall) -> None:
    """Makes an error name the call that it came from, the innermost one."""
    note = f"program: raised in {call!r}" + (f", {call.line}" if call.line else "")
    if not any(text.startswith("program: raised in") for text in
               getattr(error, "__notes__", ())):
        error.add_note(note)


def results_of(call: OpCall, values: Values) -> Sequence[Any]:
    """The results of a call's operation, as a tuple."""
    form, tensors, given = arguments_of(call, lambda x: value_of(x, values))
    assert form.run is not None
    return as_results(form.run(*tensors, **with_wanted(call, form, given)))


def arguments_of(call: OpCall, value: Lookup) -> tuple[Form, list[Any], dict[str, Any]]:
    """The form of a call, the values of its arguments in order, and its attributes by name."""
    form = form_of_call(call)
    given = {name: likes_of(x, value) if name == "likes" else mapped(x, value)
             for name, x in call.attributes.items()}
    return form, [mapped(call.inputs.get(name), value) for name in form.arguments], given


def with_wanted(call: OpCall, form: Form, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a call; for a backward operation also which of its results are needed."""
    if form.op is not None and "wanted" in form.attributes:
        given = {**given, "wanted": tuple(x is not None for x in call.outputs)}
    return given


def as_results(result: Any) -> Sequence[Any]:
    """The result of a call's function, as a tuple."""
    if isinstance(result, Tensor) or type(result) is Stack:
        return (result,)
    if type(result) is tuple and len(result) == 1 and type(result[0]) is tuple:
        return result[0]                         # a sequence has a sequence of gradients
    return tuple(result)


def likes_of(likes: Any, value: Lookup) -> list[Any]:
    """The shape and dtype of each variable, as backward operations take them."""
    return [likes_of(x, value) if type(x) is tuple else like(x, value) for x in likes]


def like(x: Any, value: Lookup) -> tuple[Any, Any]:
    """The shape of a variable when the program runs, and its dtype; those of a number."""
    if type(x) is not Variable:
        return (), FUNCTIONS["tensor"](x).dtype
    return (value(x).shape if None in x.shape else x.shape), x.dtype
