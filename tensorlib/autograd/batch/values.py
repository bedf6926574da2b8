"""`Batched`: the proxy of one example of a batch in a function under `vmap`.

A `Batched` is used like a Tensor. It holds the whole batch, and has the shape of one example; an
operation on it is one operation on the batch, by the rule in rules.py. In a nested `vmap` it holds
a Batched of the outer one. Compiled functions dispatch operations to it by `__tensor_call__`
(_core/interpreters/foreign.pyx), which costs Tensors nothing.
"""

from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

from tensorlib._core.base.dtypes import can_cast
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.settings import Held, Setting
from tensorlib._core.create import generator
from tensorlib._core.interpreters.levels import running_levels, set_levels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.errors import DataDependent
from tensorlib.ops.lazy import name_of
from tensorlib.ops.shape.parts import imag_of, real_of, set_imag, set_real
from tensorlib.ops.proxies import attach_methods, attach_operators

SHARED_WRITE = ("a tensor that all examples of a batch share can't be written with what differs "
                "between them; clone() or new_zeros() of an example can")


class Level(Setting):
    """A batch of `size` examples while a function runs on it; `depth` is that of nesting.

    randomness: how random numbers are drawn, as in `vmap`.
    """

    def __init__(self, size, randomness="same"):
        self.size = size
        self.randomness = randomness

    swaps = (set_levels, generator.set_plan)

    @property
    def values(self):
        self.around = running_levels()
        self.depth = len(self.around)
        levels = (*self.around, self)
        return levels, drawing_plan(levels)

    def outside(self):
        """A context for what works on the whole batch, as if this one were not mapped over."""
        return Held(self.swaps, (self.around, drawing_plan(self.around)))


def outside_of_all():
    """A context for what works on whole batches only, as if none were mapped over."""
    return Held(Level.swaps, ((), None))


def drawing_plan(levels):
    """How numbers are drawn at these levels, as `generator.set_plan` takes it."""
    if any(level.randomness == "error" for level in levels):
        return False
    apart = [level for level in levels if level.randomness == "different"]
    if not apart:
        return None
    return tuple(level.size for level in apart), partial(as_example, levels=apart)


def as_example(x, levels):
    """A Tensor with the batches of these levels, the outermost first, as one example."""
    for level in levels:
        x = Batched(x, level)
    return x


def running_level(name, args):
    """The innermost batch among arguments. Raises: RuntimeError where its `vmap` has ended."""
    level = innermost(args)
    if level not in running_levels():
        raise RuntimeError(f"{name}: got a tensor of a vmap that has ended; return it from the "
                           "function to have the batch")
    return level


def seen(result, level):
    """The result of a rule, a batch or a tuple of batches, as Batched values."""
    if not isinstance(result, tuple):
        return Batched(result, level)
    wrapped = [Batched(x, level) for x in result]
    return type(result)(*wrapped) if hasattr(result, "_fields") else tuple(wrapped)


class VmapInfo(NamedTuple):
    """The `info` argument of batching rules from outside."""

    batch_size: int
    randomness: str


RULES = {}           # by the names of operations
ANYWHERE = set()     # the names of those whose attributes may differ between examples
OF_CALLS = {}        # of composed operations: rules for the whole call
OF_KINDS = {}        # for "elementwise", and for "others" without a rule


def batched(*operations, anywhere=False):
    """Registers the batching rule of operations, given as records or functions.

    anywhere: attributes may be Batched as well.
    """
    names = [name_of(operation) for operation in operations]

    def register(function):
        RULES.update(dict.fromkeys(names, function))
        ANYWHERE.update(names if anywhere else ())
        return function
    return register


def batched_call(*operations):
    """Registers the batching rule of calls of composed operations.

    It takes the operation, the level and the unchanged arguments of the call; if it returns
    NotImplemented, the rules of the parts apply.
    """
    names = [name_of(operation) for operation in operations]

    def register(function):
        OF_CALLS.update(dict.fromkeys(names, function))
        return function
    return register


def batched_kind(kind):
    """Registers the batching rule of all operations of a kind: "elementwise" or "others"."""
    return partial(OF_KINDS.setdefault, kind)


def has_rule(op):
    """Whether an operation runs on a batch at once."""
    return (op.elementwise or op.name in RULES or op.name in OF_CALLS
            or hasattr(op.function, "batching"))


def tensor_argument(op, place, x):
    """An argument of an operation as a Tensor. Raises: TypeError if it cannot be converted."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (int, float, complex)) or hasattr(x, "__array__"):
        return FUNCTIONS["asarray"](x)
    raise TypeError(f"{op.name}: {op.arguments[place]} must be a Tensor, not {type_name(x)}")


def called(op, args, kwargs):
    """The result of a composed operation by the rule of its calls, or NotImplemented."""
    rule = OF_CALLS.get(op.name)
    if rule is None:
        return NotImplemented
    level = running_level(op.name, (*args, *kwargs.values()))
    result = rule(op, level, *args, **kwargs)
    return result if result is NotImplemented else seen(result, level)


class Batched:
    """Every example of a batch at once: `value` has the batch as dim 0, this has the other dims."""

    __slots__ = ("value", "level")

    def __init__(self, value, level):
        self.value = value
        self.level = level

    # isinstance(x, Tensor) is true, as in PyTorch, since mapped functions test for it. A subclass
    # of Tensor would need elements that kernels could read.
    __class__ = property(lambda self: Tensor)

    @classmethod
    def __tensor_call__(cls, op, args, kwargs):
        """The result of an operation by its rule; NotImplemented if those of its parts apply."""
        if op.linearity == "composite":
            return called(op, args, kwargs)
        if kwargs and kwargs.get("out") is not None:
            raise RuntimeError(f"{op.name}: vmap takes no out=; use the returned tensor")
        level = running_level(op.name, args)
        if op.elementwise:                             # these have no attributes
            return cls(OF_KINDS["elementwise"](op, level, args, None), level)
        count = len(op.arguments)
        if op.name not in ANYWHERE and innermost(args[:count]) is not level:
            raise DataDependent(f"{op.name}: vmap: what differs between the examples of the batch "
                                "stands where no tensor goes")
        if not op.variadic:
            args = (*map(tensor_argument, repeat(op), range(count), args), *args[count:])
        attributes = dict(zip(op.attributes, op.defaults))
        attributes.update(zip(op.attributes, args[count:]))
        attributes.update((name, x) for name, x in kwargs.items() if name != "out")
        run = RULES.get(op.name) or OF_KINDS["others"]
        return seen(run(op, level, args[:count], attributes), level)

    # ---- attributes

    shape = property(lambda self: self.value.shape[1:])
    ndim = property(lambda self: self.value.ndim - 1)
    dtype = property(lambda self: self.value.dtype)
    device = property(lambda self: self.value.device)
    itemsize = property(lambda self: self.value.itemsize)
    requires_grad = property(lambda self: self.value.requires_grad)

    real = property(real_of, set_real)
    imag = property(imag_of, set_imag)
    is_leaf = property(lambda self: self.proxied().is_leaf)
    grad_fn = property(lambda self: self.proxied().grad_fn)

    def dim(self):
        """The number of dims of an example."""
        return self.ndim

    def size(self, dim=None):
        """The sizes of an example, or that of one dim."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self):
        """The number of elements of an example."""
        return self.shape.numel()

    def nelement(self):
        """The number of elements of an example."""
        return self.numel()

    def element_size(self):
        """Bytes of one element."""
        return self.itemsize

    def is_floating_point(self):
        """Whether the dtype is a floating one."""
        return self.value.is_floating_point()

    def is_complex(self):
        """Whether the dtype is a complex one."""
        return self.value.is_complex()

    def is_contiguous(self):
        """Whether the elements of the batch lie in row-major order without gaps."""
        return self.value.is_contiguous()

    def stride(self, dim=None):
        """The steps between elements of an example along each dim, or along one."""
        steps = self.value.stride()[1:]
        return steps if dim is None else steps[dim]

    def like(self):
        """A tensor with the shape and dtype of an example."""
        return self.proxied().new_empty(self.shape)

    def proxied(self):
        """The Tensor of all examples, with a dim for each batch."""
        return self.value if type(self.value) is Tensor else self.value.proxied()

    def proxy_of(self, whole):
        """`whole`, which has the dims of batches that `proxied()` has, as one example."""
        inner = whole if type(self.value) is Tensor else self.value.proxy_of(whole)
        return Batched(inner, self.level)

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __repr__(self):
        return f"Batched({self.value!r}, level={self.level.depth})"

    def __bool__(self):
        raise DataDependent(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
            "flow: its truth differs between the examples of the batch; use where")

    def item(self, *_, **__):
        """Raises: RuntimeError, since the examples have different numbers."""
        raise DataDependent("vmap: It looks like you're calling .item() on a Tensor: its number "
                            "differs between the examples of the batch")

    def __reduce_ex__(self, protocol):
        raise RuntimeError("vmap: an example of a batch can't be pickled or copied as an object; "
                           "clone() it")

    __float__ = __int__ = __index__ = tolist = numpy = to_numpy = item

    def __array__(self, dtype=None, copy=None):
        """Raises: RuntimeError, since the examples have different elements."""
        raise DataDependent("vmap: a Tensor that differs between the examples of the batch can't "
                            "become an array; numpy.stack([...]) puts Tensors together")

    def __getattr__(self, name):
        if hasattr(Tensor, name):
            raise RuntimeError(f"vmap: Tensor.{name} is not supported on an example of a batch")
        raise AttributeError(f"'Tensor' object has no attribute {name!r}")

    # ---- others of its kind

    def detach(self):
        """The same examples, outside the graph."""
        return Batched(self.value.detach(), self.level)

    def new_zeros(self, *size, **options):
        """Zeros of the given shape for each example."""
        return self._new(self.value.new_zeros, size, options)

    def new_ones(self, *size, **options):
        """Ones of the given shape for each example."""
        return self._new(self.value.new_ones, size, options)

    def new_empty(self, *size, **options):
        """Uninitialised elements of the given shape for each example."""
        return self._new(self.value.new_empty, size, options)

    def new_tensor(self, data, **options):
        """As `Tensor.new_tensor`: the same for all examples."""
        return self.proxied().new_tensor(data, **options)

    def new_full(self, size, fill_value, **options):
        """A number in the given shape for each example."""
        return Batched(self.value.new_full((self.level.size, *size), fill_value, **options),
                       self.level)

    def _new(self, make, size, options):
        """The result of a `new_` method of Tensor, with the batch as first dim."""
        size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return Batched(make((self.level.size, *size), **options), self.level)

    # ---- in place

    def copy_(self, src):
        """This value, after `src` was written over each example."""
        if isinstance(src, Tensor) and src.ndim > self.ndim:
            raise RuntimeError(f"copy_: shape {tuple(src.shape)} does not expand to "
                               f"{tuple(self.shape)}")
        self.value.copy_(aligned(src, self.ndim) if is_at(src, self.level) else src)
        return self

    def fill_(self, value):
        """This value, after all its elements became `value`."""
        if isinstance(value, Tensor) and value.ndim:
            raise RuntimeError("fill_: value must be a number or a 0-d tensor, got "
                               f"{value.ndim} dims")
        return self.copy_(value)

    def zero_(self):
        """This value, filled with zeros."""
        self.value.zero_()
        return self

    def bernoulli_(self, p=0.5, *, generator=None):
        """This value, filled with 1 with probability `p`, and with 0 otherwise."""
        if isinstance(p, Tensor):
            return self.copy_(FUNCTIONS["bernoulli"](p.expand(self.shape), generator=generator))
        return self.drawn_("bernoulli_", (p,), {"generator": generator})

    def drawn_(self, name, args, options):
        """This example, overwritten with numbers that method `name` of a Tensor draws."""
        return self.copy_(self.drawn_like(name, args, options))

    def drawn_like(self, name, args, options):
        """A new tensor like an example, of numbers that method `name` of a Tensor draws."""
        plan = drawing_plan(running_levels())
        fresh = self.like()
        if not plan:
            return getattr(fresh, name)(*args, **options)
        sizes, seen = plan
        fresh = fresh.new_empty(sizes + tuple(self.shape))
        before = generator.set_plan(None)
        try:
            getattr(fresh, name)(*args, **options)
        finally:
            generator.set_plan(before)
        return seen(fresh)

    def overwritten_by(self, function, args, kwargs):
        """This value, after the result of a function was written to it."""
        return _inplace(function)(self, *args, **kwargs)

    # ---- NumPy's functions

    def __array_ufunc__(self, *args, **options):
        return Tensor.__array_ufunc__(self, *args, **options)

    def __array_function__(self, *args, **options):
        return Tensor.__array_function__(self, *args, **options)


def innermost(values):
    """The innermost level among the values, also in nested tuples and lists."""
    found = None
    nests, seen = [values], set()        # each is visited once: a list may contain itself
    while nests:
        nest = nests.pop()
        if id(nest) in seen:
            continue
        seen.add(id(nest))
        for value in nest:
            if type(value) in (tuple, list):
                nests.append(value)
            elif type(value) is Batched and (found is None or value.level.depth > found.depth):
                found = value.level
    return found


def is_at(x, level):
    """Whether `x` differs between the examples of this batch."""
    return type(x) is Batched and x.level is level


def aligned(x, ndim):
    """The batch of `x` with dims of size 1 put in, so that its examples have `ndim` dims."""
    value = x.value
    for _ in range(ndim + 1 - value.ndim):
        value = value.unsqueeze(1)
    return value


def batch_of(x, level):
    """The batch of `x`, expanded to one where it is the same for all examples."""
    return x.value if is_at(x, level) else x.unsqueeze(0).expand((level.size, *x.shape))


# ---- methods and operators -----------------------------------------------------------------------

def _inplace(function):
    """The in-place method of a function.

    That of a view function only changes the layout of the value.
    """
    def take_layout(self, *args, **kwargs):
        self.value = function(self, *args, **kwargs).value
        return self

    def method(self, *args, **kwargs):
        old = self
        if any(getattr(x, "requires_grad", False) for x in (self, *args, *kwargs.values())):
            old = FUNCTIONS["clone"](self)      # the graph may have saved it, and it is overwritten
        result = function(*(old if x is self else x for x in (self, *args)), **kwargs)
        if result.level is not self.level:
            raise RuntimeError("vmap: a tensor of an outer batch can't be written in place with "
                               "values that differ between the examples of an inner one")
        name = f"{function.__name__}_"
        if result.shape != self.shape:
            raise RuntimeError(f"{name}: the result of shape {tuple(result.shape)} does not fit "
                               f"into {tuple(self.shape)}")
        if not can_cast(result.dtype, self.dtype):
            raise RuntimeError(f"{name}: result type {result.dtype} can't be cast to the desired "
                               f"output type {self.dtype}")
        return self.copy_(result)
    return take_layout if function.op.is_view else method


def _drawing(name):
    """The method that overwrites a value with numbers drawn."""
    return lambda self, *args, **options: self.drawn_(name, args, options)


def _attach_facts():
    """An attribute of the tensor of the whole batch."""
    for name, method in vars(Tensor).items():
        if name == "layout" or (
                name.startswith("is_") and type(method) is property and name not in vars(Batched)):
            setattr(Batched, name, property(attrgetter(f"value.{name}")))


def _attach_draws():
    """The methods that draw."""
    for name in ("uniform_", "normal_", "random_", "cauchy_", "exponential_", "geometric_",
                 "log_normal_"):
        setattr(Batched, name, _drawing(name))


_attach_facts()
attach_methods(Batched, _inplace)
_attach_draws()
attach_operators(Batched, _inplace)
