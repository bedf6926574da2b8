"""`tensorlib.vision.utils`: images side by side, and in files."""

import io

import pytest

import tensorlib as tl
from tensorlib.vision import utils


@pytest.mark.parametrize("count, nrow, padding", [(5, 3, 2), (4, 8, 0), (6, 2, 1), (2, 1, 3)])
def test_each_image_has_its_place(count, nrow, padding):
    images = tl.arange(count * 3 * 4 * 5.0).reshape(count, 3, 4, 5)
    grid = utils.make_grid(images, nrow, padding, pad_value=-1)
    columns = min(nrow, count)
    rows = -(-count // columns)
    assert grid.shape == (3, rows * (4 + padding) + padding, columns * (5 + padding) + padding)
    for i, image in enumerate(images):
        top, left = i // columns * (4 + padding) + padding, i % columns * (5 + padding) + padding
        assert tl.equal(grid[:, top:top + 4, left:left + 5], image)
    assert (grid == -1).sum() == grid.numel() - images.numel()
    assert tl.equal(utils.make_grid(list(images), nrow, padding, pad_value=-1), grid)


def test_grey_images_get_three_channels():
    x = tl.rand(3, 4)
    for image in (x, x[None], x[None, None], [x], [x[None]]):
        assert tl.equal(utils.make_grid(image), x.expand(3, 3, 4))
    assert utils.make_grid(tl.rand(2, 5, 3, 3)).shape[0] == 5


def test_elements_in_the_range_from_0_to_1():
    x = tl.tensor([[[[2.0, 4.0]]], [[[4.0, 6.0]]]])
    whole = utils.make_grid(x, padding=0, normalize=True)
    assert whole[0].tolist() == [[0, 0.5, 0.5, 1]]
    each = utils.make_grid(x, padding=0, normalize=True, scale_each=True)
    assert each[0].tolist() == [[0, 1, 0, 1]]
    given = utils.make_grid(x, padding=0, normalize=True, value_range=(4, 8))
    assert given[0].tolist() == [[0, 0, 0, 0.5]]
    assert utils.make_grid(tl.ones(1, 2, 2), normalize=True).tolist() == tl.zeros(3, 2, 2).tolist()
    assert x.tolist() == [[[[2, 4]]], [[[4, 6]]]]


def test_a_file_has_what_the_grid_shows():
    image = pytest.importorskip("PIL.Image")
    x = tl.tensor([[0.0, 0.25], [1.5, -1.0]], requires_grad=True)
    file = io.BytesIO()
    utils.save_image(x, file, format="png")
    pixels = image.open(file)
    assert pixels.size == (2, 2) and pixels.mode == "RGB"
    assert [pixels.getpixel((i % 2, i // 2))[0] for i in range(4)] == [0, 64, 255, 0]


@pytest.mark.parametrize("images, options, error, message", [
    (3, {}, TypeError, "tensor must be a Tensor or a list of Tensors, got int"),
    ([1, 2], {}, TypeError, "a list of Tensors, got list"),
    (tl.ones(2), {}, ValueError, "of 2 to 4 dims, one at least, got shape .2,."),
    (tl.ones(1, 1, 1, 1, 1), {}, ValueError, "of 2 to 4 dims, one at"),
    (tl.ones(0, 3, 2, 2), {"normalize": True}, ValueError, "one at least, got shape .0, 3, 2, 2"),
    ([], {}, ValueError, "one at least"),
    (tl.ones(2, 2), {"normalize": True, "value_range": 3}, TypeError, "must be a tuple, got 3"),
])
def test_what_are_no_images(images, options, error, message):
    with pytest.raises(error, match=message):
        utils.make_grid(images, **options)
