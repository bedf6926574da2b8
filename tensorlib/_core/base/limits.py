"""The limits of dtypes: `finfo` of floating ones, `iinfo` of integers."""

import numpy as np

from tensorlib._core.base.dtypes import ABSENT, BY_NAME, dtype, get_default_dtype, has_gradients

# bits of the fraction, and the largest exponent: IEEE 754's formats, and the upper half of binary32
FORMATS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}
DIGITS = {"float16": 3, "bfloat16": 2, "float32": 6, "float64": 15}

# eps, the largest and the smallest normal number of formats that are none of IEEE 754's
OF_8_BITS = {
    "float8_e4m3fn": (0.125, 448.0, 2.0**-6), "float8_e4m3fnuz": (0.125, 240.0, 2.0**-7),
    "float8_e5m2": (0.25, 57344.0, 2.0**-14), "float8_e5m2fnuz": (0.125, 57344.0, 2.0**-15)}


# the dtypes of Python's numbers
OF_PYTHON = {int: BY_NAME["int64"], float: BY_NAME["float64"], complex: BY_NAME["complex128"]}


def checked(name, type):
    """A dtype, or that of a type of Python's numbers. Raises: TypeError for all else."""
    type = OF_PYTHON[type] if type in (int, float, complex) else type
    if not isinstance(type, dtype):
        raise TypeError(f"{name}: argument 'type' must be a dtype, got {type!r}")
    return type


class Limits:
    """What `finfo` and `iinfo` share: two of the same dtype are equal, and one never changes.

    So one of each dtype is made, and given again.
    """

    __slots__ = ("dtype", "bits", "max", "min")

    def __new__(cls, type=None):
        made = cls.known.get(type) if type.__hash__ else None
        if made is None:
            made = super().__new__(cls)
            for name, value in cls.limits(type).items():
                object.__setattr__(made, name, value)
            if type is not None:             # the default dtype may be another later
                cls.known[type] = made
        return made

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__}: {name} cannot be set")

    def __eq__(self, other):
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self):
        return hash((type(self), self.dtype))

    def __reduce__(self):
        return type(self), (BY_NAME.get(self.dtype) or ABSENT[self.dtype],)


class finfo(Limits):
    """The limits of a floating dtype, by default the default one, as Python's numbers.

    `max`, `min`, `eps` (what the next number after 1 is larger by), `tiny` and `smallest_normal`
    (the smallest that has all digits), `resolution` (10 to minus the decimal digits), `bits`.
    Of a complex dtype they are those of its parts. Raises: TypeError for other dtypes.

    >>> tensorlib.finfo(tensorlib.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = ("eps", "tiny", "smallest_normal", "resolution")
    known: dict = {}

    @staticmethod
    def limits(type):
        """The attributes by name."""
        type = get_default_dtype() if type is None else checked("finfo", type)
        type = type.to_real() if type.is_complex else type
        if not type.is_floating_point:
            raise TypeError(f"finfo: takes a floating dtype, got {type}; iinfo takes integers")
        if type.name in OF_8_BITS:
            eps, largest, tiny = OF_8_BITS[type.name]
        elif type.name in FORMATS:
            fraction, exponent = FORMATS[type.name]
            eps = 2.0**-fraction
            largest, tiny = (2 - eps) * 2.0**exponent, 2.0 ** (1 - exponent)
        else:
            raise NotImplementedError(f"finfo: the limits of {type} are not known here")
        return dict(dtype=type.name, bits=8 * type.itemsize, eps=eps, max=largest, min=-largest,
                    tiny=tiny, smallest_normal=tiny, resolution=10.0 ** -DIGITS.get(type.name, 0))

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
                f"dtype={self.dtype})")


class iinfo(Limits):
    """The limits of a dtype of integers: `max`, `min`, `bits`. Raises: TypeError for others.

    >>> tensorlib.iinfo(tensorlib.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ()
    known: dict = {}

    @staticmethod
    def limits(type):
        """The attributes by name."""
        type = checked("iinfo", type)
        if has_gradients(type):
            raise TypeError(f"iinfo: takes a dtype of integers, got {type}; finfo takes others")
        if type.name == "bool":
            raise TypeError("iinfo: takes a dtype of integers, got tensorlib.bool")
        limits = np.iinfo(type.name)
        return dict(dtype=type.name, bits=limits.bits, max=int(limits.max), min=int(limits.min))

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
