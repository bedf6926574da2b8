"""Comparing models with their ONNX files, as onnxruntime runs them."""

import onnx

import tensorlib as tl
from tensorlib.autograd.tree import flatten
from tensorlib.onnx import export


def outputs_of(function, args, kwargs):
    """What a function gives, flat."""
    found = flatten(function(*args, **kwargs))[0]
    return [tl.as_tensor(x).detach() for x in found if x is not None]


def compare(function, args, *others, kwargs=None, rtol=2e-5, atol=2e-6, **options):
    """Exports a function, and compares what it gives for the examples and for other arguments."""
    if hasattr(function, "eval"):
        function.eval()
    exported = export(function, args, kwargs=kwargs, **options)
    onnx.checker.check_model(exported.model_proto, full_check=True)
    for given in (args, *others):
        wanted = outputs_of(function, given, kwargs or {})
        found = exported(*given, **(kwargs or {}))
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted):
            assert x.dtype == y.dtype and x.shape == y.shape
            assert tl.allclose(x.double(), y.double(), rtol=rtol, atol=atol, equal_nan=True)
    return exported


def types(exported):
    """The types of the nodes."""
    return [node.op_type for node in exported.model_proto.graph.node]
