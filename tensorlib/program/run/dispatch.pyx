"""Dispatch of calls of compiled functions: a lookup in the trace cache by signature and guards."""

cimport cython
from libc.stdint cimport int64_t
from tensorlib._core.arrays.as_numbers cimport differentiating
from tensorlib._core.base.region cimport makes_meta
from tensorlib._core.base.storage cimport UNTRACKED, first_version
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.modes cimport TRACED, mode
from tensorlib._core.interpreters.levels cimport maps_over_batches
from tensorlib._core.interpreters.stack cimport current_layer
from tensorlib._core.tensor.tensor cimport (
    IN_FUNCTION, Origin, Tensor, leave_family, over_storage, set_base,
)
from tensorlib.program.guards.overlaps cimport Overlaps
from tensorlib.program.guards.signatures cimport Conditions, Signature, like_on_meta
from tensorlib.program.run.executor cimport Machine

from tensorlib._core.base.error_names import from_the_users_line
from tensorlib.autograd.tree import unflatten

cdef enum:
    CAPTURING, EAGER, EAGER_IF_NEW, REFUSED_IF_NEW

STANCES = {"default": CAPTURING, "force_eager": EAGER, "eager_on_recompile": EAGER_IF_NEW,
           "fail_on_recompile": REFUSED_IF_NEW}
cdef int stance = CAPTURING  # what calls without a replay do, or all calls, in this process
UNDONE = object()            # instead of a result: the replay failed, and changed nothing


@cython.binding(False)            # methods check their `self`
cdef class Way:
    """How calls of one kind run.

    replay: the replay; None if they run eagerly. machine: that of the replay, if there is no graph
    and no control flow, else None. places: for each leaf of the result its index in the results of
    the replay; -1 for one that is in `leaves`. inference: the results are made in inference mode.
    why: why there is no replay. parts: the function in parts, if it can be split. views: see
    `views_in`. versions: see `versions_in`, if there is no graph. undo: a function that saves the
    state before a run, which is restored if the run fails; None if a failing run has changed
    nothing, or just what the function would have.
    """

    cdef readonly Signature kind
    cdef readonly object replay
    cdef public str why
    cdef public object parts
    cdef readonly Conditions conditions
    cdef readonly Overlaps overlaps
    cdef Machine machine
    cdef readonly object undo
    cdef object structure
    cdef tuple values
    cdef list places, leaves, views, versions
    cdef bint single, inference

    def __init__(self, Signature kind, Conditions conditions, replay=None, machine=None,
                 structure=None, list places=None, list leaves=None, Overlaps overlaps=None,
                 bint inference=False, list views=None, list versions=None, undo=None):
        self.kind, self.conditions, self.replay = kind, conditions, replay
        self.machine = machine if isinstance(machine, Machine) else None
        self.structure, self.places, self.leaves = structure, places, leaves
        self.overlaps, self.inference, self.views = overlaps, inference, views
        self.versions, self.undo = versions, undo
        self.values = () if replay is None else tuple(replay.values)
        self.single = structure is not None and structure.kind is None and places == [0]

    def is_replayed(self):
        """Whether calls of this kind are replayed, as a whole."""
        return self.replay is not None and not self.replay.outdone

    cpdef object run(self, tuple tensors):
        """The result of a call; UNDONE if it fails, so that the function runs, and fails itself."""
        cdef list found, leaves
        cdef Py_ssize_t i
        cdef int64_t before = first_version()[0]
        cdef object state
        if self.undo is not None and self.replay.outdone:
            return UNDONE                        # nothing has to be copied for that
        state = None if self.undo is None else self.undo(tensors)
        if self.inference:
            first_version()[0] = UNTRACKED
        try:
            if self.machine is None or self.machine.busy:
                found = self.replay.run(tensors, True)
            else:
                found = self.machine.run(tensors + self.values if self.values else tensors, True)
        except Exception:
            if state is None:
                raise
            state.put_back()
            found = None
        finally:
            first_version()[0] = before
        if found is None:
            return UNDONE
        if self.versions:
            set_versions(self.versions, found)
        if self.views:
            note_views(self.views, found, tensors + self.values)
        if self.single:
            return found[0]
        leaves = self.leaves.copy()
        for i in range(len(leaves)):
            if <Py_ssize_t>self.places[i] >= 0:
                leaves[i] = found[self.places[i]]
        return unflatten(self.structure, leaves)


cdef class BaseOf:
    """The base of a result without a graph that is a view: an input or another result, by its
    index, or a temporary tensor of the call, which each run makes anew."""

    cdef Py_ssize_t place, given, result
    cdef Py_ssize_t number                   # of a temporary, of which others are views too
    cdef int origin
    cdef Tensor like                         # of a temporary: how it is laid out
    cdef Py_ssize_t offset                   # and how far it lies before the result

    cdef Tensor found(self, Tensor x, tuple given, list results, dict made):
        """The base in a run that returned `x`; None if its memory does not exist."""
        cdef char* data = x.data_pointer - self.offset
        cdef Tensor like = self.like
        if self.given >= 0:
            return <Tensor?>given[self.given]
        if self.result >= 0:
            return <Tensor?>results[self.result]
        if self.number not in made:
            if data < x.storage.data or data + like.storage.nbytes > (
                    x.storage.data + x.storage.nbytes):
                return None
            made[self.number] = over_storage(x.storage, data, like.type, like.ndim_, like.dims,
                                             like.steps)
        return made[self.number]


def views_in(list slots, list found, tuple given):
    """The base of each result that is a view; except for views of temporaries with a graph, whose
    history is not observable."""
    cdef list views = []
    cdef dict numbers = {}
    cdef Tensor x, y
    cdef BaseOf base
    for place, value in zip(slots, found):
        if place < 0 or not isinstance(value, Tensor):
            continue
        x = value
        if x.base_ is None or any([x is y for y in given]):
            continue
        base = BaseOf.__new__(BaseOf)
        base.place, base.origin, base.given, base.result = place, x.origin, -1, -1
        for i, y in enumerate(given):
            if y is x.base_ or y.base_ is x.base_:
                base.given = i
                break
        for other, whole in zip(slots, found):
            if whole is x.base_:
                base.result = other
        if base.given < 0 and base.result < 0:
            y = x.base_
            if x.grad_node is not None or y.grad_node is not None or (
                    y.storage is not x.storage or not y.packed) or (
                    y.data_pointer != y.storage.data):
                continue
            base.number = numbers.setdefault(id(y), len(numbers))
            base.like, base.offset = like_on_meta(y), x.data_pointer - y.data_pointer
        views.append(base)
    return views


def versions_in(list slots, list found, tuple given):
    """The places and versions of the results that the call wrote to after it had made them."""
    cdef Tensor x, y
    cdef list versions = []
    for place, value in zip(slots, found):
        if place >= 0 and isinstance(value, Tensor):
            x = value
            if x.storage.version > 0 and not any([y.storage is x.storage for y in given]):
                versions.append((place, x.storage.version))
    return versions


def set_versions(list versions, list found):
    """Gives results, or other tensors, the versions that eager calls leave them with."""
    cdef Tensor x
    for place, version in versions:
        x = found[place]
        if x.storage.version != UNTRACKED:
            x.storage.version = version


cdef int note_views(list views, list found, tuple given) except -1:
    """Records which tensor each result is a view of, as the eager call does."""
    cdef Tensor x, other
    cdef BaseOf base
    cdef dict made = {}
    for base in views:
        x = found[base.place]
        if x.base_ is None or x.origin == IN_FUNCTION:      # the node did that for its results
            other = base.found(x, given, found, made)
            if other is not None and other is not x:
                leave_family(x)
                set_base(x, other)
                x.origin = <Origin>base.origin
    return 0


cdef class Dispatcher:
    """A function whose calls are replayed. Subclasses add `_capture`, for calls of a new kind, and
    `_checked`, which compares replays with eager calls."""

    cdef public object _f
    cdef public list _entries             # the last way first
    cdef public bint _eager
    cdef public object _apart           # the function in parts, for calls of no known kind, or None
    cdef public Py_ssize_t _check         # replays between two that are compared; 0: none are
    cdef public Py_ssize_t _replays       # since it last did

    def __call__(self, *args, **kwargs):
        cdef Way way
        cdef tuple tensors
        cdef object function = self._f
        if self._eager or watched and current_layer() is not None or maps_over_batches() or (
                stance == EAGER or differentiating()
                or mode().packing != NULL                          # hooks see each saved value
                or mode().node_flags & TRACED                      # a search each operation
                or makes_meta()):
            return self._f(*args, **kwargs)
        for way in self._entries:
            tensors = way.kind.tensors_of(args, kwargs)
            if tensors is not None and way.conditions.hold() and (
                    way.overlaps is None or way.overlaps.hold(tensors)):
                if self._check and way.replay is not None:
                    self._replays += 1
                    if self._replays >= self._check:
                        self._replays = 0
                        return self._checked(way, tensors, args, kwargs)
                found = UNDONE if way.replay is None else way.run(tensors)
                if found is not UNDONE:
                    return found
                if way.parts is not None:
                    function = way.parts
                break
        else:
            function = self._captured if self._apart is None else self._apart
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            raise from_the_users_line(error)

    def _captured(self, *args, **kwargs):
        if stance == REFUSED_IF_NEW:
            raise RuntimeError(f"compile: {getattr(self._f, '__qualname__', self._f)} would be "
                               "captured for a call of a new kind, under the stance "
                               "'fail_on_recompile'")
        if stance == EAGER_IF_NEW:
            return self._f(*args, **kwargs)
        return self._capture(args, kwargs)


def take_stance(str name):
    """Sets what calls of compiled functions do, by a name of `STANCES`; returns the previous
    one."""
    global stance
    before = next(each for each, number in STANCES.items() if number == stance)
    stance = STANCES[name]
    return before


cdef class Chooser:
    """Calls what `_choice()` of its class returns, without a Python frame in between, which would
    shift the lines of warnings."""

    def __call__(self, *args, **kwargs):
        return self._choice()(*args, **kwargs)
