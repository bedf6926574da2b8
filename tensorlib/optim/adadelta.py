"""Adadelta: step sizes from running averages of squared gradients and of squared steps."""

from tensorlib import Tensor
from tensorlib.optim.formula import FormulaOptimizer
from tensorlib.optim.optimizer import ParamsT


class Adadelta(FormulaOptimizer):
    """The gradient, times the root mean square of the steps over that of the gradients.

    Raises: ValueError for rates that are out of range. Source: M. Zeiler, "ADADELTA: an adaptive
    learning rate method", 2012.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.Adadelta([x])
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9968, 1.9968], requires_grad=True)
    """

    fused = {frozenset(): "adadelta", frozenset(["weight_decay"]): "adadelta_decay"}
    fused_numbers = ("rho", "new", "eps", "lr", "weight_decay")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9,
                 eps: float = 1e-6, weight_decay: float = 0, foreach: bool | None = None, *,
                 capturable: bool = False, maximize: bool = False,
                 differentiable: bool = False) -> None:
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, dict(
            lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize,
            capturable=capturable, foreach=foreach, differentiable=differentiable))

    def states(self, group):
        return ("square_avg", "acc_delta")

    def numbers(self, group, step, state):
        return {"rho": group["rho"], "new": 1 - group["rho"], "eps": group["eps"],
                "lr": group["lr"], "weight_decay": group["weight_decay"]}

    def formula(self, group, n, p, g, square_avg, acc_delta):
        if group["weight_decay"]:
            g = g + p * n.weight_decay
        square_avg = square_avg * n.rho + g * g * n.new
        delta = (acc_delta + n.eps).sqrt() / (square_avg + n.eps).sqrt() * g
        return p - delta * n.lr, square_avg, acc_delta * n.rho + delta * delta * n.new
