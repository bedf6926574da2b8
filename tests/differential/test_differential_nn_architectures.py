"""Kinds of models, as scripts for PyTorch have them, trained by both libraries."""

import math

import numpy as np
import pytest
from cases import each
from training import Scripts, assert_same_losses, curve, digits, draw, start

torch = pytest.importorskip("torch")
script = Scripts()


def trained(torch, parameters, compute, steps=8, lr=1e-2, optimizer="Adam", **options):
    """The losses of some steps."""
    optimizer, losses = getattr(torch.optim, optimizer)(parameters, lr=lr, **options), []
    for step in range(steps):
        optimizer.zero_grad()
        loss = compute(step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ---- images --------------------------------------------------------------------------------------

@script
def unet(torch):
    """Down, up and across: double convolutions, transposed ones, and upsampling; Dice loss."""
    nn, F = torch.nn, torch.nn.functional

    class DoubleConv(nn.Module):
        def __init__(self, in_channels, out_channels):
            super().__init__()
            self.double_conv = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
                nn.BatchNorm2d(out_channels), nn.ReLU(inplace=True),
                nn.Conv2d(out_channels, out_channels, kernel_size=3, padding="same"),
                nn.InstanceNorm2d(out_channels, affine=True), nn.LeakyReLU(0.1, inplace=True))

        def forward(self, x):
            return self.double_conv(x)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.inc, self.down1, self.down2 = DoubleConv(1, 3), DoubleConv(3, 4), DoubleConv(4, 4)
            self.pool = nn.MaxPool2d(2)
            self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.up2 = nn.ConvTranspose2d(4, 3, kernel_size=2, stride=2)
            self.conv1, self.conv2 = DoubleConv(8, 4), DoubleConv(6, 3)
            self.outc = nn.Conv2d(3, 1, kernel_size=1)

        def join(self, small, large):
            dy, dx = large.size()[2] - small.size()[2], large.size(3) - small.size(3)
            small = F.pad(small, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            return torch.cat([large, small], dim=1)

        def forward(self, x):
            x1 = self.inc(x)
            x2 = self.down1(self.pool(x1))
            x3 = self.down2(self.pool(x2))
            x = self.conv1(self.join(self.up1(x3), x2))
            return self.outc(self.conv2(self.join(self.up2(x), x1)))

    images = digits(torch, 6, 14)[0]
    masks = (images > 0.9).float()
    model = start(torch, UNet())

    def dice(pred, target, smooth=1.0):
        pred = pred.sigmoid()
        inter = (pred * target).sum(dim=(2, 3))
        total = pred.sum((2, 3)) + target.sum((2, 3))
        return (1 - (2.0 * inter + smooth) / (total + smooth)).mean()

    def compute(step):
        out = model(images)
        return F.binary_cross_entropy_with_logits(out, masks) + dice(out, masks)

    return trained(torch, model.parameters(), compute)


@script
def separable(torch):
    """Blocks as phones have them: depth-wise convolutions, gates over channels, and pools."""
    nn = torch.nn

    class SqueezeExcite(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.pool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Sequential(nn.Linear(channels, 2), nn.ReLU6(), nn.Linear(2, channels),
                                    nn.Hardsigmoid())

        def forward(self, x):
            b, c, _, _ = x.shape
            return x * self.fc(self.pool(x).view(b, c)).view(b, c, 1, 1)

    def block(inp, oup, stride):
        return nn.Sequential(
            nn.Conv2d(inp, inp, 3, stride, 1, groups=inp, bias=False, padding_mode="reflect"),
            nn.BatchNorm2d(inp, momentum=0.01), nn.Hardswish(),
            nn.Conv2d(inp, oup, 1, bias=False), SqueezeExcite(oup))

    images, labels = digits(torch, 12)
    model = start(torch, nn.Sequential(
        nn.Conv2d(1, 4, 3, dilation=2, padding=2), block(4, 6, 2), block(6, 8, 1),
        nn.AvgPool2d(3, 2, 1), nn.LocalResponseNorm(2), nn.AdaptiveMaxPool2d(1),
        nn.Flatten(start_dim=1), nn.Linear(8, 2)))
    return trained(torch, model.parameters(),
                   lambda step: nn.CrossEntropyLoss()(model(images), labels), lr=3e-3)


@script
def vision_transformer(torch):
    """Patches by `unfold`, a token for the class, attention written by hand, and layer scale."""
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads, self.scale = heads, (dim // heads) ** -0.5
            self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
            self.proj = nn.Linear(dim, dim)

        def forward(self, x):
            b, n, c = x.shape
            qkv = self.to_qkv(x).reshape(b, n, 3, self.heads, c // self.heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            attn = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
            return self.proj((attn @ v).transpose(1, 2).reshape(b, n, c))

    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim)
            self.attn = Attention(dim, 2)
            self.mlp = nn.Sequential(nn.Linear(dim, 16), nn.GELU(approximate="tanh"),
                                     nn.Linear(16, dim))
            self.gamma = nn.Parameter(0.1 * torch.ones(dim))

        def forward(self, x):
            x = x + self.gamma * self.attn(self.norm1(x))
            return x + self.gamma * self.mlp(self.norm2(x))

    class ViT(nn.Module):
        def __init__(self, dim=8):
            super().__init__()
            self.embed = nn.Linear(16, dim)
            self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
            self.pos_embed = nn.Parameter(torch.zeros(1, 10, dim))
            self.blocks = nn.ModuleList([Block(dim) for _ in range(2)])
            self.head = nn.Linear(dim, 2)

        def forward(self, x):
            patches = x.unfold(2, 4, 4).unfold(3, 4, 4).flatten(2, 3).flatten(3).squeeze(1)
            x = self.embed(patches)
            x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
            for blk in self.blocks:
                x = blk(x)
            return self.head(x[:, 0])

    images, labels = digits(torch, 12)
    model = start(torch, ViT())
    return trained(torch, model.parameters(), lambda step: torch.nn.functional.cross_entropy(
        model(images), labels), optimizer="AdamW", weight_decay=0.05)


@script
def siamese(torch):
    """Twins with shared weights, under a contrastive, a triplet and a cosine loss."""
    nn, F = torch.nn, torch.nn.functional
    images, labels = digits(torch, 24)
    twin = start(torch, nn.Sequential(
        nn.Conv2d(1, 3, 5), nn.PReLU(), nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
        nn.Flatten(), nn.Linear(75, 4)))

    def compute(step):
        a, b = twin(images[:12]), twin(images[12:])
        same = (labels[:12] == labels[12:]).float()
        distance = F.pairwise_distance(a, b, keepdim=True).squeeze(1)
        contrastive = torch.mean(same * distance.pow(2)
                                 + (1 - same) * torch.clamp(1.0 - distance, min=0.0).pow(2))
        positive, negative = torch.where(same[:, None] > 0, b, a), torch.where(
            same[:, None] > 0, a.roll(1, 0), b)
        return (contrastive + nn.TripletMarginLoss(margin=0.5)(a, positive, negative)
                + nn.CosineEmbeddingLoss(margin=0.1)(a, b, 2 * same - 1))

    return trained(torch, twin.parameters(), compute, lr=3e-3)


@script
def contrasted(torch):
    """Two views of each image, told from all others by normalised products (NT-Xent)."""
    nn, F, rng = torch.nn, torch.nn.functional, np.random.default_rng(12)
    images = digits(torch, 10)[0]
    model = start(torch, nn.Sequential(nn.Flatten(), nn.Linear(144, 16), nn.ELU(),
                                       nn.Linear(16, 6)))

    def compute(step):
        views = [images + 0.1 * draw(torch, rng, *images.shape) for _ in range(2)]
        z = F.normalize(torch.cat([model(view) for view in views]), dim=1)
        sim = z @ z.t() / 0.5
        sim = sim.masked_fill(torch.eye(20, dtype=torch.bool), float("-inf"))
        target = torch.arange(20).roll(10)
        return F.cross_entropy(sim, target)

    return trained(torch, model.parameters(), compute)


@script
def styled(torch):
    """An image, not a model, is fitted by LBFGS: its Gram matrices and contents at two layers."""
    nn, F = torch.nn, torch.nn.functional
    content, style = digits(torch, 2)[0].split(1)
    net = start(torch, nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Conv2d(4, 4, 3)))
    net.requires_grad_(False).eval()

    def gram_matrix(x):
        a, b, c, d = x.size()
        features = x.view(a * b, c * d)
        return torch.mm(features, features.t()).div(a * b * c * d)

    wanted, kept = gram_matrix(net(style)), net(content)
    image = content.clone().requires_grad_(True)
    optimizer, losses = torch.optim.LBFGS([image], max_iter=3, history_size=5), []
    for _ in range(4):
        def closure():
            with torch.no_grad():
                image.clamp_(-1, 2)
            optimizer.zero_grad()
            features = net(image)
            tv = (image[..., 1:] - image[..., :-1]).abs().mean()
            loss = 100 * F.mse_loss(gram_matrix(features), wanted) + F.mse_loss(features, kept)
            (loss + 0.01 * tv).backward()
            losses.append(loss.item())
            return loss + 0.01 * tv
        optimizer.step(closure)
    return losses[1:]


# ---- distributions -------------------------------------------------------------------------------

@script
def quantiles(torch):
    """Three quantiles at once by the pinball loss."""
    nn, rng = torch.nn, np.random.default_rng(13)
    x, y = curve(torch)
    y = y + 0.3 * draw(torch, rng, *y.shape)
    model = start(torch, nn.Sequential(nn.Linear(1, 16), nn.Softplus(), nn.Linear(16, 3)))
    q = torch.tensor([0.1, 0.5, 0.9])

    def compute(step):
        errors = y - model(x)
        return torch.max((q - 1) * errors, q * errors).sum(dim=1).mean()

    return trained(torch, model.parameters(), compute)


@script
def mixture_density(torch):
    """A mixture of normal densities whose parameters a network gives, and distributions of it."""
    nn, D = torch.nn, torch.distributions

    class MDN(nn.Module):
        def __init__(self, hidden=12, count=3):
            super().__init__()
            self.z_h = nn.Sequential(nn.Linear(1, hidden), nn.Tanh())
            self.pi, self.mu, self.sigma = (nn.Linear(hidden, count) for _ in range(3))

        def forward(self, x):
            h = self.z_h(x)
            return nn.functional.softmax(self.pi(h), -1), self.mu(h), torch.exp(self.sigma(h))

    y, x = curve(torch)
    model = start(torch, MDN())

    def compute(step):
        pi, mu, sigma = model(x)
        if step % 2:
            mixed = D.MixtureSameFamily(D.Categorical(pi), D.Normal(mu, sigma))
            return -mixed.log_prob(y.squeeze(-1)).mean()
        density = torch.exp(-0.5 * ((y - mu) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
        return -torch.log(torch.sum(pi * density, dim=1) + 1e-9).mean()

    return trained(torch, model.parameters(), compute)


@script
def flow(torch):
    """A normalising flow of affine couplings, in likelihood; backwards it gives its input."""
    nn, rng = torch.nn, np.random.default_rng(14)

    class Coupling(nn.Module):
        def __init__(self, mask):
            super().__init__()
            self.register_buffer("mask", mask)
            self.scale = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2), nn.Tanh())
            self.shift = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2))

        def forward(self, x):
            kept = x * self.mask
            s, t = self.scale(kept) * (1 - self.mask), self.shift(kept) * (1 - self.mask)
            return kept + (1 - self.mask) * (x * s.exp() + t), s.sum(dim=1)

        def inverse(self, z):
            kept = z * self.mask
            s, t = self.scale(kept) * (1 - self.mask), self.shift(kept) * (1 - self.mask)
            return kept + (1 - self.mask) * ((z - t) * torch.exp(-s))

    masks = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(2, 1)
    layers = start(torch, nn.ModuleList(Coupling(m) for m in masks))
    prior = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    x = draw(torch, rng, 40, 2)
    x = torch.stack([x[:, 0], x[:, 0] ** 2 + 0.3 * x[:, 1]], dim=1)

    def compute(step):
        z, total = x, torch.zeros(len(x))
        for layer in layers:
            z, logdet = layer(z)
            total = total + logdet
        back = z
        for layer in reversed(layers):
            back = layer.inverse(back)
        assert torch.allclose(back, x, atol=1e-4)
        return -(prior.log_prob(z) + total).mean()

    return trained(torch, layers.parameters(), compute)


@script
def diffusion(torch):
    """Noise that a network takes away again, over a schedule that buffers keep."""
    nn, rng = torch.nn, np.random.default_rng(15)

    class Diffusion(nn.Module):
        def __init__(self, steps=20):
            super().__init__()
            betas = torch.linspace(1e-4, 0.2, steps)
            self.register_buffer("alpha_bar", torch.cumprod(1 - betas, dim=0), persistent=False)
            self.embed = nn.Embedding(steps, 4)
            self.net = nn.Sequential(nn.Linear(6, 24), nn.Mish(), nn.Linear(24, 2))

        def forward(self, x, t):
            return self.net(torch.cat([x, self.embed(t)], dim=-1))

    model = start(torch, Diffusion())
    assert "alpha_bar" not in model.state_dict()
    angle = torch.tensor(rng.uniform(0, 2 * math.pi, 32).astype(np.float32))
    data = torch.stack((angle.cos(), angle.sin()), -1)

    def compute(step):
        t = torch.as_tensor(rng.integers(0, 20, 32))
        noise = draw(torch, rng, 32, 2)
        bar = model.alpha_bar[t].unsqueeze(-1)
        noisy = bar.sqrt() * data + (1 - bar).sqrt() * noise
        return nn.functional.mse_loss(model(noisy, t), noise)

    return trained(torch, model.parameters(), compute)


@script
def wasserstein(torch):
    """A critic with a penalty on the gradient between what is real and what is drawn."""
    nn, rng = torch.nn, np.random.default_rng(16)
    G, D = start(torch, nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)),
                 nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))
    opt_g = torch.optim.Adam(G.parameters(), lr=1e-2, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(D.parameters(), lr=1e-2, betas=(0.0, 0.9))
    losses, real = [], draw(torch, rng, 16, 2) + 2
    for step in range(9):
        fake = G(draw(torch, rng, 16, 3))
        eps = torch.from_numpy(rng.uniform(size=(16, 1))).float()
        between = (eps * real + (1 - eps) * fake.detach()).requires_grad_(True)
        grads = torch.autograd.grad(
            outputs=D(between), inputs=between, grad_outputs=torch.ones(16, 1),
            create_graph=True, retain_graph=True)[0]
        penalty = ((grads.norm(2, dim=1) - 1) ** 2).mean()
        loss_d = D(fake.detach()).mean() - D(real).mean() + 10 * penalty
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        losses.append(loss_d.item())
        if step % 3 == 2:
            for p in D.parameters():
                p.requires_grad_(False)
            loss_g = -D(G(draw(torch, rng, 16, 3))).mean()
            opt_g.zero_grad()
            loss_g.backward()
            opt_g.step()
            D.requires_grad_(True)
            losses.append(loss_g.item())
    return losses


@each("script", script, ids=lambda script: script.__name__)
def test_a_script_reaches_the_same_losses(script):
    assert_same_losses(script, torch)
