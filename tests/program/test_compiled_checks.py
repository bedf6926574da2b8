"""Compiled functions that check elements, or whose sizes follow from them: as eager ones."""

import pytest
from beside_eager import agrees
from cases import each

import tensorlib as tl
from tensorlib import nn, program

F = nn.functional
PLACES = [tl.tensor([0, 1]), tl.tensor([0, 2]), tl.tensor([0, 7]), tl.tensor([2, 1])]
CHANCES = [tl.tensor(x) for x in ([0.2, 0.3], [0.5, 0.0], [1.5, 0.2], [0.1, 0.2])]
SCALES = [tl.tensor(x) for x in ([1.0, 1.0], [0.5, 2.0], [-1.0, 2.0], [3.0, 4.0])]
MATRICES = [tl.eye(2), tl.eye(2) * 2, -tl.zeros(2, 2), tl.eye(2) * 3]

# Each looks at elements of its one argument, and refuses those of the third call.
CHECKING = {
    "embedding": (lambda i: F.embedding(i, tl.ones(3, 2)), PLACES),
    "embedding_of_a_negative_row": (
        lambda i: F.embedding(i, tl.ones(9, 2)),
        [*PLACES[:2], tl.tensor([-1, 0]), tl.tensor([0, 0])]),
    "embedding_bag": (lambda i: F.embedding_bag(i[None], tl.ones(3, 2)), PLACES),
    "nll_loss": (lambda i: F.nll_loss(tl.ones(2, 3), i), PLACES),
    "cross_entropy": (lambda i: F.cross_entropy(tl.ones(2, 3), i), PLACES),
    "multi_margin_loss": (lambda i: F.multi_margin_loss(tl.ones(2, 3), i), PLACES),
    "multilabel_margin_loss": (
        lambda i: F.multilabel_margin_loss(tl.ones(1, 3), F.pad(i, (0, 1), value=-1)[None]),
        PLACES),
    "binary_cross_entropy": (lambda p: F.binary_cross_entropy(p, tl.ones(2)), CHANCES),
    "normal": (lambda s: tl.normal(tl.zeros(2), s), SCALES),
    "poisson": (lambda s: tl.poisson(s), SCALES),
    "bernoulli": (lambda p: tl.bernoulli(p), CHANCES),
    "binomial": (lambda p: tl.binomial(tl.ones(2), p), CHANCES),
    "gaussian_nll_loss": (lambda v: F.gaussian_nll_loss(tl.ones(2), tl.zeros(2), v), SCALES),
    "quantile": (lambda q: tl.quantile(tl.arange(4.0), q), CHANCES),
    "index": (lambda i: tl.ones(3)[i], PLACES),
    "gather": (lambda i: tl.ones(3).gather(0, i), PLACES),
    "take": (lambda i: tl.ones(3).take(i), PLACES),
    "index_select": (lambda i: tl.ones(3).index_select(0, i), PLACES),
    "index_add": (lambda i: tl.ones(3).index_add(0, i, tl.ones(2)), PLACES),
    "scatter": (lambda i: tl.ones(3).scatter(0, i, 1.0), PLACES),
    "integer_division": (lambda i: tl.ones(2, dtype=tl.int64) // i,
                         [tl.tensor([1, 2]), tl.tensor([2, 2]), tl.tensor([0, 1]),
                          tl.tensor([3, 3])]),
    "integer_power": (lambda i: tl.full((2,), 2) ** i,
                      [tl.tensor([1, 2]), tl.tensor([2, 2]), tl.tensor([-1, 1]),
                       tl.tensor([3, 3])]),
    "inverse": (tl.linalg.inv, MATRICES),
    "cholesky": (tl.linalg.cholesky, MATRICES),
    "solve": (lambda a: tl.linalg.solve(a, tl.ones(2)), MATRICES),
    "factors": (lambda a: tl.linalg.lu_factor(a)[0], MATRICES),
}


@each("name", CHECKING)
def test_a_replay_refuses_the_elements_that_a_call_refuses(name):
    function, given = CHECKING[name]
    agrees(lambda: (lambda x: (function(x), x + 1), [x.clone() for x in given]))


@each("name", CHECKING)
def test_a_check_stays_where_nobody_reads_what_it_guards(name):
    function, given = CHECKING[name]

    def unread(x):
        function(x)
        return x + 1

    agrees(lambda: (unread, [x.clone() for x in given]))


@each("name", CHECKING)
def test_a_check_comes_after_the_writes_that_come_before_it(name):
    function, given = CHECKING[name]

    def build():
        count = tl.zeros(1)

        def counted(x):
            count.add_(1)
            function(x)
            return x + 1

        return counted, [x.clone() for x in given], count

    agrees(build)


LABELS = [tl.tensor([0, 1, 2]), tl.tensor([1, 1, 0]), tl.tensor([0, 7, 0]), tl.tensor([2, 1, 0])]


def model_and_optimizer():
    """A model that draws numbers and keeps statistics, and an optimiser with a state."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.Linear(4, 3))
    optimizer = tl.optim.Adam(model.parameters(), lr=0.1)
    return model, optimizer, tl.randn(3, 3)


def zeroed_at_first(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def zeroed_after_the_check(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def two_steps(model, optimizer, x, y):
    return zeroed_at_first(model, optimizer, x, y.clamp(max=2)), zeroed_after_the_check(
        model, optimizer, x * 2, y)


def zeroed_between_checks(model, optimizer, x, y):
    rows = F.embedding(y.clamp(max=2), x)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(rows), y)
    loss.backward()
    return loss.detach()


def caught(model, optimizer, x, y):
    optimizer.zero_grad()
    try:
        F.cross_entropy(model(x), y).backward()
    except IndexError:
        return x.sum()
    optimizer.step()
    return x * 2


def one_by_one(model, optimizer, x, y):
    for p in model.parameters():
        if p.grad is not None:
            p.grad = None
    model(x).sum().backward()
    return F.nll_loss(x, y)


@each("step", (zeroed_at_first, zeroed_after_the_check, two_steps, zeroed_between_checks, caught,
               one_by_one))
def test_a_step_that_a_check_ends_leaves_what_the_eager_one_leaves(step):
    def build():
        model, optimizer, x = model_and_optimizer()
        states = [optimizer.state[p] for p in model.parameters()]
        return (lambda y: step(model, optimizer, x, y), [y.clone() for y in LABELS],
                [*model.parameters(), *model.buffers(), states])

    assert agrees(build) == []


def test_what_is_written_in_a_branch_before_a_check_is_as_the_eager_call_leaves_it():
    def build():
        rows, count = tl.randn(3, 3), tl.zeros(1)

        def drawn_and_written(y):
            count.copy_(tl.cond(y.sum() > 2, lambda: count + tl.rand(1), lambda: count * 2))
            rows[y.clamp(max=2)] += 1.0
            return rows.index_select(0, y)

        return drawn_and_written, [y.clone() for y in LABELS], [count, rows]

    assert agrees(build) == []


def test_where_no_check_follows_a_write_nothing_is_kept_for_it():
    model, optimizer, x = model_and_optimizer()
    model.eval()
    step = tl.compile(zeroed_at_first)
    for y in LABELS[:2]:
        step(model, optimizer, x, y)
    assert step._entries[0].replay is not None and step._entries[0].undo is None


# Each has a size that follows from elements.
SIZED = {
    "mask": lambda x: len(x[x > 2]),
    "masked_select": lambda x: x.masked_select(x > 2).shape[0],
    "nonzero": lambda x: (x > 2).nonzero().shape[0],
    "argwhere": lambda x: tl.argwhere(x > 2).shape[0],
    "where": lambda x: tl.where(x > 2)[0].numel(),
    "unique": lambda x: tl.unique((x / 3).floor()).numel(),
    "unique_consecutive": lambda x: tl.unique_consecutive((x / 3).floor()).numel(),
    "bincount": lambda x: tl.bincount(x.long()).numel(),
    "repeat_interleave": lambda x: x.repeat_interleave(x.long()).numel(),
    "one_hot": lambda x: F.one_hot(x.long()).shape[-1],
}


@each("name", SIZED)
def test_a_size_that_follows_from_elements_ends_the_capture(name):
    function = SIZED[name]
    told = agrees(lambda: (lambda x: x * function(x), [tl.arange(4.0) + i for i in range(3)]))
    assert len(told) == 1 and "runs eagerly" in told[0]


def test_it_ends_the_capture_where_nobody_reads_the_result():
    def unread(x):
        (x > 2).nonzero()
        return x * 2

    with pytest.raises(program.CaptureError, match="depends on elements"):
        tl.compile(unread, fullgraph=True)(tl.ones(3))


def test_repetitions_by_a_number_are_captured():
    assert not agrees(lambda: (lambda x: x.repeat_interleave(2), [tl.ones(3), tl.zeros(3)]))


def test_the_gradient_of_values_put_at_one_place_is_that_of_the_last():
    def put(values, places):
        base = tl.zeros(4)
        base[places] = values * 2
        return base

    def calls():
        return [(tl.ones(2, requires_grad=True), tl.tensor(x)) for x in ([0, 1], [1, 1], [3, 0])]

    assert not agrees(lambda: (put, calls()))


def test_a_program_checks_the_elements_of_each_run_also_when_it_was_read_again():
    traced = program.trace(lambda p: F.binary_cross_entropy(p, tl.ones(2)), tl.ones(2))
    for p in (traced, program.parse(str(traced), traced.values())):
        assert p(tl.ones(2)).item() == 0
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            p(tl.full((2,), 2.0))


FIRST, MASK = tl.tensor([0]), tl.tensor([True, False])


@pytest.mark.parametrize("write", [
    lambda x: x.masked_fill_(MASK, 2.0), lambda x: x.index_fill_(0, FIRST, 2.0),
    lambda x: x.index_copy_(0, FIRST, tl.ones(1)), lambda x: x.index_add_(0, FIRST, tl.ones(1)),
    lambda x: x.scatter_(0, FIRST, tl.ones(1)), lambda x: x.cumsum_(0), lambda x: x.mul_(2)])
def test_a_write_into_what_is_expanded_says_its_name(write):
    said = []
    for f in (write, *[tl.compile(write)] * 3):
        with pytest.raises(RuntimeError, match="more than one element") as error:
            f(tl.ones(1).expand(2))
        said.append(str(error.value))
    assert len(set(said)) == 1
