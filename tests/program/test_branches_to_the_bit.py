"""What a branch of a compiled function gives, and its gradients, beside the eager call."""

import pytest
from cases import each

import tensorlib as tl
F = tl.nn.functional

CLASSES = tl.tensor([0, 1, 3, 2])
SEEN = tl.ones(4, 4).tril() > 0


def without_graph(x):
    with tl.no_grad():
        doubled = x * 2
    return doubled * x


CASES = {
    "cross_entropy": (lambda x, w: F.cross_entropy(x, CLASSES, w), (4, 6), (6,)),
    "cross_entropy_mean": (lambda x: F.cross_entropy(x, CLASSES), (4, 6)),
    "nll_loss": (lambda x, w: F.nll_loss(x.log_softmax(1), CLASSES, w), (4, 6), (6,)),
    "attention_seen": (lambda q: F.scaled_dot_product_attention(q, q, q, SEEN), (2, 4, 3)),
    "attention_biased": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m), (2, 4, 3), (4, 4)),
    "padding": (lambda w: F.embedding(CLASSES, w, padding_idx=1), (6, 3)),
    "frequency": (lambda w: F.embedding(CLASSES // 2, w, scale_grad_by_freq=True), (6, 3)),
    "nan_to_num": (lambda x: (x / x.round()).nan_to_num(), (4, 6)),
    "norm_0": (lambda x: x.norm(0) * x.sum(), (4, 6)),
    "quantile": (lambda x: x.quantile(0.3), (4, 6)),
    "no_grad": (without_graph, (4, 6)),
}


def seen(function, given, records):
    """The result's bits, and those of the gradients."""
    leaves = [x.clone().requires_grad_(records) for x in given]
    result = function(*leaves)
    slopes = tl.autograd.grad(result.sum(), leaves, allow_unused=True) if records else ()
    return [None if x is None else x.detach().numpy().tobytes() for x in (result, *slopes)]


@each("records", [False, True])
@each("name", CASES)
@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
def test_a_branch_is_the_eager_call(name, records):
    function, *shapes = CASES[name]
    tl.manual_seed(0)
    given = [tl.rand(shape) for shape in shapes]

    def branched(*xs):
        return tl.cond(xs[0].sum() > 0, lambda: function(*xs), lambda: function(*xs))

    compiled, wanted = tl.compile(branched), seen(branched, given, records)
    for _ in range(3):
        assert seen(compiled, given, records) == wanted


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
def test_what_a_branch_draws_is_drawn_once():
    """The operation is tried while it is captured, on numbers of its own."""
    def drawn(x):
        return tl.cond(x.sum() > 0, lambda: tl.multinomial(x, 2), lambda: tl.multinomial(x, 2))

    compiled = tl.compile(drawn)
    for _ in range(3):
        x = tl.ones(4, 6)
        tl.manual_seed(1)
        wanted = drawn(x), tl.rand(2)
        tl.manual_seed(1)
        assert all(map(tl.equal, (compiled(x), tl.rand(2)), wanted))


@pytest.mark.parametrize("write", [
    lambda y: y.detach().mul_(0.5), lambda y: y.data.mul_(0.5), lambda y: written_without_grad(y),
])
def test_a_write_by_the_side_of_the_gradient_behind_a_branch_that_has_none(write):
    """The branch that the capture takes gives what has no gradient, the other what has one."""
    def f(taken, a, b):
        y = tl.cond(taken, lambda: a * 2.0, lambda: b + 2.0)
        write(y)
        return y * 1.0

    compiled = tl.compile(f)
    for taken in (True, True, False, False):
        given = tl.tensor(taken), tl.randn(3), tl.randn(3, requires_grad=True)
        seen = []
        for function in (f, compiled):
            y = function(*given)
            given[2].grad = None
            if y.requires_grad:
                y.sum().backward()
            seen.append((y.requires_grad, y.tolist(), given[2].grad))
        assert seen[0][:2] == seen[1][:2]
        assert (seen[0][2] is None) == (seen[1][2] is None)
        assert seen[0][2] is None or seen[0][2].equal(seen[1][2])


def written_without_grad(y):
    with tl.no_grad():
        y.mul_(0.5)
