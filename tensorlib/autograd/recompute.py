"""Activation checkpointing: values are recomputed in the backward sweep instead of saved."""

import weakref
from collections.abc import Iterable
from contextlib import ExitStack, nullcontext

from tensorlib._core.base.explained import explain
from tensorlib._core.base.settings import Held
from tensorlib._core.base.shape import listed
from tensorlib._core.create.generator import default_generator
from tensorlib._core.graph.modes import _set_forward_mode, is_forward_mode, packing
from tensorlib._core.interpreters.stack import current_layer, tell
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.graph import saved_tensors_hooks
from tensorlib.autograd.modes import enable_grad
from tensorlib.autograd.batch import innermost


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save what the first one did."""

    __module__ = "tensorlib.utils.checkpoint"


class _SavedPlaceholder:
    """A placeholder of a saved value, which holds it between the second run and its use."""

    __slots__ = ("segment", "like", "value", "__weakref__")

    def __init__(self, segment, x):
        self.segment = segment
        self.like = (x.shape, x.dtype)
        self.value = None


class _Input:
    """A tensor given to a checkpoint, saved as operations save theirs: through enclosing hooks."""

    def __init__(self, name, x, hooks):
        self.name = name
        self.requires_grad = x.requires_grad
        self.version = None if x.is_inference() else x._version
        self.hooks = None if x.is_leaf else hooks
        self.kept = x if self.hooks is None else hooks[0](x.detach())

    def restored(self):
        """The tensor, detached from the graph."""
        if self.hooks is None:
            if self.version is not None and self.kept._version != self.version:
                raise RuntimeError(
                    "checkpoint: one of the variables needed for gradient computation has been "
                    f"modified by an inplace operation: argument {self.name}, of shape "
                    f"{tuple(self.kept.shape)}, is at version {self.kept._version} but the "
                    f"function ran on version {self.version}. Use the out-of-place form of the "
                    "later operation, or clone() the value first")
            return self.kept.detach().requires_grad_(self.requires_grad)
        return self.hooks[1](self.kept).detach().requires_grad_(self.requires_grad)


def _once_more():
    """Interpreters for the second run of what is computed now, the outermost first."""
    found, layer = [], current_layer()
    while layer is not None:
        found.append(layer.interpreter.again())
        layer = layer.below
    return [interpreter for interpreter in reversed(found) if interpreter is not None]


class _Segment:
    """One call of a checkpointed function, which can be run again."""

    def __init__(self, function, args, kwargs, random_state, hooks, context):
        def saved(name, value):
            return _Input(name, value, hooks) if isinstance(value, Tensor) else value

        self.function = function
        self.args = [saved(i, value) for i, value in enumerate(args)]
        self.kwargs = {name: saved(repr(name), value) for name, value in kwargs.items()}
        self.random_state = random_state
        self.context = context
        self.forward_mode = is_forward_mode()
        self.interpreters = _once_more()
        self.places = []

    def pack(self, x):
        """A placeholder for one more value of the first run."""
        place = _SavedPlaceholder(self, x)
        self.places.append(weakref.ref(place))
        return place

    def run_again(self):
        """Runs the function again and fills the placeholders that are still needed."""
        def restored(value):
            return value.restored() if isinstance(value, _Input) else value

        found = iter(self.places)
        count = 0

        def fill(x):
            nonlocal count
            count += 1
            reference = next(found, None)
            if reference is None:
                raise CheckpointError(
                    "checkpoint: a different number of tensors was saved during the original "
                    f"forward ({len(self.places)}) and recomputation (more)")
            place = reference()
            if place is not None:
                if place.like != (x.shape, x.dtype):
                    raise CheckpointError(
                        "checkpoint: recomputed values have different metadata than during the "
                        f"forward pass: value {count - 1} was {place.like}, now "
                        f"{(x.shape, x.dtype)}")
                place.value = x
            return x

        now = default_generator.get_state()
        if self.random_state is not None:
            default_generator.set_state(self.random_state)
        mode = Held((_set_forward_mode,), (self.forward_mode,))
        try:
            with ExitStack() as entered:
                for interpreter in self.interpreters:
                    entered.enter_context(interpreter)
                with mode, enable_grad(), saved_tensors_hooks(fill, lambda x: x), self.context:
                    self.function(
                        *[restored(value) for value in self.args],
                        **{name: restored(value) for name, value in self.kwargs.items()})
        finally:
            if self.random_state is not None:
                default_generator.set_state(now)
        if count != len(self.places):
            raise CheckpointError(
                "checkpoint: a different number of tensors was saved during the original forward "
                f"({len(self.places)}) and recomputation ({count})")


def _unpack(place):
    """The value of a placeholder, which releases it: another sweep computes it again."""
    if place.value is None:
        place.segment.run_again()
    value, place.value = place.value, None
    return value


def noop_context_fn():
    """Contexts that do nothing, for the first run of a checkpointed function and the second."""
    return nullcontext(), nullcontext()


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True,
               context_fn=noop_context_fn, determinism_check="default", debug=False,
               early_stop=True, **kwargs):
    """What `function(*args, **kwargs)` returns, keeping none of the values that its gradient needs.

    The backward sweep runs the function again when it needs them, with the random numbers of the
    first run unless `preserve_rng_state` is False. Checkpoints nest, and work with `grad`,
    `retain_graph` and `create_graph`; inside of `vmap` values are kept. `context_fn()` gives the
    contexts in which the two runs happen. `use_reentrant`, `determinism_check`, `debug` and
    `early_stop` are accepted for compatibility with PyTorch and have no effect: values are compared
    by shape and dtype, errors say what differs, and the second run is complete.

    Raises: CheckpointError (a RuntimeError), in the sweep, if the second run saves other values;
    RuntimeError if an argument was overwritten since, by the function itself too; ValueError for
    another `determinism_check`.
    Source: Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost" (2016).

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> y = checkpoint(lambda x: x.exp().sin(), x)
    >>> y.sum().backward()
    >>> bool((x.grad == x.detach().exp().cos() * x.detach().exp()).all())
    True
    """
    if not callable(function):
        raise TypeError(f"checkpoint: expects a function, got {type(function).__name__}")
    if determinism_check not in ("default", "none"):
        raise ValueError("checkpoint: determinism_check is 'default' or 'none', "
                         f"got {determinism_check!r}")
    if use_reentrant and context_fn is not noop_context_fn:
        raise ValueError("checkpoint: context_fn needs use_reentrant=False")
    if innermost((*args, *kwargs.values())) is not None:
        return function(*args, **kwargs)
    tell("effect", "checkpoint", None)
    first, second = context_fn()
    state = default_generator.get_state() if preserve_rng_state else None
    segment = _Segment(function, args, kwargs, state, packing(), second)
    with saved_tensors_hooks(segment.pack, _unpack), first:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, *,
                          preserve_rng_state=True):
    """The result of a sequence of functions or modules, as `segments` checkpointed parts.

    The last part runs as usual, since its values would be needed at once.

    Raises: ValueError for fewer parts than one, or more than there are functions; TypeError for
    what is not a sequence.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint_sequential([tensorlib.exp, tensorlib.sin, tensorlib.cos], 2, x).shape
    tensorlib.Size([2])
    """
    if not isinstance(functions, Iterable):
        raise TypeError("checkpoint_sequential: expects functions in a row, got "
                        f"{type(functions).__name__}")
    functions = listed(functions)
    if not 1 <= segments <= max(len(functions), 1):
        raise ValueError(f"checkpoint_sequential: {len(functions)} functions can't be cut into "
                         f"{segments} parts")
    length = len(functions) // segments
    for begin in range(0, length * (segments - 1), length):
        input = checkpoint(_in_a_row(functions[begin:begin + length]), input,
                           use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _in_a_row(functions[length * (segments - 1):])(input)


def _in_a_row(functions):
    """The composition of functions."""
    def run(x):
        for function in functions:
            x = function(x)
        return x
    return run


__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn"]

explain(vars(), __all__)
