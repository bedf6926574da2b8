"""Formulas of how many floating-point operations an operation is, for those of users.

The records of the library's own products say how many multiplications they are made of.
"""

from collections.abc import Callable

from tensorlib._core.base.registry import Registry

Shape = tuple[int, ...]
Formula = Callable[[list[Shape], Shape], int]

flop_registry: dict[str, Formula] = Registry()      # by the name of the operation


def register_flop_formula(*names: str) -> Callable[[Formula], Formula]:
    """Makes a function of the tensors' shapes and the (first) result's the formula of operations.

    >>> from tensorlib.utils.flop_counter import FlopCounterMode, register_flop_formula
    >>> @register_flop_formula("cumsum")
    ... def of_cumsum(inputs, result):
    ...     return inputs[0].numel()
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = tensorlib.ones(5).cumsum(0)
    >>> counter.get_total_flops()
    5
    """
    def register(formula: Formula) -> Formula:
        flop_registry.update(dict.fromkeys(names, formula))
        return formula
    return register
