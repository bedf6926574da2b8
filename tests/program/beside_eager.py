"""Compiled functions beside eager ones: all that can be seen of a few calls, bit by bit.

Of each call that is what it raises, or its results: their elements, dtypes and strides, whether
they require a gradient, which of them are or share what else; gradients and second gradients; the
arguments and the tensors from outside then, and after somebody wrote into the results.
"""

import warnings

import tensorlib as tl


def tensors_in(value):
    """The tensors in nested containers."""
    if isinstance(value, tl.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in tensors_in(part)]
    return []


def seen(x):
    """A tensor's elements and layout."""
    elements = x.detach().clone().contiguous()
    if x.dtype is tl.bfloat16:
        elements = elements.float()
    return str(x.dtype), tuple(x.shape), x.stride(), elements.numpy().tobytes()


def share(x, y):
    """Whether two tensors lie in one memory."""
    return bool(x.numel() and y.numel()) and (
        x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())


def raised(f, *args):
    """What a call gives, and what it raises, one of which is None."""
    try:
        return f(*args), None
    except Exception as error:
        return None, (type(error).__name__, str(error).partition("\n")[0])


def gradients(results, leaves):
    """The gradients of a weighted sum of results, and those of their squares."""
    weighted = [(x.double() * tl.arange(1, 1 + x.numel()).reshape(x.shape)).sum()
                for x in results if x.requires_grad]
    if not weighted or not leaves:
        return []
    first = tl.autograd.grad(sum(weighted), leaves, create_graph=True, allow_unused=True)
    log = [None if g is None else seen(g) for g in first]
    squares = [(g.double() ** 2).sum() for g in first if g is not None and g.requires_grad]
    if squares:
        second = tl.autograd.grad(sum(squares), leaves, allow_unused=True)
        if any(g is not None for g in second):
            log.append([None if g is None else seen(g) for g in second])
    return log


def log_of(f, calls, outside):
    """All that can be seen of calls of a function."""
    log = []
    for args in calls:
        result, error = raised(f, *args)
        around = [*tensors_in(args), *outside]
        log.append(error)
        if error is not None:
            log += [seen(y) for x in around for y in (x, x.grad) if y is not None]
            log.append(seen(tl.get_rng_state()))
            continue
        results = tensors_in(result)
        if not results:
            log.append(repr(result))
        log += [seen(x) for x in (*results, *around)]
        log += [(x.requires_grad, x.is_leaf, x.is_inference()) for x in results]
        log += [[(x is y, share(x, y)) for y in (*around, *results)] for x in results]
        leaves = [x for x in around if x.requires_grad and x.is_leaf]
        log.append(raised(gradients, results, leaves))
        for x in results:
            with tl.no_grad():
                log.append(raised(x.logical_not_ if x.dtype is tl.bool else x.neg_)[1])
        log += [seen(x) for x in (*results, *around)]
    return [*log, seen(tl.rand(2))]


def agrees(build):
    """The warnings of a compiled function, whose calls do what those of the eager one do.

    build: gives a function, the arguments of each call, and perhaps tensors from outside.
    """
    logs = []
    for wrap in (lambda f: f, tl.compile):
        tl.manual_seed(0)
        function, calls, *outside = build()
        wrapped = wrap(function)
        tl.manual_seed(1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            logs.append(log_of(wrapped, [x if isinstance(x, tuple) else (x,) for x in calls],
                               tensors_in(outside)))
    eager, compiled = logs
    differing = [pair for pair in zip(eager, compiled) if pair[0] != pair[1]]
    assert not differing and len(eager) == len(compiled), differing[:2]
    return [str(w.message) for w in caught if str(w.message).startswith("compile: ")]
