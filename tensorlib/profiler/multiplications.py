"""How many multiplications the products among observed operations are made of.

Counted are those that are summed: of matrices, convolutions, attention, recurrent layers. What is
done element by element is little beside them.
"""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

Shape = tuple[int, ...]


def of_product(inputs: list[Shape], result: Shape) -> int:
    """Each element of the result is a sum over the last dim of the first input."""
    return prod(result) * (inputs[0][-1] if inputs[0] else 1)


def of_convolution(inputs: list[Shape], result: Shape) -> int:
    """Each element of the result is a sum over a window of some channels."""
    return prod(result) * prod(inputs[1][1:])


def of_transposed_convolution(inputs: list[Shape], result: Shape) -> int:
    """Each element of the input is spread over a window of some channels."""
    return prod(inputs[0]) * prod(inputs[1][1:])


def of_attention(inputs: list[Shape], result: Shape) -> int:
    """Queries times keys, and what comes out times values."""
    query, key, value = inputs[:3]
    return prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def of_recurrence(inputs: list[Shape], result: Shape) -> int:
    """In each step, and for each example, the hidden state times its weights."""
    rows, weight = inputs[:2]
    return rows[0] * prod(weight)


RULES: dict[str, Callable[[list[Shape], Shape], int]] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "linear_with_bias",
                     "linear_without_bias"), of_product),
    "convolve": of_convolution,
    "convolve_input": of_transposed_convolution,
    "attention": of_attention,
    "recurrent": of_recurrence,
}


def multiplications(observed: Iterable[list[Any]]) -> int:
    """Of all events of a profile that noted shapes. What runs inside of a product counts once."""
    return sum(RULES[event[0]](event[7], event[8]) for event in observed
               if is_product(event) and not any(map(is_product, above(event))))


def is_product(event: list[Any]) -> bool:
    """Whether it is known what an event multiplies."""
    return event[0] in RULES and bool(event[7]) and event[8] is not None


def above(event: list[Any]) -> Iterable[list[Any]]:
    """The events that an event lies in."""
    while event[3] is not None:
        event = event[3]
        yield event
