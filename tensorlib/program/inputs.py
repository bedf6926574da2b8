"""Inputs and parameters of programs built by hand, and the program under construction."""

from contextlib import AbstractContextManager
from typing import Any

from tensorlib._core.base.dtypes import dtype as DType
from tensorlib._core.base.dtypes import get_default_dtype
from tensorlib._core.interpreters.capture import unseen
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.building.builder import Builder, builder
from tensorlib.program.ir.model import Variable, check_program
from tensorlib.program.program import RESERVED, Program, cleaned, items

LARGEST = 2**62              # an upper bound of sizes


def program_guard(program: Program) -> AbstractContextManager[Builder]:
    """A context in which calls on variables are added to `program`, the same as `with program:`.

    Raises: TypeError for what is not a Program.
    """
    check_program("program_guard", program)
    return Builder(program.block)


def being_built(name: str) -> Builder:
    """The builder of the program's own block. Raises: RuntimeError outside of a program."""
    found = builder()
    if found is None:
        raise RuntimeError(f"{name}: there is no program that is built; use it under `with "
                           "Program() as p:` or program_guard(p)")
    if found.block.parent is not None:
        raise RuntimeError(f"{name}: must stand outside of branches and loops")
    return found


def data(name: str, shape: Any, dtype: DType | None = None) -> Variable:
    """A new input of the program under construction. None is a size that varies between runs.

    Raises: ValueError for a name that is taken, or for negative sizes; TypeError.

    >>> from tensorlib import program
    >>> with program.Program() as p:
    ...     x = program.data("x", (None, 3))
    ...     y = (x * 2).sum(1)
    >>> x, y
    (Variable(x: float32[None, 3]), Variable(sum: float32[None]))
    """
    made = being_built("data")
    sizes = (shape,) if isinstance(shape, int) else items("data", "shape", shape)
    for size in sizes:
        if size is not None and (not isinstance(size, int) or isinstance(size, bool)):
            raise TypeError(f"data: sizes are ints or None, got {size!r}")
        if size is not None and not 0 <= size < LARGEST:
            raise ValueError(f"data: sizes are not negative, and below 2**62, got {size}")
    if dtype is not None and not isinstance(dtype, DType):
        raise TypeError(f"data: takes a tensorlib dtype, got {dtype!r}")
    check_free("data", made.program, name)
    x = made.block.new_variable(name, sizes, dtype or get_default_dtype())
    made.program.inputs.append(x)
    return x


def parameter(name: str, value: Any, trainable: bool = True) -> Variable:
    """A new parameter of the program under construction, whose value is kept between runs.

    A Tensor is used itself, so that the program updates it; other values are converted to one.
    Raises: ValueError for a name that is taken, RuntimeError for a dtype without gradients.
    """
    made = being_built("parameter")
    check_free("parameter", made.program, name)
    if type(value) is Variable:
        raise TypeError(f"parameter: the value of {name} must be a Tensor or numbers, not a "
                        "Variable: compute it before the program")
    with unseen():
        tensor = value if isinstance(value, Tensor) else FUNCTIONS["tensor"](value)
        if trainable and not tensor.requires_grad:
            tensor = tensor.detach().requires_grad_()
    x = made.program.block.new_variable(
        name, tuple(tensor.shape), tensor.dtype, persistable=True, trainable=trainable,
        stop_gradient=not trainable, value=tensor)
    made.known[id(tensor)] = tensor, x
    return x


def check_free(what: str, program: Program, name: Any) -> None:
    """Raises: TypeError, ValueError for an invalid name, or one that is taken."""
    if not isinstance(name, str):
        raise TypeError(f"{what}: the name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError(f"{what}: the name is empty")
    if cleaned(name) != name or name in RESERVED:
        raise ValueError(f"{what}: {name!r} is no name for a variable: it takes letters, digits, "
                         "'_', '.' and '@', not a digit first, and no word that texts have")
    if any(name in block.variables for block in program.blocks):
        raise ValueError(f"{what}: the program has a variable named {name!r} already")
