"""Code that runs in the middle of an operation, or sequences that say what they are not.

Before Python 3.12 any allocation may collect garbage, and a finalizer that runs then may do
anything to the tensors of the operation.
"""

import gc

import pytest
from cases import each

import tensorlib as tl
from tensorlib.autograd.graph import GradientEdge
from tensorlib.testing import assert_close

N_KEPT = 65_536        # objects of a type that are kept for reuse: further ones are allocated


def results(n):
    """As many tensors, and nodes, none of them one that was kept."""
    return [tl.ones(1, requires_grad=True) * 2 for _ in range(n)]


@pytest.fixture(scope="module", autouse=True)
def _none_are_kept():
    held = results(N_KEPT)
    yield
    held.clear()


class Collecting:
    """Within it every allocation collects, and the first collection after `skip` calls `act`."""

    def __init__(self, act, skip=0):
        self.act, self.skip = act, skip

    def __enter__(self):
        self.held = results(1000)
        self.before = gc.get_threshold()
        gc.callbacks.append(self.collected)
        gc.set_threshold(1, 1, 1)

    def __exit__(self, *error):
        gc.set_threshold(*self.before)
        gc.callbacks.remove(self.collected)

    def collected(self, phase, info):
        self.skip -= phase == "start"
        if self.act is not None and self.skip < 0:
            act, self.act = self.act, None
            act()


CALLS = {
    "product": lambda x: x @ x,
    "large product": lambda x: x.repeat(4, 4) @ x.repeat(4, 4),
    "add": lambda x: x + x,
    "add a number": lambda x: x + 1.0,
    "clamp": lambda x: x.clamp(x, x),
    "broadcast": lambda x: x + x[0],
    "sum": lambda x: x.sum(0),
    "max": lambda x: x.max(1).values,
    "softmax": lambda x: x.softmax(1) * 16,
    "cumsum": lambda x: x.cumsum(0)[-1],
    "gather": lambda x: x.gather(0, tl.zeros(16, 16, dtype=tl.int64)),
    "index": lambda x: x[[3, 4]],
    "mask": lambda x: x[x > 0],
    "cat": lambda x: tl.cat([x, x.T]),
    "stack": lambda x: tl.stack([x, x]),
    "where": lambda x: tl.where(x > 0, x, 1.0),
    "cast": lambda x: x.double(),
    "clone": lambda x: x.T.clone(),
}


@pytest.mark.parametrize("run", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("other", [lambda: tl.full((1, 1), 7.0), lambda: tl.full((), 7.0)],
                         ids=["(1, 1)", "()"])
def test_a_collection_may_give_the_operand_other_memory(run, other):
    """The result is of the old elements or of the new ones, or the call is refused.

    Of `where` the mask may be the old one, and of the new size what it chooses from.
    """
    def outcome(x):
        try:
            return run(x)
        except (RuntimeError, IndexError):
            return None

    def act():
        x.data = other()
        tl.memory.empty_cache()

    x = tl.ones(16, 16)
    before, after = outcome(x), outcome(other())
    with Collecting(act):
        found = outcome(x)
    mixed = tl.full((16, 16), 7.0) if run is CALLS["where"] else None
    assert found is None or any(tl.equal(found, one) for one in (before, after, mixed)
                                if one is not None)


@pytest.mark.parametrize("read, expected", [
    (tl.Tensor.tolist, [[1.0] * 4] * 100), (lambda x: x.shape, (100, 4)),
    (tl.Tensor.stride, (4, 1))])
@pytest.mark.parametrize("other", [lambda: tl.zeros(()), lambda: tl.zeros((1,) * 40)])
def test_what_is_read_into_lists_is_of_one_state(read, expected, other):
    """Each list or tuple may be what starts a collection; of lists 80 are kept for reuse.

    So are 2,000 pairs, which do not start one: all of them are in use here, and none comes back
    from what other tests left to be collected.
    """
    gc.collect()
    acted, pairs = [], [(x, x) for x in range(2001)]
    for skip in range(20):
        x = tl.ones(100, 4)

        def act():
            x.data = other()
            tl.memory.empty_cache()
            acted.append(skip)

        with Collecting(act, skip):
            found = read(x)
        assert found in (expected, read(x))
    assert acted and len(pairs) == 2001


def test_an_operation_collects_nothing_itself():
    seen = []
    x = tl.ones(4, 4)
    with Collecting(lambda: seen.append("collected")):
        seen.append("begins")
        for _ in range(100):
            y = x + x
        n = len(seen)
    assert y.sum().item() == 32 and n <= 2


# ---- sequences that claim another length ---------------------------------------------------------

class Longer(list):
    def __len__(self):
        return 2**40


class LongIterator:
    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration

    def __length_hint__(self):
        return 2**50


class Endless:
    def __iter__(self):
        while True:
            yield 1


@pytest.mark.parametrize("make", [Longer, lambda items: (x for x in items)])
def test_sequences_are_what_they_hold(make):
    x = tl.ones(2, 3)
    assert tl.cat(make([x, x])).shape == (4, 3)
    assert tl.stack(make([x])).shape == (1, 2, 3)
    assert tl.zeros(make([2, 3])).shape == x.reshape(make([2, 3])).shape == (2, 3)
    assert x.permute(make([1, 0])).shape == (3, 2)
    assert x.tile(make([2, 1])).shape == (4, 3) and x.repeat(make([2, 1])).shape == (4, 3)
    assert x.unflatten(1, make([3, 1])).shape == (2, 3, 1)
    if make is Longer:
        assert x.sum(make([0, 1])).item() == 6 and x.flip(make([0])).shape == (2, 3)
    y = tl.ones(2, requires_grad=True)
    tl.autograd.backward([y.sum()], make([tl.ones(())]))
    assert tl.autograd.grad(make([y.sum()]), make([y]))[0].tolist() == y.grad.tolist() == [1, 1]


def test_a_length_is_not_believed():
    with pytest.raises(ValueError, match="non-empty"):
        tl.cat(LongIterator())
    for data in (Longer([1, 2]), [Longer([1]), Longer([2])]):
        with pytest.raises(ValueError, match="tensor: the sequence changed"):
            tl.tensor(data)
    assert tl.zeros(LongIterator()).shape == ()
    for call in (lambda: tl.zeros(Endless()), lambda: tl.ones(2).reshape(Endless()),
                 lambda: tl.ones(2).permute(Endless()), lambda: tl.ones(2).expand(Endless())):
        with pytest.raises(RuntimeError, match="dim"):
            call()


@each("name", ["cat", "stack", "concat", "concatenate"])
@each("rows", [2**31, 2**59])
def test_a_tensor_of_too_many_rows_is_no_sequence(name, rows):
    with pytest.raises(tl.OutOfMemoryError, match="tensors"):
        getattr(tl, name)(tl.ones(1).expand(rows))


@pytest.mark.parametrize("call", [
    lambda: tl.ones(1).expand(2**59).chunk(2**50),
    lambda: tl.ones(1).expand(2**59).split(2**10),
    lambda: tl.ones(1).expand(2**59).unbind(),
    lambda: tl.multinomial(tl.ones(1).expand(2**40), 2),
    lambda: tl.multinomial(tl.ones(1, 1).expand(2**40, 2), 2),
    lambda: tl.multinomial(tl.ones(4), 2**62, replacement=True),
])
def test_sizes_beyond_memory_name_the_operation(call):
    with pytest.raises(tl.OutOfMemoryError, match="^(chunk|split|unbind|multinomial): "):
        call()


def test_samples_are_counted_by_an_int():
    for n in (2.5, "a", None):
        with pytest.raises(TypeError, match="multinomial: num_samples"):
            tl.multinomial(tl.ones(4), n)


# ---- converted before it is looked at ------------------------------------------------------------

class Index:
    """A dim that does something to a tensor when it is asked for."""

    def __init__(self, dim, act):
        self.dim, self.act = dim, act

    def __index__(self):
        self.act()
        return self.dim


@pytest.mark.parametrize("call", [
    lambda x, n: x.flip((0, n)), lambda x, n: x.roll((1, 1), (0, n)),
    lambda x, n: x.roll((1, n), (0, 1)), lambda x, n: x.permute(0, n)])
def test_all_dims_are_converted_before_the_first_is_used(call):
    def drop():
        x.data = tl.arange(4.0)

    x = tl.arange(6.0).reshape(2, 3)
    try:
        call(x, Index(1, drop))
    except (IndexError, RuntimeError) as error:
        assert "[-1, 0]" in str(error) or "dimension" in str(error)      # of the tensor of now
    else:
        pytest.fail("one dim was wrapped by the sizes of before")


@pytest.mark.parametrize("node", [None, 3, "abc"])
def test_the_node_of_an_edge_is_a_node(node):
    y = tl.ones(2, requires_grad=True).sum()
    with pytest.raises(TypeError, match="grad: the node of a GradientEdge"):
        tl.autograd.grad(y, GradientEdge(node, 0))


def test_the_output_of_an_edge_is_the_number_that_is_checked():
    class Lying(int):
        def __ge__(self, other): return True
        def __lt__(self, other): return True
        def __le__(self, other): return True

    y = tl.ones(2, requires_grad=True).sum()
    for far in (Lying(10**6), Lying(-1)):
        with pytest.raises(RuntimeError, match="names output"):
            tl.autograd.grad(y, GradientEdge(y.grad_fn, far))


# ---- what is not a tensor ------------------------------------------------------------------------

PYTHONS_OWN = {"__class__", "__getattribute__", "__init_subclass__", "__subclasshook__", "__new__",
               "__array_ufunc__", "__dir__", "__getstate__", "__sizeof__", "__str__",
               "_repr_html_"}       # the last is for notebooks, which show any error


@each("name", [
    name for name in dir(tl.Tensor)
    if callable(getattr(tl.Tensor, name)) and name not in PYTHONS_OWN])
def test_a_method_says_that_its_self_is_no_tensor(name):
    method = getattr(tl.Tensor, name)
    for wrong in ("abc", None, slice(None)):
        for more in ((), (1,), (tl.ones(2),), (tl.float32,)):
            with pytest.raises((TypeError, ValueError, RuntimeError)):
                method(wrong, *more)                    # an AttributeError says nothing


def test_a_method_that_is_no_operation_names_itself():
    for call, name in ((lambda: tl.Tensor.dot(slice(None), tl.ones(2)), "dot"),
                       (lambda: tl.Tensor.dot(self=3, other=tl.ones(2)), "dot"),
                       (lambda: tl.ops.registry["to"](-2), "to"),
                       (lambda: tl.Tensor.to("a", tl.float32), "to"),
                       (lambda: tl.Tensor.split("a", 2), "split"),
                       (lambda: tl.Tensor.backward(None), "backward"),
                       (lambda: tl.Tensor.register_hook(2, print), "register_hook")):
        with pytest.raises(TypeError, match=f"^{name}: .* must be a Tensor"):
            call()


# ---- found once, and to stay away ----------------------------------------------------------------

@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[1e300, 1e-300], [5e-324, 1e308], [1e-310], [-1e300, 1e-300]])
def test_numbers_far_apart_are_printed_without_a_warning(values):
    assert "e" in repr(tl.tensor(values, dtype=tl.float64))


def test_lists_that_hold_themselves():
    held = [1.0]
    held.append(held)
    with pytest.raises(ValueError, match="hold themselves"):
        assert_close(held, held)
    x = tl.ones(2, requires_grad=True)
    checkpoint = tl.utils.checkpoint.checkpoint
    found = checkpoint(lambda x, held: x * held[0], x, held, use_reentrant=False)
    assert found.tolist() == [1, 1]


@pytest.mark.parametrize("far", [-2**63, 2**63 - 1, 4, -5])
def test_positions_at_the_ends_of_int64_are_refused(far):
    x = tl.arange(4.0)
    for call in (lambda: x[tl.tensor([far, 0])], lambda: x.gather(0, tl.tensor([far])),
                 lambda: x.index_select(0, tl.tensor([0, far])), lambda: x[[far]]):
        with pytest.raises(IndexError):
            call()
