"""Convolutions and transposed convolutions, each the adjoint of the other."""

import math
from functools import lru_cache
from operator import index as as_int

import numpy as np

from tensorlib import stack
from tensorlib._core.apply.halves import are_cast
from tensorlib._core.convolutions import convolution as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.checks import check_optional
from tensorlib.nn.functional.integers import in_doubles
from tensorlib.ops.arguments import refuse_bools
from tensorlib.ops.declare import FUNCTIONS, composite, op
from tensorlib.ops.foreign import members
from tensorlib.ops.references import adjoint
from tensorlib.ops.samples import refusals

LARGE = 2 ** 40              # sizes, strides and paddings are smaller

# ---- sizes ---------------------------------------------------------------------------------------

def sizes_of(name, what, given, n, least=0):
    """A number for each of n dims, from one or several. Raises: TypeError, RuntimeError."""
    if type(given) is int and least <= given < LARGE:     # the common case, at each call of a layer
        return (given,) * n
    try:
        several = given
        if type(given) is not tuple:
            several = members(name, given) if hasattr(given, "__iter__") else (given,)
        found = tuple(map(as_int, several))
    except TypeError:
        raise TypeError(f"{name}: {what} must be ints, got {given!r}") from None
    found = found * n if len(found) == 1 else found
    if len(found) != n:
        raise RuntimeError(f"{name}: {what} should be one number or {n}, got {found}")
    if found and not least <= min(found) <= max(found) < LARGE:
        raise RuntimeError(f"{name}: {what} should be at least {least}, got {found}")
    return found


def out_size(size, kernel, stride, padding, dilation):
    """How many windows there are along a dim."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


# ---- the products --------------------------------------------------------------------------------

def windows_of(x, kernel, out, options):
    """For references: (B, C, *kernel, *out), the elements of the windows of an array."""
    stride, padding, dilation, _ = options
    padded = np.pad(x, [(0, 0)] * 2 + [(p, p + s) for p, s in zip(padding, stride)])
    found = np.zeros((*x.shape[:2], *kernel, *out), x.dtype)
    for place in np.ndindex(*kernel):
        first = [k * d for k, d in zip(place, dilation)]
        found[(..., *place, *[slice(None)] * len(out))] = padded[(..., *(
            slice(f, f + (o - 1) * s + 1, s) for f, o, s in zip(first, out, stride)))]
    return found


def by_windows(x, w, out, options):
    """The reference of `convolve`."""
    groups, n = options[3], len(out)
    columns = windows_of(x, w.shape[2:], out, options)
    columns = columns.reshape(len(x), groups, -1, math.prod(out))
    found = np.einsum("gok,bgkp->bgop", w.reshape(groups, len(w) // groups, -1), columns)
    return found.reshape(len(x), len(w), *out) if n else found


CASES = (
    # input, weight, out, (stride, padding, dilation, groups)
    ((2, 2, 3), (2, 1, 2), (2,), ((2,), (1,), (1,), 2)),
    ((1, 1, 3, 3), (2, 1, 2, 3), (2, 3), ((1, 1), (0, 1), (1, 1), 1)),
    ((1, 2, 2, 2), (1, 2, 1, 1), (2, 2), ((1, 1), (0, 0), (1, 1), 1)),
    ((1, 1, 2, 1, 3), (1, 1, 2, 1, 2), (1, 1, 1), ((1, 1, 1), (0, 0, 0), (1, 1, 2), 1)),
)


def conv_samples(of):
    """Samples: what `of` takes from the shapes of a case, then its options."""
    def generate(rng):
        for x, w, out, options in CASES:
            channels = x[1] if of[0] == "y" else w[0]
            shapes = {"x": x, "w": w, "y": (x[0], w[0], *out), "b": (channels,)}
            yield (*(rng.uniform(-2, 2, shapes[s]) for s in of), {
                "xw": out, "yw": x[2:], "yx": w[2:]}[of[:2]], options), {}
    return generate


@op(public=False, method=False, multilinear=True, takes="floating", kernel=kernels.convolve,
    reference=by_windows, samples=conv_samples("xw"),
    # each element of the result is a sum over a window of some channels
    multiplications=lambda inputs, result: math.prod(result) * math.prod(inputs[1][1:]))
def convolve(input: Tensor, weight: Tensor, planes, options):
    """The products of the windows of images with weights; `planes` are the sizes that come out.

    options: stride, padding, dilation, and groups of channels.
    """


@op(public=False, method=False, multilinear=True, takes="floating", kernel=kernels.convolve_input,
    reference=lambda g, w, spatial, options: adjoint(
        lambda x: by_windows(x, w, g.shape[2:], options),
        (len(g), w.shape[1] * options[3], *spatial), g), samples=conv_samples("yw"),
    # each element of the input is spread over a window of some channels
    multiplications=lambda inputs, result: math.prod(inputs[0]) * math.prod(inputs[1][1:]))
def convolve_input(grad: Tensor, weight: Tensor, spatial, options):
    """The adjoint of `convolve` for its input, whose planes have sizes `spatial`."""


@op(public=False, method=False, multilinear=True, takes="floating", kernel=kernels.convolve_weight,
    reference=lambda g, x, kernel, options: adjoint(
        lambda w: by_windows(x, w, g.shape[2:], options),
        (g.shape[1], x.shape[1] // options[3], *kernel), g), samples=conv_samples("yx"),
    # each element of the gradient is spread over a window of the weight's gradient
    multiplications=lambda inputs, result: math.prod(inputs[0]) * math.prod(result[1:]))
def convolve_weight(grad: Tensor, input: Tensor, kernel, options):
    """The adjoint of `convolve` for its weight, whose windows have sizes `kernel`."""


def biased(reference):
    """The reference of a convolution with a bias."""
    return lambda x, w, b, *sizes: reference(x, w, *sizes) + b.reshape(-1, *(1,) * (w.ndim - 2))


@op(public=False, method=False, takes="floating", kernel=kernels.convolve_with_bias, affine=True,
    reference=biased(convolve.op.testing["reference"]), samples=conv_samples("xwb"),
    multiplications=convolve.op.multiplications)
def convolve_with_bias(input: Tensor, weight: Tensor, bias: Tensor, planes, options):
    """`convolve` plus a bias for each channel, added before half types are rounded."""


@op(public=False, method=False, takes="floating", kernel=kernels.convolve_input_with_bias,
    affine=True, reference=biased(convolve_input.op.testing["reference"]),
    samples=conv_samples("ywb"), multiplications=convolve_input.op.multiplications)
def convolve_input_with_bias(grad: Tensor, weight: Tensor, bias: Tensor, spatial, options):
    """`convolve_input` plus a bias for each channel, added before half types are rounded."""


BESIDE_CHANNELS = {3: (0, 2), 4: (0, 2, 3), 5: (0, 2, 3, 4)}      # all but dim 1, by ndim


@convolve_with_bias.vjp("bias")
@convolve_input_with_bias.vjp("bias")
def convolve_vjp_bias(g):
    """The sum of g over everything but its channels."""
    return g.sum(BESIDE_CHANNELS[g.ndim])


@convolve_with_bias.jvp
def convolve_with_bias_jvp(d_input, d_weight, d_bias, input, weight, planes, options):
    """The product rule; the tangent of the bias is added as the bias is."""
    return (convolve_with_bias(d_input, weight, d_bias, planes, options)
            + convolve(input, d_weight, planes, options))


@convolve_input_with_bias.jvp
def convolve_input_with_bias_jvp(d_grad, d_weight, d_bias, grad, weight, spatial, options):
    """The product rule; the tangent of the bias is added as the bias is."""
    return (convolve_input_with_bias(d_grad, weight, d_bias, spatial, options)
            + convolve_input(grad, d_weight, spatial, options))


@convolve.vjp("input")
@convolve_with_bias.vjp("input")
def convolve_vjp_input(g, weight, input_shape, options):
    """By the adjoint for the input."""
    return convolve_input(g, weight, tuple(input_shape)[2:], options)


@convolve.vjp("weight")
@convolve_with_bias.vjp("weight")
def convolve_vjp_weight(g, input, weight_shape, options):
    """By the adjoint for the weight."""
    return convolve_weight(g, input, tuple(weight_shape)[2:], options)


@convolve_input.vjp("grad")
@convolve_input_with_bias.vjp("grad")
def convolve_input_vjp_grad(g, weight, grad_shape, options):
    """conv(g, w), of which the operation is the adjoint"""
    return convolve(g, weight, tuple(grad_shape)[2:], options)


@convolve_input.vjp("weight")
@convolve_input_with_bias.vjp("weight")
def convolve_input_vjp_weight(g, grad, weight_shape, options):
    """By `convolve_weight`: g is the input of the convolution whose gradient `grad` is."""
    return convolve_weight(grad, g, tuple(weight_shape)[2:], options)


@convolve_weight.vjp("grad")
def convolve_weight_vjp_grad(g, input, grad_shape, options):
    """conv(x, g): the operation is the adjoint of w -> conv(x, w)"""
    return convolve(input, g, tuple(grad_shape)[2:], options)


@convolve_weight.vjp("input")
def convolve_weight_vjp_input(g, grad, input_shape, options):
    """convT(grad, g): the operation is linear in x, too"""
    return convolve_input(grad, g, tuple(input_shape)[2:], options)


def batched(function, foldable):
    """The batching rule: one call where all examples share the weight, else one for each."""
    def batching(info, dims, *values, **attributes):
        if foldable and dims[0] == 0 and all(d is None for d in dims[1:]):
            x, *others = values
            out = function(x.flatten(0, 1), *others, **attributes)
            return out.reshape((*x.shape[:2], *out.shape[1:])), 0
        rows = [function(*(x if d is None else x[i] for x, d in zip(values, dims)), **attributes)
                for i in range(info.batch_size)]
        if not rows:
            rows = [function(*(x if d is None else x.new_zeros(x.shape[1:])
                               for x, d in zip(values, dims)), **attributes)]
            return stack(rows)[:0], 0
        return stack(rows), 0
    function.batching = batching


for _function in (convolve, convolve_input, convolve_weight, convolve_with_bias,
                  convolve_input_with_bias):
    batched(_function, _function is not convolve_weight)


# ---- convolutions --------------------------------------------------------------------------------

def with_batch(name, input, weight, bias, n):
    """The images with a dim of a batch. Raises: RuntimeError for what does not fit, TypeError."""
    if bias is not None:
        check_optional(name, bias=bias)
    if weight.ndim != n + 2 or input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: expected {n + 1}D (unbatched) or {n + 2}D (batched) input and "
                           f"{n + 2}D weight, got shapes {tuple(input.shape)} and "
                           f"{tuple(weight.shape)}")
    if (input.dtype != weight.dtype or bias is not None and bias.dtype != input.dtype) and (
            not are_cast(input, weight, bias)):
        raise RuntimeError(f"{name}: input ({input.dtype}), weight ({weight.dtype}) and bias "
                           "should have one dtype")
    refuse_bools(name, input, RuntimeError)
    return input.unsqueeze(0) if input.ndim == n + 1 else input


def finished(name, product, product_with_bias, x, w, bias, channels, sizes, single):
    """A product with its bias, and without the dim of a batch that was not given."""
    if bias is not None and tuple(bias.shape) != (channels,):
        raise RuntimeError(f"{name}: expected bias to be 1-dimensional with {channels} "
                           f"elements, got shape {tuple(bias.shape)}")
    if bias is not None and x.dtype == w.dtype == bias.dtype and x.is_floating_point():
        out = product_with_bias(x, w, bias, *sizes)
    else:
        out = product(x, w, *sizes) if x.is_floating_point() else in_any_dtype(
            lambda x, w: product(x, w, *sizes), x, w)
        if bias is not None:
            out = out + bias.reshape((-1, *(1,) * (out.ndim - 2))).to(out.dtype)
    return out.squeeze(0) if single else out


def padded(name, padding, kernel, stride, dilation, n):
    """The padding as numbers, and what more there is after the last element of each dim."""
    if padding == "valid":
        return (0,) * n, (0,) * n
    if padding == "same":
        if any(s != 1 for s in stride):
            raise RuntimeError(f"{name}: padding='same' is not supported for strided convolutions")
        whole = [d * (k - 1) for d, k in zip(dilation, kernel)]
        return tuple(p // 2 for p in whole), tuple(p % 2 for p in whole)
    if isinstance(padding, str):
        raise RuntimeError(f"{name}: padding must be 'valid', 'same' or numbers, got {padding!r}")
    return sizes_of(name, "padding", padding, n), (0,) * n


INTS, PLAIN = {int, type(None)}, (int, type(None), str)


def are_plain(values):
    """Whether all are ints, tuples of ints, None or strings: equal ones mean the same."""
    for x in values:
        if not {*map(type, x)} <= INTS if type(x) is tuple else type(x) not in PLAIN:
            return False
    return True


def planned(plan):
    """A plan of sizes that is made once for each: to check them takes longer than small layers do.
    """
    kept = lru_cache(512)(plan)

    def find(name, n, input, weight, *sizes):
        return (kept if are_plain(sizes) else plan)(
            name, n, tuple(input.shape), tuple(weight.shape), *sizes)
    return find


@planned
def conv_plan(name, n, shape, weight_shape, stride, padding, dilation, groups):
    """The sizes that come out of a convolution, and its options. Raises: RuntimeError."""
    stride = sizes_of(name, "stride", stride, n, 1)
    dilation, groups = sizes_of(name, "dilation", dilation, n, 1), as_int(groups)
    kernel, spatial = weight_shape[2:], shape[2:]
    padding, after = padded(name, padding, kernel, stride, dilation, n)
    if groups < 1 or shape[1] != weight_shape[1] * groups or weight_shape[0] % groups:
        raise RuntimeError(f"{name}: Given groups={groups}, weight of size {list(weight_shape)}, "
                           f"expected input{list(shape)} to have {weight_shape[1] * groups} "
                           f"channels, but got {shape[1]} channels instead")
    out = tuple(out_size(s, k, t, p, d) + a for s, k, t, p, d, a in zip(
        spatial, kernel, stride, padding, dilation, after))
    if any(o < 1 for o in out) or any(k < 1 for k in kernel):
        raise RuntimeError(f"{name}: kernel size {kernel} can't be greater than the padded input "
                           f"size, of {spatial} with padding {padding}")
    return out, (stride, padding, dilation, groups)


def conv(name, n, input, weight, bias, stride, padding, dilation, groups):
    """A convolution over n dims."""
    single = input.ndim == n + 1
    input = with_batch(name, input, weight, bias, n)
    sizes = conv_plan(name, n, input, weight, stride, padding, dilation, groups)
    return finished(name, convolve, convolve_with_bias, input, weight, bias, weight.shape[0],
                    sizes, single)


def in_any_dtype(product, x, w):
    """The result of a function of floating tensors for integers, and for complex numbers by their
    parts."""
    if x.is_complex():
        a, b, c, d = x.real, x.imag, w.real, w.imag
        return FUNCTIONS["complex"](product(a, c) - product(b, d), product(a, d) + product(b, c))
    return in_doubles(product, x, w)


@planned
def transposed_plan(name, n, shape, weight_shape, stride, padding, output_padding, groups,
                    dilation):
    """The sizes that a transposed convolution gives, and its options. Raises: RuntimeError."""
    stride = sizes_of(name, "stride", stride, n, 1)
    padding = sizes_of(name, "padding", padding, n)
    more = sizes_of(name, "output_padding", output_padding, n)
    dilation, groups = sizes_of(name, "dilation", dilation, n, 1), as_int(groups)
    kernel, spatial = weight_shape[2:], shape[2:]
    if groups < 1 or shape[1] != weight_shape[0] or weight_shape[0] % groups:
        raise RuntimeError(f"{name}: Given transposed=1, weight of size {list(weight_shape)}, "
                           f"expected input{list(shape)} to have {weight_shape[0]} channels, but "
                           f"got {shape[1]} channels instead")
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation)):
        raise RuntimeError(f"{name}: output_padding must be smaller than either stride or dilation,"
                           f" got {more}")
    out = tuple((s - 1) * t - 2 * p + d * (k - 1) + m + 1 for s, k, t, p, d, m in zip(
        spatial, kernel, stride, padding, dilation, more))
    if any(o < 1 for o in out) or any(s < 1 for s in spatial):
        raise RuntimeError(f"{name}: the output of size {out} is too small")
    return out, (stride, padding, dilation, groups)


def conv_transpose(name, n, input, weight, bias, stride, padding, output_padding, groups,
                   dilation):
    """A transposed convolution over n dims."""
    single = input.ndim == n + 1
    input = with_batch(name, input, weight, bias, n)
    sizes = transposed_plan(name, n, input, weight, stride, padding, output_padding, groups,
                            dilation)
    return finished(name, convolve_input, convolve_input_with_bias, input, weight, bias,
                    weight.shape[1] * sizes[1][3], sizes, single)


def conv_reference(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """The reference of convolutions."""
    n = w.ndim - 2
    options = ((stride,) * n, (padding,) * n, (dilation,) * n, groups)
    out = tuple(out_size(s, k, stride, padding, dilation) for s, k in zip(x.shape[2:], w.shape[2:]))
    found = by_windows(x, w, out, options)
    return found if b is None else found + b.reshape(-1, *(1,) * n)


def image_samples(n):
    """Samples of convolutions over n dims."""
    def generate(rng):
        x, w = (1, 2, *(3, 2, 1)[:n]), (2, 1, *(2, 1, 1)[:n])
        yield (rng.uniform(-2, 2, x), rng.uniform(-2, 2, w), rng.uniform(-2, 2, 2), 1, 0, 1, 2), {}
    return generate


def bad_images(n):
    """Error samples of convolutions over n dims."""
    sizes = (3,) * n
    return refusals((RuntimeError, (1, 2, *sizes), np.ones((1, 3, *sizes))),
                    (RuntimeError, (1, 2, *sizes), np.ones((1, 2, *(4,) * n))),
                    (RuntimeError, (2, *sizes[1:]), np.ones((1, 2, *sizes))),
                    (RuntimeError, (1, 2, *sizes), np.ones((1, 2, *sizes)), np.ones(2)),
                    (RuntimeError, (1, 2, *sizes), np.ones((1, 2, *sizes)), None, 0),
                    (RuntimeError, (1, 2, *sizes), np.ones((1, 2, *sizes)), None, 1, -1),
                    (TypeError, (1, 2, *sizes), np.ones((1, 2, *sizes)), None, 1.5))


def convolution(n, **declared):
    """Declares a convolution over n dims."""
    return composite(tensors=("input", "weight", "bias"), method=False, takes="integer floating",
                     complex=True, tolerance="product", samples=image_samples(n), rounds_once=False,
                     errors=bad_images(n), **declared)


@convolution(1, reference=conv_reference)
def conv1d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The sums of products of the windows of sequences with weights, plus a bias.

    padding: zeros at both ends, or "same" for a result as long as the input, or "valid" for none.
    Shapes: (B, C, L), (O, C / groups, K), (O,) -> (B, O, (L + 2 padding - dilation (K - 1) - 1) //
    stride + 1); without B, too. Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    return conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@convolution(2, reference=conv_reference)
def conv2d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The sums of products of the windows of images with weights, plus a bias.

    Shapes: (B, C, H, W), (O, C / groups, KH, KW), (O,) -> (B, O, *, *), as `conv1d` along each dim.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    Source: Chellapilla, Puri and Simard, "High Performance Convolutional Neural Networks for
    Document Processing" (2006), for the products of columns.
    """
    return conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@convolution(3, reference=conv_reference)
def conv3d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The sums of products of the windows of volumes with weights, plus a bias.

    Shapes: (B, C, D, H, W), (O, C / groups, KD, KH, KW), (O,) -> (B, O, *, *, *), as `conv1d` along
    each dim. Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    return conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def transpose_reference(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The reference of transposed convolutions."""
    n = w.ndim - 2
    options = ((stride,) * n, (padding,) * n, (dilation,) * n, groups)
    out = tuple((s - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1
                for s, k in zip(x.shape[2:], w.shape[2:]))
    found = adjoint(lambda y: by_windows(y, w, x.shape[2:], options),
                    (len(x), w.shape[1] * groups, *out), x).astype(x.dtype)
    return found if b is None else found + b.reshape(-1, *(1,) * n)


def transposed(n):
    """Declares a transposed convolution over n dims."""
    def samples(rng):
        x, w = (1, 2, *(2, 1, 1)[:n]), (2, 1, *(2, 1, 1)[:n])
        yield (rng.uniform(-2, 2, x), rng.uniform(-2, 2, w), rng.uniform(-2, 2, 2), 2, 0, 1, 2), {}
    return composite(
        tensors=("input", "weight", "bias"), method=False, takes="integer floating",
        complex=True, tolerance="product", reference=transpose_reference, samples=samples,
        rounds_once=False,
        errors=refusals((RuntimeError, (1, 2, *(3,) * n), np.ones((3, 1, *(2,) * n))),
                        (RuntimeError, (1, 2, *(3,) * n), np.ones((2, 1, *(2,) * n)),
                         *(None, 1, 0, 1))))


@transposed(1)
def conv_transpose1d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0,
                     output_padding=0, groups=1, dilation=1):
    """The gradient of `conv1d` for its input, as an operation of its own, plus a bias.

    Shapes: (B, C, L), (C, O / groups, K), (O,) -> (B, O, (L - 1) stride - 2 padding +
    dilation (K - 1) + output_padding + 1); without B, too. Raises: RuntimeError, TypeError.
    """
    return conv_transpose("conv_transpose1d", 1, input, weight, bias, stride, padding,
                          output_padding, groups, dilation)


@transposed(2)
def conv_transpose2d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0,
                     output_padding=0, groups=1, dilation=1):
    """The gradient of `conv2d` for its input, as an operation of its own, plus a bias.

    Shapes: (B, C, H, W), (C, O / groups, KH, KW), (O,) -> (B, O, *, *), as `conv_transpose1d`.
    Raises: RuntimeError, TypeError.
    """
    return conv_transpose("conv_transpose2d", 2, input, weight, bias, stride, padding,
                          output_padding, groups, dilation)


@transposed(3)
def conv_transpose3d(input: Tensor, weight: Tensor, bias=None, stride=1, padding=0,
                     output_padding=0, groups=1, dilation=1):
    """The gradient of `conv3d` for its input, as an operation of its own, plus a bias.

    Shapes: (B, C, D, H, W), (C, O / groups, KD, KH, KW), (O,) -> (B, O, *, *, *), as
    `conv_transpose1d`. Raises: RuntimeError, TypeError.
    """
    return conv_transpose("conv_transpose3d", 3, input, weight, bias, stride, padding,
                          output_padding, groups, dilation)
