"""Tensors from outside that another one takes the place of between calls, as those of a state: from
the third on, what is in the place is given to each replay, as arguments are."""

import warnings
import weakref
from typing import NamedTuple

import pytest
from beside_eager import seen
from cases import each

import tensorlib as tl

TENSORS = [tl.linspace(-1, 1, 3) * k for k in range(1, 7)]


class State:
    def __init__(self):
        self.h = TENSORS[0].clone()


# Each gives a function of x, and what puts a tensor into a place that it reads.

def an_attribute():
    state = State()
    return lambda x: tl.tanh(state.h * 0.5 + x), lambda h: setattr(state, "h", h)


def what_a_dict_has():
    state = {"h": TENSORS[0].clone()}
    return lambda x: state["h"] * 0.5 + x, lambda h: state.update(h=h)


def a_variable_of_a_closure():
    state = TENSORS[0].clone()

    def put(h):
        nonlocal state
        state = h
    return lambda x: state * x, put


def what_a_tuple_has():
    state = {"h": (TENSORS[0].clone(), TENSORS[1].clone())}
    return (lambda x: (state["h"][0] * 0.5 + x * state["h"][1], state["h"][0]),
            lambda h: state.update(h=(h, TENSORS[1].clone())))


def a_tuple_that_is_unpacked():
    state = State()
    state.h = TENSORS[0].clone(), TENSORS[1].clone()

    def f(x):
        first, second = state.h
        return tl.tanh(first * second + x)
    return f, lambda h: setattr(state, "h", (TENSORS[1].clone(), h))


def an_element_of_a_list():
    state = [TENSORS[0].clone(), 2.0]
    return lambda x: state[0] * state[1] + x, lambda h: state.__setitem__(0, h)


def an_element_of_a_class_of_lists():
    class Rows(list):
        def __iter__(self):
            return iter(())

    state = Rows([2.0, TENSORS[0].clone()])
    return lambda x: state[-1] * state[0] + x, lambda h: state.__setitem__(1, h)


def a_tuple_in_a_list():
    state = [2.0, (TENSORS[0].clone(), TENSORS[1].clone())]
    return (lambda x: state[-1][1] * state[0] + x,
            lambda h: state.__setitem__(1, (TENSORS[1].clone(), h)))


def an_attribute_of_a_module():
    class Cell(tl.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.h = tl.nn.Linear(3, 3), TENSORS[0].clone()

        def forward(self, x):
            return tl.tanh(self.linear(x) + self.h)

    tl.manual_seed(0)
    cell = Cell()
    return cell, lambda h: vars(cell).update(h=h)


def what_it_writes_into():
    state = State()

    def f(x):
        state.h.mul_(2)
        return state.h + x, state.h
    return f, lambda h: setattr(state, "h", h)


def in_a_training_step():
    state, w = State(), tl.ones(3, requires_grad=True)
    optimizer = tl.optim.SGD([w], lr=0.1)

    def f(x):
        optimizer.zero_grad()
        loss = (x * w * state.h).square().sum()
        loss.backward()
        optimizer.step()
        return loss, w.grad.clone()
    return f, lambda h: setattr(state, "h", h)


def beside_a_gradient_from_before():
    state, w = State(), tl.ones(3, requires_grad=True)
    w.grad = tl.ones(3)
    return lambda x: (w.grad * state.h + x, state.h * 2), lambda h: setattr(state, "h", h)


PLACES = [an_attribute, what_a_dict_has, a_variable_of_a_closure, an_attribute_of_a_module,
          what_a_tuple_has, a_tuple_that_is_unpacked, an_element_of_a_list, a_tuple_in_a_list,
          an_element_of_a_class_of_lists,
          what_it_writes_into, in_a_training_step, beside_a_gradient_from_before]


def results(value):
    return [seen(x) for x in (value if isinstance(value, tuple) else (value,))]


def log_of(make, compiled, puts, x):
    """What calls give after each put, or raise, and what is put afterwards."""
    f, put = make()
    f = compiled(f)
    log = []
    for h in puts:
        h = h() if callable(h) else h.clone()
        put(h)
        for _ in range(2):
            try:
                log.append(results(f(x(h) if callable(x) else x)))
            except (RuntimeError, TypeError, AttributeError) as error:
                log.append((type(error).__name__, str(error).partition("\n")[0]))
        if type(h) is tl.Tensor:
            log.append(seen(h))
    return log, f


@each("make", PLACES)
def test_what_is_replaced_is_captured_twice(make):
    calls = make, lambda f: f, TENSORS, tl.ones(3)
    log, compiled = log_of(make, lambda f: tl.compile(f, fullgraph=True), TENSORS, tl.ones(3))
    assert log == log_of(*calls)[0]
    assert len(compiled._entries) == 2


@each("value", [
    lambda: None, lambda: 2.0, lambda: tl.ones(3).double(), lambda: tl.ones(2, 3),
    lambda: tl.arange(6.0)[::2], lambda: tl.ones(1).expand(3), lambda: tl.ones(3).requires_grad_(),
    lambda: tl.nn.Parameter(tl.ones(3)), lambda: tl.ones(3).requires_grad_() * 2,
    lambda: tl.zeros(3).as_subclass(Kind)])
@each("make", [an_attribute, what_a_dict_has, a_variable_of_a_closure, an_attribute_of_a_module,
               what_a_tuple_has, a_tuple_that_is_unpacked, an_element_of_a_list])
def test_another_kind_of_value_is_no_such_tensor(make, value):
    puts = [*TENSORS[:4], value, *TENSORS[:3]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert log_of(make, tl.compile, puts, tl.ones(3))[0] == (
            log_of(make, lambda f: f, puts, tl.ones(3))[0])


class Kind(tl.Tensor):
    pass


@each("x", [lambda h: h, lambda h: h[:], lambda h: h.detach(), lambda h: h.data])
@each("make", [an_attribute, what_it_writes_into, what_a_tuple_has, an_element_of_a_list])
def test_an_argument_that_is_the_tensor_or_lies_where_it_does(make, x):
    def argument(h):
        return x(h) if h[0] == -3 else tl.ones(3)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert log_of(make, tl.compile, TENSORS, argument)[0] == (
            log_of(make, lambda f: f, TENSORS, argument)[0])


@each("change", [
    lambda t: t, lambda t: [*t], lambda t: t[:1], lambda t: (*t, t[0]), lambda t: (t[0], t[0]),
    lambda t: (t[0], t[1][:]), lambda t: (t[0], None), lambda t: (t[0], 2.0), lambda t: t[::-1],
    lambda t: Pair(*t), lambda t: (t[0], t[0][:]), lambda t: (t[0], (t[1],))])
def test_tuples_of_another_kind(change):
    logs = []
    for compiled in (lambda f: f, tl.compile):
        state = State()

        def f(x):
            h = state.h
            return [x * len(h) + (h[0] if isinstance(h, tuple) else 1),
                    h[-1] if isinstance(h[-1], tl.Tensor) else x, type(h) is tuple, h[0] is h[-1]]
        g, log = compiled(f), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, h in enumerate([*TENSORS, *TENSORS[:2]]):
                state.h = h.clone(), h * 2
                if i > 3:
                    state.h = change(state.h)
                for _ in range(2):
                    *found, kind, same = g(tl.ones(3))
                    log.append(([seen(x) for x in found], kind, same))
        logs.append(log)
    assert logs[0] == logs[1]


class Pair(NamedTuple):
    first: tl.Tensor
    second: tl.Tensor


def test_two_places_with_one_tensor():
    logs = []
    for compiled in (lambda f: f, tl.compile):
        one, other = State(), State()
        f = compiled(lambda x: (one.h is other.h, x + one.h, other.h * 2))
        log = []
        for i, h in enumerate(TENSORS):
            one.h, other.h = h, h if i > 3 else h * 2
            same, *found = f(tl.ones(3))
            log.append((same, [seen(x) for x in found]))
        logs.append(log)
    assert logs[0] == logs[1]


@each("replaces", [
    lambda state, y: setattr(state, "h", y), lambda state, y: setattr(state, "h", None),
    lambda state, y: setattr(state, "h", state.other),
    lambda state, y: state.__dict__.update(h=state.other, other=state.h)])
def test_a_function_that_replaces_it_itself(replaces):
    logs = []
    for compiled in (lambda f: f, tl.compile):
        state = State()
        state.other = tl.ones(3)

        def f(x):
            y = state.h * 0.5 + x
            replaces(state, y)
            return y * 2
        g, log = compiled(f), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for h in TENSORS:
                log.append((seen(g(h)), None if state.h is None else seen(state.h),
                            state.h is state.other))
                if state.h is None or len(log) == 4:
                    state.h = h * 3
        logs.append(log)
    assert logs[0] == logs[1]


def test_what_was_replaced_is_not_kept():
    state = State()
    f = tl.compile(lambda x: state.h + x)
    kept = []
    for h in TENSORS:
        state.h = h.clone()
        kept.append(weakref.ref(state.h))
        f(tl.ones(3))
    assert [ref() is None for ref in kept[2:]] == [True, True, True, False]


@pytest.mark.parametrize("named", ["tag", "grad", "_version"])
def test_what_else_is_read_of_it_is_that_of_each_call(named):
    logs = []
    for compiled in (lambda f: f, tl.compile):
        state = State()
        f = compiled(lambda x: (getattr(state.h, named, None), x + state.h))
        log = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, h in enumerate(TENSORS):
                state.h = h.clone()
                if named != "_version":
                    setattr(state.h, named, h if named == "grad" else i)
                found, y = f(tl.ones(3))
                log.append((seen(found) if named == "grad" else found, seen(y)))
        logs.append(log)
    assert logs[0] == logs[1]


# ---- states that a function stores itself: only the store is left out of what is replayed

class Cell(tl.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.h, self.c, self.states = tl.nn.Linear(3, 3), None, None, {}

    def initial(self, x):
        return tl.zeros(len(x), 3)


class StoredWhereItIsMade(Cell):
    def forward(self, x):
        if self.h is None:
            self.h = self.initial(x)
        self.h = tl.tanh(self.linear(x) + self.h)
        return self.h * 2


class StoredLater(Cell):
    def forward(self, x):
        if self.h is None:
            self.h = self.initial(x)
        h = tl.tanh(self.linear(x) + self.h)
        self.h = h
        return h * 2


class StoredTogether(Cell):
    def forward(self, x):
        if self.h is None:
            self.h = self.c = self.initial(x)
        self.h, self.c = tl.tanh(self.linear(x) + self.h), tl.exp(self.c) + x
        return self.h * 2


class StoredInADict(Cell):
    def forward(self, x):
        before = self.states.get("h", self.initial(x))
        self.states["h"] = tl.tanh(self.linear(x) + before)
        return self.states["h"] * 2


class StoredInALoop(Cell):
    def forward(self, x):
        self.h = self.initial(x)
        for k in range(3):
            self.h = tl.tanh(self.linear(x) + self.h) + k
        return self.h * 2


class StoredInABranch(Cell):
    def forward(self, x):
        y = self.linear(x)
        if self.training or self.h is None:
            self.h = y.mean(0) * 0.5
        return y - self.h


def sequence_of(kind, compiled):
    tl.manual_seed(0)
    cell = kind()
    f = compiled(cell)
    log = []
    for size in (2, 2, 2, 2, 2, 4, 4):
        if size == 4:
            cell.h = cell.c = None
            cell.states.clear()
        if log and kind is StoredInABranch:
            cell.train(len(log) % 4 != 3)
        with tl.no_grad():
            y = f(tl.linspace(-1, 1, 3 * size).reshape(size, 3) * len(log))
        log.append([seen(x) for x in (y, cell.h, cell.c, *cell.states.values()) if x is not None])
    return log, f


@each("kind", [StoredWhereItIsMade, StoredLater, StoredTogether, StoredInADict, StoredInALoop,
               StoredInABranch])
def test_a_state_that_a_function_stores(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log, compiled = sequence_of(kind, tl.compile)
    assert log == sequence_of(kind, lambda f: f)[0]
    if kind in (StoredWhereItIsMade, StoredLater, StoredTogether):
        parts = compiled._entries[0].parts.parted.parts
        assert parts and all(part._entries[0].replay is not None for part in parts)

