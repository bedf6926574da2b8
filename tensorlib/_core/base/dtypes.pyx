"""Element types and PyTorch's promotion rules.

Inside the core a dtype is a small integer, its id; the `dtype` objects are for users. Half types
(float16, bfloat16) store 16 bits and compute in float32. uint16, uint32 and uint64 promote with
other integers as in the array API standard. A complex number is two floating ones, the real part
first.
"""

cimport cython

import numpy as np

from tensorlib._core.base.closed cimport close_type

from tensorlib._core.base import library

cdef Py_ssize_t[N_DTYPES] itemsizes = [1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 8, 16]
cdef int[N_DTYPES] kinds = [0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3]
ITEMSIZE = itemsizes
KIND = kinds

cdef list NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64",
                   "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
                   "complex64", "complex128"]


@cython.binding(False)            # methods check their `self`
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class dtype:
    """The type of a tensor's elements, such as `tensorlib.float32`, whose `name` is "float32"."""

    @property
    def itemsize(self):
        """Bytes of one element."""
        return ITEMSIZE[self.id]

    @property
    def is_floating_point(self):
        """Whether the elements are real floating numbers."""
        return KIND[self.id] == FLOAT_KIND

    @property
    def is_complex(self):
        """Whether the elements are complex numbers."""
        return KIND[self.id] == COMPLEX_KIND

    @property
    def is_signed(self):
        """Whether the elements may be negative."""
        return self.id != BOOL and not is_unsigned(self.id)

    def to_real(self):
        """The floating dtype of the parts of a complex one; a floating dtype itself.

        Raises: RuntimeError for integers and bools.
        """
        return OBJECTS[real_of(counterpart("to_real", self.id))]

    def to_complex(self):
        """The complex dtype whose parts have this floating dtype; a complex dtype itself.

        The half types give complex64, since there is no narrower one. Raises: RuntimeError for
        integers and bools.
        """
        return OBJECTS[complex_of(counterpart("to_complex", self.id))]

    @property
    def dtype(self):
        """The NumPy dtype of the same elements; because of it NumPy accepts this dtype as its own.

        Raises: TypeError for bfloat16, which NumPy does not have.
        """
        return to_numpy_dtype(self.id)

    def __repr__(self):
        return f"{library.name}.{self.name}"

    def __reduce__(self):
        return _dtype_from_name, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


@cython.binding(False)
cdef class AbsentDtype(dtype):
    """A dtype that no tensor has: it can be named and compared, and has attributes."""

    @property
    def itemsize(self):
        return self.width

    @property
    def is_floating_point(self):
        return self.kind == FLOAT_KIND

    @property
    def is_complex(self):
        return self.kind == COMPLEX_KIND

    @property
    def is_signed(self):
        return self.signed

    def to_real(self):
        return self.missing()

    to_complex = to_real

    @property
    def dtype(self):
        return self.missing()

    def missing(self):
        raise TypeError(f"{self} is a name alone: no tensor has this dtype")


close_type(dtype)
close_type(AbsentDtype)


cdef int counterpart(str name, int id) except -1:
    """A floating or complex dtype. Raises RuntimeError for others."""
    if KIND[id] < FLOAT_KIND:
        raise RuntimeError(f"{name}: takes floating and complex dtypes, got {OBJECTS[id]}")
    return id


cdef dtype _make(int id):
    cdef dtype result = dtype.__new__(dtype)
    result.id = id
    result.name = NAMES[id]
    return result


cdef list OBJECTS = [_make(id) for id in range(N_DTYPES)]
BY_NAME = {d.name: d for d in OBJECTS}


cdef AbsentDtype _name(str name):
    """The error for a dtype of PyTorch's that is not supported."""
    cdef AbsentDtype result = AbsentDtype.__new__(AbsentDtype)
    result.name = name
    result.width = 4 if name in ("complex32", "qint32") else 1
    result.kind = (COMPLEX_KIND if name[0] == "c" else FLOAT_KIND if name[0] == "f" else
                   INTEGER_KIND)
    result.signed = not name.startswith(("qu", "u")) and name != "float8_e8m0fnu"
    return result


ABSENT = {name: _name(name) for name in (
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float4_e2m1fn_x2", "complex32", "qint8", "qint32", "quint8", "quint4x2",
    *(f"{sign}int{n}" for sign in ("", "u") for n in range(1, 8)))}


def _dtype_from_name(name):
    return BY_NAME[name] if name in BY_NAME else ABSENT[name]


cdef object dtype_object(int id):
    return OBJECTS[id]


cdef int dtype_id(object value) except -1:
    """The id of a dtype object, of a Python type (float, int, ...) or of a NumPy dtype."""
    if type(value) is dtype:
        return (<dtype>value).id
    if value is float:
        return FLOAT64
    if value is int:
        return INT64
    if value is complex:
        return COMPLEX128
    if value is bool:
        return BOOL
    if isinstance(value, (np.dtype, type)):
        return from_numpy_dtype(value)
    if isinstance(value, AbsentDtype):
        value.missing()
    hint = f"; did you mean tensorlib.{value}?" if isinstance(value, str) and value in NAMES else ""
    raise TypeError(f"dtype: expected a tensorlib dtype, got {value!r}{hint}")


# Rows and columns in the order of the ids. An unsigned and a signed type promote to the signed type
# that holds both, the two half types to float32. -1 if there is none: for wide unsigned types with
# bool, and uint64 with signed types. PyTorch does not promote wide unsigned types with other
# integers; there the rule of the array API standard is used.
cdef int[N_DTYPES][N_DTYPES] PROMOTE
cdef int _a, _b


cdef int _promote_pair(int a, int b):
    if a == b:
        return a
    if signed_twin(a) != a and b == BOOL or signed_twin(b) != b and a == BOOL:
        return -1
    if KIND[a] + KIND[b] == FLOAT_KIND + COMPLEX_KIND:
        return max(complex_of(a), complex_of(b))
    if KIND[a] != KIND[b]:
        return a if KIND[a] > KIND[b] else b
    if KIND[a] == INTEGER_KIND:
        return _wider(a, b)
    if max(a, b) == BFLOAT16:
        return FLOAT32
    return max(a, b)


cdef int _wider(int a, int b):
    """The dtype to which two dtypes of integers promote, or -1."""
    cdef int signed
    if is_unsigned(a) == is_unsigned(b):
        return a if ITEMSIZE[a] > ITEMSIZE[b] else b
    signed, a = (b, a) if is_unsigned(a) else (a, b)
    for signed in range(signed, INT64 + 1):
        if ITEMSIZE[signed] > ITEMSIZE[a]:
            return signed
    return -1


cdef bint is_unsigned(int id) noexcept nogil:
    """Whether a dtype is one of unsigned integers."""
    return id == UINT8 or signed_twin(id) != id


cdef int signed_twin(int id) noexcept nogil:
    """For uint16, uint32 and uint64 the signed dtype of that width; other dtypes themselves.

    Sums, differences and products have the same bits in both, so they share a loop.
    """
    if id == UINT16:
        return INT16
    if id == UINT32:
        return INT32
    return INT64 if id == UINT64 else id


for _a in range(N_DTYPES):
    for _b in range(N_DTYPES):
        PROMOTE[_a][_b] = _promote_pair(_a, _b)


cdef int promote(str name, int a, int b) except -1:
    """The dtype to which both promote. Raises RuntimeError, for the operation `name`."""
    if PROMOTE[a][b] < 0:
        raise RuntimeError(
            f"{name}: promotion of {OBJECTS[a]} and {OBJECTS[b]} is not supported: no dtype of "
            "integers holds both; convert one of the two, with .to()")
    return PROMOTE[a][b]


cdef int compute_dtype(int id) noexcept nogil:
    """The dtype in which elements of `id` are computed: float32 for the half types."""
    return FLOAT32 if id == FLOAT16 or id == BFLOAT16 else id


cdef int complex_of(int id) noexcept nogil:
    """The complex dtype with parts of a floating dtype; for others, of the default dtype."""
    if KIND[id] == COMPLEX_KIND:
        return id
    if KIND[id] < FLOAT_KIND:
        id = _default_float
    return COMPLEX128 if id == FLOAT64 else COMPLEX64


cdef int real_of(int id) noexcept nogil:
    """The dtype of the parts of a complex number; any other dtype itself."""
    if KIND[id] != COMPLEX_KIND:
        return id
    return FLOAT32 if id == COMPLEX64 else FLOAT64


def has_gradients(d):
    """Whether tensors of a dtype have gradients: floating and complex ones."""
    return KIND[dtype_id(d)] >= FLOAT_KIND


cdef int _default_float = FLOAT32


cdef int default_float() noexcept nogil:
    return _default_float


def get_default_dtype():
    """The floating dtype of new tensors made from Python floats."""
    return OBJECTS[_default_float]


def set_default_dtype(d):
    """Sets the floating dtype of new tensors made from Python floats.

    Raises: TypeError if `d` is not a floating dtype.
    """
    global _default_float
    cdef int id = dtype_id(d)
    if KIND[id] != FLOAT_KIND:
        raise TypeError(f"set_default_dtype: only floating-point dtypes are supported, got {d!r}")
    _default_float = id


def promote_types(type1, type2):
    """The smallest dtype that both dtypes convert to under PyTorch's promotion rules.

    For uint16, uint32 and uint64 with integers, which PyTorch does not promote, the rules are those
    of the array API standard. Raises: RuntimeError for uint64 with signed integers, and for the
    three with bool.

    >>> promote_types(tensorlib.uint8, tensorlib.int8)
    tensorlib.int16
    """
    return OBJECTS[promote("promote_types", dtype_id(type1), dtype_id(type2))]


def can_cast(from_, to):
    """Whether PyTorch's rules allow a result of dtype `from_` to be stored as `to`."""
    return KIND[dtype_id(from_)] <= KIND[dtype_id(to)]


cdef dict FROM_NUMPY = {np.dtype(name): id for id, name in enumerate(NAMES) if name != "bfloat16"}
cdef list TO_NUMPY = [None if name == "bfloat16" else np.dtype(name) for name in NAMES]


cdef int from_numpy_dtype(object value, str name="dtype") except -1:
    cdef object found
    try:
        value = np.dtype(value)
    except TypeError:
        raise TypeError(f"{name}: expected a tensorlib dtype, got {value!r}") from None
    found = FROM_NUMPY.get(value)
    if found is None:
        raise TypeError(
            f"{name}: can't convert a NumPy array of dtype {value}; the dtypes that convert are "
            + ", ".join(str(d) for d in FROM_NUMPY)
        )
    return found


cdef object to_numpy_dtype(int id):
    if id == BFLOAT16:
        raise TypeError("numpy: NumPy has no bfloat16; convert with .float() first")
    return TO_NUMPY[id]
