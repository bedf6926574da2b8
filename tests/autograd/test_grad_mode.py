"""no_grad, enable_grad and set_grad_enabled, as context managers and as decorators."""

import threading

import pytest

import tensorlib as tl


@pytest.fixture
def x():
    return tl.ones(2, requires_grad=True)


def test_no_grad_records_nothing(x):
    with tl.no_grad():
        assert not tl.is_grad_enabled()
        y = x * 2
    assert tl.is_grad_enabled()
    assert not y.requires_grad and y.is_leaf
    assert x.requires_grad


def test_modes_nest(x):
    with tl.no_grad():
        with tl.enable_grad():
            assert (x * 2).requires_grad
            with tl.no_grad():
                assert not (x * 2).requires_grad
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad


def test_a_mode_ends_with_an_exception(x):
    with pytest.raises(KeyError), tl.no_grad():
        raise KeyError
    assert (x * 2).requires_grad


@pytest.mark.parametrize("enabled", [True, False])
def test_set_grad_enabled_as_a_context(x, enabled):
    with tl.set_grad_enabled(enabled):
        assert tl.is_grad_enabled() is enabled
        assert (x * 2).requires_grad is enabled
    assert tl.is_grad_enabled()


def test_set_grad_enabled_as_a_call(x):
    tl.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        tl.set_grad_enabled(True)
    assert (x * 2).requires_grad


def test_an_object_can_be_entered_again(x):
    mode = tl.no_grad()
    for _ in range(2):
        with mode:
            assert not tl.is_grad_enabled()
        assert tl.is_grad_enabled()


def test_a_decorated_function_runs_in_its_mode(x):
    @tl.no_grad()
    def doubled(value, *, factor=2):
        """Documentation."""
        return value * factor

    assert not doubled(x, factor=3).requires_grad
    assert doubled.__name__ == "doubled" and doubled.__doc__ == "Documentation."
    assert doubled(value=x).tolist() == [2.0, 2.0]
    assert tl.is_grad_enabled()


def test_no_grad_decorates_without_parentheses(x):
    @tl.no_grad
    def doubled(value):
        return value * 2

    assert not doubled(x).requires_grad


def test_enable_grad_and_set_grad_enabled_decorate(x):
    @tl.enable_grad()
    def on(value):
        return value * 2

    @tl.set_grad_enabled(False)
    def off(value):
        return value * 2

    # PyTorch's set_grad_enabled takes effect where it is called; decorating ends that.
    assert tl.is_grad_enabled()
    with tl.no_grad():
        assert on(x).requires_grad
    assert not off(x).requires_grad


def test_a_decorated_function_may_recurse_and_raise(x):
    @tl.no_grad()
    def down(n):
        if n == 0:
            raise KeyError
        return down(n - 1)

    with pytest.raises(KeyError):
        down(3)
    assert tl.is_grad_enabled()


def test_a_decorated_generator_holds_its_mode_only_while_it_runs(x):
    @tl.no_grad()
    def doubles():
        received = yield x * 2
        yield received * 2
        return "done"

    steps = doubles()
    first = next(steps)
    assert tl.is_grad_enabled()
    assert (x * 2).requires_grad
    second = steps.send(x)
    assert not first.requires_grad and not second.requires_grad
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert stop.value.value == "done"
    assert tl.is_grad_enabled()


def test_a_decorated_generator_passes_exceptions_in(x):
    seen = []

    @tl.no_grad()
    def steps():
        try:
            yield 1
        except KeyError:
            seen.append(tl.is_grad_enabled())
            yield 2

    generator = steps()
    next(generator)
    assert generator.throw(KeyError()) == 2
    assert seen == [False]
    generator.close()
    assert tl.is_grad_enabled()


def test_the_mode_belongs_to_a_thread(x):
    seen = []
    with tl.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_an_update_in_place_under_no_grad_keeps_the_leaf(x):
    (x * 3).sum().backward()
    with tl.no_grad():
        x -= 0.5 * x.grad
    assert x.is_leaf and x.requires_grad
    assert x.tolist() == [-0.5, -0.5]
