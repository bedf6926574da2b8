"""Training scripts in the manner of PyTorch's tutorials, run by both libraries.

Each takes the library as `torch`, and gives its losses. They begin with the same parameters, and
what is drawn while they run is drawn by NumPy.
"""

import numpy as np
import pytest
from cases import each
from training import Scripts, assert_same_losses, digits, draw, start


torch = pytest.importorskip("torch")
script = Scripts()


# ---- polynomials ---------------------------------------------------------------------------------

@script
def polynomial(torch):
    """A cubic fitted to a sine by a layer over powers."""
    x = torch.linspace(-3, 3, 200)
    y = torch.sin(x)
    powers = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
    model = start(torch, torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1)))
    loss_fn = torch.nn.MSELoss(reduction="sum")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(60):
        loss = loss_fn(model(powers), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


@script
def polynomial_by_hand(torch):
    """The same, as a module of its own numbers, without an optimiser."""
    class Cubic(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in "abcd":
                setattr(self, name, torch.nn.Parameter(torch.zeros(())))

        def forward(self, x):
            return self.a + self.b * x + self.c * x ** 2 + self.d * x ** 3

        def string(self):
            return f"y = {self.a.item()} + {self.b.item()} x"

    x = torch.linspace(-3, 3, 100)
    model, losses = Cubic(), []
    for _ in range(40):
        loss = (model(x) - torch.sin(x)).pow(2).sum()
        losses.append(loss.item())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for param in model.parameters():
                param -= 1e-5 * param.grad
    assert model.string().startswith("y = ")
    return losses


# ---- classifiers ---------------------------------------------------------------------------------

@script
def perceptron(torch):
    """Layers with dropout in the mode for use, a schedule, and clipped gradients."""
    nn = torch.nn

    class NeuralNetwork(nn.Module):
        def __init__(self):
            super().__init__()
            self.flatten = nn.Flatten()
            self.linear_relu_stack = nn.Sequential(
                nn.Linear(144, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))

        def forward(self, x):
            return self.linear_relu_stack(self.flatten(x))

    images, labels = digits(torch)
    model = start(torch, NeuralNetwork().to("cpu"))
    loss_fn, losses = nn.CrossEntropyLoss(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    for epoch in range(4):
        model.train()
        for batch in range(3):
            part = slice(16 * batch, 16 * batch + 16)
            loss = loss_fn(model(images[part]), labels[part])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            pred = model(images)
            losses.append((pred.argmax(1) == labels).type(torch.float).mean().item())
    return losses


@script
def convolutional(torch):
    """Convolutions, pools and batch normalisation."""
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
            self.norm1 = nn.BatchNorm2d(4)
            self.conv2 = nn.Conv2d(4, 6, 3)
            self.dropout = nn.Dropout2d(0.0)
            self.pool = nn.MaxPool2d(2, 2)
            self.fc1 = nn.Linear(24, 8)
            self.fc2 = nn.Linear(8, 2)

        def forward(self, x):
            x = self.pool(F.relu(self.norm1(self.conv1(x))))
            x = self.dropout(self.pool(F.relu(self.conv2(x))))
            x = torch.flatten(x, 1)
            x = F.relu(self.fc1(x))
            return F.log_softmax(self.fc2(x), dim=1)

    images, labels = digits(torch)
    model = start(torch, Net())
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=3e-3), []
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    for _ in range(12):
        model.train()
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        losses.append(F.nll_loss(model(images), labels, reduction="sum").item())
    return losses


@script
def residual(torch):
    """Blocks of convolutions with a shortcut, first values by `init`, weight decay by groups."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inner, outer, stride=1):
            super().__init__()
            self.conv = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.norm = nn.GroupNorm(2, outer)
            self.act = nn.SiLU(inplace=True)
            self.shortcut = nn.Sequential()
            if stride != 1 or inner != outer:
                self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False))

        def forward(self, x):
            return self.act(self.norm(self.conv(x)) + self.shortcut(x))

    def weights_init(m):
        if isinstance(m, (nn.GroupNorm,)):
            nn.init.constant_(m.weight, 1)
            nn.init.zeros_(m.bias)

    images, labels = digits(torch)
    model = start(torch, nn.Sequential(
        *[Block(*sizes) for sizes in ((1, 4), (4, 6, 2), (6, 6))], nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(6, 2)))
    model.apply(weights_init)
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1},
                                   {"params": rest, "weight_decay": 0.0}], lr=1e-2)
    losses, criterion = [], nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(10):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ---- generators ----------------------------------------------------------------------------------

@script
def variational(torch):
    """An autoencoder whose code is a distribution."""
    nn, F = torch.nn, torch.nn.functional
    rng = np.random.default_rng(3)

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(144, 20)
            self.fc21 = nn.Linear(20, 3)
            self.fc22 = nn.Linear(20, 3)
            self.fc3 = nn.Linear(3, 20)
            self.fc4 = nn.Linear(20, 144)

        def encode(self, x):
            h1 = F.relu(self.fc1(x))
            return self.fc21(h1), self.fc22(h1)

        def reparameterize(self, mu, logvar):
            std = torch.exp(0.5 * logvar)
            return mu + draw(torch, rng, *std.shape) * std

        def decode(self, z):
            return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

        def forward(self, x):
            mu, logvar = self.encode(x.view(-1, 144))
            return self.decode(self.reparameterize(mu, logvar)), mu, logvar

    images = digits(torch)[0].clamp(0, 1)
    model = start(torch, VAE())
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(15):
        optimizer.zero_grad()
        recon, mu, logvar = model(images)
        bce = F.binary_cross_entropy(recon, images.view(-1, 144), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss = bce + kld
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


@script
def adversarial(torch):
    """Two networks against each other, with transposed convolutions."""
    nn, rng = torch.nn, np.random.default_rng(4)
    G = nn.Sequential(
        nn.ConvTranspose2d(5, 4, 3, 1, 0, bias=False), nn.BatchNorm2d(4), nn.ReLU(True),
        nn.ConvTranspose2d(4, 3, 4, 2, 1, bias=False), nn.BatchNorm2d(3), nn.ReLU(True),
        nn.ConvTranspose2d(3, 1, 4, 2, 1, bias=False), nn.Tanh())
    D = nn.Sequential(
        nn.Conv2d(1, 4, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(4, 6, 4, 2, 1, bias=False), nn.BatchNorm2d(6), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(6, 1, 3, 1, 0, bias=False), nn.Sigmoid())
    start(torch, G, D)
    real = digits(torch, 16)[0]
    criterion, losses = nn.BCELoss(), []
    optimizer_d = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_g = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for _ in range(6):
        D.zero_grad()
        label = torch.full((16,), 1.0)
        error_real = criterion(D(real).view(-1), label)
        error_real.backward()
        fake = G(draw(torch, rng, 16, 5, 1, 1))
        label.fill_(0.0)
        error_fake = criterion(D(fake.detach()).view(-1), label)
        error_fake.backward()
        optimizer_d.step()
        G.zero_grad()
        label.fill_(1.0)
        error_g = criterion(D(fake).view(-1), label)
        error_g.backward()
        optimizer_g.step()
        losses += [error_real.item(), error_fake.item(), error_g.item()]
    return losses


@script
def super_resolution(torch):
    """Small images made large by channels laid out as pixels."""
    nn = torch.nn
    model = start(torch, nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.Conv2d(6, 4, 3, padding=1),
        nn.PixelShuffle(2)))
    images = digits(torch, 8)[0]
    small = nn.functional.avg_pool2d(images, 2)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(small), images)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@script
def policy(torch):
    """An actor and a critic that share a layer, on a bandit with two arms."""
    nn, F = torch.nn, torch.nn.functional
    rng = np.random.default_rng(6)

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.affine1 = nn.Linear(4, 16)
            self.action_head = nn.Linear(16, 2)
            self.value_head = nn.Linear(16, 1)
            self.saved_actions = []

        def forward(self, x):
            x = F.relu(self.affine1(x))
            return F.softmax(self.action_head(x), dim=-1), self.value_head(x)

    model = start(torch, Policy())
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=3e-2), []
    for _ in range(15):
        policy_losses, value_losses = [], []
        for _ in range(4):
            state = draw(torch, rng, 4)
            probs, value = model(state)
            action = int(rng.uniform() > probs[0].item())
            reward = float((state[0].item() > 0) == bool(action))
            advantage = reward - value.item()
            policy_losses.append(-torch.log(probs[action]) * advantage)
            value_losses.append(F.smooth_l1_loss(value, torch.tensor([reward])))
        optimizer.zero_grad()
        loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@script
def graph_convolution(torch):
    """Layers over a graph, with parameters drawn by the module itself."""
    nn, F = torch.nn, torch.nn.functional

    class GraphConvolution(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            self.weight = nn.Parameter(torch.FloatTensor(in_features, out_features)
                                       if hasattr(torch, "FloatTensor")
                                       else torch.empty(in_features, out_features))
            self.bias = nn.parameter.Parameter(torch.empty(out_features))
            self.reset_parameters()

        def reset_parameters(self):
            stdv = 1.0 / self.weight.size(1) ** 0.5
            self.weight.data.uniform_(-stdv, stdv)
            self.bias.data.uniform_(-stdv, stdv)

        def forward(self, input, adjacency):
            return torch.mm(adjacency, torch.mm(input, self.weight)) + self.bias

        def __repr__(self):
            return f"{self.__class__.__name__} ({self.weight.shape[0]})"

    class GCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.gc1, self.gc2 = GraphConvolution(5, 8), GraphConvolution(8, 3)

        def forward(self, x, adjacency):
            return F.log_softmax(self.gc2(F.relu(self.gc1(x, adjacency)), adjacency), dim=1)

    rng = np.random.default_rng(7)
    links = (rng.uniform(size=(12, 12)) < 0.3).astype(np.float32) + np.eye(12, dtype=np.float32)
    adjacency = torch.tensor(links / links.sum(1, keepdims=True))
    features, labels = draw(torch, rng, 12, 5), torch.tensor(rng.integers(0, 3, 12))
    model = GCN()
    assert repr(model) == ("GCN(\n  (gc1): GraphConvolution (5)\n"
                           "  (gc2): GraphConvolution (8)\n)")
    start(torch, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = F.nll_loss(model(features, adjacency)[:8], labels[:8])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@each("script", script, ids=lambda script: script.__name__)
def test_a_script_reaches_the_same_losses(script):
    assert_same_losses(script, torch)
