"""The parts of the package tensorboard that are used: messages of event files, and their writer."""

from __future__ import annotations

import importlib
from functools import cache
from types import SimpleNamespace

PROTO = "tensorboard.compat.proto."
HOMES = {
    "EventFileWriter": "tensorboard.summary.writer.event_file_writer",
    "Event": f"{PROTO}event_pb2", "SessionLog": f"{PROTO}event_pb2",
    "Summary": f"{PROTO}summary_pb2", "SummaryMetadata": f"{PROTO}summary_pb2",
    "HistogramProto": f"{PROTO}summary_pb2",
    "TensorProto": f"{PROTO}tensor_pb2", "TensorShapeProto": f"{PROTO}tensor_shape_pb2",
    "GraphDef": f"{PROTO}graph_pb2", "NodeDef": f"{PROTO}node_def_pb2",
    "AttrValue": f"{PROTO}attr_value_pb2", "VersionDef": f"{PROTO}versions_pb2",
    "MeshPluginData": "tensorboard.plugins.mesh.plugin_data_pb2",
    "PrCurvePluginData": "tensorboard.plugins.pr_curve.plugin_data_pb2",
    "ProjectorConfig": "tensorboard.plugins.projector.projector_config_pb2",
    "mesh": "tensorboard.plugins.mesh.metadata",
    "layout": "tensorboard.plugins.custom_scalar.layout_pb2",
    "hparams": "tensorboard.plugins.hparams.plugin_data_pb2",
    "hparams_api": "tensorboard.plugins.hparams.api_pb2",
    "hparams_names": "tensorboard.plugins.hparams.metadata",
    "text_format": "google.protobuf.text_format",
}


@cache
def protos() -> SimpleNamespace:
    """The classes and modules by name. Raises: ImportError where the package is missing."""
    try:
        importlib.import_module("tensorboard")
    except ImportError:
        raise ImportError("SummaryWriter: writing event files needs the package tensorboard: pip "
                          "install 'tensorlib[tensorboard]'; CSVWriter needs nothing") from None
    found = SimpleNamespace()
    for name, home in HOMES.items():
        module = importlib.import_module(home)
        setattr(found, name, getattr(module, name) if name[0].isupper() else module)
    return found
