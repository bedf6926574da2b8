"""Values as the messages of an event file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorlib._core.base.error_names import type_name
from tensorlib.utils.tensorboard.protos import protos
from tensorlib.utils.tensorboard.values import (
    Array,
    animated_png,
    array_of,
    as_bytes,
    number_of,
    one_image,
    png,
    wav,
)

MOST_THRESHOLDS = 127
TINY = 1e-7                     # in the place of a count of 0 that is divided by
BINS = {"tensorflow": None, "auto": "auto", "fd": "fd"}


def clean(tag: str) -> str:
    """A tag as event files have it: what is not a letter, digit or one of -/. becomes _."""
    return re.sub(r"[^-/\w.]", "_", str(tag)).lstrip("/")


def of_value(tag: str, **value: Any) -> Any:
    """A summary of one value."""
    return protos().Summary(value=[protos().Summary.Value(tag=clean(tag), **value)])


def plugin(name: str, content: bytes = b"") -> Any:
    """The mark that says which part of TensorBoard shows a value."""
    kinds = protos().SummaryMetadata
    return kinds(plugin_data=kinds.PluginData(plugin_name=name, content=content))


def tensor_proto(array: Array) -> Any:
    """An array of numbers as a message."""
    shape = protos().TensorShapeProto
    kind = "DT_DOUBLE" if array.dtype == np.float64 else "DT_FLOAT"
    field = "double_val" if kind == "DT_DOUBLE" else "float_val"
    values = array.astype(np.float64 if kind == "DT_DOUBLE" else np.float32)
    return protos().TensorProto(
        dtype=kind, **{field: values.ravel().tolist()},
        tensor_shape=shape(dim=[shape.Dim(size=size) for size in array.shape]))


def text_proto(texts: Sequence[str]) -> Any:
    """A vector of texts as TensorBoard has tensors."""
    shape = protos().TensorShapeProto
    return protos().TensorProto(
        dtype="DT_STRING", string_val=[text.encode() for text in texts],
        tensor_shape=shape(dim=[shape.Dim(size=len(texts))]))


def scalar(tag: str, value: Any, new_style: bool, double_precision: bool) -> Any:
    """The summary of a number."""
    found = number_of("add_scalar", value)
    if not new_style:
        return of_value(tag, simple_value=found)
    array = np.array(found, np.float64 if double_precision else np.float32)
    return of_value(tag, tensor=tensor_proto(array), metadata=plugin("scalars"))


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None) -> Any:
    """The counts in each bin, without empty ones at the ends."""
    array = array_of("add_histogram", values).astype(np.float64).ravel()
    if not array.size:
        raise ValueError("add_histogram: there is no element")
    if not np.isfinite(array).all():
        raise ValueError("add_histogram: there is NaN or infinity among the elements")
    if isinstance(bins, str):
        if bins not in BINS:
            raise ValueError(f"add_histogram: bins is one of {', '.join(BINS)} or a list of edges, "
                             f"got {bins!r}")
        bins = exponential_edges() if bins == "tensorflow" else bins
    counts, edges = np.histogram(array, bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        starts = np.arange(0, len(counts), step)
        counts, edges = np.add.reduceat(counts, starts), np.append(edges[starts], edges[-1])
    filled = np.flatnonzero(counts)
    first, last = (filled[0], filled[-1]) if filled.size else (0, 0)
    return raw_histogram(tag, array.min(), array.max(), array.size, array.sum(), array @ array,
                         edges[first:last + 2], [0, *counts[first:last + 1]])


def raw_histogram(tag: str, low: Any, high: Any, num: Any, total: Any, squares: Any, limits: Any,
                  counts: Any) -> Any:
    """The summary of a histogram that is given by its bounds and counts.

    Raises: ValueError for numbers of both that differ.
    """
    if len(limits) != len(counts):
        raise ValueError("add_histogram_raw: bucket_limits and bucket_counts differ in length: "
                         f"{len(limits)} and {len(counts)}")
    return of_value(tag, histo=protos().HistogramProto(
        min=low, max=high, num=num, sum=total, sum_squares=squares,
        bucket_limit=[float(each) for each in limits], bucket=[float(each) for each in counts]))


def exponential_edges() -> Array:
    """TensorFlow's bins: each is a tenth wider than the one before, on both sides of 0."""
    positive = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-positive[::-1], [0.0], positive])


def image(tag: str, pixels: Array) -> Any:
    """An image (H, W, C)."""
    height, width, channels = pixels.shape
    if not height or not width:
        raise ValueError("add_image: there is no pixel")
    return of_value(tag, image=protos().Summary.Image(
        height=height, width=width, colorspace=channels,
        encoded_image_string=png(as_bytes(pixels))))


def video(tag: str, frames: Any, fps: float) -> Any:
    """Videos (N, T, C, H, W) side by side, as one image that moves."""
    array = array_of("add_video", frames)
    if array.ndim != 5 or array.shape[2] not in (1, 3, 4) or not array.size:
        raise ValueError("add_video: a video is (N, T, C, H, W) with 1, 3 or 4 channels, got "
                         f"{array.shape}")
    if not fps > 0:
        raise ValueError(f"add_video: fps is above 0, got {fps}")
    shown = np.stack([one_image("add_video", as_bytes(frame), "NCHW")
                      for frame in array.swapaxes(0, 1)])
    height, width, channels = shown.shape[1:]
    return of_value(tag, image=protos().Summary.Image(
        height=height, width=width, colorspace=channels,
        encoded_image_string=animated_png(shown, fps)))


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Any) -> Any:
    """Points (B, N, 3) in space, their colours, and the triangles between them, if there are some.

    Each is a tensor of its own, whose mark says what the others are.
    """
    kinds, data = protos().mesh, protos().MeshPluginData
    given = [(array_of("add_mesh", values), kind, name)
             for values, kind, name in ((vertices, data.VERTEX, "vertices"),
                                        (faces, data.FACE, "faces"), (colors, data.COLOR, "colors"))
             if values is not None]
    for array, _, name in given:
        if array.ndim != 3 or array.shape[2] != 3:
            raise ValueError(f"add_mesh: {name} are (B, N, 3), got {array.shape}")
    whole = kinds.get_components_bitmask([kind for _, kind, _ in given])
    return protos().Summary(value=[protos().Summary.Value(
        tag=kinds.get_instance_name(clean(tag), kind),
        tensor=tensor_proto(array.astype(np.float32)),
        metadata=kinds.create_summary_metadata(
            clean(tag), "", kind, whole, array.shape, json_config=json.dumps(config or {})))
        for array, kind, _ in given])


def audio(tag: str, samples: Any, rate: int) -> Any:
    """The summary of a sound of one channel, as a WAV file.

    Shapes: (L,) or (1, L). Raises: ValueError for others.
    """
    array = array_of("add_audio", samples).squeeze()
    if array.ndim != 1:
        raise ValueError(f"add_audio: a sound is (L,) or (1, L), got {array.shape}")
    return of_value(tag, audio=protos().Summary.Audio(
        sample_rate=rate, num_channels=1, length_frames=len(array), content_type="audio/wav",
        encoded_audio_string=wav(array, rate)))


def text(tag: str, words: str) -> Any:
    """The summary of a text, which is shown as Markdown."""
    return of_value(f"{tag}/text_summary", tensor=text_proto([words]), metadata=plugin("text"))


# ---- curves of precision and recall --------------------------------------------------------------

def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int, weights: Any) -> Any:
    """How many are found, and how many of these rightly, for each threshold from 0 to 1."""
    labels, predictions = (array_of("add_pr_curve", each).ravel() for each in (labels, predictions))
    if labels.shape != predictions.shape:
        raise ValueError(f"add_pr_curve: {len(labels)} labels for {len(predictions)} predictions")
    count = min(num_thresholds, MOST_THRESHOLDS)
    weights = np.ones(len(labels)) if weights is None else array_of("add_pr_curve", weights).ravel()
    bucket = np.clip(np.floor(predictions * (count - 1)), 0, count - 1)
    true = np.where(labels > 0, weights, 0.0)
    tp, fp = (np.histogram(bucket, np.arange(count + 1), weights=part)[0][::-1].cumsum()[::-1]
              for part in (true, weights - true))
    return raw_pr_curve(tag, tp, fp, fp[0] - fp, tp[0] - tp, tp / np.maximum(TINY, tp + fp),
                        tp / np.maximum(TINY, tp[0]), count)


def raw_pr_curve(tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any,
                 num_thresholds: int) -> Any:
    """The summary of a precision-recall curve that is given by its counts."""
    rows = [array_of("add_pr_curve_raw", each).astype(np.float32)
            for each in (tp, fp, tn, fn, precision, recall)]
    data = protos().PrCurvePluginData(version=0, num_thresholds=min(num_thresholds,
                                                                    MOST_THRESHOLDS))
    return of_value(tag, tensor=tensor_proto(np.stack(rows)),
                    metadata=plugin("pr_curves", data.SerializeToString()))


# ---- settings of an experiment -------------------------------------------------------------------

def hparams(given: Mapping[str, Any], metrics: Mapping[str, Any], domains: Any = None) -> list[Any]:
    """Three summaries: what an experiment has, what this run began with, and that it ended."""
    domains, kinds, api = domains or {}, protos().hparams, protos().hparams_api
    start, infos = kinds.SessionStartInfo(), []
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool):
            field, kind = "bool_value", "DATA_TYPE_BOOL"
        elif isinstance(value, str):
            field, kind = "string_value", "DATA_TYPE_STRING"
        else:
            field, kind = "number_value", "DATA_TYPE_FLOAT64"
            value = number_of("add_hparams", value)
        setattr(start.hparams[name], field, value)
        info = api.HParamInfo(name=name, type=api.DataType.Value(kind))
        if name in domains:
            if not isinstance(domains[name], list) or not all(
                    isinstance(each, type(given[name])) for each in domains[name]):
                raise TypeError(f"add_hparams: hparam_domain_discrete[{name!r}] is a list of "
                                f"values like {given[name]!r}, got {domains[name]!r}")
            for each in domains[name]:
                setattr(info.domain_discrete.values.add(), field, each)
        infos.append(info)
    for name in domains:
        if name not in given:
            raise TypeError(f"add_hparams: hparam_domain_discrete names {name!r}, which is not in "
                            "hparam_dict")
    experiment = api.Experiment(hparam_infos=infos, metric_infos=[
        api.MetricInfo(name=api.MetricName(tag=name)) for name in metrics])
    end = kinds.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    names = protos().hparams_names
    parts = ((names.EXPERIMENT_TAG, {"experiment": experiment}),
             (names.SESSION_START_INFO_TAG, {"session_start_info": start}),
             (names.SESSION_END_INFO_TAG, {"session_end_info": end}))
    return [of_value(tag, metadata=plugin(names.PLUGIN_NAME, kinds.HParamsPluginData(
        version=names.PLUGIN_DATA_VERSION, **part).SerializeToString())) for tag, part in parts]


def custom_scalars(layout: Any) -> Any:
    """Which charts stand together, as a dict of dicts of lists."""
    kinds, categories = protos().layout, []
    if not isinstance(layout, Mapping):
        raise TypeError(f"add_custom_scalars: layout is a dict, got {type_name(layout)}")
    for title, charts in layout.items():
        found = []
        for name, (kind, tags) in charts.items():
            if kind == "Margin":
                series = kinds.MarginChartContent.Series(value=tags[0], lower=tags[1],
                                                         upper=tags[2])
                found.append(kinds.Chart(title=name, margin=kinds.MarginChartContent(
                    series=[series])))
            else:
                found.append(kinds.Chart(title=name, multiline=kinds.MultilineChartContent(
                    tag=list(tags))))
        categories.append(kinds.Category(title=title, chart=found))
    content = kinds.Layout(category=categories).SerializeToString()
    shape = protos().TensorShapeProto
    proto = protos().TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=shape())
    return protos().Summary(value=[protos().Summary.Value(
        tag="custom_scalars__config__", tensor=proto, metadata=plugin("custom_scalars"))])
