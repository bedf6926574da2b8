"""The names of PyTorch's traced collectives, which are not supported."""

from typing import Any

from tensorlib.distributed.unsupported_settings import absent

INSTEAD = "the collectives of tensorlib.distributed and of distributed.nn do it at once"

all_reduce = absent("_functional_collectives.all_reduce", INSTEAD)
all_gather_tensor = absent("_functional_collectives.all_gather_tensor", INSTEAD)
all_to_all_single_autograd = absent("_functional_collectives.all_to_all_single_autograd", INSTEAD)


def wait_tensor(tensor: Any) -> Any:
    """The tensor as it is: nothing is under way."""
    return tensor
