"""The memory of tensors: explicit sizes, strides and storages, and shared memory.

All of it is made of `x.data = y`, by which a tensor shows the elements of another one.
"""

from math import prod
from mmap import mmap
from weakref import WeakValueDictionary

from tensorlib._core.arrays.arrays import frombuffer
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.formats import (
    channels_last, channels_last_3d, contiguous_format, preserve_format,
)
from tensorlib._core.interpreters.foreign import is_looked_at_alone
from tensorlib._core.layout.overlapping import are_plain_ints, extent, strided_over
from tensorlib._core.tensor.properties import elements_of
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import FUNCTIONS, publish
from tensorlib.ops.lazy import declared
from tensorlib.ops.publish import attach_checked

empty = FUNCTIONS["empty"]


# ---- new tensors with strides --------------------------------------------------------------------

def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False,
                  pin_memory=False):
    """A tensor with these sizes and strides, whose elements are whatever the memory holds.

    The memory is as small as they allow; with strides of 0 places share elements.
    Shapes: size. Raises: RuntimeError for negative sizes or strides, for sizes and strides of
    different numbers and for what is too large, TypeError for what are not ints.

    >>> tensorlib.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    size, stride = ints("empty_strided", "size", size), ints("empty_strided", "stride", stride)
    x = empty(extent("empty_strided", size, stride), dtype=dtype, layout=layout, device=device,
              pin_memory=pin_memory)
    if is_looked_at_alone(x):
        x = strided_over(x, size, stride)
    else:                                     # where something observes operations
        x.data = x.as_strided(size, stride)
    return x.requires_grad_() if requires_grad else x


def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None,
                   requires_grad=False, pin_memory=False):
    """A tensor without gaps whose dims lie in another order; its elements are not set.

    physical_layout: the dims from the one with the largest stride to that with the smallest.
    Shapes: size. Raises: RuntimeError for what is not an order of the dims and for sizes that are
    negative or too large, TypeError for what are not ints.

    >>> tensorlib.empty_permuted((2, 3, 4), (0, 2, 1)).stride()      # dim 1 is the innermost
    (12, 1, 3)
    """
    size = ints("empty_permuted", "size", size)
    order = ints("empty_permuted", "physical_layout", physical_layout)
    if sorted(order) != list(range(len(size))):
        raise RuntimeError(f"empty_permuted: physical_layout must have each of the {len(size)} "
                           f"dims once, got {order}")
    x = empty([size[dim] for dim in order], dtype=dtype, layout=layout, device=device,
              pin_memory=pin_memory)
    x.data = x.permute([order.index(dim) for dim in range(len(size))])
    return x.requires_grad_() if requires_grad else x


def new_empty_strided(self, size, stride, dtype=None, layout=None, device=None, pin_memory=False,
                      requires_grad=False):
    """As `empty_strided`, by default in the dtype of this tensor and where it is."""
    return empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, layout=layout,
                         device=self.device if device is None else device, pin_memory=pin_memory,
                         requires_grad=requires_grad)


def ints(name, word, values):
    """The ints of a sequence, as a tuple. Raises: TypeError."""
    if are_plain_ints(values):
        return values
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{name}: {word} must be a sequence of ints, got {values!r}")
    return tuple([integer(name, f"each {word}", each) for each in values])


# ---- another size --------------------------------------------------------------------------------

def resize_(self, *sizes, size=None, memory_format=None):
    """This tensor with other sizes, over the same memory in its order from where it begins.

    One of these sizes stays as it lies.

    size: the sizes as one sequence, as `sizes` may be given, too.

    Where the memory does not suffice, the tensor gets new memory, with the old elements first and
    any others after them; views of the old memory stay with that.

    memory_format: in which order the elements of the memory are, row by row unless given.
    Raises: RuntimeError for a tensor that requires a gradient, for negative sizes and for a format
    that tensors of these dims do not have; TypeError.

    >>> tensorlib.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    if size is not None:
        if sizes:
            raise TypeError("resize_: takes sizes one by one or as size=, not both")
        sizes = (size,)
    shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    shape = ints("resize_", "size", shape)
    if memory_format is None and shape == self.shape and not self.requires_grad:
        return self
    count = prod(shape)
    if shape and min(shape) < 0 or count * self.itemsize >= 2**63:
        raise RuntimeError(f"resize_: sizes must not be negative, or too large, got {shape}")
    refuse_gradient("resize_", self)
    if memory_format not in (None, contiguous_format, *IMAGE_DIMS):
        raise RuntimeError(f"resize_: unsupported memory_format {memory_format}")
    dims = IMAGE_DIMS.get(memory_format, len(shape))
    if dims != len(shape):
        raise RuntimeError(f"resize_: memory_format {memory_format} is for tensors of {dims} dims, "
                           f"got sizes {shape}")
    if memory_format is None and shape == self.shape:
        return self
    held = self.data
    if count == held.numel() and held.is_contiguous():
        self.data = in_memory_order(held.view(-1), shape, memory_format)
        return self
    whole = held.as_strided(
        (self.untyped_storage().nbytes() // self.itemsize - self.storage_offset(),), (1,))
    if count > whole.numel():
        longer = self.new_empty(count)
        longer[:whole.numel()] = whole
        whole = longer
    self.data = in_memory_order(whole[:count], shape, memory_format)
    return self


IMAGE_DIMS = {channels_last: 4, channels_last_3d: 5}


def in_memory_order(elements, shape, memory_format):
    """A vector as a tensor whose elements lie in this order."""
    if memory_format not in IMAGE_DIMS:
        return elements.view(shape)
    return elements.view(shape[:1] + shape[2:] + shape[1:2]).movedim(-1, 1)


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format=None):
    """`input` with the sizes of `the_template`, as `resize_` gives it.

    memory_format: as of `resize_`; `preserve_format` is the one of the template.
    Raises: as `resize_`.
    """
    if memory_format is preserve_format:
        formats = (form for form, dims in IMAGE_DIMS.items() if the_template.ndim == dims
                   and the_template.is_contiguous(memory_format=form))
        memory_format = contiguous_format if the_template.is_contiguous() else next(
            formats, contiguous_format)
    return resize_(input, the_template.shape, memory_format=memory_format)


def as_strided_(input: Tensor, size, stride, storage_offset=None):
    """`input` with other sizes and strides, over the elements of its memory.

    storage_offset: the place of the first, by default that of `input`.
    Raises: RuntimeError as `as_strided`, and for a tensor that requires a gradient; TypeError.

    >>> tensorlib.arange(4).as_strided_((2,), (3,))
    tensor([0, 3])
    """
    refuse_gradient("as_strided_", input)
    input.data = input.data.as_strided(size, stride, storage_offset)
    return input


def refuse_gradient(name, x):
    """Raises RuntimeError for a tensor whose graph would not know of what is done to it."""
    if x.requires_grad:
        raise RuntimeError(f"{name}: the tensor requires a gradient; call it on x.detach()")


# ---- the memory of another tensor ----------------------------------------------------------------

def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """This tensor, which now shows the elements of `source`; without it, one with no elements.

    source: a tensor of the same dtype, or a storage. size, stride, storage_offset: which elements
    of its memory are shown, by default those that a tensor shows itself, and all of a storage;
    without strides, row by row.
    Raises: RuntimeError for another dtype, for places that are not in the memory and for a tensor
    that requires a gradient; TypeError for a `source` that is neither.

    >>> x = tensorlib.arange(6)
    >>> tensorlib.arange(0).set_(x, 1, (2, 2))
    tensor([[1, 2],
            [3, 4]])
    """
    refuse_gradient("set_", self)
    if source is None:
        source = self.new_empty(0)
    is_storage = hasattr(type(source), "untyped")
    if not isinstance(source, Tensor) and not is_storage:
        raise TypeError(f"set_: source must be a Tensor or a storage, not {type_name(source)}")
    given = getattr(source, "dtype", self.dtype)          # bytes have none
    if given != self.dtype:
        raise RuntimeError(f"set_: expected a source of dtype {self.dtype}, got {given}")
    shown = elements_of(source.untyped(), given) if is_storage else source.data
    if size is not None:
        size = ints("set_", "size", size)
        if stride is None:
            stride = [prod(size[dim + 1:]) for dim in range(len(size))]
        shown = shown.as_strided(size, ints("set_", "stride", stride), storage_offset)
    elif stride is not None or storage_offset:
        raise TypeError("set_: takes stride and storage_offset with size alone")
    self.data = shown
    return self


def is_set_to(self, tensor: Tensor):
    """Whether both show the same elements of the same memory, with the same sizes and strides."""
    return self.dtype == tensor.dtype and all(read(self) == read(tensor) for read in (
        Tensor.size, Tensor.stride, Tensor.data_ptr))


# ---- memory that processes share -----------------------------------------------------------------

SHARED = WeakValueDictionary()         # what is mapped, by its address


def in_shared_memory(x):
    """A tensor's elements in memory that stays common to this process and those forked from it."""
    if not x.nbytes or is_shared(x):
        return x
    mapped = mmap(-1, x.nbytes)                           # anonymous, and MAP_SHARED
    flat = frombuffer(mapped, dtype=x.dtype)
    SHARED[flat.data_ptr()] = mapped
    return flat.reshape(x.shape).copy_(x)


def share_memory_(self):
    """This tensor, its elements in memory that forked processes write to as well.

    Its views made before stay with the old memory. A process that is started in another way gets
    values, and shares nothing.
    """
    if not is_shared(self):
        self.data = in_shared_memory(self.detach())
    return self


def is_shared(self):
    """Whether processes that are forked have the tensor's memory in common with this one."""
    return self.untyped_storage().data_ptr() in SHARED


for _function in (empty_strided, empty_permuted):
    publish(_function.__name__, _function, _function.__doc__, method=False)
for _function in (resize_as_, as_strided_):
    publish(_function.__name__, _function, _function.__doc__)
for _method in (new_empty_strided, resize_, set_, is_set_to, share_memory_, is_shared):
    attach_checked(_method.__name__, _method)

declared(__name__)
