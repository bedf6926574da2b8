"""`tensorlib.vision.ops`: boxes in images, by their definitions; and what `vision.models` lacks."""

import math

import pytest

import tensorlib as tl
from tensorlib.testing import assert_close, gradcheck
from tensorlib.vision import models, ops


def drawn(count):
    corners = tl.rand(count, 2, dtype=tl.float64) * 6
    return tl.cat([corners, corners + tl.rand(count, 2, dtype=tl.float64) * 4 + 0.5], 1)


def by_hand(a, b):
    """The measures of two boxes, each from its definition in plain numbers."""
    def area(box):
        return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)
    shared = area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])
    covered = area(a) + area(b) - shared
    hull = [min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])]
    iou = shared / covered
    apart = (((a[0] + a[2]) - (b[0] + b[2])) / 2) ** 2 + (((a[1] + a[3]) - (b[1] + b[3])) / 2) ** 2
    distance = iou - apart / ((hull[2] - hull[0]) ** 2 + (hull[3] - hull[1]) ** 2)
    angles = [math.atan((box[2] - box[0]) / (box[3] - box[1])) for box in (a, b)]
    ratio = 4 / math.pi ** 2 * (angles[0] - angles[1]) ** 2
    return {"box_iou": iou, "generalized_box_iou": iou - (area(hull) - covered) / area(hull),
            "distance_box_iou": distance,
            "complete_box_iou": distance - ratio * ratio / (1 - iou + ratio)}


def test_overlaps_are_what_their_definitions_say():
    tl.manual_seed(0)
    first, second = drawn(5), drawn(7)
    for name in ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"):
        wanted = [[by_hand(a, b)[name] for b in second.tolist()] for a in first.tolist()]
        found = getattr(ops, name)(first, second)
        assert_close(found, tl.tensor(wanted, dtype=tl.float64), rtol=1e-6, atol=1e-6)
    for name in ("box_iou", "generalized_box_iou", "distance_box_iou"):
        assert gradcheck(getattr(ops, name), (first.requires_grad_(), second))
    assert ops.box_iou(first[:0], second).shape == (0, 7)
    whole = tl.tensor([[0, 0, 100, 200]], dtype=tl.uint8)       # whose area is no uint8
    assert ops.box_area(whole).item() == 20000 and ops.box_iou(whole, whole).item() == 1


def test_formats_of_boxes_lead_back():
    tl.manual_seed(1)
    boxes = drawn(4)
    for kind in ("xywh", "cxcywh"):
        other = ops.box_convert(boxes, "xyxy", kind)
        assert_close(other[:, 2:], boxes[:, 2:] - boxes[:, :2])
        assert_close(ops.box_convert(other, kind, "xyxy"), boxes)
        assert_close(ops.box_convert(other, kind, "cxcywh")[:, :2],
                     (boxes[:, :2] + boxes[:, 2:]) / 2)
    with pytest.raises(ValueError, match="out_fmt is one of xyxy"):
        ops.box_convert(boxes, "xyxy", "yxyx")
    clipped = ops.clip_boxes_to_image(boxes * 10 - 5, (20, 30))
    assert clipped.min() >= 0 and clipped[:, 2].max() <= 30 and clipped[:, 3].max() <= 20


def test_boxes_hide_those_of_lower_score():
    tl.manual_seed(2)
    boxes, scores = drawn(40), tl.rand(40)
    for threshold in (0.0, 0.3, 1.0):
        wanted = []
        for place in sorted(range(40), key=lambda i: -scores[i].item()):
            if all(by_hand(boxes[place].tolist(), boxes[k].tolist())["box_iou"] <= threshold
                   for k in wanted):
                wanted.append(place)
        assert ops.nms(boxes, scores, threshold).tolist() == wanted
    assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []


def test_models_that_libraries_only_import_say_that_they_are_not_there():
    from tensorlib.vision.models import VGG16_Weights, resnet50
    for use in (resnet50, lambda: VGG16_Weights.IMAGENET1K_V1):
        with pytest.raises(NotImplementedError, match="there is no such model here"):
            use()
    assert not hasattr(models, "resnet51")


X = tl.ones(2, 4)


@pytest.mark.parametrize("call", [
    lambda: ops.nms(X[0], X[0, :1], 0.5), lambda: ops.nms(X, X[0, :3], 0.5),
    lambda: ops.box_iou(X, X[:, :3]), lambda: ops.generalized_box_iou(X[:, :3], X),
    lambda: ops.distance_box_iou(X[0], X), lambda: ops.complete_box_iou(X, X[0])])
def test_other_shapes_are_refused(call):
    with pytest.raises(RuntimeError, match="^(nms|.*box_iou): (boxes have|expected 2 scores)"):
        call()
