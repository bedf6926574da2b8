"""`ctc_loss` by a kernel, against the recursion composed of operations."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn.functional.ctc import losses_formula
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

F = tl.nn.functional


def drawn(steps, count, classes, width, seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    logs = tl.from_numpy((3 * rng.standard_normal((steps, count, classes))).astype(dtype))
    labels = tl.from_numpy(rng.integers(0, classes, (count, width)))      # blanks are among them
    inputs = tuple(rng.integers(steps // 2, steps + 1, count).tolist())
    sizes = tuple(rng.integers(0, width + 1, count).tolist())
    return logs.log_softmax(2).requires_grad_(), labels, inputs, sizes


@each("dtype", ["float32", "float64"])
def test_losses_and_gradients_are_those_of_the_recursion(dtype):
    for seed, shape in enumerate(((1, 1, 2, 1), (7, 3, 3, 3), (40, 4, 6, 17), (12, 2, 30, 0))):
        logs, *options = drawn(*shape, seed, dtype)
        for blank in (0, 1):
            found = F.ctc_loss(logs, *options, blank, "none", True)
            wanted = losses_formula(logs, *options, blank)
            possible = wanted.detach() < 1e29
            wanted = tl.where(possible, wanted, 0)
            assert_close(found, wanted)
            g = tl.linspace(-1, 1, len(found), dtype=logs.dtype)
            assert_close(*(tl.autograd.grad(out, logs, g)[0] for out in (
                found, tl.where(possible, wanted, 0))), rtol=1e-4 if dtype == "float32" else 1e-9,
                atol=1e-5 if dtype == "float32" else 1e-9)


def test_targets_in_a_row_and_logarithms_in_any_layout_have_the_same_loss():
    logs, labels, inputs, sizes = drawn(9, 3, 4, 3)
    wanted = F.ctc_loss(logs, labels, inputs, sizes)
    row = tl.cat([labels[i, :size] for i, size in enumerate(sizes)])
    assert tl.equal(F.ctc_loss(logs, row, inputs, tl.tensor(sizes)), wanted)
    assert tl.equal(F.ctc_loss(logs.transpose(0, 2).contiguous().transpose(0, 2), labels.int(),
                               inputs, sizes), wanted)
    assert_close(F.ctc_loss(logs.half(), labels, inputs, sizes), wanted.half(), rtol=1e-2,
                 atol=1e-2)


@pytest.mark.parametrize("lengths, error", [
    (tl.tensor([4.5, 4.0]), RuntimeError), (tl.tensor([4.0, 4.0]), RuntimeError),
    ([4.5, 4], TypeError),
])
def test_lengths_are_integers(lengths, error):
    logs, labels = tl.zeros(5, 2, 3), tl.ones(2, 5, dtype=tl.int64)
    for given in ((lengths, (2, 2)), ((4, 4), lengths)):
        with pytest.raises(error, match="integer"):
            F.ctc_loss(logs, labels, *given)


def test_sequences_have_derivatives_of_any_kind():
    logs, labels, inputs, sizes = drawn(5, 2, 3, 2, seed=2)
    inputs = (5, 4)

    def loss(x):
        return F.ctc_loss(x, labels, inputs, sizes, reduction="sum", zero_infinity=True)
    assert gradcheck(loss, logs) and gradgradcheck(loss, logs)
    _, tangent = tl.func.jvp(loss, (logs.detach(),), (tl.ones_like(logs).detach(),))
    assert_close(tangent, -tl.tensor(float(sum(inputs)), dtype=tl.float64))
    batch = tl.stack([logs.detach(), logs.detach() * 2])
    assert_close(tl.func.vmap(loss)(batch), tl.stack([loss(x) for x in batch]))
    compiled = tl.compile(lambda x: tl.autograd.grad(loss(x), x)[0])
    for _ in range(3):
        assert tl.equal(compiled(logs), tl.autograd.grad(loss(logs), logs)[0])


def test_threads_give_the_same_losses():
    logs, *options = drawn(60, 16, 20, 12)
    threads, found = tl.get_num_threads(), []
    for count in (1, 3):
        tl.set_num_threads(count)
        out = F.ctc_loss(logs, *options, reduction="none", zero_infinity=True)
        found.append((out, *tl.autograd.grad(out.sum(), logs)))
    tl.set_num_threads(threads)
    assert all(tl.equal(one, other) for one, other in zip(*found))


def test_a_sequence_without_alignments_has_infinite_loss_and_no_gradient_where_it_is_zero():
    logs = tl.full((2, 2, 3), -1.0, requires_grad=True)
    labels, lengths = tl.tensor([[1, 1], [1, 2]]), (2, 2)
    found = F.ctc_loss(logs, labels, lengths, lengths, reduction="none")
    assert found.tolist() == [float("inf"), 2.0]
    found = F.ctc_loss(logs, labels, lengths, lengths, zero_infinity=True)
    found.backward()
    assert logs.grad[:, 0].tolist() == [[0.0] * 3] * 2
    assert logs.grad[:, 1].tolist() == [[0.0, -0.25, 0.0], [0.0, 0.0, -0.25]]


def test_labels_and_lengths_are_checked():
    logs, _, inputs, _ = drawn(4, 2, 3, 2)
    for labels in (tl.tensor([[1, 3], [0, 0]]), tl.tensor([[1, -1], [0, 0]])):
        with pytest.raises(RuntimeError, match="a target is out of range for 3 labels"):
            F.ctc_loss(logs, labels, inputs, (2, 2))
        # what comes after the length is not looked at, by whatever computes
        assert_close(losses_formula(logs, labels, inputs, (1, 2), 0),
                     F.ctc_loss(logs, labels, inputs, (1, 2), reduction="none"))
    from tensorlib._core.layers import ctc
    labels = tl.tensor([[1, 2], [0, 0]])
    for wrong in ((labels, (4,), (2, 2), 0), (labels, (5, 4), (2, 2), 0),
                  (labels, (4, 4), (2, 3), 0), (labels[0], (4, 4), (2, 2), 0),
                  (labels, (4, 4), (2, 2), 3)):
        with pytest.raises(RuntimeError, match="ctc_loss"):
            ctc.ctc_losses(logs.detach(), *wrong)
    with pytest.raises(RuntimeError, match="ctc_loss"):
        ctc.ctc_losses_backward(tl.ones(3), logs.detach(), labels, (4, 4), (2, 2), 0)
