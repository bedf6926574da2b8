"""Small programs as tutorials on PyTorch have them. Each takes the library and returns numbers."""

import math


def values(torch, *shape, shift=0.0, scale=1.0):
    """Numbers without a pattern, the same in both libraries."""
    count = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(count * 1.7 + shift).reshape(*shape) * scale


def parameter(torch, *shape, **given):
    return values(torch, *shape, **given).requires_grad_()


def training_loop(torch):
    x, y = values(torch, 20, 3), values(torch, 20, 1, shift=1.0)
    w1, w2 = parameter(torch, 3, 8, scale=0.5), parameter(torch, 8, 1, shift=2.0)
    b1 = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    losses = []
    for _ in range(30):
        loss = ((torch.relu(x @ w1 + b1) @ w2 - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w1, b1, w2):
                p -= 0.1 * p.grad
                p.grad.zero_()
        losses.append(loss.item())
    return losses


def adam(torch):
    x = parameter(torch, 5)
    m, v = torch.zeros_like(x), torch.zeros_like(x)
    for t in range(1, 40):
        loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        (g,) = torch.autograd.grad(loss, x)
        m.lerp_(g, 0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        with torch.no_grad():
            step = (v / (1 - 0.999**t)).sqrt().add_(1e-8)
            x.addcdiv_(m / (1 - 0.9**t), step, value=-0.05)
    return [loss.item(), *x.tolist()]


def gradient_penalty(torch):
    real, fake = values(torch, 6, 4), values(torch, 6, 4, shift=3.0)
    alpha = torch.sigmoid(values(torch, 6, 1))
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    w = parameter(torch, 4, 4)
    score = torch.tanh(mixed @ w).sum(1)
    slopes = torch.autograd.grad(
        outputs=score, inputs=mixed, grad_outputs=torch.ones_like(score), create_graph=True,
        retain_graph=True, only_inputs=True)[0]
    penalty = ((slopes.view(slopes.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()
    penalty.backward()
    return [penalty.item(), *w.grad.flatten().tolist()]


def maml(torch):
    w = torch.tensor([0.5, -0.3], dtype=torch.float64, requires_grad=True)
    total = 0
    for task in range(3):
        x = values(torch, 10, shift=task)
        y = x * (task + 1) + 0.5
        fast = w
        for _ in range(3):
            loss = ((fast[0] * x + fast[1] - y) ** 2).mean()
            (g,) = torch.autograd.grad(loss, fast, create_graph=True)
            fast = fast - 0.1 * g
        total = total + ((fast[0] * x + fast[1] - y) ** 2).mean()
    total.backward()
    return [total.item(), *w.grad.tolist()]


def newton_by_conjugate_gradients(torch):
    x = parameter(torch, 6)
    f = (x**4).sum() + (x[1:] * x[:-1]).sum() + 3 * (x**2).sum()
    (g,) = torch.autograd.grad(f, x, create_graph=True)
    r = -g.detach()
    s, p = torch.zeros_like(r), r.clone()
    for _ in range(6):
        (hp,) = torch.autograd.grad(g, x, p, retain_graph=True)
        a = r.dot(r) / p.dot(hp)
        s += a * p
        rest = r - a * hp
        p = rest + (rest.dot(rest) / r.dot(r)) * p
        r = rest
    return s.tolist()


def physics_informed_network(torch):
    params = [parameter(torch, *shape, scale=0.5)
              for shape in ((1, 16), (16,), (16, 16), (16,), (16, 1))]
    w1, b1, w2, b2, w3 = params
    x = torch.linspace(0, 1, 11, dtype=torch.float64).reshape(-1, 1).requires_grad_(True)

    def net(x):
        return torch.tanh(torch.tanh(x @ w1 + b1) @ w2 + b2) @ w3

    losses = []
    for _ in range(5):
        u = net(x)
        ux = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
        uxx = torch.autograd.grad(ux.sum(), x, create_graph=True)[0]
        residual = uxx + torch.pi**2 * torch.sin(torch.pi * x)
        loss = residual.pow(2).mean() + net(x[:1]).pow(2).sum()
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            for p, g in zip(params, grads):
                p.sub_(1e-4 * g)
        losses.append(loss.item())
    return losses


def neural_ode(torch):
    w = parameter(torch, 2, 2)
    y = torch.tensor([1.0, 0.0], dtype=torch.float64)
    path = [y]
    for _ in range(20):
        half = y + 0.05 * torch.tanh(w @ y)
        y = y + 0.1 * torch.tanh(w @ half)
        path.append(y)
    wanted = torch.cos(torch.arange(21, dtype=torch.float64) * 0.1)
    loss = (torch.stack(path)[:, 0] - wanted).abs().sum()
    loss.backward()
    return [loss.item(), *w.grad.flatten().tolist()]


def logistic_regression(torch):
    x, t = values(torch, 30, 2), (values(torch, 30) > 0).double()
    w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    b = torch.zeros((), dtype=torch.float64, requires_grad=True)
    for _ in range(50):
        p = torch.sigmoid(x @ w + b)
        loss = -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).mean()
        w.grad = b.grad = None
        loss.backward()
        w.data.add_(w.grad, alpha=-0.5)
        b.data -= 0.5 * b.grad.data
    return [loss.item(), ((p > 0.5).double() == t).double().mean().item()]


def straight_through(torch):
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sign()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            passed = g.clone()
            passed[x.abs() > 0.8] = 0
            return passed

    x = parameter(torch, 8)
    (Sign.apply(x) * torch.arange(8, dtype=torch.float64)).sum().backward()
    return x.grad.tolist()


def clipping_in_hooks(torch):
    w, seen = parameter(torch, 4, 4), []

    def normalised(g):
        seen.append(g.norm().item())
        return g / g.norm()

    w.register_hook(lambda g: torch.clamp(g, -0.5, 0.5))
    h = (values(torch, 3, 4) @ w).exp()
    h.register_hook(normalised)
    (h**2).sum().backward()
    return [*seen, *w.grad.flatten().tolist()]


def clipping_by_norm(torch):
    params = [parameter(torch, 3, 3, shift=i) for i in range(3)]
    sum((p**3).sum() for p in params).backward()
    total = torch.norm(torch.stack([torch.norm(p.grad.detach(), 2) for p in params]), 2)
    factor = (1.0 / (total + 1e-6)).clamp(max=1.0)
    for p in params:
        p.grad.detach().mul_(factor)
    return [total.item(), *(p.grad.norm().item() for p in params)]


def moving_average(torch):
    w = parameter(torch, 3)
    average = w.detach().clone()
    for i in range(10):
        ((w * values(torch, 3, shift=i)).sum() ** 2).backward()
        with torch.no_grad():
            w.add_(w.grad, alpha=-0.01)
            average.mul_(0.9).add_(w, alpha=0.1)
        w.grad = None
    return average.tolist()


def adversaries(torch):
    maker, judge = parameter(torch, 2, 3), parameter(torch, 3, 1)
    real, losses = values(torch, 8, 3, shift=0.5), []
    for i in range(5):
        fake = torch.tanh(values(torch, 8, 2, shift=i) @ maker)
        doubt = torch.log(1 - torch.sigmoid(fake.detach() @ judge))
        loss = -(torch.log(torch.sigmoid(real @ judge)) + doubt).mean()
        judge.grad = None
        loss.backward()
        with torch.no_grad():
            judge -= 0.1 * judge.grad
        deceit = -torch.log(torch.sigmoid(fake @ judge)).mean()
        maker.grad = None
        deceit.backward()
        with torch.no_grad():
            maker -= 0.1 * maker.grad
        losses += [loss.item(), deceit.item()]
    return losses


def truncated_sequences(torch):
    w, total = parameter(torch, 3, 3, scale=0.5), 0.0
    h = torch.zeros(3, dtype=torch.float64)
    for t in range(9):
        h = torch.tanh(w @ h + values(torch, 3, shift=t))
        if t % 3 == 2:
            loss = h.pow(2).sum()
            loss.backward()
            total += loss.item()
            h = h.detach()
    return [total, *w.grad.flatten().tolist()]


def jacobians(torch):
    def f(x):
        return torch.stack([x.prod(), (x**2).sum(), x[0].sin()])

    def loss(w, x):
        return (w * x).sum() ** 2

    x, functional = values(torch, 3), torch.autograd.functional
    per_example = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))
    return [
        *functional.jacobian(f, x).flatten().tolist(),
        *functional.hessian(lambda x: x.prod() * x.sum(), x).flatten().tolist(),
        *functional.vjp(f, x, torch.ones(3, dtype=torch.float64))[1].tolist(),
        *per_example(x, values(torch, 5, 3)).flatten().tolist()]


def cross_entropy(torch):
    logits, target = parameter(torch, 6, 4), torch.tensor([0, 1, 2, 3, 0, 1])
    logs = logits - logits.logsumexp(1, keepdim=True)
    loss = -logs[torch.arange(6), target].mean()
    picked = torch.log_softmax(logits, dim=1).gather(1, target.unsqueeze(1)).squeeze(1)
    (loss - 2 * picked.mean()).backward()
    return [loss.item(), *logits.grad.flatten().tolist()]


def attention(torch):
    q, k, v = (parameter(torch, 2, 5, 4, shift=i) for i in range(3))
    scores = q @ k.transpose(-2, -1) / math.sqrt(4)
    later = torch.tril(torch.ones(5, 5)).bool().logical_not()
    scores = scores.masked_fill_(later, -torch.inf)
    (torch.softmax(scores, -1) @ v).pow(2).sum().backward()
    return [x.grad.norm().item() for x in (q, k, v)]


def normalisation(torch):
    x = parameter(torch, 8, 3)
    gain, running = torch.ones(3, dtype=torch.float64, requires_grad=True), torch.zeros(3)
    mean, var = x.mean(0), x.var(0, unbiased=False)
    with torch.no_grad():
        running.copy_(0.9 * running + 0.1 * mean)
    (((x - mean) / torch.sqrt(var + 1e-5) * gain) ** 3).sum().backward()
    return [*x.grad.flatten().tolist(), *gain.grad.tolist(), *running.tolist()]


def line_search(torch):
    def f(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    x = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    eye = torch.eye(2, dtype=torch.float64)
    inverse = eye.clone()
    for _ in range(15):
        (g,) = torch.autograd.grad(f(x), x)
        d, t = -inverse @ g, 1.0
        while f(x.detach() + t * d) > f(x).item() + 1e-4 * t * g.dot(d):
            t /= 2
        new = (x.detach() + t * d).requires_grad_()
        y = torch.autograd.grad(f(new), new)[0] - g
        r = 1 / y.dot(t * d)
        turn = eye - r * torch.outer(t * d, y)
        inverse = turn @ inverse @ turn.T + r * torch.outer(t * d, t * d)
        x = new
    return x.tolist()


def policy_gradient(torch):
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    reward = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    for i in range(10):
        logs = logits.log_softmax(0)
        gain = reward[i % 3] - (logs.exp().detach() * reward).sum()
        logits.grad = None
        (-logs[i % 3] * gain).backward()
        logits.data = logits.data - 0.3 * logits.grad
    return logits.tolist()


def recurrence_written_in_place(torch):
    w, rows = parameter(torch, 4, scale=0.5), torch.zeros(6, 4, dtype=torch.float64)
    rows[0] = w
    for i in range(1, 6):
        rows[i] = torch.tanh(rows[i - 1].clone() * w)
    rows[2:4].mul_(2)
    rows.index_add_(0, torch.tensor([0, 5]), values(torch, 2, 4) * w)
    rows.t_().sum(1).pow(2).sum().backward()
    return w.grad.tolist()


def writes_into_views(torch):
    x = parameter(torch, 4, 4)
    y = x * 1
    rows, column = y[1:3], y[1:3][:, 0]
    column.mul_(3)
    rows.add_(1)
    y[0] = 0.0
    y[y > 0.5] = 0.1
    y.diagonal().zero_()
    y.pow(2).sum().backward()
    return x.grad.flatten().tolist()


def saved_values_through_hooks(torch):
    seen = []

    def pack(x):
        seen.append(float(x.numel()))
        return x * 2

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x / 2):
        x = parameter(torch, 5)
        y = (x.exp() * x).sum()
    y.backward()
    return [*seen, *x.grad.tolist()]


def momentum(torch):
    params = [parameter(torch, 3, shift=i) for i in range(3)]
    speeds = [torch.zeros_like(p) for p in params]
    for _ in range(5):
        for p in params:
            p.grad = None
        sum((p**2).sum() for p in params).backward()
        with torch.no_grad():
            for p, v in zip(params, speeds):
                v.mul_(0.9).add_(p.grad)
                p.add_(v, alpha=-0.1)
    return [value for p in params for value in p.tolist()]


def fisher_information(torch):
    logits = parameter(torch, 3)
    logs, total = torch.log_softmax(logits, 0), torch.zeros(3, 3, dtype=torch.float64)
    for k in range(3):
        (g,) = torch.autograd.grad(logs[k], logits, retain_graph=True)
        total += logs[k].exp().detach() * torch.outer(g, g)
    return total.flatten().tolist()


def derivatives_of_derivatives(torch):
    def f(x):
        return torch.exp(-(x**2).sum())

    x, functional = values(torch, 4), torch.autograd.functional
    ones = torch.ones(4, dtype=torch.float64)
    return [
        torch.trace(torch.func.hessian(f)(x)).item(),
        torch.trace(torch.func.jacfwd(torch.func.grad(f))(x)).item(),
        *functional.hvp(f, x, ones)[1].tolist(), *functional.vhp(f, x, ones)[1].tolist(),
        functional.jvp(f, x, ones)[1].item()]


def gradients_of_parameters(torch):
    def loss(params, x):
        return ((x @ params["w"] + params["b"]) ** 2).sum()

    params = {"w": values(torch, 2, 2), "b": values(torch, 2)}
    grads, value = torch.func.grad_and_value(loss)(params, values(torch, 3, 2))
    return [value.item(), *grads["w"].flatten().tolist(), *grads["b"].tolist()]


def wave_equation(torch):
    """A simulation through which the initial state is learnt."""
    start = parameter(torch, 8)
    now = before = start
    for _ in range(6):
        bend = now.roll(1, 0) - 2 * now + now.roll(-1, 0)
        now, before = 2 * now - before + 0.2 * bend, now
    ((now - now.flip(0)) ** 2).sum().backward()
    return start.grad.tolist()


SCRIPTS = [
    training_loop, adam, gradient_penalty, maml, newton_by_conjugate_gradients,
    physics_informed_network, neural_ode, logistic_regression, straight_through, clipping_in_hooks,
    clipping_by_norm, moving_average, adversaries, truncated_sequences, jacobians, cross_entropy,
    attention, normalisation, line_search, policy_gradient, recurrence_written_in_place,
    writes_into_views, saved_values_through_hooks, momentum, fisher_information,
    derivatives_of_derivatives, gradients_of_parameters, wave_equation]
