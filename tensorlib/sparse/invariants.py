"""`check_sparse_tensor_invariants`: whether places that are out of order are refused."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorlib._core.base.error_names import type_name


class check_sparse_tensor_invariants:  # noqa: N801  PyTorch's name
    """Has matrices whose places are out of order, or there twice, refused: for all programs by
    `enable()`, in a `with` block, or as a decorator in a function.

    That positions are in range is always checked; without this, places out of order are put in
    order. Functions that make sparse tensors take it as `check_invariants` too.

    >>> with tensorlib.sparse.check_sparse_tensor_invariants():
    ...     tensorlib.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0])
    Traceback (most recent call last):
        ...
    RuntimeError: sparse_csr_tensor: the places in a row must ascend, and each be there once
    """

    state = False

    def __init__(self, enable: bool = True) -> None:
        if not isinstance(enable, bool):
            raise TypeError("check_sparse_tensor_invariants: enable must be a bool, got "
                            f"{type_name(enable)}")
        self.wanted = enable
        self.saved: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether such places are refused."""
        return check_sparse_tensor_invariants.state

    @staticmethod
    def enable() -> None:
        """Has them refused from now on."""
        check_sparse_tensor_invariants.state = True

    @staticmethod
    def disable() -> None:
        """Has them put in order from now on."""
        check_sparse_tensor_invariants.state = False

    def __enter__(self) -> None:
        if self.saved is not None:
            raise RuntimeError("check_sparse_tensor_invariants: this context is entered already")
        self.saved = self.is_enabled()
        check_sparse_tensor_invariants.state = self.wanted

    def __exit__(self, *error: Any) -> None:
        check_sparse_tensor_invariants.state, self.saved = bool(self.saved), None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.wanted):
                return function(*args, **kwargs)
        return checked
