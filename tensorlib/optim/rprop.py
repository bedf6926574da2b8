"""Rprop: steps by the sign of the gradient, with a step size for each element."""

from tensorlib import Tensor, full_like
from tensorlib.optim.formula import FormulaOptimizer
from tensorlib.optim.optimizer import ParamsT


class Rprop(FormulaOptimizer):
    """Resilient propagation: each element has a step of its own, whatever the gradient's size.

    It grows by etas[1] while the sign of the gradient stays, and shrinks by etas[0] where that
    changes, within step_sizes; there the element stays where it is. For whole batches.
    Raises: ValueError for rates that are out of range. Source: M. Riedmiller & H. Braun, "A direct
    adaptive method for faster backpropagation learning", 1993.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.Rprop([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    options = ("maximize",)

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2,
                 etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False) -> None:
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, dict(
            lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable))

    def states(self, group):
        return ("prev", "step_size")

    def begin(self, group, p):
        return {**super().begin(group, p), "step_size": full_like(p, float(group["lr"]))}

    def numbers(self, group, step, state):
        shrink, grow = group["etas"]
        least, most = group["step_sizes"]
        return {"shrink": shrink, "grow": grow, "least": least, "most": most}

    def formula(self, group, n, p, g, prev, step_size):
        turned = g * prev
        step_size = (step_size * n.grow).where(
            turned > 0, (step_size * n.shrink).where(turned < 0, step_size))
        step_size = step_size.clamp(n.least, n.most)
        g = (g * 0.0).where(turned < 0, g)
        return p - g.sign() * step_size, g, step_size
