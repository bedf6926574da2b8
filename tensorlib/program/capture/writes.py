"""In-place writes, and how a capture records them.

A write to a tensor that the captured function made is no write in the program: the new value is a
new variable (functionalisation), the base of a view becomes a variable with the view written into
it, and other views of it are taken again when they are next read. So each variable keeps its value
for a backward part. A write to a tensor from before the function ran (parameters, running means) is
recorded as a write, which is an effect of the function.
"""

from typing import Any

from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.graph.op import Op, registry
from tensorlib._core.layout.reinterpret import as_real
from tensorlib._core.sweep.graph_reader import was_made_since
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.lazy import operations
from tensorlib.program.building.builder import has_graph, is_of_another_dtype
from tensorlib.program.guards.signatures import memory_of, storage_of
from tensorlib.program.ir.call_types import (
    DRAWING, WRITERS, copied, form_of, onto, value_of_write, write_of,
)
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.reads.read_log import line_in


class Writes:
    """The state of a recorder about tensors that were written."""

    def __init__(self, recorder: Any):
        self.recorder = recorder
        self.lasting: set[int] = set()           # memory from before the call that was written
        self.by_data: dict[int, int] = {}        # the part of it that was written through `data`,
                                                 # with the line of the captured function, or 0
        self.based: dict[int, Variable] = {}     # a view's base value when taken

    # ---- views

    def taken(self, tensor: Tensor) -> None:
        """Records the value of its base from which a view was taken."""
        base = tensor._base
        if base is not None and id(base) in self.recorder.known:
            self.based[id(tensor)] = self.recorder.known[id(base)][1]

    def present(self, tensor: Tensor, x: Variable) -> Variable:
        """The current variable of a tensor; a view whose base was written is taken again."""
        base = tensor._base
        if base is None or id(tensor) not in self.based:
            return x
        whole = self.recorder.known[id(base)][1]
        return x if self.based[id(tensor)] is whole else self.retaken(tensor, x, base, whole)

    def retaken(self, tensor: Tensor, x: Variable, base: Tensor, whole: Variable) -> Variable:
        """The variable of a view, formerly `x`, taken from the current value of its base.

        It has a gradient if it had one when it was taken, even if it is read under no_grad now.
        """
        self.require_sizes(whole)
        self.based[id(tensor)] = whole
        shown = tensor
        if tensor.dtype is not base.dtype:
            whole, base = self.in_parts(whole, base)
            _, shown = self.in_parts(x, tensor)
        return self.made(operations.strided_part.name, {"input": whole}, shown, {
            "place": place_in(base, shown)}, x.stop_gradient, tensor)

    def require_sizes(self, whole: Variable) -> None:
        """Raises: CaptureError for a value whose sizes, and so the position of a view in it, may
        differ in another run."""
        if None in whole.shape:
            raise CaptureError("a view of what has a size that depends on elements can't be "
                               "captured where one of the two is written, "
                               f"{self.recorder.line()}; write into a clone")

    # ---- complex numbers and their parts

    def in_parts(self, x: Variable, tensor: Tensor) -> tuple[Variable, Tensor]:
        """A complex variable and its tensor viewed as real pairs; real ones themselves."""
        if not tensor.dtype.is_complex:
            return x, tensor
        shown = as_real(tensor)
        return self.aside(operations.view_as_real.name, {"input": x}, shown, {},
                          x.stop_gradient), shown

    def made(self, type: str, inputs: dict[str, Any], shown: Tensor, attributes: dict[str, Any],
             stop_gradient: bool, tensor: Tensor) -> Variable:
        """The new variable of a tensor that a call returns, or whose pairs it returns, as
        `shown`."""
        if shown is not tensor:
            pairs = self.aside(type, inputs, shown, attributes, stop_gradient)
            type, inputs, attributes = operations.view_as_complex.name, {"input": pairs}, {}
        fresh = self.noted(type, inputs, tensor, attributes)
        fresh.stop_gradient = stop_gradient
        return fresh

    def aside(self, type: str, inputs: dict[str, Any], like: Tensor, attributes: dict[str, Any],
              stop_gradient: bool) -> Variable:
        """The variable of an intermediate value, like a tensor, given by a recorded call."""
        fresh = self.recorder.block.new_variable(
            type, tuple(like.shape), like.dtype, stop_gradient=stop_gradient)
        self.recorder.note(OpCall(type, inputs, (fresh,), attributes, self.recorder.line()))
        return fresh

    # ---- writes

    def write(self, op: Op | None, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Executes an in-place write, records it, and returns the tensor that was written."""
        x = args[0]
        before = self.recorder.variable_of(x)
        if x._base is not None:
            self.recorder.variable_of(x._base)
        given = [self.recorder.value(y) for y in args[1:]]
        if op is None and name not in WRITERS and name[:-1] in registry:
            method = getattr(Tensor, name)
            method(*args)
            return self.relaid(name[:-1], x, before, args[1:])
        base = x if x._base is None else x._base
        if storage_of(base) in self.recorder.outside:
            self.recorder.check_write(name, x, args[1:])
            self.lasting.add(storage_of(base))
            if was_made_since(base, self.recorder.epoch):        # it has a version of its own
                reads = self.recorder.reads
                self.by_data.setdefault(storage_of(base), reads and line_in(reads.root) or 0)
            run(op, name, args, kwargs)
            self.recorder.note(write_of(name, [before, *given], kwargs, self.recorder.line()))
            return x
        if name == "setitem" and has_graph((base, args[1])):
            given[1] = self.recorder.own(given[1])
        if any(y is not base and self.may_have_gradient(y)
               for y in self.recorder.by_storage.get(storage_of(base), ())):
            raise CaptureError(f"{name}: a write by way of what detach() or data gave can't be "
                               f"captured, {self.recorder.line()}; write into a clone")
        if id(x) in self.recorder.uncounted or id(base) in self.recorder.uncounted:
            raise CaptureError(f"{name}: a write by way of what data gave, of which no version "
                               f"tells, can't be captured, {self.recorder.line()}; write into a "
                               "clone")
        if may_share_elements(x):
            raise CaptureError(f"{name}: a write into what may have elements in one place can't be "
                               f"captured, {self.recorder.line()}; write into a clone")
        if not is_grad_enabled() and any(map(self.may_have_gradient, (x, base))):
            raise CaptureError(f"{name}: a write under no_grad into what has a gradient can't be "
                               f"captured, {self.recorder.line()}; write into a clone")
        call = write_of(name, [before, *given], kwargs, self.recorder.line())
        casts = is_of_another_dtype(value_of_write(call), x.dtype)
        if casts and is_grad_enabled() and any(y.requires_grad for y in args
                                               if isinstance(y, Tensor)):
            raise CaptureError(f"{name}: a write that has a gradient, of what is computed in "
                               f"another dtype, can't be captured, {call.line}")
        run(op, name, args, kwargs)
        self.as_new(call, x, casts)
        return x

    def may_have_gradient(self, x: Tensor) -> bool:
        """Whether a tensor that the function made has a gradient, possibly only in another
        branch."""
        if self.recorder.unsure and id(x) in self.recorder.known:
            return not self.recorder.known[id(x)][1].stop_gradient and has_gradients(x.dtype)
        return x.grad_fn is not None

    def as_new(self, call: OpCall, x: Tensor, casts: bool) -> None:
        """Records a write as a new value of the tensor, and of the one it is a view of.

        casts: the written value is computed in another dtype, so it is copied.
        """
        made = copied(call) if casts else value_of_write(call)
        fresh = self.noted(made.type, made.inputs, x, made.attributes)
        if casts or call.type in DRAWING:
            self.recorder.note(onto(call, fresh))
        self.spread(x, fresh)

    def spread(self, x: Tensor, fresh: Variable) -> None:
        """Records the new value of the base of `x`."""
        base = x._base
        if base is not None:
            fresh = self.put_in(fresh, x, base)
        self.spread_to_aliases(x if base is None else base, fresh)

    def put_in(self, value: Variable, x: Tensor, base: Tensor) -> Variable:
        """The new variable of a base after its view `x` got a new value."""
        whole = self.recorder.known[id(base)][1]
        self.require_sizes(whole)
        shown = base
        if x.dtype is not base.dtype:
            whole, shown = self.in_parts(whole, base)
            value, x = self.in_parts(value, x)
        stops = whole.stop_gradient and value.stop_gradient or not is_grad_enabled()
        return self.made(operations.view_scatter.name, {"input": whole, "value": value}, shown, {
            "place": place_in(shown, x)}, stops, base)

    def spread_to_aliases(self, base: Tensor, fresh: Variable) -> None:
        """Records the new values of other tensors over the memory of one that was written: results
        and arguments of `detach`."""
        for other in self.recorder.by_storage.get(storage_of(base), ()):
            if other is base:
                continue
            if other.grad_fn is None and memory_of(other) == memory_of(base):
                self.noted(operations.detach.name, {"input": fresh}, other, {})
            else:
                self.recorder.stale.add(id(other))

    def relaid(self, type: str, x: Tensor, before: Variable, args: tuple[Any, ...]) -> Tensor:
        """Records that a tensor took on the layout of a view of it."""
        op = registry[type]
        self.noted(type, {"input": before}, x, dict(zip(op.attributes, args)))
        return x

    def noted(self, type: str, inputs: dict[str, Any], tensor: Tensor,
              attributes: dict[str, Any]) -> Variable:
        """The new variable of a tensor, which a call gives that is recorded."""
        fresh = self.recorder.new_variable(type, tensor)
        self.recorder.note(OpCall(type, inputs, (fresh,), attributes, self.recorder.line()))
        return fresh


def run(op: Op | None, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Executes a write."""
    if name == "setitem":
        x, values, key = args
        x[key] = values
    elif name in WRITERS:
        getattr(Tensor, name)(*args, **kwargs)
    else:
        form_of(name).run(*args, **kwargs)


def may_share_elements(x: Tensor) -> bool:
    """Whether two elements may share an address, as in an expanded tensor."""
    reach = 1
    for stride, size in sorted((abs(stride), size) for size, stride in zip(x.shape, x.stride())):
        if size > 1 and stride < reach:
            return True
        reach += (size - 1) * stride
    return False


def place_in(base: Tensor, view: Tensor) -> tuple[Any, ...]:
    """The sizes, strides and offset of a view in its base, and strides and offset of the base."""
    return (tuple(view.shape), view.stride(), view.storage_offset(), base.stride(),
            base.storage_offset())
