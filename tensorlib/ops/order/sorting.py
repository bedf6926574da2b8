"""`sort`, `argsort`, `topk` and `kthvalue`."""

import numpy as np

from tensorlib._core.base.results import result_type
from tensorlib._core.base.shape import wrap
from tensorlib._core.index.gather import take_along
from tensorlib._core.index.short_sort import ranked_along
from tensorlib._core.interpreters.foreign import is_looked_at_alone
from tensorlib._core.layout import views
from tensorlib._core.reduce.sort_keys import kth_places
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer, refuse_bools
from tensorlib.ops.declare import composite, op
from tensorlib.ops.index.indexing import gather
from tensorlib.ops.lazy import declared
from tensorlib.ops.order.ordering import (
    along_last, lying_as, memory_order, order_of_rows, refuse_no_place, top_places,
)
from tensorlib.ops.samples import given, refusals
from tensorlib.ops.shape.views import permute

Sorted = result_type("sort", "values indices")
Top = result_type("topk", "values indices")
Kth = result_type("kthvalue", "values indices")


def at_found(input, dim, index):
    """`gather` at positions that an operation has just found, which nobody else can write to."""
    if is_looked_at_alone(input):
        return take_along(input, wrap("gather", dim, input.ndim), index)
    return gather(input, dim, index)


# ---- all of them ---------------------------------------------------------------------------------

def order_of(x, dim=-1, descending=False, stable=False):
    """The reference of `argsort`."""
    x, last = np.atleast_1d(x), x.shape[dim] - 1 if x.ndim else 0
    if not descending:
        return np.argsort(x, dim, kind="stable")
    return last - np.flip(np.argsort(np.flip(x, dim), dim, kind="stable"), dim)


def in_order(x, dim=-1, descending=False, stable=False):
    """The reference of `sort`."""
    order = order_of(x, dim, descending).reshape(x.shape)
    return (np.take_along_axis(x, order, dim) if x.ndim else x), order


SORTED = (((5,),), ((3, 4), 0), ((2, 3, 4), 1, True), ((3, 4), -1, True), ((), 0), ((0, 3), 1))


@op(differentiable=False, reference=lambda *args, **options: in_order(*args, **options)[1],
    samples=given(*SORTED), errors=refusals((IndexError, (2, 3), 2)))
def argsort(input: Tensor, dim=-1, descending=False, *, stable=False):
    """The positions along `dim` that sort `input`; of equal elements the first comes first.

    NaN is greater than all numbers. The order is stable whatever `stable` says.

    Shapes: the input's. Raises: IndexError for a dim out of range.

    >>> tensorlib.tensor([3, 1, 2]).argsort()
    tensor([1, 2, 0])
    """
    descending = bool(descending)
    order = None if input.is_contiguous() else memory_order(input)

    def places(x):
        return order_of_rows(x, descending)
    if order is not None:
        return lying_as(input, dim, order,
                        lambda x, dim: [along_last("argsort", x, dim, places)], views.permute)[0]
    return along_last("argsort", input, dim, places)


@composite(outputs=("values", "indices"), out=True, reference=in_order, samples=given(*SORTED),
           errors=refusals((IndexError, (2, 3), 2)))
def sort(input: Tensor, dim=-1, descending=False, *, stable=False):
    """The elements in order along `dim`: a named tuple of the `values` and their `indices`.

    NaN is greater than all numbers. The order is stable whatever `stable` says.

    Shapes: the input's. Gradient: to the place that each element came from.
    Raises: IndexError for a dim out of range.

    >>> tensorlib.tensor([3., 1., 2.]).sort(descending=True)
    tensorlib.return_types.sort(
    values=tensor([3., 2., 1.]),
    indices=tensor([0, 2, 1]))
    """
    order = None if input.is_contiguous() else memory_order(input)
    if order is not None:
        return Sorted(*lying_as(input, dim, order, lambda *xs: sort(*xs, descending), permute))
    if is_looked_at_alone(input):
        found = ranked_along(input, dim, None, bool(descending))
        if found is not None:
            return Sorted(*found)
    indices = argsort(input, wrap("sort", dim, input.ndim), descending)
    return Sorted(at_found(input, dim, indices), indices)


@composite(out=True, reference=lambda x: np.sort(x, 0) if x.ndim else x,
           samples=given(((5,),), ((3, 2),), ((),), ((0, 2),)))
def msort(input: Tensor):
    """The elements in ascending order along dim 0.

    Shapes: the input's.

    >>> tensorlib.tensor([[3, 1], [2, 4]]).msort()
    tensor([[2, 1],
            [3, 4]])
    """
    return sort(input, 0)[0]


# ---- some of them --------------------------------------------------------------------------------

def best(x, k, dim=-1, largest=True, sorted=True):
    """The reference of `topk`."""
    values, order = in_order(x, dim, largest)
    key = (slice(None),) * (dim % x.ndim) + (slice(k),) if x.ndim else ...
    return values[key], order[key]


TOPS = (((5,), 2), ((3, 4), 3, 0), ((2, 3, 4), 1, 1, False), ((3, 4), 0), ((), 1), ((3, 4), 4, -1))
NO_SUCH_TOP = refusals((RuntimeError, (3,), 4), (RuntimeError, (3,), -1), (TypeError, (3,), 1.5),
                       (IndexError, (3,), 1, 1), (RuntimeError, (), 2))


@op(differentiable=False, public=False, method=False, takes="integer floating",
    reference=lambda *args: best(*args)[1], samples=given(*TOPS), errors=NO_SUCH_TOP)
def top_order(input: Tensor, k, dim=-1, largest=True):
    """The positions along `dim` of the k largest (or smallest) elements, in order: see `topk`.

    Raises: RuntimeError for more than there are and for bools, IndexError, TypeError.
    """
    refuse_bools("topk", input, RuntimeError)
    k, dim = integer("topk", "k", k), wrap("topk", dim, input.ndim)
    n = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError(f"topk: selected index k out of range: k is {k}, and dim {dim} has {n} "
                           "elements")
    count = k if input.ndim else 1
    return along_last("topk", input, dim, lambda x: top_places(x, count, bool(largest)), count)


@composite(tensors=("input",), outputs=("values", "indices"), out=True, takes="integer floating",
           reference=best, samples=given(*TOPS, ((4,), 2, -1, True, False)), errors=NO_SUCH_TOP)
def topk(input: Tensor, k, dim=-1, largest=True, sorted=True):
    """The k largest elements along `dim`, in order: a named tuple (values, indices).

    largest: False gives the smallest. NaN is greater than all numbers. The elements are sorted
    whatever `sorted` says, and of equal ones the first is chosen.

    Shapes: (*, N, *) -> (*, K, *). Gradient: to the places that were chosen.
    Raises: RuntimeError for a k that is negative or beyond the size of the dim and for bools,
    IndexError, TypeError.

    >>> tensorlib.tensor([3., 1., 2.]).topk(2)
    tensorlib.return_types.topk(
    values=tensor([3., 2.]),
    indices=tensor([0, 2]))
    """
    dim = -1 if dim is None else dim
    if is_looked_at_alone(input):
        found = ranked_along(input, dim, k, bool(largest))
        if found is not None:
            return Top(*found)
    indices = top_order(input, k, dim, largest)
    return Top(at_found(input, dim, indices), indices)


def one_of(x, k, dim=-1, keepdim=False):
    """The reference of `kthvalue`."""
    if not x.ndim:
        return x, np.int64(0)
    values, order = in_order(x, dim)
    picked = [np.take(y, [k - 1], dim) for y in (values, order)]
    return picked if keepdim else [y.squeeze(dim) for y in picked]


KTHS = (((5,), 2), ((3, 4), 3, 0), ((2, 3, 4), 1, 1, True), ((), 1), ((0, 3), 1))
NO_SUCH_KTH = refusals((RuntimeError, (3,), 4), (RuntimeError, (3,), 0), (TypeError, (3,), 1.5),
                       (IndexError, (3,), 1, 1), (IndexError, (0, 3), 1, 0))


@op(differentiable=False, public=False, method=False, takes="integer floating",
    reference=lambda x, k, dim=-1: one_of(x, k, dim, True)[1],
    samples=given(*(case[:3] for case in KTHS)), errors=NO_SUCH_KTH)
def kth_order(input: Tensor, k, dim=-1):
    """The positions along `dim`, which stays, of the k-th smallest elements: see `kthvalue`.

    Raises: RuntimeError for a k that there is not, IndexError, TypeError.
    """
    refuse_bools("kthvalue", input)
    k, dim = integer("kthvalue", "k", k), wrap("kthvalue", dim, input.ndim)
    refuse_no_place("kthvalue", input, dim)
    if not 1 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError(f"kthvalue: selected number k out of range for dim {dim}: {k}")
    return along_last("kthvalue", input, dim, lambda x: kth_places(x, k), 1)


def at_places(input, dim, indices, keepdim):
    """The elements at one position along a dim, and the positions; the dim stays with `keepdim`."""
    values = at_found(input, dim, indices)
    if keepdim or input.ndim == 0:
        return values, indices
    return values.squeeze(dim), indices.squeeze(dim)


@composite(tensors=("input",), outputs=("values", "indices"), out=True, takes="integer floating",
           reference=one_of, samples=given(*KTHS), errors=NO_SUCH_KTH)
def kthvalue(input: Tensor, k, dim=-1, keepdim=False):
    """The k-th smallest element along `dim`, counted from 1: a named tuple (values, indices).

    NaN is greater than all numbers.

    Shapes: (*, N, *) -> (*, *), with `keepdim` (*, 1, *). Gradient: to the place that was chosen.
    Raises: RuntimeError for a k that there is not, UnsupportedDtype for bools, IndexError for a dim
    out of range or empty, TypeError.

    >>> tensorlib.tensor([3., 1., 2.]).kthvalue(2)
    tensorlib.return_types.kthvalue(
    values=tensor(2.),
    indices=tensor(2))
    """
    dim = -1 if dim is None else dim
    return Kth(*at_places(input, dim, kth_order(input, k, dim), keepdim))


declared(__name__)
