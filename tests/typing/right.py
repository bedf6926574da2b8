"""Typical calls, which type checkers accept in their strict modes, with the types they see."""

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import tensorlib as tl
import tensorlib.nn.functional as F
from tensorlib import Tensor, autograd, nn, ops
from tensorlib.autograd import Function, checkpoint
from tensorlib.autograd.function import FunctionCtx
from tensorlib.func import (
    elementwise_grad,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    value_and_grad,
    vjp,
    vmap,
)
from tensorlib.nn.attention import SDPBackend
from tensorlib.nn.parameter import Parameter


# ---- making tensors and computing with them

x = tl.randn(4, 3, dtype=tl.float32, generator=tl.Generator().manual_seed(3))
y = tl.zeros((4, 1)) + 1
w = tl.full((3, 1), 0.5, requires_grad=True)
table: npt.NDArray[np.float64] = np.ones((4, 3))
assert_type(tl.tensor([1.0, 2.0]), Tensor)
assert_type(tl.from_numpy(table), Tensor)
assert_type(tl.arange(10), Tensor)
assert_type(tl.zeros(2, 3, dtype=np.float64), Tensor)
assert_type(x + 1, Tensor)
assert_type(2.5 * x, Tensor)
assert_type(x @ w, Tensor)
assert_type(x + table, Tensor)
assert_type(x + np.float32(1.0), Tensor)
assert_type(x == y, Tensor)
assert_type(-x, Tensor)
assert_type(x[0], Tensor)
assert_type(x[:, None, [0, 2]], Tensor)
x[x > 0] = 0.0
x[0] += 1
assert_type(tl.add(x, 2, alpha=3), Tensor)
assert_type(x.tanh_().to(tl.float64).reshape(2, -1), Tensor)
assert_type(x.sum(dim=(0, 1), keepdim=True), Tensor)
assert_type(tl.pow(2, x), Tensor)
assert_type(tl.clamp(x, min=0), Tensor)
assert_type(tl.cat([x, x], dim=0), Tensor)
assert_type(tl.stack((x, x)), Tensor)
assert_type(tl.cat([tl.arange(10.0), tl.linspace(0, 1, 5)]), Tensor)
array: np.ndarray = x.detach().numpy()
assert_type(x.where(x > 0, 0.0), Tensor)
assert_type(tl.where(x > 0, x, 0.0), Tensor)
assert_type(tl.where(x > 0), tuple[Tensor, ...])
assert_type(x.nonzero(), Tensor)
assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])
assert_type(x.max(), Tensor)
assert_type(x.max(y), Tensor)
assert_type(x.max(1).values, Tensor)
values, indices = x.max(1)
assert_type(indices, Tensor)
assert_type(tl.min(x, 0, keepdim=True).indices, Tensor)
assert_type(x.aminmax().max, Tensor)
assert_type(x.split(2), tuple[Tensor, ...])
mean, deviation = tl.std_mean(x)
assert_type(deviation, Tensor)

# ---- what a tensor is

assert_type(x.shape, tl.Size)
assert_type(x.size(0), int)
assert_type(x.size(), tl.Size)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.dtype, tl.dtype)
assert_type(x.requires_grad, bool)
assert_type(x.numpy(), np.ndarray[Any, Any])
assert_type(len(x), int)
n: int = x.ndim + x.shape[0] + x.numel()
number: float = x.sum().item()
half: float = float(x[0, 0]) / 2
text: str = f"{x}"
rows: list[Tensor] = list(x)
numbers: list[float] = x.tolist()
if (x > 0).any():
    print(tl.allclose(x, x))

# ---- gradients

(x @ w - y).square().mean().backward()
with tl.no_grad():
    w -= 0.1 * w.grad
    w.grad = None
if w.grad is None:
    print("no gradient")
with tl.enable_grad(), tl.set_grad_enabled(True):
    first, = autograd.grad((x @ w).sum(), w, create_graph=True)
    assert_type(first, Tensor)
with tl.inference_mode():
    print(tl.is_grad_enabled(), tl.is_inference_mode_enabled())
with autograd.detect_anomaly():
    (x @ w).sum().backward(retain_graph=True)
leaf = tl.ones(2, requires_grad=True)
handle = leaf.register_hook(lambda g: g * 2)
handle.remove()
autograd.backward([(x @ w).sum()])
assert_type(checkpoint(tl.tanh, w), Tensor)
with autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), tl.from_numpy):
    (x @ w).sum()


@tl.no_grad()
def norm(t: Tensor, power: float = 2.0) -> float:
    return float((t.abs() ** power).sum() ** (1 / power))


@tl.no_grad
def halves(t: Tensor) -> Iterator[Tensor]:
    yield from t.chunk(2)


@tl.inference_mode()
def total(t: Tensor) -> Tensor:
    return t.sum()


assert_type(norm(x, power=1.0), float)
assert_type(next(halves(x)), Tensor)
assert_type(total(x), Tensor)


# ---- transforms

def loss(v: Tensor, data: Tensor, scale: float = 1.0) -> Tensor:
    return ((data @ v) * scale).square().sum()


def layers(params: dict[str, Tensor], data: Tensor) -> Tensor:
    return (data @ params["w"] + params["b"]).sum()


def with_note(v: Tensor) -> tuple[Tensor, str]:
    return v.sum(), "note"


def cube(v: Tensor) -> Tensor:
    return v * v * v


def energy(t: Tensor) -> Tensor:
    return cube(t).sum()


v = tl.ones(3)
assert_type(grad(loss)(v, x), Tensor)
assert_type(grad(loss)(v, x, scale=2.0), Tensor)
assert_type(grad(layers)({"w": v, "b": v[0]}, x), dict[str, Tensor])
assert_type(grad(with_note, has_aux=True)(v), tuple[Tensor, str])
assert_type(value_and_grad(loss)(v, x), tuple[Tensor, Tensor])
assert_type(grad(grad(cube))(tl.tensor(2.0)), Tensor)
gradients: tuple[Tensor, Tensor] = grad(loss, argnums=(0, 1))(v, x)
assert_type(grad(tl.tanh)(v[0]), Tensor)
assert_type(elementwise_grad(tl.tanh)(v), Tensor)
assert_type(vmap(grad(loss), in_dims=(None, 0))(v, x), Tensor)
assert_type(vmap(cube, chunk_size=2)(x), Tensor)
assert_type(jacrev(cube)(v), Tensor)
assert_type(jacfwd(cube)(v), Tensor)
assert_type(hessian(loss)(v, x), Tensor)
assert_type(jvp(cube, (v,), (v,)), tuple[Tensor, Tensor])
out, pull = vjp(cube, v)
assert_type(out, Tensor)
pulled: tuple[Tensor, ...] = pull(v)
assert_type(linearize(cube, v)[1](v), Tensor)
assert_type(hvp(energy, (v,), (v,))[0], Tensor)
assert_type(autograd.functional.hessian(energy, v), Tensor)
with autograd.forward_ad.dual_level():
    dual = autograd.forward_ad.make_dual(v, v)
    assert_type(autograd.forward_ad.unpack_dual(cube(dual)).tangent, Tensor | None)


# ---- operations of your own

class Cube(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, t: Tensor) -> Tensor:
        ctx.save_for_backward(t)
        ctx.cube = True
        return t ** 3

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> Tensor:
        t, = ctx.saved_tensors
        return 3 * g * t ** 2


cubed: Tensor = Cube.apply(v)


@ops.primitive
def log_sum(a: Tensor, b: Tensor) -> Tensor:
    return (a + b).log()


def log_sum_rule(g: Tensor, ans: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return g * (-ans).exp()


ops.defvjp(log_sum, log_sum_rule, log_sum_rule)
assert_type(log_sum(v, v), Tensor)


def dense_layer(data: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (data @ weight + bias).tanh()


dense = ops.compose("typed_dense", dense_layer)
assert_type(dense(x, w, y[0]), Tensor)
assert_type(dense.needs, tuple[str, ...])

# ---- the rest of the package

tl.set_num_threads(tl.get_num_threads())
peak: int = tl.memory.stats()["peak"]
tl.set_printoptions(precision=2)
with tl.printoptions(precision=3):
    print(x)
config: dict[str, dict[str, Any]] = tl.show_config("dicts")
assert_type(tl.graph.summary(dense(x, w, y[0])).saved_bytes, int)
picture: str = tl.graph.dot(dense(x, w, y[0]), {"w": w})
tl.testing.assert_close(x, x)
assert_type(tl.testing.gradcheck(cube, (v.double().requires_grad_(),)), bool)
same: bool = np.dtype(x.dtype) == np.float32

# ---- modules

class Block(nn.Module):
    scale: Tensor

    def __init__(self, width: int, depth: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout))
        self.gain = Parameter(tl.ones(width))
        self.register_buffer("scale", tl.tensor(0.5))
        self.apply(self.start)

    def start(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, data: Tensor) -> Tensor:
        for layer in self.layers:
            data = data + F.relu(layer(data))
        data = self.norm(data) * self.gain * self.scale
        return F.log_softmax(self.head(data), dim=-1)


block = Block(3).to(tl.float32).train()
assert_type(block, Block)
prediction: Tensor = block(x)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
error: Tensor = criterion(prediction, tl.tensor([0, 1, 2, 3]))
error.backward()
assert_type(nn.utils.clip_grad_norm_(block.parameters(), 1.0), Tensor)
count: int = sum(p.numel() for p in block.parameters() if p.requires_grad)
for name, parameter in block.named_parameters():
    assert_type(name, str)
    print(name, tuple(parameter.shape), parameter.grad is None)
with tl.no_grad():
    for parameter in block.parameters():
        parameter -= 0.1 * parameter.grad
block.zero_grad(set_to_none=True)
block.load_state_dict(block.state_dict())
block.eval().requires_grad_(False)
hook = block.norm.register_forward_hook(print)
hook.remove()
params, buffers = stack_module_state([Block(3), Block(3)])
assert_type(params, dict[str, Tensor])
nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
nn.utils.prune.l1_unstructured(nn.Linear(3, 2), "weight", amount=0.5)
images: Tensor = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                               nn.Flatten())(tl.randn(2, 1, 8, 8))
assert_type(F.softmax(x, dim=1), Tensor)
where = tl.device("cuda" if tl.cuda.is_available() else "cpu")
assert_type(where.type, str)
assert_type(where.index, int | None)
assert_type(tl.jit.script(block.to(where)), Block)
layouts: Tensor = tl.randn(2, 1, 8, 8).to(memory_format=tl.channels_last)


# ---- what packages define themselves -------------------------------------------------------------

def own_definitions(boxes: Tensor, sparse: tl.sparse.SparseTensor) -> None:
    assert_type(tl.vision.ops.nms(boxes, boxes[:, 0], 0.5), Tensor)
    assert_type(tl.sparse.sampled_addmm(sparse, boxes, boxes), tl.sparse.SparseTensor)
    backend: SDPBackend = SDPBackend.MATH
    with nn.attention.sdpa_kernel(backend):
        pass
