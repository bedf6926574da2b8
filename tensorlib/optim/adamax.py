"""Adamax: Adam with a running maximum of gradients in place of their mean square."""

from tensorlib import Tensor
from tensorlib.optim.formula import FormulaOptimizer
from tensorlib.optim.optimizer import ParamsT


class Adamax(FormulaOptimizer):
    """Adam in the infinity norm: the mean gradient over the largest one, which fades with time.

    Raises: ValueError for rates that are out of range. Source: D. Kingma & J. Ba, "Adam: a method
    for stochastic optimization", 2015, section 7.1.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.Adamax([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    fused = {frozenset(): "adamax", frozenset(["weight_decay"]): "adamax_decay"}
    fused_numbers = ("new", "beta2", "eps", "size", "weight_decay")

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach,
            maximize=maximize, differentiable=differentiable, capturable=capturable))

    def states(self, group):
        return ("exp_avg", "exp_inf")

    def numbers(self, group, step, state):
        beta1, beta2 = group["betas"]
        return {"new": 1 - beta1, "beta2": beta2, "eps": group["eps"],
                "size": group["lr"] / (1 - beta1**step), "weight_decay": group["weight_decay"]}

    def formula(self, group, n, p, g, exp_avg, exp_inf):
        if group["weight_decay"]:
            g = g + p * n.weight_decay
        exp_avg = exp_avg + (g - exp_avg) * n.new
        exp_inf = (exp_inf * n.beta2).maximum(g.abs() + n.eps)
        return p - exp_avg / exp_inf * n.size, exp_avg, exp_inf
