"""Muon: steps by the orthogonal matrix nearest to the momentum."""

from collections.abc import Callable
from math import sqrt
from typing import Any

from tensorlib import Tensor, no_grad, zeros_like
from tensorlib.optim.optimizer import Optimizer, ParamsT, check_not_negative, check_rate


class Muon(Optimizer):
    """Momentum whose singular values are all made about 1, for the matrices of hidden layers.

    A few steps of a Newton-Schulz iteration do that, ns_steps of them with these coefficients; they
    are computed in float32, where PyTorch computes them in bfloat16. adjust_lr_fn says how the rate
    depends on the shape: "original" by the root of max(1, rows / columns), "match_rms_adamw" so
    that a step is as long as one of AdamW.
    Raises: ValueError for rates that are out of range, and for what is not a matrix. Source: K.
    Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024; J. Liu et al.,
    "Muon is scalable for LLM training", 2025.

    >>> x = tensorlib.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    >>> optimizer = tensorlib.optim.Muon([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([[1.0558, 1.9125],
            [2.9071, 4.9115]], requires_grad=True)
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, weight_decay: float = 0.1,
                 momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:
        check_rate(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, dict(
            lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
            ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn))

    def _check(self, p):
        super()._check(p)
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        if p.ndim != 2:
            raise ValueError("Muon only supports 2D parameters whereas we found a parameter with "
                             f"size: {tuple(p.shape)}")

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step with every parameter that has a gradient; the loss that `closure()` gave.

        Raises: ValueError for 100 steps of the iteration or more, or not three coefficients.
        """
        loss = self._loss_of(closure)
        for group in self.param_groups:
            if group["ns_steps"] >= 100:
                raise ValueError("Number of steps must be less than 100 for computational "
                                 "efficiency")
            if len(group["ns_coefficients"]) != 3:
                raise ValueError("Coefficients must be a tuple of exactly 3 values")
            for p in group["params"]:
                if p.grad is not None:
                    self._step(group, p, p.grad)
        return loss

    def _step(self, group, p, g):
        state, lr, momentum = self.state[p], float(group["lr"]), group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(g)
        mean = state["momentum_buffer"].lerp_(g, 1 - momentum)
        update = g.lerp(mean, momentum) if group["nesterov"] else mean
        update = orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        p.mul_(1 - lr * group["weight_decay"])
        p.sub_(update.to(p.dtype), alpha=lr * shape_factor(p, group["adjust_lr_fn"]))


def orthogonal(matrix, coefficients, steps, eps):
    """A matrix with the singular vectors of `matrix`, and singular values about 1."""
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).float()
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):             # each singular value s becomes a s + b s**3 + c s**5
        square = x @ x.T
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.T if tall else x


def shape_factor(p, rule):
    """By what the rate is multiplied for a matrix of the shape of `p`."""
    rows, columns = p.shape
    if rule == "match_rms_adamw":
        return 0.2 * sqrt(max(rows, columns))
    return sqrt(max(1, rows / columns))
