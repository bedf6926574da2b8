"""Layers on images and volumes, and the order in memory that their results have in PyTorch."""

import numpy as np

SHAPES = (2, 4, 5, 6), (1, 4, 5, 6), (2, 1, 5, 6), (2, 4, 1, 1), (2, 16, 6, 5), (3, 4, 3, 4, 5)


def convolution(outs=6, kernel=3, groups=1, transposed=False, **options):
    """A convolution, and the sizes of its weight for images of some shape."""
    def layer(lib, x, weight):
        n, F = x.ndim - 2, lib.nn.functional
        name = f"conv_transpose{n}d" if transposed else f"conv{n}d"
        many = x.shape[1] if groups == "each" else groups if x.shape[1] % groups == 0 else 1
        return getattr(F, name)(x, weight, groups=many, **options)

    def sizes(shape):
        many = shape[1] if groups == "each" else groups if shape[1] % groups == 0 else 1
        of = (outs if groups != "each" else shape[1]), shape[1] // many
        return (*(of[::-1] if transposed else of), *(kernel,) * (len(shape) - 2))
    return layer, sizes


def function(name, *args, **options):
    """A function that is named after the dims of its images, or for all of them."""
    def layer(lib, x, weight=None):
        F = lib.nn.functional
        return getattr(F, name.replace("Nd", f"{x.ndim - 2}d"))(x, *args, **options)
    return layer, None


CONVOLUTIONS = {
    "conv": convolution(padding=1), "conv of one": convolution(kernel=1),
    "conv of one with steps": convolution(kernel=1, stride=2),
    "conv with steps": convolution(padding=1, stride=2), "conv to one": convolution(1, padding=1),
    "conv of many": convolution(16, padding=1), "conv, dilated": convolution(padding=2, dilation=2),
    "depthwise": convolution(groups="each", padding=1),
    "depthwise with steps": convolution(groups="each", padding=1, stride=2),
    "groups": convolution(6, groups=2, padding=1), "groups of one": convolution(4, 1, groups=2),
    "transposed": convolution(transposed=True, padding=1),
    "transposed with steps": convolution(kernel=2, transposed=True, stride=2),
    "transposed of one": convolution(kernel=1, transposed=True),
}
OTHERS = {
    "max_pool": function("max_poolNd", 3, 1, 1), "max_pool in part": function("max_poolNd", 1, 2),
    "avg_pool": function("avg_poolNd", 1), "adaptive_max": function("adaptive_max_poolNd", 1),
    "adaptive_avg": function("adaptive_avg_poolNd", 1),
    "batch_norm": (lambda lib, x, w: lib.nn.functional.batch_norm(
        x, lib.zeros_like(w), lib.ones_like(w), w, w), lambda s: (s[1],)),
    "group_norm": (lambda lib, x, w: lib.nn.functional.group_norm(x, 1, w, w), lambda s: (s[1],)),
    "group_norm, each": (lambda lib, x, w: lib.nn.functional.group_norm(x, x.shape[1], w, w),
                         lambda s: (s[1],)),
    "batch_norm, training": (lambda lib, x, w: lib.nn.functional.batch_norm(
        x, None, None, w, w, True), lambda s: (s[1],)),
    "linear": (lambda lib, x, w=None: lib.nn.functional.interpolate(
        x, scale_factor=2, mode="bilinear" if x.ndim == 4 else "trilinear"), None),
    "pad": function("pad", (1, 2, 0, 1)),
    "replicate": (lambda lib, x, w=None: lib.nn.functional.pad(
        x, (1, 1) * (x.ndim - 2), mode="replicate"), None),
    "cat": (lambda lib, x, w=None: lib.cat([x, x[:, :1]], 1), None),
    "relu": function("relu"), "sum": (lambda lib, x, w=None: x + x * 2, None),
    "maximum": (lambda lib, x, w=None: lib.maximum(x, x * 2), None),
    "where": (lambda lib, x, w=None: lib.where(x > 0, x, x * 2), None),
    "row by row last": (lambda lib, x, w=None: x + x.contiguous(), None),
    "of each channel": (lambda lib, x, w: w.reshape(1, -1, *(1,) * (x.ndim - 2)) * x,
                        lambda s: (s[1],)),
}
LAYERS = {**CONVOLUTIONS, **OTHERS}
FORMS = "rows", "last", "last, cut across", "last, some channels", "last, some images"


def format_of(lib, n):
    return lib.channels_last if n == 4 else lib.channels_last_3d


def images(lib, shape, form, dtype="float32"):
    """Images of a shape, laid out as a form says."""
    more = {"last, cut across": (0, 0, 2), "last, some channels": (0, 2, 0),
            "last, some images": (shape[0], 0, 0)}.get(form, (0, 0, 0))
    whole = (shape[0] + more[0], shape[1] + more[1], *shape[2:-1], shape[-1] + more[2])
    x = lib.tensor(np.random.default_rng(0).normal(size=whole).astype(dtype))
    if form != "rows":
        x = x.contiguous(memory_format=format_of(lib, x.ndim))
    x = x[::2] if more[0] else x
    return x[:, more[1] // 2:, ..., more[2] // 2:][:, :shape[1], ..., :shape[-1]]


def weights(lib, sizes, last):
    """A weight, or a vector of numbers for each channel."""
    w = lib.tensor(np.random.default_rng(1).normal(size=sizes).astype("float32"))
    return w.contiguous(memory_format=format_of(lib, w.ndim)) if last and w.ndim > 3 else w


def cases(layer):
    """Images and a weight, or None, of all shapes, forms and orders."""
    function, sizes = LAYERS[layer]
    for shape in SHAPES:
        for form in FORMS:
            for last in (False, True) if layer in CONVOLUTIONS else (False,):
                yield shape, form, last, None if sizes is None else sizes(shape)


def lies_last(shape, strides):
    """Whether results of what has these strides lie channels-last: as `suggest_memory_format`."""
    least = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if strides[d] < least or strides[d] == 0 or d == 0 and least == strides[1]:
            return False
        least = strides[d] * shape[d]
    return True


def strides_of(shape, last):
    """The strides of new images, channels-last or row by row, where a dim has several places."""
    order = (1, *range(len(shape) - 1, 1, -1), 0) if last else range(len(shape) - 1, -1, -1)
    span, found = 1, {}
    for d in order:
        found[d], span = span, span * shape[d]
    return told_apart(shape, [found[d] for d in range(len(shape))])


def told_apart(shape, strides):
    return [step for size, step in zip(shape, strides) if size > 1]
