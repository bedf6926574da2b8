"""Checks of values: errors of operations that depend on elements.

A check is a function of a tensor and plain values that raises or does nothing. It is declared, so
that a program can name it: the interpreters of the thread are notified of each check, and a capture
records it as an effect, which each run repeats on its own elements. It does not run on tensors
without elements (on `meta`, or variables of a program); of a batch it checks all examples.
"""

from tensorlib._core.interpreters.capture import unseen
from tensorlib._core.interpreters.foreign import elements_known, is_looked_at_alone, proxied
from tensorlib._core.interpreters.stack import tell

CHECKS = {}              # by their names


def value_check(function):
    """Declares a check: registers a function that raises for some elements, under its name."""
    name = function.__name__
    CHECKS[name] = function

    def check(values, *facts):
        if is_looked_at_alone(values):
            function(values, *facts)
            return
        held = proxied(values) if getattr(values, "has_elements", True) else None
        tell("checked", name, values if held is None else held, facts)
        if elements_known(held):
            with unseen():
                function(held.detach(), *facts)

    check.__name__, check.__doc__ = name, function.__doc__
    return check
