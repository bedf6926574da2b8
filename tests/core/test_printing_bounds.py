"""Text exactly at the options of printing: as many elements as the threshold, lines as wide as the
line. The expected texts are PyTorch's."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl


def text(x, **options):
    with tl.printoptions(**options):
        return repr(x)


@each("threshold", [1000, 7, 0])
@each("shape", [lambda n: (n,), lambda n: (n, 1), lambda n: (1, n)])
def test_a_summary_begins_above_the_threshold(threshold, shape):
    options = {"threshold": threshold, "edgeitems": 1}
    assert "..." not in text(tl.ones(shape(threshold)), **options)
    assert ("..." in text(tl.ones(shape(threshold + 1)), **options)) == (threshold > 1)
    assert text(tl.ones(shape(1000))).count("1.") == 1000
    assert text(tl.ones(shape(1001))).count("1.") == 6


@pytest.mark.parametrize("edge", [0, 1, 2, 3])
def test_a_dim_with_twice_as_many_elements_as_an_edge_is_whole(edge):
    for n in (2 * edge, 2 * edge + 1):
        for x in (tl.arange(n), tl.arange(2 * n).reshape(n, 2)):
            cut = "..." in text(x, threshold=0, edgeitems=edge)
            assert cut == (n > 2 * edge)


@each("width", range(18, 44))
def test_no_line_is_wider_than_the_width_and_none_could_take_another_number(width):
    lines = text(tl.arange(10, 40), linewidth=width).split("\n")
    room = len("dd, ")
    for line in lines[:-1]:
        assert len(line) <= width < len(line) + room
    assert [int(word.strip("tensor([] )")) for word in "".join(lines).split(",")] == list(
        range(10, 40))


@each("width", range(20, 70))
def test_what_follows_the_elements_goes_to_the_next_line_where_it_does_not_fit(width):
    x = tl.tensor([1.5, 2.5], dtype=tl.float64, requires_grad=True)
    shown = text(x, linewidth=width)
    one = "tensor([1.5000, 2.5000], dtype=tensorlib.float64, requires_grad=True)"
    assert " ".join(shown.split()) == one
    parts = ["tensor([1.5000, 2.5000]", "dtype=tensorlib.float64", "requires_grad=True"]
    wanted, column = parts[0], len(parts[0]) + 2         # PyTorch leaves two columns free
    if width < len(parts[0]):                            # the elements take two lines
        wanted, column = "tensor([1.5000,\n        2.5000]", len("        2.5000]") + 2
    for part in parts[1:]:
        fits = column + len(part) + 2 <= width
        wanted += ", " + part if fits else ",\n       " + part
        column = column + len(part) + 2 if fits else len("       " + part)
    assert shown == wanted + ")"


@each("largest, scientific", [
    ([1.0, 1000.0], False), ([1.0, 1000.5], True), ([0.5, 500.0], False), ([0.5, 500.5], True),
    ([1e8], False), ([1.00000001e8], True), ([1e-4], False), ([0.99e-4], True),
    ([1.0, 999.5, 1000.0], False), ([0.0, 1e8], False), ([np.inf, 1.0, 1000.0], False)])
def test_numbers_of_many_magnitudes_are_in_scientific_notation(largest, scientific):
    for sign in (1, -1):
        x = tl.tensor(largest, dtype=tl.float64) * sign
        assert ("e+" in text(x) or "e-" in text(x)) == scientific
