"""AdamW: Adam with the weight decay apart from the gradient."""

from tensorlib.optim.adam import Adam


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves, by lr * weight_decay of them.

    Raises: ValueError for rates that are out of range. Source: I. Loshchilov & F. Hutter,
    "Decoupled weight decay regularization", 2019.

    >>> x = tl.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tl.optim.AdamW([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8990, 1.8980], requires_grad=True)
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2,
                 amsgrad=False, *, maximize=False, foreach=None, capturable=False,
                 differentiable=False, fused=None):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True)
