"""Deep copies of several tensors: what shares memory goes on to."""

import copy

import pytest

import tensorlib as tl


def test_deepcopy_keeps_which_tensors_share_memory():
    x = tl.zeros(3)
    z = tl.ones(2, 3, dtype=tl.complex64).t()
    (a, b, whole), (c, real) = copy.deepcopy([[x[1:], x[::2], x], (z, z.real)])
    whole.fill_(7)
    c.zero_()
    assert a.tolist() == b.tolist() == [7, 7] and x.tolist() == [0, 0, 0]
    assert real.tolist() == [[0, 0]] * 3 and c.stride() == z.stride() and real.stride() == (2, 6)
    assert z.real.tolist() == [[1, 1]] * 3
    alone, other = copy.deepcopy(x[1:]), copy.deepcopy(x)
    other.fill_(5)
    assert alone.tolist() == [0, 0] and copy.deepcopy(tl.ones(2, 3, device="meta")).is_meta
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(tl.ones(2, requires_grad=True) * 2)


def test_a_copy_of_a_parameter_has_no_gradient_and_one_of_a_tensor_has():
    for kind, kept in ((tl.nn.Parameter, False), (lambda x: x.requires_grad_(), True)):
        x = kind(tl.ones(2))
        x.grad = tl.ones(2)
        twin = copy.deepcopy(x)
        assert (twin.grad is not None) is kept and x.grad.tolist() == [1, 1]
        assert type(twin) is type(x) and twin.requires_grad
