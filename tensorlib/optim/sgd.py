"""Stochastic gradient descent."""

from tensorlib import Tensor, no_grad, strided
from tensorlib.optim.formula import FormulaOptimizer
from tensorlib.optim.optimizer import ParamsT


class SGD(FormulaOptimizer):
    """Stochastic gradient descent, with momentum if asked for.

    The gradient, with weight_decay * p added, goes into a running sum, `momentum` times the old
    one plus 1 - dampening times the new; nesterov looks one step further along it.
    Raises: ValueError for negative rates. Source: I. Sutskever, J. Martens, G. Dahl & G. Hinton,
    "On the importance of initialization and momentum in deep learning", 2013, in the variant in
    which the rate is applied to the momentum.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.SGD([x], lr=0.1, momentum=0.9)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    options = ("maximize", "weight_decay", "momentum", "nesterov")
    counts = False
    fused = {
        frozenset(): "sgd", frozenset(["weight_decay"]): "sgd_decay",
        frozenset(["momentum"]): "sgd_momentum",
        frozenset(["momentum", "weight_decay"]): "sgd_momentum_decay",
        frozenset(["momentum", "nesterov"]): "sgd_nesterov",
        frozenset(["momentum", "nesterov", "weight_decay"]): "sgd_nesterov_decay",
    }
    fused_numbers = ("lr", "weight_decay", "momentum", "new")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, momentum: float = 0,
                 dampening: float = 0, weight_decay: float = 0, nesterov: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, dict(
            lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
            nesterov=nesterov, maximize=maximize, foreach=foreach, differentiable=differentiable,
            fused=fused))

    def sparse_step(self, group, p, g):
        is_sparse, decay = p.layout is not strided, group["weight_decay"]
        if decay and not is_sparse:
            raise RuntimeError("SGD: sparse gradients take no weight_decay")
        with no_grad():
            g = g.detach()
            if decay:
                g = g + p.detach() * (-decay if group["maximize"] else decay)
            g = self.sparse_momentum(group, p, g).merged()
            if is_sparse:
                p.add_(g, alpha=float(group["lr"]) if group["maximize"] else -float(group["lr"]))
                return
            rows, step = g.indices()[0], g.values() * float(group["lr"])
            p[rows] = p.index_select(0, rows) + (step if group["maximize"] else -step)

    def sparse_momentum(self, group, p, g):
        """The direction of a step: the sum, which is sparse as the gradients are, or the gradient.

        Raises: RuntimeError where the gradients before were dense.
        """
        momentum, state = group["momentum"], self.state[p]
        if not momentum:
            return g
        g = -g if group["maximize"] else g
        total, begun = state.get("momentum_buffer"), "momentum_buffer" in state
        if begun and total.layout is strided:
            raise RuntimeError("SGD: a momentum of dense gradients takes no sparse one")
        total = total * momentum + g * (1 - group["dampening"]) if begun else g
        state["momentum_buffer"] = total = total.merged()
        g = g + total * momentum if group["nesterov"] else total
        return -g if group["maximize"] else g

    def states(self, group):
        return ("momentum_buffer",) if group["momentum"] else ()

    def numbers(self, group, step, state):
        return {"lr": group["lr"], "weight_decay": group["weight_decay"],
                "momentum": group["momentum"],
                "new": 1 - group["dampening"] if step > 1 else 1}    # the first comes in whole

    def formula(self, group, n, p, g, momentum_buffer=None):
        if group["weight_decay"]:
            g = g + p * n.weight_decay
        if not group["momentum"]:
            return [p - g * n.lr]
        momentum_buffer = momentum_buffer * n.momentum + g * n.new
        g = g + momentum_buffer * n.momentum if group["nesterov"] else momentum_buffer
        return p - g * n.lr, momentum_buffer
