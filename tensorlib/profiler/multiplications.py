"""How many multiplications the products among observed operations are made of.

Counted are those that are summed, of operations whose records say how many these are: of matrices,
convolutions, attention, recurrent layers. What is done element by element is little beside them.
"""

from collections.abc import Iterable
from typing import Any

from tensorlib._core.graph.op import declared


def multiplications(observed: Iterable[list[Any]]) -> int:
    """Of all events of a profile that noted shapes. What runs inside of a product counts once."""
    return sum(declared[event[0]].multiplications(event[7], event[8]) for event in observed
               if is_product(event) and not any(map(is_product, above(event))))


def is_product(event: list[Any]) -> bool:
    """Whether it is known what an event multiplies."""
    op = declared.get(event[0])
    return (op is not None and op.multiplications is not None and bool(event[7])
            and event[8] is not None)


def above(event: list[Any]) -> Iterable[list[Any]]:
    """The events that an event lies in."""
    while event[3] is not None:
        event = event[3]
        yield event
