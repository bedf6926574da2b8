"""Tensors that take on other sizes in place: `t_`, `transpose_`, `squeeze_`, `unsqueeze_`."""

import pytest

import tensorlib as tl
from tensorlib.testing import assert_close

CASES = {
    "t_": (lambda x: x.t_(), lambda x: x.t()),
    "transpose_": (lambda x: x.transpose_(0, -1), lambda x: x.transpose(0, -1)),
    "swapaxes_": (lambda x: x.swapaxes_(0, 1), lambda x: x.swapaxes(0, 1)),
    "swapdims_": (lambda x: x.swapdims_(-2, 1), lambda x: x.swapdims(-2, 1)),
    "squeeze_": (lambda x: x.squeeze_(), lambda x: x.squeeze()),
    "squeeze_ of a dim": (lambda x: x.squeeze_(1), lambda x: x.squeeze(1)),
    "unsqueeze_": (lambda x: x.unsqueeze_(-1), lambda x: x.unsqueeze(-1)),
}
everywhere = pytest.mark.parametrize("inplace, plain", CASES.values(), ids=CASES)
WEIGHTS = tl.arange(3.0, dtype=tl.float64) + 1


def leaf():
    return tl.tensor([[1.0], [2.0], [3.0]], dtype=tl.float64, requires_grad=True)


def weighted(x):
    """A sum in which each element counts differently."""
    return (x.reshape(-1) * WEIGHTS).sum()


@everywhere
def test_it_is_the_plain_form_written_over_the_tensor(inplace, plain):
    x = leaf()
    y = x * 2
    version, expected = y._version, plain(y.detach().clone())
    assert inplace(y) is y
    assert y.shape == expected.shape and y._version > version
    assert_close(y.detach(), expected)
    weighted(y * y).backward()
    assert_close(x.grad.reshape(-1), 8 * x.detach().reshape(-1) * WEIGHTS)


@everywhere
def test_a_leaf_is_refused_while_recording(inplace, plain):
    x = leaf()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        inplace(x)
    with tl.no_grad():
        assert inplace(x).is_leaf
    weighted(x).backward()
    assert x.grad.shape == x.shape


@everywhere
def test_a_value_saved_before_is_noticed(inplace, plain):
    y = leaf() * 2
    z = y * y
    inplace(y)
    with pytest.raises(RuntimeError, match="inplace operation: .* of mul"):
        z.sum().backward()


@everywhere
def test_a_view_stays_one(inplace, plain):
    """What is written into it afterwards is in the base, and so are its gradients."""
    x = leaf()
    base = tl.stack([x, x * 3])
    view = base[1]
    inplace(view)
    assert view._base is base
    view.mul_(2)
    assert_close(base.detach(), tl.stack([x, x * 6]).detach())
    base.sum().backward()
    assert_close(x.grad, tl.full((3, 1), 7.0, dtype=tl.float64))


@everywhere
def test_views_of_a_tensor_outlive_its_change(inplace, plain):
    x = leaf()
    y = x * 1
    view = y[1]
    inplace(y)
    view.mul_(5)
    assert y.reshape(-1).tolist() == [1, 10, 3]
    weighted(y).backward()
    assert x.grad.reshape(-1).tolist() == [1, 10, 3]


def test_a_retained_gradient_has_the_new_shape():
    y = leaf() * 1
    y.retain_grad()
    y.t_()
    weighted(y).backward()
    assert y.grad.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("call, error", [
    (lambda x: x.transpose_(0, 2), IndexError), (lambda x: x.unsqueeze_(4), IndexError),
    (lambda x: x.squeeze_(3), IndexError), (lambda x: x.unsqueeze(0).t_(), RuntimeError)])
def test_what_fails_leaves_the_tensor_as_it_was(call, error):
    x = leaf()
    y = x * 2
    loss = (y * y).sum()
    with pytest.raises(error):
        call(y)
    loss.backward()
    assert y.shape == (3, 1) and x.grad.reshape(-1).tolist() == [8, 16, 24]


def test_a_captured_tensor_is_refused_under_a_transform():
    outside = tl.ones(2, 3)
    with pytest.raises(RuntimeError, match="t_: in place on a tensor that was made outside"):
        tl.func.grad(lambda x: (outside.t_() * x).sum())(tl.tensor(1.0))
    assert outside.shape == (2, 3)


def test_in_a_transformed_function():
    def function(x):
        y = (x * x).unsqueeze_(0)
        return y.transpose_(0, 1).squeeze_().sin().sum()
    x = leaf().detach()
    assert_close(tl.func.grad(function)(x), (x * x).cos() * 2 * x)
    assert_close(tl.func.jvp(function, (x,), (tl.ones_like(x),))[1], ((x * x).cos() * 2 * x).sum())
