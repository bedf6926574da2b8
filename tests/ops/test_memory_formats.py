"""The orders of elements in memory that images can have."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

try:
    import torch
except ImportError:
    torch = None

FORMATS = [(tl.channels_last, (2, 3, 4, 5)), (tl.channels_last_3d, (2, 3, 2, 4, 5))]


@each("format, shape", FORMATS)
@each("change", [
    lambda x, format: x.to(memory_format=format), lambda x, format: x.clone(memory_format=format),
    lambda x, format: x.contiguous(memory_format=format),
    lambda x, format: x.double(memory_format=format),
    lambda x, format: x.to(tl.float64, memory_format=format)])
def test_channels_lie_closest_together(format, shape, change):
    x = tl.randn(shape, requires_grad=True)
    y = change(x, format)
    assert y.shape == x.shape and tl.equal(y.float(), x)
    assert y.is_contiguous(memory_format=format) and not y.is_contiguous()
    assert y.stride(1) == 1 and y.stride(-1) == 3 and y.movedim(1, -1).is_contiguous()
    assert not x.is_contiguous(memory_format=format)
    assert y.contiguous(memory_format=format) is y and y.to(memory_format=format) is y
    assert y.clone().is_contiguous(memory_format=format)           # which keeps the order
    assert tl.zeros_like(y).is_contiguous(memory_format=format)
    assert y.contiguous().is_contiguous() and (y * 2).sum().backward() is None
    assert x.grad.tolist() == tl.full(shape, 2.0).tolist()


@pytest.mark.parametrize("format, shape", FORMATS)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_new_tensors_in_a_format(format, shape, device):
    plain = tl.empty(shape, device=device)
    wanted = plain.to(memory_format=format).stride()
    assert tl.empty(shape, memory_format=format, device=device).stride() == wanted
    for function in (tl.empty_like, tl.zeros_like, tl.ones_like, tl.rand_like):
        assert function(plain, memory_format=format).stride() == wanted
    if device == "cpu":
        assert tl.ones_like(plain, memory_format=format).eq(1).all()
        assert tl.full_like(plain, 3, memory_format=format).sum() == 3 * plain.numel()
    for wrong, text in ((shape[1:], "required rank"), ((), "required rank")):
        with pytest.raises(RuntimeError, match=f"empty: {text}"):
            tl.empty(wrong, memory_format=format, device=device)
    with pytest.raises(RuntimeError, match="empty: memory_format must be contiguous_fo"):
        tl.empty(shape, memory_format="channels_last")


def test_sizes_of_one_and_none():
    for shape in ((1, 1, 1, 1), (2, 1, 3, 4), (2, 3, 1, 1), (1, 3, 1, 4)):
        x = tl.randn(shape).to(memory_format=tl.channels_last)
        assert x.is_contiguous(memory_format=tl.channels_last)
        assert x.is_contiguous() == (shape in ((1, 1, 1, 1), (2, 1, 3, 4), (2, 3, 1, 1)))
    empty = tl.ones(0, 3, 2, 2)
    assert empty.is_contiguous(memory_format=tl.channels_last) and empty.is_contiguous()
    meta = tl.empty(2, 3, 4, 5, device="meta").to(memory_format=tl.channels_last)
    assert meta.stride() == (60, 1, 15, 3) and meta.is_meta


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        tl.ones(2, 3).to(memory_format=tl.channels_last)
    with pytest.raises(RuntimeError, match="required rank 5 tensor to use channels_last_3d"):
        tl.ones(2, 3, 4, 5).contiguous(memory_format=tl.channels_last_3d)
    assert not tl.ones(2, 3).is_contiguous(memory_format=tl.channels_last)
    assert tl.ones(2, 3).is_contiguous(memory_format=tl.preserve_format)
    for format in (3, "channels_last"):
        with pytest.raises(RuntimeError, match="is_contiguous: memory_format must be contiguous_f"):
            tl.ones(2).is_contiguous(memory_format=format)


def test_a_training_step_with_images_in_the_format():
    """The results and the gradients are those of the plain order."""
    model = tl.nn.Sequential(tl.nn.Conv2d(3, 4, 3), tl.nn.BatchNorm2d(4), tl.nn.ReLU(),
                             tl.nn.MaxPool2d(2), tl.nn.Flatten(), tl.nn.Linear(16, 2))
    x, found = tl.randn(2, 3, 6, 6), []
    for format in (tl.contiguous_format, tl.channels_last):
        model = model.to(memory_format=format)
        model.zero_grad()
        out = model(x.to(memory_format=format))
        out.square().sum().backward()
        found.append([out, *(p.grad for p in model.parameters())])
    for plain, other in zip(*found, strict=True):
        tl.testing.assert_close(plain, other)


TURNED = {
    "masked_fill": lambda t, x: x.masked_fill(t.ones(4) > 0, 1.0),
    "masked_scatter": lambda t, x: x.masked_scatter(t.ones(2, 5, 4) > 0, t.arange(40.0)),
    "masked_scatter, broadcast": lambda t, x: x.masked_scatter(t.ones(4) > 0, t.arange(40.0)),
    "index_copy": lambda t, x: x.index_copy(0, t.tensor([1]), t.ones(1, 5, 4)),
    "repeat": lambda t, x: x.repeat(1, 1, 1), "tile": lambda t, x: x.tile((1,)),
    "instance_norm": lambda t, x: t.nn.functional.instance_norm(x),
    "median": lambda t, x: x.median(0, keepdim=True)[1], "mode": lambda t, x: x.mode(0)[1],
    "kthvalue": lambda t, x: x.kthvalue(1, 0)[1],
    "argsort": lambda t, x: x.contiguous().argsort(1),
    "rot90": lambda t, x: x.rot90(4), "narrow_copy": lambda t, x: x.narrow_copy(1, 0, 2),
    "renorm": lambda t, x: x.renorm(2, 0, 1.0),
    "diag_embed": lambda t, x: t.diag_embed(x, 1, 1, 2),
}


@each("name", TURNED)
def test_results_of_turned_tensors_are_row_major_where_those_of_pytorch_are(name):
    rows = np.random.default_rng(0).normal(size=(2, 4, 5)).astype("f4")
    ours = TURNED[name](tl, tl.from_numpy(rows).mT)
    assert ours.is_contiguous() and ours.view(-1).numel() == ours.numel()
    assert ours.equal(TURNED[name](tl, tl.from_numpy(rows).mT.contiguous()))
    if torch is not None:
        theirs = TURNED[name](torch, torch.from_numpy(rows).mT)
        assert theirs.stride() == ours.stride() and np.allclose(theirs.numpy(), ours.numpy())


REARRANGED = {
    "pixel_shuffle": lambda t, x: t.nn.functional.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda t, x: t.nn.functional.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda t, x: t.nn.functional.channel_shuffle(x, 4),
    "max_unpool": lambda t, x: t.nn.functional.max_unpool2d(
        x, t.zeros(x.shape, dtype=t.int64, device=x.device), 2),
    "glu": lambda t, x: t.nn.functional.glu(x, 1), "glu, last": lambda t, x: t.nn.functional.glu(x),
    "roll": lambda t, x: x.roll(1, 1), "roll, twice": lambda t, x: x.roll((1, -2), (2, 3)),
    "roll, by nothing": lambda t, x: x.roll((1, 0), (2, 3)),
    "sort": lambda t, x: x.sort(1)[0], "sorted places": lambda t, x: x.sort()[1],
    "argsort": lambda t, x: x.argsort(1, True), "msort": lambda t, x: x.msort(),
}
FORMS = {
    "rows": lambda t, x: x, "last": lambda t, x: x.contiguous(memory_format=t.channels_last),
    "last, some channels": lambda t, x: t.cat([x, x], 1).contiguous(
        memory_format=t.channels_last)[:, :8],
    "turned": lambda t, x: x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0),
    "expanded": lambda t, x: x[:1].expand(2, 8, 4, 6)}
IN_ANY_ORDER = {"glu", "glu, last", "sort", "sorted places", "argsort", "msort"}


@each("form", FORMS)
@each("name", REARRANGED)
def test_rearranged_images_lie_as_those_of_pytorch(name, form):
    rows = np.random.default_rng(0).normal(size=(2, 8, 4, 6)).astype("f4")
    function, x = REARRANGED[name], FORMS[form](tl, tl.from_numpy(rows))
    ours, plain = function(tl, x), function(tl, x.contiguous())
    last = form.startswith("last") and name != "roll, by nothing"
    if form != "turned" or name not in IN_ANY_ORDER:
        assert ours.is_contiguous(memory_format=tl.channels_last) == last
        assert ours.is_contiguous() != last
    assert tl.equal(ours, plain)
    replayed = tl.compile(lambda x: function(tl, x))(x)
    assert replayed.stride() == ours.stride() and tl.equal(replayed, ours)
    if ours.is_floating_point():
        y = x.detach().requires_grad_()
        g = tl.linspace(0, 9, ours.numel()).reshape(ours.shape)
        found, = tl.autograd.grad(function(tl, y), y, g)
        wanted, = tl.autograd.grad(function(tl, z := x.contiguous().requires_grad_()), z, g)
        tl.testing.assert_close(found, wanted)
    if name != "max_unpool":                   # which looks at its places
        on_meta = function(tl, tl.empty_strided(x.shape, x.stride(), device="meta"))
        assert on_meta.stride() == ours.stride()
    if torch is not None:
        theirs = function(torch, FORMS[form](torch, torch.from_numpy(rows)))
        assert theirs.stride() == ours.stride() and np.allclose(theirs.numpy(), ours.numpy())


PICKED = {
    "images": lambda t, x: x[t.tensor([1, 0, 1])], "channels": lambda t, x: x[:, t.tensor([3, 1])],
    "columns": lambda t, x: x[..., t.tensor([5, 0])],
    "a square of rows": lambda t, x: x[:, :, t.tensor([[1, 2], [0, 0], [3, 1]])],
    "of two dims": lambda t, x: x[:, t.tensor([3, 1]), t.tensor([0, 2])],
    "of dims apart": lambda t, x: x[t.tensor([1, 0]), :, t.tensor([0, 2])],
    "of a part": lambda t, x: x[:, 2:, t.tensor([1, 0])],
    "of one image": lambda t, x: x[1, :, t.tensor([1, 0])],
    "with a new dim": lambda t, x: x[None, t.tensor([1, 0])],
    "mask of images": lambda t, x: x[t.arange(2) > 0],
    "mask": lambda t, x: x[:, :, t.ones(4, 6) > 0],
}


@each("form", FORMS)
@each("name", PICKED)
def test_what_is_picked_lies_as_in_pytorch(name, form):
    """Whole dims in the order of the tensor's, and those of positions where that leaves them."""
    rows = np.random.default_rng(0).normal(size=(2, 8, 4, 6)).astype("f4")
    function, x = PICKED[name], FORMS[form](tl, tl.from_numpy(rows))
    ours = function(tl, x)
    assert tl.equal(ours, function(tl, x.contiguous()))
    assert function(tl, x.contiguous()).is_contiguous()
    if name == "images":
        assert ours.is_contiguous(memory_format=tl.channels_last) == form.startswith("last")
    if not name.startswith("mask"):            # how many places it has is known from its elements
        replayed = tl.compile(lambda x: function(tl, x))(x)
        assert replayed.stride() == ours.stride() and tl.equal(replayed, ours)
        on_meta = function(tl, tl.empty_strided(x.shape, x.stride(), device="meta"))
        assert on_meta.stride() == ours.stride()
    if torch is not None:
        theirs = function(torch, FORMS[form](torch, torch.from_numpy(rows)))
        assert np.array_equal(theirs.numpy(), ours.numpy())
        assert [s for s, n in zip(theirs.stride(), theirs.shape) if n > 1] == [
            s for s, n in zip(ours.stride(), ours.shape) if n > 1]
