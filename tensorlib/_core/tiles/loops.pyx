"""The table of element-wise loops, `[operation][dtype]`.

It starts from the inner loops of NumPy's ufuncs, so that every dtype works at SIMD speed; the
kernels of the chosen instruction set replace those that they do faster or more exactly.
"""

from cpython.object cimport PyObject

import numpy as np

from tensorlib._core.base.dtypes cimport (
    BOOL, ITEMSIZE, N_DTYPES, dtype_id, dtype_object, from_numpy_dtype,
)
from tensorlib._core.base.ufunc cimport PyUFuncObject, ufunc_loop

from tensorlib import _kernels
from tensorlib._core.base.dtypes import BY_NAME

ctypedef void (*loop1)(const void*, void*, Py_ssize_t) noexcept nogil
ctypedef void (*loop2)(const void*, const void*, void*, Py_ssize_t) noexcept nogil
ctypedef void (*loop3)(const void*, const void*, const void*, void*, Py_ssize_t) noexcept nogil

cdef Loop TABLE[MAX_LOOPS][N_DTYPES]
cdef cast_loop CASTS[N_DTYPES][N_DTYPES]
cdef gather_loop GATHERS[N_DTYPES]
cdef scatter_loop SCATTERS[N_DTYPES]
cdef transpose_loop TRANSPOSES[N_DTYPES]
cdef dict IDS = {}

# NumPy's name where it differs from ours
FROM_NUMPY = {
    "neg": np.negative, "abs": np.absolute, "sign": np.sign, "square": np.square,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "pow": np.power, "maximum": np.maximum, "minimum": np.minimum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
}
NOT_FOR_BOOL = ("abs", "floor", "ceil", "round", "trunc")       # as in PyTorch


cdef int loop_id(str name) except -1:
    """The row of a loop by name; a new name gets an empty row."""
    if name not in IDS:
        if len(IDS) == MAX_LOOPS:
            raise RuntimeError(f"loops: the table has room for {MAX_LOOPS} names")
        IDS[name] = len(IDS)
    return IDS[name]


def loop_arity(str name):
    """How many arguments the loops of this name take, 0 where there are none."""
    cdef int dtype
    if name in IDS:
        for dtype in range(N_DTYPES):
            if TABLE[<int>IDS[name]][dtype].run != NULL:
                return TABLE[<int>IDS[name]][dtype].arity
    return 0


def loop_names():
    """The names of all loops."""
    return list(IDS)


cdef Loop* find_loop(int loop, int dtype) noexcept nogil:
    return &TABLE[loop][dtype]


cdef cast_loop find_cast(int source, int target) noexcept nogil:
    return CASTS[source][target]


cdef gather_loop find_gather(int dtype) noexcept nogil:
    return GATHERS[dtype]


cdef scatter_loop find_scatter(int dtype) noexcept nogil:
    return SCATTERS[dtype]


cdef transpose_loop find_transpose(int dtype) noexcept nogil:
    return TRANSPOSES[dtype]


cdef void call_loop(const Loop* loop, char** inputs, char* output, Py_ssize_t n) noexcept nogil:
    """output := loop(inputs...) over contiguous runs of n elements."""
    if loop.strided:
        call_numpy(loop, inputs, output, n)
    elif loop.arity == 2:
        (<loop2>loop.run)(inputs[0], inputs[1], output, n)
    elif loop.arity == 1:
        (<loop1>loop.run)(inputs[0], output, n)
    else:
        (<loop3>loop.run)(inputs[0], inputs[1], inputs[2], output, n)


cdef bint takes_number(const Loop* loop, int place) noexcept nogil:
    """Whether the input at `place` may be one number, for `call_with_number`."""
    return loop.with_number != NULL and (place == 1 or loop.commutes)


cdef void call_with_number(const Loop* loop, int place, char** inputs, char* output,
                           Py_ssize_t n) noexcept nogil:
    """output := loop(inputs...), the input at `place` one number, the other a run of n elements."""
    (<loop2>loop.with_number)(inputs[1 - place], inputs[place], output, n)


cdef void call_numpy(const Loop* loop, char** inputs, char* output, Py_ssize_t n) noexcept nogil:
    cdef char* args[4]
    cdef Py_ssize_t steps[4]
    cdef int i
    for i in range(loop.arity):
        args[i] = inputs[i]
        steps[i] = loop.input_size
    args[loop.arity] = output
    steps[loop.arity] = loop.output_size
    (<ufunc_loop>loop.run)(args, &n, steps, loop.data)


# ---- filling the table --------------------------------------------------------------------------

cdef int set_loop(str name, int dtype, void* run, void* data, int arity, int result,
                  bint strided) except -1:
    cdef Loop* loop = find_loop(loop_id(name), dtype)
    loop.run = run
    loop.data = data
    loop.arity = arity
    loop.input_dtype = dtype
    loop.result = result
    loop.strided = strided
    loop.input_size = ITEMSIZE[dtype]
    loop.output_size = ITEMSIZE[result]
    return 0


def fill_from_ufunc(str name, object ufunc):
    """Takes the loops whose inputs share one of our dtypes. Half types compute in float32."""
    cdef PyUFuncObject* u = <PyUFuncObject*><PyObject*>ufunc
    cdef int row, i, dtype, result
    cdef list ids
    for row in range(u.ntypes):
        ids = [CODES.get(u.types[row * u.nargs + i]) for i in range(u.nargs)]
        if None in ids or len(set(ids[:u.nin])) != 1:
            continue
        dtype, result = ids[0], ids[u.nin]
        if dtype == BOOL and name in NOT_FOR_BOOL:
            continue
        if find_loop(loop_id(name), dtype).run == NULL:
            set_loop(name, dtype, <void*>u.functions[row],
                     u.data[row] if u.data != NULL else NULL, u.nin, result, True)


cdef int fill_from_kernels(object rows) except -1:
    cdef int source, target
    cdef size_t address
    for name, inputs, output, address in rows:
        if output not in BY_NAME:
            continue                             # the moves know items of 16 bytes too
        target = dtype_id(BY_NAME[output])
        source = dtype_id(BY_NAME[inputs[-1]])      # `where` has a bool before its operands
        if name == "cast":
            CASTS[source][target] = <cast_loop>address
        elif name == "gather":
            GATHERS[target] = <gather_loop>address
        elif name == "transpose":
            TRANSPOSES[target] = <transpose_loop>address
        elif name == "scatter":
            SCATTERS[target] = <scatter_loop>address
        elif name.endswith("_number"):
            name = name.removesuffix("_number")
            find_loop(loop_id(name), source).with_number = <void*>address
            find_loop(loop_id(name), source).commutes = name in ("add", "mul")
        else:
            set_loop(name, source, <void*>address, NULL, len(inputs), target, False)
    return 0


# by type number
cdef dict CODES = {np.dtype(code).num: from_numpy_dtype(code) for code in "?Bbhilqfd"}


def loop_dtypes(name):
    """Names of the dtypes for which the loop `name` exists, with the dtype of its result."""
    cdef int dtype
    cdef Loop* loop
    cdef dict found = {}
    for dtype in range(N_DTYPES):
        loop = find_loop(loop_id(name), dtype)
        if loop.run != NULL:
            found[dtype_object(dtype).name] = dtype_object(loop.result).name
    return found


for _name, _ufunc in FROM_NUMPY.items():
    fill_from_ufunc(_name, _ufunc)
fill_from_ufunc("round", np.trunc)       # the rows of integers, which rint does not have
fill_from_ufunc("sign", np.trunc)        # the row of bool
for _name in _kernels.ELEMENTWISE:
    fill_from_kernels(_kernels.load(_name).table())
