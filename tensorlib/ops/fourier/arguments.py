"""What the functions of `tensorlib.fft` take: lengths, dims and norms, and numbers of which types.
"""

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import get_default_dtype
from tensorlib._core.base.shape import wrap
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import FUNCTIONS

cat, zeros = FUNCTIONS["cat"], FUNCTIONS["zeros"]

HALF_TYPES = ("float16", "bfloat16")


# ---- types of numbers ----------------------------------------------------------------------------

def floating(name, x):
    """A floating or complex tensor: integers become the default dtype.

    Raises: UnsupportedDtype for half types.
    """
    dtype = x.dtype
    if dtype.is_complex:
        return x
    if not dtype.is_floating_point:
        return x.to(get_default_dtype())
    if dtype.name in HALF_TYPES:
        raise UnsupportedDtype(f"{name}: takes float32, float64 and complex dtypes, got {dtype}; "
                               "x.float() gives float32")
    return x


def real_input(name, x):
    """A floating tensor. Raises: RuntimeError for a complex one."""
    if x.dtype.is_complex:
        raise RuntimeError(f"{name}: expects a real input tensor, got {x.dtype}")
    return floating(name, x)


def complex_input(name, x):
    """A complex tensor."""
    x = floating(name, x)
    return x if x.dtype.is_complex else x.to(x.dtype.to_complex())


# ---- dims and lengths ----------------------------------------------------------------------------

def many(name, what, values):
    """An argument as a list of ints, of which one may stand alone. Raises: TypeError."""
    if isinstance(values, (list, tuple)):
        return [value if type(value) is int else integer(name, f"each of {what}", value)
                for value in values]
    return [integer(name, what, values)]


def one_dim(name, x, dim):
    """A dim counted from the front. Raises: IndexError, also for a tensor without dims."""
    if x.ndim == 0:
        raise IndexError(f"{name}: dimension specified as {dim} but tensor has no dimensions")
    return wrap(name, dim, x.ndim)


def dims_and_lengths(name, x, s, dim, halved=False):
    """The dims to transform, from the front, and the number of points along each.

    By default they are all dims, or the last ones where lengths are given. halved: the last of
    them is half a spectrum.
    Raises: RuntimeError for dims twice, for other lengths than dims, for none and for lengths below
    1; IndexError; TypeError.
    """
    lengths = None if s is None else many(name, "s", s)
    if dim is None:
        count = x.ndim if lengths is None else len(lengths)
        if count > x.ndim:
            raise RuntimeError(f"{name}: got shape with {count} values but input tensor only has "
                               f"{x.ndim} dimensions")
        dims = list(range(x.ndim - count, x.ndim))
    else:
        dims = [one_dim(name, x, d) for d in many(name, "dim", dim)]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"{name}: FFT dims must be unique, got dim={dim}")
    if lengths is not None and len(lengths) != len(dims):
        raise RuntimeError(f"{name}: when given, dim and shape arguments must have the same length,"
                           f" got {len(dims)} and {len(lengths)}")
    sizes = [x.size(d) for d in dims]
    if halved and dims:
        sizes[-1] = 2 * (sizes[-1] - 1)
    lengths = sizes if lengths is None else [
        size if n == -1 else n for n, size in zip(lengths, sizes, strict=True)]
    for n in lengths:
        check_length(name, n)
    return dims, lengths


def check_length(name, n):
    """Raises RuntimeError for less than a point."""
    if n < 1:
        raise RuntimeError(f"{name}: invalid number of data points ({n}) specified, there must be "
                           "one at least")


def resized(x, dim, size, length):
    """A tensor with another size of a dim: cut at the end, or with zeros there."""
    if length < size:
        return x.narrow(dim, 0, length)
    if length > size:
        shape = list(x.shape)
        shape[dim] = length - size
        return cat([x, zeros(shape, dtype=x.dtype, device=x.device)], dim)
    return x


def factor_of(name, norm, count, forward):
    """The factor of a transform of so many points. Raises: RuntimeError for an unknown norm."""
    if norm is None or norm == "backward":
        return 1.0 if forward else 1.0 / count
    if norm == "ortho":
        return count ** -0.5
    if norm == "forward":
        return 1.0 / count if forward else 1.0
    raise RuntimeError(f"{name}: invalid normalization mode {norm!r}; the modes are 'backward', "
                       "'ortho' and 'forward'")
