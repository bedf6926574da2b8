"""What modules written for PyTorch import from `torch.nn.modules.utils`."""

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """The function that gives one value n times, and several as a tuple."""
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The values in reverse, each n times: padding of a convolution as `pad` takes it."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: MutableMapping[str, Any],
                                            prefix: str) -> None:
    """Removes a prefix, such as the `module.` of `DataParallel`, from the names of a state.

    >>> state = {"module.weight": 1, "step": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1, 'step': 2}
    """
    rename(state_dict, lambda key: key.removeprefix(prefix))
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:                 # the entry of the module inside is "module"
        rename(metadata, lambda key: f"{key}.".removeprefix(prefix).removesuffix("."))


def rename(entries: MutableMapping[str, Any], new_name: Callable[[str], str]) -> None:
    """Gives entries other names; their order stays."""
    renamed = {new_name(key): value for key, value in entries.items()}
    entries.clear()
    entries.update(renamed)
