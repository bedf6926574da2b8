"""Compiled functions that write, and may refuse values: asked first, nothing needs to be copied."""

import pytest
from cases import each

import tensorlib as tl

F = tl.nn.functional
TABLE = tl.linspace(-1, 1, 20).reshape(10, 2)


def two_writes(cache, token, place):
    x = F.embedding(token, TABLE)
    cache[0, place] = x
    cache[1, place] = x * 2
    return cache.sum()


def two_places(cache, token, place):
    x = F.embedding(token, TABLE)
    cache[0, token] = x
    cache[1, place] = x * 2
    return cache[1, :3] @ x[0]


def check_behind(cache, token, place):
    cache[0, place] = 1.0
    return F.embedding(token, TABLE) * 2 + cache[0, 0]


def place_computed_behind(cache, token, place):
    cache[0, token] = 1.0
    cache[1, (place * 2).clamp(max=40)] = cache[0, token] * 3
    return cache.mean()


def place_that_was_written(cache, token, place):
    token.add_(1)
    cache[0, token] = 2.0
    return F.embedding(token, TABLE) + cache[0, place]


def read_of_what_was_written(cache, token, place):
    cache[0, place] = 3.0
    return F.embedding(cache[0, place, 0].long(), TABLE) + F.embedding(token, TABLE)


def view_of_what_was_written(cache, token, place):
    keys = cache[0]
    keys[token] = 2.0
    keys[place] = 4.0
    return keys.sum()


def written_twice(cache, token, place):
    other = cache.view(-1)
    cache[0, token] = 2.0
    other[place] = other[0] + 1
    return F.embedding(cache[0, 0, :1].long() + token, TABLE)


FUNCTIONS = (two_writes, two_places, check_behind, place_computed_behind, place_that_was_written,
             read_of_what_was_written, view_of_what_was_written, written_twice)
UNCOPIED = FUNCTIONS[:4]
GIVEN = [((3,), (5,)), ((9,), (0,)), ((3,), (6,)), ((3,), (-7,)), ((10,), (2,)), ((5,), (60,)),
         ((-1,), (1,)), ((3,), (5,))]


def seen(function, token, place):
    """What a call gives or raises, and leaves."""
    cache, token, place = tl.zeros(2, 6, 2), tl.tensor(token), tl.tensor(place)
    try:
        found = function(cache, token, place).tolist()
    except Exception as error:
        found = type(error), str(error)
    return found, cache.tolist(), token.tolist(), place.tolist()


@each("function", FUNCTIONS)
def test_values_that_are_refused_leave_what_the_eager_call_leaves(function):
    compiled = tl.compile(function)
    for token, place in GIVEN * 2:
        assert seen(compiled, token, place) == seen(function, token, place)


@pytest.mark.parametrize("function", UNCOPIED)
def test_nothing_is_copied_where_the_checks_come_first(function):
    compiled = tl.compile(function)
    for _ in range(3):
        seen(compiled, (3,), (2,))
    way, = compiled._entries
    assert way.replay is not None and way.undo is None


def test_arguments_that_share_memory_are_written_and_read_in_order():
    def function(x, places):
        x[places[:1]] = 2
        return TABLE[places]

    compiled = tl.compile(function)
    for start in (0, 1, 30, 2):
        memory, other = tl.tensor([start, 1, 2, 3]), tl.tensor([start, 1, 2, 3])
        for f, x in ((compiled, memory), (function, other)):
            try:
                f(x, x[:3])
            except IndexError:
                pass
        assert tl.equal(memory, other)
