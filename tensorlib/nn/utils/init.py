"""`skip_init`: modules whose parameters are not initialised."""

from typing import Any

from tensorlib import default_generator
from tensorlib.nn.modules.module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are to be written later: making it draws no random numbers.

    >>> skip_init(Linear, 2, 1)
    Linear(in_features=2, out_features=1, bias=True)

    Raises: RuntimeError for a class that is not a module's.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"skip_init: expected a class of modules, got {module_cls!r}")
    state = default_generator.get_state()
    try:
        return module_cls(*args, **kwargs)
    finally:
        default_generator.set_state(state)
