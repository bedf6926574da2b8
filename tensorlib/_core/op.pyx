"""Operations: the record of each, the registry, and the one way in which they run.

Every operation passes `record` when it has run: the choke point. There the grad mode is checked and
the node is built; where nothing requires a gradient it costs a branch.
"""

cimport cython
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcpy

import difflib
from types import MappingProxyType

import numpy as np

from tensorlib._core.memory import OutOfMemoryError

from tensorlib._core.arrays cimport from_ndarray
from tensorlib._core.dtypes cimport (
    BOOL, FLOAT64, FLOAT_KIND, INT64, ITEMSIZE, KIND, compute_dtype, default_float, dtype_object,
    promote,
)
from tensorlib._core.layout cimport new_arranged_as
from tensorlib._core.loops cimport Loop, find_cast, find_gather, find_loop, loop_id
from tensorlib._core.node cimport (
    Node, OUTPUT, edge_dims, keep, mode, new_node, saved_value, set_edge,
)
from tensorlib._core.shape cimport MAX_NDIM, broadcast, make_size
from tensorlib._core.tensor cimport Tensor, alias, new_scalar, new_tensor, requires_grad, same_shape
from tensorlib._core.copies cimport cast, may_overlap, packed_copy
from tensorlib._core.tile cimport MAX_INPUTS, Program, TileProgram, run_loop, run_program

cdef extern from "Python.h":
    bint PyBool_Check(object value)
    ctypedef struct TupleItems "PyTupleObject":
        PyObject** ob_item

cdef extern from * nogil:
    int __builtin_popcount(unsigned int bits)


# ---- records -------------------------------------------------------------------------------------

cdef dict OPS = {}
cdef dict GUARDS = {None: NOTHING, "zero": ZEROS, "negative": NEGATIVES}
registry = MappingProxyType(OPS)

# what a rule may know of an argument that is not kept
cdef dict FACTS = {"shape": SHAPE, "ndim": NDIM, "dtype": DTYPE}


@cython.final
cdef class Rule:
    def __repr__(self):
        return f"<rule of {', '.join(self.names)}>"


@cython.final
cdef class Op:
    """One operation: what it computes, its gradient and its forward-mode rule.

    `name` and `doc` as in PyTorch; `arguments` are the tensors it takes, `attributes` what else.
    """

    def __init__(self, str name, str doc, arguments, attributes=(), defaults=(), outputs=("out",),
                 *, forward=None, loop=None, boolean_inputs=(), bint to_float=False, refuses=None,
                 bint differentiable=True, bint variadic=False, bint is_view=False,
                 str linearity="", testing=None):
        if name in OPS:
            raise ValueError(f"ops: an operation named {name!r} exists already")
        self.name = name
        self.doc = doc
        self.node_name = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Backward"
        self.arguments = tuple(arguments)
        self.attributes = tuple(attributes)
        self.defaults = tuple(defaults)
        self.outputs = tuple(outputs)
        self.n_args = len(self.arguments)
        self.forward = forward
        self.differentiable = differentiable
        self.linearity = linearity
        self.variadic = variadic
        self.is_view = is_view
        self.testing = testing or {}
        self.rules = [None] * self.n_args
        self.kept_attributes = frozenset()
        self.to_float = to_float
        self.guard = GUARDS[refuses]
        self.boolean_inputs = tuple(boolean_inputs)
        self.elementwise = loop is not None
        if loop is not None:
            self.loop = loop_id(loop)
            self.program = TileProgram(
                self.n_args, [(loop, tuple(range(self.n_args)))], (), boolean_inputs)
        OPS[name] = self

    def add_rule(self, str argument, function, program=None, constant=None, bint spreads=False):
        """Registers how the gradient of `argument` (None: of all at once) is computed.

        The parameters of `function` name what it needs and so what is kept: `g`, an output, an
        argument, an attribute, or an argument's shape, ndim or dtype (`input_shape`). An element-wise
        formula comes with its tile `program`, or with the `constant` 0 or 1 that it is. A rule that
        `spreads` repeats the gradient over the attribute `dim`: the sweep does it without a call.
        """
        cdef Rule rule = Rule.__new__(Rule)
        cdef int i
        rule.function = function
        rule.names = function.__code__.co_varnames[:function.__code__.co_argcount]
        rule.joint = argument is None
        rule.program = program
        rule.kind = TILES if program is not None else FUNCTION
        if constant is not None:
            rule.kind = PASS if constant else ZERO
        if spreads:
            rule.kind = SPREAD
        if len(rule.names) > MAX_WANTS:
            raise ValueError(f"{self.name}: a rule takes at most {MAX_WANTS} parameters")
        rule.n_wants = len(rule.names)
        for i, name in enumerate(rule.names):
            self.resolve(rule, i, name)
        if argument is None:
            self.rules = [rule] * self.n_args
        elif argument not in self.arguments:
            raise ValueError(f"{self.name}: has no argument {argument!r}; it takes {self.arguments}")
        else:
            self.rules[self.arguments.index(argument)] = rule

    def resolve(self, Rule rule, int i, str name):
        """Finds what a rule's parameter stands for."""
        cdef str owner, what
        if name == "g":
            rule.wants[i] = GRADIENT
        elif name in self.outputs:
            rule.wants[i], rule.places[i] = SAVED, OUTPUT + self.outputs.index(name)
            rule.mask |= <unsigned int>1 << rule.places[i]
        elif name in self.arguments and not self.variadic:
            rule.wants[i], rule.places[i] = SAVED, self.arguments.index(name)
            rule.mask |= <unsigned int>1 << rule.places[i]
        elif name in self.attributes:
            rule.wants[i], rule.places[i] = ATTRIBUTE, self.attributes.index(name)
            self.kept_attributes |= {name}
        else:
            owner, _, what = name.rpartition("_")
            if owner not in self.arguments or what not in FACTS:
                raise ValueError(f"{self.name}: a rule asks for {name!r}, which it does not have")
            rule.wants[i] = FACTS[what]
            rule.places[i] = self.arguments.index(owner)

    def add_tangent(self, function):
        """Registers the forward-mode rule: the output's tangent from those of the inputs."""
        self.tangent_rule = function
        self.linearity = "jvp"
        return function

    def __repr__(self):
        return f"<Op {self.name}({', '.join(self.arguments + self.attributes)})>"

    def __reduce__(self):
        return find, (self.name,)


def find(name):
    """The operation of this name. Raises KeyError with the nearest names."""
    try:
        return OPS[name]
    except KeyError:
        near = difflib.get_close_matches(name, OPS, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise KeyError(f"ops: no operation named {name!r}{hint}") from None


# ---- Python numbers ------------------------------------------------------------------------------
# A number becomes a 0-d tensor of the dtype in which it will be computed, marked as a number for
# promotion. The last ones are kept, since loops multiply by the same few numbers: `a * 2.0` then
# costs what `a + b` costs. No such tensor reaches the user. Its memory holds a line of copies, which
# a loop over few elements reads as it is.

cdef enum:
    N_SCALARS = 256
    LINE = 64                      # bytes; no block of memory is smaller

cdef PyObject* scalars[N_SCALARS]         # Tensors, owned
cdef uint64_t scalar_keys[N_SCALARS]


cdef Tensor scalar_tensor(object value, int dtype):
    """A new 0-d tensor of a Python number. Integers wrap to the range of the dtype."""
    cdef Tensor x = new_scalar(dtype)
    cdef double real
    cdef int64_t whole
    cdef int overflow = 0
    if PyFloat_Check(value) or KIND[dtype] == FLOAT_KIND:
        real = value
        if dtype == FLOAT64:
            (<double*>x.data_pointer)[0] = real
        else:
            find_cast(FLOAT64, dtype)(&real, x.data_pointer, 1)
        return x
    whole = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise OverflowError(f"the integer {value} does not fit in 64 bits")
    if dtype == INT64:
        (<int64_t*>x.data_pointer)[0] = whole
    else:
        find_cast(INT64, dtype)(&whole, x.data_pointer, 1)
    return x


cdef Tensor number(object value, int dtype):
    """The marked 0-d tensor of a Python number, from the kept ones where it is there."""
    cdef Tensor x
    cdef double real
    cdef uint64_t key
    cdef int place
    if not PyFloat_Check(value):
        return repeated(value, dtype)
    real = PyFloat_AS_DOUBLE(value)
    memcpy(&key, &real, 8)
    place = <int>(((key * <uint64_t>0x9E3779B97F4A7C15) >> 52) + dtype) & (N_SCALARS - 1)
    if scalars[place] != NULL and scalar_keys[place] == key and (
            <Tensor>scalars[place]).type == dtype:
        return <Tensor>scalars[place]
    x = repeated(value, dtype)
    Py_INCREF(x)
    Py_XDECREF(scalars[place])
    scalars[place] = <PyObject*>x
    scalar_keys[place] = key
    return x


cdef Tensor repeated(object value, int dtype):
    """A marked 0-d tensor whose memory holds the number as often as a line has room for it."""
    cdef Tensor x = scalar_tensor(value, dtype)
    find_gather(dtype)(x.data_pointer, 0, x.data_pointer, LINE // ITEMSIZE[dtype])
    x.is_scalar = True
    return x


cdef Tensor operand(Op op, object value, Tensor partner):
    """What an operator was given beside tensor `partner` (or None), as a tensor.

    None for a type that no tensor can be made of.
    """
    cdef int dtype
    if isinstance(value, Tensor):
        return <Tensor>value
    if PyFloat_Check(value):
        dtype = default_float()
        if partner is not None and KIND[partner.type] == FLOAT_KIND:
            dtype = compute_dtype(partner.type)
        return number(value, dtype)
    if PyBool_Check(value) or PyLong_Check(value):
        dtype = BOOL if PyBool_Check(value) else INT64
        if partner is not None:
            if KIND[partner.type] == FLOAT_KIND:
                return number(<double>value, compute_dtype(partner.type))
            if KIND[partner.type] >= KIND[dtype] and not (op.to_float or op.guard == NEGATIVES):
                dtype = partner.type         # there a number wraps, as in PyTorch
        return number(value, dtype)
    if isinstance(value, np.generic) and not isinstance(value, (np.complexfloating, np.flexible)):
        return operand(op, value.item(), partner)
    if isinstance(value, np.ndarray):
        return from_ndarray("operand" if op is None else op.name, value)
    return None


# ---- element-wise operations ---------------------------------------------------------------------

cdef Tensor apply_elementwise(Op op, PyObject** args):
    """Runs an element-wise operation on tensors and records it."""
    cdef Tensor like = <Tensor>args[0], x, out
    cdef int i, n = op.n_args, dtype = like.type
    cdef bint is_scalar[3]
    cdef char* pointers[3]
    cdef Loop* loop = find_loop(op.loop, dtype)
    cdef bint simple = (loop.run != NULL and not (op.to_float and KIND[dtype] != FLOAT_KIND)
                        and op.guard == NOTHING
                        and (dtype == BOOL or not op.boolean_inputs))
    for i in range(1, n):
        if like.ndim_ == 0:
            like = <Tensor>args[i]
    for i in range(n):
        x = <Tensor>args[i]
        if not (simple and x.type == dtype and x.packed
                and (x.ndim_ == 0 or x is like or same_shape(x, like))):
            simple = False
            break
        pointers[i] = x.data_pointer
        is_scalar[i] = x.ndim_ == 0 and like.numel_ != 1 and not (
            x.is_scalar and like.numel_ * ITEMSIZE[dtype] <= LINE)
    if simple:
        out = new_tensor(loop.result, like.ndim_, like.dims)
        run_loop(loop, pointers, is_scalar, out.data_pointer, out.numel_)
    else:
        out = apply_mixed(op, args)
    if mode().grad:
        record(op, args, n, out, None)
    return out


cdef int result_dtype(Op op, PyObject** args) except -1:
    """The promoted dtype: tensors with dims decide within a category, then 0-d ones, then numbers."""
    cdef int decided[3]
    cdef int i, rank
    cdef Tensor x
    decided[0] = decided[1] = decided[2] = -1
    for i in range(op.n_args):
        if i in op.boolean_inputs:
            continue
        x = <Tensor>args[i]
        rank = 0 if x.ndim_ else 2 if x.is_scalar else 1
        decided[rank] = x.type if decided[rank] < 0 else promote(decided[rank], x.type)
    return combine(decided[0], combine(decided[1], decided[2]))


cdef int combine(int higher, int lower) noexcept:
    if higher < 0 or lower < 0:
        return max(higher, lower)
    if KIND[higher] >= KIND[lower]:
        return higher
    return promote(higher, lower)


cdef Tensor apply_mixed(Op op, PyObject** args):
    """The general case: promotion, broadcasting, any layout."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t joined[MAX_NDIM]
    cdef int i, d, ndim, promoted = result_dtype(op, args), dtype
    cdef const Program* program = program_for(op, args, promoted)
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
    run_program(program, args, out)
    return out


cdef const Program* program_for(Op op, PyObject** args, int promoted) except NULL:
    cdef int dtype = promoted
    for i in op.boolean_inputs:
        if (<Tensor>args[i]).type != BOOL:
            raise RuntimeError(
                f"{op.name}: {op.arguments[i]} must be a bool tensor, got {(<Tensor>args[i]).dtype}")
    if op.to_float and KIND[dtype] != FLOAT_KIND:
        dtype = default_float()
    dtype = compute_dtype(dtype)
    if find_loop(op.loop, dtype).run == NULL:
        raise UnsupportedDtype(f"{op.name}: not implemented for {dtype_object(promoted)}")
    if op.guard != NOTHING and KIND[dtype] != FLOAT_KIND:
        check_guard(op, <Tensor>args[op.n_args - 1], dtype)
    return op.program.at(dtype)


cdef int check_guard(Op op, Tensor x, int dtype) except -1:
    """Raises for integers that the operation has no answer to; NumPy's loops would raise midway."""
    if op.guard == ZEROS and has_zero(x):
        raise IntegerDivisionByZero(f"{op.name}: integer division by zero")
    if op.guard == NEGATIVES and has_negative(x):
        raise UnfitPower(
            f"{op.name}: integers to negative integer powers are not allowed; make one a float")
    if op.guard == NEGATIVES and x.is_scalar and not fits(x, dtype):
        raise UnfitPower(
            f"{op.name}: the exponent {x.item()} does not fit in {dtype_object(dtype)}")
    return 0


class UnsupportedDtype(NotImplementedError, TypeError):
    """Both of PyTorch's errors for it: one is its functions', the other its operators'."""


class IntegerDivisionByZero(ZeroDivisionError, RuntimeError):
    """Python's and NumPy's error for it, and PyTorch's."""


class UnfitPower(ValueError, RuntimeError):
    """NumPy's error for it, and PyTorch's."""


cdef bint has_zero(Tensor x) except -1:
    """Whether an element is zero."""
    cdef Tensor truth = cast(x, BOOL)
    cdef Tensor flat = truth if truth.packed else packed_copy(truth, BOOL)
    return flat.numel_ != 0 and memchr(flat.data_pointer, 0, flat.numel_) != NULL


cdef bint fits(Tensor x, int dtype) except -1:
    """Whether a whole number is the same in another dtype of integers."""
    return cast(cast(x, dtype), INT64).item() == cast(x, INT64).item()


cdef bint has_negative(Tensor x) except -1:
    """Whether an element is negative."""
    cdef Tensor whole = cast(x, INT64)
    cdef Tensor flat = whole if whole.packed else packed_copy(whole, INT64)
    cdef const int64_t* items = <const int64_t*>flat.data_pointer
    cdef int64_t least = 0
    cdef Py_ssize_t i
    for i in range(flat.numel_):
        least = min(least, items[i])
    return least < 0


cdef int output_dtype(Op op, const Program* program, int promoted) noexcept:
    """Half types come back as they went in; predicates give bool."""
    cdef int computed = program.dtypes[op.n_args - 1]
    cdef int result = program.dtypes[op.n_args]
    if result != computed:
        return result
    return promoted if compute_dtype(promoted) == computed else computed


cdef Tensor new_arranged(Op op, PyObject** args, int dtype, int ndim, const Py_ssize_t* dims):
    """An output laid out as the inputs are where they agree (all transposed alike, say)."""
    cdef Tensor first = None, x
    cdef int i, d
    for i in range(op.n_args):
        x = <Tensor>args[i]
        if x.ndim_ == 0:
            continue
        if first is None:
            first = x
        if x.packed or x.ndim_ != ndim or not same_shape(x, first):
            return new_tensor(dtype, ndim, dims)
        for d in range(ndim):
            if x.steps[d] != first.steps[d] or x.dims[d] != dims[d]:
                return new_tensor(dtype, ndim, dims)
    return new_tensor(dtype, ndim, dims) if first is None else new_arranged_as(first, dtype)


cdef int apply_into(Op op, PyObject** args, Tensor out) except -1:
    """out := op(args), for `out=` and in-place forms; the caller has checked `out`."""
    cdef PyObject* safe[MAX_INPUTS]
    cdef list copies = []
    cdef Tensor x
    cdef int i, promoted = result_dtype(op, args)
    cdef const Program* program = program_for(op, args, promoted)
    cdef int dtype = output_dtype(op, program, promoted)
    if KIND[dtype] > KIND[out.type]:
        raise RuntimeError(
            f"{op.name}: result type {dtype_object(dtype)} can't be cast to the desired output type "
            f"{out.dtype}")
    for i in range(op.n_args):
        x = <Tensor>args[i]
        if may_overlap(x, out):
            x = packed_copy(x, x.type)
            copies.append(x)
        safe[i] = <PyObject*>x
    run_program(program, safe, out)
    out.storage.version += 1
    return 0


cdef object apply_unary(Op op, object x):
    cdef PyObject* args[1]
    if not isinstance(x, Tensor):
        raise TypeError(f"{op.name}: input must be a Tensor, not {type(x).__name__}")
    args[0] = <PyObject*>x
    return apply_elementwise(op, args)


cdef object apply_binary(Op op, object a, object b):
    """op(a, b) where at least one is a tensor; NotImplemented for types that can't be operands."""
    cdef PyObject* args[2]
    cdef Tensor x, y
    if isinstance(a, Tensor):
        x = <Tensor>a
        y = <Tensor>b if isinstance(b, Tensor) else operand(op, b, x)
    elif isinstance(b, Tensor):
        y = <Tensor>b
        x = operand(op, a, y)
    else:
        x = operand(op, a, None)
        y = operand(op, b, None)
    if x is None or y is None:
        return NotImplemented
    args[0] = <PyObject*>x
    args[1] = <PyObject*>y
    return apply_elementwise(op, args)


# ---- operations in general -----------------------------------------------------------------------

cdef object apply_general(Op op, tuple args, dict kwargs):
    """Runs any other operation on canonical arguments (tensors first) and records it."""
    cdef object out
    try:
        out = op.forward(*args, **kwargs) if kwargs else op.forward(*args)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"{op.name}: {error}") from None
    if mode().grad and op.differentiable:
        record_general(op, args, kwargs, out)
    return out


cdef int record_general(Op op, tuple args, dict kwargs, object out) except -1:
    cdef tuple tensors
    cdef bint wanted = False
    cdef int i, n = op.n_args
    cdef object attributes = None
    if op.variadic:
        tensors = tuple(args[0])
        n = len(tensors)
    else:
        tensors = args
    for i in range(n):
        if tensors[i] is out:
            return 0                     # an operation that had nothing to do
        wanted = wanted or (isinstance(tensors[i], Tensor) and requires_grad(<Tensor>tensors[i]))
    if not wanted:
        return 0
    if op.kept_attributes:
        attributes = bind_attributes(op, args, kwargs)
    return record(op, (<TupleItems*><PyObject*>tensors).ob_item, n, out, attributes)


cdef dict bind_attributes(Op op, tuple args, dict kwargs):
    """The values of the attributes that rules name: positional, by keyword, or the default."""
    cdef dict bound = {}
    cdef int i, first = 1 if op.variadic else op.n_args
    for i, name in enumerate(op.attributes):
        if name not in op.kept_attributes:
            continue
        if first + i < len(args):
            bound[name] = args[first + i]
        elif kwargs and name in kwargs:
            bound[name] = kwargs[name]
        else:
            bound[name] = op.defaults[i]
    return bound


# ---- the choke point -----------------------------------------------------------------------------

cdef int record(Op op, PyObject** args, int n, object outputs, object attributes) except -1:
    """Links the outputs of an operation that ran to a new node, if an input requires a gradient."""
    cdef unsigned int mask = 0
    cdef bint wanted = False
    cdef int i
    for i in range(n):
        if requires_grad(<Tensor>args[i]):
            wanted = True
            break
    if not wanted or not op.differentiable:
        return 0
    cdef Rule rule
    for i in range(n):
        if requires_grad(<Tensor>args[i]):
            rule = <Rule>(op.rules[0] if op.variadic else op.rules[i])
            if rule is not None:
                mask |= rule.mask
    link(op, args, n, mask, outputs, attributes)
    return 0


cdef int link(Op op, PyObject** args, int n, unsigned int mask, object outputs,
              object attributes) except -1:
    cdef Node node
    cdef Tensor out
    cdef int i, k, n_outputs = 1
    cdef bint several = not isinstance(outputs, Tensor)
    if several:
        n_outputs = len(outputs)
    elif KIND[(<Tensor>outputs).type] != FLOAT_KIND:
        return 0
    node = new_node(op, n, __builtin_popcount(mask), n_outputs)
    node.attributes = attributes
    for i in range(n):
        set_edge(node, i, <Tensor>args[i])
    if mask:
        for i in range(min(n, <int>OUTPUT)):
            if mask >> i & 1:
                keep(node, i, <Tensor>args[i])
    if not several:
        out = <Tensor>outputs
        if mask >> OUTPUT & 1:
            keep(node, OUTPUT, alias(out))
        out.grad_node = node
        return 0
    for k in range(n_outputs):
        out = <Tensor>outputs[k]
        if mask >> (OUTPUT + k) & 1:
            keep(node, OUTPUT + k, alias(out))
        if KIND[out.type] == FLOAT_KIND:
            out.grad_node = node
            out.slot = k
    return 0


# ---- rules ---------------------------------------------------------------------------------------

cdef tuple rule_arguments(Rule rule, Node node, object g, bint as_recorded):
    """What the parameters of a rule stand for at this node, in order."""
    cdef tuple values = PyTuple_New(rule.n_wants)
    cdef Op op = <Op>node.op
    cdef int i, k
    for i in range(rule.n_wants):
        if rule.wants[i] == GRADIENT:
            value = g
        elif rule.wants[i] == SAVED:
            value = saved_value(node, rule.places[i], as_recorded)
        elif rule.wants[i] == ATTRIBUTE:
            value = node.attributes[op.attributes[rule.places[i]]]
        elif op.variadic:
            value = [edge_fact(node, k, rule.wants[i]) for k in range(node.n_edges)]
        else:
            value = edge_fact(node, rule.places[i], rule.wants[i])
        Py_INCREF(value)
        PyTuple_SET_ITEM(values, i, value)
    return values


cdef object edge_fact(Node node, int i, Want want):
    if want == DTYPE:
        return dtype_object(node.edges[i].dtype)
    if want == NDIM:
        return node.edges[i].ndim
    return make_size(node.edges[i].ndim, edge_dims(&node.edges[i]))
