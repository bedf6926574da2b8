"""Operations and functions that the executor runs as steps of its own, without a call in Python.

The steps run the same loops, so that the bits are the same.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tensorlib._core.base.dtypes import dtype as DType
from tensorlib._core.graph.op import Op
from tensorlib._core.layout import views
from tensorlib._core.reduce import reductions
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.lazy import name_of, operations
from tensorlib.program.run.executor import Machine

STEPS: dict[str, Callable[..., Tensor | None]] = {}          # by the names of operations
Dims = int | tuple[int, ...] | list[int] | None


# ---- operations ----------------------------------------------------------------------------------

def direct_step(*given: Any) -> Callable[[Any], Any]:
    """Decorates the function of a machine and tensors that records an operation's steps."""
    def declare(step: Any) -> Any:
        STEPS.update((name_of(operation), step) for operation in given)
        return step
    return declare


direct_step(operations.matmul, operations.mm)(Machine.product)
direct_step(operations.linear_with_bias)(Machine.linear)


def step_of(machine: Machine, op: Op, inputs: tuple[Any, ...]) -> Tensor | None:
    """The result of an operation in a rehearsal, after its steps were recorded; or None."""
    if op.elementwise:
        return machine.elementwise(op, inputs)
    step = STEPS.get(op.name)
    return None if step is None else step(machine, *inputs)


# ---- functions -----------------------------------------------------------------------------------

def to_dtype(machine: Machine, x: Tensor, dtype: DType, copy: bool = False) -> Tensor | None:
    """A cast; None where `x` has the dtype."""
    like = views.to_dtype(x, dtype, copy)
    return None if like is x else machine.copied(x, like)


def sum_to_size(machine: Machine, x: Tensor, size: Sequence[int]) -> Tensor | None:
    """The sum over the dims along which a tensor of this size was broadcast."""
    extra = x.ndim - len(size)
    dims = [d for d in range(x.ndim) if d < extra or size[d - extra] == 1 != x.shape[d]]
    return machine.summed(x, dims, views.sum_to_size(x, size), False) if dims else None


def total(machine: Machine, x: Tensor, dim: Dims = None, keepdim: bool = False,
          dtype: DType | None = None) -> Tensor | None:
    """A sum."""
    return machine.summed(x, dim_of(dim), reductions.sum(x, dim, keepdim, dtype), False)


def mean(machine: Machine, x: Tensor, dim: Dims = None, keepdim: bool = False,
         dtype: DType | None = None) -> Tensor | None:
    """A mean."""
    return machine.summed(x, dim_of(dim), reductions.mean(x, dim, keepdim, dtype), True)


def dim_of(dim: Dims) -> Dims:
    """The dims of a reduction: none named are all."""
    return None if isinstance(dim, (tuple, list)) and not dim else dim


def expand_reduced(machine: Machine, g: Tensor, shape: Sequence[int], dim: Dims,
                   keepdim: bool) -> Tensor | None:
    """The gradient of a sum; None where it is a view of `g`."""
    like = reductions.expand_reduced(g, shape, dim, keepdim)
    return None if machine.knows((like,)) else machine.copied(g, like)


def grad_of_mean(machine: Machine, g: Tensor, shape: Sequence[int], dim: Dims,
                 keepdim: bool) -> Tensor | None:
    """The gradient of a mean."""
    if prod(shape):
        g = machine.elementwise(operations.div, (g, prod(shape) // g.numel()))
    if g is None:
        return None
    found = expand_reduced(machine, g, shape, dim, keepdim)
    return reductions.expand_reduced(g, shape, dim, keepdim) if found is None else found


KNOWN: dict[Any, Callable[..., Tensor | None]] = {
    views.to_dtype: to_dtype, operations.to.forward: to_dtype,
    views.sum_to_size: sum_to_size, operations.sum_to_size.forward: sum_to_size,
    reductions.sum: total, reductions.mean: mean,
    reductions.expand_reduced: expand_reduced, reductions.grad_of_mean: grad_of_mean,
}


def result_of(machine: Machine, function: Any, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Tensor | None:
    """The result of a function in a rehearsal, after its steps were recorded; or None."""
    known = KNOWN.get(function)
    if known is None:
        return None
    mark = machine.mark()
    result = known(machine, *args, **kwargs)
    if result is None:
        machine.back_to(mark)
    return result
