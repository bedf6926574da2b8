"""AdamW: Adam with decoupled weight decay."""

from tensorlib import Tensor
from tensorlib.optim.adam import Adam
from tensorlib.optim.optimizer import ParamsT


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves, by lr * weight_decay of them.

    Raises: ValueError for rates that are out of range. Source: I. Loshchilov & F. Hutter,
    "Decoupled weight decay regularization", 2019.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tensorlib.optim.AdamW([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8990, 1.8980], requires_grad=True)
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True)
