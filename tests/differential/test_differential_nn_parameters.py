"""What scripts for PyTorch do to parameters and gradients, run by both libraries."""

import itertools

import pytest
from training import Scripts, assert_same_losses, curve, digits, small_net, start

torch = pytest.importorskip("torch")
script = Scripts()


@script
def transferred(torch):
    """A body that is frozen, a new head, then a slower rate for the body; hooks on gradients."""
    nn = torch.nn
    images, labels = digits(torch)
    model, seen = small_net(torch), []
    for name, param in model.named_parameters():
        param.requires_grad = not name.startswith("fc1")
    model.fc2 = start(torch, nn.Linear(model.fc2.in_features, 2))
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    model.act.register_full_backward_hook(
        lambda module, grad_in, grad_out: seen.append(grad_out[0].norm().item()))
    model.fc2.weight.register_hook(lambda grad: grad.clamp(-0.02, 0.02))
    losses = []
    for step in range(10):
        if step == 5:
            model.fc1.requires_grad_(True)
            optimizer.add_param_group({"params": model.fc1.parameters(), "lr": 0.02})
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert len(seen) == 5
    return losses + seen


@script
def reparametrized(torch):
    """Weights by weight norm, spectral norm, orthogonality, and a parametrization of its own."""
    nn = torch.nn
    parametrize, kinds = nn.utils.parametrize, nn.utils.parametrizations

    class Symmetric(nn.Module):
        def forward(self, X):
            return X.triu() + X.triu(1).transpose(-1, -2)

        def right_inverse(self, A):
            return A.triu()

    x, y = curve(torch)
    layers = start(torch, nn.Sequential(
        nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(),
        nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1)))
    kinds.weight_norm(layers[0])
    parametrize.register_parametrization(layers[2], "weight", Symmetric())
    kinds.orthogonal(layers[4], orthogonal_map="cayley")
    kinds.spectral_norm(layers[6])
    with torch.no_grad():
        norm = layers[6].parametrizations.weight[0]
        norm._u.copy_(torch.ones(6) / 6 ** 0.5)
        norm._v.copy_(torch.ones(6) / 6 ** 0.5)
    optimizer, losses = torch.optim.Adam(layers.parameters(), lr=1e-2), []
    for _ in range(10):
        optimizer.zero_grad()
        with parametrize.cached():
            loss = nn.functional.smooth_l1_loss(layers(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert torch.allclose(layers[2].weight, layers[2].weight.T)
    parametrize.remove_parametrizations(layers[2], "weight")
    assert not parametrize.is_parametrized(layers[2])
    return losses + [layers(x).abs().sum().item()]


@script
def own_function(torch):
    """A layer by an autograd.Function with saved tensors, and a straight-through one."""
    nn = torch.nn

    class LinearFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weight, bias=None):
            ctx.save_for_backward(input, weight, bias)
            output = input.mm(weight.t())
            if bias is not None:
                output += bias.unsqueeze(0).expand_as(output)
            return output

        @staticmethod
        def backward(ctx, grad_output):
            input, weight, bias = ctx.saved_tensors
            grad_input = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_input = grad_output.mm(weight)
            if ctx.needs_input_grad[1]:
                grad_weight = grad_output.t().mm(input)
            if bias is not None and ctx.needs_input_grad[2]:
                grad_bias = grad_output.sum(0)
            return grad_input, grad_weight, grad_bias

    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, levels):
            return torch.round(x * levels) / levels

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, None

    class MyLinear(nn.Module):
        def __init__(self, input_features, output_features, bias=True):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(output_features, input_features))
            if bias:
                self.bias = nn.Parameter(torch.empty(output_features))
            else:
                self.register_parameter("bias", None)

        def forward(self, input):
            return LinearFunction.apply(input, self.weight, self.bias)

        def extra_repr(self):
            return f"bias={self.bias is not None}"

    x, y = curve(torch)
    model = start(torch, nn.Sequential(MyLinear(1, 12), nn.Hardtanh(), MyLinear(12, 1, False)))
    optimizer, losses = torch.optim.Adagrad(model.parameters(), lr=0.05), []
    for _ in range(12):
        optimizer.zero_grad()
        loss = (Rounded.apply(model(x), 50) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@script
def mixed_precision(torch):
    """The loop of mixed precision, with what it does where there is no GPU: nothing."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    use_amp = device == "cuda"
    images, labels = digits(torch)
    model = small_net(torch).to(device)
    if torch.cuda.device_count() > 1:
        model = torch.nn.DataParallel(model)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    scaler = torch.amp.GradScaler(device, enabled=use_amp)
    torch.backends.cudnn.benchmark = True
    for _ in range(6):
        with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=use_amp):
            output = model(images.to(device, non_blocking=True))
            loss = torch.nn.functional.cross_entropy(output, labels.to(device))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    torch.backends.cudnn.benchmark = False
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return losses


@script
def recomputed(torch):
    """Blocks that are computed again in the backward pass, one by one and in sequence."""
    nn, checkpoint = torch.nn, torch.utils.checkpoint
    x, y = curve(torch)
    blocks = start(torch, nn.Sequential(
        *[nn.Sequential(nn.Linear(i, 8), nn.SiLU()) for i in (1, 8, 8, 8)]))
    head = start(torch, nn.Linear(8, 1))
    optimizer, losses = torch.optim.NAdam(
        itertools.chain(blocks.parameters(), head.parameters()), lr=1e-2), []
    for step in range(8):
        optimizer.zero_grad()
        if step % 2:
            h = checkpoint.checkpoint_sequential(blocks, 2, x, use_reentrant=False)
        else:
            h = x
            for block in blocks:
                h = checkpoint.checkpoint(block, h, use_reentrant=False, preserve_rng_state=True)
        loss = nn.functional.mse_loss(head(h), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("script", script, ids=lambda script: script.__name__)
def test_a_script_reaches_the_same_losses(script):
    assert_same_losses(script, torch)
