"""NAdam: Adam with Nesterov momentum."""

from tensorlib import Tensor
from tensorlib.optim.formula import FormulaOptimizer, decayed, moments
from tensorlib.optim.optimizer import ParamsT


class NAdam(FormulaOptimizer):
    """Adam with Nesterov's momentum, whose weight grows with the steps.

    The weight is beta1 * (1 - 0.96**(step * momentum_decay) / 2). The weight decay is added to the
    gradient, or taken from the parameter itself with decoupled_weight_decay.
    Raises: ValueError for rates that are out of range. Source: T. Dozat, "Incorporating Nesterov
    momentum into Adam", 2016.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.NAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8944, 1.8944], requires_grad=True)
    """

    options = ("maximize", "weight_decay", "decoupled_weight_decay")
    scalars = ("mu_product",)
    fused = {
        frozenset(): "nadam", frozenset(["decoupled_weight_decay"]): "nadam",
        frozenset(["weight_decay"]): "nadam_decay",
    }
    fused_numbers = ("new1", "beta2", "new2", "scale", "eps", "of_g", "of_m", "weight_decay")

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach,
            capturable=capturable, differentiable=differentiable))

    def states(self, group):
        return ("exp_avg", "exp_avg_sq")

    def begin(self, group, p):
        return {"mu_product": self._count(1), **super().begin(group, p)}

    def numbers(self, group, step, state):
        beta1, beta2 = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
        mu, next_mu = (beta1 * (1 - 0.5 * 0.96 ** (count * group["momentum_decay"]))
                       for count in (step, step + 1))
        product = float(state["mu_product"] * mu)         # in the precision of the state
        return {"new1": 1 - beta1, "beta2": beta2, "new2": 1 - beta2, "eps": group["eps"],
                "scale": (1 - beta2**step) ** -0.5, "of_g": lr * (1 - mu) / (1 - product),
                "of_m": lr * next_mu / (1 - product * next_mu), "mu_product": product,
                "kept": 1 - lr * decay, "weight_decay": decay}

    def formula(self, group, n, p, g, exp_avg, exp_avg_sq):
        p, g = decayed(group, n, p, g)
        exp_avg, exp_avg_sq = moments(n, g, exp_avg, exp_avg_sq)
        ahead = g * n.of_g + exp_avg * n.of_m
        return p - ahead / (exp_avg_sq.sqrt() * n.scale + n.eps), exp_avg, exp_avg_sq
