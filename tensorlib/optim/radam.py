"""RAdam: Adam whose first steps are rectified for the variance of their adaptive step size."""

from tensorlib import Tensor
from tensorlib.optim.formula import FormulaOptimizer, decayed, moments
from tensorlib.optim.optimizer import ParamsT


class RAdam(FormulaOptimizer):
    """Adam that goes by the mean gradient alone until enough squares have been seen.

    From then on the step is multiplied by the root of how far their mean can be trusted. The weight
    decay is added to the gradient, or taken from the parameter itself with decoupled_weight_decay.
    Raises: ValueError for rates that are out of range. Source: L. Liu, H. Jiang, P. He, W. Chen,
    X. Liu, J. Gao & J. Han, "On the variance of the adaptive learning rate and beyond", 2020.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.RAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    options = ("maximize", "weight_decay", "decoupled_weight_decay")
    fused = {
        frozenset(): "adam", frozenset(["decoupled_weight_decay"]): "adam",
        frozenset(["weight_decay"]): "adam_decay",
        frozenset(["weight_decay", "decoupled_weight_decay"]): "adamw",
    }
    fused_numbers = ("new1", "beta2", "new2", "scale", "shift", "size", "weight_decay", "kept")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize,
            foreach=foreach, capturable=capturable, decoupled_weight_decay=decoupled_weight_decay,
            differentiable=differentiable))

    def states(self, group):
        return ("exp_avg", "exp_avg_sq")

    def numbers(self, group, step, state):
        beta1, beta2 = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
        size = lr / (1 - beta1**step)
        rest = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1                        # squares that the mean can go back
        length = longest - 2 * step * beta2**step / rest     # and does by now
        trusted = length > 5
        if trusted:
            size = size * (rest * (length - 4) * (length - 2) * longest
                           / ((longest - 4) * (longest - 2) * length)) ** 0.5
        # the divisor is the root of the mean square and eps, or 1
        return {"new1": 1 - beta1, "beta2": beta2, "new2": 1 - beta2, "size": size,
                "scale": 1 if trusted else 0, "shift": group["eps"] if trusted else 1,
                "kept": 1 - lr * decay, "weight_decay": decay}

    def formula(self, group, n, p, g, exp_avg, exp_avg_sq):
        p, g = decayed(group, n, p, g)
        exp_avg, exp_avg_sq = moments(n, g, exp_avg, exp_avg_sq)
        p = p - exp_avg / (exp_avg_sq.sqrt() * n.scale + n.shift) * n.size
        return p, exp_avg, exp_avg_sq
