"""Transforms of images: what each does, what random ones draw, and odd images."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.testing import assert_close
from tensorlib.utils.data import datasets, transforms
from tensorlib.utils.data.transforms import functional as F

RNG = np.random.default_rng(0)
BYTES = tl.from_numpy(RNG.integers(0, 256, (3, 9, 12), dtype=np.uint8))
FLOATS = BYTES.float() / 255
MODES = transforms.InterpolationMode


@pytest.fixture(autouse=True)
def seeded():
    tl.manual_seed(0)


MODULES = [name for package in (datasets, transforms, nn.zoo) for name in [
    package.__name__, *(found.name for found in pkgutil.iter_modules(
        package.__path__, f"{package.__name__}."))]]


OF_PILLOW = "tensorlib.utils.data.transforms.pillow"


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name, tmp_path, monkeypatch):
    if name == OF_PILLOW:
        pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    found = doctest.testmod(module, extraglobs={
        "tensorlib": tl, "np": np, **vars(importlib.import_module("tensorlib.vision").transforms),
        **vars(module)})
    assert not found.failed


# ---- fixed ones ----------------------------------------------------------------------------------

@pytest.mark.parametrize("img", [BYTES, FLOATS, BYTES[0], FLOATS[None]],
                         ids=["bytes", "floats", "(H, W)", "a batch"])
def test_parts_and_mirrors_are_numpys(img):
    x = img.numpy()
    assert np.array_equal(F.hflip(img).numpy(), x[..., ::-1])
    assert np.array_equal(F.vflip(img).numpy(), x[..., ::-1, :])
    assert np.array_equal(F.crop(img, 2, 3, 4, 5).numpy(), x[..., 2:6, 3:8])
    assert np.array_equal(F.center_crop(img, (5, 4)).numpy(), x[..., 2:7, 4:8])
    sides = ((0, 0),) * (x.ndim - 2) + ((2, 4), (1, 3))
    for mode, numpys in (("constant", "constant"), ("edge", "edge"), ("reflect", "reflect"),
                         ("symmetric", "symmetric")):
        padded = F.pad(img, (1, 2, 3, 4), padding_mode=mode)
        assert np.array_equal(padded.numpy(), np.pad(x, sides, numpys))
    assert np.array_equal(F.pad(img, 1, fill=1).numpy()[..., 0, :], np.ones_like(
        F.pad(img, 1).numpy()[..., 0, :]))
    assert F.pad(img, -2).shape[-2:] == (5, 8)


@pytest.mark.parametrize("place", [(-9, 2, 4, 3), (100, 100, 4, 3), (-2, -3, 4, 3), (7, 10, 4, 3)])
def test_what_is_beyond_an_image_is_zero(place):
    top, left, height, width = place
    wide = np.zeros((3, 300, 300), np.uint8)
    wide[:, 100:109, 100:112] = BYTES.numpy()
    wanted = wide[:, 100 + top:100 + top + height, 100 + left:100 + left + width]
    assert np.array_equal(F.crop(BYTES, *place).numpy(), wanted)


def test_a_quarter_turn_of_a_square_is_rot90():
    square = BYTES[:, :9, :9]
    for quarters in range(4):
        for mode in (MODES.NEAREST, "bilinear"):
            assert np.array_equal(F.rotate(square, 90 * quarters, mode).numpy(),
                                  np.rot90(square.numpy(), quarters, (1, 2)))
    assert F.rotate(BYTES, 180).equal(BYTES.flip(-1).flip(-2))
    assert F.affine(BYTES, 0, (2, 1), 1.0, 0)[:, 1:, 2:].equal(BYTES[:, :-1, :-2])
    assert F.affine(BYTES, 0, (2, 1), 1.0, 0, fill=7)[:, 0].unique().tolist() == [7]
    assert F.rotate(BYTES, 45, expand=True).shape[-1] > 12


def test_sizes_of_resized_images():
    for size, most, shape in ((6, None, (6, 8)), ((5, 4), None, (5, 4)), (18, 20, (15, 20)),
                              ((9, 12), None, (9, 12)), ([3], None, (3, 4))):
        assert F.resize(BYTES, size, max_size=most).shape == (3, *shape)
    assert F.resize(BYTES.mT, 6).shape == (3, 8, 6)
    assert F.resize(tl.full((2, 3, 8, 8), 77, dtype=tl.uint8), 3, "bicubic").unique().item() == 77
    steep = (255 * (tl.arange(16) % 2 > 0)).to(tl.uint8).expand(1, 4, 16)
    assert F.resize(steep, (4, 5), MODES.BICUBIC).dtype == tl.uint8


def test_colours():
    grey = F.rgb_to_grayscale(FLOATS)
    weights = np.array([0.2989, 0.587, 0.114], np.float32)
    assert_close(grey[0], tl.from_numpy(np.tensordot(weights, FLOATS.numpy(), 1)))
    assert_close(F.adjust_saturation(FLOATS, 0), grey.expand(3, 9, 12))
    assert F.adjust_brightness(BYTES, 0).amax() == 0 and F.adjust_brightness(BYTES, 1).equal(BYTES)
    assert F.adjust_contrast(FLOATS, 0).std() < 1e-6
    assert_close(F.adjust_hue(F.adjust_hue(FLOATS, 0.4), -0.4), FLOATS, atol=1e-6, rtol=0)
    assert F.invert(BYTES).equal(255 - BYTES)
    for factor, colour in ((1 / 3, [0, 1, 0]), (-1 / 3, [0, 0, 1]), (0.5, [0, 1, 1])):
        red = tl.tensor([1.0, 0, 0]).view(3, 1, 1)
        assert_close(F.adjust_hue(red, factor).flatten(), tl.tensor(colour).float(), atol=1e-6,
                     rtol=0)
    even = tl.full((3, 8, 8), 0.3)
    assert_close(F.gaussian_blur(even, 5), even)
    blurred = F.gaussian_blur(FLOATS, (3, 5), 1.0)
    assert blurred.shape == FLOATS.shape and blurred.std() < FLOATS.std()


def test_gradients_go_through_transforms():
    """Images can be parameters: those of an attack, or of a picture that is optimised."""
    x = FLOATS.double().requires_grad_()
    change = transforms.Compose([
        transforms.Pad(1, padding_mode="reflect"), transforms.Resize((6, 7)),
        transforms.RandomRotation(20, "bilinear"), transforms.ColorJitter(0.1, 0.1, 0.1, 0.05),
        transforms.GaussianBlur(3), transforms.Normalize([0.5] * 3, [0.2] * 3)])
    change(x).square().sum().backward()
    assert x.grad.isfinite().all() and (x.grad != 0).float().mean() > 0.9


# ---- random ones ---------------------------------------------------------------------------------

RANDOM = [
    transforms.RandomCrop(5), transforms.RandomCrop(8, padding=2, padding_mode="reflect"),
    transforms.RandomCrop((12, 14), pad_if_needed=True), transforms.RandomHorizontalFlip(),
    transforms.RandomVerticalFlip(), transforms.RandomResizedCrop(6), transforms.RandomRotation(30),
    transforms.RandomAffine(10, (0.2, 0.2), (0.8, 1.2), 5),
    transforms.ColorJitter(0.3, 0.3, 0.3, 0.2),
    transforms.RandomAffine((0, 90), shear=(0, 9, 0, 9), fill=3),
    transforms.RandomGrayscale(0.5), transforms.GaussianBlur(3), transforms.RandomErasing(0.9),
    transforms.RandomErasing(0.9, value="random"), transforms.RandomErasing(0.9, value=(1, 2, 3)),
    transforms.RandomApply([transforms.GaussianBlur(3), transforms.RandomVerticalFlip()], 0.5),
    transforms.RandomOrder([transforms.CenterCrop(5), transforms.RandomCrop(4, padding=1)]),
    transforms.RandomChoice([transforms.CenterCrop(5), transforms.RandomVerticalFlip(1.0)], [1, 3]),
]


@each("transform", RANDOM, ids=lambda transform: type(transform).__name__)
@each("img", [BYTES, FLOATS, FLOATS[None].repeat(2, 1, 1, 1)], ids=["bytes", "floats", "a batch"])
def test_a_random_transform_follows_from_the_seed_and_leaves_its_image(transform, img):
    before, results = img.clone(), []
    for seed in (1, 1, *range(2, 12)):
        tl.manual_seed(seed)
        results.append(transform(img))
    assert results[0].equal(results[1]) and img.equal(before)
    assert not all(found.shape == results[0].shape and found.equal(results[0])
                   for found in results)
    assert {found.dtype for found in results} == {img.dtype}
    for lead in range(img.ndim - 3):
        assert results[0].shape[lead] == img.shape[lead]
    assert type(transform).__name__ in repr(transform) and not transform.state_dict()


def test_how_often_and_where():
    flipped = sum(transforms.RandomHorizontalFlip(0.25)(FLOATS).equal(FLOATS) for _ in range(400))
    assert 260 < flipped < 340
    assert transforms.RandomHorizontalFlip(0)(FLOATS) is FLOATS
    places = {transforms.RandomCrop.get_params(FLOATS, (8, 10))[:2] for _ in range(200)}
    assert places == {(i, j) for i in range(2) for j in range(3)}
    assert transforms.RandomCrop.get_params(FLOATS, (9, 12)) == (0, 0, 9, 12)
    angles = [transforms.RandomRotation.get_params((-10, 20)) for _ in range(200)]
    assert -10 <= min(angles) < -8 and 18 < max(angles) <= 20
    for _ in range(50):
        top, left, tall, wide = transforms.RandomResizedCrop.get_params(
            FLOATS, (0.3, 0.6), (0.9, 1.1))
        assert 0.2 < tall * wide / 108 < 0.75 and top + tall <= 9 and left + wide <= 12
    assert transforms.RandomResizedCrop.get_params(FLOATS, (9, 9), (4, 5)) == (3, 0, 3, 12)
    erased = transforms.RandomErasing(1.0, (0.2, 0.4))(FLOATS + 1)
    assert 0.1 < (erased == 0).float().mean() < 0.5


class Cropped(tl.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return transforms.RandomCrop(4)(tl.arange(16.0).expand(1, 4, 16))


def test_workers_draw_apart():
    """Each by the seed that its loader gave it, and the same in each run."""
    epochs = []
    for _ in range(2):
        tl.manual_seed(3)
        loader = tl.utils.data.DataLoader(Cropped(), batch_size=8, num_workers=2)
        epochs.append(tl.cat(list(loader)))
    assert epochs[0].equal(epochs[1]) and len(epochs[0][:, 0, 0, 0].unique()) > 4


# ---- what is refused -----------------------------------------------------------------------------

@each("make", [
    lambda: transforms.RandomCrop(0), lambda: transforms.RandomCrop((1, 2, 3)),
    lambda: transforms.CenterCrop(2.5), lambda: transforms.Resize(-1),
    lambda: transforms.Resize(3, "cubic"),
    lambda: transforms.Resize(3, "lanczos")(FLOATS), lambda: transforms.Pad((1, 2, 3)),
    lambda: transforms.Pad(1, padding_mode="wrap"), lambda: transforms.RandomHorizontalFlip(1.5),
    lambda: transforms.RandomHorizontalFlip(float("nan")), lambda: transforms.RandomRotation(-3),
    lambda: transforms.RandomRotation((5, 3)), lambda: transforms.RandomRotation(3, "cubic"),
    lambda: transforms.RandomRotation(3, "bicubic")(FLOATS),
    lambda: transforms.RandomAffine(0, (2, 0)), lambda: transforms.RandomAffine(0, scale=(0, 1)),
    lambda: transforms.RandomAffine(0, shear=(1, 2, 3)), lambda: transforms.ColorJitter(-1),
    lambda: transforms.ColorJitter(hue=0.7), lambda: transforms.ColorJitter((2, 1)),
    lambda: transforms.RandomRotation("x"), lambda: transforms.GaussianBlur(4),
    lambda: F.crop(FLOATS, 0, 0, -1, 2),
    lambda: transforms.GaussianBlur(3, 0), lambda: transforms.RandomErasing(scale=(0, 2)),
    lambda: transforms.RandomErasing(value="noise"), lambda: transforms.RandomChoice([], None),
    lambda: transforms.RandomChoice([abs], [-1]), lambda: transforms.RandomResizedCrop(3, (1, 0)),
    lambda: transforms.RandomCrop(20)(FLOATS), lambda: transforms.Resize(3, max_size=3)(FLOATS),
    lambda: transforms.Resize((3, 3), max_size=9)(FLOATS),
    lambda: transforms.Normalize([0, 0], [1, 1])(FLOATS),
    lambda: transforms.Normalize([0.5], [0.0])(FLOATS),
    lambda: transforms.Normalize(0.5, 0.0)(FLOATS),
    lambda: transforms.Normalize([0], [1])(FLOATS[0]),
    lambda: F.gaussian_blur(FLOATS, 4), lambda: F.gaussian_blur(FLOATS, 21),
    lambda: F.adjust_brightness(FLOATS, -1), lambda: F.adjust_brightness(FLOATS, float("nan")),
    lambda: F.adjust_hue(FLOATS, 0.6), lambda: F.rgb_to_grayscale(FLOATS, 2),
    lambda: F.affine(FLOATS, 0, (0, 0), 0.0, 0), lambda: F.to_tensor(np.ones(3)),
    lambda: F.pad(tl.ones(1, 0, 2), 1, padding_mode="edge"), lambda: F.rotate(tl.ones(1, 0, 0), 5)])
def test_wrong_values_are_refused(make):
    with pytest.raises(ValueError, match=r"^[A-Za-z_]+: "):
        make()


@each("make", [
    lambda: F.hflip(np.ones((3, 3))), lambda: F.resize(tl.ones(3), 2),
    lambda: F.crop(3, 0, 0, 1, 1),
    lambda: F.normalize(BYTES, [0], [1]), lambda: F.rgb_to_grayscale(tl.ones(2, 3, 3)),
    lambda: F.adjust_contrast(FLOATS[0], 1), lambda: F.to_tensor([1, 2]),
    lambda: transforms.Compose(3), lambda: transforms.Compose([3]), lambda: transforms.Lambda(3)])
def test_what_is_no_image_is_a_type_error(make):
    with pytest.raises(TypeError, match=r"^[A-Za-z_]+: "):
        make()


def test_odd_images():
    nan = tl.full((3, 4, 4), float("nan"))
    for change in (F.hflip, lambda x: F.resize(x, 3), lambda x: F.rotate(x, 90),
                   lambda x: F.adjust_hue(x, 0.1), lambda x: F.gaussian_blur(x, 3)):
        assert change(nan).isnan().any()
    empty = tl.ones(0, 3, 4, 4)
    assert F.resize(empty, 2).shape == (0, 3, 2, 2) and F.rotate(empty, 5).shape == (0, 3, 4, 4)
    assert F.pad(tl.ones(1, 0, 2), 1).shape == (1, 2, 4) and F.hflip(tl.ones(0, 0)).shape == (0, 0)
    one = tl.ones(1, 1, 1, dtype=tl.bool)
    assert F.hflip(one).dtype == tl.bool and F.to_tensor(one).item() == 1
    tall = FLOATS.mT
    assert F.resize(tall, (5, 5)).isfinite().all() and not tall.is_contiguous()


def test_texts():
    text = repr(transforms.Compose([transforms.ToTensor(), transforms.RandomApply(
        [transforms.Normalize((0.5,), (0.25,))], 0.3)]))
    assert text == ("Compose(\n    ToTensor()\n    RandomApply(\n        p=0.3\n"
                    "        Normalize(mean=(0.5,), std=(0.25,))\n    )\n)")


@pytest.mark.filterwarnings("error")          # one would say that it runs eagerly
def test_a_compiled_function_has_fixed_transforms():
    change = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.25,)),
                                 transforms.CenterCrop(4)])
    compiled = tl.compile(change)
    for _ in range(3):
        assert compiled(BYTES).equal(change(BYTES))
