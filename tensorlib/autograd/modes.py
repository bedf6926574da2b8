"""Grad modes: whether the operations of this thread are recorded."""

import functools

from tensorlib._core.base.settings import Setting
from tensorlib._core.graph.modes import (
    _set_grad_enabled, _set_inference, is_grad_enabled, is_inference_mode_enabled,
)
from tensorlib._core.sweep.graph_reader import set_transform

GENERATOR = 0x20  # the flag of a generator function's code


class _Mode(Setting):
    """A context manager, and a decorator, under which the grad mode is another."""

    swaps, values = (_set_grad_enabled,), (True,)

    def fresh(self):
        """A mode like this one, for one more call of the decorated function."""
        return type(self)()

    def __call__(self, function):
        if isinstance(function, type):
            function.__init__ = self(function.__init__)
            return function
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & GENERATOR:
            return self._generator(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self.fresh():
                return function(*args, **kwargs)
        return wrapper

    def _generator(self, function):
        """The generator runs in the mode; between its steps the caller's mode applies."""
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            generator = function(*args, **kwargs)
            try:
                with self.fresh():
                    value = next(generator)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with self.fresh():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.fresh():
                            value = generator.throw(error)
                    else:
                        with self.fresh():
                            value = generator.send(sent)
            except StopIteration as stop:
                return stop.value
        return wrapper


class _PlainMode(_Mode):
    """A mode without arguments, whose class decorates functions by itself."""

    def __new__(cls, function=None):
        mode = super().__new__(cls)
        return mode if function is None else mode(function)


class no_grad(_PlainMode):
    """Under it operations are not recorded: `with no_grad():`, or `@no_grad()` on a function.

    >>> x = tensorlib.ones(2, requires_grad=True)
    >>> with tensorlib.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    values = (False,)


class enable_grad(_PlainMode):
    """Under it operations are recorded, inside `no_grad` too.

    >>> x = tensorlib.ones(2, requires_grad=True)
    >>> with tensorlib.no_grad(), tensorlib.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """


class set_grad_enabled(_Mode):
    """Sets the grad mode at once; as a context manager it sets it back at the end.

    As it is set before the block begins, an interrupt between the two leaves it set; it does not
    with `no_grad` and `enable_grad`. Raises: TypeError for a mode that is not a bool.

    >>> x = tensorlib.ones(2, requires_grad=True)
    >>> with tensorlib.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad, tensorlib.is_grad_enabled()
    (False, True)
    """

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: mode must be a bool, got {mode!r}")
        self.values = (mode,)
        self.earlier = (_set_grad_enabled(mode),)

    def __call__(self, function):
        _set_grad_enabled(*self.earlier)
        return super().__call__(function)

    def fresh(self):
        """A mode like this one, for use by `with`."""
        return enable_grad() if self.values[0] else no_grad()


class inference_mode(_Mode):
    """As `no_grad`, and tensors made under it have no version, so a graph can't save them.

    Outside of it such an inference tensor can be read, and used in operations that do not save it;
    `clone()` gives an ordinary one. `inference_mode(False)` is the ordinary mode.

    Raises: TypeError for a mode that is not a bool.

    >>> with tensorlib.inference_mode():
    ...     y = tensorlib.ones(2)
    >>> y.is_inference(), (y + 1).is_inference()
    (True, False)
    """

    mode, swaps = True, (_set_inference, _set_grad_enabled)

    def __new__(cls, mode=True):
        made = super().__new__(cls)
        return made(mode) if callable(mode) else made

    def __init__(self, mode=True):
        if not isinstance(mode, bool):
            raise TypeError(f"inference_mode: mode must be a bool, got {mode!r}")
        self.mode, self.values = mode, (mode, not mode)

    def fresh(self):
        """A mode like this one."""
        return inference_mode(self.mode)


class apart_from_transforms(Setting):
    """A context outside of all transforms of this thread, in which nothing is recorded.

    Layers use it to update their buffers, which a function under `func.grad` could not write to,
    since they are not its own. Such writes are no part of a result.
    """

    swaps, values = (set_transform,), ((False, False, 0),)


class set_multithreading_enabled(_Mode):
    """Changes nothing: a sweep runs on the thread that calls it, whatever `mode` is."""

    swaps, values = (), ()

    def __init__(self, mode):
        self.mode = mode

    def fresh(self):
        return self


__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
           "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
