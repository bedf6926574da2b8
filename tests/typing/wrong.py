"""Mistakes, each of which both type checkers find, at the line that the comment marks."""

import tensorlib as tl
from tensorlib import Tensor, autograd, func, ops

x = tl.ones(2)


def loss(v: Tensor, data: Tensor) -> Tensor:
    return (v * data).sum()


@ops.primitive
def shifted(v: Tensor, by: float = 1.0) -> Tensor:
    return v + by


@tl.no_grad()
def norm(v: Tensor) -> float:
    return float(v.norm())


dense = ops.compose("typed_wrongly", loss)

tl.zeros("a")                           # wrong
x.tanh(3)                               # wrong
x.sum(dims=0)                           # wrong
x.sum(keepdim=[])                       # wrong
tl.no_such_function()                   # wrong
x.no_such_method()                      # wrong
autograd.no_such_function()             # wrong
func.no_such_transform()                # wrong
text: str = tl.ones(2)                  # wrong
x + "a"                                 # wrong
x @ 2.0                                 # wrong
x < None                                # wrong
x.add("1")                              # wrong
x.max(1).value                          # wrong
tl.cat(x, x)                            # wrong
tl.where(x > 0, "a", x)                 # wrong
x.view("2")                             # wrong
tl.ones(2, dtyp=tl.float32)             # wrong
tl.ones(2, dtype="float32")             # wrong
tl.set_grad_enabled("no")               # wrong
norm("x")                               # wrong
norm(x, 2)                              # wrong
func.grad(loss)(x)                      # wrong
func.grad(loss)("x", x)                 # wrong
func.vmap(loss)(x, "x")                 # wrong
func.vmap(loss, in_dim=0)               # wrong
func.vmap(loss, randomness="some")      # wrong
shifted(x, by="1")                      # wrong
dense(x)                                # wrong
tl.set_num_threads("2")                 # wrong
tl.manual_seed("a")                     # wrong
tl.graph.draw(x)                        # wrong
