"""The settings of `torch.__future__`, which are stored and change nothing."""

from tensorlib._core.base.registry import Registry

__all__ = ["get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
           "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"]

_kept = Registry(overwrite=False, swap=False)


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Stores a value without effect: parameters of a converted module stay the same objects."""
    _kept["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """The value that `set_overwrite_module_params_on_conversion` stored, at first False."""
    return _kept["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Stores a value without effect: parameters of a converted module stay the same objects."""
    _kept["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """The value that `set_swap_module_params_on_conversion` stored, at first False."""
    return _kept["swap"]
