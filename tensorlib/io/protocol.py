"""NumPy's protocols, with the whole table of functions behind them."""

from tensorlib._core.tensor.tensor import attach
from tensorlib.io import shape_functions, transforms  # fill their parts of the table
from tensorlib.io.functions import array_function
from tensorlib.io.ufuncs import array_ufunc

__all__ = ["array_function", "array_ufunc", "shape_functions", "transforms"]

attach("__array_ufunc__", array_ufunc)
attach("__array_function__", array_function)
