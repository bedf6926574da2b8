"""Fake quantization: numbers rounded to the values of few bits, for quantization-aware training."""

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.arrays.convert import tensor
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise.comparison import where
from tensorlib.ops.publish import publish


def rounded(name, input, scale, zero_point, quant_min, quant_max):
    """Each element as the nearest of the numbers that the integers of a range stand for."""
    if quant_min > quant_max:
        raise RuntimeError(f"{name}: `quant_min` should be less than or equal to `quant_max`, got "
                           f"{quant_min} and {quant_max}")
    if not input.is_floating_point():
        raise UnsupportedDtype(f"{name}: takes floating dtypes, got {input.dtype}")
    scale, zero_point = scale.detach(), zero_point.detach()
    if not bool(((zero_point >= quant_min) & (zero_point <= quant_max)).all()):
        raise RuntimeError(f"{name}: `zero_point` must be between `quant_min` and `quant_max`, "
                           f"{quant_min} and {quant_max}")
    places = (input.detach() * scale.reciprocal()).round() + zero_point
    kept = (places >= quant_min) & (places <= quant_max)
    found = ((places.clamp(quant_min, quant_max) - zero_point) * scale).to(input.dtype)
    passing = where(kept, input, 0.0)
    return found + (passing - passing.detach())     # 0, with the gradient of what is not cut off


def fake_quantize_per_tensor_affine(input: Tensor, scale: float | Tensor, zero_point: int | Tensor,
                                    quant_min: int, quant_max: int) -> Tensor:
    """(q - zero_point) * scale for the integer q from quant_min to quant_max that is nearest.

    zero_point: the integer that stands for 0.
    quant_min, quant_max: the least and the largest integer.

    Gradient: that of the input where it lies in the range, 0 beyond.

    Raises: RuntimeError for a range that is empty or lacks zero_point, and for other dtypes than
    floating ones.

    >>> x = tensorlib.tensor([0.12, 0.57, 9.0])
    >>> tensorlib.fake_quantize_per_tensor_affine(x, 0.25, 0, -8, 7)
    tensor([0.0000, 0.5000, 1.7500])
    """
    given = [x if isinstance(x, Tensor) else tensor(x, dtype=dtype) for x, dtype in (
        (scale, BY_NAME["float32"]), (zero_point, BY_NAME["int64"]))]
    return rounded("fake_quantize_per_tensor_affine", input, *(x.reshape(()) for x in given),
                   quant_min, quant_max)


def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int,
                                     quant_min: int, quant_max: int) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero_point for each place of `axis`.

    zero_point: the integers that stand for 0.
    quant_min, quant_max: the least and the largest integer.

    Raises: as there, RuntimeError for other sizes, IndexError.

    >>> x = tensorlib.tensor([[0.12, 0.57], [0.12, 0.57]])
    >>> scale, zero_point = tensorlib.tensor([0.25, 0.5]), tensorlib.tensor([0, 0])
    >>> tensorlib.fake_quantize_per_channel_affine(x, scale, zero_point, 0, -8, 7)
    tensor([[0.0000, 0.5000],
            [0.0000, 0.5000]])
    """
    name = "fake_quantize_per_channel_affine"
    size = input.size(axis)
    if scale.shape != (size,) or zero_point.shape != (size,):
        raise RuntimeError(f"{name}: dim {axis} has {size} places, got a scale of shape "
                           f"{tuple(scale.shape)} and a zero_point of {tuple(zero_point.shape)}")
    shape = [1] * input.dim()
    shape[axis] = size
    return rounded(name, input, scale.reshape(shape), zero_point.reshape(shape), quant_min,
                   quant_max)


for _function in (fake_quantize_per_tensor_affine, fake_quantize_per_channel_affine):
    publish(_function.__name__, _function, _function.__doc__, method=False)

declared(__name__)
