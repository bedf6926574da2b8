"""What a compiled function reads, and how: a replay is the eager call to the bit."""

import ast
import os
from collections import deque
from dataclasses import replace

import pytest

from . import __main__ as drawn
from . import (
    holders, layouts, running, states, reads, code_reads, library_reads, object_reads,
)
from cases import each

import tensorlib as tl

COUNT = int(os.environ.get("TENSORLIB_DRAWN", "100"))     # programs; 20,000 by hand
WAYS = {**object_reads.WAYS, **code_reads.WAYS, **library_reads.WAYS}


@each("name", WAYS)
def test_a_change_of_what_is_read_is_noticed(name):
    assert not running.difference(reads.text_of(WAYS[name]))


@each("name", WAYS)
def test_what_is_read_and_does_not_change_is_as_it_was(name):
    assert not running.difference(reads.text_of(WAYS[name], changed=False))


def test_random_programs_programs_are_ones_that_python_parses():
    """What reads stays one expression wherever it stands, and may be written to in parts."""
    for name, holder in holders.HOLDERS.items():
        for text in holder.read:
            part = ast.parse(text.format(h="h") + "['k'].k = 0", mode="exec").body
            assert len(part) == 1 and type(part[0].targets[0]) is ast.Attribute, (name, text)
            whole = ast.parse(f"[*{text.format(h='h')}][0].k", mode="eval").body
            assert type(whole) is ast.Attribute, (name, text)
    for number in range(COUNT):
        ast.parse(states.text_of(states.drawn(9, number)))


@pytest.mark.parametrize("made", [
    lambda: {1, 2}, lambda: deque([1, 2]), lambda: bytearray((1, 2)), lambda: ({1, 2}, 5)],
    ids=["set", "deque", "bytearray", "set in a tuple"])
def test_what_is_equal_for_a_while_is_watched_in_its_turn(made):
    """A container in the place of an equal one, which changes later."""
    held = {"k": made()}
    compiled = tl.compile(lambda x: x * (2 if 2 in first_of(held["k"]) else 3))
    for _ in range(2):
        assert compiled(tl.ones(1)).item() == 2
        held["k"] = made()
        assert compiled(tl.ones(1)).item() == 2
        first_of(held["k"]).remove(2)
        assert compiled(tl.ones(1)).item() == 3
        held["k"] = made()


def first_of(x):
    return x[0] if type(x) is tuple else x


def test_functions_of_a_state_that_stays_give_what_eager_ones_give():
    """The names of what is held and read are drawn; nothing changes between the calls."""
    for number in range(COUNT):
        program = states.drawn(1, number)
        units = tuple(unit for unit in program.units if unit.leaf[0] != "consumed")
        still = replace(program, units=units, order=((),) * len(program.order))
        assert not units or not drawn.wrong(states, still), states.text_of(still)


@pytest.mark.parametrize("seed", range(4))
def test_operations_on_memory_that_is_shared_or_laid_out_oddly(seed):
    for number in range(COUNT // 4):
        program = layouts.drawn(seed, number)
        assert not drawn.wrong(layouts, program), layouts.text_of(program)


def test_a_failing_program_is_made_smaller():
    program = states.drawn(0, 8)
    small = states.shrunk(states, program, lambda less: any(unit.holders for unit in less.units))
    assert len(small.units) == 1 and len(small.units[0].holders) == 1
    assert len(states.text_of(small)) < len(states.text_of(program))
