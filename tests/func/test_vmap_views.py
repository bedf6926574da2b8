"""Batches of derivatives through views that are written, and shapes of examples that must fit."""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.func import jacfwd, jacrev, jvp, vjp, vmap
from tensorlib.testing import assert_close

VIEWS = {
    "reversed": lambda y: y[::-1], "reversed steps": lambda y: y[::-2, 1:],
    "both reversed": lambda y: y[::-1, ::-1], "transposed": lambda y: y.t(),
    "transposed and reversed": lambda y: y.t()[::-1], "every other": lambda y: y[1::2],
    "a row": lambda y: y[-2], "a column": lambda y: y[:, 1], "an element": lambda y: y[2, 1],
    "of a view": lambda y: y[::-1][1:, ::-1], "diagonal": lambda y: y.diagonal(),
    "in another shape": lambda y: y.view(2, 6), "whole": lambda y: y[...],
    "reversed in another shape": lambda y: y.view(12)[::-3],
}
WRITES = {
    "multiplied": lambda v, x: v.mul_(3.0), "by itself": lambda v, x: v.mul_(v.detach() + v),
    "by another": lambda v, x: v.mul_(x[0, 0]), "a copy": lambda v, x: v.copy_(x[1, 2] * 2),
    "filled": lambda v, x: v.fill_(2.0), "a function": lambda v, x: v.sin_(),
    "assigned": lambda v, x: v.__setitem__(..., x[3, 1] * v.clone()),
}


BASES = {"a result": lambda x: x * 1.0,
         "reversed memory": lambda x: tl.from_numpy(np.ones((4, 3))[::-1, ::-1])}


@each("base, view, write", [
    (base, view, write) for base in BASES for view in VIEWS for write in WRITES
    if base == "a result" or "shape" not in view and write not in ("filled", "a function")])
def test_derivatives_in_batches_through_a_view_that_is_written(base, view, write):
    """Many gradients at once, each by itself, and many tangents at once are one Jacobian."""
    def program(x):
        y = BASES[base](x)
        v = VIEWS[view](y)
        WRITES[write](v, x)
        return y * y + VIEWS[view](y).sum() + x

    rng = np.random.default_rng(3)
    x = tl.from_numpy(rng.uniform(0.5, 1.5, (4, 3)))
    directions = tl.from_numpy(rng.normal(size=(5, 4, 3)))
    _, pull = vjp(program, x)
    rows = vmap(pull)(directions)[0]
    assert_close(rows, tl.stack([pull(g)[0] for g in directions]))
    assert_close(jacrev(program)(x), jacfwd(program)(x))
    if base != "a result":          # examples that differ can't be written into what they share
        return
    assert_close(vmap(lambda g: vjp(program, x)[1](g)[0])(directions), rows)
    columns = vmap(lambda d: jvp(program, (x,), (d,))[1])(directions)
    assert_close((columns[:, None] * directions).sum((2, 3)).t(),
                 (rows[:, None] * directions).sum((2, 3)))


PRODUCTS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "outer": (1, 1)}
SHAPES = {1: [(1,), (3,)], 2: [(1, 3), (3, 1), (3, 3), (1, 1)],
          3: [(1, 3, 3), (2, 3, 3), (2, 1, 3), (1, 1, 3), (2, 3, 1)]}


@each("name", PRODUCTS)
def test_a_batch_of_products_takes_what_one_product_takes(name):
    """What is refused for one example is refused for a batch: nothing is broadcast that was not."""
    f = getattr(tl, name)
    rng = np.random.default_rng(4)
    taken = refused = 0
    for ndims in (PRODUCTS[name], PRODUCTS[name][::-1]):
        for shapes in itertools.product(*(SHAPES[ndim] for ndim in ndims)):
            for in_dims in ((0, 0), (0, None), (None, 0)):
                x, y = (tl.from_numpy(rng.normal(size=(4,) * (dim == 0) + shape))
                        for dim, shape in zip(in_dims, shapes))
                examples = [[z[i] if dim == 0 else z for z, dim in zip((x, y), in_dims)]
                            for i in range(4)]
                try:
                    wanted = tl.stack([f(*example) for example in examples])
                except RuntimeError:
                    with pytest.raises(RuntimeError, match=name):
                        vmap(f, in_dims)(x, y)
                    refused += 1
                else:
                    assert_close(vmap(f, in_dims)(x, y), wanted)
                    taken += 1
    assert taken and (refused or name == "outer")
