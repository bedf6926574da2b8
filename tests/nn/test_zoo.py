"""The architectures of `nn.zoo`: shapes, counts of parameters, gradients, and that they learn."""

import pytest

import tensorlib as tl
from tensorlib import nn, optim
from tensorlib.nn import functional as F
from tensorlib.nn import zoo


@pytest.fixture(autouse=True)
def seeded():
    tl.manual_seed(0)


def count(model):
    return sum(p.numel() for p in model.parameters())


def learns(model, loss_of, steps=12, lr=0.01):
    """Whether the loss of one batch falls to less than two thirds."""
    optimizer = optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    return losses[-1] < 2 / 3 * losses[0]


def test_perceptron():
    model = zoo.MLP(3, [8, 8, 2], nn.Tanh, dropout=0.1)
    assert [type(layer).__name__ for layer in model] == [
        "Linear", "Tanh", "Dropout", "Linear", "Tanh", "Dropout", "Linear"]
    x, y = tl.randn(16, 3), tl.randn(16, 2)
    assert learns(zoo.MLP(3, [32, 2]), lambda net: F.mse_loss(net(x), y), 40, 0.02)
    assert zoo.MLP(3, [2])(tl.ones(4, 5, 3)).shape == (4, 5, 2)
    with pytest.raises(ValueError, match="MLP: hidden_channels"):
        zoo.MLP(3, [])


@pytest.mark.parametrize("size, channels", [(28, 1), (32, 3), (12, 1), (33, 2)])
def test_lenet(size, channels):
    model = zoo.LeNet(7, channels, size)
    assert model(tl.zeros(2, channels, size, size)).shape == (2, 7)
    if size == 28:
        assert count(zoo.LeNet()) == 61706
        x, y = tl.randn(8, 1, 28, 28), tl.arange(8)
        assert learns(zoo.LeNet(), lambda net: F.cross_entropy(net(x), y), 15, 0.005)
    with pytest.raises(ValueError, match="LeNet: size"):
        zoo.LeNet(size=11)


def test_resnet_has_the_names_and_sizes_of_published_weights():
    model = zoo.resnet18()
    state = model.state_dict()
    assert count(model) == 11689512 and len(state) == 122
    assert state["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1)
    assert {"conv1.weight", "bn1.running_var", "layer4.1.bn2.bias", "fc.weight"} <= set(state)
    assert model.eval()(tl.randn(1, 3, 64, 64)).shape == (1, 1000)


def test_resnet_of_small_images_learns():
    x, y = tl.randn(4, 1, 8, 8), tl.arange(4)
    model = zoo.ResNet([1, 1, 1, 1], 4, in_channels=1, small_images=True)
    assert learns(model, lambda net: F.cross_entropy(net(x), y), 4, 0.001)
    with pytest.raises(ValueError, match="ResNet: layers"):
        zoo.ResNet([1, 1])


def test_gpt_sees_no_token_before_it_comes():
    model = zoo.GPT(11, 8, n_layer=2, n_head=2, n_embd=16).eval()
    codes = tl.randint(0, 11, (2, 8))
    changed = codes.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    before, after = model(codes), model(changed)
    assert before[:, :5].equal(after[:, :5]) and not before[:, 5:].equal(after[:, 5:])
    assert model(codes[:, :3]).shape == (2, 3, 11)
    with pytest.raises(ValueError, match="GPT: 9 tokens"):
        model(tl.zeros(1, 9, dtype=tl.int64))
    with pytest.raises(ValueError, match="GPT: n_embd"):
        zoo.GPT(11, 8, n_head=3, n_embd=16)


def test_gpt_learns_and_writes():
    codes = tl.tensor([[0, 1, 2, 3] * 4])
    model = zoo.GPT(5, 16, n_layer=1, n_head=2, n_embd=16, dropout=0.1)
    assert learns(model, lambda net: F.cross_entropy(net(codes)[:, :-1].flatten(0, 1),
                                                     codes[:, 1:].flatten()), 40, 0.02)
    written = model.generate(codes[:, :4], 20, temperature=0)
    assert written.shape == (1, 24) and model.training
    assert written[0, :12].tolist() == [0, 1, 2, 3] * 3
    drawn = model.generate(codes, 30, temperature=5.0, top_k=1)
    assert drawn.equal(model.generate(codes, 30, temperature=0))
    with pytest.raises(ValueError, match="temperature"):
        model.generate(codes, 1, temperature=-1.0)


def test_unet_gives_an_image_of_the_same_size():
    model = zoo.UNet(2, 3, channels=(4, 8, 16))
    for size in ((8, 8), (9, 14), (4, 7)):
        assert model(tl.randn(2, 2, *size)).shape == (2, 3, *size)
    assert zoo.UNet(1, 1, channels=(4,))(tl.zeros(1, 1, 3, 3)).shape == (1, 1, 3, 3)
    assert count(zoo.UNet()) == 31037633
    x = tl.randn(2, 2, 8, 8)
    assert learns(model, lambda net: F.mse_loss(net(x), x[:, :1].expand(2, 3, 8, 8)), 25)
    with pytest.raises(ValueError, match="UNet: channels"):
        zoo.UNet(channels=())


@pytest.mark.parametrize("make, x", [
    (lambda: zoo.MLP(3, [4, 2]), tl.ones(2, 3)),
    (lambda: zoo.LeNet(size=12), tl.ones(2, 1, 12, 12)),
    (lambda: zoo.GPT(5, 4, 1, 1, 4), tl.zeros(1, 4, dtype=tl.int64)),
    (lambda: zoo.UNet(1, 1, (2, 3)), tl.ones(1, 1, 4, 4))])
def test_states_are_saved_loaded_and_compiled(make, x, tmp_path):
    first, second = make().eval(), make().eval()
    tl.save(first.state_dict(), tmp_path / "state.safetensors")
    second.load_state_dict(tl.load(tmp_path / "state.safetensors"))
    assert first(x).equal(second(x))
    compiled = tl.compile(first)
    for _ in range(3):
        assert compiled(x).equal(first(x))
