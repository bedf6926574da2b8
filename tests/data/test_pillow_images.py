"""Images of Pillow's in transforms: Pillow changes them, and they stay such until `ToTensor`."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.utils.data import transforms as T
from tensorlib.utils.data.transforms import InterpolationMode as Mode
from tensorlib.utils.data.transforms import functional as F

Image = pytest.importorskip("PIL.Image")
PIXELS = np.random.RandomState(0).randint(0, 256, (12, 17, 3), dtype=np.uint8)
RGB, GREY = Image.fromarray(PIXELS), Image.fromarray(PIXELS[:, :, 0])


def same(image, other):
    return image.mode == other.mode and np.array_equal(np.asarray(image), np.asarray(other))


@each("change", [
    F.hflip, F.vflip, F.invert,
    lambda x: F.crop(x, -2, 3, 8, 20), lambda x: F.center_crop(x, 9),
    lambda x: F.center_crop(x, (20, 4)), lambda x: F.pad(x, (1, 2, 3, 4), fill=7),
    lambda x: F.pad(x, 3, padding_mode="reflect"), lambda x: F.pad(x, 3, padding_mode="edge"),
    lambda x: F.pad(x, (2, 1), padding_mode="symmetric"),
    lambda x: F.resize(x, (24, 34), "nearest-exact"), lambda x: F.gaussian_blur(x, 3, 1.0),
    lambda x: F.adjust_brightness(x, 0.5), T.RandomHorizontalFlip(1.0), T.RandomVerticalFlip(1.0),
    T.CenterCrop(5), T.Pad(2), T.GaussianBlur(3, 1.0), T.RandomCrop((12, 17)),
])
@each("image", [RGB, GREY], ids=["colours", "grey"])
def test_what_needs_no_weights_is_that_of_tensors(change, image):
    found = change(image)
    assert type(found) is Image.Image and found.mode == image.mode
    assert tl.equal(F.pil_to_tensor(found), change(F.pil_to_tensor(image)))


@each("change, most", [
    (lambda x: F.resize(x, 7), 1), (lambda x: F.resize(x, (30, 40)), 1),
    (lambda x: F.resized_crop(x, 1, 2, 9, 8, (5, 6)), 1), (lambda x: F.adjust_contrast(x, 0.5), 1),
    (lambda x: F.adjust_saturation(x, 0.5), 2), (lambda x: F.adjust_gamma(x, 1.5), 1),
    (lambda x: F.rgb_to_grayscale(x, 3), 1), (T.Grayscale(), 1), (T.RandomGrayscale(1.0), 1),
    (lambda x: F.adjust_hue(x, -0.25), 9),
])
def test_what_is_rounded_elsewhere_is_close_to_that_of_tensors(change, most):
    found, wanted = F.pil_to_tensor(change(RGB)), change(F.pil_to_tensor(RGB))
    assert found.shape == wanted.shape
    assert (found.int() - wanted.int()).abs().max() <= most


@pytest.mark.parametrize("mode, number", [
    (Mode.NEAREST, 0), (Mode.LANCZOS, 1), (Mode.BILINEAR, 2), (Mode.BICUBIC, 3), (Mode.BOX, 4),
    (Mode.HAMMING, 5)])
def test_all_modes_of_pillow_resize(mode, number):
    wanted = RGB.resize((8, 9), number)
    for given in (mode, mode.value, number):
        assert same(F.resize(RGB, (9, 8), given), wanted)
        assert same(T.Resize((9, 8), given)(RGB), wanted)
    assert same(F.resize(RGB, (9, 8), mode, antialias=False), wanted)
    assert F.resize(RGB, 12) is RGB


def test_rotations_and_affine_changes():
    assert same(F.rotate(RGB, 30, fill=9), RGB.rotate(30, fillcolor=(9, 9, 9)))
    assert same(F.rotate(GREY, 30, Mode.BICUBIC, True, fill=[9]), GREY.rotate(30, 3, True,
                                                                             fillcolor=9))
    assert same(F.affine(RGB, 0, (2, 3), 1.0, 0), F.crop(RGB, -3, -2, 12, 17))
    assert same(F.affine(RGB, 90, (0, 0), 1.0, 0, center=(6, 6)),
                RGB.transform((17, 12), 0, (0, 1, 0, -1, 0, 12)))
    for change in (T.RandomRotation(20), T.RandomAffine(9, (0.1, 0.1), (0.5, 2.0), 5),
                   T.ColorJitter(0.3, 0.3, 0.3, 0.1)):
        assert change(RGB).size == RGB.size
    assert T.RandomResizedCrop(6)(RGB).size == (6, 6)
    assert T.RandomCrop(20, padding=2, pad_if_needed=True)(RGB).size == (20, 20)


def test_a_pipeline_as_it_is_written_for_torchvision():
    pipeline = T.Compose([T.Resize(10), T.CenterCrop(8), T.ToTensor(), T.Normalize(0.5, 0.5)])
    x = pipeline(RGB)
    assert x.shape == (3, 8, 8) and x.dtype is tl.float32 and -1 <= x.min() < x.max() <= 1
    assert F.get_dimensions(RGB) == [3, 12, 17]


@pytest.mark.parametrize("shape, dtype, mode", [
    ((4, 5), tl.uint8, "L"), ((1, 4, 5), tl.uint8, "L"), ((2, 4, 5), tl.uint8, "LA"),
    ((3, 4, 5), tl.uint8, "RGB"), ((4, 4, 5), tl.uint8, "RGBA"), ((1, 4, 5), tl.int32, "I"),
    ((1, 4, 5), tl.int16, "I;16")])
def test_tensors_as_images(shape, dtype, mode):
    x = tl.arange(tl.Size(shape).numel()).reshape(shape).to(dtype)
    image = T.ToPILImage()(x)
    assert image.mode == mode and image.size == (5, 4)
    assert tl.equal(F.pil_to_tensor(image).to(dtype), x if x.ndim == 3 else x[None])


def test_tensors_and_arrays_as_images():
    assert same(F.to_pil_image(F.to_tensor(RGB).requires_grad_()), RGB)
    assert same(F.to_pil_image(PIXELS), RGB) and same(F.to_pil_image(PIXELS[:, :, 0]), GREY)
    assert F.to_pil_image(tl.rand(1, 4, 5), "F").mode == "F"
    assert F.to_pil_image(PIXELS, "HSV").mode == "HSV"
    assert repr(T.ToPILImage("RGB")) == "ToPILImage(mode='RGB')"


@each("call, error, text", [
    (lambda: F.to_pil_image(RGB), TypeError, "Tensor or a NumPy array, got PIL.Image"),
    (lambda: F.to_pil_image(tl.ones(2)), ValueError, "2 or 3 dims"),
    (lambda: F.to_pil_image(tl.ones(5, 2, 2)), ValueError, "1 to 4 channels, got 5"),
    (lambda: F.to_pil_image(tl.ones(3, 2, 2), "L"), ValueError, "may be RGB, .*got mode 'L'"),
    (lambda: F.to_pil_image(tl.ones(3, 2, 2, dtype=tl.int64)), TypeError, "3 channels of int64"),
    (lambda: F.resize(RGB, 4, "cubic"), ValueError, "interpolation must be one of"),
    (lambda: F.rotate(RGB, 4, fill=[1, 2]), ValueError, "2 numbers for an image of 3 channels"),
    (lambda: F.rotate(RGB, 4, Mode.LANCZOS), ValueError, "interpolation must be one of"),
    (lambda: F.pad(RGB, 1, padding_mode="odd"), TypeError, "pad: an image is a Tensor"),
    (lambda: F.normalize(RGB, [0.5], [0.5]), TypeError, "normalize: an image is a Tensor"),
    (lambda: F.erase(RGB, 0, 0, 1, 1, 0), TypeError, "erase: an image is a Tensor"),
])
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()
