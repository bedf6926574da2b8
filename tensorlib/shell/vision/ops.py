"""Boxes in images, under torchvision's names: rows (x1, y1, x2, y2), with x1 < x2 and y1 < y2.

>>> from tensorlib.vision import ops
>>> boxes = tensorlib.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]])
>>> ops.box_iou(boxes, boxes)
tensor([[1.0000, 0.1429],
        [0.1429, 1.0000]])
"""

from __future__ import annotations

import math
from typing import Any

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib._core.base.importing import parts_of

__all__ = ["FrozenBatchNorm2d", "box_area", "box_convert", "box_iou", "clip_boxes_to_image",
           "complete_box_iou", "distance_box_iou", "generalized_box_iou", "nms"]

parts_of(__name__, "boxes", "misc")

FORMATS = ("xyxy", "xywh", "cxcywh")


def box_area(boxes: Tensor) -> Tensor:
    """The area of each of the `boxes`.

    Shapes: (*, 4) -> (*).
    """
    x1, y1, x2, y2 = wide(boxes).unbind(-1)
    return (x2 - x1) * (y2 - y1)


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """`boxes` in another format: corners, a corner and the size, or the centre and the size.

    Args:
        in_fmt, out_fmt: "xyxy", "xywh" or "cxcywh".
    Shapes: (*, 4) -> (*, 4).
    Raises: ValueError for another format.

    >>> from tensorlib.vision.ops import box_convert
    >>> box_convert(tensorlib.tensor([[1.0, 2.0, 3.0, 6.0]]), "xyxy", "cxcywh")
    tensor([[2., 4., 2., 4.]])
    """
    for name, given in (("in_fmt", in_fmt), ("out_fmt", out_fmt)):
        if given not in FORMATS:
            raise ValueError(f"box_convert: {name} is one of {', '.join(FORMATS)}, got {given!r}")
    if in_fmt == out_fmt:
        return boxes.clone()
    a, b, c, d = boxes.unbind(-1)
    if in_fmt == "xywh":
        a, b, c, d = a, b, a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        c, d = c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return tl.stack((a, b, c, d), -1)


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """The area that each two boxes share, as a part of what they cover together.

    Args:
        boxes1, boxes2: two sets of boxes; each of the one is compared with each of the other.
    Shapes: (N, 4), (M, 4) -> (N, M). Raises: RuntimeError for others.
    """
    require_boxes("box_iou", boxes1, boxes2)
    shared, covered = overlap(boxes1, boxes2)
    return shared / covered


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """`box_iou`, less the part of the smallest box around both that none of them covers.

    Args:
        boxes1, boxes2: two sets of boxes; each of the one is compared with each of the other.
    Shapes: (N, 4), (M, 4) -> (N, M). Raises: RuntimeError for others.
    Source: Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019.
    """
    require_boxes("generalized_box_iou", boxes1, boxes2)
    shared, covered = overlap(boxes1, boxes2)
    width, height = around(boxes1, boxes2).unbind(-1)
    return shared / covered - (width * height - covered) / (width * height)


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """`box_iou`, less the squared distance of the centres in units of the diagonal around both.

    Args:
        boxes1, boxes2: two sets of boxes; each of the one is compared with each of the other.
        eps: keeps the divisor from being 0.
    Shapes: (N, 4), (M, 4) -> (N, M). Raises: RuntimeError for others.
    Source: Zheng et al., "Distance-IoU Loss", AAAI 2020.
    """
    require_boxes("distance_box_iou", boxes1, boxes2)
    diagonal = around(boxes1, boxes2).square().sum(-1) + eps
    centres = [box_convert(wide(boxes), "xyxy", "cxcywh")[:, :2] for boxes in (boxes1, boxes2)]
    between = (centres[0][:, None] - centres[1][None]).square().sum(-1)
    return box_iou(boxes1, boxes2) - between / diagonal


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """`distance_box_iou`, less how much the ratios of width and height differ.

    Args:
        boxes1, boxes2: two sets of boxes; each of the one is compared with each of the other.
        eps: keeps the divisor from being 0.
    Shapes: (N, 4), (M, 4) -> (N, M). Raises: RuntimeError for others.
    Gradient: the weight of the ratios is taken as constant.
    Source: Zheng et al., "Distance-IoU Loss", AAAI 2020.
    """
    require_boxes("complete_box_iou", boxes1, boxes2)
    angles = []
    for boxes in (boxes1, boxes2):
        width, height = box_convert(wide(boxes), "xyxy", "cxcywh")[:, 2:].unbind(-1)
        angles.append(tl.atan(width / height))
    ratios = 4 / math.pi ** 2 * (angles[0][:, None] - angles[1][None]).square()
    with tl.no_grad():
        weight = ratios / (1 - box_iou(boxes1, boxes2) + ratios + eps)
    return distance_box_iou(boxes1, boxes2, eps) - weight * ratios


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """The `boxes` without what lies outside of an image of `size`: its height and width.

    Shapes: (*, 4) -> (*, 4).
    """
    height, width = size
    x1, y1, x2, y2 = boxes.unbind(-1)
    return tl.stack((x1.clamp(0, width), y1.clamp(0, height), x2.clamp(0, width),
                     y2.clamp(0, height)), -1)


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Which of the `boxes` are left, by falling score, if each hides those that it overlaps.

    Args:
        scores: how sure each box is.
        iou_threshold: above this `box_iou` the box with the lower score is hidden.
    Shapes: (N, 4), (N) -> (K). Raises: RuntimeError for others.

    >>> from tensorlib.vision.ops import nms
    >>> boxes = tensorlib.tensor([[0.0, 0, 9, 9], [0.0, 0, 9, 8], [20.0, 0, 29, 9]])
    >>> nms(boxes, tensorlib.tensor([0.5, 0.9, 0.7]), iou_threshold=0.5)
    tensor([1, 2])
    """
    require_boxes("nms", boxes)
    if scores.shape != boxes.shape[:1]:
        raise RuntimeError(f"nms: expected {boxes.shape[0]} scores, got shape "
                           f"{tuple(scores.shape)}")
    order = scores.argsort(descending=True, stable=True)
    with tl.no_grad():
        hides = (box_iou(boxes[order], boxes[order]) > iou_threshold).numpy()
    hidden = [False] * len(order)
    kept = []
    for place, row in enumerate(hides):
        if not hidden[place]:
            kept.append(place)
            hidden = [was or bool(now) for was, now in zip(hidden, row)]
    return order[tl.tensor(kept, dtype=tl.int64)]


# ---- of two sets ---------------------------------------------------------------------------------

def wide(boxes: Tensor) -> Tensor:
    """Boxes of a dtype in which areas don't overflow, as in torchvision."""
    if boxes.is_floating_point():
        return boxes if boxes.dtype in (tl.float32, tl.float64) else boxes.float()
    return boxes if boxes.dtype in (tl.int32, tl.int64) else boxes.int()


def require_boxes(name: str, *sets: Tensor) -> None:
    """Raises RuntimeError for what is not rows of four numbers."""
    for boxes in sets:
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise RuntimeError(f"{name}: boxes have the shape (N, 4), got {tuple(boxes.shape)}")


def overlap(boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    """The areas that each two boxes share, and those that they cover together."""
    low = tl.maximum(boxes1[:, None, :2], boxes2[:, :2])
    high = tl.minimum(boxes1[:, None, 2:], boxes2[:, 2:])
    shared = wide(high - low).clamp(min=0).prod(-1)
    return shared, box_area(boxes1)[:, None] + box_area(boxes2) - shared


def around(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Width and height of the smallest box around each two."""
    low = tl.minimum(boxes1[:, None, :2], boxes2[:, :2])
    high = tl.maximum(boxes1[:, None, 2:], boxes2[:, 2:])
    return wide(high - low).clamp(min=0)


class FrozenBatchNorm2d(nn.Module):
    """A batch norm with statistics and weights that are buffers, and stay as they are.

    Shapes: (N, C, H, W) -> (N, C, H, W), for C = num_features.
    """

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0),
                            ("running_var", 1.0)):
            self.register_buffer(name, tl.full((num_features,), value))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        state_dict.pop(f"{prefix}num_batches_tracked", None)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x: Tensor) -> Tensor:
        """`x`, normalised by the buffers."""
        weight, bias, mean, var = (
            buffer.reshape(1, -1, 1, 1)
            for buffer in (self.weight, self.bias, self.running_mean, self.running_var))
        scale = weight * (var + self.eps).rsqrt()
        return x * scale + (bias - mean * scale)

    def __repr__(self) -> str:
        return f"FrozenBatchNorm2d({self.weight.shape[0]}, eps={self.eps})"
