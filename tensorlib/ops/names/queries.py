"""Queries of tensors: signs, sizes and devices, and the dtype of a result."""

from tensorlib._core.base.dtypes import get_default_dtype, promote_types
from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.properties import UntypedStorage
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, composite, publish
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import given, given_pairs, reals, refusals

add = FUNCTIONS["add"]


@composite(differentiable=False, reference=lambda x: bool(x.any()),
           samples=given(((),), ((1,),), ((1, 1),)),
           errors=refusals((RuntimeError, (2,)), (RuntimeError, (0,))), reads_values=True,
           complex=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of `input` is not 0. Raises: RuntimeError for others than one."""
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero: takes a tensor of one element, got {input.numel()}")
    return bool(input.detach())


@composite(differentiable=False, reference=lambda x, y: x.shape == y.shape,
           samples=given_pairs(((2, 3), (2, 3)), ((2,), (1,)), ((), ())), complex=True)
def is_same_size(input, other: Tensor) -> bool:
    """Whether both tensors have one shape."""
    return input.shape == other.shape


@composite(differentiable=False, reference=lambda x: x.dtype.kind in "ifc", samples=reals(-2, 2),
           complex=True)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype of `input` has negative numbers."""
    return input.dtype.is_signed


@composite(differentiable=False, reference=lambda x: False, samples=reals(-2, 2), complex=True)
def is_conj(input: Tensor) -> bool:
    """False: `conj` gives values, and no tensor's conjugation waits."""
    return False


@composite(differentiable=False, reference=lambda x: False, samples=reals(-2, 2), complex=True)
def is_neg(input: Tensor) -> bool:
    """False: no tensor's negation waits."""
    return False


@composite(differentiable=False, reference=lambda x: -1, samples=reals(-2, 2), complex=True)
def get_device(input: Tensor) -> int:
    """-1, as PyTorch says for the CPU."""
    return -1


def result_type(tensor: object, other: object):
    """The dtype of a sum of both, which are tensors or numbers.

    Raises: TypeError.

    >>> tensorlib.result_type(tensorlib.tensor([1, 2]), 1.0)
    tensorlib.float32
    """
    key = result_key(tensor), result_key(other), get_default_dtype()
    known = RESULT_TYPES.get(key)
    if known is None:
        known = dtype_of_sum(tensor, other)
        if None not in key:
            RESULT_TYPES[key] = known
    return known


RESULT_TYPES: dict = {}        # the dtypes of sums that were asked for


def result_key(x):
    """What the dtype of a sum depends on; None where that is not known."""
    if type(x) is Tensor:
        return x.dtype, x.ndim == 0
    kind = type(x)
    return kind if kind in (bool, float, complex) or kind is int and abs(x) < 2**63 else None


def dtype_of_sum(tensor, other):
    """The dtype of a sum of both, from a sum of none of their elements."""
    both = [x.detach()[:0] if isinstance(x, Tensor) and x.ndim else x for x in (tensor, other)]
    if not any(isinstance(x, Tensor) for x in both):
        both = [FUNCTIONS["scalar_tensor"](x, dtype=FUNCTIONS["tensor"](x).dtype) for x in both]
    if all(isinstance(x, Tensor) and x.dtype.name == "bool" for x in both):
        return promote_types(both[0].dtype, both[1].dtype)
    return add(*both).dtype


def typename(obj: object) -> str:
    """The type of a tensor as `x.type()` has it, the name with the module of anything else.

    >>> tensorlib.typename(tensorlib.ones(2)), tensorlib.typename(tensorlib.nn.Linear)
    ('tensorlib.FloatTensor', 'tensorlib.nn.modules.linear.Linear')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None) or "builtins"
    return named.__qualname__ if module == "builtins" else f"{module}.{named.__qualname__}"


def is_storage(obj: object) -> bool:
    """Whether something is the memory of tensors, as `x.untyped_storage()`.

    >>> tensorlib.is_storage(tensorlib.ones(2).untyped_storage())
    True
    """
    return isinstance(obj, UntypedStorage)


def is_tensor(obj: object) -> bool:
    """Whether something is a Tensor; a class with `__torch_function__` alone is not asked.

    >>> tensorlib.is_tensor(tensorlib.ones(2)), tensorlib.is_tensor(1.0)
    (True, False)
    """
    return isinstance(obj, Tensor)


def is_inference(input: Tensor) -> bool:
    """Whether a tensor was made in inference mode.

    >>> with tensorlib.inference_mode():
    ...     x = tensorlib.ones(2)
    >>> tensorlib.is_inference(x)
    True
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"is_inference: input must be a Tensor, not {type_name(input)}")
    return input.is_inference()


for _function in result_type, typename, is_storage, is_tensor, is_inference:
    publish(_function.__name__, _function, _function.__doc__, method=False)


declared(__name__)
