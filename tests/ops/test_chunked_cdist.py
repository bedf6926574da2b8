"""Distances between so many rows that they are taken in pieces."""

import numpy as np
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close

NEVER = "donot_use_mm_for_euclid_dist"


@each("p", [0.0, 0.5, 1.5, 3.0])
def test_distances_and_their_gradients_are_those_of_all_at_once(p):
    rng = np.random.default_rng(0)
    x, y = (tl.from_numpy(rng.standard_normal(shape)).requires_grad_()
            for shape in ((40, 200), (2, 50, 200)))
    away = x.unsqueeze(-2) - y.unsqueeze(-3)
    wanted = tl.norm(away, p, -1)
    found = tl.cdist(x, y, p, NEVER)
    assert found.shape == (2, 40, 50) and tl.equal(found, wanted)
    if p:
        for one, other in zip(tl.autograd.grad(found.sum(), (x, y)),
                              tl.autograd.grad(wanted.sum(), (x, y))):
            assert_close(one, other)

    above = tl.ones(40, 40, dtype=tl.bool).triu(1)
    wanted = tl.norm(x.unsqueeze(-2) - x.unsqueeze(-3), p, -1)[above]
    found = tl.pdist(x, p)
    assert tl.equal(found, wanted)
    if p:
        assert_close(tl.autograd.grad(found.sum(), x)[0], tl.autograd.grad(wanted.sum(), x)[0])
