"""ASGD: stochastic gradient descent that also averages the parameters over the steps."""

from tensorlib import Tensor
from tensorlib.optim.formula import FormulaOptimizer
from tensorlib.optim.optimizer import ParamsT


class ASGD(FormulaOptimizer):
    """Gradient descent with a rate that falls, and the mean of the parameters in the state `ax`.

    The rate is lr / (1 + lambd * lr * step)**alpha; the mean begins after t0 steps; lambd also
    shrinks the parameters.
    Raises: ValueError for negative rates. Source: B. Polyak & A. Juditsky, "Acceleration of
    stochastic approximation by averaging", 1992.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.ASGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    scalars = ("eta", "mu")
    fused = {frozenset(): "asgd", frozenset(["weight_decay"]): "asgd_decay"}
    fused_numbers = ("kept", "rate", "rest", "weight", "weight_decay")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lambd: float = 1e-4,
                 alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:
        super().__init__(params, dict(
            lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach,
            maximize=maximize, differentiable=differentiable, capturable=capturable))

    def states(self, group):
        return ("ax",)

    def begin(self, group, p):
        return {"eta": self._count(group["lr"]), "mu": self._count(1), **super().begin(group, p)}

    def numbers(self, group, step, state):
        lr, lambd = group["lr"], group["lambd"]
        rate, weight = float(state["eta"]), float(state["mu"])
        return {"kept": 1 - lambd * rate, "rate": rate, "weight": weight, "rest": 1 - weight,
                "weight_decay": group["weight_decay"],
                "eta": lr / (1 + lambd * lr * step) ** group["alpha"],
                "mu": 1 / max(1, step - group["t0"])}

    def formula(self, group, n, p, g, ax):
        if group["weight_decay"]:
            g = g + p * n.weight_decay
        p = p * n.kept - g * n.rate
        return p, ax * n.rest + p * n.weight
