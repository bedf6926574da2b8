"""Parameters as one vector, and back."""

from collections.abc import Iterable

from tensorlib import Tensor, cat
from tensorlib._core.base.error_names import type_name


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters, one after the other.

    >>> parameters_to_vector([tensorlib.ones(2), tensorlib.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes parameters show the elements of a vector, part after part.

    Raises: TypeError for what is not a tensor, RuntimeError for too few elements.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: expected a Tensor, got {type_name(vec)}")
    parameters = list(parameters)
    wanted = sum(parameter.numel() for parameter in parameters)
    if vec.numel() < wanted:
        raise RuntimeError(f"vector_to_parameters: the parameters have {wanted} elements, the "
                           f"vector {vec.numel()}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end
