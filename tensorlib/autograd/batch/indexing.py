"""Batching rules of indexing: one key read or written in every example.

A key has a basic part (ints, slices, None, ...), which gives a view of the whole batch, and
positions and masks that index this view. Positions that differ between examples are combined with
the number of the example; a mask that differs can only be used for writing.
"""

from tensorlib._core.index.batch_keys import lifted
from tensorlib._core.index.keys import Index
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.batch.rules import in_one, results_of
from tensorlib.autograd.batch.values import (
    SHARED_WRITE,
    Batched,
    aligned,
    innermost,
    is_at,
    batch_of,
    batched,
    batched_call,
)
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations

arange = FUNCTIONS["arange"]
tensor, where = FUNCTIONS["tensor"], FUNCTIONS["where"]
BOOL = FUNCTIONS["ones"](()).bool().dtype
WHOLE = slice(None)
NO_FIXED_SHAPE = ("vmap: masks that differ between examples, and masks together with positions "
                  "that do, have results of no fixed shape; use where")


@batched_call(operations.nonzero, operations.unique, operations.unique_consecutive)
def refused(op, level, *args, **options):
    """Raises: the result would have another shape for each example."""
    raise RuntimeError(f"{op.name}: vmap: the shape of the result would differ between the "
                       "examples of a batch; use where and masks")


@batched_call(operations.bincount, operations.histc, operations.histogram)
def one_by_one(op, level, *args, **options):
    """On each example in turn. Raises if the results have different shapes."""
    results = results_of(op.function, level, args, options)
    shapes = {tuple(part.shape for part in (found if isinstance(found, tuple) else (found,)))
              for found in results}
    if len(shapes) != 1:
        refused(op, level)
    return in_one(results)


@batched(operations.getitem, anywhere=True)
def indexed(op, level, tensors, attributes):
    """The elements that a key picks: as it is written, or parsed for one example."""
    x, key = tensors[0], attributes["index"]
    if isinstance(key, Index):
        return op.function(x.value, lifted(key))
    return BatchedIndex("getitem", level, x, key).taken()


class BatchedIndex:
    """What a key selects in a batch: `value[picks]`, whose dims are then moved.

    value: a view of the batch, by the basic part of the key. picks: the rest, or None. source,
    target: the dims of `value[picks]` that are elsewhere in the batch of results. ndim: the dims of
    the result of an example.
    """

    def __init__(self, name, level, x, key):
        self.source, self.target = (), ()
        basic, picks = parted(key if isinstance(key, tuple) else (key,), x.ndim)
        own = is_at(x, level)
        self.value = x.value[(WHOLE, *basic)] if own else x[basic]
        self.picks, self.ndim = None, self.value.ndim - own
        if not picks:
            return
        if not own:
            self.value = self.value.unsqueeze(0)    # the one example that all positions read
        rank = max(1 if pick.dtype is BOOL else pick.ndim for _, pick in picks)
        first, last = picks[0][0], picks[-1][0] + width(picks[-1][1])
        used = sum(width(pick) for _, pick in picks)
        self.ndim += rank - used
        full = [WHOLE] * (1 + last)
        if innermost((key,)) is level:
            count = level.size if own else 1
            full[0] = arange(count).reshape((-1,) + (1,) * rank)
            for place, pick in picks:
                if pick.dtype is BOOL:
                    raise RuntimeError(f"{name}: {NO_FIXED_SHAPE}")
                full[1 + place] = aligned(pick, rank) if is_at(pick, level) else pick
            if last - first == used and first:      # the picked dims come first: move them back
                self.source = tuple(range(1, 1 + rank))
                self.target = tuple(range(1 + first, 1 + first + rank))
        else:
            for place, pick in reversed(picks):
                full[1 + place:1 + place + width(pick)] = [pick]
            if last - first != used:                # the picked dims come first, before the batch
                self.source, self.target = (rank,), (0,)
        self.picks = tuple(full)

    def taken(self):
        """The selected elements."""
        if self.picks is None:
            return self.value
        return self.value[self.picks].movedim(self.source, self.target)

    def put(self, level, values):
        """Writes `values`, a number or a tensor that broadcasts, to the selection."""
        if isinstance(values, Tensor) and values.ndim:
            for _ in range(self.ndim - values.ndim):
                values = values.unsqueeze(0)
            values = batch_of(values, level).movedim(self.target, self.source)
        elif is_at(values, level):
            values = aligned(values, self.ndim).movedim(self.target, self.source)
        self.value[self.picks] = values


def parted(key, ndim):
    """The basic part of a key, and its positions and masks with the dim each begins at after it."""
    parts = [pick_of(part) for part in key]
    used = sum(width(part) for part in parts if part is not None and part is not Ellipsis)
    basic, picks, place = [], [], 0
    for part in parts:
        if isinstance(part, Tensor):
            picks.append((place, part))
            basic += [WHOLE] * width(part)
            place += width(part)
        else:
            place += (ndim - used if part is Ellipsis and Ellipsis not in basic else
                      part is None or isinstance(part, slice))
            basic.append(part)
    return tuple(basic), picks


def pick_of(part):
    """A part of a key; lists, bools and arrays become Tensors."""
    if isinstance(part, list) and not part:
        return Tensor(part).long()
    return tensor(part) if isinstance(part, (list, bool)) or hasattr(part, "dtype") and (
        not isinstance(part, Tensor)) else part


def width(part):
    """How many dims a part of a key indexes."""
    return part.ndim if isinstance(part, Tensor) and part.dtype is BOOL else 1


# ---- writing -------------------------------------------------------------------------------------

def written(x, key, values):
    """x[key] = values for each example; `values` is a number or a tensor."""
    level = innermost((x, key, values))
    if level is not x.level:
        raise RuntimeError(f"setitem: vmap: {SHARED_WRITE}")
    if not isinstance(values, (Tensor, int, float, complex)):
        values = tensor(values, dtype=x.dtype)
    basic, picks = parted(key if isinstance(key, tuple) else (key,), x.ndim)
    if not picks:
        x[key].copy_(values)
    elif any(is_at(pick, level) and pick.dtype is BOOL for _, pick in picks):
        write_where(x[basic], picks, values)
    else:
        BatchedIndex("setitem", level, x, key).put(level, values)


def write_where(view, picks, values):
    """Writes where a mask holds that differs between examples: the same values at every place."""
    (place, mask), *others = picks
    rest = view.ndim - place - mask.ndim
    if others or isinstance(values, Tensor) and values.ndim > rest:
        raise RuntimeError(f"setitem: {NO_FIXED_SHAPE}")
    sizes = tuple(view.shape)[place:place + mask.ndim]
    if tuple(mask.shape) != sizes:
        raise IndexError(f"setitem: a mask of shape {tuple(mask.shape)} does not match the indexed "
                         f"dims, of sizes {sizes}")
    for _ in range(rest):
        mask = mask.unsqueeze(-1)
    view.copy_(where(mask, values, view))


Batched.__setitem__ = written
Batched.__getitem__ = lambda self, key: Batched.__tensor_call__(operations.getitem, (self, key), {})
