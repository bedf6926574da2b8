"""`compile`, which imports programs when it is first called."""

from collections.abc import Callable
from typing import Any

from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import deferred

_compiled = deferred("tensorlib.program.compiled.compiled_modules", "compiled")


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False,
            dynamic: bool | None = None, backend: Any = None, mode: str | None = None,
            options: dict[str, Any] | None = None, name: str | None = None,
            disable: bool = False, check: bool | int = False) -> Any:
    """`model`, a function or a module, captured once for each kind of arguments and replayed.

    A kind is given by the structure of the arguments, the shapes, strides and dtypes of tensors and
    whether they require a gradient, and all other arguments by value. A replay's result has the
    bits of the eager call; its gradient is one node of the graph. A training step with `backward()`
    and an optimiser's `step()` inside is captured whole: rates and counts of steps are read, and
    random numbers drawn, at each call. What the function does in Python, beside tensors, happens in
    the first call of each kind alone.

    What can't be captured (`x.item()`, `if x > 0`) runs eagerly, and what lies around it in parts,
    with one warning that says where; with `fullgraph=True` it is an error. Use `cond`, `while_loop`
    and `scan` for what depends on elements. Without a function, this is a decorator with options.
    options: `{"recompute": True}` takes time for memory: element-wise results that the backward
    part needs are computed again there, where they would be kept. Of the other passes (see
    `program.optimize`), too, each runs or not as an option of its name says.
    check: True for both, in each call: a replay, and from the same state the function, whose result
    is given; all that can be seen of the two is compared to the bit. With `n`, each n-th replay is.
    `compile(f).explain(*args)` says in words what is guarded and why; with the environment variable
    `TENSORLIB_LOGS=recompiles` each capture after the first says what made it necessary.
    dynamic, backend, mode, name and all other options are taken for PyTorch's sake and change
    nothing: every kind of shapes is captured for itself, and there is one way to run it.
    Raises: TypeError for what can't be called and options that are not dicts, program.CaptureError,
        also where a checked replay is not the eager call.

    >>> @tensorlib.compile
    ... def f(x):
    ...     return (x * 2).tanh().sum()
    >>> f(tensorlib.zeros(3)), f(tensorlib.zeros(3))
    (tensor(0.), tensor(0.))
    """
    return _compiled(model, fullgraph, options, disable, check)


explain(vars(), ["compile"])
