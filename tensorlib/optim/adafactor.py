"""Adafactor: mean squares of a matrix of gradients, factored into those of rows and columns."""

from collections.abc import Callable
from typing import Any

from tensorlib import Tensor, finfo, no_grad, zeros_like
from tensorlib.optim.optimizer import Optimizer, ParamsT, check_not_negative, check_rate


class Adafactor(Optimizer):
    """The gradient over its root mean square, of which only rows and columns are kept.

    For an n x m matrix that takes n + m numbers in place of n * m. The rate, at most 1 over the
    root of the steps, is in units of the parameter's own size, at least eps[1]; an update whose
    root mean square is above d is shrunk to that.
    Raises: ValueError for rates that are out of range. Source: N. Shazeer & M. Stern, "Adafactor:
    adaptive learning rates with sublinear memory cost", 2018.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.Adafactor([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8419, 1.8419], requires_grad=True)
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
                 weight_decay: float = 0.0, *, foreach: bool | None = None,
                 maximize: bool = False) -> None:
        check_rate(lr)
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        check_not_negative(epsilon1=0 if eps[0] is None else eps[0], epsilon2=eps[1],
                           weight_decay=weight_decay)
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        super().__init__(params, dict(
            lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay,
            foreach=foreach, maximize=maximize))

    def _check(self, p):
        super()._check(p)
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step with every parameter that has a gradient; the loss that `closure()` gave.
        """
        loss = self._loss_of(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step(group, p, -p.grad if group["maximize"] else p.grad)
        return loss

    def _step(self, group, p, g):
        state = self.state[p]
        if not state:
            state["step"] = self._count(0)
            if g.ndim > 1:
                state["row_var"] = zeros_like(g[..., :1])
                state["col_var"] = zeros_like(g[..., :1, :])
            else:
                state["variance"] = zeros_like(g)
        state["step"] += 1
        step, lr = state["step"].item(), float(group["lr"])
        small, least = group["eps"]
        small = finfo(p.dtype).eps if small is None else small
        new = step ** group["beta2_decay"]
        rate = max(least, root_mean_square(p)) * min(lr, step**-0.5)
        p.mul_(1 - lr * group["weight_decay"])
        if g.ndim > 1:
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_((g * g).mean(dim=-1, keepdim=True), new)
            columns.lerp_((g * g).mean(dim=-2, keepdim=True), new)
            squares = rows @ columns / rows.mean(dim=-2, keepdim=True).clamp(min=small)
        else:
            squares = state["variance"].lerp_(g * g, new)
        update = squares.clamp(min=small * small).rsqrt() * g
        p.sub_(update, alpha=rate / max(1.0, root_mean_square(update) / group["d"]))


def root_mean_square(x):
    """The root of the mean square of all elements, as a number."""
    return x.norm().item() / max(x.numel(), 1) ** 0.5
