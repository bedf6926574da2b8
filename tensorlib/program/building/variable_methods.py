"""Variables in place of Tensors: operators, methods and functions on them add calls to a
program."""

from collections.abc import Iterator
from typing import Any

from tensorlib._core.base.device import CPU
from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.shape import wrap
from tensorlib._core.graph.op import Op
from tensorlib._core.interpreters.capture import unseen
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations
from tensorlib.ops.shape.parts import imag_of, real_of
from tensorlib.ops.proxies import attach_methods, attach_operators
from tensorlib.program.building.builder import Builder, builder, no_number
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import Variable, variables_in


def called(kind: type, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an operation on Variables, which adds a call to the block under
    construction."""
    if op.linearity == "composite":
        return function_called(op, args, kwargs)
    return builder_for(args, kwargs).call(op, args, dict(kwargs))


def builder_for(*values: Any) -> Builder:
    """The builder of this thread, or one for the block of the newest of the variables."""
    open_one = builder()
    if open_one is not None:
        return open_one
    found = [x.block for x in variables_in(values) if x.block is not None]
    return Builder(max(found, key=lambda block: block.index))


def in_place(function: Any) -> Any:
    """The method `NAME_` of Variables: a call that writes over the value."""
    def method(self: Variable, *args: Any, **kwargs: Any) -> Any:
        """Writes over the value, as the method of tensors does."""
        return builder_for(self, args).write(None, f"{function.__name__}_", (self, *args), kwargs)
    return method


def out_of_place(function: Any) -> Any:
    """The operator `x += y`, which names a new variable `x`."""
    return lambda self, other: function(self, other)


def writing(name: str) -> Any:
    """A method that writes, or draws, over the value."""
    def method(self: Variable, *args: Any, **kwargs: Any) -> Any:
        """Writes over the value, as the method of tensors does."""
        return builder_for(self, args).write(None, name, (self, *args), kwargs)
    return method


def build(op: Op, args: tuple[Any, ...]) -> Any:
    """The variables of an operation's results, as a call in the block of its arguments.
    """
    return builder_for(args).call(op, args, {})


def get_item(self: Variable, key: Any) -> Any:
    """The elements that an index expression picks."""
    return build(operations.getitem, (self, key))


def detach(self: Variable) -> Any:
    """The same value, through which no gradient passes."""
    return build(operations.detach, (self,))


def set_item(self: Variable, key: Any, value: Any) -> None:
    """Writes where the index expression picks."""
    builder_for(self, key, value).write(None, "setitem", (self, value, key), {})


def number(name: str) -> Any:
    """A method that would return a number."""
    def method(self: Variable, *args: Any, **kwargs: Any) -> Any:
        """Raises: CaptureError, since a variable has elements only when the program runs."""
        no_number(name)
    return method


def size(self: Variable, dim: int | None = None) -> Any:
    """The sizes, or that of one dim."""
    return self.shape if dim is None else self.shape[dim]


def numel(self: Variable) -> int:
    """The number of elements. Raises: CaptureError where a size is not known yet."""
    if None in self.shape:
        raise CaptureError(f"numel: {self!r} has a size that is known only when the program runs")
    count = 1
    for length in self.shape:
        count *= length or 0
    return count


def length(self: Variable) -> int:
    """The first size."""
    if not self.shape:
        raise TypeError("len() of a 0-d tensor")
    if self.shape[0] is None:
        raise CaptureError(f"len: {self!r} has a size that is known only when the program runs")
    return self.shape[0]


def iterate(self: Variable) -> Iterator[Any]:
    """The parts along the first dim."""
    return iter([self[i] for i in range(length(self))])      # type: ignore[index]


def proxied(self: Variable) -> Tensor:
    """A tensor of this shape and dtype, of one element: what another one is made like.

    Raises: CaptureError where a size is not known yet.
    """
    numel(self)
    with unseen():
        return FUNCTIONS["zeros"]((), dtype=self.dtype).expand(self.shape)


def new(name: str) -> Any:
    """A method that makes a tensor of numbers, by default of the variable's dtype."""
    def method(self: Variable, *args: Any, **kwargs: Any) -> Any:
        return getattr(FUNCTIONS["zeros"]((), dtype=self.dtype), name)(*args, **kwargs)
    return method


# ---- functions made of operations ----------------------------------------------------------------

def scattered(x: Any, dim: int, index: Any, src: Any, adds: bool) -> Any:
    """`scatter` and `scatter_add`, of an index and as large a part of the source."""
    if not isinstance(src, Tensor):
        src = FUNCTIONS["full"]((), src, dtype=x.dtype).expand(tuple(index.shape))
    for d, size in enumerate(index.shape):
        if src.shape[d] != size:
            src = src.narrow(d, 0, size)
    return build(operations.scattered, (x, src, dim, index, adds))


def put_slices(x: Any, dim: int, index: Any, values: Any) -> Any:
    """`index_copy` and `index_fill`."""
    key = (*(slice(None),) * dim, index)
    return build(operations.put_index, (x, values, key))


def added_slices(x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    """`index_add`."""
    places = index.reshape([-1 if d == dim else 1 for d in range(len(x.shape))])
    source = source if alpha == 1 else source * alpha
    return scattered(x, dim, places.expand(tuple(source.shape)), source, True)


def function_called(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a composed function for Variables, where that needs other operations than for
    Tensors.

    NotImplemented if it does the same as for Tensors. Raises: CaptureError if it would read
    elements, or gets a 0-d value.
    """
    if op.name in WITH_PLACES:
        x, dim, index, *rest = (*args, *kwargs.values())
        if set(kwargs) <= {"alpha", "value", op.arguments[-1]} and x.shape and index.shape:
            return WITH_PLACES[op.name](x, wrap(op.name, dim, len(x.shape)), index, *rest)
    elif op.name not in LOOKING:
        return NotImplemented
    raise CaptureError(f"{op.name}: can't be part of a program in this form, {user_line()}")


WITH_PLACES = {
    operations.index_copy.name: put_slices, operations.index_fill.name: put_slices,
    operations.index_add.name: added_slices,
    operations.scatter.name: lambda x, dim, index, src: scattered(x, dim, index, src, False),
    operations.scatter_add.name: lambda x, dim, index, src: scattered(x, dim, index, src, True),
}
LOOKING = {operations.scatter_reduce.name}
FACTS = {
    "proxied": proxied, "like": proxied, "proxy_of": lambda self, other: other,
    "has_elements": False, "is_noted": True,
    "itemsize": property(lambda self: self.dtype.itemsize),
    "element_size": lambda self: self.dtype.itemsize,
    "is_complex": lambda self: self.dtype.is_complex,
    "real": property(real_of), "imag": property(imag_of),
    "is_meta": False,
    "no_write": "a tensor that is no variable of the program can't be written in place or by out= "
                "with the value of one",
    "__tensor_call__": classmethod(called), "__getitem__": get_item, "__setitem__": set_item,
    "__len__": length, "__iter__": iterate, "size": size, "detach": detach, "numel": numel,
    "nelement": numel,
    "ndim": property(lambda self: len(self.shape)), "dim": lambda self: len(self.shape),
    "requires_grad": property(lambda self: self.recorded and has_gradients(self.dtype)),
    "is_leaf": property(lambda self: self.trainable),
    "is_floating_point": lambda self: self.dtype.is_floating_point,
    "device": CPU,
    "contiguous": lambda self: self, "is_contiguous": lambda self: True,
    "grad": property(lambda self: None),
}
for _name, _fact in FACTS.items():
    setattr(Variable, _name, _fact)
for _name in ("copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_"):
    setattr(Variable, _name, writing(_name))
for _name, _shown in {"__bool__": "bool", "__int__": "int", "__float__": "float",
                      "__index__": "int", "__array__": "numpy"}.items():
    setattr(Variable, _name, number(_shown))
for _name in ("item", "tolist", "numpy", "backward"):
    setattr(Variable, _name, number(_name))
for _name in ("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor"):
    setattr(Variable, _name, new(_name))
attach_methods(Variable, in_place)
attach_operators(Variable, out_of_place)
