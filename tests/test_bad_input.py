"""Every kind of bad input: the error's type is PyTorch's, its message names the operation, and the
inputs stay as they were."""

import copy
import re
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each

import tensorlib as tl

HUGE = 2**62  # elements that no memory holds
OVERFLOWING = (2**40, 2**40)  # a count of elements beyond 64 bits

# PyTorch has one RuntimeError for both; a count that overflows is not a matter of memory.
TOO_LARGE = (MemoryError, RuntimeError)


def inputs():
    return SimpleNamespace(
        scalar=tl.tensor(2.0),
        vector=tl.tensor([1.0, 2.0, 3.0]),
        vector4=tl.tensor([1.0, 2.0, 3.0, 4.0]),
        matrix=tl.arange(6.0).reshape(2, 3),
        batch=tl.arange(24.0).reshape(2, 3, 4),
        empty=tl.empty(0),
        wide_empty=tl.empty(0, 3),
        doubles=tl.ones(3, dtype=tl.float64),
        ints=tl.tensor([1, 2, 3]),
        small_ints=tl.tensor([1, 2, 3], dtype=tl.int32),
        zeros=tl.tensor([0, 0, 0]),
        bools=tl.tensor([True, False, True]),
        expanded=tl.tensor([1.0]).expand(3),
        leaf=tl.tensor([1.0, 2.0, 3.0], requires_grad=True),
    )


SHAPES = [
    ("add", lambda t: t.matrix + t.vector4, RuntimeError),
    ("sub", lambda t: tl.sub(t.matrix, t.vector4), RuntimeError),
    ("mul", lambda t: t.matrix.mul(t.vector4), RuntimeError),
    ("div", lambda t: t.matrix / t.vector4, RuntimeError),
    ("pow", lambda t: t.matrix**t.vector4, RuntimeError),
    ("lt", lambda t: t.matrix < t.vector4, RuntimeError),
    ("eq", lambda t: t.matrix == t.vector4, RuntimeError),
    ("maximum", lambda t: tl.maximum(t.matrix, t.vector4), RuntimeError),
    ("add", lambda t: t.vector.add_(t.matrix), RuntimeError),
    ("mul", lambda t: t.vector.__imul__(t.vector4), RuntimeError),
    ("copy", lambda t: t.vector.copy_(t.vector4), RuntimeError),
    ("where", lambda t: tl.where(t.bools, t.vector, t.vector4), RuntimeError),
    ("matmul", lambda t: t.matrix @ t.matrix, RuntimeError),
    ("matmul", lambda t: t.matrix @ t.vector4, RuntimeError),
    ("matmul", lambda t: t.vector @ t.vector4, RuntimeError),
    ("matmul", lambda t: t.scalar @ t.vector, RuntimeError),
    ("matmul", lambda t: t.batch @ tl.ones(3, 4, 5), RuntimeError),
    ("mm", lambda t: tl.mm(t.matrix, t.vector), RuntimeError),
    ("mm", lambda t: tl.mm(t.matrix, t.matrix), RuntimeError),
    ("mv", lambda t: tl.mv(t.matrix, t.vector4), RuntimeError),
    ("mv", lambda t: tl.mv(t.vector, t.vector), RuntimeError),
    ("dot", lambda t: tl.dot(t.vector, t.vector4), RuntimeError),
    ("dot", lambda t: tl.dot(t.matrix, t.matrix), RuntimeError),
    ("bmm", lambda t: tl.bmm(t.matrix, t.matrix), RuntimeError),
    ("bmm", lambda t: tl.bmm(t.batch, t.batch), RuntimeError),
    ("outer", lambda t: tl.outer(t.matrix, t.vector), RuntimeError),
    ("cat", lambda t: tl.cat([t.matrix, t.matrix.t()]), RuntimeError),
    ("cat", lambda t: tl.cat([t.matrix, t.batch]), RuntimeError),
    ("cat", lambda t: tl.cat([t.scalar, t.scalar]), RuntimeError),
    ("cat", lambda t: tl.cat([]), (RuntimeError, ValueError)),
    ("stack", lambda t: tl.stack([t.vector, t.vector4]), RuntimeError),
    ("stack", lambda t: tl.stack([]), (RuntimeError, ValueError)),
    ("stack", lambda t: tl.stack(None), TypeError),
    ("stack", lambda t: tl.stack(3, out=t.matrix), TypeError),
    ("view", lambda t: t.matrix.view(4), RuntimeError),
    ("view", lambda t: t.matrix.t().view(6), RuntimeError),
    ("reshape", lambda t: t.matrix.reshape(5), RuntimeError),
    ("reshape", lambda t: t.matrix.reshape(-1, -1), RuntimeError),
    ("reshape", lambda t: t.matrix.reshape(-2, 3), RuntimeError),
    ("reshape", lambda t: t.matrix.reshape(4, -1), RuntimeError),
    ("reshape", lambda t: t.empty.reshape(0, -1), RuntimeError),
    ("expand", lambda t: t.vector.expand(4), RuntimeError),
    ("expand", lambda t: t.matrix.expand(3), RuntimeError),
    ("expand", lambda t: t.vector.expand(-1, 3), RuntimeError),
    ("permute", lambda t: t.batch.permute(0, 1), RuntimeError),
    ("permute", lambda t: t.batch.permute(0, 1, 1), RuntimeError),
    ("flatten", lambda t: t.batch.flatten(2, 1), RuntimeError),
    (r"\bt\b", lambda t: t.batch.t(), RuntimeError),
    ("split", lambda t: t.vector.split([1, 1]), RuntimeError),
    ("split", lambda t: t.vector.split(-1), RuntimeError),
    ("split", lambda t: t.vector.split([4, -1]), RuntimeError),
    ("chunk", lambda t: t.vector.chunk(0), RuntimeError),
    ("max", lambda t: t.empty.max(), RuntimeError),
    ("amax", lambda t: t.empty.amax(0), IndexError),
    ("max", lambda t: t.wide_empty.max(0), IndexError),
    ("argmin", lambda t: t.wide_empty.argmin(0), IndexError),
    ("argmax", lambda t: t.empty.argmax(), IndexError),
]

DIMS = [
    ("sum", lambda t: t.matrix.sum(2), IndexError),
    ("sum", lambda t: t.matrix.sum(-3), IndexError),
    ("sum", lambda t: t.matrix.sum((0, 0)), RuntimeError),
    ("sum", lambda t: t.matrix.sum((0, -2)), RuntimeError),
    ("sum", lambda t: t.scalar.sum(1), IndexError),
    ("mean", lambda t: t.matrix.mean(2), IndexError),
    ("prod", lambda t: t.matrix.prod(2), IndexError),
    ("max", lambda t: t.matrix.max(2), IndexError),
    ("argmax", lambda t: t.matrix.argmax(2), IndexError),
    ("any", lambda t: t.matrix.any(2), IndexError),
    ("var", lambda t: t.matrix.var(2), IndexError),
    ("logsumexp", lambda t: t.matrix.logsumexp(2), IndexError),
    ("softmax", lambda t: t.matrix.softmax(2), IndexError),
    ("log_softmax", lambda t: t.matrix.log_softmax(2), IndexError),
    ("transpose", lambda t: t.matrix.transpose(0, 2), IndexError),
    ("permute", lambda t: t.matrix.permute(0, 2), IndexError),
    ("squeeze", lambda t: t.matrix.squeeze(2), IndexError),
    ("unsqueeze", lambda t: t.matrix.unsqueeze(4), IndexError),
    ("flatten", lambda t: t.matrix.flatten(0, 2), IndexError),
    ("cat", lambda t: tl.cat([t.matrix, t.matrix], dim=2), IndexError),
    ("stack", lambda t: tl.stack([t.matrix, t.matrix], dim=3), IndexError),
    ("split", lambda t: t.matrix.split(1, dim=2), IndexError),
    ("chunk", lambda t: t.matrix.chunk(2, dim=2), IndexError),
    ("sum", lambda t: t.matrix.sum("rows"), TypeError),
    ("sum", lambda t: t.matrix.sum(0.5), TypeError),
    ("transpose", lambda t: t.matrix.transpose(0, "1"), TypeError),
    ("size", lambda t: t.matrix.size(2), IndexError),
]

DTYPES = [
    ("sub", lambda t: t.bools - t.bools, RuntimeError),
    ("neg", lambda t: -t.bools, RuntimeError),
    ("mean", lambda t: t.ints.mean(), RuntimeError),
    ("var", lambda t: t.ints.var(), RuntimeError),
    ("std", lambda t: t.ints.std(), RuntimeError),
    ("softmax", lambda t: t.ints.softmax(0), RuntimeError),
    ("bitwise_and", lambda t: t.vector & t.vector, RuntimeError),
    ("bitwise_or", lambda t: tl.bitwise_or(t.vector, t.ints), RuntimeError),
    ("bitwise_not|invert", lambda t: ~t.vector, TypeError),
    ("add", lambda t: t.ints.add_(1.5), RuntimeError),
    ("div", lambda t: t.ints.div_(2), RuntimeError),
    ("tanh", lambda t: t.ints.tanh_(), RuntimeError),
    ("add", lambda t: t.bools.add_(1), RuntimeError),
    ("mul", lambda t: t.ints.mul_(t.vector), RuntimeError),
    ("pow", lambda t: t.ints**-1, RuntimeError),
    ("matmul", lambda t: t.bools @ t.bools, RuntimeError),
    ("mm", lambda t: tl.mm(t.bools.reshape(1, -1), t.bools.reshape(-1, 1)), RuntimeError),
    ("addmv", lambda t: tl.addmv(t.ints, t.ints[:, None], t.ints[:1], alpha=0.5), RuntimeError),
    ("clamp", lambda t: t.vector.clamp(), (RuntimeError, ValueError)),
    ("div", lambda t: tl.div(t.vector, 2, rounding_mode="up"), RuntimeError),
    ("div", lambda t: tl.div(t.ints, 0, rounding_mode="floor"), RuntimeError),
    ("div", lambda t: tl.div(t.ints, t.zeros, rounding_mode="trunc"), RuntimeError),
    ("floor_divide", lambda t: t.ints // t.zeros, RuntimeError),
    ("remainder", lambda t: t.ints % t.zeros, RuntimeError),
    ("requires_grad", lambda t: t.ints.requires_grad_(), RuntimeError),
    ("requires_grad", lambda t: setattr(t.bools, "requires_grad", True), RuntimeError),
    ("requires_grad|tensor", lambda t: tl.tensor([1], requires_grad=True), RuntimeError),
    ("requires_grad|ones", lambda t: tl.ones(2, dtype=tl.int32, requires_grad=True), RuntimeError),
    ("tanh", lambda t: tl.tanh(t.vector, out=t.zeros), RuntimeError),
]

INDICES = [
    ("getitem|setitem", lambda t: t.vector[3], IndexError),
    ("getitem|setitem", lambda t: t.vector[-4], IndexError),
    ("getitem|setitem", lambda t: t.matrix[0, 3], IndexError),
    ("getitem|setitem", lambda t: t.matrix[0, 0, 0], IndexError),
    ("getitem|setitem", lambda t: t.scalar[0], IndexError),
    ("getitem|setitem", lambda t: t.empty[0], IndexError),
    ("index|slice|step", lambda t: t.vector[::0], ValueError),
    ("index|slice", lambda t: t.vector[0.5:], TypeError),
    ("getitem|setitem", lambda t: t.vector["first"], (IndexError, TypeError)),
    ("getitem|setitem", lambda t: t.vector[0.5], (IndexError, TypeError)),
    ("getitem|setitem", lambda t: t.vector[object()], (IndexError, TypeError)),
    ("getitem|setitem", lambda t: t.vector[t.vector], IndexError),
    ("getitem|setitem", lambda t: t.vector[t.ints], IndexError),
    ("getitem|setitem", lambda t: t.vector[[0, -4]], IndexError),
    ("getitem|setitem", lambda t: t.vector4[t.bools], IndexError),
    ("getitem|setitem", lambda t: t.matrix[t.matrix[:, :2] > 0], IndexError),
    ("getitem|setitem", lambda t: t.matrix[[0, 1], [0, 1, 2]], IndexError),
    ("getitem|setitem", lambda t: t.vector.__setitem__(3, 1.0), IndexError),
    ("getitem|setitem", lambda t: t.vector.__setitem__([3], 1.0), IndexError),
    ("setitem", lambda t: t.matrix.__setitem__(0, t.vector4), RuntimeError),
    ("setitem", lambda t: t.matrix.__setitem__([0, 1], t.vector4), RuntimeError),
    ("setitem", lambda t: t.vector.__setitem__(0, "one"), TypeError),
    ("setitem", lambda t: t.vector.__setitem__(0, None), TypeError),
    ("setitem", lambda t: t.vector.__setitem__(0, t.vector), RuntimeError),
    ("setitem|leaf", lambda t: t.leaf.__setitem__(0, 1.0), RuntimeError),
    ("setitem|expand", lambda t: t.expanded.__setitem__(slice(None), 1.0), RuntimeError),
    ("unbind|iter|0-d", lambda t: iter(t.scalar), TypeError),
    ("len", lambda t: len(t.scalar), TypeError),
]

OBJECTS = [
    ("tensor", lambda t: tl.tensor([[1.0, 2.0], [3.0]]), ValueError),
    ("tensor", lambda t: tl.tensor([1.0, [2.0]]), (TypeError, ValueError)),
    ("tensor", lambda t: tl.tensor([[1.0], 2.0]), (TypeError, ValueError)),
    ("tensor", lambda t: tl.tensor("text"), (TypeError, ValueError)),
    ("tensor", lambda t: tl.tensor(["a", "b"]), (TypeError, ValueError)),
    ("tensor", lambda t: tl.tensor(None), (RuntimeError, TypeError)),
    ("tensor", lambda t: tl.tensor([None]), (RuntimeError, TypeError)),
    ("tensor", lambda t: tl.tensor(object()), (RuntimeError, TypeError)),
    ("tensor", lambda t: tl.tensor({"a": 1}), (RuntimeError, TypeError)),
    ("tensor", lambda t: tl.tensor(2**70), (ValueError, OverflowError)),
    ("tensor", lambda t: tl.tensor(np.array(["a"])), TypeError),
    ("tensor", lambda t: tl.tensor([1.0], dtype="single"), TypeError),
    ("tensor", lambda t: tl.tensor(), TypeError),
    ("from_numpy", lambda t: tl.from_numpy([1.0]), TypeError),
    ("from_numpy", lambda t: tl.from_numpy(np.array([None])), TypeError),
    ("add", lambda t: t.vector.add("1"), TypeError),
    ("add", lambda t: t.vector.add(None), TypeError),
    ("", lambda t: t.vector + "1", TypeError),
    ("", lambda t: None * t.vector, TypeError),
    ("", lambda t: t.vector @ 2.0, TypeError),
    ("", lambda t: t.vector < "1", TypeError),
    ("tanh", lambda t: tl.tanh(1.0), TypeError),
    ("tanh", lambda t: tl.tanh([1.0]), TypeError),
    ("tanh", lambda t: tl.tanh(), TypeError),
    ("tanh", lambda t: tl.tanh(t.vector, t.vector), TypeError),
    ("sum|dimension", lambda t: t.vector.sum(dimension=0), TypeError),
    ("matmul", lambda t: tl.matmul(t.matrix, 2.0), TypeError),
    ("cat", lambda t: tl.cat([t.vector, 1.0]), TypeError),
    ("cat", lambda t: tl.cat(3), TypeError),
    ("where", lambda t: tl.where(t.vector, t.vector, t.vector), RuntimeError),
    ("where", lambda t: tl.where(t.bools, "a", t.vector), TypeError),
    ("clamp", lambda t: t.vector.clamp("0"), TypeError),
    ("reshape", lambda t: t.matrix.reshape("6"), TypeError),
    ("reshape", lambda t: t.matrix.reshape(1.5, 4), TypeError),
    ("permute", lambda t: t.matrix.permute("01"), TypeError),
    (r"\bto\b", lambda t: t.vector.to("float99"), (RuntimeError, TypeError)),
    ("split", lambda t: t.vector.split("1"), TypeError),
    ("item", lambda t: t.vector.item(), RuntimeError),
    ("item", lambda t: t.empty.item(), RuntimeError),
    ("item|float|scalar", lambda t: float(t.vector), ValueError),
    ("item|int|scalar", lambda t: int(t.vector), ValueError),
    ("index|integer", lambda t: range(3)[t.scalar], TypeError),
    ("bool", lambda t: bool(t.vector), RuntimeError),
    ("bool", lambda t: bool(t.empty), RuntimeError),
]

SIZES = [
    ("zeros", lambda t: tl.zeros(-1), RuntimeError),
    ("zeros", lambda t: tl.zeros(2, -1), RuntimeError),
    ("zeros", lambda t: tl.zeros(2.5), TypeError),
    ("zeros", lambda t: tl.zeros("2"), TypeError),
    ("ones", lambda t: tl.ones(2, dtype=0), TypeError),
    ("full", lambda t: tl.full((2,), None), TypeError),
    ("full", lambda t: tl.full((-2,), 1.0), RuntimeError),
    ("empty", lambda t: tl.empty(HUGE), TOO_LARGE),
    ("empty", lambda t: tl.empty(*OVERFLOWING), TOO_LARGE),
    ("zeros", lambda t: tl.zeros(2**50), TOO_LARGE),
    ("ones", lambda t: tl.ones(2**31, 2**31), TOO_LARGE),
    ("full", lambda t: tl.full((HUGE,), 1.0, dtype=tl.float64), TOO_LARGE),
    ("eye", lambda t: tl.eye(2**33), TOO_LARGE),
    ("eye", lambda t: tl.eye(-1), RuntimeError),
    ("arange", lambda t: tl.arange(2**60), TOO_LARGE),
    ("arange", lambda t: tl.arange(0, 5, 0), RuntimeError),
    ("arange", lambda t: tl.arange(0, 5, -1), RuntimeError),
    ("arange", lambda t: tl.arange(0.0, float("inf")), RuntimeError),
    ("arange", lambda t: tl.arange(float("nan")), RuntimeError),
    ("linspace", lambda t: tl.linspace(0, 1, -1), RuntimeError),
    ("linspace", lambda t: tl.linspace(0, 1, 2**60), TOO_LARGE),
    ("randint", lambda t: tl.randint(5, 5, (2,)), RuntimeError),
    ("randn", lambda t: tl.randn(-1), RuntimeError),
    ("rand", lambda t: tl.rand(HUGE), TOO_LARGE),
    ("randperm", lambda t: tl.randperm(-1), RuntimeError),
    ("expand", lambda t: t.scalar.expand(*OVERFLOWING), RuntimeError),
    ("clone|contiguous|empty", lambda t: t.scalar.expand(2**55).contiguous(), TOO_LARGE),
    ("add", lambda t: t.scalar.expand(2**55) + 1, TOO_LARGE),
    ("outer|mul", lambda t: tl.outer(t.scalar.expand(2**30), t.scalar.expand(2**30)), TOO_LARGE),
    ("matmul|mm", lambda t: t.vector.expand(2**55, 3) @ t.matrix.t(), TOO_LARGE),
    ("expand", lambda t: t.scalar.expand(HUGE), TOO_LARGE),
    ("cat", lambda t: tl.cat([t.scalar.expand(2**58)] * 2), TOO_LARGE),
    ("cat", lambda t: tl.cat([t.scalar.expand(2**59)] * 2), TOO_LARGE),
]

GRADIENTS = [
    ("backward", lambda t: (t.leaf * 2).backward(), RuntimeError),
    ("backward", lambda t: t.leaf.backward(), RuntimeError),
    ("backward", lambda t: t.vector.sum().backward(), RuntimeError),
    ("backward", lambda t: (t.leaf * 2).backward(tl.ones(2)), RuntimeError),
    ("backward", lambda t: (t.leaf * 2).backward(3.0), TypeError),
    ("backward", lambda t: (t.leaf * 2).detach().backward(tl.ones(3)), RuntimeError),
    ("backward", lambda t: (t.leaf > 1).backward(tl.ones(3)), RuntimeError),
    ("backward", lambda t: t.leaf.exp().sum().backward(inputs=[]), RuntimeError),
    ("grad", lambda t: tl.autograd.grad(t.vector.sum(), t.vector), RuntimeError),
    ("grad", lambda t: tl.autograd.grad(t.leaf * 2, t.leaf), RuntimeError),
    ("grad", lambda t: tl.autograd.grad(t.leaf.sum(), "leaf"), (RuntimeError, TypeError)),
    ("add_?.*leaf", lambda t: t.leaf.add_(1), RuntimeError),
    ("mul_?.*leaf", lambda t: t.leaf.__imul__(2), RuntimeError),
    ("zero_.*leaf", lambda t: t.leaf.zero_(), RuntimeError),
    ("tanh_?.*leaf", lambda t: t.leaf.tanh_(), RuntimeError),
    ("leaf", lambda t: t.leaf[:2].add_(1), RuntimeError),
    ("add_?.*expand", lambda t: t.expanded.add_(1), RuntimeError),
    ("add_?.*expand", lambda t: t.expanded.add_(t.vector), RuntimeError),
    ("copy_?.*expand", lambda t: t.expanded.copy_(t.vector), RuntimeError),
    ("tanh", lambda t: tl.tanh(t.leaf, out=t.vector.clone()), RuntimeError),
    ("retain_grad", lambda t: t.vector.retain_grad(), RuntimeError),
    ("requires_grad", lambda t: (t.leaf * 2).requires_grad_(False), RuntimeError),
    ("requires_grad", lambda t: setattr(t.leaf * 2, "requires_grad", False), RuntimeError),
    ("grad", lambda t: setattr(t.leaf, "grad", tl.ones(2)), RuntimeError),
    ("grad", lambda t: setattr(t.leaf, "grad", tl.ones(3, dtype=tl.float64)), RuntimeError),
    ("grad", lambda t: setattr(t.leaf, "grad", [1.0, 1.0, 1.0]), TypeError),
    ("numpy", lambda t: t.leaf.numpy(), RuntimeError),
    ("numpy|array", lambda t: np.asarray(t.leaf), RuntimeError),
    ("set_grad_enabled", lambda t: tl.set_grad_enabled("yes"), TypeError),
    ("manual_seed", lambda t: tl.manual_seed("seed"), (TypeError, ValueError, RuntimeError)),
    ("manual_seed", lambda t: tl.manual_seed(float("-inf")), ValueError),
    ("index_select", lambda t: tl.ops.registry["slices_taken"](tl.ones(2), 1 << 40, tl.tensor([0])),
     IndexError),
]

TABLES = {
    "shapes": SHAPES, "dims": DIMS, "dtypes": DTYPES, "indices": INDICES, "objects": OBJECTS,
    "sizes": SIZES, "gradients": GRADIENTS,
}
ROWS = {
    f"{table}-{position}-{re.sub('[^a-z_]+', '-', row[0])}": row
    for table, rows in TABLES.items()
    for position, row in enumerate(rows)
}


def names_operation(message, operation):
    """Whether a message starts with, or at least mentions, the operation that failed."""
    return re.search(operation, message, re.IGNORECASE | re.DOTALL) is not None


def state(namespace):
    """Everything of the inputs that an operation which raises must leave alone."""
    return {
        name: (tuple(x.shape), x.dtype, x.requires_grad, x.grad, x.detach().tolist())
        for name, x in vars(namespace).items()
    }


@each("operation, call, error", ROWS.values(), ids=ROWS)
def test_bad_input_is_refused(operation, call, error):
    values = inputs()
    before = state(values)
    with pytest.raises(error) as raised:
        call(values)
    assert names_operation(str(raised.value), operation), str(raised.value)
    assert state(values) == before


def test_sweeping_twice_names_the_remedy():
    loss = tl.ones(2, requires_grad=True).exp().sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        loss.backward()


def test_an_overwritten_value_is_named_with_its_operation():
    hidden = tl.ones(2, requires_grad=True) * 1
    loss = hidden.tanh().sum()
    hidden.add_(1)  # tanh saves its result, not this
    loss.backward()

    result = (tl.ones(2, requires_grad=True) * 1).tanh()
    loss = result.sum()
    result.add_(1)
    with pytest.raises(RuntimeError) as raised:
        loss.backward()
    assert names_operation(str(raised.value), "tanh")


def test_a_failed_sweep_leaves_no_half_gradient():
    a, b = tl.ones(2, requires_grad=True), tl.ones(2, requires_grad=True)
    saved = b.exp()
    loss = (a * 2 + saved).sum()
    saved.detach().zero_()
    with pytest.raises(RuntimeError):
        loss.backward()
    assert b.grad is None


def test_copying_a_result_names_the_remedy():
    with pytest.raises(RuntimeError, match="(?i)leaf|leaves|graph"):
        copy.deepcopy(tl.ones(2, requires_grad=True) * 2)


@pytest.mark.parametrize("name, call", [
    ("tril", lambda x: x.tril(2**65)), ("triu", lambda x: tl.triu(x, -2**65, out=x.clone())),
    ("diagonal", lambda x: x.diagonal(2**65)), ("unfold", lambda x: x.unfold(0, 2**65, 1)),
    ("combinations", lambda x: tl.combinations(x[0], 2**65))])
def test_ints_of_more_than_64_bits_are_refused_by_name(name, call):
    with pytest.raises(tl.OutOfRangeError, match=f"{name}: an argument is an int of more than 64"):
        call(tl.ones(3, 3))
