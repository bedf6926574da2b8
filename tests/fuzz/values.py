"""Texts of odd values, by what they are odd in; `NAMES` is what they are evaluated with."""

import io
import pickle
from functools import lru_cache, partial

import numpy as np

import tensorlib as tl
from tensorlib import ops

from . import liars


@lru_cache(maxsize=10_000)
def compiled(text):
    """The code of a text: most texts come again and again.

    Raises: MemoryError, also where CPython's compiler gives SystemError for want of memory ("error
    return without exception set", which an attribute of a plain dict's item is enough for).
    """
    try:
        return compile(text, "<call>", "eval")
    except SystemError:
        raise MemoryError from None


EDGES = [0, 1, 2, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**40,
         2**48, 2**53, 2**58, 2**59 - 1, 2**59, 2**60, 2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63,
         2**63 + 1, 2**64 - 1, 2**64, 2**65]
SIZES = [str(sign * n) for n in EDGES for sign in (1, -1)]

SMALL = ["0", "1", "2", "3", "-1", "-2", "-3", "5", "64", "65"]
NUMBERS = SMALL + ["True", "False", "0.0", "-0.0", "0.5", "1e30", "1e300", "-1e-300", "nan", "inf",
                   "-inf", "1j", "np.float32(2)", "np.int64(-1)", "np.bool_(True)",
                   "np.uint64(2**64 - 1)", "np.float64('nan')"]

DTYPES = ["tl.bool", "tl.uint8", "tl.int8", "tl.int16", "tl.int32", "tl.int64", "tl.uint16",
          "tl.uint32", "tl.uint64", "tl.float16", "tl.bfloat16", "tl.float32", "tl.float64"]
NOT_DTYPES = ["np.float32", "np.dtype('>f4')", "'float32'", "np.complex64", "int", "object"]

SHAPES = ["", "0", "1", "3", "4", "2, 3", "3, 4", "2, 2", "3, 1", "0, 3", "2, 3, 4", "1, 1, 1, 1",
          "2, 1, 2, 1, 2, 1, 2"]

# Layouts, of a tensor `x`.
LAYOUTS = ["{x}", "{x}", "{x}", "{x}.flip(0)", "{x}[::2]", "{x}[..., None].expand(-1, 5)", "{x}.T",
           "{x}[None]", "{x}.unsqueeze(-1)", "{x}[:0]", "liars.readonly({x}.numpy())",
           "tl.from_numpy(liars.readonly({x}.numpy()))", "{x}.requires_grad_()",
           "liars.with_graph({x})", "liars.with_graph({x})[0]", "liars.once_used({x})",
           "liars.inference({x})", "{x}.detach()", "tl.from_numpy({x}.numpy()[..., ::-1])",
           "{x}.numpy()", "{x}.tolist()"]

SEQUENCES = ["()", "[]", "(0,)", "(0, 1)", "(0, 0)", "[1, -1]", "(-1, 0, 1)", "[None]", "('a',)",
             "(1.5, 2)", "[[1, 2], [3]]", "[[]]", "range(3)", "(0,) * 70", "[tl.ones(2)] * 3",
             "(tl.ones(2), tl.ones(3))", "[tl.ones(2), None]", "iter([1, 2])", "{0: 1}", "{1, 2}",
             "liars.holding_itself()", "[tl.tensor(0), 1]", "(slice(None), 0)", "(..., 0)",
             "(..., ...)", "(None,) * 80", "(2, 3)", "(tl.tensor([0, 1]), tl.tensor([1, 0]))",
             "[tl.ones(2, requires_grad=True)] * 2", "((1, 2), dict(a=tl.ones(2)))"]

OTHERS = ["None", "...", "'abc'", "''", "b'abc'", "bytearray(8)", "memoryview(b'abcd')", "object()",
          "slice(None)", "slice(2, None, -1)", "slice(0, 10**30)", "slice(None, None, 0)",
          "lambda *a, **k: None", "lambda x: x", "lambda x: x * 2", "lambda x: x.sum()",
          "lambda x, *y: (x, x)", "partial(tl.add, 1)", "tl.Tensor", "tl", "print", "int",
          "NotImplemented", "tl.Size([2, 3])", "tl.Generator()", "tl.device('cpu')", "'cpu'",
          "'cuda'", "tl.ones(2, requires_grad=True).tanh().grad_fn", "io.BytesIO(b'abc')",
          "np.array([1.0, None])", "np.array('abc')", "np.zeros((2, 0, 3))", "np.array([1j])",
          "np.ma.masked_array([1.0, 2.0], [0, 1])", "np.zeros(3, 'M8[s]')", "np.zeros(3, 'i4, f4')",
          "np.lib.stride_tricks.as_strided(np.zeros(4), (2**9, 2**40), (0, 0))",
          "type(tl.ones(2, requires_grad=True).tanh().grad_fn)", "ops.registry", "ValueError('v')",
          "ops.registry['add']", "ops.registry['sum'].rules", "ops.call('tanh', tl.ones(2))",
          "ops.build_grad_op(ops.call('sum', tl.ones(2), dim=0))", "tl.ones(1).expand(2**40)",
          "tl.ones(1).expand(2**62)", "tl.ones(0, 2**40)", "tl.ones(1, 0).expand(2**62, 0)"]

ACTS = list(liars.ACTS)


def small_tensor(rng):
    """A small tensor of any dtype and shape, in any layout."""
    dtype, shape = rng.choice(DTYPES), rng.choice(SHAPES)
    make = rng.choice([
        f"tl.ones({shape or '()'}, dtype={dtype})", f"tl.zeros({shape or '()'}, dtype={dtype})",
        f"tl.rand({shape or '()'}).mul(4).to({dtype})",
        f"tl.ones({shape or '()'}, dtype={dtype}).mul(-1)"])
    return rng.choice(LAYOUTS).format(x=make)


def plain_tensor(rng):
    """A small float or int tensor: what most operations take."""
    shape = rng.choice(SHAPES[2:10])
    return rng.choice([
        f"tl.rand({shape})", f"tl.rand({shape}, requires_grad=True)", f"tl.ones({shape})",
        f"tl.zeros({shape}, dtype=tl.int64)", f"liars.with_graph(tl.rand({shape}))",
        f"tl.rand({shape}) > 0.5", "tl.tensor([0, 1, 1])", "tl.tensor([10**9, -10**9])"])


def plain_value(rng):
    """A value as most operations take: a tensor, a small number or a dtype."""
    return rng.choice([plain_tensor, plain_tensor, plain_tensor, lambda r: r.choice(SMALL),
                       lambda r: r.choice(DTYPES), lambda r: r.choice(SEQUENCES)])(rng)


def liar(rng, act=None):
    """An object that lies, and with `act` (or any) also does something to the tensors in use."""
    act = rng.choice(ACTS) if act is None else act
    says = rng.choice(["0", "1", "2", "-1", "2**31", "2**63", "10**30", "2.5", "nan", "'abc'",
                       "None", "tl.ones(2)", "liars.Lied()", "KeyboardInterrupt()"])
    length = rng.choice(["2", "0", "3", "-1", "2**31", "2**63", "'x'", "liars.Lied()"])
    return rng.choice([
        f"liars.Liar({says}, {act!r})", f"liars.Liar({says}, {act!r}, {length})",
        f"[liars.Liar({says}, {act!r}), 1]", f"(0, liars.Liar({says}, {act!r}))",
        f"liars.ArrayLiar(np.zeros(3), {act!r})", f"liars.ArrayLiar({says}, {act!r})",
        f"liars.SequenceLiar([1, 2], {length}, {act!r})", "liars.TupleLiar((1, 2))",
        "liars.IntLiar(1)", "liars.TensorLiar()", "liars.Odd([1., 2.])",
        f"slice(liars.Liar({says}, {act!r}), None)",
        f"slice(None, None, liars.Liar({says}, {act!r}))"])


def huge_tensor(rng):
    """A tensor with sizes at the edges that takes no memory."""
    n, m = rng.choice(EDGES), rng.choice(EDGES)
    return rng.choice([
        f"tl.ones(1).expand({n})", f"tl.ones(1).expand({n}, {m})", f"tl.ones({n}, 0)",
        f"tl.ones(0, {n}, {m})", f"tl.tensor([{n}])", f"tl.tensor([-{n}, 0])",
        f"tl.ones(1, dtype=tl.int64).expand({n})", f"tl.ones(2, 1).expand(2, {n}).T",
        f"tl.tensor({min(n, 2**63 - 1)})", f"tl.tensor({float(n)})"])


def odd_value(rng):
    """Any value."""
    return rng.choice([
        small_tensor, plain_tensor, plain_tensor, lambda r: r.choice(NUMBERS),
        lambda r: r.choice(SMALL), lambda r: r.choice(SEQUENCES), lambda r: r.choice(OTHERS),
        lambda r: r.choice(DTYPES + NOT_DTYPES), lambda r: r.choice(SIZES), liar])(rng)


def edge_value(rng):
    """A value with a size, number or position at the edges of 2**31 and 2**63."""
    def some(r):
        return ", ".join(r.choice(SIZES + SMALL) for _ in range(r.randint(1, 4)))
    return rng.choice([
        lambda r: r.choice(SIZES), lambda r: r.choice(SIZES), lambda r: f"({some(r)},)",
        lambda r: f"[{some(r)}]", huge_tensor, huge_tensor, plain_tensor, plain_tensor,
        lambda r: f"slice({r.choice(SIZES)}, {r.choice(SIZES)}, {r.choice(SIZES)})",
        lambda r: f"np.int64({r.choice(SMALL)})", lambda r: f"float({r.choice(SIZES)})"])(rng)


NAMES = {"tl": tl, "np": np, "ops": ops, "liars": liars, "nan": float("nan"), "inf": float("inf"),
         "io": io, "pickle": pickle, "partial": partial}
