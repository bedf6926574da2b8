"""Hooks and gradients of one of several results, in a process that captured nothing: what replays
need is not there yet."""

from process import run_forked

CODE = """
import sys
import tensorlib as tl
from tensorlib.nn import functional as F

x = tl.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()
m = (tl.eye(3) * 2).requires_grad_()
for make in (lambda: F.max_pool2d(x, 2), lambda: x.max(2)[0], lambda: tl.linalg.qr(m)[1],
             lambda: F.scaled_dot_product_attention(x, x, x)):
    seen, y = [], make()
    y.register_hook(seen.append)
    y.retain_grad()
    y.sum().backward()
    assert tl.equal(seen[0], tl.ones_like(y)) and tl.equal(y.grad, seen[0])
    y = make()
    g, = tl.autograd.grad((y * y).sum(), y, create_graph=True)
    assert tl.equal(g, 2 * y)
    g.sum().backward()
assert not any(name.startswith("tensorlib.program.compiled") for name in sys.modules)
"""


def test_hooks_of_one_of_several_results():
    run_forked(CODE)
