"""Attention on rows of heads where they lie: views of joined projections, and strange strides."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.base import pool
from tensorlib.nn import functional as F


def laid_out(x, kind):
    """The same elements (B, H, L, E) in other places."""
    if kind == "contiguous":
        return x.contiguous()
    if kind == "rows of all heads":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if kind == "parts of a projection":
        wide = x.transpose(1, 2).repeat(1, 1, 1, 3)
        return wide[..., x.shape[3]:2 * x.shape[3]].transpose(1, 2)
    if kind == "columns":
        return x.mT.contiguous().mT
    if kind == "reversed":
        return tl.from_numpy(x.flip(2).numpy().copy()[:, :, ::-1])
    return x[:1, :1].expand(x.shape)


def results(q, k, v, g, options):
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, **options)
    out.backward(g)
    return [out.detach(), *[x.grad for x in leaves]]


KINDS = ("contiguous", "rows of all heads", "parts of a projection", "columns", "reversed", "one")


@each("kind", KINDS)
@each("sizes", [(2, 3, 5, 7, 4), (1, 2, 70, 150, 8), (2, 2, 130, 64, 16), (1, 1, 3, 0, 2),
                (3, 1, 1, 9, 1), (1, 9, 64, 64, 33)])
@each("causal", [False, True])
@each("dtype", ["float32", "float64"])
def test_attention_does_not_depend_on_where_rows_lie(kind, sizes, causal, dtype):
    b, h, queries, keys, width = sizes
    rng = np.random.default_rng(3)
    q, k, v, g = (tl.tensor(rng.uniform(-2, 2, (b, h, n, width)).astype(dtype))
                  for n in (queries, keys, keys, queries))
    if kind == "one":
        q, k, v, g = (x[:1, :1].expand(x.shape) for x in (q, k, v, g))
    plain = results(*(x.contiguous() for x in (q, k, v, g)), {"is_causal": causal})
    moved = results(*(laid_out(x, kind) for x in (q, k, v, g)), {"is_causal": causal})
    for wanted, got in zip(plain, moved):
        assert np.array_equal(got.numpy(), wanted.numpy())
    scores = np.einsum("bhqe,bhke->bhqk", q.numpy(), k.numpy()) / width ** 0.5
    if causal:
        scores = np.where(np.tril(np.ones((queries, keys), bool)), scores, -np.inf)
    p = np.exp(scores)
    p /= np.maximum(p.sum(-1, keepdims=True), 1e-300 if dtype == "float64" else 1e-30)
    np.testing.assert_allclose(moved[0].numpy(), p @ v.numpy(), atol=1e-5)
    np.testing.assert_allclose(moved[3].numpy(), p.swapaxes(-1, -2) @ g.numpy(), atol=2e-5)


def test_results_are_laid_out_as_what_they_belong_to():
    x = tl.rand(2, 5, 3 * 8, requires_grad=True)
    q, k, v = (part.view(2, 5, 4, 2).transpose(1, 2) for part in x.chunk(3, -1))
    out = F.scaled_dot_product_attention(q, k, v)
    assert out.transpose(1, 2).is_contiguous()
    y = tl.rand(2, 4, 5, 2)
    assert F.scaled_dot_product_attention(y, y, y).is_contiguous()


@pytest.mark.parametrize("causal", [False, True])
def test_bits_of_attention_do_not_depend_on_threads(causal):
    before = pool.get_num_threads()
    x = tl.rand(1, 3, 200, 24)
    found = []
    try:
        for threads in (1, 2, 5):
            pool.set_num_threads(threads)
            found.append([y.numpy().tobytes() for y in results(x, x, x, x, {"is_causal": causal})])
    finally:
        pool.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@each("need_weights", [False, True])
@each("same", [False, True])
def test_modules_give_the_same_with_the_batch_first(need_weights, same):
    made = [tl.nn.MultiheadAttention(8, 2, batch_first=first) for first in (False, True)]
    made[1].load_state_dict(made[0].state_dict())
    query, key = tl.rand(5, 3, 8), tl.rand(6, 3, 8)
    grads = []
    for module, turn in zip(made, (False, True)):
        q, k = (x.transpose(0, 1).contiguous() if turn else x for x in (query, key))
        k = q if same else k
        out, weights = module(q, k, k, need_weights=need_weights)
        out.square().sum().backward()
        out = out.transpose(0, 1) if turn else out
        grads.append([out.detach(), *[p.grad for p in module.parameters()],
                      *([weights.detach()] if need_weights else [])])
    for a, b in zip(*grads):
        tl.testing.assert_close(a, b)
