"""Generators of random numbers: a seed and a count of draws."""

cimport cython
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.string cimport memcpy

import os

from tensorlib._core.base.dtypes cimport UINT8
from tensorlib._core.base.locks cimport fetch_add_unsigned
from tensorlib._core.base.watch cimport watched
from tensorlib._core.interpreters.stack cimport effect
from tensorlib._core.tensor.meta cimport is_meta
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor

from tensorlib._core.base.device import CPU, require_cpu
from tensorlib._core.tensor.numbers import OutOfRangeError

cdef enum:
    STATE_BYTES = 16

cdef uint64_t FIRST_SEED = 67280421310721        # of a new Generator, as in PyTorch


@cython.binding(False)            # methods check their `self`
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Generator:
    """A source of random numbers: a seed, and the number of tensors drawn from it.

    >>> g = tensorlib.Generator().manual_seed(3)
    >>> x, y = tensorlib.rand(2, generator=g), tensorlib.rand(2, generator=g)
    >>> bool((x == tensorlib.rand(2, generator=g.manual_seed(3))).all())
    True
    """

    def __cinit__(self):
        self.key = FIRST_SEED

    def __init__(self, device="cpu"):
        require_cpu("Generator", device)
        if watched:
            effect("Generator", None)

    @property
    def device(self):
        return CPU

    def manual_seed(self, seed):
        """This generator, restarted from `seed`, which is in [-2**63, 2**64).

        Raises: RuntimeError for what is not an integer, OutOfRangeError.
        """
        if isinstance(seed, Tensor) or not PyIndex_Check(seed):
            raise RuntimeError(f"manual_seed: expected an int, got {type(seed).__name__}")
        seed = PyNumber_Index(seed)
        if not -2**63 <= seed < 2**64:
            raise OutOfRangeError(f"manual_seed: {seed} is not in [-2**63, 2**64)")
        if watched:
            effect("manual_seed", self)
        self.key = seed % 2**64
        self.offset = 0
        return self

    def seed(self):
        """A seed of the operating system, from which this generator is restarted."""
        if watched:
            effect("seed", self)
        self.key = int.from_bytes(os.urandom(8), "little")
        self.offset = 0
        return self.key

    def initial_seed(self):
        """The seed from which this generator started."""
        return self.key

    def get_state(self):
        """The state as a tensor of bytes, for `set_state`."""
        cdef Py_ssize_t size = STATE_BYTES
        cdef Tensor state = new_tensor(UINT8, 1, &size)
        memcpy(state.data_pointer, &self.key, 8)
        memcpy(state.data_pointer + 8, &self.offset, 8)
        return state

    def set_state(self, new_state):
        """Restores a state from `get_state`. Raises: TypeError, RuntimeError."""
        if not isinstance(new_state, Tensor) or (<Tensor>new_state).type != UINT8:
            got = new_state.dtype if isinstance(new_state, Tensor) else type(new_state).__name__
            raise TypeError(f"set_state: expected a Tensor of uint8, got {got}")
        if (<Tensor>new_state).numel_ != STATE_BYTES or not (<Tensor>new_state).packed:
            raise RuntimeError(
                f"set_state: a state has {STATE_BYTES} contiguous bytes, got a tensor of shape "
                f"{tuple(new_state.shape)}")
        if watched:
            effect("set_state", self)
        memcpy(&self.key, (<Tensor>new_state).data_pointer, 8)
        memcpy(&self.offset, (<Tensor>new_state).data_pointer + 8, 8)
        return self

    def clone_state(self):
        """A new generator with the same state."""
        return restored(self.key, self.offset)

    def __reduce__(self):
        return restored, (self.key, self.offset)

    def __repr__(self):
        return f"<tensorlib.Generator of seed {self.key} after {self.offset} draws>"


def restored(uint64_t key, uint64_t offset):
    """A generator with the state of a pickle."""
    cdef Generator generator = Generator()
    generator.key, generator.offset = key, offset
    return generator


default_generator = Generator()
default_generator.seed()


# How a thread draws random numbers under `vmap`: False if it must not, or a pair of the leading
# sizes that every draw has in addition, and a function that makes the result a Batched value. It is
# set without an allocation, so that restoring it cannot fail.
cdef extern from * nogil:
    """
    static __thread PyObject* thread_plan = NULL;          /* owned; NULL: as ever */
    static PyObject* current_plan(void) { return thread_plan; }
    static void store_plan(PyObject* plan) { thread_plan = plan; }
    """
    PyObject* current_plan()
    void store_plan(PyObject* plan)


def set_plan(plan):
    """Sets how this thread draws (None: as usual), and returns the value before."""
    cdef PyObject* held = current_plan()
    before = None if held == NULL else <object>held
    Py_XINCREF(NULL if plan is None else <PyObject*>plan)
    store_plan(NULL if plan is None else <PyObject*>plan)
    Py_XDECREF(held)
    return before


cdef object plan_of(str name):
    """How this thread draws, if each example of a batch draws its own numbers; else None."""
    cdef PyObject* held = current_plan()
    plan = None if held == NULL else <object>held
    if plan is False:
        raise RuntimeError(f"{name}: vmap: called random operation while in randomness error mode; "
                           "use vmap(..., randomness='same') or 'different', or draw the numbers "
                           "outside of vmap")
    return plan


cpdef tuple sizes_of_batches(str name):
    """The sizes of the batches whose examples draw their own numbers, the outermost first."""
    plan = plan_of(name)
    return () if plan is None else <tuple>plan[0]


cpdef object as_examples(object x):
    """The drawn numbers as a Batched value."""
    cdef PyObject* held = current_plan()
    return (<object>held)[1](x) if held != NULL and <object>held else x


cdef int refuse_shared_draw(str name) except -1:
    """Raises if each example would draw its own numbers for a tensor that they share."""
    if plan_of(name) is not None:
        raise RuntimeError(f"{name}: vmap: in place on a tensor that all examples of a batch "
                           "share, with randomness='different', would draw the same for all; use "
                           "the form that returns a new tensor")
    return 0


cdef Generator chosen(str name, object generator):
    plan_of(name)
    if generator is None:
        return <Generator>default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"{name}: generator must be a Generator, not {type(generator).__name__}")
    return <Generator>generator


cdef void next_draw(Generator source, Tensor x, uint64_t* seed, uint64_t* offset) noexcept:
    """The seed and offset of a draw for `x`; on `meta` nothing is drawn."""
    cdef uint64_t drawn
    drawn = not is_meta(x)
    seed[0], offset[0] = source.key, fetch_add_unsigned(&source.offset, drawn)
