"""`trace`: the program of a function, captured while it runs once."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import flatten, unflatten
from tensorlib.program.capture.aliases import make_constants_anew
from tensorlib.program.capture.recorder import Recorder
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import Variable
from tensorlib.program.program import Program


def trace(f: Callable[..., Any], *examples: Any) -> Program:
    """The program of `f`, a function or a module, which runs once, on the `examples`.

    Tensors among the arguments, also in nested containers, become the program's inputs; other
    arguments become constants. Tensors that `f` captures become persistable variables, which share
    their memory: parameters, if they require a gradient. Each run repeats the writes to them, and
    draws new random numbers.

    `p(*inputs)` returns the results of `f` for inputs of the same shapes and dtypes, bit for bit.
    Raises: CaptureError, with the line, if Python code of `f` depends on elements: `if x > 0`,
    `x.item()`, `x.numpy()`; TypeError for a Variable among the examples; errors of `f`.

    >>> from tensorlib import program
    >>> p = program.trace(lambda x: (x * 2).tanh().sum(), tensorlib.ones(3))
    >>> [call.type for call in p.block.ops]
    ['mul', 'tanh', 'sum']
    >>> p(tensorlib.zeros(3))
    tensor(0.)
    """
    if not callable(f):
        raise TypeError(f"trace: takes a function, got {type(f).__name__}")
    program = Program()
    leaves, program.input_structure = flatten(examples, "trace: the examples")
    names = argument_names(f, examples)
    seen: set[int] = set()
    recorder = Recorder(program, program.block, captured_names(f))
    for i, leaf in enumerate(leaves):
        if type(leaf) is Variable:
            raise TypeError(f"trace: {names[i]} is the Variable {leaf.name} of a program, which "
                            "has no value yet; give a tensor as an example")
        if not isinstance(leaf, Tensor):
            continue
        if id(leaf) in seen:
            leaf = leaves[i] = leaf.clone()
        seen.add(id(leaf))
        x = program.block.new_variable(names[i], tuple(leaf.shape), leaf.dtype)
        recorder.feed(leaf, x)
    program.input_leaves = [
        recorder.known[id(x)][1] if isinstance(x, Tensor) else x for x in leaves]
    with recorder:
        result = f(*unflatten(program.input_structure, leaves))
    found, structure = flatten(result, "trace: what the function returned")
    program.outputs = unflatten(structure, make_constants_anew(program.block, [
        recorder.variable_of(x) if isinstance(x, Tensor) else x for x in found]))
    return program


def argument_names(f: Callable[..., Any], examples: tuple[Any, ...]) -> list[str]:
    """A name for each leaf of the examples: that of its parameter of `f`, if it is a tensor."""
    try:
        parameters = list(signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = []
    for i, example in enumerate(examples):
        count = len(flatten(example)[0])
        name = (parameters[i].name if i < len(parameters)
                and parameters[i].kind is not parameters[i].VAR_POSITIONAL else f"input_{i}")
        names += [name] if count == 1 else [f"{name}_{k}" for k in range(count)]
    return names


def captured_names(f: Callable[..., Any]) -> dict[int, str]:
    """The names of the tensors of a module, by their id, if `f` is one or a method of one."""
    owner = getattr(f, "__self__", f)
    found: dict[int, str] = {}
    for kind in ("named_parameters", "named_buffers"):
        if hasattr(owner, kind):
            found.update((id(x), name) for name, x in getattr(owner, kind)())
    return found


__all__ = ["CaptureError", "trace"]
