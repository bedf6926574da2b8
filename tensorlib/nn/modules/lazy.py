"""Lazy modules, which take their sizes from the first input."""

from typing import Any

from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import is_lazy


class LazyModuleMixin(Module):
    """What lazy layers have in common: the first call makes the parameters, then the class changes.

    A layer names the class that it becomes, as `cls_to_become` or by `class LazyLinear(...,
    becomes=Linear)`, and makes its parameters in `initialize_parameters`, which is given the
    arguments of the first call.
    """

    cls_to_become: type[Module] | None = None

    def __init_subclass__(cls, becomes: type[Module] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if becomes is not None:
            cls.cls_to_become = becomes

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy_hook = self.register_forward_pre_hook(initialize, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters fit the arguments of a call; each lazy layer has its own."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether any parameter or buffer waits for its shape."""
        own = vars(self)
        return any(map(is_lazy, (*own["_parameters"].values(), *own["_buffers"].values())))

    def materialize(self, **shapes: Any) -> None:
        """Gives the parameters and buffers of these names their shapes, where they wait for one."""
        for name, shape in shapes.items():
            tensor = getattr(self, name)
            if is_lazy(tensor):
                tensor.materialize(shape)


def initialize(module, args, kwargs):
    """The hook of a lazy layer's first call."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"{type(module).__name__}: some parameters were not initialized by "
                           "initialize_parameters")
    vars(module).pop("lazy_hook").remove()
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become
