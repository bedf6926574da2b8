"""The passes one by one: what each takes out, what it must leave, and that the bits stay."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program
from tensorlib.program.passes import PASSES, enabled

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=["folding", "recompute"])
def one_more(request):
    """A pass that is off, on meanwhile."""
    enabled[request.param] = True
    yield request.param
    enabled[request.param] = False


def types(p):
    return [call.type for call in p.block.ops]


def bits(x):
    return x.detach().contiguous().numpy().tobytes(), x.dtype, tuple(x.shape), x.stride()


def after(passes, f, *inputs):
    """The types of the calls after passes, where the bits of all outputs stayed."""
    p = program.trace(f, *inputs)
    before = types(p)
    q = program.optimize(p, passes)
    wanted, found = p(*inputs), q(*inputs)
    for a, b in zip(*(x if type(x) is tuple else (x,) for x in (wanted, found)), strict=True):
        assert bits(a) == bits(b)
    assert types(p) == before                      # the program itself stays
    return types(q)


EDGES = tl.tensor([[0.0, -0.0, NAN, INF], [-INF, 1.5, -2.5, 1e-45]])


# ---- common subexpressions -----------------------------------------------------------------------

def test_what_is_computed_twice_is_computed_once():
    assert after(["common"], lambda x: x.exp() + x.exp() * x.sum(), EDGES) == [
        "exp", "sum", "mul", "add"]


def test_chains_of_common_calls_go_as_a_whole():
    assert after(["common"], lambda x: (x.exp() + 1).sin() * (x.exp() + 1).sin(), EDGES) == [
        "exp", "add", "sin", "mul"]


@pytest.mark.parametrize("f", [
    lambda x: (x.sum(0) + x.sum(1)[:1]).exp(), lambda x: (x + 0.0) * (x + -0.0),
    lambda x: (x + 1) * (1 - x), lambda x: x.clamp(min=0) + x.clamp(max=0)])
def test_calls_that_differ_stay(f):
    p = program.trace(f, EDGES)
    assert after(["common"], f, EDGES) == types(p)


def test_numbers_that_are_drawn_stay_apart():
    found = after(["common"], lambda x: x + tl.rand(2, 4) * 0 + tl.rand(2, 4) * 0, tl.ones(2, 4))
    assert found.count("rand") == 2


def test_dropped_values_stay_apart():
    def f(x):
        return tl.nn.functional.dropout(x, 0.5), tl.nn.functional.dropout(x, 0.5)

    p = program.trace(f, tl.ones(100))
    a, b = program.optimize(p)(tl.ones(100))
    assert not tl.equal(a, b)


def test_what_is_given_out_twice_stays_two_tensors():
    p = program.optimize(program.trace(lambda x: (x.exp(), x.exp()), tl.ones(2)))
    a, b = p(tl.ones(2))
    a.zero_()
    assert b.tolist() == p(tl.ones(2))[1].tolist() != [0, 0]


def test_a_write_between_two_reads_keeps_them_apart():
    kept = tl.ones(2)

    def f(x):
        a = kept * 2 + x
        kept.add_(1)
        return a * (kept * 2 + x) + x.exp() * x.exp()

    p = program.trace(f, tl.ones(2))
    q = program.optimize(p, ["common"])
    assert types(q).count("mul") == 4 and types(q).count("exp") == 1
    kept.fill_(1.0)
    wanted = p(tl.ones(2))
    kept.fill_(1.0)
    assert tl.equal(q(tl.ones(2)), wanted)


def test_values_that_are_written_in_place_are_not_joined():
    with program.Program() as p:
        x = program.data("x", (3,))
        a, b = x + 1, x + 1
        a.add_(1)
        p.outputs = a * b
    assert program.optimize(p)(tl.zeros(3)).tolist() == [2, 2, 2]


# ---- algebra -------------------------------------------------------------------------------------

@each("f, count", [
    (lambda y: y * 1, 0), (lambda y: 1.0 * y, 0), (lambda y: y / 1, 0), (lambda y: y - 0.0, 0),
    (lambda y: y + -0.0, 0), (lambda y: -0.0 + y, 0), (lambda y: -(-y), 0),
    (lambda y: y.t().t(), 0), (lambda y: y.transpose(0, 1).transpose(1, 0), 0),
    (lambda y: y.permute(1, 0).permute(1, 0), 0), (lambda y: y.abs().abs(), 1),
    (lambda y: y.relu().relu(), 1), (lambda y: y.floor().floor(), 1),
    (lambda y: y + 0.0, 1), (lambda y: y - -0.0, 1), (lambda y: 1 / y, 1), (lambda y: 0 - y, 1),
    (lambda y: y.t(), 1), (lambda y: y.transpose(0, 1).transpose(0, 0), 2),
    (lambda y: y * 1.5, 1), (lambda y: -y.abs(), 2),
])
def test_what_gives_its_operand_bit_by_bit_goes(f, count):
    found = after(["simplify", "dead"], lambda x: f(x.ceil()).trunc(), EDGES)
    assert len(found) == 2 + count


def test_whole_numbers_and_zero():
    found = after(["simplify"], lambda x: (x.neg() + 0).abs() * 1, tl.arange(-3, 4))
    assert found == ["neg", "abs", "mul"]                          # the last is given out


def test_a_product_that_changes_the_dtype_stays():
    assert "mul" in after(["simplify"], lambda x: (x.neg() * 1.0).abs(), tl.arange(3))


def twice_reshaped(*shape):
    return lambda x: (x @ x.t()).reshape(16).reshape(shape).exp()


def test_reshapes_of_what_lies_row_by_row_are_one():
    x = tl.randn(4, 6)
    assert after(["simplify", "dead"], twice_reshaped(2, 8), x) == [
        "t", "matmul", "reshape", "exp"]
    assert after(["simplify", "dead"], twice_reshaped(4, 4), x) == [
        "t", "matmul", "exp"]
    assert after(["simplify", "dead"], lambda x: (x @ x.t()).clone().exp(), x) == [
        "t", "matmul", "exp"]


def test_reshapes_and_products_of_what_may_lie_otherwise_stay():
    x = tl.randn(6, 4).t()
    assert after(None, lambda x: (x.reshape(24).reshape(4, 6) * 1).sum(0), x).count("reshape") == 2
    assert "mul" in after(None, lambda x: (x[:, ::2] * 1).sum(0), x)


def test_what_the_program_writes_later_is_copied_as_before():
    kept = tl.ones(3)

    def f(x):
        a = kept.neg().neg()
        kept.add_(1)
        return a + x

    p = program.trace(f, tl.zeros(3))
    q = program.optimize(p)
    kept.fill_(5.0)
    assert q(tl.zeros(3)).tolist() == [5, 5, 5] and kept.tolist() == [6, 6, 6]


# ---- constants -----------------------------------------------------------------------------------

def test_what_is_computed_of_constants_is_a_constant():
    def f(x):
        return x * (tl.arange(4).float() * 2 + 1).sqrt()

    assert after(["folding"], f, tl.ones(4)) == ["mul"]


def test_buffers_and_what_is_written_are_no_constants():
    buffer = tl.ones(4)

    def f(x):
        scale = tl.zeros(4)
        scale[0] = x[0]
        return x * (buffer * 2) * scale

    p = program.optimize(program.trace(f, tl.ones(4)))
    buffer.fill_(3.0)
    assert p(tl.ones(4)).tolist() == [6, 0, 0, 0]


def test_a_large_result_of_a_small_constant_is_not_kept():
    def f(x):
        return (tl.ones(1, 1).expand(100, 100).neg() * x).sum()

    found = after(["folding"], f, tl.ones(1))
    assert "expand" in found and "neg" in found


# ---- computed again ------------------------------------------------------------------------------

def trained(activation):
    tl.manual_seed(0)
    parts = [part for _ in range(4) for part in (tl.nn.Linear(64, 64), activation())]
    model = tl.nn.Sequential(*parts, tl.nn.Linear(64, 3))
    optimizer = tl.optim.Adam(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = tl.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, step


@pytest.mark.parametrize("activation", [tl.nn.GELU, tl.nn.ReLU, tl.nn.Softplus])
def test_a_step_has_its_bits_with_one_more_pass(one_more, activation):
    x, y = tl.randn(64, 64), tl.randint(0, 3, (64,))
    wanted, step = trained(activation)
    losses = [step(x, y).item() for _ in range(4)]
    found, step = trained(activation)
    step = tl.compile(step)
    assert [step(x, y).item() for _ in range(4)] == losses
    assert all(map(tl.equal, wanted.parameters(), found.parameters()))


def test_an_activation_is_computed_again_where_its_operand_is_kept_anyway():
    tl.manual_seed(0)
    parts = [part for _ in range(4) for part in (tl.nn.Linear(64, 64), tl.nn.GELU())]
    model = tl.nn.Sequential(*parts)
    p = program.trace(lambda x: model(x).square().mean(), tl.ones(64, 64))
    pairs = program.append_backward(p.outputs)
    p.outputs = (p.outputs, [g for _, g in pairs])
    q = program.optimize(p, ["recompute"])
    assert types(q).count("gelu") == 7 and types(p).count("gelu") == 4
    x = tl.randn(64, 64)
    (loss, grads), (same, again) = p(x), q(x)
    assert tl.equal(loss, same) and all(map(tl.equal, grads, again))


def gelu_by_hand(h):
    return 0.5 * h * (1 + (0.7978845608 * (h + 0.044715 * h * h * h)).tanh())


def test_what_is_written_out_is_computed_again_from_the_operand_that_is_kept():
    w = tl.randn(64, 64, requires_grad=True)

    def f(x):
        for _ in range(3):
            x = gelu_by_hand(x @ w)
        return x.mean()

    p = program.trace(f, tl.ones(64, 64))
    ((_, g),) = program.append_backward(p.outputs)
    p.outputs = p.outputs, g
    q = program.optimize(p, ["recompute"])
    end = types(q).index("mean_gradient")
    early = {x for call in q.block.ops[:end] for x in call.writes()}
    late = {x for call in q.block.ops[end + 8:] for x in call.reads() if len(x.shape) == 2}
    assert types(q).count("tanh") == 6
    assert sorted({x.name for x in early & late}) == ["matmul", "matmul_1", "matmul_2"]
    x = tl.randn(64, 64)
    for a, b in zip(p(x), q(x)):
        assert bits(a) == bits(b)


@pytest.mark.parametrize("f", [
    lambda x, w: (x.exp() + 1).reciprocal() @ w,              # neither operand is kept
    lambda x, w: ((x @ w / 8).exp() + 1).log().sin() * 2,
    lambda x, w: gelu_by_hand(gelu_by_hand(x)) @ w,           # the inner one needs the outer first
    lambda x, w: gelu_by_hand(x * tl.rand(64, 64)) @ w,       # what is drawn is not drawn again
    lambda x, w: (lambda h: gelu_by_hand(h) @ w + h.exp() * h)(x.sin()),
])
def test_values_of_a_call_are_computed_again_in_its_backward_part(f):
    def gradients(function):
        tl.manual_seed(3)
        x, w = tl.randn(64, 64, requires_grad=True), tl.randn(64, 64, requires_grad=True)
        h = x
        for _ in range(3):
            h = function(h, w) / 30
        first = tl.autograd.grad(h.square().sum(), [x, w], retain_graph=True)
        a, b = tl.autograd.grad(h.square().sum(), [x, w], create_graph=True)
        return [*first, *tl.autograd.grad((a ** 2).sum() + b.sum(), [x, w])]

    compiled = tl.compile(f, options={"recompute": True}, fullgraph=True)
    for _ in range(2):
        first = gradients(f)
        found = gradients(compiled)
        assert all(map(tl.equal, first[:2], found[:2]))
        assert all(tl.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(first, found))


def test_values_are_computed_again_for_those_results_that_are_used():
    def f(x, w):
        h = gelu_by_hand(x @ w)
        return gelu_by_hand(h), h.exp() * h, h.sin()

    compiled = tl.compile(f, options={"recompute": True}, fullgraph=True)
    x, w = tl.randn(64, 64, requires_grad=True), tl.randn(64, 64, requires_grad=True)
    for used in (0, 1, 2, 0):
        wanted = tl.autograd.grad(f(x, w)[used].sum(), [x, w])
        found = tl.autograd.grad(compiled(x, w)[used].sum(), [x, w])
        assert all(map(tl.equal, wanted, found))


def test_options_hold_for_one_function():
    x = tl.randn(64, 64, requires_grad=True)

    def kept(**options):
        """Bytes that the node of a compiled call keeps."""
        f = tl.compile(lambda x: gelu_by_hand(x * 2), fullgraph=True, **options)
        f(x)
        before = tl.memory.stats()["in_use"]
        y = f(x)
        return tl.memory.stats()["in_use"] - before - y.nbytes

    assert kept(options={"recompute": True}) < 0.6 * kept()
    assert kept(options={"recompute": False, "triton.cudagraphs": True}) == kept(options={})
    model = tl.compile(tl.nn.GELU(), options={"recompute": True})
    assert model(x).shape == x.shape and isinstance(model, tl.nn.GELU)
    with pytest.raises(TypeError, match="options are a dict, got list"):
        tl.compile(gelu_by_hand, options=["recompute"])


# ---- what they have in common --------------------------------------------------------------------

@pytest.mark.parametrize("name", PASSES)
def test_each_pass_keeps_the_bits_of_a_step_with_its_backward_part(name):
    w = tl.randn(8, 8, requires_grad=True)

    def f(x):
        h = ((x @ w).tanh() * 1).reshape(64).reshape(8, 8)
        return (h.exp() + h.exp() * (tl.arange(8) * 2.0)).mean()

    p = program.trace(f, tl.ones(8, 8))
    ((_, g),) = program.append_backward(p.outputs)
    p.outputs = p.outputs, g
    x = tl.randn(8, 8)
    for a, b in zip(p(x), program.optimize(p, [name])(x)):
        assert bits(a) == bits(b)


def test_blocks_are_left_as_they_are():
    def f(x):
        y = x * 2
        return tl.cond(x.sum() > 0, lambda: y.exp() + y.exp(), lambda: -y) + (x * 2).exp()

    p = program.trace(f, tl.ones(3))
    q = program.optimize(p)
    for x in (tl.ones(3), -tl.ones(3)):
        assert tl.equal(p(x), q(x))


def test_what_was_optimized_can_be_printed_saved_and_differentiated(tmp_path):
    w = tl.randn(3, 3, requires_grad=True)
    p = program.optimize(program.trace(lambda x: ((x @ w) * 1).tanh().sum(), tl.ones(3, 3)))
    assert str(program.parse(str(p), p.values())) == str(p)
    p.save(tmp_path / "p.safetensors")
    x = tl.randn(3, 3)
    assert tl.equal(program.load(tmp_path / "p.safetensors")(x), p(x))
    ((_, g),) = program.append_backward(p.outputs)
    (wanted,) = tl.autograd.grad((x @ w).tanh().sum(), w)
    assert tl.allclose(p.run({"x": x}, g), wanted)


def test_what_optimize_refuses():
    p = program.trace(lambda x: x + 1, tl.ones(2))
    with pytest.raises(ValueError, match="no pass 'inline'"):
        program.optimize(p, ["inline"])
    with pytest.raises(TypeError, match="takes a Program"):
        program.optimize(lambda x: x)
    p.block.ops[0].type = "nothing"
    with pytest.raises(program.ProgramError, match="nothing"):
        program.optimize(p)


def test_a_pass_that_breaks_a_program_is_named(monkeypatch):
    monkeypatch.setitem(PASSES, "dead", lambda calls, wanted, given: calls[1:])
    p = program.trace(lambda x: x.exp().sin(), tl.ones(2))
    with pytest.raises(program.ProgramError, match="after dead"):
        program.optimize(p)
