"""One example of a batch: what the function that `vmap` maps sees in the place of its tensors.

A `Batched` goes wherever a Tensor goes. It holds the whole batch, and has the shape of one
example; an operation on it is one operation on the batch, by the rule in rules.py. Where `vmap` is
nested, it holds a Batched of the `vmap` around it. Compiled functions hand operations over to it by
`__tensor_call__` (_core/operands.pyx), so Tensors never pay for it.
"""

import threading

from tensorlib._core.op import registry
from tensorlib._core.tensor import Tensor
from tensorlib.autograd.trace import Trace
from tensorlib.ops.declare import FUNCTIONS


class _Running(threading.local):
    """The batches that this thread maps over now, the innermost last."""

    def __init__(self):
        self.levels = []


_running = _Running()


class Level:
    """A batch of `size` examples while a function runs on it; `depth` tells nested ones apart."""

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        self.depth = len(_running.levels)
        _running.levels.append(self)
        return self

    def __exit__(self, *error):
        _running.levels.remove(self)


class Batched:
    """Every example of a batch at once: `value` has the batch as dim 0, this has the other dims."""

    RULES = {}           # what does an operation, by its name: filled by rules.py
    __slots__ = ("value", "level")

    def __init__(self, value, level):
        self.value = value
        self.level = level

    __class__ = property(lambda self: Tensor)       # isinstance(x, Tensor) holds, as in PyTorch

    @classmethod
    def __tensor_call__(cls, op, args, kwargs):
        if kwargs.get("out") is not None:
            raise RuntimeError(f"{op.name}: vmap takes no out=; use the returned tensor")
        level = innermost(args)
        if level not in _running.levels:
            raise RuntimeError(f"{op.name}: got a tensor of a vmap that has ended; return it from "
                               "the function to have the batch")
        count = len(op.arguments)
        attributes = dict(zip(op.attributes, op.defaults))
        attributes.update(zip(op.attributes, args[count:]))
        attributes.update((name, x) for name, x in kwargs.items() if name != "out")
        result = cls.RULES[op.name](op, level, args[:count], attributes)
        if isinstance(result, tuple):
            wrapped = [cls(x, level) for x in result]
            return type(result)(*wrapped) if hasattr(result, "_fields") else tuple(wrapped)
        return cls(result, level)

    # ---- what a tensor tells of itself

    shape = property(lambda self: self.value.shape[1:])
    ndim = property(lambda self: self.value.ndim - 1)
    dtype = property(lambda self: self.value.dtype)
    device = property(lambda self: self.value.device)
    itemsize = property(lambda self: self.value.itemsize)
    requires_grad = property(lambda self: self.value.requires_grad)

    def dim(self):
        """The number of dims of an example."""
        return self.ndim

    def size(self, dim=None):
        """The sizes of an example, or that of one dim."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self):
        """The number of elements of an example."""
        return self.shape.numel()

    def is_floating_point(self):
        """Whether the dtype is a floating one."""
        return self.value.is_floating_point()

    def like(self):
        """A tensor with the shape and dtype of an example."""
        return physical(self).new_empty(self.shape)

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
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
            "flow: its truth differs between the examples of the batch; use where")

    def item(self):
        """Raises: RuntimeError, since the examples have different numbers."""
        raise RuntimeError("vmap: It looks like you're calling .item() on a Tensor: its number "
                           "differs between the examples of the batch")

    __float__ = __int__ = tolist = numpy = __array__ = item

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

    def new_full(self, size, fill_value, **options):
        """A number in the given shape for each example."""
        return Batched(self.value.new_full((self.level.size, *size), fill_value, **options),
                       self.level)

    def _new(self, make, size, options):
        """What a `new_` method of Tensor makes, with the dim of the batch in front."""
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
        return self.copy_(value)

    def zero_(self):
        """This value, after all its elements became zero."""
        self.value.zero_()
        return self

    def __getitem__(self, key):
        return Batched.__tensor_call__(registry["getitem"], (self, key), {})

    def __setitem__(self, key, value):
        if innermost((key,)) is not None:
            raise RuntimeError("setitem: positions that differ between the examples of a batch "
                               "are not supported; use where or gather")
        if not is_view_key(key):
            raise RuntimeError("setitem: an example of a batch takes ints, slices, None and ... as "
                               "positions; use where")
        self[key].copy_(value)


def is_view_key(key):
    """Whether indexing with the key gives a view."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(part is None or part is Ellipsis or isinstance(part, slice)
               or (isinstance(part, int) and not isinstance(part, bool)) for part in parts)


def innermost(values):
    """The innermost level among the values and what tuples and lists among them hold."""
    found = None
    for value in values:
        if type(value) in (tuple, list):
            level = innermost(value)
        else:
            level = value.level if type(value) is Batched else None
        if level is not None and (found is None or level.depth > found.depth):
            found = level
    return found


def is_at(x, level):
    """Whether `x` differs between the examples of this batch."""
    return type(x) is Batched and x.level is level


def aligned(x, ndim):
    """The batch of `x` with dims of size 1 put in, so that its examples have `ndim` dims."""
    value = x.value
    for _ in range(ndim - x.ndim):
        value = value.unsqueeze(1)
    return value


def spread(x, level):
    """The batch of `x`, expanded to one where it is the same for all examples."""
    return x.value if is_at(x, level) else x.unsqueeze(0).expand((level.size, *x.shape))


def physical(x):
    """The Tensor behind a Batched."""
    while type(x) is Batched:
        x = x.value
    return x


# ---- derivatives of an example -------------------------------------------------------------------

class BatchedTrace:
    """A `Trace` inside of `vmap`: of whole batches, seen by its user as one example.

    Examples do not mix, so what is pulled back or pushed forward for the batch is that of each.
    """

    def __init__(self, tensors, complete, levels):
        self.levels = levels
        self.trace = Trace([self.lowered(x) for x in tensors], complete)
        self.inputs = self.raised(self.trace.inputs)

    def lowered(self, x):
        """The Tensor of all examples at all levels."""
        if x is None:
            return None
        for level in reversed(self.levels):
            x = spread(x, level)
        return x

    def raised(self, tensors):
        """Each Tensor of all examples as one."""
        for level in self.levels:
            tensors = [Batched(x, level) for x in tensors]
        return tensors

    def __enter__(self):
        self.trace.__enter__()
        return self

    def __exit__(self, *error):
        self.trace.__exit__(*error)

    linked = property(lambda self: self.trace.linked)

    def finish(self, outputs, beside=()):
        """As `Trace.finish`, of examples."""
        found = self.trace.finish([self.lowered(x) for x in outputs],
                                  [self.lowered(x) for x in beside])
        self.outputs = self.raised(self.trace.outputs)
        return self.raised(found)

    def pull(self, gradients, retain_graph):
        """As `Trace.pull`, of examples."""
        return self.raised(self.trace.pull([self.lowered(g) for g in gradients], retain_graph))

    def path(self):
        """As `Trace.path`."""
        return self.trace.path()

    def push(self, path, tangents):
        """As `Trace.push`, of examples."""
        return self.raised(self.trace.push(path, [self.lowered(t) for t in tangents]))


def traced(tensors, complete):
    """The trace of a function's inputs: that of whole batches where there are such now."""
    levels = tuple(_running.levels)
    return BatchedTrace(tensors, complete, levels) if levels else Trace(tensors, complete)


# ---- methods and operators -----------------------------------------------------------------------

def _inplace(function):
    """The method that writes what a function gives into the value itself."""
    def method(self, *args, **kwargs):
        result = function(self, *args, **kwargs)
        if result.level is not self.level:
            raise RuntimeError("vmap: a tensor of an outer batch can't be written in place with "
                               "values that differ between the examples of an inner one")
        if result.shape != self.shape:
            raise RuntimeError(f"{function.__name__}_: the result of shape {tuple(result.shape)} "
                               f"does not fit into {tuple(self.shape)}")
        return self.copy_(result)
    return method


def _operator(function, reflected):
    """The method of a binary operator, or of its reflected form."""
    if reflected:
        return lambda self, other: function(other, self)
    return lambda self, other: function(self, other)


def _attach_methods():
    """Every published method of Tensor, since those are functions of operations."""
    for name, method in vars(Tensor).items():
        if name in ("T", "mT", "mH"):
            setattr(Batched, name, property(method.fget))
        elif getattr(method, "__module__", None) != "tensorlib" or hasattr(Batched, name):
            continue
        elif not name.endswith("_"):
            setattr(Batched, name, method)
        elif name[:-1] in FUNCTIONS:
            setattr(Batched, name, _inplace(FUNCTIONS[name[:-1]]))


def _attach_operators():
    """Python's operators, as the operations they stand for."""
    named = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div",
             "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "matmul": "matmul",
             "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
             "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
    for operator, name in named.items():
        function = FUNCTIONS[name]
        setattr(Batched, f"__{operator}__", _operator(function, False))
        setattr(Batched, f"__r{operator}__", _operator(function, True))
        setattr(Batched, f"__i{operator}__", _inplace(function))
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        setattr(Batched, f"__{name}__", _operator(FUNCTIONS[name], False))
    for operator, name in {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}.items():
        setattr(Batched, f"__{operator}__", FUNCTIONS[name])
    Batched.__pos__ = lambda self: self
    Batched.__hash__ = object.__hash__


_attach_methods()
_attach_operators()
