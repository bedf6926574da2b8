# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- autograd.set_detect_anomaly (raises)
x = tl.tensor(-1.0, requires_grad=True)
with tl.autograd.set_detect_anomaly(True):
    x.sqrt().backward()
# ---- autograd.set_multithreading_enabled
with tl.autograd.set_multithreading_enabled(False):
    tl.tensor(1.0, requires_grad=True).exp().backward()
# ---- autograd.function.FunctionCtx
class Cube(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):                # ctx is a FunctionCtx
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 3 * x ** 2
x = tl.tensor(2.0, requires_grad=True)
Cube.apply(x).backward()
x.grad
# ---- autograd.function.once_differentiable
from tensorlib.autograd.function import once_differentiable
class Negative(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return -x
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return tl.tensor(-g.numpy())    # NumPy is no part of a graph
x = tl.tensor(2.0, requires_grad=True)
Negative.apply(x).backward()
x.grad
# ---- autograd.graph.GradientEdge
from tensorlib.autograd.graph import get_gradient_edge
x = tl.tensor(2.0, requires_grad=True)
y = x.exp()
edge = get_gradient_edge(y)             # y itself need not be kept
edge.node.name(), edge.output_nr
tl.autograd.grad(3 * y, edge)
# ---- autograd.graph.Node
x = tl.tensor(2.0, requires_grad=True)
node = (x.exp() * 3).grad_fn
node.name(), node.next_functions
# ---- autograd.graph.save_on_cpu
x = tl.tensor(2.0, requires_grad=True)
with tl.autograd.graph.save_on_cpu():
    y = x.exp()
y.backward()
x.grad
# ---- autograd.forward_ad.enter_dual_level autograd.forward_ad.exit_dual_level
from tensorlib.autograd import forward_ad as fwAD
level = fwAD.enter_dual_level()
x = fwAD.make_dual(tl.tensor(2.0), tl.tensor(1.0))
fwAD.unpack_dual(x ** 3)
fwAD.exit_dual_level()
# ---- autograd.forward_ad.make_dual autograd.forward_ad.unpack_dual
# ---- autograd.forward_ad.UnpackedDualTensor
from tensorlib.autograd import forward_ad as fwAD
with fwAD.dual_level():
    x = fwAD.make_dual(tl.tensor(2.0), tl.tensor(1.0))
    fwAD.unpack_dual(x ** 3)            # the value, and the derivative 3 * 2 ** 2
# ---- ops.composite
from tensorlib import ops
@ops.composite()
def centred(x):
    """The elements without their mean."""
    return x - x.mean()
tl.autograd.functional.jacobian(centred, tl.tensor([1.0, 3.0]))
# ---- ops.elementwise
import numpy as np
from tensorlib import ops
@ops.elementwise(reference=np.cbrt, to_float=True)
def cube_root(x):
    """The cube root of each element."""
@cube_root.deriv
def cube_root_deriv(out):
    return 1 / (3 * out * out)
x = tl.tensor([8.0, -1.0], requires_grad=True)
y = cube_root(x)
y.sum().backward()
y, x.grad
# ---- ops.op ops.Op
from tensorlib import ops
@ops.op(linear=True)
def reversed_rows(x: tl.Tensor):
    """The rows in reverse order."""
    return x.flip(0)
@reversed_rows.vjp("x")
def reversed_rows_vjp(g):
    return reversed_rows(g)
x = tl.tensor([1.0, 2.0, 3.0], requires_grad=True)
(reversed_rows(x) * tl.tensor([1.0, 10.0, 100.0])).sum().backward()
x.grad
reversed_rows.op.name, type(reversed_rows.op).__name__
# ---- ops.defvjp
from tensorlib import ops
@ops.primitive
def product(x, y):
    return tl.tensor(x.numpy() * y.numpy())     # NumPy, of which no graph knows
ops.defvjp(product, lambda g, out, x, y: g * y, lambda g, out, x, y: g * x)
x = tl.tensor(3.0, requires_grad=True)
product(x, tl.tensor(5.0)).backward()
x.grad
# ---- ops.defjvp
from tensorlib import ops
@ops.primitive
def second_power(x):
    return tl.tensor(x.numpy() ** 2)
ops.defjvp(second_power, lambda dx, out, x: 2 * x * dx)
tl.func.jvp(second_power, (tl.tensor(3.0),), (tl.tensor(1.0),))
# ---- ops.Tensors
from tensorlib import ops
@ops.op(differentiable=False)
def longest(tensors: ops.Tensors()):
    """The number of elements of the longest tensor."""
    return tl.tensor(max(len(x) for x in tensors))
longest([tl.ones(2), tl.ones(5)])
# ---- ops.Call ops.GradOp
from tensorlib import ops
called = ops.call("tanh", tl.tensor([0.0, 1.0]))    # a Call
called.op.name, called.outputs
back = ops.build_grad_op(called)        # a GradOp: g * (1 - tanh ** 2)
back(tl.ones(2))
# ---- graph.draw
x = tl.tensor([1.0, 2.0], requires_grad=True)
loss = (x.exp() * x).sum()
print(tl.graph.dot(loss, {"x": x}))     # draw writes this as a picture, by Graphviz
# ---- graph.Summary
x = tl.tensor([1.0, 2.0], requires_grad=True)
found = tl.graph.summary((x.exp() * x).sum())
found.nodes, found.depth, found.saved_bytes
found.by_operation
# ---- utils.checkpoint.noop_context_fn
from tensorlib.utils.checkpoint import checkpoint, noop_context_fn
x = tl.tensor(2.0, requires_grad=True)
checkpoint(tl.exp, x, use_reentrant=False, context_fn=noop_context_fn).backward()
x.grad
# ---- utils.checkpoint.CheckpointError (raises)
from tensorlib.utils.checkpoint import checkpoint
runs = []
def changing(x):
    runs.append(x)
    return x.exp() if len(runs) == 1 else x.exp().sin()
y = checkpoint(changing, tl.tensor(2.0, requires_grad=True), use_reentrant=False)
y.backward()
# ---- amp.custom_fwd amp.custom_bwd
class Doubled(tl.autograd.Function):
    @staticmethod
    @tl.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    @tl.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        return 2 * g
x = tl.tensor(1.0, requires_grad=True)
Doubled.apply(x).backward()
x.grad
# ---- amp.is_autocast_available
tl.amp.is_autocast_available("cpu"), tl.amp.is_autocast_available("cuda")
# ---- testing.GradcheckError (raises)
class Wrong(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x ** 2
    @staticmethod
    def backward(ctx, g):
        return g                        # the factor 2 * x is missing
tl.testing.gradcheck(Wrong.apply, tl.tensor([2.0], dtype=tl.float64, requires_grad=True))
# ---- program.Program program.program_guard program.parameter
from tensorlib import program
with program.Program() as p:
    x = program.data("x", (None, 2))
    w = program.parameter("w", [[1.0], [2.0]])
    y = x @ w
p.run({"x": tl.ones(3, 2)}, y)
# ---- program.Block program.OpCall program.Variable
from tensorlib import program
p = program.trace(lambda x: (x * 2).exp(), tl.ones(2))
p.block.ops
p.block.variables
# ---- program.BranchMismatch (raises)
from tensorlib import program
def branches(x):
    return tl.cond(x.sum() > 0, lambda: x, lambda: x.sum())
program.trace(branches, tl.ones(2))
# ---- program.CaptureError (raises)
from tensorlib import program
program.trace(lambda x: x if x.sum() > 0 else -x, tl.ones(2))
# ---- program.minimize
from tensorlib import optim, program
with program.Program() as p:
    x = program.data("x", (2,))
    w = program.parameter("w", [1.0, 1.0])
    loss = (w - x).square().sum()
    _ = program.minimize(loss, optim.SGD(p.parameters(), lr=0.25))
[p.run({"x": tl.tensor([3.0, 5.0])}, loss).item() for step in range(3)]
# ---- program.ProgramError (raises)
from tensorlib import program
program.parse("program(x) -> y:\n    input x: float32[2]\n    y: float32[2] = exp(z)\n")
# ---- program.save
from tensorlib import program
p = program.trace(lambda x: (x * 2).exp(), tl.ones(2))
program.save(p, "double.program")
program.load("double.program")(tl.zeros(2))
# ---- program.verify (raises)
from tensorlib import program
p = program.trace(lambda x: (x * 2).exp(), tl.ones(2))
program.verify(p)                       # nothing is wrong
del p.block.ops[0]
program.verify(p)
