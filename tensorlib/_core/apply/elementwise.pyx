"""Running element-wise operations: promotion, broadcasting and layout, then loops and tiles."""

from cpython.float cimport PyFloat_CheckExact
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memchr

from tensorlib._core.arrays.operands cimport number, number_dtype, operand, refused
from tensorlib._core.base.dtypes cimport (
    BOOL, FLOAT32, FLOAT_KIND, INT64, ITEMSIZE, KIND, UINT8, complex_of, compute_dtype,
    default_float, dtype_object, is_unsigned, promote,
)
from tensorlib._core.base.region cimport computes_nothing
from tensorlib._core.base.shape cimport MAX_NDIM, broadcast
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.base.work cimport run_alone
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.op cimport BOOLS, NEGATIVES, NOTHING, Op, ZEROS
from tensorlib._core.interpreters.interception cimport interpreted
from tensorlib._core.interpreters.foreign cimport all_run_plain, overridden
from tensorlib._core.interpreters.recording cimport record
from tensorlib._core.tensor.meta cimport is_meta
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, may_overlap, new_arranged_as, packed_copy
from tensorlib._core.tiles.flat cimport run_loop, run_with_single
from tensorlib._core.tiles.loops cimport MAX_ARITY, Loop, find_cast, find_loop
from tensorlib._core.tiles.program cimport MAX_INPUTS, TileLoops, result_dtype as program_dtype
from tensorlib._core.tiles.run cimport run_program

from tensorlib._core.base.storage import OutOfMemoryError
from tensorlib._core.base.warned import warn_of
from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    LEAST_REPEATS = 8        # of an operand that is cast in advance


cdef extern from "Python.h":
    ctypedef struct TupleItems "PyTupleObject":
        PyObject** ob_item



cdef object bind_watched(Op op, PyObject** args):
    """`bind_elementwise` while something observes operations."""
    if all_run_plain(args, op.n_args):
        return run_elementwise(op, args)
    return interpreted(op, op.name, tuple_of(args, op.n_args), None, plain_elementwise, op)


cdef object plain_elementwise(object what, tuple args, dict kwargs):
    return run_elementwise(<Op>what, (<TupleItems*><PyObject*>args).ob_item)


cdef tuple tuple_of(PyObject** args, int n):
    """The tensors of a C array as a tuple."""
    return tuple([<object>args[i] for i in range(n)])


cdef Tensor run_elementwise(Op op, PyObject** args):
    cdef Tensor like = <Tensor>args[0], x, out
    cdef int i, n = op.n_args, dtype, single = -1
    cdef bint is_scalar[MAX_ARITY]
    cdef char* pointers[MAX_ARITY]
    cdef Loop* loop
    cdef bint simple
    for i in range(1, n):
        if like.ndim_ == 0:
            like = <Tensor>args[i]
    dtype = like.type
    loop = find_loop(op.loop, dtype)
    simple = is_whole(op, loop, dtype)
    for i in range(n):
        x = <Tensor>args[i]
        if x.type != dtype and simple and is_single(loop, x, i, is_scalar):
            single = i
        elif not (simple and x.type == dtype and lies_as(x, like)):
            simple = False
            break
        pointers[i] = x.data_pointer
        is_scalar[i] = is_repeated(x, like.numel_)
    if simple:
        out = new_tensor(loop.result, like.ndim_, like.dims) if like.packed else (
            new_arranged_as(like, loop.result))
        simple = like.packed or lies_as(out, like)
    if simple:
        run_runs(loop, pointers, is_scalar, single, out)
    else:
        out = apply_mixed(op, args)
    if mode().grad:
        record(op, args, n, out, None)
    return out


cdef inline bint lies_as(Tensor x, Tensor like) noexcept:
    """Whether an operand is a number, or contiguous with its dims in the order of those of `like`.
    """
    cdef int d
    if x.packed and like.packed or x.ndim_ == 0:
        return x is like or x.ndim_ == 0 or same_shape(x, like)
    if not (is_dense(like) and same_shape(x, like)):
        return False
    for d in range(x.ndim_):
        if x.steps[d] != like.steps[d] and x.dims[d] != 1:
            return False
    return True


cdef bint is_dense(Tensor x) noexcept:
    """Whether the elements are contiguous, in any order of dims."""
    cdef Py_ssize_t expected = 1, before
    cdef int d
    while expected < x.numel_:
        before = expected
        for d in range(x.ndim_):
            if x.steps[d] == expected and x.dims[d] > 1:
                expected *= x.dims[d]
                break
        if expected == before:
            return False
    return True


cdef inline bint is_whole(Op op, const Loop* loop, int dtype) noexcept:
    """Whether the loop is the whole operation if all operands have this dtype."""
    return (loop.run != NULL and not (op.to_float and KIND[dtype] < FLOAT_KIND)
            and (op.guard == NOTHING or KIND[dtype] >= FLOAT_KIND
                 or op.guard == BOOLS and dtype != BOOL)
            and (dtype == BOOL or not op.boolean_inputs))


cdef inline bint is_single(const Loop* loop, Tensor x, int i, const bint* is_scalar) noexcept:
    """Whether a Python number beside half types is read in float32, unrounded."""
    cdef int k
    for k in range(i):
        if is_scalar[k]:
            return False
    return (loop.with_single != NULL and (i == loop.arity - 1 or loop.commutes)
            and x.is_scalar and x.type == FLOAT32)


cdef inline int run_runs(const Loop* loop, char** inputs, const bint* is_scalar, int single,
                         Tensor out) except -1:
    """out := loop(inputs), where input `single` is a number (-1: none is)."""
    if single < 0:
        return run_loop(loop, inputs, is_scalar, out.data_pointer, out.numel_)
    return run_with_single(loop, inputs, single, out.data_pointer, out.numel_)


cdef inline bint is_repeated(Tensor x, Py_ssize_t n) noexcept:
    """Whether a packed operand is a single number that is broadcast to n elements."""
    return x.ndim_ == 0 and n != 1 and not (x.is_scalar and n * ITEMSIZE[x.type] <= LINE)


cdef int result_dtype(Op op, PyObject** args) except -1:
    """The promoted dtype: tensors with dims take precedence over 0-d ones and numbers."""
    cdef int decided[3]
    cdef int i, rank
    cdef Tensor x
    decided[0] = decided[1] = decided[2] = -1
    for i in range(op.n_args):
        if i in op.boolean_inputs:
            continue
        x = <Tensor>args[i]
        rank = 0 if x.ndim_ else 2 if x.is_scalar else 1
        decided[rank] = x.type if decided[rank] < 0 else promote(
            op.name, decided[rank], x.type)
    return combine(op.name, decided[0], combine(op.name, decided[1], decided[2]))


cdef int combine(str name, int higher, int lower) except -2:
    """The dtype of two categories, of which the first takes precedence; -1: an empty one."""
    if higher < 0 or lower < 0:
        return max(higher, lower)
    if KIND[higher] >= KIND[lower]:
        return higher
    if KIND[higher] == FLOAT_KIND:
        return complex_of(higher)
    return promote(name, higher, lower)


cdef Tensor apply_mixed(Op op, PyObject** args):
    """The general case: promotion, broadcasting, any layout."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t joined[MAX_NDIM]
    cdef int i, d, ndim, promoted = result_dtype(op, args), dtype
    cdef const TileLoops* program = program_for(op, args, promoted)
    cdef Tensor x = <Tensor>args[0], out
    ndim = x.ndim_
    for d in range(ndim):
        dims[d] = x.dims[d]
    for i in range(1, op.n_args):
        x = <Tensor>args[i]
        ndim = broadcast(op.name, ndim, dims, x.ndim_, x.dims, joined)
        for d in range(ndim):
            dims[d] = joined[d]
    dtype = output_dtype(op, program, promoted)
    try:
        out = new_arranged(op, args, dtype, ndim, dims)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"{op.name}: {error}") from None
    run_cast(program, args, out)
    return out


cdef int run_cast(const TileLoops* program, PyObject** args, Tensor out) except -1:
    """out := program(args). Broadcast operands are cast in advance, once and not for each tile."""
    cdef PyObject* given[MAX_INPUTS]
    cdef list kept = None
    cdef Tensor x
    cdef int i
    for i in range(program.n_inputs):
        x = <Tensor>args[i]
        if x.type != program.dtypes[i] and x.ndim_ and x.numel_ * LEAST_REPEATS <= out.numel_:
            x = packed_copy(x, program.dtypes[i])
            kept = [x] if kept is None else [x, *kept]
        given[i] = <PyObject*>x
    return run_program(program, given, out)


cdef const TileLoops* program_for(Op op, PyObject** args, int promoted) except NULL:
    cdef int dtype = promoted
    for i in op.boolean_inputs:
        if (<Tensor>args[i]).type == UINT8:
            warn_of("a condition of uint8 is deprecated, as in PyTorch; use .bool()")
        elif (<Tensor>args[i]).type != BOOL:
            raise RuntimeError(
                f"{op.name}: {op.arguments[i]} must be a bool tensor, got "
                f"{(<Tensor>args[i]).dtype}")
    if op.guard == BOOLS:
        check_no_bools(op, args)
    if op.to_float and KIND[dtype] < FLOAT_KIND:
        dtype = default_float()
    if not has_own_loop(op, args, dtype):
        dtype = compute_dtype(dtype)
    if op.program.one_loop and find_loop(op.loop, dtype).run == NULL:
        raise UnsupportedDtype(f"{op.name}: not implemented for {dtype_object(promoted)}")
    if op.guard > BOOLS and KIND[dtype] < FLOAT_KIND:
        check_guard(op, <Tensor>args[op.n_args - 1], dtype)
    return op.program.at(dtype)


cdef int check_no_bools(Op op, PyObject** args) except -1:
    """Raises UnsupportedDtype if an argument is bool."""
    cdef int i, found = 0
    for i in range(op.n_args):
        found += (<Tensor>args[i]).type == BOOL
    if found:
        raise UnsupportedDtype(f"{op.name}: {op.no_bools[found == op.n_args]}")
    return 0


cdef bint has_own_loop(Op op, PyObject** args, int dtype) noexcept:
    """Whether there is a loop for a half type, and all operands have it or are numbers that it
    can represent."""
    cdef Tensor x
    cdef int i
    if compute_dtype(dtype) == dtype or find_loop(op.loop, dtype).run == NULL:
        return False
    for i in range(op.n_args):
        x = <Tensor>args[i]
        if x.type != dtype and not (x.is_scalar and holds(dtype, x)):
            return False
    return True


cdef struct Rounding:
    char* number
    int source, target
    bint exact


cdef bint holds(int dtype, Tensor x) noexcept:
    """Whether a half type represents a number exactly as float32 does."""
    cdef Rounding rounding
    rounding.number, rounding.source, rounding.target = x.data_pointer, x.type, dtype
    rounding.exact = False
    run_alone(round_number, &rounding, rounding.number, 1)
    return rounding.exact


cdef void round_number(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Rounding* of = <Rounding*>context
    cdef float wide, back
    cdef short rounded
    find_cast(of.source, FLOAT32)(of.number, <char*>&wide, 1)
    find_cast(of.source, of.target)(of.number, <char*>&rounded, 1)
    find_cast(of.target, FLOAT32)(<char*>&rounded, <char*>&back, 1)
    of.exact = wide == back


cdef int check_guard(Op op, Tensor x, int dtype) except -1:
    """Raises for integers without a result, such as a divisor 0; NumPy's loops raise midway."""
    if is_meta(x) or computes_nothing():
        return 0
    if op.guard == ZEROS and has_zero(x):
        raise IntegerDivisionByZero(f"{op.name}: integer division by zero")
    if op.guard == NEGATIVES and has_negative(x):
        raise UnfitPower(
            f"{op.name}: integers to negative integer powers are not allowed; make one a float")
    if op.guard == NEGATIVES and x.is_scalar and not fits(x, dtype):
        raise UnfitPower(
            f"{op.name}: the exponent {x.item()} does not fit in {dtype_object(dtype)}")
    return 0


class IntegerDivisionByZero(ZeroDivisionError, RuntimeError):
    """Python's and NumPy's error for it, and PyTorch's."""

    __module__ = "tensorlib"


class UnfitPower(ValueError, RuntimeError):
    """NumPy's error for it, and PyTorch's."""

    __module__ = "tensorlib"


cdef bint has_zero(Tensor x) except -1:
    """Whether an element is zero."""
    cdef Tensor truth = cast(x, BOOL)
    cdef Tensor flat = truth if truth.packed else packed_copy(truth, BOOL)
    return flat.numel_ != 0 and memchr(flat.data_pointer, 0, flat.numel_) != NULL


cdef bint fits(Tensor x, int dtype) except -1:
    """Whether an integer has the same value in another dtype of integers."""
    return cast(cast(x, dtype), INT64).item() == cast(x, INT64).item()


cdef bint has_negative(Tensor x) except -1:
    """Whether an element is negative."""
    if is_unsigned(x.type):
        return False                  # the read below would wrap
    cdef Tensor whole = cast(x, INT64)
    cdef Tensor flat = whole if whole.packed else packed_copy(whole, INT64)
    cdef const int64_t* items = <const int64_t*>flat.data_pointer
    cdef int64_t least = 0
    cdef Py_ssize_t i
    for i in range(flat.numel_):
        least = min(least, items[i])
    return least < 0


cdef int output_dtype(Op op, const TileLoops* program, int promoted) noexcept:
    """The dtype of the result: bool for predicates, and a half type if the operands have it."""
    cdef int computed = program.dtypes[op.n_args - 1]
    cdef int result = program_dtype(program)
    if result != computed:
        return result
    return promoted if compute_dtype(promoted) == computed else computed


cdef Tensor new_arranged(Op op, PyObject** args, int dtype, int ndim, const Py_ssize_t* dims):
    """An output with the memory order of the dims of the first input. Dims whose order that does
    not determine, such as broadcast ones, have the order in the next input. As in PyTorch."""
    cdef Tensor out = new_tensor(dtype, ndim, dims)
    cdef int[MAX_NDIM] order                         # from the innermost outwards
    cdef Py_ssize_t span = 1
    cdef bint packed = True
    cdef int i, d, at, place, found
    for i in range(op.n_args):
        packed = packed and (<Tensor>args[i]).packed
    if packed:
        return out
    for i in range(ndim):
        order[i] = d = ndim - 1 - i
        at = i
        for place in range(i - 1, -1, -1):
            found = compare(op, args, ndim, dims, order[place], d)
            if found < 0:
                break
            if found > 0:                            # else compare with dims further in
                order[at], order[place] = order[place], d
                at = place
    place = ndim
    for i in range(ndim if out.numel_ else 0):
        if dims[order[i]] > 1:
            packed = packed or order[i] > place      # from here on: whether it is not row-major
            place = order[i]
    out.packed = not packed
    for i in range(ndim if packed else 0):
        out.steps[order[i]] = span
        span *= dims[order[i]]
    return out


cdef int compare(Op op, PyObject** args, int ndim, const Py_ssize_t* dims, int inner,
                 int outer) noexcept:
    """Negative if dim `a` is inside dim `b` in memory, positive if outside, 0 if unknown."""
    cdef Tensor x
    cdef Py_ssize_t a, b
    cdef int i, lead
    for i in range(op.n_args):
        x = <Tensor>args[i]
        lead = ndim - x.ndim_
        if inner < lead or outer < lead:
            continue
        a = x.steps[inner - lead] if x.dims[inner - lead] == dims[inner] else 0
        b = x.steps[outer - lead] if x.dims[outer - lead] == dims[outer] else 0
        if a <= 0 or b <= 0:
            continue
        if a != b:
            return -1 if a < b else 1
        if dims[inner] > dims[outer]:
            return 1
    return 0


cdef bint has_dims(Tensor x, const Py_ssize_t* dims) noexcept:
    cdef int d
    for d in range(x.ndim_):
        if x.dims[d] != dims[d]:
            return False
    return True


cdef int apply_into(Op op, PyObject** args, Tensor out) except -1:
    """out := op(args), for `out=` and in-place forms; the caller has checked `out`."""
    cdef PyObject* safe[MAX_INPUTS]
    cdef list copies
    cdef Tensor x
    cdef int i, promoted, dtype
    cdef const TileLoops* program
    if run_in_runs(op, args, out):
        out.storage.version += 1
        return 0
    promoted = result_dtype(op, args)
    program = program_for(op, args, promoted)
    dtype = output_dtype(op, program, promoted)
    if KIND[dtype] > KIND[out.type]:
        raise RuntimeError(
            f"{op.name}: result type {dtype_object(dtype)} can't be cast to the desired output "
            f"type {out.dtype}")
    copies = []
    for i in range(op.n_args):
        x = <Tensor>args[i]
        if may_overlap(x, out):
            x = packed_copy(x, x.type)
            copies.append(x)
        safe[i] = <PyObject*>x
    run_cast(program, safe, out)
    out.storage.version += 1
    return 0


cdef bint run_in_runs(Op op, PyObject** args, Tensor out) except -1:
    """out := op(args) by one loop if all are contiguous and of one dtype; else False."""
    cdef Loop* loop = find_loop(op.loop, out.type)
    cdef char* pointers[MAX_ARITY]
    cdef bint is_scalar[MAX_ARITY]
    cdef Tensor x
    cdef int i, single = -1
    if not (loop.result == out.type and lies_as(out, out) and is_whole(op, loop, out.type)):
        return False
    for i in range(op.n_args):
        x = <Tensor>args[i]
        if x.type != out.type and is_single(loop, x, i, is_scalar):
            single = i
        elif not (x.type == out.type and lies_as(x, out)):
            return False
        if may_overlap(x, out):
            return False
        pointers[i] = x.data_pointer
        is_scalar[i] = is_repeated(x, out.numel_)
    run_runs(loop, pointers, is_scalar, single, out)
    return True


cdef object apply_unary(Op op, object x):
    cdef PyObject* args[1]
    if not isinstance(x, Tensor):
        return refused(op, (x,), None)
    args[0] = <PyObject*>x
    return bind_elementwise(op, args)


cdef object apply_binary(Op op, object a, object b):
    """op(a, b), of which at least one is a tensor; NotImplemented for unsupported types."""
    cdef PyObject* args[2]
    cdef Tensor x, y
    if isinstance(a, Tensor):
        x = <Tensor>a
        if PyFloat_CheckExact(b) and KIND[x.type] == FLOAT_KIND:
            y = number(b, number_dtype(op, 1, x.type))        # the case of `x * 2.0`
        else:
            y = <Tensor>b if isinstance(b, Tensor) else operand(op, 1, b, x)
    elif isinstance(b, Tensor):
        y = <Tensor>b
        x = operand(op, 0, a, y)
    else:
        x = operand(op, 0, a, None)
        y = operand(op, 1, b, None)
    if x is None or y is None:
        return overridden(op.function, (a, b), None)
    args[0] = <PyObject*>x
    args[1] = <PyObject*>y
    return bind_elementwise(op, args)
