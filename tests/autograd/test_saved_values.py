"""What graphs keep, and when they release it: docs/saved_values.md, held to the allocator."""

import functools
import gc
import weakref

import pytest
from cases import each

import tensorlib as tl
from tensorlib import func, ops
from tensorlib._core.sweep import graph_reader
from tensorlib.autograd import Function, checkpoint, grad
from tensorlib.autograd.graph import saved_tensors_hooks
from tensorlib.memory import reset_peak, stats
from tensorlib.ops import registry
from tensorlib.testing import catalogue
from tests.ops.catalogue import for_each

ELEMENTS = 1 << 18
UNIT = 4 * ELEMENTS          # bytes of a large tensor, which is a whole block


def in_use():
    return stats()["in_use"]


class Meter:
    """Memory in large tensors, counted from when it was made."""

    def __init__(self):
        self.before = in_use()
        reset_peak()

    def now(self):
        return round((in_use() - self.before) / UNIT, 1)

    def peak(self):
        return round((stats()["peak"] - self.before) / UNIT, 1)


@pytest.fixture(autouse=True)
def _without_the_garbage_collector():
    """What is measured goes when it is let go, not when cycles are looked for."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# ---- what is kept: every operation against its record --------------------------------------------

RECORDED = [op for op in registry.values() if op.differentiable and op.linearity != "composite"]


def runs(op):
    """The samples of an operation, with the places of inputs that require grad: each alone, all."""
    for sample in catalogue.samples(op):
        taken = catalogue.dtypes_taken(op)
        sample = catalogue.in_dtype(op, sample, "float32" if "float32" in taken else "complex64")
        places = [i for i, x in enumerate(sample.arrays)
                  if x.dtype.is_floating_point or x.dtype.is_complex]
        for wanted in [*[(place,) for place in places], tuple(places)]:
            yield sample, wanted


def recorded_run(op, sample, wanted):
    """The node that a sample's run made (or None), and weak references to its inputs."""
    given = [x.clone().requires_grad_() + 0 if i in wanted else x.clone()
             for i, x in enumerate(sample.arrays)]
    args, kwargs = catalogue.prepared(op, sample.with_arrays(given))
    results = catalogue.outputs(op.function(*args, **kwargs))
    nodes = [x.grad_fn for x in results if x.requires_grad]
    inputs = catalogue.tensors_among(op, args)
    return nodes[0] if nodes else None, [weakref.ref(x) for x in inputs]


@for_each(RECORDED)
def test_a_node_keeps_what_the_record_says_and_nothing_else(op):
    for sample, wanted in runs(op):
        recorded_run(op, sample, wanted)           # once for the numbers that are kept for reuse
        before = in_use()
        node, inputs = recorded_run(op, sample, wanted)
        if node is None or node.operation != op.name:
            assert op.name in ("to", "contiguous")             # which had nothing to do
            continue
        names, saved = catalogue.kept_names(op, wanted), node.saved_values
        assert list(saved) == names
        assert sum(x.nbytes for x in saved.values()) == catalogue.kept_bytes(op, sample, wanted)
        for name, x in zip(() if op.variadic else op.arguments, inputs):
            assert (x() is not None) == (name in names), name
        held, beside = in_use(), (graph_reader.attributes(node), node.next_functions)
        del node
        assert in_use() == held, "the node keeps more than its saved values and attributes"
        del saved, beside, inputs
        assert in_use() == before


def test_an_input_that_needs_no_gradient_makes_nothing_be_kept():
    x, w = tl.ones(512, 512), tl.ones(512, 512, requires_grad=True)
    meter = Meter()
    node = ((x + 0) @ w).grad_fn
    assert list(node.saved_values) == ["input"] and meter.now() == 1
    node = (w @ (x + 0)).grad_fn
    assert list(node.saved_values) == ["other"] and meter.now() == 1
    node = ((x + 0) + w).grad_fn
    assert meter.now() == 0 and node is not None


def large(requires_grad=True):
    return tl.full((ELEMENTS,), 0.5, requires_grad=requires_grad)


class Sine(Function):
    """Saves its input, as `sin`."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()


def sines(x, n, sin=tl.sin):
    for _ in range(n):
        x = sin(x)
    return x


@functools.cache
def composed(n):
    """So many sines in composed operations, one around the other for every five."""
    inner = composed(n - 5) if n > 5 else None
    return ops.compose(f"test_memory_sines_{n}",
                       lambda x: sines(inner(x) if inner else x, 5))


def test_a_composed_operation_keeps_what_its_parts_keep():
    meter = Meter()
    x = large()
    node = composed(10)(x).grad_fn
    assert meter.now() == 10               # what each sine took
    assert tl.graph.summary(composed(10)(x)).saved_bytes == 10 * UNIT
    del node, x
    assert meter.now() == 0


def test_a_composed_operation_keeps_no_argument_and_no_result_that_no_gradient_needs():
    add = ops.compose("test_memory_add", lambda x, y: (x + y, x - y))
    x = large()
    meter = Meter()
    first, second = add(x + 0, large(False))
    assert meter.now() == 2
    del second
    assert meter.now() == 1
    node = first.grad_fn
    del first
    assert meter.now() == 0 and node is not None


# ---- sweeps: what is let go, and when ------------------------------------------------------------

def through_hooks(x):
    """A sine with every kind of hook."""
    y = x.sin()
    y.register_hook(lambda g: None)
    y.grad_fn.register_prehook(lambda grads: None)
    y.grad_fn.register_hook(lambda to_inputs, of_outputs: None)
    return y


def retained(x):
    y = x.sin()
    y.retain_grad()
    return y


CHAINS = {
    "operations": lambda x: sines(x, 20),
    "views": lambda x: sines(x, 20, lambda x: x.sin().view(1024, -1).t().t().view(-1)),
    "fan-out": lambda x: sines(x, 10, lambda x: x.sin() + x.cos()),
    "products": lambda x: sines(x, 20, lambda x: x * x),
    "in place": lambda x: sines(x, 20, lambda x: x.sin().mul_(0.5)),
    "Function": lambda x: sines(x, 20, Sine.apply),
    "composed": lambda x: sines(x, 4, composed(5)),
    "nested": lambda x: sines(x, 2, composed(10)),
    "hooks": lambda x: sines(x, 20, through_hooks),
    "retain_grad": lambda x: sines(x, 20, retained),
}


@each("chain", CHAINS)
def test_a_sweep_frees_a_chain_as_it_passes(chain):
    meter = Meter()
    x = large()
    loss = CHAINS[chain](x).sum()
    kept = meter.now()
    assert kept == (10 if chain == "fan-out" else 20)
    assert round(tl.graph.summary(loss).saved_bytes / UNIT, 1) == kept
    reset_peak()
    loss.backward()
    assert meter.peak() <= kept + 2        # the gradient that arrives and the one that is made
    assert meter.now() == 2                # x and its gradient
    del loss, x
    assert meter.now() == 0


def noting(sin, meter, steps):
    """`sin`, which notes the memory in use when a gradient arrives at its result."""
    def noted(x):
        y = sin(x)
        y.register_hook(lambda g: steps.append(meter.now()))
        return y
    return noted


@pytest.mark.parametrize(
    "sin, kept_by_each", [(tl.sin, 1), (Sine.apply, 1), (lambda x: composed(5)(x), 5)],
    ids=["operation", "Function", "composed"])
def test_memory_falls_with_every_node_of_a_sweep(sin, kept_by_each):
    meter, steps = Meter(), []
    x = large()
    loss = sines(x, 10, noting(sin, meter, steps)).sum()
    loss.backward()
    falls = [before - after for before, after in zip(steps, steps[1:])]
    assert falls == [kept_by_each - 1] + [kept_by_each] * 8      # and there is a gradient then


def test_memory_falls_with_every_node_inside_a_composed_operation():
    meter, steps = Meter(), []
    x = large()
    op = ops.compose("test_memory_noting", lambda x: sines(x, 10, noting(tl.sin, meter, steps)))
    op(x).sum().backward()
    assert [before - after for before, after in zip(steps, steps[1:])] == [0] + [1] * 8


@pytest.mark.parametrize("chain", ["operations", "Function", "composed", "nested"])
def test_retain_graph_keeps_everything_for_the_next_sweep(chain):
    meter = Meter()
    x = large()
    loss = CHAINS[chain](x).sum()
    kept = meter.now()
    for _ in range(3):
        loss.backward(retain_graph=True)
        assert meter.now() == kept + 1     # and the gradient of x
    loss.backward()
    assert meter.now() == 2


def test_gradients_that_fan_in_are_summed_in_one_buffer():
    meter = Meter()
    x = large()
    y = x.sin()
    loss = sum(y.exp() for _ in range(10)).sum()
    del y
    kept = meter.now()
    assert kept == 11                      # x, and ten results of exp
    reset_peak()
    loss.backward()
    assert meter.peak() <= kept + 1 and meter.now() == 2


def test_a_sweep_that_raises_lets_go_of_its_gradients():
    def refuse(g):
        raise ValueError("no")

    meter = Meter()
    x = large()
    y = sines(x, 10)
    y.register_hook(refuse)
    loss = sines(y, 10).sum()
    del y
    with pytest.raises(ValueError):
        loss.backward()
    assert meter.now() == 10               # what the nodes keep that have not run
    del loss
    assert meter.now() == 1


def test_a_recorded_sweep_goes_with_its_results():
    meter = Meter()
    x = large()
    (g,) = grad(sines(x, 20).sum(), x, create_graph=True)
    assert meter.now() > 40
    del g
    assert meter.now() == 1


def test_values_saved_through_hooks_go_as_others_do():
    meter = Meter()
    x = large()
    with saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        loss = sines(x, 20).sum()
    assert meter.now() == 21               # x, and a copy of what each sine took
    reset_peak()
    loss.backward()
    assert meter.peak() <= 22 and meter.now() == 2


@pytest.mark.parametrize("parts, sines_of_each", [(4, 5), (10, 10)])
def test_a_checkpoint_keeps_arguments_and_has_one_part_at_a_time(parts, sines_of_each):
    meter = Meter()
    x = large()
    loss = sines(x, parts, lambda x: checkpoint(sines, x, sines_of_each)).sum()
    assert meter.now() == parts            # instead of parts * sines_of_each
    reset_peak()
    loss.backward()
    assert meter.peak() <= parts + sines_of_each + 1 and meter.now() == 2


# ---- transforms ----------------------------------------------------------------------------------

def total(x):
    return sines(x, 20).sum()


def test_grad_of_a_function_frees_as_it_goes():
    x = large(False)
    for transform in (func.grad, func.value_and_grad, func.elementwise_grad):
        meter = Meter()
        result = transform(total)(x)
        assert meter.peak() <= 20          # what 19 sines took beside x, and one gradient
        assert meter.now() == 1
        del result
        assert meter.now() == 0


@pytest.mark.parametrize("f", [total, lambda x: composed(10)(composed(10)(x)).sum()],
                         ids=["operations", "composed"])
def test_what_vjp_returns_keeps_the_graph_until_it_goes(f):
    x, meter = large(False), Meter()
    out, pull = func.vjp(f, x)
    kept = meter.now()
    assert kept == 19
    for _ in range(3):
        pull(tl.ones(()))
        assert meter.now() == kept
    del pull
    assert meter.now() == 0 and out.shape == ()
    _, pull = func.vjp(f, x)
    pull(tl.ones(()), retain_graph=False)
    assert meter.now() == 0


def test_what_linearize_returns_keeps_the_graph_until_it_goes():
    x, meter = large(False), Meter()
    out, push = func.linearize(functools.partial(sines, n=20), x)
    kept = meter.now()
    assert kept == 20                      # the result among it
    reset_peak()
    for _ in range(3):
        push(x)
        assert meter.now() == kept
    assert meter.peak() <= kept + 3        # two tangents and a slope
    del push
    assert meter.now() == 1
    del out
    assert meter.now() == 0


def test_jvp_keeps_nothing():
    x, meter = large(False), Meter()
    out, tangent = func.jvp(functools.partial(sines, n=20), (x,), (x,))
    assert meter.now() == 2 and out.shape == tangent.shape


@pytest.mark.parametrize("loss", [
    tl.nn.functional.cross_entropy,
    lambda x, y: tl.nn.functional.nll_loss(x.log_softmax(1), y),
    lambda x, y: tl.nn.functional.cross_entropy(x, y, weight=tl.arange(1, 4).float()),
])
@pytest.mark.parametrize("wrap", [lambda f: f, tl.compile])
def test_classes_that_were_written_since_are_no_others(loss, wrap):
    loss, x = wrap(loss), tl.randn(2, 3, requires_grad=True)
    for _ in range(3):
        classes = tl.tensor([0, 1])
        value = loss(x, classes)
        classes.fill_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            value.backward()
        loss(x, classes).backward()
