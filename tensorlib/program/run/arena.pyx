"""Memory planning: which values of a planned program share a place in the arena.

An element-wise step writes over an operand that is not read afterwards. Results of the program get
new memory in each run, which holds other values until the result is written. All other values are
in one arena, where values with disjoint lifetimes share a place.
"""

from cpython.object cimport PyObject

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.tensor.tensor cimport Tensor, same_shape
from tensorlib.program.run.steps cimport ARENA, CALLED, HOSTED, LOOP, NEW, PROGRAM, Root, Step

cdef enum:
    LARGE = 4096             # bytes: smaller values are placed one by one, and host no others


# ---- values in place of their operands -----------------------------------------------------------

cdef int reuse(list steps, dict root_of) except -1:
    """Makes each element-wise step write over an operand that is not read afterwards, if there is
    one."""
    cdef Step step
    cdef Root out, root
    cdef Py_ssize_t i
    for i, step in enumerate(steps):
        if step.kind != LOOP and step.kind != PROGRAM or not step.out.packed:
            continue
        out = root_of[<size_t><PyObject*>step.out.storage]
        if out.first != i or out.meta.nbytes < LARGE or out.source != ARENA and out.source != NEW:
            continue
        root = operand_of(step, out, i, root_of)
        if root is not None:
            root.take_over(out)
            root_of[<size_t><PyObject*>out.meta] = root
    return 0


cdef Root operand_of(Step step, Root out, Py_ssize_t i, dict root_of):
    """The newest operand that a step may write over, or None."""
    cdef Root found = None, root
    cdef Tensor x
    for x in step.tensors:
        root = root_of.get(<size_t><PyObject*>x.storage)
        if root is None or root.last != i or root.source != ARENA and root.source != CALLED:
            continue
        if root.meta.nbytes == out.meta.nbytes and all_lie_as(step.out, x, step.tensors) and (
                found is None or root.first > found.first):
            found = root
    return found


cdef bint all_lie_as(Tensor out, Tensor x, list tensors) except -1:
    """Whether all operands in the memory of `x` have its elements where `out` will have them."""
    cdef Tensor y
    for y in tensors:
        if y.storage is x.storage and not (
                y.packed and y.type == out.type and same_shape(y, out)
                and y.data_pointer == y.storage.data and out.data_pointer == out.storage.data):
            return False
    return True


# ---- places --------------------------------------------------------------------------------------

cdef inline Py_ssize_t size_of(Root root) noexcept:
    """The bytes that a value takes, in whole cache lines."""
    return max((root.meta.nbytes + LINE - 1) // LINE * LINE, <Py_ssize_t>LINE)


cdef tuple arrange(list roots):
    """The bytes of the arena, and those it would take if no values shared a place.

    Large values are placed first, the largest one first: in the memory of a program's result, if
    they are last read before that is written, or else in the first gap of the arena. Small ones
    follow.
    """
    cdef list hosts = [], large = [], small = [], placed = []
    cdef Root root, host
    cdef Py_ssize_t total = 0, unshared = 0
    for root in roots:
        if root.source == NEW:
            root.opens = root.first
            if root.meta.nbytes >= LARGE:
                root.guests = []
                hosts.append(root)
        elif root.source == ARENA:
            unshared += size_of(root)
            (large if root.meta.nbytes >= LARGE else small).append(root)
    hosts.sort(key=first_of)
    large.sort(key=by_size)
    for root in large:
        host = host_of(root, hosts)
        if host is not None:
            root.source = HOSTED
            host.opens = min(host.opens, root.first)
        else:
            put_in(placed, root, -1)
    for root in large:
        total = max(total, end_of(root))
    return arrange_small(small, total), unshared


cdef Py_ssize_t arrange_small(list small, Py_ssize_t end) except -1:
    """Puts small values after `end`, each in a place of its size that is free by then, or in a new
    one. Returns where the last place ends.

    No value is compared with all others, as a loop of a thousand steps keeps as many.
    """
    cdef list free = [[] for _ in range(LARGE // LINE + 1)], over = sorted(small, key=last_of)
    cdef Py_ssize_t i = 0, lines
    cdef Root root, other
    for root in sorted(small, key=first_of):
        while (<Root>over[i]).last < root.first:
            other = <Root>over[i]
            (<list>free[size_of(other) // LINE]).append(other.place)
            i += 1
        lines = size_of(root) // LINE
        if free[lines]:
            root.place = (<list>free[lines]).pop()
        else:
            root.place = end
            end += size_of(root)
    return end


def last_of(Root root):
    return root.last


def first_of(Root root):
    return root.first


def by_size(Root root):
    return -root.meta.nbytes, -root.last


cdef Py_ssize_t end_of(Root root) noexcept:
    """Where the place of a value in the arena ends."""
    return root.place + size_of(root) if root.source == ARENA else 0


cdef Root host_of(Root root, list hosts):
    """The first result that is written after the last read of a value and has room for it, which is
    taken; or None."""
    cdef Root host
    for host in hosts:
        if host.first > root.last and put_in(host.guests, root, size_of(host)) >= 0:
            return host
    return None


cdef Py_ssize_t put_in(list placed, Root root, Py_ssize_t room) except -2:
    """Puts a value in the first gap among values with overlapping lifetimes; returns its place.

    -1 where it would end after `room` bytes, if that is not negative.
    """
    cdef Root other
    cdef Py_ssize_t i, place = 0, size = size_of(root)
    for other in placed:
        if other.last < root.first or other.first > root.last:
            continue
        if place + size <= other.place:
            break
        place = max(place, other.place + size_of(other))
    if room >= 0 and place + size > room:
        return -1
    root.place = place
    for i, other in enumerate(placed):
        if other.place >= place:
            placed.insert(i, root)
            return place
    placed.append(root)
    return place


# ---- views of inputs -----------------------------------------------------------------------------

cdef dict numbered(list roots, list fed_roots):
    """For the address of each root the index of its first input; negative for other roots."""
    cdef Py_ssize_t i
    cdef dict found = {id(root): -1 - i for i, root in enumerate(roots)}
    for i in range(len(fed_roots) - 1, -1, -1):
        found[id(fed_roots[i])] = i
    return found


cdef tuple place_of(Tensor x, Py_ssize_t number, list fed):
    """The index of the input whose memory an output shares, negative for other memory; its offset
    from that in bytes, and its strides. For use before memory is planned."""
    cdef char* start = x.storage.data if number < 0 else (<Tensor>fed[number]).data_pointer
    return number, x.data_pointer - start, [x.steps[d] for d in range(x.ndim_)]


cdef list reaches(list fed, list fed_roots):
    """The inputs beyond which a view reaches: their indices, and how many bytes after them the
    views begin and end."""
    cdef Py_ssize_t i, low, high, first, last
    cdef Tensor x, y
    cdef list found = []
    for i in range(len(fed)):
        x = fed[i]
        low, high = extent(x)
        first, last = low, high
        for y in (<Root>fed_roots[i]).members:
            if y.numel_:                  # an empty view may begin anywhere
                first = min(first, extent(y)[0] + (y.data_pointer - x.data_pointer))
                last = max(last, extent(y)[1] + (y.data_pointer - x.data_pointer))
        if first < low or last > high:
            found.append((i, first, last))
    return found


cdef bint has_room(list beyond, tuple given) except -1:
    """Whether the memory of the inputs reaches as far as the views of them."""
    cdef Py_ssize_t i, first, last
    cdef Tensor x
    for i, first, last in beyond:
        x = <Tensor>given[i]
        if x.data_pointer + first < x.storage.data or (
                x.data_pointer + last > x.storage.data + x.storage.nbytes):
            return False
    return True


cpdef bint do_meet(Tensor x, Tensor y) except -1:
    """Whether elements of two tensors over one memory may be the same: their ranges overlap."""
    x_low, x_high = extent(x)
    y_low, y_high = extent(y)
    return (x.data_pointer + <Py_ssize_t>x_low < y.data_pointer + <Py_ssize_t>y_high
            and y.data_pointer + <Py_ssize_t>y_low < x.data_pointer + <Py_ssize_t>x_high)


cdef tuple extent(Tensor x):
    """How many bytes before and after its first element the elements of a tensor reach."""
    cdef Py_ssize_t low = 0, high = ITEMSIZE[x.type]
    cdef int d
    if x.numel_ == 0:
        return 0, 0
    for d in range(x.ndim_):
        if x.steps[d] < 0:
            low += (x.dims[d] - 1) * x.steps[d] * ITEMSIZE[x.type]
        else:
            high += (x.dims[d] - 1) * x.steps[d] * ITEMSIZE[x.type]
    return low, high
