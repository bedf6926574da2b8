"""Attributes that programs set on the class `Tensor`, as on any class of Python."""

from unittest import mock

import pytest

import tensorlib as tl
from tensorlib import nn


class Kind(tl.Tensor):
    """A subclass, which has what its base is given."""


@pytest.fixture
def doubled(monkeypatch):
    monkeypatch.setattr(tl.Tensor, "doubled", lambda self: self * 2, raising=False)


def test_a_method_of_ones_own(doubled):
    x = tl.ones(2)
    for each in (x, nn.Parameter(x), x.as_subclass(Kind)):
        assert each.doubled().tolist() == [2.0, 2.0]
    assert tl.compile(lambda x: x.doubled() + 1)(x).tolist() == [3.0, 3.0]


def test_it_is_gone_when_it_was_deleted():
    tl.Tensor.of_mine = 3
    assert Kind.of_mine == tl.ones(2).of_mine == 3
    del tl.Tensor.of_mine
    assert not hasattr(Kind, "of_mine") and not hasattr(tl.ones(2), "of_mine")


def test_a_method_that_is_replaced_for_a_while():
    x = tl.ones(2, requires_grad=True)
    with mock.patch("tensorlib.Tensor.backward") as backward:
        x.sum().backward()
    assert backward.call_count == 1 and x.grad is None
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_an_operator_that_is_replaced_for_a_while():
    x = tl.ones(2)
    with mock.patch.object(tl.Tensor, "__add__", lambda self, other: "sum"):
        assert x + 1 == "sum"
    assert (x + 1).tolist() == (1 + x).tolist() == [2.0, 2.0]
