"""The cross entropy of rows of logits, with a class for each row, and its gradient; and `nll_loss`:
the elements of rows at these classes, weighted and reduced. Outside autograd.

A row lies along dim 1: rows are (B, C, *), and their classes (B, *).
"""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, INT64, ITEMSIZE, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.shape cimport MAX_NDIM, count
from tensorlib._core.base.work cimport run_once, share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, packed, zero
from tensorlib._core.tiles.loops cimport cast_loop, find_cast

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work
    LANES = 4            # sums side by side

ctypedef Py_ssize_t (*forward_fn)(const char* x, const int64_t* target, int64_t ignored, char* y,
                                  Py_ssize_t begin, Py_ssize_t end, Py_ssize_t n,
                                  Py_ssize_t inner) noexcept nogil
ctypedef Py_ssize_t (*backward_fn)(const char* g, const char* x, const int64_t* target,
                                   int64_t ignored, char* y, Py_ssize_t begin,
                                   Py_ssize_t end, Py_ssize_t n,
                                   Py_ssize_t inner) noexcept nogil

cdef forward_fn forwards[2]                  # float32 and float64
cdef backward_fn backwards[2]
find_pairs("nll", ("nll",), <void**>forwards)
find_pairs("nll", ("nll_backward",), <void**>backwards)

ctypedef struct Work:
    forward_fn forward
    backward_fn backward
    const char* g
    const char* x
    const int64_t* target
    int64_t ignored
    char* y
    Py_ssize_t n, inner
    Py_ssize_t wrong                         # a row with a target out of range, or -1


cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    cdef Py_ssize_t wrong
    if work.backward == NULL:
        wrong = work.forward(work.x, work.target, work.ignored, work.y, begin, end, work.n,
                             work.inner)
    else:
        wrong = work.backward(work.g, work.x, work.target, work.ignored, work.y, begin, end,
                              work.n, work.inner)
    if wrong >= 0:
        work.wrong = wrong


cdef bint has_classes(Tensor input, Tensor target) noexcept:
    """Whether the shapes are (B, C, *) and (B, *)."""
    cdef int d
    if input.ndim_ < 2 or target.ndim_ != input.ndim_ - 1 or target.dims[0] != input.dims[0]:
        return False
    for d in range(2, input.ndim_):
        if target.dims[d - 1] != input.dims[d]:
            return False
    return True


def fits(input, target):
    """Whether these are floating rows (B, C, *) and their int64 classes (B, *)."""
    return isinstance(input, Tensor) and isinstance(target, Tensor) and (
        (<Tensor>target).type == INT64 and KIND[(<Tensor>input).type] == FLOAT_KIND and
        has_classes(<Tensor>input, <Tensor>target))


cdef Py_ssize_t inner_of(Tensor target) noexcept:
    """The number of rows in (C, *), of one index of B; at least 1."""
    cdef Py_ssize_t inner = 1
    cdef int d
    for d in range(1, target.ndim_):
        inner *= target.dims[d]
    return max(<Py_ssize_t>1, inner)


cdef int refuse(str name, Tensor input, Tensor target) except -1:
    if KIND[input.type] != FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got "
                               f"{dtype_object(input.type)}")
    raise RuntimeError(f"{name}: expects rows of a floating dtype and a target for each, got "
                       f"{dtype_object(input.type)} of shape {tuple(input.shape)} and targets "
                       f"of shape {tuple(target.shape)}")


cdef int refuse_class(str name, Py_ssize_t row, const int64_t* target,
                      Py_ssize_t classes) except -1:
    raise IndexError(f"{name}: Target {target[row]} is out of bounds. There are {classes} classes, "
                     f"and it is that of row {row}")


cdef Tensor run(str name, Tensor grad, Tensor input, Tensor target, int64_t ignored):
    cdef Work work
    cdef Tensor x, places, g, out
    cdef int dtype
    if KIND[input.type] != FLOAT_KIND or not has_classes(input, target):
        refuse(name, input, target)
    if grad is not None and not same_shape(grad, target):
        raise RuntimeError(f"{name}: a gradient of shape {tuple(grad.shape)} for rows of shape "
                           f"{tuple(input.shape)}")
    dtype = compute_dtype(input.type)
    x, places = packed(cast(input, dtype)), packed(cast(target, INT64))
    out = new_like(places, dtype) if grad is None else new_like(x, dtype)
    work.forward, work.backward = forwards[dtype != FLOAT32], NULL
    if grad is not None:
        g = packed(cast(grad, dtype))
        work.backward, work.g = backwards[dtype != FLOAT32], g.data_pointer
    work.x, work.target, work.ignored = x.data_pointer, <int64_t*>places.data_pointer, ignored
    work.y, work.n, work.inner = out.data_pointer, x.dims[1], inner_of(places)
    work.wrong = -1
    share(run_rows, &work, work.y, places.numel_, 1 + PIECE // max(<Py_ssize_t>1, work.n),
          x.numel_ < RELEASE_GIL)
    if work.wrong >= 0:
        refuse_class(name, work.wrong, work.target, work.n)
    return cast(out, input.type)


def nll_of_logits(Tensor input, Tensor target, int64_t ignored):
    return run("cross_entropy", None, input, target, ignored)


def nll_of_logits_backward(Tensor grad, Tensor input, Tensor target, int64_t ignored):
    return run("cross_entropy", grad, input, target, ignored)


# ---- the elements at the classes, weighted and reduced -------------------------------------------

cdef enum Reduction:
    EACH
    TOTAL
    MEAN

cdef struct Rows:
    const char* x        # rows, or a loss for each row; backward the gradients of the result
    const char* weight
    const int64_t* target
    char* y
    int64_t ignored
    Py_ssize_t classes, inner, outer, row, column    # steps in elements, from one to the next
    Py_ssize_t rows
    Py_ssize_t wrong                                 # a row with a target out of range, or -1
    double sign, weights
    Reduction reduction
    bint is_single
    cast_loop widen      # of rows of a half type, of which single elements are needed, or NULL
    cast_loop narrow     # and of their gradients

cdef struct Place:
    Py_ssize_t first, k  # the index of B and the one of the row in it
    Py_ssize_t at        # the offset of the element of its class
    double weight        # of the class
    bint kept


cdef inline double number(const char* x, Py_ssize_t at, bint is_single) noexcept nogil:
    return (<const float*>x)[at] if is_single else (<const double*>x)[at]


cdef inline void put(char* y, Py_ssize_t at, double value, bint is_single) noexcept nogil:
    if is_single:
        (<float*>y)[at] = <float>value
    else:
        (<double*>y)[at] = value


cdef inline double element(const Rows* of, Py_ssize_t at) noexcept nogil:
    """An element of a row"""
    cdef float found
    if of.widen == NULL:
        return number(of.x, at, of.is_single)
    of.widen(of.x + 2 * at, <char*>&found, 1)
    return found


cdef inline void put_element(const Rows* of, Py_ssize_t at, double value) noexcept nogil:
    """Writes an element of the gradient of a row"""
    cdef float rounded = <float>value
    if of.narrow == NULL:
        put(of.y, at, value, of.is_single)
    else:
        of.narrow(<const char*>&rounded, of.y + 2 * at, 1)


cdef inline void begin_rows(const Rows* of, Py_ssize_t begin, Place* place) noexcept nogil:
    place.first, place.k = begin // of.inner * of.outer, begin % of.inner


cdef inline bint next_row(Rows* of, Py_ssize_t i, Place* place) noexcept nogil:
    """Finds the class of row i and its weight; False for a target out of range."""
    cdef int64_t found = (<const volatile int64_t*>of.target)[i]      # threads may write to it
    place.at = place.first + place.k * of.row
    place.k += 1
    if place.k == of.inner:
        place.k, place.first = 0, place.first + of.outer
    place.kept, place.weight = found != of.ignored, 0
    if not place.kept:
        return True
    if not 0 <= found < of.classes:
        of.wrong = i
        return False
    place.at += found * of.column
    place.weight = number(of.weight, found, of.is_single)
    return True


cdef void each_row(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Rows* of = <Rows*>context
    cdef Place place
    cdef Py_ssize_t i
    begin_rows(of, begin, &place)
    for i in range(begin, end):
        if not next_row(of, i, &place):
            return
        put(of.y, i, place.weight * of.sign * element(of, place.at)
            if place.kept else 0, of.is_single)


cdef inline void losses_back(Rows* of, const floating* g, const floating* weight, floating* y,
                             double one_g, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """`each_row_back` for losses, which have no classes"""
    cdef const volatile int64_t* target = <const volatile int64_t*>of.target
    cdef int64_t found
    cdef Py_ssize_t i
    for i in range(begin, end):
        found = target[i]
        if found == of.ignored:
            y[i] = 0
        elif 0 <= found < of.classes:
            y[i] = <floating>(weight[found] * (g[i] if of.reduction == EACH else one_g))
        else:
            of.wrong = i
            return


cdef void each_row_back(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Writes the gradients of rows; with classes only at these, as the others are 0 already."""
    cdef Rows* of = <Rows*>context
    cdef Place place
    cdef Py_ssize_t i
    cdef double g = 0
    if of.reduction != EACH:
        g = number(of.x, 0, of.is_single)
        if of.reduction == MEAN:
            g /= of.weights
    if of.column == 0 and of.is_single:
        losses_back(of, <const float*>of.x, <const float*>of.weight, <float*>of.y, g, begin, end)
        return
    if of.column == 0:
        losses_back(of, <const double*>of.x, <const double*>of.weight, <double*>of.y, g, begin, end)
        return
    begin_rows(of, begin, &place)
    for i in range(begin, end):
        if not next_row(of, i, &place):
            return
        if of.reduction == EACH:
            g = number(of.x, i, of.is_single)
        if place.kept:
            put_element(of, place.at, place.weight * of.sign * g)


cdef inline void add_losses(Rows* of, const floating* x, const floating* weight, double* totals,
                            double* weights) noexcept nogil:
    """The sums of `add_rows` for losses, which have no classes"""
    cdef const volatile int64_t* target = <const volatile int64_t*>of.target
    cdef int64_t found
    cdef Py_ssize_t i
    for i in range(of.rows):
        found = target[i]
        if found == of.ignored:
            continue
        if not 0 <= found < of.classes:
            of.wrong = i
            return
        weights[i % <Py_ssize_t>LANES] += weight[found]
        if x != NULL:
            totals[i % <Py_ssize_t>LANES] += <double>weight[found] * x[i]


cdef void add_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Sets of.weights; and y := the sum or mean, if there are elements. On one thread, so that the
    bits are always the same, and in LANES sums of float64, so that only y is rounded."""
    cdef Rows* of = <Rows*>context
    cdef double[LANES] totals
    cdef double[LANES] weights
    cdef double total = 0
    cdef Place place
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>LANES):
        totals[i], weights[i] = 0, 0
    if of.column == 0 and of.is_single:
        add_losses(of, <const float*>of.x, <const float*>of.weight, totals, weights)
    elif of.column == 0:
        add_losses(of, <const double*>of.x, <const double*>of.weight, totals, weights)
    if of.wrong >= 0:
        return
    begin_rows(of, 0, &place)
    for i in range(of.rows if of.column else 0):
        if not next_row(of, i, &place):
            return
        if place.kept:
            weights[i % <Py_ssize_t>LANES] += place.weight
            if of.x != NULL:
                totals[i % <Py_ssize_t>LANES] += place.weight * element(of, place.at)
    of.weights = 0
    for i in range(<Py_ssize_t>LANES):
        total += totals[i]
        of.weights += weights[i]
    if of.x != NULL:
        total *= of.sign
        put(of.y, 0, total / of.weights if of.reduction == MEAN else total, of.is_single)


cdef Reduction reduction_of(str name) except *:
    if name == "none":
        return EACH
    if name != "sum" and name != "mean":
        raise ValueError(f"nll_loss: {name!r} is not a valid value for reduction")
    return MEAN if name == "mean" else TOTAL


cdef int fill_rows(Rows* of, Tensor target, Tensor weight, int64_t ignored, str reduction,
                   bint by_class) except -1:
    """Describes packed tensors: an int64 target, and a weight in the dtype to compute in."""
    if weight.ndim_ != 1:
        raise RuntimeError(f"nll_loss: expects a vector of weights, got shape "
                           f"{tuple(weight.shape)}")
    of.weight, of.is_single = weight.data_pointer, weight.type == FLOAT32
    of.target, of.ignored = <int64_t*>target.data_pointer, ignored
    of.classes, of.reduction = weight.dims[0], reduction_of(reduction)
    of.rows, of.wrong = target.numel_, -1
    of.sign = -1 if by_class else 1
    of.inner = inner_of(target)
    of.column = of.inner if by_class else 0
    of.row = 1
    of.outer = of.inner * (of.classes if by_class else 1)
    of.widen = of.narrow = NULL
    return 0


def nll_of_logs(Tensor input, Tensor weight, Tensor target, int64_t ignored, str reduction):
    """-weight[c] * x[c] for each row x with class c, 0 where c is `ignored`; or the sum or weighted
    mean of these. An input with one loss for each row is multiplied by weight[c].
    """
    cdef Rows of
    cdef Tensor x, w, places, out
    cdef int dtype
    cdef bint by_class = has_classes(input, target)
    if KIND[input.type] != FLOAT_KIND or not (by_class or same_shape(input, target)) or (
            by_class and weight.dims[0] != input.dims[1]):
        refuse("nll_loss", input, target)
    dtype = compute_dtype(input.type)
    x = packed(input if by_class else cast(input, dtype))
    places, w = packed(cast(target, INT64)), packed(cast(weight, dtype))
    fill_rows(&of, places, w, ignored, reduction, by_class)
    if ITEMSIZE[x.type] == 2:
        of.widen = find_cast(x.type, FLOAT32)
    out = new_like(places, dtype) if of.reduction == EACH else new_tensor(dtype, 0, NULL)
    of.x, of.y = x.data_pointer, out.data_pointer
    if of.reduction == EACH:
        share(each_row, &of, of.y, of.rows, <Py_ssize_t>PIECE, of.rows < RELEASE_GIL)
    else:
        run_once(add_rows, &of, of.y, of.rows < RELEASE_GIL)
    if of.wrong >= 0:
        refuse_class("nll_loss", of.wrong, of.target, of.classes)
    return cast(out, input.type)


def nll_of_logs_backward(Tensor grad, Tensor weight, Tensor target, int64_t ignored, str reduction,
                         bint by_class):
    """The adjoint of `nll_of_logs`. by_class: for rows, with an element for each weight; otherwise
    for one loss for each row."""
    cdef Rows of
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor g, w, places, out
    cdef int d
    if KIND[grad.type] != FLOAT_KIND or not 0 < target.ndim_ < MAX_NDIM:
        refuse("nll_loss", grad, target)
    g, places = packed(cast(grad, compute_dtype(grad.type))), packed(cast(target, INT64))
    w = packed(cast(weight, g.type))
    fill_rows(&of, places, w, ignored, reduction, by_class)
    if not (same_shape(grad, target) if of.reduction == EACH else grad.ndim_ == 0):
        refuse("nll_loss", grad, target)
    dims[0] = places.dims[0]
    dims[1] = of.classes
    for d in range(1, places.ndim_):
        dims[d + 1] = places.dims[d]
    if by_class:
        count("nll_loss", places.ndim_ + 1, dims)
        out = new_tensor(grad.type, places.ndim_ + 1, dims)
        zero(out)
        if ITEMSIZE[grad.type] == 2:
            of.narrow = find_cast(FLOAT32, grad.type)
    else:
        out = new_like(places, g.type)
    of.x, of.y = NULL, out.data_pointer
    if of.reduction == MEAN:
        run_once(add_rows, &of, of.y, of.rows < RELEASE_GIL)
    of.x = g.data_pointer
    if of.wrong < 0:
        share(each_row_back, &of, of.y, of.rows, <Py_ssize_t>PIECE, of.rows < RELEASE_GIL)
    if of.wrong >= 0:
        refuse_class("nll_loss", of.wrong, of.target, of.classes)
    return cast(out, grad.type)
