"""Adagrad: steps divided by the root of the sum of all squared gradients."""

from tensorlib import Tensor, full_like, no_grad
from tensorlib.optim.formula import FormulaOptimizer
from tensorlib.optim.optimizer import ParamsT


class Adagrad(FormulaOptimizer):
    """The gradient over the root of the sum of the squares of all gradients so far.

    The rate is divided by 1 + lr_decay times the steps before this one.
    Raises: ValueError for negative rates. Source: J. Duchi, E. Hazan & Y. Singer, "Adaptive
    subgradient methods for online learning and stochastic optimization", 2011.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.Adagrad([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    fused = {frozenset(): "adagrad", frozenset(["weight_decay"]): "adagrad_decay"}
    fused_numbers = ("rate", "eps", "weight_decay")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0,
                 weight_decay: float = 0, initial_accumulator_value: float = 0, eps: float = 1e-10,
                 foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(params, dict(
            lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, foreach=foreach,
            maximize=maximize, differentiable=differentiable, fused=fused))
        for group in self.param_groups:          # there before the first step, as in PyTorch
            for p in group["params"]:
                self._begun(group, p)

    def sparse_step(self, group, p, g):
        if group["weight_decay"]:
            raise RuntimeError("Adagrad: sparse gradients take no weight_decay")
        state = self._begun(group, p)
        state["step"] += 1
        g = g.coalesce()
        with no_grad():
            rows, values = g.indices()[0], g.values()
            squares = state["sum"].index_select(0, rows) + values * values
            state["sum"][rows] = squares
            rate = float(self.numbers(group, int(state["step"]), state)["rate"])
            step = values / (squares.sqrt() + group["eps"]) * rate
            p[rows] = p.index_select(0, rows) + (step if group["maximize"] else -step)

    def states(self, group):
        return ("sum",)

    def begin(self, group, p):
        start = group["initial_accumulator_value"]       # of both parts of a complex number
        return {"sum": full_like(p, complex(start, start) if p.is_complex() else start)}

    def numbers(self, group, step, state):
        return {"rate": group["lr"] / (1 + (step - 1) * group["lr_decay"]), "eps": group["eps"],
                "weight_decay": group["weight_decay"]}

    def formula(self, group, n, p, g, sum):
        if group["weight_decay"]:
            g = g + p * n.weight_decay
        sum = sum + g * g
        return p - g / (sum.sqrt() + n.eps) * n.rate, sum
