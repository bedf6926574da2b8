"""Matrix products of tensors: how any shapes and strides are passed to the BLAS; and the gradients.

Vectors become matrices of one row or column, batches are broadcast by a stride of 0, and batch dims
that are evenly spaced in memory are merged. Half types are computed in float32.
"""

from cpython.object cimport PyObject

from tensorlib._core.arrays.operands cimport array_operand
from tensorlib._core.base cimport watch
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, FLOAT_KIND, ITEMSIZE, KIND, N_DTYPES, compute_dtype, dtype_object, promote,
)
from tensorlib._core.base.epochs cimport unsteady
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.shape cimport MAX_NDIM, broadcast, count, times
from tensorlib._core.base.watch cimport watched
from tensorlib._core.base.work cimport run_alone, run_once
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.op cimport Op
from tensorlib._core.interpreters.interception cimport interpreted
from tensorlib._core.interpreters.foreign cimport overridden, overridden_form, runs_plain
from tensorlib._core.interpreters.recording cimport record
from tensorlib._core.products.blas cimport MatmulArgs, matmul_adds, matmul_run
from tensorlib._core.products.half_rows cimport multiply_half_rows, takes_half_rows
from tensorlib._core.products.pair_products cimport packs_pairs, takes_pairs
from tensorlib._core.tensor.tensor cimport (
    Tensor, alias, new_tensor, new_view, requires_grad,
)
from tensorlib._core.tiles.copies cimport cast, packed_copy
from tensorlib._core.tiles.loops cimport find_gather

from tensorlib._core.base.shape import in_pytorchs_words
from tensorlib._core.base.storage import OutOfMemoryError
from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    RELEASE_GIL = 1 << 15        # multiplications from which on the GIL is released
    SMALL = 16                   # sizes up to which a loop of the library is faster than the BLAS
    SHORT = 128         # rows: with fewer, packing the other matrix for each product takes too long

ctypedef void (*small_product)(const void* a, Py_ssize_t a_row, Py_ssize_t a_col, const void* b,
                               void* y, Py_ssize_t m, Py_ssize_t k) noexcept nogil

cdef small_product small[SMALL + 1][N_DTYPES]      # by columns; NULL where there is none
for _columns in (4, 8, 16):
    find_by_dtype("product", f"product_{_columns}", <void**>small[<int>_columns])


# ---- the product ---------------------------------------------------------------------------------

cdef Tensor product(str name, Tensor a, Tensor b):
    """a @ b as a new tensor: matrices in the last two dims; tensors of one dim are vectors."""
    cdef Py_ssize_t dims[2]
    cdef Tensor out
    if a.ndim_ != 2 or b.ndim_ != 2 or a.type != b.type:
        return general_product(name, a, b)
    if a.dims[1] != b.dims[0]:
        raise inner_error(name, a, b)
    if not is_plain_product(a, b):
        return general_product(name, a, b)
    dims[0], dims[1] = a.dims[0], b.dims[1]
    count(name, 2, dims)
    out = new_tensor(a.type, 2, dims)
    product_to(a, b, out)
    return out


cdef inline bint is_small(Tensor a, Tensor b) noexcept:
    """Whether the product of these matrices has a loop in the library."""
    return (a.dims[0] <= SMALL and a.dims[1] <= SMALL and b.dims[1] <= SMALL
            and small[b.dims[1]][a.type] != NULL)


cdef bint is_plain_product(Tensor a, Tensor b) noexcept:
    """Whether `product_to` takes these matrices without a copy."""
    return (a.ndim_ == 2 and b.ndim_ == 2 and a.type == b.type and a.dims[1] == b.dims[0]
            and (is_small(a, b) or takes(a) and takes(b)))


cdef int product_to(Tensor a, Tensor b, Tensor out) except -1:
    """out := a @ b of plain matrices, for a contiguous `out` of their dtype and sizes."""
    cdef MatmulArgs args
    cdef Small pair
    if is_small(a, b):
        pair.loop, pair.dtype = small[b.dims[1]][a.type], b.type
        pair.a, pair.a_row, pair.a_col = a.data_pointer, a.steps[0], a.steps[1]
        pair.b, pair.b_row, pair.b_col = b.data_pointer, b.steps[0], b.steps[1]
        pair.y, pair.m, pair.k, pair.n = out.data_pointer, a.dims[0], a.dims[1], b.dims[1]
        pair.packed = b.packed
        run_alone(multiply_small, &pair, pair.y, 1)
        return 0
    bind(&args, a, b, out, a.dims[0], a.dims[1], b.dims[1])
    return run(a.type, &args)


cdef bint is_rows_product(Tensor a, Tensor b) noexcept:
    """Whether `rows_product_to` takes these without a copy: rows in any number of dims times a
    matrix or a vector, but not two matrices, which `product_to` takes."""
    cdef bint rows = 1 <= a.ndim_ <= 2 or a.packed and a.numel_ > 0
    return (a.ndim_ > 0 and rows and 1 <= b.ndim_ <= 2 and not (a.ndim_ == 2 and b.ndim_ == 2)
            and a.type == b.type and a.dims[a.ndim_ - 1] == b.dims[0] and takes(a) and takes(b))


cdef int rows_product_to(Tensor a, Tensor b, Tensor out) except -1:
    """out := a @ b of one matrix and the vector or matrix b, for a contiguous `out`."""
    cdef MatmulArgs args
    cdef Py_ssize_t m
    if out.numel_ == 0:
        return 0
    m = 1 if a.ndim_ == 1 else a.dims[0] if a.ndim_ == 2 else a.numel_ // b.dims[0]
    bind(&args, a, b, out, m, b.dims[0], b.dims[1] if b.ndim_ == 2 else 1)
    return run(a.type, &args)


cdef bint product_adds(Tensor a, Tensor b, Tensor row, Tensor out) except -1:
    """out := a @ b + row, if one loop does both; else False, with nothing done. The operands are
    those of `product_to`, or of `rows_product_to` with a matrix b."""
    cdef MatmulArgs args
    cdef Adding adding
    cdef bint plain = is_plain_product(a, b)
    if row.type != out.type or not row.packed or row.numel_ != b.dims[b.ndim_ - 1] or (
            out.numel_ == 0 or b.ndim_ != 2 or plain and is_small(a, b) or not (
                plain or is_rows_product(a, b))):
        return False
    bind(&args, a, b, out, out.numel_ // b.dims[1], b.dims[0], b.dims[1])
    adding.dtype, adding.args, adding.row, adding.done = out.type, &args, row.data_pointer, False
    run_once(multiply_and_add, &adding, args.y, times(args.m * args.n, args.k) < RELEASE_GIL)
    return adding.done


# A product of matrices, and a row that is added to each of its rows.
cdef struct Adding:
    int dtype
    MatmulArgs* args
    const char* row
    bint done


cdef void multiply_and_add(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Adding* of = <Adding*>context
    of.done = matmul_adds(of.dtype, of.args, of.row)


cdef struct Small:
    small_product loop
    const char* a
    const char* b
    char* y
    Py_ssize_t a_row, a_col, b_row, b_col        # in elements
    Py_ssize_t m, k, n
    int dtype
    bint packed                                  # whether the rows of b are contiguous


cdef void multiply_small(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := a @ b for small matrices; b is copied if its rows are not contiguous"""
    cdef Small* pair = <Small*>context
    cdef double[SMALL * SMALL] rows
    cdef const void* b = pair.b
    cdef Py_ssize_t i, size = ITEMSIZE[pair.dtype]
    if not pair.packed:
        b = rows
        for i in range(pair.k):
            find_gather(pair.dtype)(pair.b + i * pair.b_row * size, pair.b_col * size,
                                    <char*>rows + i * pair.n * size, pair.n)
    pair.loop(pair.a, pair.a_row, pair.a_col, b, pair.y, pair.m, pair.k)


cdef inline bint takes(Tensor x) noexcept:
    """Whether the BLAS reads the matrices of `x` without a copy."""
    if KIND[x.type] < FLOAT_KIND:
        return x.type != BOOL               # NumPy's integer loops take any strides
    return x.type == compute_dtype(x.type) and takes_dims(x)


cdef inline bint takes_dims(Tensor x) noexcept:
    cdef Py_ssize_t row, col
    if x.packed:
        return True
    if x.ndim_ < 2:                         # for others NumPy's loop is slow
        return x.steps[0] > 0
    row, col = x.steps[x.ndim_ - 2], x.steps[x.ndim_ - 1]
    return (col == 1 and row >= x.dims[x.ndim_ - 1]) or (row == 1 and col >= x.dims[x.ndim_ - 2])


cdef inline void bind(MatmulArgs* args, Tensor a, Tensor b, Tensor out, Py_ssize_t m, Py_ssize_t k,
                      Py_ssize_t n) noexcept:
    """Describes one product, of the first matrices of `a` and `b`."""
    cdef Py_ssize_t size = ITEMSIZE[a.type], y_size = ITEMSIZE[out.type]
    args.a, args.b, args.y = a.data_pointer, b.data_pointer, out.data_pointer
    args.batch, args.m, args.k, args.n = 1, m, k, n
    args.a_batch = args.b_batch = 0
    args.y_batch, args.y_row, args.y_col = m * n * y_size, n * y_size, y_size
    # A dim of size 1 may have any stride, which must not be used to read other rows.
    if a.packed:
        args.a_row, args.a_col = k * size, size
    else:
        args.a_row = a.steps[a.ndim_ - 2] * size if a.ndim_ > 1 else k * size
        args.a_col = a.steps[a.ndim_ - 1] * size
    if b.packed:
        args.b_row, args.b_col = n * size, size
    else:
        args.b_row = b.steps[b.ndim_ - 2 if b.ndim_ > 1 else 0] * size
        args.b_col = b.steps[b.ndim_ - 1] * size if b.ndim_ > 1 else size


# Products of matrices, for each index of the batch dims that are not merged.
cdef struct Products:
    int dtype, ndim
    MatmulArgs* args
    Py_ssize_t sizes[MAX_NDIM]
    Py_ssize_t a_steps[MAX_NDIM]
    Py_ssize_t b_steps[MAX_NDIM]


cdef inline int run(int dtype, MatmulArgs* args) except -1:
    cdef Products products
    products.dtype, products.ndim, products.args = dtype, 0, args
    return run_once(multiply, &products, args.y,
                    times(args.m * args.n * args.batch, args.k) < RELEASE_GIL)


cdef Tensor general_product(str name, Tensor a, Tensor b):
    """The product for any numbers of dims, batches and dtypes."""
    return cast(product_in(name, a, b, a.type), a.type)


cdef Tensor wide_product(str name, Tensor a, Tensor b):
    """The same in the dtype in which it is computed."""
    return product_in(name, a, b, compute_dtype(a.type))


cdef Tensor product_in(str name, Tensor a, Tensor b, int wanted):
    """The same in the wanted dtype if that costs nothing, else in the dtype in which it is
    computed."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef MatmulArgs args
    cdef Py_ssize_t m, k, n
    cdef int ndim, batch_ndim, dtype = compute_dtype(a.type)
    cdef Tensor x, y, out
    if unsteady:           # copies release the GIL; what is read of the tensors holds until the end
        a, b = alias(a), alias(b)
    if a.ndim_ == 0 or b.ndim_ == 0:
        raise RuntimeError(f"{name}: both tensors need at least 1 dim, got shapes {shapes(a, b)}")
    if a.type == BOOL:
        raise UnsupportedDtype(f"{name}: not implemented for {a.dtype}")
    k = a.dims[a.ndim_ - 1]
    if k != b.dims[max(b.ndim_ - 2, 0)]:
        raise inner_error(name, a, b)
    m = a.dims[a.ndim_ - 2] if a.ndim_ > 1 else 1
    n = b.dims[b.ndim_ - 1] if b.ndim_ > 1 else 1
    batch_ndim = broadcast(name, max(a.ndim_ - 2, 0), a.dims, max(b.ndim_ - 2, 0), b.dims, dims)
    ndim = batch_ndim
    if a.ndim_ > 1:
        dims[ndim] = m
        ndim += 1
    if b.ndim_ > 1:
        dims[ndim] = n
        ndim += 1
    try:
        if a.type == BFLOAT16 and takes_pairs(m, k, n):
            out = new_tensor(wanted if packs_pairs(m) else dtype, ndim, dims)
            dtype = BFLOAT16
            x = a if has_rows(a) else packed_copy(a, dtype)
            y = b if packs_pairs(m) or takes_dims(b) else packed_copy(b, dtype)
        elif b.ndim_ <= 2 and takes_half_rows(a, a.numel_ // max(<Py_ssize_t>1, k), k, n):
            out, y = new_tensor(dtype, ndim, dims), packed_copy(b, dtype)
            multiply_half_rows(a, y.data_pointer, out.data_pointer, a.numel_ // k, k)
            return out
        else:
            x = a if takes(a) and not (b.ndim_ == 2 and are_short(a)) else packed_copy(a, dtype)
            y = b if takes(b) else packed_copy(b, dtype)
            out = new_tensor(dtype, ndim, dims)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"{name}: {error}") from None
    if out.numel_:
        bind(&args, x, y, out, m, k, n)
        run_batches(dtype, &args, x, y, batch_ndim, dims)
    return out


cdef inline bint has_rows(Tensor x) noexcept:
    return x.packed or x.ndim_ > 1 and x.steps[x.ndim_ - 1] == 1


cdef bint are_short(Tensor a) noexcept:
    """Whether these are matrices of few rows with gaps between the matrices. As a copy they are one
    tall matrix, and the other matrix is packed only once."""
    cdef int d
    if a.packed or a.ndim_ < 3 or a.dims[a.ndim_ - 2] >= SHORT:
        return False
    for d in range(a.ndim_ - 2):
        if a.dims[d] > 1 and a.steps[d] != a.dims[d + 1] * a.steps[d + 1]:
            return True
    return False


cdef int run_batches(int dtype, MatmulArgs* args, Tensor a, Tensor b, int ndim,
                     const Py_ssize_t* dims) except -1:
    """Runs the product for each index of the batch dims; the last, merged dim is one call."""
    cdef Products products
    cdef Py_ssize_t* sizes = products.sizes
    cdef Py_ssize_t* a_steps = products.a_steps
    cdef Py_ssize_t* b_steps = products.b_steps
    cdef Py_ssize_t multiplications
    cdef int d, kept = 0
    for d in range(ndim):
        if dims[d] == 1:
            continue
        sizes[kept] = dims[d]
        a_steps[kept] = batch_step(a, d - ndim)
        b_steps[kept] = batch_step(b, d - ndim)
        if (kept and a_steps[kept - 1] == a_steps[kept] * sizes[kept]
                and b_steps[kept - 1] == b_steps[kept] * sizes[kept]):
            sizes[kept - 1] *= sizes[kept]
            a_steps[kept - 1], b_steps[kept - 1] = a_steps[kept], b_steps[kept]
        else:
            kept += 1
    if kept:
        kept -= 1
        args.batch, args.a_batch, args.b_batch = sizes[kept], a_steps[kept], b_steps[kept]
        if args.b_batch == 0 and args.a_batch == args.m * args.a_row:
            args.m *= args.batch           # the batch becomes rows of one tall matrix
            args.batch = 1
        elif kept == 0 and args.a_batch == 0 and args.n == 1 and are_rows(args):
            vectors_as_rows(args)
    multiplications = times(args.m * args.n * args.batch, args.k)
    for d in range(kept):
        multiplications = times(multiplications, sizes[d])
    products.dtype, products.ndim, products.args = dtype, kept, args
    return run_once(multiply, &products, args.y, multiplications < RELEASE_GIL)


cdef void multiply(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The products for all indices of the batch dims."""
    cdef Products* of = <Products*>context
    cdef MatmulArgs* args = of.args
    cdef Py_ssize_t index[MAX_NDIM]
    cdef int d
    for d in range(of.ndim):
        index[d] = 0
    while True:
        matmul_run(of.dtype, args)
        args.y += args.batch * args.m * args.n * args.y_col
        d = of.ndim - 1
        while d >= 0:
            index[d] += 1
            args.a += of.a_steps[d]
            args.b += of.b_steps[d]
            if index[d] < of.sizes[d]:
                break
            args.a -= of.sizes[d] * of.a_steps[d]
            args.b -= of.sizes[d] * of.b_steps[d]
            index[d] = 0
            d -= 1
        if d < 0:
            return


cdef inline bint are_rows(const MatmulArgs* args) noexcept:
    """Whether the vectors of a batch are a matrix that the BLAS reads without a copy."""
    return (args.b_row == args.y_col and args.b_batch >= args.k * args.b_row
            or args.b_batch == args.y_col and args.b_row >= args.batch * args.b_batch)


cdef inline void vectors_as_rows(MatmulArgs* args) noexcept:
    """One matrix by many vectors is one product: y.mT := b.mT @ a.mT"""
    args.a, args.b = args.b, args.a
    args.a_row, args.a_col, args.b_row, args.b_col = (args.b_batch, args.b_row, args.a_col,
                                                      args.a_row)
    args.m, args.n = args.batch, args.m
    args.y_row, args.y_batch = args.y_batch, 0
    args.b_batch, args.batch = 0, 1


cdef Py_ssize_t batch_step(Tensor x, int d) noexcept:
    """The bytes between matrices along batch dim `d`, from the last (-1) on; 0 if broadcast."""
    cdef int place = x.ndim_ - 2 + d
    if place < 0 or x.dims[place] == 1:
        return 0
    return x.steps[place] * ITEMSIZE[x.type]


cdef str shapes(Tensor a, Tensor b):
    return f"{tuple(a.shape)} and {tuple(b.shape)}"


cdef object inner_error(str name, Tensor a, Tensor b):
    return RuntimeError(f"{name}: inner dimensions differ: {tuple(a.shape)} @ {tuple(b.shape)}"
                        + in_pytorchs_words(a.shape, b.shape))


# ---- as operations -------------------------------------------------------------------------------

cdef object bind_product(Op op, object a, object b):
    """a @ b, recorded; NotImplemented for types that can't be operands."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        given = a, b
        a, b = array_operand(op, a), array_operand(op, b)
        if a is None or b is None:
            return overridden(op.function, given, None)
    if watched and not (runs_plain(a) and runs_plain(b)):
        if (<Tensor>a).type != (<Tensor>b).type:      # casts are operations, and part of the graph
            done = overridden_form(op, op.name, (a, b), None)
            if done is not NotImplemented:
                return done
            a, b = promoted(a, b)
        return interpreted(op, op.name, (a, b), None, plain_product, op)
    return recorded_product(op, a, b)


cdef object plain_product(object what, tuple args, dict kwargs):
    return recorded_product(<Op>what, args[0], args[1])


cdef Tensor recorded_product(Op op, object a, object b):
    """a @ b of tensors, recorded."""
    cdef PyObject* args[2]
    cdef Tensor out
    if (<Tensor>a).type != (<Tensor>b).type:
        a, b = promoted(a, b)
    args[0], args[1] = <PyObject*>a, <PyObject*>b
    out = product(op.name, <Tensor>a, <Tensor>b)
    if mode().grad:
        record(op, args, 2, out, None)
    return out


cdef tuple promoted(Tensor a, Tensor b):
    """Both tensors, cast in the graph to their promoted dtype."""
    cdef int dtype = promote("matmul", a.type, b.type)
    return (a if a.type == dtype else a.to(dtype_object(dtype)),
            b if b.type == dtype else b.to(dtype_object(dtype)))


# ---- gradients -----------------------------------------------------------------------------------
# Compiled, since training spends much of its time here. The sweep sums over broadcast batch dims. A
# gradient that is not a Tensor is a batch of gradients.

def grad_of_left(object g, Tensor other, int input_ndim):
    """g @ other.mT"""
    if other.ndim_ == 1:
        return g.unsqueeze(-1) * other
    if input_ndim == 2 and other.ndim_ > 2 and other.dims[other.ndim_ - 1] == 1:
        # One matrix times many vectors: one product, instead of a sum of outer products.
        return g.squeeze(-1).flatten(0, -2).mT @ other.squeeze(-1).flatten(0, -2)
    if dims_of(g) < other.ndim_:           # the left operand was a vector
        return (other @ g.unsqueeze(-1)).squeeze(-1)
    return g @ transposed(other)


def grad_of_right(object g, object input, int other_ndim):
    """input.mT @ g"""
    cdef int ndim = dims_of(input)
    if ndim == 1:
        return g * input if other_ndim == 1 else input.unsqueeze(-1) * g.unsqueeze(-2)
    if ndim > 2 and other_ndim <= 2:     # one product, instead of a sum over a batch
        input = rows_of(input)
        g = g.flatten() if other_ndim == 1 else rows_of(g)
    return (transposed(<Tensor>input) if isinstance(input, Tensor) else input.mT) @ g


cdef inline int dims_of(object g) except -1:
    return (<Tensor>g).ndim_ if isinstance(g, Tensor) else g.ndim


cdef object rows_of(object given):
    """given.flatten(0, -2); outside the graph if nothing records or observes operations."""
    cdef Py_ssize_t[2] dims, steps
    cdef Tensor x
    if not isinstance(given, Tensor):
        return given.flatten(0, -2)
    x = <Tensor>given
    if not x.packed or x.numel_ == 0 or watched & watch.INTERPRETERS or (
            mode().grad and requires_grad(x)):
        return x.flatten(0, -2)
    dims[1] = steps[0] = x.dims[x.ndim_ - 1]
    dims[0], steps[1] = x.numel_ // dims[1], 1
    return new_view(x, 2, dims, steps, x.data_pointer)


cdef Tensor transposed(Tensor x):
    """x.mT; outside the graph if nothing records or observes operations."""
    cdef Py_ssize_t[MAX_NDIM] dims, steps
    cdef int d, last = x.ndim_ - 1
    if watched & watch.INTERPRETERS or mode().grad and requires_grad(x):
        return x.mT
    for d in range(last - 1):
        dims[d], steps[d] = x.dims[d], x.steps[d]
    dims[last - 1], steps[last - 1] = x.dims[last], x.steps[last]
    dims[last], steps[last] = x.dims[last - 1], x.steps[last - 1]
    return new_view(x, x.ndim_, dims, steps, x.data_pointer)
