"""What models and programs are made of: layers with their gradients, positions, order, matrices."""

import math

from benchmarks.case import case, uniform

BATCH = 1_000               # matrices of 8 x 8


def both(lib, function, *tensors):
    """A step forward and back that returns the gradient of the first tensor, or the result.

    The gradient that comes back is fixed, so that the step is the layer alone.
    """
    leaves = [x.requires_grad_() for x in tensors]
    shape = function(*leaves).shape
    g = uniform(lib, *shape, seed=9) if shape else None

    def step():
        for x in leaves:
            x.grad = None
        function(*leaves).backward(g)
        return leaves[0].grad
    return step


def layer(name, make, target, size=""):
    """A case of `both` for `make`, which gives the function and its tensors."""
    case("layers", f"{name}, with backward", target=target, size=size)(
        lambda lib: both(lib, *make(lib)))


def plain(name, make, target, size="", rtol=1e-4):
    """A case of what `make` gives, without gradients."""
    case("layers", name, target=target, size=size, rtol=rtol)(make)


# ---- images --------------------------------------------------------------------------------------

def convolution(lib, images, weight, padding=1):
    """conv2d and its tensors."""
    return (lambda x, w: lib.nn.functional.conv2d(x, w, None, 1, padding),
            uniform(lib, *images), uniform(lib, *weight, low=-0.1, high=0.1, seed=1))


def forward(lib, function, *tensors):
    """The function of no arguments that calls another with tensors."""
    return lambda: function(*tensors)


for sizes, images, weight, padding, target in (
    ("3x3, 64 to 64, 16x16", (16, 64, 16, 16), (64, 64, 3, 3), 1, 1.0),
    ("3x3, 3 to 32, 32x32", (16, 3, 32, 32), (32, 3, 3, 3), 1, 1.2),
    ("1x1, 64 to 128, 16x16", (16, 64, 16, 16), (128, 64, 1, 1), 0, 1.1),
):
    plain(f"conv2d {sizes}", lambda lib, i=images, w=weight, p=padding: forward(
        lib, *convolution(lib, i, w, p)), target)
layer("conv2d 3x3, 64 to 64, 16x16",
      lambda lib: convolution(lib, (16, 64, 16, 16), (64, 64, 3, 3)), 1.0)
layer("conv2d 3x3, 1 to 16, 8x8", lambda lib: convolution(lib, (32, 1, 8, 8), (16, 1, 3, 3)), 2)
layer("max_pool2d, 16x64x16x16",
      lambda lib: (lambda x: lib.nn.functional.max_pool2d(x, 2), uniform(lib, 16, 64, 16, 16)), 2)
layer("batch_norm, 16x64x16x16", lambda lib: (
    lambda x, w, b: lib.nn.functional.batch_norm(x, None, None, w, b, training=True),
    uniform(lib, 16, 64, 16, 16), uniform(lib, 64, seed=1), uniform(lib, 64, seed=2)), 2)


# ---- rows ----------------------------------------------------------------------------------------

for rows, size, target in ((256, "", 1.3), (65_536, "large", 4)):
    shape = f"{rows}x256"
    layer(f"layer_norm, {shape}", lambda lib, rows=rows: (
        lambda x, w, b: lib.nn.functional.layer_norm(x, (256,), w, b),
        uniform(lib, rows, 256), uniform(lib, 256, seed=1), uniform(lib, 256, seed=2)),
          target, size)
    layer(f"gelu, {shape}", lambda lib, rows=rows: (
        lib.nn.functional.gelu, uniform(lib, rows, 256, low=-3, high=3)), target, size)
    layer(f"log_softmax, {shape}", lambda lib, rows=rows: (
        lambda x: x.log_softmax(1), uniform(lib, rows, 256)), target, size)
    layer(f"cross_entropy, {shape}", lambda lib, rows=rows: (
        lambda x: lib.nn.functional.cross_entropy(x, lib.arange(rows) % 256),
        uniform(lib, rows, 256)), target, size)
layer("attention, 8 heads, 128x64, causal", lambda lib: (
    lambda q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
    *[uniform(lib, 1, 8, 128, 64, seed=seed) for seed in range(3)]), 1.2)
layer("linear with bias, 32x64 to 64", lambda lib: (
    lib.nn.functional.linear, uniform(lib, 32, 64), uniform(lib, 64, 64, seed=1),
    uniform(lib, 64, seed=2)), 4)
layer("linear with bias, 512x1024 to 1024", lambda lib: (
    lib.nn.functional.linear, uniform(lib, 512, 1024), uniform(lib, 1024, 1024, seed=1),
    uniform(lib, 1024, seed=2)), 1.1, "large")
plain("einsum ij,jk->ik, 4x4", lambda lib: forward(
    lib, lambda a, b: lib.einsum("ij,jk->ik", a, b), uniform(lib, 4, 4), uniform(lib, 4, 4)), 4)


# ---- positions and order -------------------------------------------------------------------------

def places(lib, count, size):
    """Positions below a size, in no order."""
    return lib.arange(count) * 7_919 % size


layer("embedding of 1,000x64 at 4,096 places", lambda lib: (
    lambda w: lib.nn.functional.embedding(places(lib, 4_096, 1_000), w),
    uniform(lib, 1_000, 64)), 1.5)
layer("embedding of 50,000x64 at 2,048 places", lambda lib: (
    lambda w: lib.nn.functional.embedding(places(lib, 2_048, 50_000), w),
    uniform(lib, 50_000, 64)), 1.5)
plain("index_select, 4,096 rows of 64", lambda lib: forward(
    lib, lambda x, i: x.index_select(0, i), uniform(lib, 1_000, 64), places(lib, 4_096, 1_000)), 1)
plain("gather, 256x256", lambda lib: forward(
    lib, lambda x, i: x.gather(1, i), uniform(lib, 256, 256),
    places(lib, 65_536, 256).reshape(256, 256)), 1)
plain("scatter_add, 256x256", lambda lib: forward(
    lib, lambda x, i, y: x.scatter_add(1, i, y), uniform(lib, 256, 256),
    places(lib, 65_536, 256).reshape(256, 256), uniform(lib, 256, 256, seed=1)), 1)
def distinct(lib, count):
    """Numbers of which no two are equal, in no order."""
    return places(lib, count, count).to(lib.float32)


for name in ("sort", "argsort", "topk"):
    plain(f"{name} of 1 M", lambda lib, name=name: forward(
        lib, {"sort": lambda x: x.sort()[0], "argsort": lambda x: x.argsort(),
              "topk": lambda x: x.topk(100)[0]}[name], distinct(lib, 1 << 20)), 3, "large")


# ---- random numbers ------------------------------------------------------------------------------

def drawn(lib, draw):
    """A step that draws, and returns what does not depend on it."""
    def step():
        return draw() * 0
    return step


plain("dropout of 1 M", lambda lib: drawn(
    lib, lambda x=uniform(lib, 1 << 20): lib.nn.functional.dropout(x, 0.5)[:1]), 2, "large")
plain("randn of 1 M", lambda lib: drawn(lib, lambda: lib.randn(1 << 20)[:1]), 2, "large")
plain("bernoulli of 1 M", lambda lib: drawn(
    lib, lambda p=uniform(lib, 1 << 20, low=0.0): lib.bernoulli(p)[:1]), 2, "large")


# ---- matrices ------------------------------------------------------------------------------------

def definite(lib, *batch, n):
    """Symmetric positive definite matrices, far from singular, with distinct eigenvalues."""
    a = uniform(lib, *batch, n, n, seed=3) / math.sqrt(n)
    return a @ a.mT + lib.diag_embed(lib.arange(1, n + 1) / n + 1.0).to(a.dtype)


MATRICES = {
    "cholesky": lambda lib, a: lib.linalg.cholesky(a),
    "solve": lambda lib, a: lib.linalg.solve(a, a[..., :1]),
    "inv": lambda lib, a: lib.linalg.inv(a),
    "eigh": lambda lib, a: lib.linalg.eigh(a)[0],
    "svd": lambda lib, a: lib.linalg.svd(a)[1],
}
for name, function in MATRICES.items():
    for sizes, target, size in (((BATCH, 8), 2, ""), ((512,), 1, "large")):
        plain(f"{name}, {'x'.join(map(str, (*sizes, sizes[-1])))}", lambda lib, f=function,
              sizes=sizes: forward(lib, lambda a: f(lib, a),
                                   definite(lib, *sizes[:-1], n=sizes[-1])), target, size, 1e-3)
