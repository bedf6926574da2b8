"""Binary operations with an option, of the library and from outside, and writes in place."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib import ops
from tensorlib.testing import assert_close

x, y = tl.tensor([1.0, 5.0]), tl.tensor([2.0, -3.0])


@pytest.mark.parametrize("call", [
    lambda out: tl.add(x, y, alpha=2), lambda out: x.add(other=y, alpha=2),
    lambda out: x.clone().add_(y, alpha=2), lambda out: tl.add(x, y, alpha=2, out=out)])
def test_alpha_in_every_form(call):
    assert call(tl.empty(2)).tolist() == [5.0, -1.0]


def test_a_rounded_quotient_is_another_operation():
    assert x.div(y, rounding_mode="floor").tolist() == [0.0, -2.0]
    assert x.clone().div_(y, rounding_mode="trunc").tolist() == [0.0, -1.0]
    assert x.div(y, rounding_mode=None).tolist() == x.div(y).tolist()


@pytest.mark.parametrize("call", [
    lambda: x.add(), lambda: x.add(y, y), lambda: x.add(y, beta=2), lambda: x.add_(y, out=x),
    lambda: x.add_("y"), lambda: tl.Tensor.add_(1.0, x)])
def test_wrong_arguments_are_named_after_the_function(call):
    with pytest.raises(TypeError, match="add"):
        call()
    assert x.tolist() == [1.0, 5.0]


def test_an_operation_from_outside_may_have_one():
    def halved(input, other, *, alpha=1):
        return input, other if alpha == 1 else other * (alpha / 2)

    @ops.elementwise(reference=np.maximum, samples=lambda: iter(()), differentiable=False,
                     convert=halved)
    def larger(input, other):
        """The larger one of both."""

    assert larger(x, y).tolist() == [2.0, 5.0]
    assert larger(x, y, alpha=8).tolist() == [8.0, 5.0]


def test_writes_in_place_where_all_are_runs_of_one_dtype_and_where_they_are_not():
    base = tl.arange(12.0)
    for target in (base.clone(), base.clone().reshape(3, 4).t(), base.clone()[::2]):
        for other in (target, target.detach(), tl.tensor(2.0), 2, tl.ones(1), tl.arange(
                target.numel()).reshape(target.shape)):
            expected = target.numpy() + np.asarray(other if isinstance(other, int)
                                                   else other.numpy(), "float32")
            assert_close(target.clone().add_(other), tl.from_numpy(expected))
    overlapping = base.clone()
    overlapping[1:].add_(overlapping[:-1])
    assert overlapping.tolist() == (base + base.roll(1) * (base > 0)).tolist()
    for shape in ((), (1,), (0,)):
        z = tl.ones(shape)
        assert z.mul_(z).add_(tl.ones(())).tolist() == (tl.ones(shape) * 2).tolist()
