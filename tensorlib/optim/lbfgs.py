"""L-BFGS: quasi-Newton steps, with the curvature estimated from the last gradients."""

from collections.abc import Callable
from typing import Any

from tensorlib import Tensor, cat, enable_grad, no_grad, view_as_real, zeros_like
from tensorlib.optim.line_search import _cubic_interpolate as _cubic_interpolate
from tensorlib.optim.line_search import _strong_wolfe as _strong_wolfe
from tensorlib.optim.line_search import strong_wolfe
from tensorlib.optim.optimizer import Optimizer, ParamsT, as_number, check_rate

SMALLEST_CURVATURE = 1e-10


def reals(x):
    """A tensor, or a complex one as pairs of its parts."""
    return view_as_real(x) if x.is_complex() else x


class LBFGS(Optimizer):
    """The limited-memory form of the method of Broyden, Fletcher, Goldfarb and Shanno.

    One call of `step` makes up to max_iter iterations, each in a direction that the last
    history_size changes of the gradient suggest. It needs a closure, which it calls up to max_eval
    times (by default 5 / 4 of max_iter). The length of a step is lr, or what a search along the
    line finds with line_search_fn="strong_wolfe". All parameters are in one group.
    Raises: ValueError for a negative rate and for several groups, RuntimeError for another search.
    Source: J. Nocedal & S. Wright, "Numerical optimization", 2006, algorithms 7.4 and 7.5.

    >>> x = tensorlib.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x[0] - 1) ** 4 + (x[1] - x[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> loss = [optimizer.step(closure) for _ in range(3)]
    >>> bool(closure() < 1e-6)
    True
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1, max_iter: int = 20,
                 max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        check_rate(lr)
        super().__init__(params, dict(
            lr=lr, max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad, tolerance_change=tolerance_change,
            history_size=history_size, line_search_fn=line_search_fn))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self):
        return self.param_groups[0]["params"]

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Makes up to max_iter iterations; the loss at their begin.

        closure: computes the loss anew, with its gradients, and returns it.
        """
        group, state = self.param_groups[0], self.state[self._params[0]]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        closure = enable_grad()(closure)
        first_loss = closure()
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        point = [as_number(first_loss), self._flat_gradient()]
        if not point[1].abs().max() <= group["tolerance_grad"]:      # NaN is not hidden, either
            self._iterate(group, state, closure, *point)
        return first_loss

    def _iterate(self, group, state, closure, loss, g):
        """Iterations until one of the limits is reached; their memory is in `state`."""
        lr, calls = float(group["lr"]), 1
        for count in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = state["d"] = self._direction(group, state, g)
            state["prev_flat_grad"], state["prev_loss"] = g.clone(), loss
            first = state["n_iter"] == 1
            t = state["t"] = float(min(1.0, 1.0 / g.abs().sum())) * lr if first else lr
            slope = float(g.dot(d))
            if slope > -group["tolerance_change"]:
                return
            last, used = count == group["max_iter"], 0
            if group["line_search_fn"] is not None:
                loss, g, t, used = strong_wolfe(
                    lambda t: self._looked_at(closure, t, d), t, d, loss, g, slope,
                    most=group["max_eval"] - calls)
                state["t"] = t
                self._move(t, d)
            else:
                self._move(t, d)
                if not last:
                    loss, g, used = as_number(closure()), self._flat_gradient(), 1
            calls += used
            state["func_evals"] += used
            if (last or calls >= group["max_eval"] or g.abs().max() <= group["tolerance_grad"]
                    or (d * t).abs().max() <= group["tolerance_change"]
                    or abs(loss - state["prev_loss"]) < group["tolerance_change"]):
                return

    def _direction(self, group, state, g):
        """Minus the gradient times the inverse of the Hessian, as far as it is known."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -g
        # changes of the gradient, the steps that made them, and 1 over the products of both
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = g - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature > SMALLEST_CURVATURE:
            if len(changes) == group["history_size"]:
                for history in (changes, steps, inverses):
                    history.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        d, weights = -g, []
        for change, step, inverse in zip(*map(reversed, (changes, steps, inverses))):
            weights.append(step.dot(d) * inverse)
            d -= change * weights[-1]
        d *= state["H_diag"]
        for change, step, inverse in zip(changes, steps, inverses):
            d += step * (weights.pop() - change.dot(d) * inverse)
        return d

    def _flat_gradient(self):
        return cat([zeros_like(reals(p)).reshape(-1) if p.grad is None else
                    reals(p.grad).reshape(-1) for p in self._params])

    def _move(self, t, d):
        """Moves all parameters by t times the direction."""
        moved = [reals(p) for p in self._params]
        for p, part in zip(moved, d.split([p.numel() for p in moved])):
            p.add_(part.reshape(p.shape), alpha=t)

    def _looked_at(self, closure, t, d):
        """The loss and the gradient at t along the direction; the parameters stay."""
        before = [p.clone() for p in self._params]
        self._move(t, d)
        found = as_number(closure()), self._flat_gradient()
        for p, old in zip(self._params, before):
            p.copy_(old)
        return found
