"""Small programs that work, as texts: what threads run side by side and allocations fail in."""

PROGRAMS = [
    "tl.ones(3, 4) + tl.ones(4)",
    "(tl.rand(30, 40) * 2).sum(0).mean()",
    "tl.rand(3, 4, requires_grad=True).tanh().sum().backward()",
    "(lambda x: (x * x + x.sin()).sum().backward())(tl.rand(50, requires_grad=True))",
    "tl.cat([tl.ones(2, 3), tl.zeros(1, 3)]).T.reshape(-1)",
    "tl.stack([tl.ones(3)] * 20).flip(0)[1:, [0, 2]]",
    "tl.rand(5, 6)[tl.tensor([0, 4, 2]), 1:].clone()",
    "tl.rand(5, 6)[tl.rand(5, 6) > 0.5]",
    "(lambda x: x.__setitem__((slice(1, 3), [0, 1]), 7.0))(tl.zeros(4, 4))",
    "(lambda x: x.mul_(2).add_(x).t_())(tl.rand(3, 5))",
    "tl.rand(20, 30) @ tl.rand(30, 10)",
    "(lambda w: (w @ w.T).softmax(1).log().sum().backward())(tl.rand(4, 6, requires_grad=True))",
    "(lambda w: (w * 2)[0].mul_(3).sum().backward())(tl.rand(4, 6, requires_grad=True))",
    "tl.rand(4, 5, 6).permute(2, 0, 1).max(1)",
    "tl.rand(100).cumsum(0).argmax()",
    "tl.arange(10.).repeat(3, 2).var(1)",
    "tl.rand(3, 4).gather(1, tl.tensor([[0, 1], [2, 3], [1, 1]]))",
    "tl.tensor([[1, 2], [3, 4]]).tolist()",
    "repr(tl.rand(3, 4))",
    "tl.rand(2, 1, 2, 1, 2, 1, 2, requires_grad=True).sum((0, 2)).sum().backward()",
    "tl.from_numpy(np.ones((3, 4)))[::2].numpy()",
    "np.asarray(tl.ones(4)) + np.concatenate([tl.ones(2), tl.zeros(2)])",
    "pickle.loads(pickle.dumps(tl.rand(3, 4)))",
    "tl.func.grad(lambda x: (x ** 3).sum())(tl.rand(5))",
    "tl.func.vmap(lambda x: x.sin().sum())(tl.rand(3, 5))",
    "tl.func.jvp(lambda x: x.exp(), (tl.rand(3),), (tl.ones(3),))",
    "tl.autograd.grad((lambda x: (x * x).prod())(LEAF), LEAF, create_graph=True)",
    "tl.autograd.functional.hessian(lambda x: (x ** 3).sum(), tl.rand(3))",
    "tl.rand(3, 4).index_add(0, tl.tensor([0, 2]), tl.ones(2, 4))",
    "tl.rand(200000).add(1).sum()",
    "tl.where(tl.rand(6) > 0.5, tl.ones(6), 0.0).cumsum(0)",
    "tl.tril_indices(3, 3).to(tl.float32).split(2, dim=1)",
    "(lambda x: x.register_hook(lambda g: g * 2) and (x * x).sum().backward())(LEAF)",
    "tl.ones(3).to(tl.bfloat16).add(1).item() if False else tl.ones(1).item()",
    "tl.rand(3, 4).unbind(0)",
    "ops.build_grad_op(ops.call('mul', tl.ones(2), tl.ones(2)))(tl.ones(2))",
]

LEAF = "tl.rand(4, requires_grad=True)"


def text_of(program):
    """The program with a leaf of its own."""
    return f"(lambda LEAF: {program})({LEAF})"


# What threads do to tensors x, y and the list z that all of them have.
STEPS = [
    "x.add_(1)", "x.mul_(0.5)", "y = x[1:]", "y = x.T", "x[x > 0.5]", "x[0] = 1.0",
    "(x.detach().requires_grad_() * 2).sum().backward()", "z.append((x * y.sum()).clone())",
    "z and z.pop()", "x.data = tl.rand(4, 5)", "x.t_()",
    "tl.cat([x, x])", "w.grad = None", "(w * x.sum()).sum().backward()",
    "repr(x)", "x.numpy().sum()", "gc.collect()", "tl.memory.empty_cache()", "x.unsqueeze_(0)",
    "x.squeeze_()", "tl.set_num_threads(rng.choice([1, 2, 3]))", "tl.rand(30000).add(1).sum()",
    "v = w * 2", "v.sum().backward()", "h = w.register_hook(lambda g: g * 1)", "h.remove()",
    "x.zero_()", "pickle.dumps(x)", "copy.copy(w)", "z.clear()", "x @ x.T", "x.sum(0)",
    "loss.backward(retain_graph=True)", "x.softmax(0)", "tl.stack([x, x])", "x.tolist()",
    "y = loss.detach()", "v.mul_(2)", "v[0].add_(1)", "tl.manual_seed(3)", "tl.randn(5)",
]
