"""Raw loops as functions of NumPy arrays."""

import ctypes
import os

import numpy as np
from tensorlib import _kernels
from tensorlib._kernels import available_levels

MODULES = ("bessel", "bessel_jyk", "binary", "bounds", "cast", "division", "exponential", "fused",
           "gamma", "moves", "normal", "trigonometric", "unary")
LEVELS = [os.environ["TENSORLIB_ISA"]] if "TENSORLIB_ISA" in os.environ else available_levels()
STRIDED = {"gather", "scatter"}


def numpy_dtype(name):
    """How NumPy holds a dtype: bfloat16, which it lacks, as its bits"""
    return np.dtype({"bfloat16": "uint16"}.get(name, name))


class Loop:
    """One element-wise loop; called with arrays, it returns an array"""

    def __init__(self, inputs, output, address):
        self.inputs = [numpy_dtype(name) for name in inputs]
        self.output = numpy_dtype(output)
        kinds = [ctypes.c_void_p] * (len(inputs) + 1) + [ctypes.c_ssize_t]
        self.function = ctypes.CFUNCTYPE(None, *kinds)(address)

    def __call__(self, *arrays, out=None):
        arrays = [np.ascontiguousarray(a, dtype) for a, dtype in zip(arrays, self.inputs)]
        arrays = np.broadcast_arrays(*arrays)
        arrays = [np.ascontiguousarray(a) for a in arrays]
        out = np.empty_like(arrays[0], self.output) if out is None else out
        self.function(*(a.ctypes.data for a in arrays), out.ctypes.data, out.size)
        return out

    def in_place(self, position, *arrays):
        """the result written over the input at `position`"""
        arrays = [np.array(a, dtype) for a, dtype in zip(arrays, self.inputs)]
        out = arrays[position]
        self.function(*(a.ctypes.data for a in arrays), out.ctypes.data, out.size)
        return out


def rows(level, modules=MODULES):
    for module in modules:
        loaded = _kernels.load(module, level)
        yield from loaded.table()


def loops(level, modules=MODULES):
    """{(name, *input dtypes, output dtype): Loop} for the element-wise loops of one level"""
    return {(name, *inputs, output): Loop(inputs, output, address)
            for name, inputs, output, address in rows(level, modules) if name not in STRIDED}


def edges(dtype):
    """what goes wrong first: zeros, subnormals, thresholds, huge numbers, infinities, NaN"""
    info = np.finfo(dtype)
    positive = [0.0, info.smallest_subnormal, info.tiny / 2, info.tiny, 1e-20, 1e-8, 0.25, 0.4375,
                0.5, 0.55, 1 - info.epsneg, 1.0, 1 + info.eps, 1.5, 2.0, 2.5, 3.0, 10.0, 26.5, 27.3,
                88.0, 88.8, 103.9, 104.0, 150.0, 709.7, 709.8, 745.1, 746.0, 2.0**20, 2.0**23,
                2.0**24 + 2, 2.0**53, 1e22, info.max, np.inf]
    with np.errstate(over="ignore"):
        positive = np.array(positive).astype(dtype)
    return np.concatenate([positive, -positive, np.array([np.nan], dtype)])


def any_bits(dtype, n, seed):
    """n numbers of random bit patterns"""
    dtype = np.dtype(dtype)
    data = np.random.default_rng(seed).bytes(n * dtype.itemsize)
    return np.frombuffer(data, dtype).copy()


def ulps(got, exact):
    """|got - exact| in units of the last place of got's dtype, 0 where both are special alike"""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        nearest = exact.astype(got.dtype)
        _, exponent = np.frexp(np.abs(exact))
        unit = np.ldexp(np.ones_like(exact),
                        np.maximum(exponent - info.nmant - 1, info.minexp - info.nmant))
        error = np.abs(got - exact) / unit
    alike = (got == nearest) | np.isnan(got) & np.isnan(exact)
    return np.where(alike & ~np.isfinite(error), 0.0,
                    np.where(np.isnan(error), np.inf, error).astype(np.float64))
