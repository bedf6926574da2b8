"""Tensors among other libraries: NumPy's functions on them give Tensors, inside the graph."""

from tensorlib._core.tensor.tensor import attach
from tensorlib.io import arranging  # fills its part of the table
from tensorlib.io.functions import array_function, dot_method, flags, to_numpy
from tensorlib.io.ufuncs import array_ufunc
from tensorlib.ops.publish import attach_checked

attach("__array_ufunc__", array_ufunc)
attach("__array_function__", array_function)
attach_checked("dot", dot_method)
attach("flags", property(flags, doc=flags.__doc__))
attach("to_numpy", to_numpy)
