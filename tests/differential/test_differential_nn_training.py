"""Ways of training, as scripts for PyTorch have them, run by both libraries.

Each takes the library as `torch`, and gives its losses. They begin with the same parameters, and
what is drawn while they run is drawn by NumPy.
"""

import copy
import io

import numpy as np
import pytest
from training import Scripts, assert_same_losses, curve, digits, draw, small_net, start


torch = pytest.importorskip("torch")
script = Scripts()


# ---- data ----------------------------------------------------------------------------------------

@script
def own_dataset(torch):
    """A Dataset of its own with composed transforms, a split, a weighted sampler and a collate."""
    Dataset, DataLoader = torch.utils.data.Dataset, torch.utils.data.DataLoader
    images, labels = digits(torch)

    class Compose:
        def __init__(self, *transforms):
            self.transforms = transforms

        def __call__(self, sample):
            for transform in self.transforms:
                sample = transform(sample)
            return sample

    class Bars(Dataset):
        def __init__(self, images, labels, transform=None, target_transform=None):
            self.images, self.labels = images, labels
            self.transform, self.target_transform = transform, target_transform

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, idx):
            if torch.is_tensor(idx):
                idx = idx.tolist()
            image, label = self.images[idx], self.labels[idx]
            if self.transform:
                image = self.transform(image)
            if self.target_transform:
                label = self.target_transform(label)
            return {"image": image, "label": label, "name": f"bar {idx}"}

    class Cycle(torch.utils.data.Sampler):
        def __init__(self, data_source):
            self.data_source = data_source

        def __iter__(self):
            n = len(self.data_source)
            yield from (7 * i % n for i in range(n))

        def __len__(self):
            return len(self.data_source)

    def collate(batch):
        return (torch.stack([b["image"] for b in batch]), torch.stack([b["label"] for b in batch]),
                [b["name"] for b in batch])

    data = Bars(images.numpy(), labels, transform=Compose(
        torch.from_numpy, lambda x: (x - x.mean()) / x.std(), lambda x: x.flip(-1)),
        target_transform=lambda y: y.long())
    train, valid = torch.utils.data.Subset(data, range(40)), torch.utils.data.Subset(
        data, range(40, 48))
    loader = DataLoader(train, batch_size=16, sampler=Cycle(train), collate_fn=collate)
    assert len(loader) == 3
    model, losses = small_net(torch), []
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for _ in range(3):
        model.train()
        for i, (inputs, targets, names) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            assert len(names) == len(targets) and i < 3
        model.eval()
        with torch.no_grad():
            for sample in DataLoader(valid, batch_size=4):
                outputs = model(sample["image"])
                _, predicted = torch.max(outputs, 1)
                losses.append((predicted == sample["label"]).sum().item())
                losses.append(criterion(outputs, sample["label"]).item())
    return losses


@script
def mixed_up(torch):
    """Mixup, and labels as probabilities."""
    F, rng = torch.nn.functional, np.random.default_rng(5)
    images, labels = digits(torch)
    model, losses = small_net(torch), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(8):
        lam = float(rng.beta(0.4, 0.4))
        index = torch.from_numpy(rng.permutation(len(labels)))
        mixed_x = lam * images + (1 - lam) * images[index, :]
        y_a, y_b = labels, labels[index]
        out = model(mixed_x)
        loss = lam * F.cross_entropy(out, y_a) + (1 - lam) * F.cross_entropy(out, y_b)
        soft = lam * F.one_hot(y_a, 2).float() + (1 - lam) * F.one_hot(y_b, 2)
        losses += [loss.item(), F.cross_entropy(out, soft).item()]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


@script
def sum_of_losses(torch):
    """Several tasks over one body, weighed by learnt uncertainties; batches from TensorDataset."""
    nn, rng = torch.nn, np.random.default_rng(6)

    class MultiTask(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(5, 12), nn.GELU())
            self.heads = nn.ModuleDict({"value": nn.Linear(12, 1), "sign": nn.Linear(12, 1),
                                        "kind": nn.Linear(12, 3)})
            self.log_vars = nn.ParameterDict(
                {name: nn.Parameter(torch.zeros(1)) for name in self.heads})

        def forward(self, x):
            z = self.body(x)
            return {name: head(z) for name, head in self.heads.items()}

    x = draw(torch, rng, 30, 5)
    data = torch.utils.data.TensorDataset(
        x, x.sum(1, keepdim=True), (x[:, :1] > 0).float(), x[:, :3].argmax(dim=1))
    model, losses = start(torch, MultiTask()), []
    rules = {"value": nn.HuberLoss(), "sign": nn.BCEWithLogitsLoss(
        pos_weight=torch.tensor([1.5])), "kind": nn.CrossEntropyLoss(
        weight=torch.tensor([1.0, 2.0, 0.5]))}
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3, alpha=0.9, centered=True)
    for _ in range(4):
        for batch in torch.utils.data.DataLoader(data, batch_size=10, shuffle=False):
            x, *targets = batch
            out = model(x)
            loss = sum(torch.exp(-model.log_vars[name]) * rules[name](out[name], target)
                       + model.log_vars[name] for name, target in zip(rules, targets))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


# ---- steps ---------------------------------------------------------------------------------------

@script
def accumulated(torch):
    """Gradients summed over batches, clipped, with a warm-up and a cosine after it."""
    images, labels = digits(torch)
    model, losses = small_net(torch), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2, betas=(0.9, 0.95))
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=3)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=9, eta_min=1e-4)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[3])
    accumulation_steps = 3
    for _ in range(4):
        parts = zip(images.split(8), labels.chunk(6))
        for i, (x, y) in enumerate(parts):
            loss = torch.nn.functional.cross_entropy(model(x), y) / accumulation_steps
            loss.backward()
            if (i + 1) % accumulation_steps == 0:
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                losses += [norm.item(), scheduler.get_last_lr()[0]]
            losses.append(loss.item())
    return losses


@script
def resumed(torch):
    """A checkpoint in the middle: a new model and optimiser go on from what was saved."""
    images, labels = digits(torch)

    def make(seed_model=None):
        model = small_net(torch)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
        return model, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def epochs(model, optimizer, scheduler, count):
        for _ in range(count):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
            yield loss.item()

    whole = make()
    losses, buffer = list(epochs(*whole, 4)), io.BytesIO()
    torch.save({"epoch": 4, "model_state_dict": whole[0].state_dict(), "loss": losses[-1],
                "optimizer_state_dict": whole[1].state_dict(),
                "scheduler": whole[2].state_dict()}, buffer)
    rest = list(epochs(*whole, 4))
    buffer.seek(0)
    checkpoint = torch.load(buffer, map_location="cpu", weights_only=True)
    model, optimizer, scheduler = make()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(0)
    model.load_state_dict(checkpoint["model_state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    assert checkpoint["epoch"] == 4 and checkpoint["loss"] == losses[-1]
    assert list(epochs(model, optimizer, scheduler, 4)) == rest
    return losses + rest


@script
def stopped_early(torch):
    """The best state is kept by a deep copy, the rate falls on a plateau, and training stops."""
    class EarlyStopping:
        def __init__(self, patience=3, min_delta=0.0):
            self.patience, self.min_delta = patience, min_delta
            self.counter, self.best, self.state = 0, None, None

        def __call__(self, loss, model):
            if self.best is None or loss < self.best - self.min_delta:
                self.best, self.counter = loss, 0
                self.state = copy.deepcopy(model.state_dict())
            else:
                self.counter += 1
            return self.counter >= self.patience

    images, labels = digits(torch)
    model, losses, stop = small_net(torch), [], EarlyStopping()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.2, momentum=0.8)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5,
                                                           patience=1)
    for _ in range(25):
        model.train()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images[:32]), labels[:32]).backward()
        optimizer.step()
        model.eval()
        with torch.inference_mode():
            loss = torch.nn.functional.cross_entropy(model(images[32:]), labels[32:]).item()
        scheduler.step(loss)
        losses += [loss, optimizer.param_groups[0]["lr"]]
        if stop(loss, model):
            break
    model.load_state_dict(stop.state)
    assert len(losses) < 50
    return losses


@script
def averaged(torch):
    """A moving average of a model by hand, SWA with its schedule, and batch norm made anew."""
    nn, rng = torch.nn, np.random.default_rng(8)
    swa = torch.optim.swa_utils
    x, y = curve(torch)
    model = start(torch, nn.Sequential(
        nn.Linear(1, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1)))

    class EMA:
        def __init__(self, model, decay):
            self.decay = decay
            self.shadow = {k: v.clone().detach() for k, v in model.named_parameters()
                           if v.requires_grad}

        @torch.no_grad()
        def update(self, model):
            for name, p in model.named_parameters():
                self.shadow[name].mul_(self.decay).add_(p.data, alpha=1 - self.decay)

    ema, losses = EMA(model, 0.9), []
    average = swa.AveragedModel(model)
    moving = swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    swa_scheduler = swa.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2, anneal_strategy="linear")
    for epoch in range(10):
        order = torch.as_tensor(rng.permutation(64))
        for part in order.split(16):
            optimizer.zero_grad()
            loss = (model(x[part]) - y[part]).square().mean()
            loss.backward()
            optimizer.step()
            ema.update(model)
            moving.update_parameters(model)
        if epoch >= 6:
            average.update_parameters(model)
            swa_scheduler.step()
        else:
            scheduler.step()
        losses += [loss.item(), optimizer.param_groups[0]["lr"]]
    loader = torch.utils.data.DataLoader(x, batch_size=32)
    swa.update_bn(loader, average)
    for each in (average, moving):
        each.eval()
        losses.append(torch.nn.functional.mse_loss(each(x), y).item())
    return losses + [v.abs().sum().item() for v in ema.shadow.values()]


@script
def distilled(torch):
    """A student learns from a teacher's softened scores, and from features that a hook took."""
    nn, F = torch.nn, torch.nn.functional
    images, labels = digits(torch)
    teacher, student = start(
        torch, nn.Sequential(nn.Flatten(), nn.Linear(144, 24), nn.ReLU(), nn.Linear(24, 2)),
        nn.Sequential(nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, 2)))
    optimizer, T, features, losses = torch.optim.Adam(student.parameters(), lr=1e-2), 3.0, {}, []

    def get_activation(name):
        def hook(model, input, output):
            features[name] = output.detach()
        return hook

    handle = teacher[2].register_forward_hook(get_activation("relu"))
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad = False
    for step in range(8):
        with torch.no_grad():
            teacher_logits = teacher(images)
        logits = student(images)
        soft_targets = F.softmax(teacher_logits / T, dim=-1)
        soft_prob = F.log_softmax(logits / T, dim=-1)
        loss = (T ** 2) * F.kl_div(soft_prob, soft_targets, reduction="batchmean")
        loss = 0.7 * loss + 0.3 * F.cross_entropy(logits, labels)
        loss = loss + 0.1 * F.cosine_embedding_loss(
            student[1](student[0](images)), features["relu"][:, :8], torch.ones(len(images)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 4:
            handle.remove()
    assert all(p.grad is None for p in teacher.parameters()) and len(features) == 1
    return losses


@pytest.mark.parametrize("script", script, ids=lambda script: script.__name__)
def test_a_script_reaches_the_same_losses(script):
    assert_same_losses(script, torch)
