"""`gradcheck` and `gradgradcheck`: gradients held against two-sided finite differences.

The Jacobian of output y with respect to input x is a matrix with a row for each element of x and a
column for each element of y. A complex number counts as two, its real and its imaginary part: a
sweep with the incoming gradient i gives the gradient of the imaginary part. The numerical one is
(fn(x + eps) - fn(x - eps)) / (2 eps) row by row; the analytical one is a backward sweep column by
column, or forward mode row by row.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorlib._core.arrays.convert import tensor
from tensorlib._core.base.dtypes import BY_NAME, has_gradients
from tensorlib._core.base.formats import strided
from tensorlib._core.base.importing import deferred
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.gradients import grad as gradient_of
from tensorlib.autograd.jacobians import alone, columns_of, rows_of, stack, together
from tensorlib.autograd.transform import Recording

PRECISE = BY_NAME["float64"], BY_NAME["complex128"]

Function = Callable[..., Tensor | Sequence[Tensor]]
over_values = deferred("tensorlib.sparse.checking", "over_values")


class GradcheckError(RuntimeError):
    """A gradient differs from the finite difference, or from itself when computed again."""


def gradcheck(
    fn: Function,
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """True where the gradients of `fn` equal finite differences for all inputs that require grad.

    `fn` takes the inputs and returns a Tensor or a sequence of Tensors; outputs that are neither
    floating nor complex are left out. Inputs that require grad are float64 or complex128 and do not
    overlap themselves; each of their elements, or each of its parts, is moved by eps in place and
    put back. Equal means |analytical - numerical| <= atol + rtol * |numerical|; two sweeps may
    differ by `nondet_tol`. Outputs that do not require grad are not checked, unless none does: then
    all derivatives have to be zero.

    check_backward_ad, check_forward_ad: which mode is checked; at least one. check_batched_grad,
    check_batched_forward_grad: whether many gradients or tangents at once, as by `vmap`, give the
    same. What the other arguments ask for is always done: outputs are swept one at a time, so that
    the others have no gradient; dtypes are compared.

    Of sparse inputs the values are checked, at positions that stay, with `masked` or without.

    fast_mode moves each input along one random direction and weighs the elements of each output at
    random, so that numbers are compared in place of Jacobians, in two calls of `fn` for each input.
    A wrong entry shows there as a multiple of itself. Where one shows, all elements are compared,
    for what the error says.

    Raises: GradcheckError for a wrong gradient, unless raise_exception=False, which returns False.
    ValueError for inputs that cannot be checked.

    Source: Nocedal and Wright, Numerical Optimization, second edition (Springer, 2006), section
    8.1, for the finite differences.

    >>> import tensorlib
    >>> x = tensorlib.tensor([0.5, -2.0], dtype=tensorlib.float64, requires_grad=True)
    >>> gradcheck(lambda x: x.sin() * x, x)
    True
    """
    inputs = _tuple(inputs)
    if any(isinstance(x, Tensor) and x.layout is not strided for x in inputs):
        fn, inputs = over_values(fn, inputs)
    if not check_backward_ad and not check_forward_ad:
        raise ValueError("gradcheck: expected check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad or (
            check_batched_forward_grad and not check_forward_ad):
        raise ValueError("gradcheck: a batched check needs the check of the same mode")
    positions = _checked_positions("gradcheck", inputs)
    fn = _with_gradients(fn, inputs)
    if fast_mode:
        settings = dict(eps=eps, atol=atol, rtol=rtol, nondet_tol=nondet_tol,
                        check_batched_grad=check_batched_grad,
                        check_batched_forward_grad=check_batched_forward_grad,
                        check_forward_ad=check_forward_ad, check_backward_ad=check_backward_ad)
        try:
            return gradcheck(*_projected(fn, inputs, positions), **settings)
        except GradcheckError:
            if not raise_exception:
                return False
            gradcheck(fn, inputs, **settings)
            raise
    try:
        numerical = _numerical_jacobians(fn, inputs, positions, eps)
        if check_backward_ad:
            found = _backward_jacobians(fn, inputs, positions, nondet_tol)
            _compare(found, numerical, positions, "analytical", atol, rtol)
        if check_batched_grad:
            found = _batched_jacobians(fn, inputs, positions)
            _compare(found, numerical, positions, "batched", atol, rtol)
        if check_forward_ad:
            found = _forward_jacobians(fn, inputs, positions, batched=False)
            _compare(found, numerical, positions, "forward-mode", atol, rtol)
        if check_batched_forward_grad:
            found = _forward_jacobians(fn, inputs, positions, batched=True)
            _compare(found, numerical, positions, "batched forward-mode", atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    fn: Function,
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
) -> bool:
    """True where the gradients of the gradients of `fn` equal finite differences.

    They are taken with respect to the inputs and to the incoming gradients `grad_outputs`, one for
    each output that requires grad; by default random ones, the same in every call.
    check_rev_over_rev, check_fwd_over_rev: by which mode the gradients are differentiated. The
    other arguments are those of `gradcheck`.

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
        grads = gradient_of(
            _differentiable(fn(*originals)),
            [originals[position] for position in positions],
            gs,
            create_graph=True,
            allow_unused=True,
        )
        # a zero keeps the place of each: a parameter that `fn` reads by itself has one now and then
        checked = [originals[position] for position in positions]
        return tuple(x.new_zeros(x.shape) if grad is None else grad
                     for x, grad in zip(checked, grads))

    return gradcheck(
        gradient, inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
    )


def _projected(fn, inputs, positions):
    """A function of numbers, and zeros: `fn` so far along a direction of each checked input, its
    outputs weighted and summed. A complex output gives the real part of what its conjugate does.

    Directions and weights have length 1: errors of `atol` in many elements sum up to no more.
    """
    rng = np.random.default_rng(0)
    starts = [inputs[position].detach() for position in positions]
    directions = [tensor(_unit(rng, x), dtype=x.dtype) for x in starts]
    weights = [tensor(_unit(rng, out), dtype=out.dtype) for out in _floating(fn(*inputs))]

    def along(*steps):
        given = list(inputs)
        for position, start, direction, step in zip(positions, starts, directions, steps):
            given[position] = start + direction * step
        found = [out * weight for out, weight in zip(_floating(fn(*given)), weights)]
        return [(out.real if out.is_complex() else out).sum() for out in found]

    zeros = [tensor(0.0, dtype=BY_NAME["float64"], requires_grad=True) for _ in positions]
    return along, zeros


# ---- Jacobians: for each output one with respect to each checked input ---------------------------

def _backward_jacobians(fn, inputs, positions, nondet_tol):
    """By backward sweeps, each run twice. Raises GradcheckError if the results differ."""
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
    return analytical


def _recorded(fn, inputs, positions, forward_mode):
    """A recorded run of `fn` that is differentiated by its checked inputs."""
    given = list(inputs)
    checked = [inputs[position].detach() for position in positions]
    with Recording(checked, forward_mode) as recording:
        for position, x in zip(positions, recording.inputs):
            given[position] = x
        outputs = fn(*given)
    recording.finish(_floating(outputs))
    return recording


def _batched_jacobians(fn, inputs, positions):
    """By one sweep of a batch of gradients for each output."""
    recording = _recorded(fn, inputs, positions, forward_mode=False)
    found = []
    for place, out in enumerate(recording.outputs):
        if any(x.is_complex() for x in (out, *recording.inputs)):
            found.append(_by_directions(
                lambda g, place=place: recording.pull(
                    alone(g, place, len(recording.outputs)), True), out, recording.inputs, True))
        else:
            found.append(_matrices(rows_of(recording, place, batched=True), out, recording.inputs))
    return found


def _forward_jacobians(fn, inputs, positions, batched):
    """By forward mode, an element of an input at a time or all at once."""
    recording = _recorded(fn, inputs, positions, forward_mode=True)
    if any(x.is_complex() for x in (*recording.outputs, *recording.inputs)):
        path, n = recording.path(), len(recording.inputs)
        return [list(found) for found in zip(*[
            [matrix.T for matrix in _by_directions(
                lambda d, place=place: recording.push(path, alone(d, place, n)), x,
                recording.outputs, batched)]
            for place, x in enumerate(recording.inputs)])]
    return [_matrices(found, out, recording.inputs)
            for found, out in zip(columns_of(recording, batched), recording.outputs)]


def _by_directions(run, x, others, batched):
    """What `run` gives for each direction of x, as the columns of a matrix for each of `others`.

    The directions of a complex tensor are the ones and the i's."""
    directions = tensor(_basis(x), dtype=x.dtype)
    if not len(directions):
        return [np.zeros((_reals(like).size, 0)) for like in others]
    found = together(run, directions) if batched else [
        stack(column) for column in zip(*map(run, directions.unbind(0)))]
    return [np.stack([_reals(each) for each in column]).T for column in found]


def _basis(x):
    """An array of the directions of a tensor, along its first dim."""
    n = x.numel()
    basis = np.eye(2 * n).view(np.complex128) if x.is_complex() else np.eye(n)
    return basis.reshape(basis.shape[0], *x.shape)


def _reals(x):
    """The elements of a tensor in a row, those of a complex one as their parts: a copy."""
    values = x.detach().resolve_conj().numpy().reshape(-1).copy()
    return values.view(np.float64) if values.dtype.kind == "c" else values


def _matrices(jacobians, out, inputs):
    """The Jacobians of one output as matrices with a row for each element of the input."""
    return [found.detach().numpy().reshape(out.numel(), x.numel()).T
            for found, x in zip(jacobians, inputs)]


def _numerical_jacobians(fn, inputs, positions, eps):
    """By finite differences."""
    return [list(found) for found in zip(*[
        _numerical(fn, inputs, position, eps) for position in positions])]


def _compare(found, numerical, positions, kind, atol, rtol):
    """Raises GradcheckError where Jacobians differ from the numerical ones."""
    for output_index, (ours, theirs) in enumerate(zip(found, numerical)):
        for position, jacobian, wanted in zip(positions, ours, theirs):
            _compare_one(jacobian, wanted, output_index, position, kind, atol, rtol)


def _compare_one(jacobian, numerical, output_index, position, kind, atol, rtol):
    """Raises GradcheckError for the first entry that is out of tolerance."""
    close = np.abs(jacobian - numerical) <= atol + rtol * np.abs(numerical)
    if close.all():
        return
    row, column = (int(i) for i in np.argwhere(~close)[0])
    raise GradcheckError(
        f"gradcheck: Jacobian mismatch for output {output_index} with respect to input {position}: "
        f"{np.count_nonzero(~close)} of {close.size} entries, the first d output[{column}] / "
        f"d input[{row}] (flat indices): numerical {numerical[row, column]}, "
        f"{kind} {jacobian[row, column]}\n"
        f"numerical:\n{numerical}\n{kind}:\n{jacobian}"
    )


def _analytical(output, checked, positions):
    """The Jacobians of one output with respect to each checked input, from backward sweeps."""
    basis = _basis(output)
    jacobians = [np.zeros((len(_reals(x)), len(basis))) for x in checked]
    if not output.requires_grad:
        return jacobians
    for column, direction in enumerate(basis):
        g = tensor(direction, dtype=output.dtype)
        grads = gradient_of(output, checked, g, retain_graph=True, allow_unused=True)
        for jacobian, grad, x, position in zip(jacobians, grads, checked, positions):
            if grad is None:
                continue
            if grad.shape != x.shape or grad.dtype != x.dtype:
                raise GradcheckError(
                    f"gradcheck: the gradient of input {position} is {grad.dtype} of shape "
                    f"{tuple(grad.shape)}, but the input is {x.dtype} of shape {tuple(x.shape)}"
                )
            jacobian[:, column] = _reals(grad)
    return jacobians


def _numerical(fn, inputs, position, eps):
    """The Jacobians of every output with respect to one input, from finite differences."""
    moved = inputs[position].data      # shares its memory without counting writes: all are undone
    rows = []
    steps = (eps, eps * 1j) if moved.is_complex() else (eps,)
    for index, step in itertools.product(np.ndindex(*moved.shape), steps):
        value = moved[index].item()
        try:
            moved[index] = value + step
            above = _flat_values(fn(*inputs))
            moved[index] = value - step
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
        if isinstance(x, Tensor) and x.requires_grad
    ]
    if not positions:
        raise ValueError(
            f"{name}: none of the {len(inputs)} inputs requires grad; at least one must"
        )
    for position in positions:
        x = inputs[position]
        if x.dtype not in PRECISE:
            raise ValueError(
                f"{name}: input {position} is {x.dtype}; finite differences need "
                f"{' or '.join(map(str, PRECISE))}"
            )
        if any(size > 1 and stride == 0 for size, stride in zip(x.shape, x.stride())):
            raise ValueError(
                f"{name}: input {position} overlaps itself (shape {tuple(x.shape)}, strides "
                f"{tuple(x.stride())}), so that one element cannot be moved alone; clone() it"
            )
    return positions


def _floating(outputs):
    return [output for output in _tuple(outputs) if has_gradients(output.dtype)]


def _with_gradients(fn, inputs):
    """The function with those outputs alone that require grad; itself where all or none do."""
    found = _floating(fn(*inputs))
    places = [i for i, x in enumerate(found) if x.requires_grad]
    if len(places) in (0, len(found)):
        return fn

    def chosen(*args):
        outputs = _floating(fn(*args))
        return tuple(outputs[i] for i in places)

    return chosen


def _differentiable(outputs):
    return [output for output in _tuple(outputs) if output.requires_grad]


def _flat_values(outputs):
    # A copy: an output may be a view of the input that is about to be moved.
    return [_reals(output) for output in _floating(outputs)]


def _random_like(outputs):
    rng = np.random.default_rng(0)
    return tuple(
        tensor(_random(rng, output), dtype=output.dtype, requires_grad=True) for output in outputs)


def _random(rng, like):
    """An array of random numbers of the shape of a tensor."""
    values = rng.uniform(-1.0, 1.0, tuple(like.shape))
    return values + 1j * rng.uniform(-1.0, 1.0, tuple(like.shape)) if like.is_complex() else values


def _unit(rng, like):
    """Random numbers of that shape, whose squares sum to 1."""
    values = _random(rng, like)
    return values / max(np.linalg.norm(values.ravel()), np.finfo(float).tiny)


def _tuple(values):
    return (values,) if isinstance(values, Tensor) else tuple(values)


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
