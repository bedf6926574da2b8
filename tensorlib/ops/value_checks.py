"""Checks of values: what an operation refuses because of the elements that it was given.

They are made where there are elements to look at: not on `meta`, and not of a value that stands for
others, as an example of a batch or a variable of a program does. A capture knows the `bool` that is
taken here for a check, which a run makes of its own elements; so what `look` gives is to be a
tensor, or a number that depends on no element.
"""

from tensorlib._core.interpreters.foreign import behind, stands_in


def violated(look, *values):
    """Whether `look`, a function of no arguments, finds what is refused, where it can look."""
    for value in values:
        if stands_in(value) or value.is_meta:
            return False
    return bool(look())


def all_hold(condition):
    """Whether a condition holds for all elements, of all that a value stands for."""
    condition = behind(condition)
    return condition.is_meta or bool(condition.all())
