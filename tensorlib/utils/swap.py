"""`swap_tensors`: exchanges the contents of two tensors."""

from tensorlib._core.tensor.tensor import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges two leaves: elements, dtype, gradient and attributes.

    All who hold one of them find the other. Views of either stay with the memory that they show.
    Raises: RuntimeError for a tensor that an operation gave with its graph, TypeError for tensors
    of different classes.

    >>> x, y = tensorlib.tensor([1.0]), tensorlib.tensor([2, 3])
    >>> tensorlib.utils.swap_tensors(x, y)
    >>> x, y
    (tensor([2, 3]), tensor([1.]))
    """
    if type(t1) is not type(t2):
        raise TypeError("swap_tensors: both must be of one class, got "
                        f"{type(t1).__name__} and {type(t2).__name__}")
    for x in (t1, t2):
        if not x.is_leaf:
            raise RuntimeError(f"swap_tensors: expects leaves, got a tensor with {x.grad_fn}")
    parts = [(x.detach(), x.requires_grad, x.grad, x.name, dict(getattr(x, "__dict__", ())))
             for x in (t1, t2)]
    for x, (elements, wants_grad, grad, name, attributes) in zip((t1, t2), reversed(parts)):
        x.grad = None
        x.requires_grad_(False)
        x.data = elements
        x.requires_grad_(wants_grad)
        x.grad, x.name = grad, name
        if hasattr(x, "__dict__"):
            vars(x).clear()
            vars(x).update(attributes)
