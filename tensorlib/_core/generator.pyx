"""Generators of random numbers: a seed and a count of draws."""

from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.string cimport memcpy

import os
from _thread import get_ident

from tensorlib._core.dtypes cimport UINT8
from tensorlib._core.tensor cimport Tensor, new_tensor

from tensorlib._core.numbers import OutOfRangeError
from tensorlib._core.tensor import CPU
from tensorlib._core.tensor import device as device_type

cdef enum:
    STATE_BYTES = 16

cdef uint64_t FIRST_SEED = 67280421310721        # of a new Generator, as in PyTorch


cdef class Generator:
    """A source of random numbers: a seed, and how many tensors were drawn from it.

    >>> g = tensorlib.Generator().manual_seed(3)
    >>> x, y = tensorlib.rand(2, generator=g), tensorlib.rand(2, generator=g)
    >>> bool((x == tensorlib.rand(2, generator=g.manual_seed(3))).all())
    True
    """

    def __cinit__(self):
        self.key = FIRST_SEED

    def __init__(self, device="cpu"):
        device_type(device)      # raises for all but the CPU

    @property
    def device(self):
        return CPU

    def manual_seed(self, seed):
        """This generator, started anew from `seed`, which is in [-2**63, 2**64).

        Raises: RuntimeError for what is no integer, OutOfRangeError.
        """
        if isinstance(seed, Tensor) or not PyIndex_Check(seed):
            raise RuntimeError(f"manual_seed: expected an int, got {type(seed).__name__}")
        seed = PyNumber_Index(seed)
        if not -2**63 <= seed < 2**64:
            raise OutOfRangeError(f"manual_seed: {seed} is not in [-2**63, 2**64)")
        self.key = seed % 2**64
        self.offset = 0
        return self

    def seed(self):
        """A seed from the operating system, from which this generator now starts anew."""
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
        """Goes on from a state that `get_state` gave. Raises: TypeError, RuntimeError."""
        if not isinstance(new_state, Tensor) or (<Tensor>new_state).type != UINT8:
            got = new_state.dtype if isinstance(new_state, Tensor) else type(new_state).__name__
            raise TypeError(f"set_state: expected a Tensor of uint8, got {got}")
        if (<Tensor>new_state).numel_ != STATE_BYTES or not (<Tensor>new_state).packed:
            raise RuntimeError(
                f"set_state: a state has {STATE_BYTES} contiguous bytes, got a tensor of shape "
                f"{tuple(new_state.shape)}")
        memcpy(&self.key, (<Tensor>new_state).data_pointer, 8)
        memcpy(&self.offset, (<Tensor>new_state).data_pointer + 8, 8)
        return self

    def clone_state(self):
        """A new generator that goes on from the same state."""
        return restored(self.key, self.offset)

    def __reduce__(self):
        return restored, (self.key, self.offset)

    def __repr__(self):
        return f"<tensorlib.Generator of seed {self.key} after {self.offset} draws>"


def restored(uint64_t key, uint64_t offset):
    """A generator in the state that a pickle holds."""
    cdef Generator generator = Generator()
    generator.key, generator.offset = key, offset
    return generator


default_generator = Generator()
default_generator.seed()


cdef set drawless = set()                # the threads that may draw no numbers now


def refuse_draws():
    """Makes drawing numbers an error in this thread; returns whether it was none before."""
    if get_ident() in drawless:
        return False
    drawless.add(get_ident())
    return True


def allow_draws():
    """Ends what `refuse_draws` began."""
    drawless.discard(get_ident())


cdef Generator chosen(str name, object generator):
    if drawless and get_ident() in drawless:
        raise RuntimeError(f"{name}: vmap: called random operation while in randomness error mode; "
                           "use vmap(..., randomness='same') or draw the numbers outside of vmap")
    if generator is None:
        return <Generator>default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"{name}: generator must be a Generator, not {type(generator).__name__}")
    return <Generator>generator
