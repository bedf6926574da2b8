"""Transforms of images beside torchvision's: the same functions on the same images."""

import inspect

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.utils.data import transforms
from tensorlib.utils.data.transforms import functional as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torchvision.transforms.functional")

RNG = np.random.default_rng(0)
SMOOTH = np.add.outer(np.sin(np.arange(17) / 3), np.cos(np.arange(22) / 4)) / 4 + 0.5
IMAGES = {
    "bytes": RNG.integers(0, 256, (3, 17, 22), dtype=np.uint8),
    "floats": RNG.random((3, 17, 22), dtype=np.float32),
    "a batch": RNG.random((2, 3, 9, 8), dtype=np.float32),
    "grey": RNG.integers(0, 256, (1, 12, 11), dtype=np.uint8),
    "smooth": np.stack([SMOOTH, SMOOTH[::-1], SMOOTH * SMOOTH]),
}
MODE = {"near": "NEAREST", "linear": "BILINEAR", "cubic": "BICUBIC", "exact": "NEAREST_EXACT"}


def modes(text):
    """A mode in both libraries."""
    return tuple(getattr(side.InterpolationMode, MODE[text]) for side in (ours, theirs))


CALLS = [
    ("hflip", (), {}), ("vflip", (), {}), ("crop", (2, 3, 5, 4), {}),
    ("crop", (-2, -3, 30, 40), {}),
    ("center_crop", (7,), {}), ("center_crop", ((20, 5),), {}),
    ("center_crop", ((31, 32),), {}), ("pad", (2,), {}), ("pad", ([1, 2],), {"fill": 1}),
    ("pad", ([1, 2, 3, 4],), {"padding_mode": "reflect"}),
    ("pad", ([1, 2, 3, 4],), {"padding_mode": "edge"}),
    ("pad", ([1, 2, 3, 4],), {"padding_mode": "symmetric"}),
    *[("resize", (size,), {"interpolation": mode, "antialias": antialias})
      for size in ([5, 6], [30, 41], [10]) for mode in ("near", "linear", "cubic", "exact")
      for antialias in (True, False)],
    ("resize", ([8],), {"max_size": 9}),
    ("resized_crop", (1, 2, 6, 5, [9, 9]), {"antialias": True}),
    *[("rotate", (angle,), options) for angle in (0, 89, -30, 180, 371.5) for options in (
        {}, {"interpolation": "linear"}, {"expand": True},
        {"interpolation": "linear", "fill": [1.0]},
        {"center": [2, 3]}, {"fill": [1.0]})],
    *[("affine", (20, [3, -2], 1.3, shear), {"interpolation": mode})
      for shear in ([10.0, 0.0], [-5.0, 12.0]) for mode in ("near", "linear")],
    ("rgb_to_grayscale", (), {}), ("rgb_to_grayscale", (3,), {}),
    *[(f"adjust_{name}", (factor,), {})
      for name in ("brightness", "contrast", "saturation", "gamma")
      for factor in (0.0, 0.4, 1.0, 1.7)],
    *[("adjust_hue", (factor,), {}) for factor in (-0.5, -0.2, 0.0, 0.1, 0.5)],
    ("invert", (), {}), ("gaussian_blur", (3,), {}), ("gaussian_blur", ([5, 3], [0.7, 2.0]), {}),
    ("erase", (1, 2, 3, 4, 0), {}),
]


def both(options):
    """The options of a call, for each side."""
    sides = {}, {}
    for key, value in options.items():
        for side, given in zip(sides, modes(value) if key == "interpolation" else (value, value)):
            side[key] = given
    return sides


@pytest.mark.parametrize("name, arguments, options", CALLS,
                         ids=[f"{name}-{i}" for i, (name, *_) in enumerate(CALLS)])
@pytest.mark.filterwarnings("ignore")
def test_a_function_gives_what_torchvisions_gives(name, arguments, options):
    here, there = both(options)
    for kind, image in IMAGES.items():
        if name == "rgb_to_grayscale" and kind == "grey":
            continue                           # torchvision gives one channel where three are asked
        if "fill" in options and kind == "a batch":
            continue                           # torchvision takes the last image for a mask
        wanted = getattr(theirs, name)(torch.from_numpy(image.copy()), *arguments, **there).numpy()
        got = getattr(ours, name)(tl.from_numpy(image.copy()), *arguments, **here)
        assert got.dtype.name == wanted.dtype.name and tuple(got.shape) == wanted.shape, kind
        off = np.abs(got.numpy().astype(float) - wanted.astype(float))
        # bytes: what is rounded, or cut off, may fall to the other side
        most = 1 if image.dtype == np.uint8 else 2e-5 if image.dtype == np.float32 else 1e-6
        turned = name in ("rotate", "affine")  # the pixel nearest to a place between two may differ
        assert (off > most).mean() <= (0.02 if turned else 0.0), (kind, off.max())


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("target", ["uint8", "int16", "int32", "float32", "float64"])
def test_dtypes_are_converted_alike(dtype, target):
    values = RNG.random((2, 3, 4))
    info = np.iinfo(dtype) if dtype[0] in "ui" else None
    image = (values * (info.max if info else 1)).astype(dtype)
    try:
        wanted = theirs.convert_image_dtype(torch.from_numpy(image), getattr(torch, target)).numpy()
    except RuntimeError:
        with pytest.raises(RuntimeError):
            ours.convert_image_dtype(tl.from_numpy(image), getattr(tl, target))
        return
    got = ours.convert_image_dtype(tl.from_numpy(image), getattr(tl, target)).numpy()
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_what_is_normalized_and_made_of_arrays_is_alike():
    pixels = RNG.integers(0, 256, (7, 6, 3), dtype=np.uint8)
    for given in (pixels, pixels[:, :, 0], pixels.astype(np.float32)):
        np.testing.assert_array_equal(ours.to_tensor(given).numpy(),
                                      theirs.to_tensor(given).numpy())
    x = ours.to_tensor(pixels)
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]
    np.testing.assert_array_equal(
        ours.normalize(x, mean, std).numpy(),
        theirs.normalize(torch.from_numpy(x.numpy()), mean, std).numpy())


def test_classes_have_torchvisions_parameters():
    """And their defaults, where there are such."""
    their_transforms = pytest.importorskip("torchvision.transforms")
    for name in transforms.__all__:
        if name in ("functional", "InterpolationMode"):
            continue
        here, there = ([each for each in inspect.signature(
            getattr(side, name)).parameters.values() if each.name not in ("args", "kwargs")]
            for side in (transforms, their_transforms))
        assert [each.name for each in here] == [each.name for each in there], name
        for mine, other in zip(here, there):
            if hasattr(other.default, "name"):
                assert mine.default.name == other.default.name
            elif isinstance(other.default, tuple):
                assert mine.default == pytest.approx(other.default), name
            else:
                assert mine.default == other.default, (name, mine.name)
