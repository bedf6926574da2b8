"""How many floating-point operations the products among operations are: two for each product.

Counted are products that are summed: of matrices, convolutions, attention, recurrent layers. What
is done element by element is little beside them.
"""

from collections.abc import Callable
from math import prod

Shape = tuple[int, ...]
Formula = Callable[[list[Shape], Shape], int]

flop_registry: dict[str, Formula] = {}      # by the name of the operation


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


@register_flop_formula("matmul", "mm", "bmm", "mv", "dot", "linear_with_bias",
                       "linear_without_bias")
def of_product(inputs: list[Shape], result: Shape) -> int:
    """Each element of the result is a sum over the last dim of the first input."""
    return 2 * prod(result) * (inputs[0][-1] if inputs[0] else 1)


@register_flop_formula("convolve")
def of_convolution(inputs: list[Shape], result: Shape) -> int:
    """Each element of the result is a sum over a window of some channels."""
    return 2 * prod(result) * prod(inputs[1][1:])


@register_flop_formula("convolve_input")
def of_transposed_convolution(inputs: list[Shape], result: Shape) -> int:
    """Each element of the input is spread over a window of some channels."""
    return 2 * prod(inputs[0]) * prod(inputs[1][1:])


@register_flop_formula("convolve_weight")
def of_weight_gradient(inputs: list[Shape], result: Shape) -> int:
    """Each element of the gradient is spread over a window of the weight's gradient."""
    return 2 * prod(inputs[0]) * prod(result[1:])


@register_flop_formula("attention")
def of_attention(inputs: list[Shape], result: Shape) -> int:
    """Queries times keys, and what comes out times values."""
    query, key, value = inputs[:3]
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


@register_flop_formula("attention_backward")
def of_attention_backward(inputs: list[Shape], result: Shape) -> int:
    """The scores anew, and two products for the gradient of each of the two."""
    query, key, value = inputs[1:4]
    return 2 * prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


@register_flop_formula("recurrent")
def of_recurrence(inputs: list[Shape], result: Shape) -> int:
    """In each step, and for each example, the hidden state times its weights."""
    rows, weight = inputs[:2]
    return 2 * rows[0] * prod(weight)


@register_flop_formula("recurrent_backward")
def of_recurrence_backward(inputs: list[Shape], result: Shape) -> int:
    """The gradient of the hidden state, and that of its weights."""
    return 4 * result[0] * prod(inputs[4])
