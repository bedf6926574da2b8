"""`Parameter` and `Buffer`: the tensors that modules own, learnt or only kept."""

from typing import Any

from tensorlib import Tensor, empty, strided
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import deferred
from tensorlib._core.interpreters.foreign import refuse_override

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter",
           "UninitializedTensorMixin", "is_lazy"]

sparse_parameter = deferred("tensorlib.nn.sparse_parameter", "sparse_parameter")


class Parameter(Tensor):
    """A tensor that a module learns: one that is assigned to a module is among its parameters.

    It shares the memory of `data`, and requires gradients unless told otherwise.

    >>> weight = Parameter(tensorlib.ones(2))
    >>> weight
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    >>> (weight * weight).sum().backward()
    >>> weight.grad
    tensor([2., 2.])

    Raises: TypeError for what is not a tensor, RuntimeError for integers that require gradients.
    """

    __torch_function__ = staticmethod(refuse_override)

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> "Parameter":
        if data is not None and isinstance(data, Tensor) and data.layout is not strided:
            return sparse_parameter(data, requires_grad)
        return showing(cls, data, requires_grad)

    def __init__(self, *data: Any, **options: Any) -> None:
        """`__new__` made all of it, also that of a subclass which takes other arguments."""

    def __deepcopy__(self, memo):
        """A parameter with elements of its own, and no gradient, as in PyTorch."""
        made = super().__deepcopy__(memo)
        made.grad = None
        return made

    def __repr__(self) -> str:
        text = plain_text(self) if type(self) is Parameter else f"Parameter({super().__repr__()})"
        return f"Parameter containing:\n{text}"


class Buffer(Tensor):
    """A tensor that a module keeps and does not learn, such as a running mean.

    One that is assigned to a module is among its buffers, and, if `persistent`, in its
    `state_dict`.

    >>> module = Module()
    >>> module.steps = Buffer(tensorlib.zeros(()))
    >>> dict(module.state_dict())
    {'steps': tensor(0.)}
    """

    __torch_function__ = staticmethod(refuse_override)
    persistent = True

    def __new__(cls, data: Tensor | None = None, persistent: bool = True) -> "Buffer":
        made = showing(cls, data, bool(getattr(data, "requires_grad", False)))
        made.persistent = persistent
        return made

    def __init__(self, *data: Any, **options: Any) -> None:
        """`__new__` made all of it, also that of a subclass which takes other arguments."""

    def __repr__(self) -> str:
        return plain_text(self)


def showing(cls: type[Tensor], data: Tensor | None, requires_grad: bool):
    """A new tensor of a class, a leaf that shows the elements of `data`. Raises: TypeError."""
    made = Tensor.__new__(cls)
    if data is not None:
        if not isinstance(data, Tensor):
            raise TypeError(f"{cls.__name__}: takes a Tensor, got {type_name(data)}")
        if data.layout is not strided:
            raise TypeError(f"{cls.__name__}: takes a dense tensor, got one of {data.layout}; "
                            "register_buffer keeps a sparse one")
        made.data = data
    made.requires_grad = requires_grad
    return made


def plain_text(tensor: Tensor) -> str:
    """The text of the tensor itself, whatever the name of its class."""
    return repr(tensor.detach().requires_grad_(tensor.requires_grad))


class UninitializedTensorMixin(Tensor):
    """A placeholder for a tensor whose shape is not yet known."""

    __torch_function__ = staticmethod(refuse_override)
    cls_to_become: type[Tensor]

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Turns this into a tensor of the given shape, uninitialised; who holds it goes on to."""
        self.data = empty(shape, device=device, dtype=dtype or self.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        """Raises: RuntimeError, since it is not known yet."""
        raise RuntimeError(
            "the shape of an uninitialized parameter or buffer is not known: call forward() of the "
            "lazy module once, so that it sees an input")

    def numel(self) -> int:
        """Raises: ValueError, since it is not known yet: parameters would be counted as none."""
        raise ValueError(
            "the number of elements of an uninitialized parameter or buffer is not known: call "
            "forward() of the lazy module once, so that it sees an input")

    nelement = numel

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self.arguments())
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return type(self), self.arguments()


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet: `materialize(shape)` makes it a `Parameter`.

    >>> weight = UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> type(weight).__name__, weight.shape
    ('Parameter', tensorlib.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device=None,
                dtype=None) -> "UninitializedParameter":
        return showing(cls, empty(0, device=device, dtype=dtype), requires_grad)

    def arguments(self):
        """What makes another one like this."""
        return self.requires_grad, None, self.dtype


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet: `materialize(shape)` makes it a `Buffer`."""

    cls_to_become = Buffer

    def __new__(cls, requires_grad: bool = False, device=None, dtype=None,
                persistent: bool = True) -> "UninitializedBuffer":
        made = showing(cls, empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        return made

    def arguments(self):
        """What makes another one like this."""
        return self.requires_grad, None, self.dtype, self.persistent


_ParameterMeta = type(Parameter)               # PyTorch's name of its metaclass


def is_lazy(tensor) -> bool:
    """Whether a parameter or buffer waits for its shape."""
    return isinstance(tensor, UninitializedTensorMixin)

explain(vars(), __all__)
