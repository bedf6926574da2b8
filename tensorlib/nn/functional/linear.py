"""`linear`, `bilinear` and `embedding`: products with weights, and rows of a table."""

from math import prod
from operator import index as as_int

import numpy as np

from tensorlib import float32, is_grad_enabled, where, zeros
from tensorlib._core.base.error_names import IndexOutOfRange
from tensorlib._core.base.importing import deferred
from tensorlib._core.interpreters.capture import is_noted_for_gradients, may_be_differentiated
from tensorlib._core.products import linear as kernels
from tensorlib._core.products.product import grad_of_right
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import apart_from_transforms
from tensorlib.nn.functional.fused import stands_for
from tensorlib.nn.functional.checks import check_optional
from tensorlib.ops.declare import composite, op
from tensorlib.ops.products.matmul import matmul, product_multiplications
from tensorlib.ops.samples import given_pairs, given_tensors, refusals
from tensorlib.ops.value_checks import value_check


rows_looked_up = deferred("tensorlib.sparse", "rows_looked_up")


WITH_BIAS = given_tensors(
    ((2, 3), (4, 3), (4,)), ((3,), (2, 3), (2,)), ((2, 2, 3), (1, 3), (1,)), ((0, 3), (2, 3), (2,)),
    ((2, 3, 2), (4, 2), (1, 4)), ((2, 3, 2), (4, 2), (3, 1)))


BAD_SIZES = refusals((RuntimeError, (2, 3), np.ones((4, 2))), (RuntimeError, (2, 3), np.ones(())))


@op(public=False, method=False, multilinear=True, takes="floating", kernel=kernels.linear,
    reference=lambda x, w: x @ w.T, samples=given_pairs(((2, 3), (4, 3)), ((2, 3), (3,))),
    multiplications=product_multiplications, complex=True)
def linear_without_bias(input: Tensor, weight: Tensor):
    """input @ weight.mT: see `linear`."""


@op(public=False, method=False, takes="floating", kernel=kernels.linear, tolerance="product",
    reference=lambda x, w, b: x @ w.T + b, samples=WITH_BIAS, packs=True,
    affine=True, multiplications=product_multiplications, complex=True)
def linear_with_bias(input: Tensor, weight: Tensor, bias: Tensor):
    """input @ weight.mT + bias: see `linear`."""


@op(public=False, method=False, multilinear=True, takes="floating", kernel=kernels.wide_linear,
    reference=lambda x, w: x @ w.T, samples=given_pairs(((2, 3), (4, 3)), ((1, 3), (2, 3))),
    result_dtype=lambda x, w: float32 if x.dtype.itemsize == 2 else x.dtype,
    multiplications=product_multiplications)
def wide_linear(input: Tensor, weight: Tensor):
    """input @ weight.mT of half types in float32, for what goes on in that."""


@wide_linear.vjp("input")
def wide_linear_vjp_input(g, weight):
    """g @ W, computed in the wider dtype of g"""
    return (g @ weight.to(g.dtype)).to(weight.dtype)


@wide_linear.vjp("weight")
def wide_linear_vjp_weight(g, input):
    """g.T @ x, computed in the wider dtype of g"""
    return (g.mT @ input.to(g.dtype)).to(input.dtype)


@linear_without_bias.vjp("input")
@linear_with_bias.vjp("input")
def linear_vjp_input(g, weight):
    """g W, for a vector of weights its outer product with g."""
    return g @ weight if weight.ndim == 2 else g.unsqueeze(-1) * weight


@linear_without_bias.vjp("weight")
@linear_with_bias.vjp("weight")
def linear_vjp_weight(g, input, weight_shape):
    """g.mT @ input, all dims but the last as rows."""
    if len(weight_shape) == 2 and input.ndim > 1:
        return grad_of_right(input, g, 2)
    rows = input.reshape(prod(input.shape[:-1]), input.shape[-1])
    if len(weight_shape) == 1:
        return g.reshape(-1) @ rows
    return g.reshape(rows.shape[0], weight_shape[0]).mT @ rows


@linear_with_bias.vjp("bias")
def linear_vjp_bias(g, bias_shape):
    """The sum over all dims in which the bias was broadcast."""
    return g.sum_to_size(bias_shape)


@linear_with_bias.jvp
def linear_jvp(d_input, d_weight, d_bias, input, weight):
    """d_input W' + input d_W' + d_bias."""
    moved = linear_formula(d_input, weight) + linear_formula(input, d_weight)
    return moved + d_bias


def linear_formula(input, weight, bias=None):
    """`linear` by operations of their own."""
    out = matmul(input, weight.mT if weight.ndim == 2 else weight)
    return out if bias is None else out + bias


def wide_formula(input, weight):
    """`wide_linear` by operations of its own."""
    if input.dtype.itemsize == 2:
        input, weight = input.float(), weight.float()
    return matmul(input, weight.mT)


stands_for(wide_formula)(wide_linear)
stands_for(linear_formula)(linear_without_bias)
stands_for(linear_formula)(linear_with_bias)


@composite(tensors=("input", "weight", "bias"), out=True, public=False, method=False,
           takes="floating", tolerance="product", reference=lambda x, w, b: x @ w.T + b,
           samples=WITH_BIAS, errors=BAD_SIZES, rounds_once=False, complex=True)
def linear(input: Tensor, weight: Tensor, bias=None):
    """input @ weight.mT + bias: what a fully connected layer computes.

    Shapes: (*, K), (N, K), (N,) -> (*, N), or a bias that is broadcast to (*, N).
    Raises: RuntimeError for sizes that do not fit and dtypes that differ.
    """
    if bias is None:
        return linear_without_bias(input, weight)
    return linear_with_bias(input, weight, bias)


def bilinear_reference(a, b, w, bias=None):
    """The reference of `bilinear`."""
    found = np.einsum("...i,kij,...j->...k", a, w, b)
    return found if bias is None else found + bias


@composite(tensors=("input1", "input2", "weight", "bias"), method=False, takes="integer floating",
           tolerance="product", reference=bilinear_reference,
           samples=lambda rng: ((tuple(rng.uniform(-1, 1, s) for s in (a, b, (2, 3, 2), (2,))), {})
                                for a, b in (((4, 3), (4, 2)), ((3,), (2,)))),
           errors=refusals((RuntimeError, (4, 3), np.ones((4, 2)), np.ones((2, 2, 2))),
                           (RuntimeError, (4, 3), np.ones((4, 2)), np.ones((2, 3, 2)), np.ones(1))),
           complex=True)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias=None):
    """input1 @ weight[k] @ input2 for each k, plus a bias.

    Shapes: (*, M), (*, N), (K, M, N), (K,) -> (*, K).
    Raises: RuntimeError for sizes that do not fit.
    """
    check_optional("bilinear", bias=bias)
    if weight.ndim != 3 or input1.shape[:-1] != input2.shape[:-1] or (
            tuple(weight.shape[1:]) != (*input1.shape[-1:], *input2.shape[-1:])):
        raise RuntimeError(f"bilinear: sizes do not fit: {tuple(input1.shape)}, "
                           f"{tuple(input2.shape)} and a weight of {tuple(weight.shape)}")
    k, m, n = weight.shape
    if bias is not None and tuple(bias.shape) != (k,):
        raise RuntimeError(f"bilinear: bias size does not match weight size: got "
                           f"{tuple(bias.shape)} but expected {(k,)}")
    first = input1 @ weight.transpose(0, 1).reshape(m, k * n)          # one product for all of k
    out = (first.unflatten(-1, (k, n)) @ input2.unsqueeze(-1)).squeeze(-1)
    return out if bias is None else out + bias


# ---- rows of a table -----------------------------------------------------------------------------

def check_indices(name, indices):
    """Raises RuntimeError for indices of another dtype, IndexError for a negative one.

    Indexing itself would accept negative ones, and raises for those beyond the last row.
    """
    if indices.dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"{name}: expected indices of int32 or int64, got {indices.dtype}")
    rows_are_not_negative(indices, name)


@value_check
def rows_are_not_negative(indices, name):
    """Raises IndexError for a negative index."""
    if indices.numel() and indices.amin() < 0:
        raise IndexOutOfRange(f"{name}: index out of range in self: {int(indices.amin())}")


def padding_place(name, padding_idx, rows):
    """The row that has no gradient. Raises: AssertionError, as PyTorch."""
    padding_idx = as_int(padding_idx)
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"{name}: padding_idx must be within num_embeddings, got "
                             f"{padding_idx} for {rows}")
    return padding_idx % rows


def renormalise(weight, indices, max_norm, norm_type):
    """Scales the rows that are looked up to at most this norm, in place."""
    with apart_from_transforms():
        places = indices.reshape(-1).long()
        rows = weight.detach().index_select(0, places)
        norms = rows.norm(norm_type, 1, keepdim=True)
        scale = where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
        weight.detach().index_copy_(0, places, rows * scale)


@composite(tensors=("input", "weight"), public=False, method=False, takes="floating",
           reference=lambda i, w, padding_idx=None: w[i],
           samples=lambda rng: (((np.array(i, np.int64), rng.uniform(-2, 2, (4, 3))), {})
                                for i in ([[0, 3], [3, 1]], [], 2)),
           errors=lambda: (((np.array(i), np.ones((4, 3))), {}, error)
                           for i, error in (([4], IndexError), ([-1], IndexError),
                                            ([0.5], RuntimeError))), checks_values=True)
def embedding(input: Tensor, weight: Tensor, padding_idx=None, max_norm=None, norm_type=2.0,
              scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` at the indices in `input`.

    padding_idx: a row that has no gradient. max_norm: rows that are looked up are first scaled, in
    place, to at most this norm of type `norm_type`. scale_grad_by_freq: gradients are divided by
    how often their row is looked up. sparse: `backward` gives a leaf a sparse
    gradient, of the rows that are looked up.
    Shapes: (*), (V, D) -> (*, D).
    Raises: IndexError for an index out of range, RuntimeError for another dtype of indices.

    >>> table = tensorlib.tensor([[1., 2.], [3., 4.]])
    >>> tensorlib.nn.functional.embedding(tensorlib.tensor([1, 1]), table)
    tensor([[3., 4.],
            [3., 4.]])
    """
    if weight.ndim != 2:
        raise RuntimeError(f"embedding: 'weight' must be 2-D, got {weight.ndim} dims")
    check_indices("embedding", input)
    padding = None if padding_idx is None else padding_place(
        "embedding", padding_idx, weight.shape[0])
    if max_norm is not None:
        renormalise(weight, input, float(max_norm), float(norm_type))
    if sparse and weight.requires_grad and weight.is_leaf and is_grad_enabled() and not (
            scale_grad_by_freq or is_noted_for_gradients()) and isinstance(input, Tensor):
        out = rows_looked_up(weight, input)
        if padding is None:
            return out
        return where((input == padding).unsqueeze(-1), out.detach(), out)
    try:
        out = weight[input] if input.ndim == 1 else weight.index_select(
            0, input.reshape(-1)).reshape((*input.shape, weight.shape[1]))
    except IndexError as error:
        raise IndexError(
            f"embedding: index out of range in self:{str(error).partition(':')[2]}") from None
    if not may_be_differentiated(weight):
        return out
    if padding is not None:
        out = where((input == padding).unsqueeze(-1), out.detach(), out)
    return by_frequency(out, input, weight.shape[0]) if scale_grad_by_freq else out


def by_frequency(out, indices, rows):
    """`out` with gradients divided by how often an index is there."""
    counts = zeros(rows, dtype=out.dtype).index_add(
        0, indices.reshape(-1).long(), zeros(indices.numel(), dtype=out.dtype) + 1)
    share = (1 / counts[indices.long()]).unsqueeze(-1)
    return out * share + out.detach() * (1 - share)
