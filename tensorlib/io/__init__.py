"""NumPy's protocols: its functions on Tensors give Tensors, with autograd."""

from tensorlib._core.tensor.tensor import attach
from tensorlib._core.base.importing import deferred
from tensorlib.io.methods import dot_method, flags, to_numpy
from tensorlib.ops.publish import attach_checked

# the first call imports `protocol`, which puts the functions themselves in the place of these
attach("__array_ufunc__", deferred("tensorlib.io.protocol", "array_ufunc"))
attach("__array_function__", deferred("tensorlib.io.protocol", "array_function"))
attach_checked("dot", dot_method)
attach("flags", property(flags, doc=flags.__doc__))
attach_checked("to_numpy", to_numpy)
