"""SciPy's minimisers over the parameters of models, with exact gradients and Hessian products.

    x = tensorlib.tensor([1.3, 0.7], dtype=tensorlib.float64, requires_grad=True)
    minimize(lambda: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, [x], method="trust-ncg")
    x                       # is [1, 1] now
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np

from tensorlib import Tensor, autograd, enable_grad, from_numpy, no_grad
from tensorlib._core.base.error_names import type_name

__all__ = ["minimize"]

Vector = np.ndarray[Any, Any]
WITH_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
WITH_HESSIAN = ("dogleg", "trust-exact")
WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")


class Objective:
    """A loss as SciPy calls it: of one vector, which becomes the values of the parameters."""

    def __init__(self, closure: Callable[[], Tensor], parameters: list[Tensor]) -> None:
        self.closure, self.parameters = closure, parameters
        self.recorded: tuple[bytes, list[Tensor]] = b"", []

    def start(self) -> Vector:
        """The values of the parameters, one after the other, in float64."""
        return np.concatenate([p.detach().double().flatten().numpy() for p in self.parameters])

    def pieces(self, x: Vector) -> list[Tensor]:
        """A vector as tensors like the parameters."""
        ends = np.cumsum([p.numel() for p in self.parameters])[:-1]
        return [from_numpy(np.array(part)).to(p.dtype).view(p.shape)
                for part, p in zip(np.split(np.asarray(x, np.float64), ends), self.parameters)]

    def move(self, x: Vector) -> None:
        """Gives the parameters other values; what was recorded of those before is void."""
        self.recorded = b"", []
        with no_grad():
            for p, value in zip(self.parameters, self.pieces(x)):
                p.copy_(value)

    def loss(self, x: Vector) -> Tensor:
        self.move(x)
        with enable_grad():
            loss = self.closure()
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            what = tuple(loss.shape) if isinstance(loss, Tensor) else type_name(loss)
            raise TypeError(f"minimize: closure returns a tensor of one element, got {what}")
        return loss

    def gradient(self, x: Vector, create_graph: bool = False) -> tuple[float, list[Tensor]]:
        """The loss, and its gradient for each parameter: zeros for what it does not depend on."""
        loss = self.loss(x)
        if not loss.requires_grad:
            raise RuntimeError("minimize: the loss does not depend on any of the parameters")
        found = autograd.grad(loss, self.parameters, create_graph=create_graph, allow_unused=True)
        return loss.item(), [p.new_zeros(p.shape) if g is None else g
                             for g, p in zip(found, self.parameters)]

    def value(self, x: Vector) -> float:
        with no_grad():
            return self.loss(x).item()

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        value, found = self.gradient(x)
        return value, joined(found)

    def product(self, x: Vector, p: Vector) -> Vector:
        """The Hessian times a vector: the derivative of the gradient in its direction.

        A minimiser asks for several at one place, where the gradient is recorded once.
        """
        if self.recorded[0] != x.tobytes():
            gradient = self.gradient(x, create_graph=True)[1]
            self.recorded = x.tobytes(), gradient
        graphs, directions = [], []
        for g, direction in zip(self.recorded[1], self.pieces(p)):
            if g.requires_grad:
                graphs.append(g)
                directions.append(direction)
        if not graphs:
            return np.zeros(len(x))
        found = autograd.grad(graphs, self.parameters, directions, retain_graph=True,
                              allow_unused=True)
        return joined([p.new_zeros(p.shape) if h is None else h
                       for h, p in zip(found, self.parameters)])

    def hessian(self, x: Vector) -> Vector:
        """The Hessian, by as many products as there are numbers."""
        rows = np.stack([self.product(x, row) for row in np.eye(len(x))])
        return (rows + rows.T) / 2


def joined(parts: list[Tensor]) -> Vector:
    """Tensors as one vector of float64."""
    return np.concatenate([part.detach().double().flatten().numpy() for part in parts])


def minimize(closure: Callable[[], Tensor], params: Iterable[Tensor], method: str = "L-BFGS-B",
             **options: Any) -> Any:
    """The result of `scipy.optimize.minimize`, after which the parameters have the values found.

    Gradients are exact, by reverse mode, as are Hessians: products with vectors for "Newton-CG",
    "trust-ncg", "trust-krylov" and "trust-constr", the whole matrix for "dogleg" and "trust-exact".
    SciPy works in float64; parameters of float64 make the most of it.

    Args:
        closure: a function without arguments that computes the loss, a tensor of one element.
        params: the parameters, such as `model.parameters()`. Those that don't learn are left alone.
        method: SciPy's name of the minimiser.
        options: further arguments of `scipy.optimize.minimize`, such as `tol`, `bounds`, `options`
            and `callback`.

    Raises: ImportError without SciPy, ValueError for no parameters, TypeError for a loss that is no
    tensor of one element, RuntimeError for one that does not depend on them. After an error, also
    one of the closure, the parameters are as they were.
    """
    try:
        optimize = import_module("scipy.optimize")
    except ImportError:
        raise ImportError("optim.scipy.minimize: needs the package scipy: pip install scipy"
                          ) from None
    parameters = [p for p in params if p.requires_grad]
    if not parameters:
        raise ValueError("minimize: there is no parameter that requires a gradient")
    objective = Objective(closure, parameters)
    kind = method.lower()
    given: dict[str, Any] = {"jac": True}
    if kind in WITHOUT_GRADIENT:
        given = {}
    elif kind in WITH_PRODUCTS:
        given["hessp"] = objective.product
    elif kind in WITH_HESSIAN:
        given["hess"] = objective.hessian
    start = objective.start()
    before = [p.detach().clone() for p in parameters]
    try:
        result = optimize.minimize(objective.value_and_gradient if given else objective.value,
                                   start, method=method, **{**given, **options})
    except BaseException:
        with no_grad():
            for p, value in zip(parameters, before):
                p.copy_(value)
        raise
    objective.move(result.x)
    return result
