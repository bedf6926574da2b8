"""Indexing with autograd: `x[key]` and `x[key] = value`."""

from cpython.object cimport PyObject

from tensorlib._core.apply.inplace cimport (
    check_writable, is_expanded, new_histories, take_histories,
)
from tensorlib._core.arrays.convert cimport from_data
from tensorlib._core.base.dtypes cimport BOOL
from tensorlib._core.base.upcalls cimport GETITEM, INDEX_PUT, registered
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.op cimport Op
from tensorlib._core.index.scatter_along cimport fits_flat, put_flat
from tensorlib._core.index.basic cimport as_parts, basic_view
from tensorlib._core.index.keys cimport Index, of_view, parse, put, take
from tensorlib._core.interpreters.interception cimport interpreted
from tensorlib._core.interpreters.foreign cimport call_proxy, runs_plain, to_write
from tensorlib._core.interpreters.recording cimport record
from tensorlib._core.tensor.tensor cimport (
    Tensor, UNRECORDED, alias, new_view, requires_grad, same_shape, set_base,
)
from tensorlib._core.tiles.copies cimport cast, packed, packed_copy


cdef object getitem(Tensor x, object key):
    try:
        return looked_up(x, as_parts(key) if isinstance(key, list) else key)
    except (IndexError, TypeError, RuntimeError) as error:
        put_name("getitem", x, error)
        raise


cdef int put_name(str name, Tensor x, error) except -1:
    """Adds the name of the operation, and what was indexed, to an error about a key."""
    cdef str text = str(error).removeprefix("tensor: ").removeprefix("index: ")
    if not text.startswith(name):
        shape = f" (indexing shape {tuple(x.shape)})" if isinstance(error, IndexError) else ""
        error.args = (f"{name}: {text}{shape}",)
    return 0


cdef object looked_up(Tensor x, object key):
    """x[key], recorded."""
    return look_up_watched(x, key) if watched else look_up(x, key)


cdef object look_up_watched(Tensor x, object key):
    if type(key) is int and runs_plain(x):
        return look_up(x, key)
    return interpreted(registered(GETITEM), "getitem", (x, key), None, plain_look_up, None, 1)


cdef object plain_look_up(object what, tuple args, dict kwargs):
    return look_up(<Tensor>args[0], args[1])


cdef inline object look_up(Tensor x, object key):
    cdef PyObject* args[1]
    cdef Tensor out
    out = basic_view(x, key)
    cdef bint grad = mode().grad
    cdef Index index = None
    if out is not None:
        set_base(out, x)
        if not grad:
            out.origin = UNRECORDED
    else:
        try:
            index = parse(x, key)
        except (IndexError, TypeError):
            done = call_proxy(<Op>registered(GETITEM), (x, key), None)
            if done is NotImplemented:
                raise
            return done
        out = take(x, index)
    if grad and requires_grad(x):
        args[0] = <PyObject*>x
        if index is None:
            index = parse(x, key)
        record(<Op>registered(GETITEM), args, 1, out, {"index": index})
    return out


cdef int setitem(Tensor x, object key, object value) except -1:
    try:
        if isinstance(key, list):
            key = as_parts(key)
        if not watched:
            return write(x, key, value)
        interpreted(registered(INDEX_PUT), "setitem", (x, value, key), None, plain_write, None, 1)
        return 0
    except (IndexError, TypeError, RuntimeError) as error:
        put_name("setitem", x, error)
        raise


cdef object plain_write(object what, tuple args, dict kwargs):
    write(<Tensor>args[0], args[2], args[1])
    return args[0]


cdef int write(Tensor x, object key, object value) except -1:
    cdef PyObject* args[2]
    cdef Index index
    cdef Tensor values, old, fresh
    cdef bint grad = mode().grad
    cdef list histories
    if not isinstance(value, Tensor):
        try:
            value = from_data(value, x.type)
        except RuntimeError as error:
            if type(error) is not RuntimeError:
                raise
            raise TypeError(str(error)) from None
    values = to_write("setitem", "value must be a Tensor", value)
    index = parse(x, key)                # conversions may run code, so `x` is read afterwards
    if is_expanded(x):                   # like `x[key].fill_(value)`, an error
        x, index = looked_up(x, index.basic), of_view(index)
    check_writable("setitem", x, grad)
    if not grad or not (requires_grad(x) or requires_grad(values)):
        put(x, index, cast(values, x.type), False)
        x.storage.version += 1
        return 0
    old = alias(x)
    old.grad_node, old.slot = x.grad_node, x.slot
    fresh = alias(x)
    args[0], args[1] = <PyObject*>old, <PyObject*>values
    record(<Op>registered(INDEX_PUT), args, 2, fresh, {"index": index})
    histories = new_histories(x, fresh)
    put(x, index, cast(values, x.type), False)
    x.storage.version += 1
    take_histories(histories)
    return 0


def is_plain_write(Tensor x, Tensor values, *others):
    """Whether `values` may be written to `x` without recording or dispatch: grad mode and watchers
    do not apply, and none of the tensors, positions included, is of an overriding class."""
    if is_expanded(x) or mode().grad and (requires_grad(x) or requires_grad(values)):
        return False
    if watched:
        for one in (x, values, *others):
            if not isinstance(one, Tensor) or not runs_plain(one):
                return False
    return True


def write_over(str name, Tensor x, writes, *args):
    """`x`, after `writes(x, *args)` wrote to it, for an `is_plain_write`."""
    check_writable(name, x, mode().grad)
    writes(x, *args)
    x.storage.version += 1
    return x


def write_flat(x, index, source, accumulate):
    """`x`, after `put_`, if it is an `is_plain_write` that needs no conversion; else None."""
    if not isinstance(x, Tensor) or not fits_flat(x, index, source, accumulate) or (
            not is_plain_write(x, source, index)):
        return None
    check_writable("put_", x, mode().grad)
    put_flat(x, index, source, accumulate)
    (<Tensor>x).storage.version += 1
    return x


def write_key(str name, Tensor x, tuple key, Tensor values, bint adds):
    """`x`, after values of its dtype were written to, or added at, the positions of a key of
    tensors, for an `is_plain_write`. Raises: IndexError, RuntimeError, naming the operation."""
    cdef Index index
    check_writable(name, x, mode().grad)
    try:
        index = parse(x, key)
    except IndexError as error:
        raise IndexError(f"{name.removesuffix('_')}: {error}") from None
    put(x, index, values, adds)
    x.storage.version += 1
    return x


def write_masked(str name, Tensor x, Tensor mask, Tensor source):
    """`x`, after elements of a source of its dtype were written, in order, where a mask of its
    shape is true; None if that is not plain. Raises: RuntimeError, naming the operation."""
    if not fits_masked(x, mask, source) or not is_plain_write(x, source, mask):
        return None
    check_writable(name, x, mode().grad)
    put_masked(name.removesuffix("_"), x, mask, source)
    x.storage.version += 1
    return x


def masked_in_copy(str name, Tensor x, Tensor mask, Tensor source):
    """A row-major copy of `x` of which the same holds."""
    cdef Tensor rows
    if not fits_masked(x, mask, source):
        return None
    rows = packed_copy(x, x.type)
    put_masked(name, rows, mask, source)
    return rows


cdef bint fits_masked(Tensor x, Tensor mask, Tensor source) noexcept:
    return source.type == x.type and mask.type == BOOL and x.ndim_ and same_shape(x, mask)


cdef int put_masked(str name, Tensor x, Tensor mask, Tensor source) except -1:
    cdef Index index = parse(x, (mask,))
    cdef Tensor values = packed(source)
    cdef Py_ssize_t one = 1
    if values.numel_ < index.n_true:
        raise RuntimeError(f"{name}: source has {values.numel_} elements, fewer "
                           f"than the {index.n_true} that the mask has places for")
    put(x, index, new_view(values, 1, &index.n_true, &one, values.data_pointer), False)
    return 0
