"""`SummaryWriter`: event files for TensorBoard, under PyTorch's names."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from tensorlib._core.base.error_names import type_name
from tensorlib.utils.tensorboard import summaries
from tensorlib.utils.tensorboard.boxes import image_with_boxes
from tensorlib.utils.tensorboard.embeddings import write_embedding
from tensorlib.utils.tensorboard.graphs import graph_of, graph_of_onnx
from tensorlib.utils.tensorboard.protos import protos
from tensorlib.utils.tensorboard.values import array_of, as_bytes, one_image


class FileWriter:
    """Writes summaries to one event file, by the package tensorboard.

    Args:
        log_dir: the folder of the file.
        max_queue: how many events wait at most before they are written.
        flush_secs: after how many seconds they are, at the latest.
        filename_suffix: what the name of the file ends with.
    """

    def __init__(self, log_dir: str | os.PathLike[str], max_queue: int = 10, flush_secs: int = 120,
                 filename_suffix: str = "") -> None:
        self.event_writer = protos().EventFileWriter(os.fspath(log_dir), max_queue, flush_secs,
                                                     filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        folder: str = self.event_writer.get_logdir()
        return folder

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Writes an event.

        Args:
            event: the message.
            step: the step it is of.
            walltime: its time, in seconds since 1970; now for None.
        """
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None,
                    walltime: float | None = None) -> None:
        """Writes a summary.

        Args:
            summary: the message.
            global_step: the step it is of.
            walltime: its time, in seconds since 1970; now for None.
        """
        self.add_event(protos().Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Writes what waits to the file."""
        self.event_writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self.event_writer.close()


class SummaryWriter:
    """Logs a training for TensorBoard: numbers, histograms, images, texts, graphs.

    It needs the package tensorboard: `pip install "tensorlib[tensorboard]"`; `tensorboard --logdir
    runs` shows what was logged. All methods take the step, `global_step`, and the time, `walltime`,
    which is now for None. Tensors, arrays and numbers are all taken.

    Args:
        log_dir: the folder; `runs/`, the time and the machine's name for None.
        comment: what its name ends with then.
        purge_step: the first step that is to be shown; what an earlier run logged from there on is
            not.
        max_queue: how many events wait at most before they are written.
        flush_secs: after how many seconds they are, at the latest.
        filename_suffix: what the names of event files end with.

    Raises: ImportError where the package tensorboard is missing.
    """

    def __init__(self, log_dir: str | os.PathLike[str] | None = None, comment: str = "",
                 purge_step: int | None = None, max_queue: int = 10, flush_secs: int = 120,
                 filename_suffix: str = "") -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.options = max_queue, flush_secs, filename_suffix
        self.all_writers: dict[str, FileWriter] = {}
        self.file_writer = self.opened(self.log_dir)
        if purge_step is not None:
            kinds = protos()
            self.file_writer.add_event(kinds.Event(file_version="brain.Event:2"), purge_step)
            self.file_writer.add_event(kinds.Event(session_log=kinds.SessionLog(
                status=kinds.SessionLog.START)), purge_step)

    def opened(self, folder: str) -> FileWriter:
        """The writer of a folder's event file; one for each folder."""
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self.options)
        return self.all_writers[folder]

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _get_file_writer(self) -> FileWriter:
        """What writes the events, under PyTorch's name; a new one, if this writer was closed."""
        self.file_writer = self.opened(self.log_dir)
        return self.file_writer

    def write(self, summary: Any, step: Any, walltime: float | None) -> None:
        """Writes a summary; into a new file, if this writer was closed."""
        self._get_file_writer().add_summary(summary, step, walltime)

    # ---- numbers -------------------------------------------------------------------------------

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None,
                   walltime: float | None = None, new_style: bool = False,
                   double_precision: bool = False) -> None:
        """Logs one number, or a tensor of one element. `new_style` logs it as a tensor."""
        self.write(summaries.scalar(tag, scalar_value, new_style, double_precision), global_step,
                   walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: Mapping[str, Any],
                    global_step: int | None = None, walltime: float | None = None) -> None:
        """Logs several numbers that are shown in one chart, each in a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            place = f"{main_tag.replace('/', '_')}_{tag}"
            summary = summaries.scalar(main_tag, value, False, False)
            self.opened(os.path.join(self.log_dir, place)).add_summary(
                summary, global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None,
                   walltime: float | None = None) -> None:
        """Logs the elements of a tensor."""
        array = array_of("add_tensor", tensor)
        self.write(summaries.of_value(tag, tensor=summaries.tensor_proto(array)), global_step,
                   walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None,
                      bins: Any = "tensorflow", walltime: float | None = None,
                      max_bins: int | None = None) -> None:
        """Logs how the elements of a tensor are distributed. NaN and infinity are a ValueError."""
        self.write(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: int, sum: float,
                          sum_squares: float, bucket_limits: Sequence[float],
                          bucket_counts: Sequence[float], global_step: int | None = None,
                          walltime: float | None = None) -> None:
        """Logs a histogram that was counted already: the right end of each bin, and its count."""
        self.write(summaries.raw_histogram(tag, min, max, num, sum, sum_squares, bucket_limits,
                                           bucket_counts), global_step, walltime)

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: int | None = None,
                     num_thresholds: int = 127, weights: Any = None,
                     walltime: float | None = None) -> None:
        """Logs precision and recall of `predictions`, from 0 to 1, of `labels`, 0 or 1."""
        self.write(summaries.pr_curve(tag, labels, predictions, num_thresholds, weights),
                   global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
                         true_negative_counts: Any, false_negative_counts: Any, precision: Any,
                         recall: Any, global_step: int | None = None, num_thresholds: int = 127,
                         weights: Any = None, walltime: float | None = None) -> None:
        """Logs a curve that was counted already, with an entry for each threshold."""
        self.write(summaries.raw_pr_curve(
            tag, true_positive_counts, false_positive_counts, true_negative_counts,
            false_negative_counts, precision, recall, num_thresholds), global_step, walltime)

    # ---- images, sounds and texts ---------------------------------------------------------------

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None,
                  walltime: float | None = None, dataformats: str = "CHW") -> None:
        """Logs an image of bytes, or of numbers from 0 to 1; `dataformats` names its dims."""
        pixels = one_image("add_image", array_of("add_image", img_tensor), dataformats)
        self.write(summaries.image(tag, as_bytes(pixels)), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None,
                   walltime: float | None = None, dataformats: str = "NCHW") -> None:
        """Logs images side by side, eight in a row."""
        pixels = one_image("add_images", array_of("add_images", img_tensor), dataformats)
        self.write(summaries.image(tag, as_bytes(pixels)), global_step, walltime)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any,
                             global_step: int | None = None, walltime: float | None = None,
                             rescale: float = 1, dataformats: str = "CHW",
                             labels: Sequence[str] | str | None = None) -> None:
        """Logs an image with boxes (N, 4), which are (x1, y1, x2, y2), and their names.

        Pillow draws them.
        """
        pixels = image_with_boxes(img_tensor, box_tensor, rescale, dataformats, labels)
        self.write(summaries.image(tag, pixels), global_step, walltime)

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4,
                  walltime: float | None = None) -> None:
        """Logs videos (N, T, C, H, W) side by side, as a PNG image that moves."""
        self.write(summaries.video(tag, vid_tensor, fps), global_step, walltime)

    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
                 config_dict: Mapping[str, Any] | None = None, global_step: int | None = None,
                 walltime: float | None = None) -> None:
        """Logs points (B, N, 3) in space, with colours (B, N, 3), and triangles (B, M, 3) of them.

        A colour goes from 0 to 255; a triangle is three numbers of points. `config_dict` has the
        camera and the light, as Three.js names them.
        """
        self.write(summaries.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """Logs a figure of matplotlib's, or several side by side, and frees them if `close`."""
        figures = list(figure) if isinstance(figure, (list, tuple)) else [figure]
        pictures = []
        for each in figures:
            each.canvas.draw()
            pictures.append(np.asarray(each.canvas.buffer_rgba())[..., :3].copy())
            if close:
                each.clear()
        if len(pictures) > 1:
            self.add_images(tag, np.stack(pictures), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, pictures[0], global_step, walltime, "HWC")

    def add_audio(self, tag: str, snd_tensor: Any, global_step: int | None = None,
                  sample_rate: int = 44100, walltime: float | None = None) -> None:
        """Logs a sound: (1, L) or (L,), from -1 to 1."""
        self.write(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None,
                 walltime: float | None = None) -> None:
        """Logs a text, which TensorBoard shows as Markdown."""
        self.write(summaries.text(tag, text_string), global_step, walltime)

    # ---- models and experiments ----------------------------------------------------------------

    def add_graph(self, model: Callable[..., Any], input_to_model: Any = None,
                  verbose: bool = False, use_strict_trace: bool = True) -> None:
        """Logs what a model does with `input_to_model`, its arguments, as a graph."""
        if input_to_model is None:
            raise ValueError("add_graph: input_to_model has the arguments of a call")
        graph = graph_of(model, input_to_model)
        if verbose:
            print(graph)
        self.file_writer = self.opened(self.log_dir)
        self.file_writer.add_event(protos().Event(graph_def=graph.SerializeToString()))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Logs the graph of an ONNX file, which the package onnx reads."""
        graph = graph_of_onnx(prototxt)
        self.file_writer = self.opened(self.log_dir)
        self.file_writer.add_event(protos().Event(graph_def=graph.SerializeToString()))

    def add_embedding(self, mat: Any, metadata: Sequence[Any] | None = None, label_img: Any = None,
                      global_step: int | None = None, tag: str = "default",
                      metadata_header: Sequence[str] | None = None) -> None:
        """Logs points (N, D) for the projector, with a text or several and an image for each."""
        write_embedding(Path(self.log_dir), mat, metadata, label_img, global_step or 0, tag,
                        metadata_header)

    def add_hparams(self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any],
                    hparam_domain_discrete: Mapping[str, list[Any]] | None = None,
                    run_name: str | None = None, global_step: int | None = None) -> None:
        """Logs the settings of a run and what it reached, which TensorBoard compares among runs."""
        for name, value in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
            if not isinstance(value, Mapping):
                raise TypeError(f"add_hparams: {name} is a dict, got {type_name(value)}")
        parts = summaries.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as run:
            for part in parts:
                run.write(part, global_step, None)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Any]]) -> None:
        """Says which charts stand together: `{title: {chart: ("Multiline", [tag, ...])}}`."""
        self.write(summaries.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags: Sequence[str], category: str = "default",
                                          title: str = "untitled") -> None:
        """Says that the numbers of several tags stand in one chart."""
        self.add_custom_scalars({category: {title: ("Multiline", list(tags))}})

    def add_custom_scalars_marginchart(self, tags: Sequence[str], category: str = "default",
                                       title: str = "untitled") -> None:
        """Says that three tags, a value and what is below and above it, stand in one chart."""
        if len(tags) != 3:
            raise ValueError(f"add_custom_scalars_marginchart: tags are 3, got {len(tags)}")
        self.add_custom_scalars({category: {title: ("Margin", list(tags))}})

    # ---- the end -------------------------------------------------------------------------------

    def flush(self) -> None:
        """Writes what waits to the files."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Ends the files. What is logged later goes into new ones."""
        for writer in self.all_writers.values():
            writer.flush()
            writer.close()
        self.all_writers = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
