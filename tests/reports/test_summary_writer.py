"""`SummaryWriter`: what TensorBoard reads of what was logged; and `CSVWriter`, without it."""

import csv
import importlib
import struct
import zlib

import numpy as np
import pytest

import tensorlib as tl
from process import run_forked
from tensorlib import nn
from tensorlib.utils.tensorboard import CSVWriter, SummaryWriter
from tensorlib.utils.tensorboard.protos import protos
from tensorlib.utils.tensorboard.values import png


# ---- tables --------------------------------------------------------------------------------------

def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_has_a_row_for_each_step(tmp_path):
    with CSVWriter(tmp_path / "log.csv", flush_every=2) as log:
        for step in range(5):
            log.add_scalar("loss", tl.tensor(1 / (step + 1)), step)
            if step % 2:
                log.add_scalars({"accuracy, %": step * 10, 'odd "name"': np.float32(0.5)}, step)
    found = rows(tmp_path / "log.csv")
    assert [row["step"] for row in found] == list("01234")
    assert [row["accuracy, %"] for row in found] == ["", "10.0", "", "30.0", ""]
    assert float(found[2]["loss"]) == np.float32(1 / 3) and found[1]['odd "name"'] == "0.5"


def test_a_log_is_gone_on_with_and_gets_columns_later(tmp_path):
    path = tmp_path / "log.csv"
    for first in (0, 3):
        with CSVWriter(str(path)) as log:
            for step in range(first, first + 3):
                log.add_scalar("loss", float("nan") if step == 4 else step, step)
    with CSVWriter(path) as log:
        log.add_scalar("later", 7, 6)
    found = rows(path)
    assert [row["step"] for row in found] == list("0123456") and found[4]["loss"] == "nan"
    assert found[-1] == {"step": "6", "loss": "", "later": "7.0"} and found[0]["later"] == ""
    assert [each.name for each in tmp_path.iterdir()] == ["log.csv"]


def test_what_is_no_log_or_no_number_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("name,value\n")
    with pytest.raises(ValueError, match="is not a log"):
        CSVWriter(tmp_path / "a.csv")
    log = CSVWriter(tmp_path / "b.csv")
    with pytest.raises(ValueError, match="one number, got shape \\(2,\\)"):
        log.add_scalar("x", tl.ones(2), 0)
    with pytest.raises(TypeError, match="takes a tensor, an array or a number"):
        log.add_scalar("x", "high", 0)
    with pytest.raises(ValueError, match="'step'"):
        log.add_scalar("step", 1, 0)
    with pytest.raises(ValueError, match="flush_every"):
        CSVWriter(tmp_path / "c.csv", 0)
    log.close()
    assert not (tmp_path / "b.csv").exists()


def test_a_png_is_what_the_standard_says():
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    data = png(pixels)
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">2I", data[16:24]) == (3, 2)
    length, = struct.unpack(">I", data[33:37])
    content = zlib.decompress(data[41:41 + length])
    assert content == b"\0" + pixels[0].tobytes() + b"\0" + pixels[1].tobytes()
    assert struct.unpack(">I", data[29:33])[0] == zlib.crc32(data[12:29])


def test_without_tensorboard_the_error_names_the_extra(monkeypatch, tmp_path):
    real = importlib.import_module

    def missing(name, *args):
        if name.partition(".")[0] == "tensorboard":
            raise ImportError(name)
        return real(name, *args)

    protos.cache_clear()
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'tensorlib\[tensorboard\]'"):
        SummaryWriter(tmp_path)
    protos.cache_clear()


def test_importing_the_module_imports_nothing_of_tensorboard():
    run_forked("import tensorlib.utils.tensorboard, sys\nassert 'tensorboard' not in sys.modules")


# ---- event files ---------------------------------------------------------------------------------

@pytest.fixture
def accumulator(tmp_path):
    """A function of a log's folder that gives what TensorBoard itself reads there."""
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

    def read(folder=tmp_path):
        found = reading.EventAccumulator(str(folder), {kind: 0 for kind in (
            reading.SCALARS, reading.HISTOGRAMS, reading.IMAGES, reading.AUDIO, reading.TENSORS)})
        return found.Reload()
    return read


def test_numbers_are_read_back(tmp_path, accumulator):
    with SummaryWriter(tmp_path, flush_secs=1) as log:
        for step in range(3):
            log.add_scalar("train/loss", tl.tensor(0.5 ** step, requires_grad=True), step,
                           100 + step)
        log.add_scalar("a tag: odd", 1, 7)
        log.add_scalar("exact", 1 / 3, new_style=True, double_precision=True)
        log.add_scalars("both", {"a": 1.0, "b": tl.tensor([2.0])}, 5)
        log.add_tensor("matrix", tl.ones(2, 3), 1)
    found = accumulator()
    assert [(e.step, e.value, e.wall_time) for e in found.Scalars("train/loss")] == [
        (0, 1.0, 100), (1, 0.5, 101), (2, 0.25, 102)]
    assert found.Scalars("a_tag__odd")[0].step == 7
    assert found.Tensors("exact")[0].tensor_proto.double_val[0] == 1 / 3
    assert list(found.Tensors("matrix")[0].tensor_proto.float_val) == [1.0] * 6
    assert accumulator(tmp_path / "both_b").Scalars("both")[0].value == 2.0


def test_a_writer_that_was_closed_begins_a_new_file(tmp_path, accumulator):
    log = SummaryWriter(tmp_path)
    log.add_scalar("x", 1, 0)
    log.close()
    log.close()
    log.add_scalar("x", 2, 1)
    log.close()
    assert [e.value for e in accumulator().Scalars("x")] == [1, 2]
    SummaryWriter(str(tmp_path), purge_step=1).close()
    assert [e.value for e in accumulator().Scalars("x")] == [1]


@pytest.mark.parametrize("bins", ["tensorflow", "auto", "fd", [0.0, 1.0, 2.0, 9.0]])
def test_histograms_count_all_elements(tmp_path, accumulator, bins):
    values = tl.tensor([0.5, 0.5, 1.5, -0.0, 8.0])
    with SummaryWriter(tmp_path) as log:
        log.add_histogram("h", values, 3, bins=bins, max_bins=None if bins == "tensorflow" else 2)
        log.add_histogram("weights", nn.Linear(4, 3).weight, 3)
        log.add_histogram("integers", np.arange(5))
        log.add_histogram_raw("raw", 0, 2, 3, 3.0, 5.0, [1.0, 2.0], [1, 2], 4)
    found = accumulator()
    h = found.Histograms("h")[0].histogram_value
    assert (h.min, h.max, h.num, h.sum, h.sum_squares) == (0, 8, 5, 10.5, 66.75)
    assert sum(h.bucket) == 5 and len(h.bucket) == len(h.bucket_limit) and h.bucket[-1]
    assert found.Histograms("weights")[0].histogram_value.num == 12
    assert list(found.Histograms("raw")[0].histogram_value.bucket) == [1, 2]


def test_images_sounds_and_texts(tmp_path, accumulator):
    image = pytest.importorskip("PIL.Image")
    io = importlib.import_module("io")
    pixels = tl.rand(3, 4, 5)
    with SummaryWriter(tmp_path) as log:
        log.add_image("chw", pixels, 1)
        log.add_image("bytes", (pixels * 255).to(tl.uint8).permute(1, 2, 0), dataformats="HWC")
        log.add_image("grey", pixels[0], dataformats="HW")
        log.add_images("many", pixels.expand(10, 3, 4, 5))
        log.add_audio("tone", tl.linspace(0, 60, 500).sin()[None], sample_rate=8000)
        log.add_text("note", "**bold** ü", 2)
    found = accumulator()
    for tag, size in (("chw", (5, 4)), ("bytes", (5, 4)), ("grey", (5, 4)), ("many", (40, 8))):
        event = found.Images(tag)[0]
        shown = image.open(io.BytesIO(event.encoded_image_string))
        assert shown.size == size == (event.width, event.height)
        if tag != "grey":
            wanted = (pixels * 255).to(tl.uint8).permute(1, 2, 0).numpy()
            assert np.array_equal(np.asarray(shown)[:4, :5], wanted)
    assert found.Audio("tone")[0].sample_rate == 8000
    text = found.Tensors("note/text_summary")[0].tensor_proto.string_val[0]
    assert text.decode() == "**bold** ü"


def test_a_video_is_an_image_that_moves(tmp_path, accumulator):
    image = pytest.importorskip("PIL.Image")
    io = importlib.import_module("io")
    frames = tl.rand(2, 5, 3, 4, 6)
    with SummaryWriter(tmp_path) as log:
        log.add_video("film", frames, 1, fps=10)
        for wrong in (frames[0], frames[:, :, :2], frames[:0]):
            with pytest.raises(ValueError, match="add_video: a video is"):
                log.add_video("film", wrong)
        with pytest.raises(ValueError, match="fps"):
            log.add_video("film", frames, fps=0)
    event = accumulator().Images("film")[0]
    shown = image.open(io.BytesIO(event.encoded_image_string))
    assert shown.size == (12, 4) == (event.width, event.height) and shown.n_frames == 5
    for number in range(5):
        shown.seek(number)
        wanted = (frames[:, number] * 255).to(tl.uint8).permute(2, 0, 3, 1).reshape(4, 12, 3)
        assert np.array_equal(np.asarray(shown.convert("RGB")), wanted.numpy())
        assert shown.info["duration"] == 100


def test_boxes_are_drawn_into_images(tmp_path, accumulator):
    image = pytest.importorskip("PIL.Image")
    io = importlib.import_module("io")
    grey = tl.full((1, 40, 60), 0.5)
    with SummaryWriter(tmp_path) as log:
        log.add_image_with_boxes("boxes", grey, tl.tensor([[10, 5, 30, 20]]), 1)
        log.add_image_with_boxes("named", grey[0], np.array([[10.0, 5, 50, 30]]), rescale=2,
                                 dataformats="HW", labels="a cat")
        for wrong, options in ((tl.ones(4), {}), (tl.ones(1, 4), {"labels": ["a", "b"]}),
                               (tl.ones(1, 4), {"rescale": 0})):
            with pytest.raises(ValueError, match="add_image_with_boxes"):
                log.add_image_with_boxes("boxes", grey, wrong, **options)
    found = accumulator()
    pixels = np.asarray(image.open(io.BytesIO(found.Images("boxes")[0].encoded_image_string)))
    assert pixels.shape == (40, 60, 3) and (pixels[0, 0] == 127).all()
    assert (pixels[12, 10] == (255, 0, 0)).all() and (pixels[12, 20] == 127).all()
    named = np.asarray(image.open(io.BytesIO(found.Images("named")[0].encoded_image_string)))
    assert named.shape == (80, 120, 3) and (named.reshape(-1, 3).sum(1) < 60).any()    # letters


def test_meshes_are_points_colours_and_triangles(tmp_path, accumulator):
    data = pytest.importorskip("tensorboard.plugins.mesh.metadata")
    points, faces = tl.rand(1, 4, 3), tl.tensor([[[0, 1, 2], [1, 2, 3]]])
    with SummaryWriter(tmp_path) as log:
        log.add_mesh("solid", points, np.full((1, 4, 3), 255, np.uint8), faces,
                     {"camera": {"cls": "PerspectiveCamera"}}, global_step=3)
        log.add_mesh("cloud", points)
        with pytest.raises(ValueError, match=r"faces are \(B, N, 3\), got \(2, 3\)"):
            log.add_mesh("solid", points, faces=faces[0])
    found = accumulator()
    assert set(found.Tags()["tensors"]) == {"solid_VERTEX", "solid_FACE", "solid_COLOR",
                                            "cloud_VERTEX"}
    event, = found.Tensors("solid_FACE")
    assert event.step == 3 and list(event.tensor_proto.float_val) == [0, 1, 2, 1, 2, 3]
    content = found.SummaryMetadata("solid_VERTEX").plugin_data.content
    told = data.parse_plugin_metadata(content)
    assert told.name == "solid" and list(told.shape) == [1, 4, 3] and "Camera" in told.json_config


def test_the_graph_of_an_onnx_file(tmp_path, accumulator):
    pytest.importorskip("onnx")
    tl.onnx.export(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), (tl.ones(1, 2),), tmp_path / "m.onnx")
    with SummaryWriter(tmp_path) as log:
        log.add_onnx_graph(str(tmp_path / "m.onnx"))
    nodes = accumulator().Graph().node
    assert {"Variable", "Relu"} <= {node.op for node in nodes}
    relu, = (node for node in nodes if node.op == "Relu")
    assert relu.input[0] in {node.name for node in nodes}


def test_figures_of_matplotlib(tmp_path, accumulator):
    figure = pytest.importorskip("matplotlib.figure")
    canvas = importlib.import_module("matplotlib.backends.backend_agg").FigureCanvasAgg
    with SummaryWriter(tmp_path) as log:
        for tag, count in (("one", 1), ("two", 2)):
            figures = [figure.Figure(figsize=(2, 1), dpi=50) for _ in range(count)]
            for each in figures:
                canvas(each)
                each.add_subplot().plot([1, 2])
            log.add_figure(tag, figures if count > 1 else figures[0])
    assert accumulator().Images("one")[0].width == 100
    assert accumulator().Images("two")[0].width == 200


def test_the_graph_of_a_model_has_its_modules_and_shapes(tmp_path, accumulator):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 2)).eval()
    with SummaryWriter(tmp_path) as log:
        log.add_graph(model, tl.ones(3, 4))
    nodes = {node.name: node for node in accumulator().Graph().node}
    assert {"0/weight", "3/bias", "2/running_mean"} <= set(nodes)
    assert all(source in nodes for node in nodes.values() for source in node.input)
    assert any(name.startswith("3/") and node.op != "Parameter" for name, node in nodes.items())
    shape = nodes["output/0"].attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == [3, 2]
    with pytest.raises(ValueError, match="input_to_model"):
        SummaryWriter(tmp_path).add_graph(model)


def test_curves_settings_and_layouts(tmp_path, accumulator):
    with SummaryWriter(tmp_path) as log:
        labels, scores = tl.tensor([0, 1, 1, 0, 1]), tl.tensor([0.1, 0.9, 0.4, 0.6, 0.8])
        log.add_pr_curve("pr", labels, scores, 0, num_thresholds=11)
        log.add_pr_curve_raw("raw", *[[3, 1]] * 6, num_thresholds=2)
        log.add_hparams({"lr": 0.1, "name": "sgd", "nesterov": True, "none": None, "width": 8},
                        {"hparam/loss": tl.tensor(0.5)}, {"width": [8, 16]}, run_name="run")
        log.add_custom_scalars({"all": {"losses": ("Multiline", ["a", "b"]),
                                        "band": ("Margin", ["v", "lo", "hi"])}})
        log.add_custom_scalars_multilinechart(["a", "b"])
        log.add_custom_scalars_marginchart(["a", "b", "c"])
    found = accumulator()
    curve = np.array(found.Tensors("pr")[0].tensor_proto.float_val).reshape(6, 11)
    for place, threshold in enumerate(np.linspace(0, 1, 11)):
        picked = np.floor(scores.numpy() * 10) >= place
        tp, fp = (picked & (labels.numpy() == 1)).sum(), (picked & (labels.numpy() == 0)).sum()
        assert (curve[0, place], curve[1, place]) == (tp, fp), threshold
        assert curve[5, place] == pytest.approx(tp / 3)
    run = accumulator(tmp_path / "run")
    assert run.Scalars("hparam/loss")[0].value == 0.5
    content = run.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    settings = protos().hparams.HParamsPluginData.FromString(content).session_start_info.hparams
    assert settings["lr"].number_value == 0.1 and settings["name"].string_value == "sgd"
    assert settings["nesterov"].bool_value and "none" not in settings
    content = run.summary_metadata["_hparams_/experiment"].plugin_data.content
    infos = protos().hparams.HParamsPluginData.FromString(content).experiment.hparam_infos
    assert [v.number_value for v in infos[-1].domain_discrete.values] == [8, 16]


def test_points_for_the_projector(tmp_path):
    pytest.importorskip("tensorboard")
    with SummaryWriter(tmp_path) as log:
        log.add_embedding(tl.ones(3, 2), ["a", "b\tc", "d"], tl.rand(3, 1, 4, 4), tag="first/one")
        for _ in range(2):
            log.add_embedding(tl.ones(2, 2), [("x", 1), ("y", 2)], metadata_header=["n", "v"],
                              global_step=7)
    config = protos().text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(),
                                        protos().ProjectorConfig())
    assert [e.tensor_name for e in config.embeddings] == ["first/one:00000", "default:00007"]
    first, second = config.embeddings
    assert (tmp_path / first.tensor_path).read_text() == "1.0\t1.0\n" * 3
    assert (tmp_path / first.metadata_path).read_text() == "a\nb c\nd\n"
    assert (tmp_path / second.metadata_path).read_text() == "n\tv\nx\t1\ny\t2\n"
    assert (tmp_path / first.sprite.image_path).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("log_it", [
    lambda log: log.add_scalar("x", tl.ones(2)), lambda log: log.add_histogram("x", tl.ones(0)),
    lambda log: log.add_histogram("x", tl.tensor([float("nan")])),
    lambda log: log.add_histogram("x", tl.ones(2), bins="best"),
    lambda log: log.add_image("x", tl.ones(2, 2)), lambda log: log.add_image("x", tl.ones(5, 2, 2)),
    lambda log: log.add_image("x", tl.ones(3, 0, 2)), lambda log: log.add_audio("x", tl.ones(2, 3)),
    lambda log: log.add_image("x", tl.ones(3, 2, 2), dataformats="CHX"),
    lambda log: log.add_images("x", tl.ones(0, 3, 2, 2)),
    lambda log: log.add_histogram_raw("x", 0, 1, 1, 1, 1, [1.0], []),
    lambda log: log.add_pr_curve("x", tl.ones(2), tl.ones(3)),
    lambda log: log.add_embedding(tl.ones(3)), lambda log: log.add_embedding(tl.ones(3, 2), ["a"]),
    lambda log: log.add_custom_scalars_marginchart(["a"])])
def test_what_can_not_be_logged_is_a_value_error(log_it, tmp_path):
    pytest.importorskip("tensorboard")
    with SummaryWriter(tmp_path) as log, pytest.raises(ValueError, match="add_[a-z_]+: "):
        log_it(log)
    with SummaryWriter(tmp_path) as log, pytest.raises(TypeError, match="add_hparams: "):
        log.add_hparams([], {})


def test_a_tensor_that_is_logged_is_left_as_it_was(tmp_path):
    pytest.importorskip("tensorboard")
    x = tl.rand(2, 3, 4, 4, requires_grad=True)
    before = x.detach().clone()
    with SummaryWriter(tmp_path) as log:
        log.add_images("x", x)
        log.add_histogram("x", x.to(tl.bfloat16))
        log.add_scalar("x", x.sum())
    assert x.detach().equal(before) and x.grad is None and x.requires_grad
