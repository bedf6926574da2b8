"""RMSprop: steps by the gradient over its root mean square."""

from tensorlib import Tensor
from tensorlib.optim.formula import FormulaOptimizer
from tensorlib.optim.optimizer import ParamsT, check_not_negative


class RMSprop(FormulaOptimizer):
    """The gradient over the root of the running mean of its square, with momentum if asked for.

    centered takes the variance in place of the mean square.
    Raises: ValueError for negative rates. Source: G. Hinton's lectures, 2012; A. Graves,
    "Generating sequences with recurrent neural networks", 2013, for the centered form.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.RMSprop([x], lr=0.05)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    options = ("maximize", "weight_decay", "momentum", "centered")
    fused = {frozenset(): "rmsprop", frozenset(["weight_decay"]): "rmsprop_decay"}
    fused_numbers = ("alpha", "new", "eps", "lr", "weight_decay")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, alpha: float = 0.99,
                 eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:
        check_not_negative(alpha=alpha)
        super().__init__(params, dict(
            lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered,
            weight_decay=weight_decay, capturable=capturable, foreach=foreach, maximize=maximize,
            differentiable=differentiable))

    def states(self, group):
        return ("square_avg", *["momentum_buffer"] * bool(group["momentum"]),
                *["grad_avg"] * bool(group["centered"]))

    def numbers(self, group, step, state):
        return {"alpha": group["alpha"], "new": 1 - group["alpha"], "eps": group["eps"],
                "lr": group["lr"], "momentum": group["momentum"],
                "weight_decay": group["weight_decay"]}

    def formula(self, group, n, p, g, square_avg, *others):
        others = list(others)
        if group["weight_decay"]:
            g = g + p * n.weight_decay
        square_avg = square_avg * n.alpha + g * g * n.new
        spread = square_avg
        if group["centered"]:
            others[-1] = grad_avg = others[-1] + (g - others[-1]) * n.new
            spread = square_avg - grad_avg * grad_avg
        step = g / (spread.sqrt() + n.eps)
        if group["momentum"]:
            others[0] = step = others[0] * n.momentum + step
        return p - step * n.lr, square_avg, *others
