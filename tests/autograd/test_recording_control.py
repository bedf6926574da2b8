"""Control of recording and sweeps: inference mode, saved values, anomalies, cuts."""

import warnings

import pytest
from tensors import leaf

import tensorlib as tl
from tensorlib.autograd import detect_anomaly, set_detect_anomaly
from tensorlib.autograd.graph import Node, saved_tensors_hooks
from tensorlib.testing import assert_close


# ---- inference mode ------------------------------------------------------------------------------

def test_inference_mode_records_nothing():
    x = leaf(1.0)
    with tl.inference_mode():
        y = x * 2
        assert tl.is_inference_mode_enabled() and not tl.is_grad_enabled()
        with tl.enable_grad():
            assert not (x * 2).requires_grad
    assert not y.requires_grad and y.is_inference()
    assert not tl.is_inference_mode_enabled() and tl.is_grad_enabled()
    assert not x.is_inference() and (x * 2).requires_grad


def test_inference_mode_as_a_decorator_and_switched_off():
    @tl.inference_mode()
    def first():
        with tl.inference_mode(False):
            return tl.ones(1), tl.is_grad_enabled()

    @tl.inference_mode
    def second():
        return tl.ones(1)

    ordinary, enabled = first()
    assert enabled and not ordinary.is_inference()
    assert second().is_inference()
    with pytest.raises(TypeError, match="inference_mode"):
        tl.inference_mode("on")


def test_views_are_what_they_look_at():
    x = tl.ones(2)
    with tl.inference_mode():
        inside = tl.ones(2)
        assert not x[0].is_inference()
    assert inside[0].is_inference()
    assert not inside.clone().is_inference()
    assert not (inside + 1).is_inference()


@pytest.mark.parametrize(
    "misuse, text",
    [(lambda x, w: x.add_(1), "(?i)inplace update to inference tensor"),
     (lambda x, w: x.zero_(), "(?i)inplace update to inference tensor"),
     (lambda x, w: x.__setitem__(0, 1.0), "(?i)inplace update to inference tensor"),
     (lambda x, w: tl.add(w.detach(), 1, out=x), "(?i)inplace update to inference tensor"),
     (lambda x, w: x.requires_grad_(), "setting requires_grad=True on inference tensor"),
     (lambda x, w: w * x, "(?i)inference tensors cannot be saved for backward"),
     (lambda x, w: x._version, "version counter")],
)
def test_what_an_inference_tensor_may_not_do_outside(misuse, text):
    with tl.inference_mode():
        x = tl.ones(1, dtype=tl.float64)
    with pytest.raises(RuntimeError, match=text):
        misuse(x, leaf(2.0))
    assert_close(x, tl.ones(1, dtype=tl.float64))


def test_what_an_inference_tensor_may_do():
    with tl.inference_mode():
        x = tl.ones(1, dtype=tl.float64)
        x.add_(1)
        x.requires_grad_()
        x.requires_grad_(False)
    w = leaf(3.0)
    ((w + x) * x.clone()).sum().backward()           # a sum saves nothing
    assert_close(w.grad, [2.0])


def test_an_ordinary_tensor_written_in_inference_mode_is_noticed():
    x = leaf(1.0)
    y = x.exp()
    with tl.inference_mode():
        y.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_numbers_first_used_in_inference_mode_serve_outside():
    with tl.inference_mode():
        tl.ones(2) * 0.1234567
    x = leaf(1.0)
    (x.float() * 0.1234567).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.1234567])


# ---- hooks on saved values -----------------------------------------------------------------------

def test_saved_values_pass_the_hooks():
    x, log = leaf(2.0, 3.0), []

    def pack(value):
        assert not value.requires_grad and not tl.is_grad_enabled()
        log.append("pack")
        return value.tolist()

    def unpack(values):
        log.append("unpack")
        return tl.tensor(values, dtype=tl.float64)

    with saved_tensors_hooks(pack, unpack):
        y = x.exp() * x
    assert log == ["pack"] * 3                       # the output of exp, both factors
    y.sum().backward()
    assert log.count("unpack") == 3
    value = x.detach()
    assert_close(x.grad, value.exp() * (value + 1))


def test_of_nested_hooks_the_innermost_counts():
    x, log = leaf(2.0), []

    def named(name):
        return saved_tensors_hooks(lambda value: log.append(name) or value, lambda value: value)

    with named("outer"):
        y = x.exp()
        with named("inner"):
            y = y.sin()
        y = y.exp()
    y = y.sin()
    assert log == ["outer", "inner", "outer"]
    y.sum().backward()


def test_higher_derivatives_through_hooks():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda value: value.numpy(), tl.from_numpy):
        y = (x**3).sum()
    for expected in (12.0, 12.0, 6.0):
        (y,) = tl.autograd.grad(y, x, create_graph=True)
        assert_close(y, [expected])
        y = y.sum()


def test_a_graph_kept_is_unpacked_again_in_each_sweep():
    x, count = leaf(2.0), []
    with saved_tensors_hooks(lambda value: value, lambda value: count.append(1) or value):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    assert len(count) == 2
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


@pytest.mark.parametrize(
    "unpack, error",
    [(lambda value: 3, TypeError), (lambda value: value.sum(), RuntimeError),
     (lambda value: value.float(), RuntimeError)],
)
def test_what_unpack_returns_is_checked(unpack, error):
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda value: value, unpack):
        y = x.exp()
    with pytest.raises(error, match="exp"):
        y.sum().backward()


def test_pack_may_not_write_into_the_value():
    x = leaf(1.0)
    with saved_tensors_hooks(lambda value: value.zero_(), lambda value: value):
        with pytest.raises(RuntimeError, match="in place"):
            x.exp()
    x.exp().sum().backward()


def test_an_exception_of_pack_reaches_the_caller():
    def pack(value):
        raise OSError("disk full")

    with saved_tensors_hooks(pack, lambda value: value), pytest.raises(OSError, match="disk"):
        leaf(1.0).exp()


def test_nodes_have_a_public_type():
    assert isinstance(leaf(1.0).exp().grad_fn, Node)


# ---- anomalies -----------------------------------------------------------------------------------

def warned(record):
    return "".join(str(warning.message) for warning in record)


def test_the_line_of_a_nan_gradient_is_named():
    x = leaf(0.0, 1.0)
    with detect_anomaly():
        y = (x - 2).sqrt()  # where it goes wrong
        loss = y.sum()
        with pytest.warns(UserWarning, match="Traceback of forward call") as record, \
                pytest.raises(RuntimeError, match="SqrtBackward0.*nan.*recording_control.*wrong"):
            loss.backward()
    assert "# where it goes wrong" in warned(record)


def test_nan_is_not_looked_for_without_check_nan_nor_outside():
    x = leaf(0.0)
    with detect_anomaly(check_nan=False):
        (x - 2).sqrt().sum().backward()
    assert x.grad.isnan().all()
    (x - 2).sqrt().sum().backward()


def test_the_line_of_an_overwritten_value_is_named():
    x = leaf(1.0)
    with warnings.catch_warnings(), detect_anomaly():
        warnings.simplefilter("ignore")
        y = x.exp()  # the line that saved it
        y.add_(1)
        with pytest.raises(RuntimeError, match="output of exp.*the line that saved it.*clone"):
            y.sum().backward()


def test_without_a_traceback_anomalies_say_so():
    y = (leaf(0.0) - 2).sqrt().sum()
    with detect_anomaly(), pytest.warns(UserWarning, match="No forward pass information"), \
            pytest.raises(RuntimeError, match="nan"):
        y.backward()


def test_set_detect_anomaly_as_a_call_and_as_a_context():
    x = leaf(0.0)
    with set_detect_anomaly(True):
        assert "traceback_" in x.exp().grad_fn.metadata
        with set_detect_anomaly(False):
            assert "traceback_" not in x.exp().grad_fn.metadata
        assert "traceback_" in x.exp().grad_fn.metadata
    assert "traceback_" not in x.exp().grad_fn.metadata
    set_detect_anomaly(True)
    assert "traceback_" in x.exp().grad_fn.metadata
    set_detect_anomaly(False)
    assert "traceback_" not in x.exp().grad_fn.metadata


def test_anomalies_of_higher_derivatives_are_found():
    x = leaf(0.0)
    with detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (g,) = tl.autograd.grad((x * 2).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="nan"):
            ((g - 5).sqrt() * x).sum().backward()


# ---- gradients taken as zero ---------------------------------------------------------------------

def ran(*nodes):
    """A list that names the nodes that have run."""
    names = []
    for node in nodes:
        node.register_hook(lambda to, of, name=node.name(): names.append(name))
    return names


def test_no_grad_set_cuts_tensors():
    x, w = leaf(2.0), leaf(3.0)
    hidden = x.exp()
    loss = (hidden * w).sum()
    names = ran(hidden.grad_fn, loss.grad_fn)
    loss.backward(retain_graph=True, no_grad_set=[hidden])
    assert names == ["SumBackward0"]
    assert x.grad is None
    assert_close(w.grad, hidden.detach())
    loss.backward(no_grad_set={w})
    assert names == ["SumBackward0", "SumBackward0", "ExpBackward0"]
    assert_close(w.grad, hidden.detach())


def test_an_operation_all_of_whose_gradients_are_cut_does_not_run():
    x, w = leaf(2.0), leaf(3.0)
    a, b = x.exp(), w.exp()
    product = a * b
    names = ran(product.grad_fn, a.grad_fn, b.grad_fn)
    (product.sum() + x.sum()).backward(no_grad_set=[a, b])
    assert names == []
    assert_close(x.grad, [1.0])


def test_no_grad_set_cuts_what_a_sweep_begins_at():
    x = tl.ones(3, requires_grad=True)
    one, other = (x * 2).sum(), (x * 5).sum()
    assert tl.autograd.grad(one, x, no_grad_set=[one], allow_unused=True,
                            retain_graph=True) == (None,)
    found, = tl.autograd.grad((one, other), x, no_grad_set=[one], retain_graph=True)
    assert found.tolist() == [5.0] * 3
    one.backward(retain_graph=True, no_grad_set=[one])
    assert x.grad is None
    tl.autograd.backward((one, other), no_grad_set=[other])
    assert x.grad.tolist() == [2.0] * 3


def test_no_grad_set_takes_names_of_leaves():
    x, w = leaf(2.0), leaf(3.0)
    x.name, w.name = "x", "w"
    loss = (x * w).sum()
    loss.backward(retain_graph=True, no_grad_set=["w"])
    assert w.grad is None
    assert_close(x.grad, [3.0])
    with pytest.raises(ValueError, match="'v'.*'w', 'x'"):
        loss.backward(no_grad_set="v")
    tl.autograd.backward([loss], no_grad_set=("x",))
    assert_close(w.grad, [2.0])


def test_grad_gives_zeros_for_what_is_cut():
    x, w = leaf(2.0), leaf(3.0)
    hidden = x.exp()
    gx, gw, gh = tl.autograd.grad((hidden * w + x).sum(), [x, w, hidden], no_grad_set=[hidden])
    assert_close([gx, gw, gh], [[1.0], hidden.tolist(), [0.0]])


def test_one_output_of_several_can_be_cut():
    x = tl.tensor([[1.0, 3.0]], dtype=tl.float64, requires_grad=True)
    loss = (x.max(1).values * 2 + x.sum(1)).sum()
    loss.backward(no_grad_set=[x.max(1).values])       # another value: nothing is cut
    assert_close(x.grad, [[1.0, 3.0]])


def test_no_grad_set_knows_the_leaves_behind_a_gradient_of_zero():
    x, w = leaf(2.0), leaf(3.0)
    x.name, w.name = "x", "w"
    hidden = x.exp()
    loss = (hidden * w).sum()
    loss.backward(retain_graph=True, no_grad_set=[hidden, "x"])
    assert x.grad is None
    assert_close(w.grad, hidden.detach())
    with pytest.raises(ValueError, match="'v'.*'w', 'x'"):
        loss.backward(no_grad_set=[hidden, "v"])


def test_a_function_is_told_that_a_gradient_in_no_grad_set_is_not_needed():
    needed = []

    class Product(tl.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            needed.append(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            return g * y, g * x

    x, y = leaf(2.0), leaf(3.0)
    loss = Product.apply(x, y).sum()
    loss.backward(retain_graph=True, no_grad_set=[x])
    loss.backward(no_grad_set=[y])
    assert needed == [(False, True), (True, False)]


def test_no_grad_set_is_checked():
    x = leaf(2.0)
    with pytest.raises(TypeError, match="no_grad_set.*int"):
        x.exp().sum().backward(no_grad_set=[1])
    x.exp().sum().backward(no_grad_set=[tl.ones(1)])   # needs no gradient anyway
    with pytest.raises(TypeError):
        x.name = 3


def test_each_output_of_a_node_has_its_own_gradient():
    """Also where several are asked for, in any order, and beside inputs of other nodes."""
    class Apart(tl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2, x * 3

        @staticmethod
        def backward(ctx, *grads):
            return sum(g * k for k, g in enumerate(grads, 1))

    x = leaf(1.0, 2.0)
    outputs = Apart.apply(x)
    loss = sum((out * 10 ** k).sum() for k, out in enumerate(outputs))
    for order in ((0, 1, 2), (2, 1, 0), (1, 0), (2, 2, 1)):
        found = tl.autograd.grad(loss, [outputs[k] for k in order], retain_graph=True)
        assert [g.tolist() for g in found] == [[10.0 ** k] * 2 for k in order]
    found = tl.autograd.grad(loss, (x, outputs[2]), retain_graph=True)
    assert [g.tolist() for g in found] == [[321.0] * 2, [100.0] * 2]
    matrix = tl.eye(3, dtype=tl.float64).add(tl.arange(3.0).diag()).requires_grad_()
    values, vectors = tl.linalg.eigh(matrix)
    found = tl.autograd.grad((2 * values).sum() + (3 * vectors).sum(), (vectors, values))
    assert [set(g.flatten().tolist()) for g in found] == [{3.0}, {2.0}]
