"""ONNX files of models: `export` writes what other runtimes, such as onnxruntime, read.

Needs the package `onnx`, which is imported when a model is exported:
`pip install 'tensorlib[onnx]'`.
"""

from tensorlib.onnx.errors import OnnxExporterError, UnsupportedOperatorError
from tensorlib.onnx.exporting import ONNXProgram, export, is_in_onnx_export

__all__ = ["ONNXProgram", "OnnxExporterError", "UnsupportedOperatorError", "export",
           "is_in_onnx_export"]
