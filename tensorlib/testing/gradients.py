"""`gradcheck` and `gradgradcheck`: gradients held against two-sided finite differences.

The Jacobian of output y with respect to input x is a matrix with a row for each element of x and a
column for each element of y. The numerical one is (fn(x + eps) - fn(x - eps)) / (2 eps) row by row;
the analytical one is a backward sweep column by column.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorlib as tl

Function = Callable[..., tl.Tensor | Sequence[tl.Tensor]]


class GradcheckError(RuntimeError):
    """A gradient differs from the finite difference, or from itself when computed again."""


def gradcheck(
    fn: Function,
    inputs: tl.Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """True where the gradients of `fn` equal finite differences for all inputs that require grad.

    `fn` takes the inputs and returns a Tensor or a sequence of Tensors; outputs that are not
    floating are left out. Inputs that require grad are float64 and do not overlap themselves; each
    of their elements is moved by eps in place and put back. Equal means
    |analytical - numerical| <= atol + rtol * |numerical|; two sweeps may differ by `nondet_tol`.

    Raises: GradcheckError for a wrong gradient, unless raise_exception=False, which returns False.
    ValueError for inputs that cannot be checked.

    >>> import tensorlib
    >>> x = tensorlib.tensor([0.5, -2.0], dtype=tensorlib.float64, requires_grad=True)
    >>> gradcheck(lambda x: x.sin() * x, x)
    True
    """
    inputs = _tuple(inputs)
    positions = _checked_positions("gradcheck", inputs)
    try:
        _check(fn, inputs, positions, eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    fn: Function,
    inputs: tl.Tensor | Sequence[Any],
    grad_outputs: tl.Tensor | Sequence[tl.Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """True where the gradients of the gradients of `fn` equal finite differences.

    They are taken with respect to the inputs and to the incoming gradients `grad_outputs`, one for
    each output that requires grad; by default random ones, the same in every call.

    Raises: as `gradcheck`.

    >>> import tensorlib
    >>> x = tensorlib.tensor([0.5, -2.0], dtype=tensorlib.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x.sin() * x, x)
    True
    """
    inputs = _tuple(inputs)
    positions = _checked_positions("gradgradcheck", inputs)
    if grad_outputs is None:
        grad_outputs = _random_like(_differentiable(fn(*inputs)))
    grad_outputs = _tuple(grad_outputs)

    def gradient(*arguments):
        originals, gs = arguments[: len(inputs)], arguments[len(inputs) :]
        grads = tl.autograd.grad(
            _differentiable(fn(*originals)),
            [originals[position] for position in positions],
            gs,
            create_graph=True,
            allow_unused=True,
        )
        return tuple(grad for grad in grads if grad is not None)

    return gradcheck(
        gradient, inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
    )


def _check(fn, inputs, positions, eps, atol, rtol, nondet_tol):
    outputs = _floating(fn(*inputs))
    checked = [inputs[position] for position in positions]
    analytical = [_analytical(output, checked, positions) for output in outputs]
    for output_index, output in enumerate(outputs):
        again = _analytical(output, checked, positions)
        for position, first, second in zip(positions, analytical[output_index], again):
            if not np.allclose(first, second, rtol=0.0, atol=nondet_tol, equal_nan=True):
                raise GradcheckError(
                    f"gradcheck: two sweeps differ by {np.abs(first - second).max()} (nondet_tol="
                    f"{nondet_tol}) for output {output_index} with respect to input {position}\n"
                    f"first:\n{first}\nsecond:\n{second}"
                )
    for column, position in enumerate(positions):
        numerical = _numerical(fn, inputs, position, eps)
        for output_index, jacobian in enumerate(numerical):
            _compare(analytical[output_index][column], jacobian, output_index, position, atol, rtol)


def _compare(analytical, numerical, output_index, position, atol, rtol):
    close = np.abs(analytical - numerical) <= atol + rtol * np.abs(numerical)
    if close.all():
        return
    row, column = (int(i) for i in np.argwhere(~close)[0])
    raise GradcheckError(
        f"gradcheck: Jacobian mismatch for output {output_index} with respect to input {position}: "
        f"{np.count_nonzero(~close)} of {close.size} entries, the first d output[{column}] / "
        f"d input[{row}] (flat indices): numerical {numerical[row, column]}, "
        f"analytical {analytical[row, column]}\n"
        f"numerical:\n{numerical}\nanalytical:\n{analytical}"
    )


def _analytical(output, checked, positions):
    """The Jacobians of one output with respect to each checked input, from backward sweeps."""
    jacobians = [np.zeros((x.numel(), output.numel())) for x in checked]
    if not output.requires_grad:
        return jacobians
    for column in range(output.numel()):
        one_hot = np.zeros(output.numel())
        one_hot[column] = 1.0
        g = tl.tensor(one_hot.reshape(tuple(output.shape)), dtype=output.dtype)
        grads = tl.autograd.grad(output, checked, g, retain_graph=True, allow_unused=True)
        for jacobian, grad, x, position in zip(jacobians, grads, checked, positions):
            if grad is None:
                continue
            if grad.shape != x.shape or grad.dtype != x.dtype:
                raise GradcheckError(
                    f"gradcheck: the gradient of input {position} is {grad.dtype} of shape "
                    f"{tuple(grad.shape)}, but the input is {x.dtype} of shape {tuple(x.shape)}"
                )
            jacobian[:, column] = grad.detach().numpy().reshape(-1)
    return jacobians


def _numerical(fn, inputs, position, eps):
    """The Jacobians of every output with respect to one input, from finite differences."""
    moved = inputs[position].detach()  # shares memory, so that writes to it move the input itself
    rows = []
    for index in np.ndindex(*moved.shape):
        value = moved[index].item()
        try:
            moved[index] = value + eps
            above = _flat_values(fn(*inputs))
            moved[index] = value - eps
            below = _flat_values(fn(*inputs))
        finally:
            moved[index] = value
        rows.append([(high - low) / (2 * eps) for high, low in zip(above, below)])
    if not rows:
        return [np.zeros((0, values.size)) for values in _flat_values(fn(*inputs))]
    return [np.stack(jacobian) for jacobian in zip(*rows)]


def _checked_positions(name, inputs):
    """Positions of the inputs that require grad, which must be fit for finite differences."""
    positions = [
        position for position, x in enumerate(inputs)
        if isinstance(x, tl.Tensor) and x.requires_grad
    ]
    if not positions:
        raise ValueError(
            f"{name}: none of the {len(inputs)} inputs requires grad; at least one must"
        )
    for position in positions:
        x = inputs[position]
        if x.dtype != tl.float64:
            raise ValueError(
                f"{name}: input {position} is {x.dtype}; finite differences need tensorlib.float64"
            )
        if any(size > 1 and stride == 0 for size, stride in zip(x.shape, x.stride())):
            raise ValueError(
                f"{name}: input {position} overlaps itself (shape {tuple(x.shape)}, strides "
                f"{tuple(x.stride())}), so that one element cannot be moved alone; clone() it"
            )
    return positions


def _floating(outputs):
    return [output for output in _tuple(outputs) if output.is_floating_point()]


def _differentiable(outputs):
    return [output for output in _tuple(outputs) if output.requires_grad]


def _flat_values(outputs):
    # A copy: an output may be a view of the input that is about to be moved.
    return [output.detach().numpy().reshape(-1).copy() for output in _floating(outputs)]


def _random_like(outputs):
    rng = np.random.default_rng(0)
    return tuple(
        tl.tensor(
            rng.uniform(-1.0, 1.0, tuple(output.shape)), dtype=output.dtype, requires_grad=True
        )
        for output in outputs
    )


def _tuple(values):
    return (values,) if isinstance(values, tl.Tensor) else tuple(values)
