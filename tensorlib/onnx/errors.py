"""The errors of a failed export, and the import of `onnx`."""

from importlib import import_module
from typing import Any


class OnnxExporterError(RuntimeError):
    """A model that can't be written as ONNX."""

    __module__ = "tensorlib.onnx"


class UnsupportedOperatorError(OnnxExporterError):
    """A call of an operation, or in a form, that has no counterpart in ONNX."""

    __module__ = "tensorlib.onnx"


def unsupported(call: Any, why: str) -> UnsupportedOperatorError:
    """An error about a call, with the line that it came from."""
    return UnsupportedOperatorError(
        f"onnx.export: {call.type}" + (f" ({call.line})" if call.line else "") + f": {why}")


def package(name: str) -> Any:
    """The package of this name. Raises: ModuleNotFoundError that says how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"onnx.export: needs the package {name}, which is not installed; "
                                  f"pip install {name}") from None
