"""Adam: steps by running averages of the gradient and of its square."""

from tensorlib import Tensor
from tensorlib.optim.formula import FormulaOptimizer, decayed, moments
from tensorlib.optim.optimizer import ParamsT


class Adam(FormulaOptimizer):
    """Adam: the running mean of the gradient, over the root of that of its square.

    Both means start at zero, and are divided by what their weights sum to. amsgrad takes the
    largest mean square so far. The weight decay is added to the gradient, or, with
    decoupled_weight_decay, taken from the parameter itself as in `AdamW`.
    Raises: ValueError for rates that are out of range. Source: D. Kingma & J. Ba, "Adam: a method
    for stochastic optimization", 2015; S. Reddi, S. Kale & S. Kumar, "On the convergence of Adam
    and beyond", 2018.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    options = ("maximize", "weight_decay", "amsgrad", "decoupled_weight_decay")
    fused = {
        frozenset(): "adam", frozenset(["decoupled_weight_decay"]): "adam",
        frozenset(["weight_decay"]): "adam_decay",
        frozenset(["weight_decay", "decoupled_weight_decay"]): "adamw",
    }
    fused_numbers = ("new1", "beta2", "new2", "scale", "eps", "size", "weight_decay", "kept")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad,
            maximize=maximize, foreach=foreach, capturable=capturable,
            differentiable=differentiable, fused=fused,
            decoupled_weight_decay=decoupled_weight_decay))

    def states(self, group):
        largest = ("max_exp_avg_sq",) if group["amsgrad"] else ()
        return ("exp_avg", "exp_avg_sq", *largest)

    def numbers(self, group, step, state):
        beta1, beta2 = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
        return {"new1": 1 - beta1, "beta2": beta2, "new2": 1 - beta2, "eps": group["eps"],
                "size": lr / (1 - beta1**step), "scale": (1 - beta2**step) ** -0.5,
                "kept": 1 - lr * decay, "weight_decay": decay}

    def formula(self, group, n, p, g, exp_avg, exp_avg_sq, max_exp_avg_sq=None):
        p, g = decayed(group, n, p, g)
        exp_avg, exp_avg_sq = moments(n, g, exp_avg, exp_avg_sq)
        largest = max_exp_avg_sq.maximum(exp_avg_sq) if group["amsgrad"] else exp_avg_sq
        p = p - exp_avg / (largest.sqrt() * n.scale + n.eps) * n.size
        return (p, exp_avg, exp_avg_sq, largest) if group["amsgrad"] else (p, exp_avg, exp_avg_sq)
