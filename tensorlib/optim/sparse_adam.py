"""SparseAdam: Adam on the rows, or elements, that a sparse gradient has."""

from collections.abc import Callable
from typing import Any

from tensorlib import Tensor, no_grad, strided, zeros_like
from tensorlib.optim.optimizer import Optimizer, ParamsT, check_options


class SparseAdam(Optimizer):
    """Adam that changes the rows of a parameter, and of its averages, which its gradient has.

    With positions of several dims these are elements, or what the last dims hold at each. The
    averages of other rows stay as they are, so this is not Adam with zeros in the other rows.
    Raises: ValueError for rates that are out of range; `step` RuntimeError for dense gradients.

    >>> table = tensorlib.nn.Embedding(4, 2, sparse=True)
    >>> optimizer = tensorlib.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(tensorlib.tensor([1, 1, 3])).sum().backward()
    >>> table.weight.grad.coalesce().indices()
    tensor([[1, 3]])
    >>> optimizer.step()
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False) -> None:
        options = dict(lr=lr, betas=betas, eps=eps, maximize=maximize)
        check_options(options)
        super().__init__(params, options)
        sparse = [i for i, p in enumerate(p for group in self.param_groups
                                          for p in group["params"]) if p.layout is not strided]
        if sparse:
            raise ValueError(f"SparseAdam: Sparse params at indices {sparse}: SparseAdam requires "
                             "dense parameter tensors")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step with every parameter that has a gradient; the loss that `closure()` gave.

        Raises: RuntimeError for a dense gradient.
        """
        loss = None if closure is None else self._loss_of(closure)
        changed = [(group, p) for group in self.param_groups for p in group["params"]
                   if p.grad is not None]
        if not all(p.grad.is_sparse for _, p in changed):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam "
                               "instead")
        with no_grad():
            for group, p in changed:
                self._step_of_rows(group, p, p.grad.coalesce())
        return loss

    def _step_of_rows(self, group, p, g):
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=zeros_like(p), exp_avg_sq=zeros_like(p))
        step = state["step"] = int(state["step"]) + 1    # a tensor, where a state was loaded
        places, values = tuple(g.indices()), -g.values() if group["maximize"] else g.values()
        beta1, beta2 = group["betas"]
        averages = []
        for name, beta, new in (("exp_avg", beta1, values),
                                ("exp_avg_sq", beta2, values * values)):
            old = state[name][places]
            averages.append(old + (new - old) * (1 - beta))
            state[name][places] = averages[-1]   # index_copy_ copies the table
        mean, square = averages
        size = float(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        p[places] = p[places] - mean / (square.sqrt() + group["eps"]) * size
