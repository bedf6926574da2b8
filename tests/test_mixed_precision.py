"""`autocast`, and losses scaled for half precision."""

import contextlib
import inspect
import threading
import warnings

import pytest

import tensorlib as tl
from tensorlib import amp
from tensorlib.autograd import checkpoint
from tensorlib.testing import assert_close


def state():
    return tl.is_autocast_enabled("cpu"), tl.get_autocast_dtype("cpu")


AT_REST = (False, tl.bfloat16)


def test_autocast_keeps_what_it_is_told():
    assert state() == AT_REST
    outer = tl.autocast("cpu", dtype=tl.float16)
    with outer as entered:
        assert entered is outer and state() == (True, tl.float16)
        assert not tl.is_autocast_enabled() and tl.get_autocast_dtype("cuda") == tl.float16
        with tl.autocast("cpu", enabled=False):
            assert state() == (False, tl.bfloat16)
        with outer, tl.autocast("cpu"):
            assert state() == (True, tl.bfloat16)
        with tl.autocast("cuda", enabled=False):
            assert state() == (True, tl.float16)
        thread = threading.Thread(target=lambda: seen.append(state()))
        seen = []
        thread.start()
        thread.join()
        assert seen == [AT_REST]                 # of each thread its own
    assert state() == AT_REST
    with pytest.raises(KeyError), outer:
        raise KeyError
    assert state() == AT_REST


def test_functions_under_autocast():
    @tl.autocast("cpu", dtype=tl.float16)
    def product(x, *, times=1):
        """Its own text."""
        return (x @ x * times).dtype, state()

    assert product(tl.ones(2, 2), times=3) == (tl.float16, (True, tl.float16))
    assert product.__name__ == "product" and product.__doc__ == "Its own text."
    assert state() == AT_REST


def test_autocast_that_is_not_available_is_off():
    with pytest.warns(UserWarning, match="autocast: 'cuda' is not available. Disabling.") as one:
        of_cuda = tl.autocast("cuda")
    with pytest.warns(UserWarning, match="bfloat16 and float16, got .*float32. Disabling.") as two:
        of_float = tl.autocast("cpu", dtype=tl.float32)
    assert one[0].filename == two[0].filename == __file__
    for off in (of_cuda, of_float):
        with off:
            assert not tl.is_autocast_enabled("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tl.autocast("cuda", enabled=False).fast_dtype == tl.float16
        assert tl.autocast("cpu", tl.float32, enabled=False).fast_dtype == tl.float32
        assert tl.autocast("cpu", tl.bfloat16).fast_dtype == tl.bfloat16
    assert amp.is_autocast_available("cpu") and not amp.is_autocast_available("cuda")


@pytest.mark.parametrize("call", [
    tl.autocast, amp.is_autocast_available, tl.is_autocast_enabled, tl.get_autocast_dtype,
    amp.GradScaler])
def test_devices_that_nobody_knows_are_refused(call):
    with pytest.raises(RuntimeError, match="device: expected one of cpu, cuda"):
        call("nonsense")


def test_what_is_no_name_of_a_device_is_refused():
    with pytest.raises(ValueError, match="autocast: device_type must be a string, got 3"):
        tl.autocast(3)


@pytest.mark.parametrize("decorate", [amp.custom_fwd, amp.custom_bwd, tl.cuda.amp.custom_fwd,
                                      tl.cuda.amp.custom_bwd])
def test_functions_of_ones_own_are_as_they_are(decorate):
    assert decorate(len) is len and decorate(device_type="cuda")(len) is len


# ---- dtypes under autocast -----------------------------------------------------------------------

F = tl.nn.functional
X, W = tl.randn(4, 4), tl.randn(4, 4)
LOW = {
    "matmul": lambda: X @ W, "linear": lambda: F.linear(X, W, W[0]), "mv": lambda: X.mv(W[0]),
    "addmm": lambda: tl.addmm(W[0], X, W), "baddbmm": lambda: W.baddbmm(X[None], W[None]),
    "bmm": lambda: X[None].bmm(W[None]), "einsum": lambda: tl.einsum("ij,jk->ik", X, W),
    "conv1d": lambda: F.conv1d(X[None], W[:2, :, None]),
    "conv_transpose2d": lambda: F.conv_transpose2d(X[None, None], W[None, None]),
    "layers of convolutions": lambda: tl.nn.Sequential(
        tl.nn.Conv1d(4, 3, 1), tl.nn.ReLU(), tl.nn.Conv1d(3, 4, 1, bias=False),
        tl.nn.ConvTranspose1d(4, 2, 1))(X),
    "LSTM of a product": lambda: tl.nn.LSTM(4, 3)(X @ W, (tl.zeros(1, 3), tl.zeros(1, 3)))[0],
    "GRU of a product": lambda: tl.nn.GRU(4, 3)(X @ W)[0],
    "attention of a product": lambda: F.scaled_dot_product_attention(X @ W, W, X),
    "LSTM": lambda: tl.nn.LSTM(4, 3)(X)[0], "relu of a product": lambda: (X @ W).relu(),
    "layer_norm of a product": lambda: F.layer_norm(X @ W, (4,)),
    "layer_norm with a weight": lambda: F.layer_norm(X @ W, (4,), W[0], W[1]),
    "RMSNorm": lambda: tl.nn.RMSNorm(4)(X @ W), "BatchNorm": lambda: tl.nn.BatchNorm1d(4)(X @ W),
    "BatchNorm that has learnt": lambda: tl.nn.BatchNorm1d(4).eval()(X @ W),
    "GroupNorm": lambda: tl.nn.GroupNorm(2, 4)(X @ W),
    "InstanceNorm": lambda: tl.nn.InstanceNorm1d(4, affine=True)((X @ W)[None]),
    "attention": lambda: F.scaled_dot_product_attention(X, W, X),
    "attention of products": lambda: F.scaled_dot_product_attention(X @ W, X @ W, X @ W),
    "attention of heads": lambda: tl.nn.MultiheadAttention(4, 2)(X, X, X, need_weights=False)[0],
}
WIDE = {
    "sum": lambda: (X @ W).sum(), "mean": lambda: (X @ W).mean(0), "softmax": lambda: (
        X @ W).softmax(-1), "var": lambda: (X @ W).var(), "norm": lambda: (X @ W).norm(),
    "norm of 3": lambda: (X @ W).norm(3, 0), "std_mean": lambda: tl.std_mean(X @ W)[0],
    "vector_norm": lambda: tl.linalg.vector_norm(X @ W), "logsumexp": lambda: (
        X @ W).logsumexp(0), "norm of half": lambda: X.half().norm(),
    "half loss": lambda: F.cosine_embedding_loss(X @ W, W @ X, tl.ones(4)),
    "cumsum": lambda: (X @ W).cumsum(0), "mse_loss": lambda: F.mse_loss(X @ W, X),
    "cross_entropy": lambda: F.cross_entropy(X @ W, tl.arange(4)),
    "binary": lambda: F.binary_cross_entropy_with_logits(X @ W, X.sigmoid()),
    "inverse": lambda: tl.linalg.inv((X @ W) + 9 * tl.eye(4)), "mixed": lambda: (X @ W) + X,
    "cdist": lambda: tl.cdist(X @ W, X @ W),
    "cat": lambda: tl.cat([X @ W, X]), "exp alone": lambda: X.exp(),
    "PReLU": lambda: tl.nn.PReLU()(X @ W),
}


@pytest.mark.parametrize("dtype", [tl.bfloat16, tl.float16])
def test_products_are_low_and_what_adds_up_is_wide(dtype):
    with tl.autocast("cpu", dtype=dtype):
        found = {name: call().dtype for name, call in (LOW | WIDE).items()}
    assert found == dict.fromkeys(LOW, dtype) | dict.fromkeys(WIDE, tl.float32)


def test_a_product_is_that_of_half_types_and_a_sum_is_exact():
    with tl.autocast("cpu", dtype=tl.bfloat16):
        product, total = X @ W, (X @ W).sum()
    assert product.equal(X.bfloat16() @ W.bfloat16())
    assert total.equal(product.float().sum())


def test_float64_and_what_is_written_stay_as_they_are():
    out = tl.zeros(4, 4)
    with tl.autocast("cpu"):
        assert (X.double() @ W.double()).dtype == tl.float64
        tl.matmul(X, W, out=out)
        assert X.clone().add_(X).dtype == tl.float32 and (X.long() @ W.long()).dtype == tl.int64
    assert out.equal(X @ W)


def test_training_under_autocast_keeps_parameters_and_gradients_in_float32():
    tl.manual_seed(3)
    model = tl.nn.Sequential(tl.nn.Conv2d(1, 4, 3), tl.nn.BatchNorm2d(4), tl.nn.ReLU(),
                             tl.nn.Flatten(), tl.nn.Linear(4 * 36, 3))
    optimizer, scale = tl.optim.SGD(model.parameters(), lr=0.05), amp.GradScaler("cpu")
    images, labels, losses = tl.randn(9, 1, 8, 8), tl.arange(9) % 3, []
    for _ in range(12):
        optimizer.zero_grad()
        with tl.autocast("cpu"):
            loss = F.cross_entropy(model(images), labels)
        scale.scale(loss).backward()
        scale.step(optimizer)
        scale.update()
        losses.append(loss.item())
    assert {p.grad.dtype for p in model.parameters()} == {tl.float32}
    assert losses[-1] < losses[0] / 2


def test_a_backward_sweep_under_autocast_is_the_one_outside():
    def gradient(inside):
        x = X.clone().requires_grad_()
        with tl.autocast("cpu"):
            y = (x @ W).tanh().sum()
            if inside:
                y.backward()
        return x.grad if inside else tl.autograd.grad(y, x)[0]
    assert gradient(True).equal(gradient(False))


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("contexts", [
    [tl.autocast("cpu")], [tl.autocast("cpu", tl.float16)], [tl.autocast("cpu", enabled=False)],
    [tl.autocast("cpu"), tl.autocast("cpu", enabled=False)], []])
def test_checkpoints_compute_again_under_the_autocast_of_the_first_run(contexts, inside):
    x, w = (tl.rand(3, 3, requires_grad=True) for _ in range(2))
    grads = []
    for run in (lambda f, *args: f(*args), checkpoint):
        x.grad = w.grad = None
        with contextlib.ExitStack() as entered:
            for context in contexts:
                entered.enter_context(context)
            loss = run(lambda x, w: ((x @ w).tanh() @ w).exp(), x, w).sum()
            if inside:
                loss.backward()
        with tl.autocast("cpu"):
            if not inside:
                loss.backward()
        grads.append((x.grad, w.grad))
    assert_close(grads[1], grads[0], rtol=0, atol=0)


def test_the_innermost_autocast_decides():
    with tl.autocast("cpu"), tl.autocast("cpu", enabled=False):
        assert (X @ W).dtype == tl.float32
    with tl.autocast("cpu"), tl.autocast("cpu", dtype=tl.float16):
        assert (X @ W).dtype == tl.float16
    with tl.autocast("cpu"), tl.autocast("cuda", enabled=False):
        assert (X @ W).dtype == tl.bfloat16


def test_autocast_and_what_stands_in_for_tensors():
    with tl.autocast("cpu"):
        assert tl.vmap(lambda x: x @ x)(X.reshape(4, 2, 2)).dtype == tl.bfloat16
        assert tl.func.grad(lambda x: (x @ x).sum())(X).dtype == tl.float32
        assert tl.ones(2, 2, device="meta").mm(tl.ones(2, 2, device="meta")).dtype == tl.bfloat16
        assert tl.compile(lambda x: x @ x)(X).equal(X @ X)


# ---- scaled losses -------------------------------------------------------------------------------

class Steps:
    """An optimizer that counts its steps, over tensors of which some have no gradient."""

    def __init__(self, *gradients):
        self.params, self.steps = [tl.zeros(2, requires_grad=True) for _ in range(3)], 0
        self.param_groups = [{"params": self.params[:2]}, {"params": self.params[2:]}]
        for param, gradient in zip(self.params, gradients):
            param.grad = tl.tensor([1.0, gradient])

    def step(self, closure=None, more=0):
        self.steps += 1
        return self.steps + more


def scaler(scale=8.0, **given):
    return amp.GradScaler("cpu", scale, **given)


def test_what_is_scaled():
    x, y = tl.tensor([1.0, 2.0]), tl.tensor(3.0)
    assert scaler().scale(x).tolist() == [8.0, 16.0]
    one, (two, three) = scaler().scale((x, [y, y]))
    assert one.tolist() == [8.0, 16.0] and two == three == 24
    assert type(scaler().scale((x,))) is tuple and type(scaler().scale(iter([x]))) is list
    with pytest.raises(ValueError, match="Tensor or an iterable of Tensors, got int"):
        scaler().scale(3)


def test_steps_and_scales_over_gradients():
    """A step is left out where a gradient is not finite, and the scale falls; else it grows."""
    each = scaler(4.0, growth_interval=2)
    told = []
    for gradient in (1.0, 2.0, float("inf"), 3.0, float("nan"), 1.0, 1.0, 1.0):
        optimizer = Steps(0.0, gradient)
        told.append((each.step(optimizer), each.get_scale()))
        each.update()
    assert told == [(1, 4), (1, 4), (None, 8), (1, 4), (None, 4), (1, 2), (1, 2), (1, 4)]
    assert each.get_scale() == 4 and each.state_dict()["_growth_tracker"] == 1


def test_gradients_are_scaled_back_once():
    each, optimizer = scaler(), Steps(4.0, -8.0)
    each.unscale_(optimizer)
    assert [p.grad.tolist() for p in optimizer.params[:2]] == [[0.125, 0.5], [0.125, -1.0]]
    assert optimizer.params[2].grad is None
    with pytest.raises(RuntimeError, match=r"unscale_: unscale_\(\) has already been called"):
        each.unscale_(optimizer)
    assert each.step(optimizer, more=5) == 6 and each.step(Steps(), None, 2) == 3
    assert optimizer.params[0].grad.tolist() == [0.125, 0.5]
    with pytest.raises(RuntimeError, match=r"step: step\(\) has already been called since"):
        each.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_: it comes before step\(\)"):
        each.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="step: takes no closure"):
        each.step(Steps(), closure=len)
    each.update()
    assert each.step(optimizer) == 2 and optimizer.params[0].grad.tolist() == [0.125 / 8, 0.0625]


def test_one_optimizer_need_not_wait_for_another():
    each, good, bad = scaler(), Steps(1.0), Steps(1.0, float("inf"), 2.0)
    assert each.step(bad) is None and each.step(good) == 1
    each.update()
    assert each.get_scale() == 4                 # for both


def test_scales_are_set_and_updates_need_steps():
    each = scaler()
    with pytest.raises(RuntimeError, match="update: no step"):
        each.update()
    each.update(tl.tensor(3.0))
    assert each.get_scale() == 3 and isinstance(each.get_scale(), float)
    each.step(Steps(1.0))
    each.update(5)
    assert each.get_scale() == 5
    with pytest.raises(RuntimeError, match="update: no step"):
        each.update()


def test_settings_and_states():
    assert scaler().state_dict() == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000,
        "_growth_tracker": 0}
    assert amp.GradScaler("cpu").get_scale() == 65536 and scaler().is_enabled()
    each = scaler(growth_factor=3.0, backoff_factor=0.25, growth_interval=7)
    names = ("growth_factor", "backoff_factor", "growth_interval")
    assert [getattr(each, f"get_{name}")() for name in names] == [3, 0.25, 7]
    for name, value in zip(names, (4.0, 0.125, 1)):
        getattr(each, f"set_{name}")(value)
        assert getattr(each, f"get_{name}")() == value
    each.step(Steps(1.0))
    each.update()
    assert each.get_scale() == 32
    each.set_growth_interval(9)
    each.step(Steps(1.0))
    each.update()
    other = scaler()
    other.load_state_dict(each.state_dict())
    assert other.state_dict() == each.state_dict() == {
        "scale": 32.0, "growth_factor": 4.0, "backoff_factor": 0.125, "growth_interval": 9,
        "_growth_tracker": 1}
    with pytest.raises(RuntimeError, match="load_state_dict: the state is empty"):
        other.load_state_dict({})


@pytest.mark.parametrize("factors", [{"growth_factor": 1.0}, {"backoff_factor": 1.0},
                                     {"backoff_factor": 0.0}])
def test_factors_let_scales_grow_and_fall(factors):
    with pytest.raises(ValueError, match="growth_factor must be above 1 and backoff"):
        scaler(**factors)
    assert not scaler(enabled=False, **factors).is_enabled()


def off():
    return [scaler(enabled=False), *quiet(amp.GradScaler), *quiet(tl.cuda.amp.GradScaler)]


def quiet(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [make()]


@pytest.mark.parametrize("place", range(3))
def test_scalers_that_are_not_enabled_do_nothing(place):
    each, optimizer, x = off()[place], Steps(4.0), tl.ones(2)
    assert not each.is_enabled() and each.get_scale() == 1 and each.state_dict() == {}
    assert each.scale(x) is x and each.scale(3) == 3
    each.unscale_(optimizer)
    each.unscale_(optimizer)
    assert each.step(optimizer, more=1) == 2 and each.step(optimizer, closure=len) == 2
    assert optimizer.params[0].grad.tolist() == [1.0, 4.0]
    each.update()
    each.update(3.0)
    each.load_state_dict({})
    each.load_state_dict(scaler().state_dict())
    assert each.get_scale() == 1


def test_older_names_have_the_same_defaults():
    for older, newer in ((tl.cuda.amp.autocast, amp.autocast),
                         (tl.cuda.amp.GradScaler, amp.GradScaler)):
        parameters = inspect.signature(newer).parameters
        for name, each in inspect.signature(older).parameters.items():
            assert each.default == parameters[name].default or name == "cache_enabled"


def test_what_is_not_available_warns():
    with pytest.warns(UserWarning, match="GradScaler is enabled, but 'cuda' is not avail") as seen:
        amp.GradScaler()
    assert seen[0].filename == __file__
    for make, other in ((tl.cuda.amp.autocast, amp.autocast),
                        (tl.cuda.amp.GradScaler, amp.GradScaler)):
        name = make.__name__
        with pytest.warns() as seen:
            each = make()
        assert isinstance(each, other) and [w.category for w in seen] == [FutureWarning,
                                                                          UserWarning]
        assert f"`tensorlib.cuda.amp.{name}(args...)` is deprecated" in str(seen[0].message)
        assert f"`tensorlib.amp.{name}('cuda', args...)` instead" in str(seen[0].message)
        assert all(w.filename == __file__ for w in seen[:1])
        with pytest.warns(FutureWarning) as seen:
            make(enabled=False)
        assert len(seen) == 1
    with pytest.warns(FutureWarning):
        each = tl.cuda.amp.GradScaler(2.0, 3.0, 0.25, 7, False)
        assert [each._scale, each._growth_factor, each._backoff_factor, each._growth_interval] == [
            2, 3, 0.25, 7]
        assert tl.cuda.amp.autocast(False, tl.bfloat16).fast_dtype == tl.bfloat16


def test_dtypes_that_differ_are_refused_where_no_autocast_casts_them():
    layer, half, double = tl.nn.Conv1d(4, 3, 1), X.bfloat16(), X.double()
    with tl.autocast("cpu"):
        layer(half)
        with pytest.raises(RuntimeError, match="should have one dtype"):
            layer(double)
        with tl.autocast("cpu", enabled=False), pytest.raises(RuntimeError, match="one dtype"):
            layer(half)
    with pytest.raises(RuntimeError, match="should have one dtype"):
        layer(half)


def test_layers_of_convolutions_train_under_autocast():
    model = tl.nn.Sequential(tl.nn.Conv1d(4, 3, 1), tl.nn.PReLU(), tl.nn.Conv1d(3, 1, 1))
    with tl.autocast("cpu"):
        loss = model(X).float().square().mean()
    loss.backward()
    assert all(p.grad.dtype is tl.float32 and p.grad.isfinite().all()
               for p in model.parameters())
