"""Integers where kernels take floating dtypes: computed in float64, exact up to 2**53."""

from tensorlib._core.base.dtypes import BY_NAME


def in_doubles(function, *tensors):
    """The result of `function` for tensors of integers, in their dtype, in which it wraps."""
    found = function(*(x.to(BY_NAME["float64"]) for x in tensors))
    return found.to(BY_NAME["int64"]).to(tensors[0].dtype)
