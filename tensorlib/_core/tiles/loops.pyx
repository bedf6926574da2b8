"""The table of element-wise loops, `[operation][dtype]`.

The kernels of the chosen instruction set fill it when this module is imported. What they leave out,
a declaration fills from the inner loops of NumPy's ufuncs, so that every dtype works at SIMD speed.
"""

from cpython.object cimport PyObject

import numpy as np

from tensorlib._core.base.dtypes cimport (
    BOOL, COMPLEX_KIND, ITEMSIZE, KIND, N_DTYPES, dtype_id, from_numpy_dtype,
)
from tensorlib._core.base.locks cimport Lock, drop, hold
from tensorlib._core.base.ufunc cimport PyUFuncObject, ufunc_loop

from tensorlib import _kernels
from tensorlib._core.base.dtypes import BY_NAME

cdef Loop TABLE[MAX_LOOPS][N_DTYPES]
cdef cast_loop CASTS[N_DTYPES][N_DTYPES]
cdef gather_loop GATHERS[N_DTYPES]
cdef reverse_loop REVERSES[N_DTYPES]
cdef scatter_loop SCATTERS[N_DTYPES]
cdef transpose_loop TRANSPOSES[N_DTYPES]
cdef dict IDS = {}
cdef Lock naming

# Our dtype ids by NumPy's type numbers, -1 where there is none. Half types compute in float32.
cdef int IDS_OF_NUMPY[128]
for _number in range(128):
    IDS_OF_NUMPY[_number] = -1
for _code in "?BbhilqHILQfdFD":
    IDS_OF_NUMPY[<int>np.dtype(_code).num] = from_numpy_dtype(_code)


cdef int loop_id(str name) except -1:
    """The row of a loop by name; a new name gets an empty row."""
    if name not in IDS:
        hold(&naming)
        try:
            if len(IDS) == MAX_LOOPS:
                raise RuntimeError(f"loops: the table has room for {MAX_LOOPS} names")
            IDS.setdefault(name, len(IDS))
        finally:
            drop(&naming)
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


cdef reverse_loop find_reverse(int dtype) noexcept nogil:
    return REVERSES[dtype]


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
    elif loop.arity == 3:
        (<loop3>loop.run)(inputs[0], inputs[1], inputs[2], output, n)
    else:
        (<loop4>loop.run)(inputs[0], inputs[1], inputs[2], inputs[3], output, n)


cdef bint takes_number(const Loop* loop, int place) noexcept nogil:
    """Whether the input at `place` may be one number, for `call_with_number`."""
    return loop.with_number != NULL and (
        place == 1 or loop.commutes or loop.with_first != NULL)


cdef int taken_runs(const Loop* loop, int runs) noexcept nogil:
    """Which of three inputs are runs, as a mixed loop takes it; 0 for all, and for other loops."""
    return runs if loop.mixed != NULL and (runs == 1 or runs == 3 or runs == 5 or runs == 6) else 0


cdef void call_with_number(const Loop* loop, int place, char** inputs, char* output,
                           Py_ssize_t n) noexcept nogil:
    """output := loop(inputs...), the input at `place` one number, the other a run of n elements; of
    three inputs the last two are numbers."""
    if loop.strided:
        call_numpy(loop, inputs, output, n, place)
        return
    if loop.arity == 3:
        (<loop3>loop.with_number)(inputs[0], inputs[1], inputs[2], output, n)
        return
    numbered(loop, place)(inputs[1 - place], inputs[place], output, n)


cdef loop2 numbered(const Loop* loop, int place) noexcept nogil:
    """The loop of a run and a number, which is the operation's input at `place`."""
    return <loop2>(loop.with_first if place == 0 and not loop.commutes else loop.with_number)


cdef void call_numpy(const Loop* loop, char** inputs, char* output, Py_ssize_t n,
                     int number=-1) noexcept nogil:
    """The same by a loop of NumPy's; the input at `number` is one element."""
    cdef char* args[4]
    cdef Py_ssize_t steps[4]
    cdef int i
    for i in range(loop.arity):
        args[i] = inputs[i]
        steps[i] = 0 if i == number else loop.input_size
    args[loop.arity] = output
    steps[loop.arity] = loop.output_size
    (<ufunc_loop>loop.run)(args, &n, steps, loop.data)


# ---- filling the table --------------------------------------------------------------------------

# How long an element takes in these loops, in times of an addition: powers of two, up to 8, as
# `python -m benchmarks.thresholds` prints them. Others count as 1.
cdef dict COSTS = {}
for _cost, _names in ((2, "exp exp2 expm1 log log2 log10 log1p sigmoid tanh sqrt remainder"),
                      (4, "sinh cosh erf erfc asin acos atan floor_divide div_trunc"),
                      (4, "gelu gelu_backward gelu_tanh gelu_tanh_backward silu silu_backward selu "
                          "mish mish_backward logsigmoid tanhshrink elu celu softplus cross "
                          "cross_of_logits"),
                      (8, "sin cos tan atan2 pow lgamma digamma")):
    COSTS.update(dict.fromkeys(_names.split(), _cost))


# Loops of NumPy's that are as fast with one number, at either place, as with two runs.
cdef frozenset WITH_NUMBERS = frozenset(
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split())


cdef int set_loop(str name, int dtype, void* run, void* data, int arity, int result,
                  bint strided) except -1:
    cdef Loop* loop = find_loop(loop_id(name), dtype)
    loop.run = run
    loop.data = data
    loop.arity = arity
    loop.input_dtype = dtype
    loop.result = result
    loop.strided = strided
    loop.cost = COSTS.get(name, 1)
    loop.input_size = ITEMSIZE[dtype]
    loop.output_size = ITEMSIZE[result]
    return 0


def fill_from_ufuncs(str name, int arity, ufuncs, bint bools, bint complex_numbers=False):
    """Takes NumPy's loops for the dtypes that have none yet, from the first ufunc that has them.

    They are those of this arity whose inputs share one dtype, bool only with `bools`, complex ones
    only with `complex_numbers`. What is no ufunc gives none.
    """
    cdef PyUFuncObject* u
    cdef Loop* loops = &TABLE[loop_id(name)][0]
    cdef const char* types
    cdef int row, i, dtype, result
    for ufunc in ufuncs:
        if not isinstance(ufunc, np.ufunc):
            continue
        u = <PyUFuncObject*><PyObject*>ufunc
        if u.nin != arity or u.nout != 1:
            continue
        for row in range(u.ntypes):
            types = u.types + row * u.nargs
            dtype, result = IDS_OF_NUMPY[<int>types[0]], IDS_OF_NUMPY[<int>types[arity]]
            for i in range(1, arity):
                if types[i] != types[0]:
                    dtype = -1
            if dtype < 0 or result < 0 or loops[dtype].run != NULL or (dtype == BOOL and not bools):
                continue
            if KIND[dtype] == COMPLEX_KIND and not complex_numbers:
                continue
            set_loop(name, dtype, <void*>u.functions[row],
                     u.data[row] if u.data != NULL else NULL, arity, result, True)
            if name in WITH_NUMBERS and dtype != BOOL:
                loops[dtype].with_number, loops[dtype].commutes = loops[dtype].run, True


cdef int fill_from_kernels(object rows) except -1:
    cdef int source, target
    cdef size_t address
    for name, inputs, output, address in rows:
        if output not in BY_NAME:
            continue                             # the moves know items of 16 bytes too
        target = dtype_id(BY_NAME[output])
        source = dtype_id(BY_NAME[inputs[-1]])      # `where` has a bool before its operands
        if name.endswith("_single"):
            name = name.removesuffix("_single")
            find_loop(loop_id(name), target).with_single = <void*>address
            find_loop(loop_id(name), target).commutes = name == "mul"
        elif name.endswith("_mixed"):
            find_loop(loop_id(name.removesuffix("_mixed")), source).mixed = <void*>address
        elif name == "cast":
            CASTS[source][target] = <cast_loop>address
        elif name == "gather":
            GATHERS[target] = <gather_loop>address
        elif name == "reverse":
            REVERSES[target] = <reverse_loop>address
        elif name == "transpose":
            TRANSPOSES[target] = <transpose_loop>address
        elif name == "scatter":
            SCATTERS[target] = <scatter_loop>address
        elif name.endswith("_first"):
            find_loop(loop_id(name.removesuffix("_first")), source).with_first = <void*>address
        elif name.endswith("_number"):
            name = name.removesuffix("_number")
            find_loop(loop_id(name), source).with_number = <void*>address
            find_loop(loop_id(name), source).commutes = name in (
                "add", "mul", "maximum", "minimum", "fmax", "fmin")
        else:
            set_loop(name, source, <void*>address, NULL, len(inputs), target, False)
    return 0


def add_loops(module):
    """Takes the loops of a kernel module that is not needed from the start."""
    fill_from_kernels(_kernels.load(module).table())


for _name in _kernels.ELEMENTWISE:
    fill_from_kernels(_kernels.load(_name).table())
