"""Names that PyTorch keeps under `utils`."""

from typing import TYPE_CHECKING

from tensorlib._core.base.importing import on_first_use

if TYPE_CHECKING:
    from tensorlib.utils import (
        benchmark,
        checkpoint,
        data,
        dlpack,
        flop_counter,
        hooks,
        module_tracker,
        tensorboard,
    )
    from tensorlib.utils.swap import swap_tensors

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "flop_counter", "hooks", "module_tracker",
           "swap_tensors", "tensorboard"]

__getattr__, __dir__ = on_first_use(
    __name__, {**{name: name for name in [*__all__, "_pytree", "_python_dispatch", "weak"]},
               "swap_tensors": "swap"})
