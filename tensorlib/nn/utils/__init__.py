"""Utilities for modules and their parameters."""

from typing import TYPE_CHECKING

from tensorlib._core.base.importing import named_as_function, on_first_use
from tensorlib.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from tensorlib.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

if TYPE_CHECKING:
    from tensorlib.nn.utils import parametrizations, parametrize, prune, rnn, stateless
    from tensorlib.nn.utils.fusion import (
        fuse_conv_bn_eval,
        fuse_conv_bn_weights,
        fuse_linear_bn_eval,
        fuse_linear_bn_weights,
    )
    from tensorlib.nn.utils.init import skip_init
    from tensorlib.nn.utils.memory_format import (
        convert_conv2d_weight_memory_format,
        convert_conv3d_weight_memory_format,
    )
    from tensorlib.nn.utils.spectral_norm_hook import remove_spectral_norm, spectral_norm
    from tensorlib.nn.utils.weight_norm_hook import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm",
    "parameters_to_vector", "parametrizations", "parametrize", "prune", "remove_spectral_norm",
    "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "stateless",
    "vector_to_parameters", "weight_norm",
]

# modules of PyTorch's that have the names of their functions
named_as_function(f"{__name__}.spectral_norm", f"{__name__}.spectral_norm_hook")
named_as_function(f"{__name__}.weight_norm", f"{__name__}.weight_norm_hook")

__getattr__, __dir__ = on_first_use(__name__, {
    **{name: name for name in ("parametrizations", "parametrize", "prune", "rnn", "stateless")},
    **dict.fromkeys(("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval",
                     "fuse_linear_bn_weights"), "fusion"),
    "skip_init": "init",
    **dict.fromkeys(("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"),
                    "memory_format"),
    **dict.fromkeys(("remove_spectral_norm", "spectral_norm"), "spectral_norm_hook"),
    **dict.fromkeys(("remove_weight_norm", "weight_norm"), "weight_norm_hook")})
