"""What records say of operations is so: each fact is seen from outside, on the declared samples.

That what is declared to need elements refuses tensors without memory, and nothing else does, is
seen in `tests/core/test_meta.py`; numbers of multiplications in `tests/reports/test_summary.py`.
"""

import numpy as np
import pytest
from catalogue import for_each

import tensorlib as tl
from tensorlib import ops, program
from tensorlib.ops import registry
from tensorlib.program.optimizing import optimize
from tensorlib.testing.catalogue import call, in_dtype, kinds_taken, samples

OURS = [op for op in registry.values() if "." not in op.name]
WITH_TENSORS = [op for op in OURS if any(sample.arrays for sample in samples(op))]
# What elements are replaced by, to see whether any of them are refused.
PROBES = (-10**6, 10**6, 0, -1, 3, float("nan"), -3.5, 2.5)


def laid_out(sample):
    """The sample with tensors of their own memory, row by row."""
    return sample.tensors().map(lambda place, x: x.clone().contiguous())


def outputs(result):
    return [x for x in (result if isinstance(result, (tuple, list)) else (result,))
            if isinstance(x, tl.Tensor)]


def bits(tensors):
    return [(tuple(x.shape), x.dtype, x.detach().numpy().tobytes()) for x in tensors]


def share(x, y):
    return np.shares_memory(x.detach().numpy(), y.detach().numpy())


@for_each(OURS)
def test_what_is_pure_gives_the_same_bits_again_and_changes_nothing(op):
    """But for numbers that are drawn, which a seed repeats."""
    # nothing of the library may do anything, but for what other processes wait for
    assert op.pure != op.family.startswith("tensorlib.distributed.")
    for sample in samples(op):
        given = laid_out(sample)
        before = bits(given.arrays), [x._version for x in given.arrays]
        found = []
        for _ in range(2):
            tl.manual_seed(7)
            found.append(bits(outputs(call(op, given))))
        assert found[0] == found[1]
        assert (bits(given.arrays), [x._version for x in given.arrays]) == before


@for_each([op for op in OURS if op.random])
def test_what_is_random_goes_on_to_other_numbers(op):
    tl.manual_seed(7)
    before = tl.get_rng_state().tolist()
    for sample in samples(op):
        call(op, laid_out(sample))
    assert tl.get_rng_state().tolist() != before


@for_each([op for op in OURS if not op.random])
def test_what_is_not_random_draws_nothing(op):
    before = tl.get_rng_state().tolist()
    for sample in samples(op):
        call(op, laid_out(sample))
    assert tl.get_rng_state().tolist() == before


@for_each(WITH_TENSORS)
def test_views_share_memory_and_nothing_else_does(op):
    found = []
    for sample in samples(op):
        given = laid_out(sample)
        found += [any(share(x, y) for x in given.arrays) for y in outputs(call(op, given))
                  if y.numel()]
    if op.is_view:
        assert op.may_view and all(found)
    elif not op.may_view:
        assert not any(found)


MAY_VIEW = [op for op in WITH_TENSORS if op.may_view]


@for_each(MAY_VIEW)
def test_what_may_be_a_view_is_one_somewhere(op):
    assert any(share(x, y) for given in map(laid_out, samples(op)) for x in given.arrays
               for y in outputs(call(op, given)) if y.numel())


def refused(op, sample):
    """Whether elements make an operation raise, of whatever dtype it takes."""
    for dtype in ("float64", "int64"):
        if dtype == "int64" and not (op.elementwise and "integer" in kinds_taken(op)):
            continue
        given = laid_out(in_dtype(op, sample, dtype) if dtype == "int64" else sample)
        for place in range(len(given.arrays)):
            for number in PROBES:
                try:
                    call(op, given.map(lambda i, x: probed(x, number) if i == place else x))
                except (IndexError, RuntimeError, ValueError, ArithmeticError):
                    return True
    return False


def probed(x, number):
    """A tensor like x of one number, as near to it as the dtype allows."""
    if x.dtype.name == "bool":
        return x
    if not x.is_floating_point():
        number = -1 if number != number else int(number) if x.itemsize > 2 else int(number) % 100
    return tl.full_like(x, number)


@for_each([op for op in WITH_TENSORS if not op.key])
def test_what_checks_elements_refuses_some_and_nothing_else_does(op):
    assert any(refused(op, sample) for sample in samples(op) if sample.arrays) == op.checks_values


def test_what_has_an_index_expression_checks_the_positions_in_it():
    keyed = [op for op in OURS if op.key]
    assert [op.name for op in keyed] == ["getitem", "spread_index", "put_index",
                                          "add_index"]
    assert all(op.key in op.attributes and op.checks_values for op in keyed)
    with pytest.raises(IndexError):
        tl.ones(3)[tl.tensor([7])]


@for_each(WITH_TENSORS)
def test_sizes_follow_from_elements_where_that_is_declared(op):
    found = False
    for sample in samples(op):
        if not sample.arrays:
            continue
        given = laid_out(sample)
        sizes = set()
        for number in (None, 0, 1, 2):
            try:
                found_here = call(op, given if number is None else given.map(
                    lambda i, x: tl.full_like(x, number)))
            except (IndexError, RuntimeError, ValueError, ArithmeticError):
                continue
            sizes.add(tuple(tuple(x.shape) for x in outputs(found_here)))
        found = found or len(sizes) > 1
    assert found == op.sized_by_values
    assert op.reads_values or not op.sized_by_values


@for_each([op for op in OURS if op.packs])
def test_what_packs_gives_new_matrices_row_by_row(op):
    for sample in samples(op):
        for turned in (False, True):
            given = laid_out(sample).map(
                lambda i, x: x.mT.contiguous().mT if turned and x.ndim > 1 else x)
            for y in outputs(call(op, given)):
                assert y.ndim != 2 and not op.reads_values or y.is_contiguous()
                assert not any(share(x, y) for x in given.arrays)


def test_what_draws_says_by_which_arguments():
    draws = [op for op in OURS if op.draws is not None]
    assert len(draws) == 9
    for op in draws:
        assert op.random and len(set(op.draws)) == len(op.draws)


def test_what_is_whole_is_one_call_of_a_program():
    whole = [op for op in OURS if op.whole]
    assert {op.name for op in whole} == {"multinomial", "poisson", "binomial"}
    captured = program.trace(lambda x: tl.multinomial(x, 2), tl.ones(4))
    assert [c.type for c in captured.block.ops] == ["multinomial"]


# ---- what is not known ---------------------------------------------------------------------------

def declared(**facts):
    """An operation that is declared outside of the library, under a name of its own."""
    def function(input: tl.Tensor):
        """One more than each element."""
        return input + 1
    function.__name__ = "_".join(["one_more", *facts])
    return ops.op(differentiable=False, **facts)(function)


def test_nothing_is_known_of_what_is_declared_outside():
    op = declared().op
    assert not op.pure and op.reads_values and op.checks_values and op.sized_by_values
    assert op.family == __name__


@pytest.mark.parametrize("facts, kept", [({}, 3), ({"pure": True}, 2),
                                         ({"pure": True, "checks_values": False}, 1)])
def test_programs_keep_all_calls_of_what_may_do_anything(facts, kept):
    """Of a call that is done twice, and another that nobody reads, two can be spared."""
    function = declared(**facts)

    def twice(x):
        function(x * 2)
        return function(x) + function(x)

    captured = optimize(program.trace(twice, tl.ones(2)))
    assert [c.type for c in captured.block.ops].count(function.op.name) == kept


def test_a_call_that_checks_elements_is_kept_though_nobody_reads_it():
    def looked_up(x, i):
        x[i]
        tl.gather(x, 0, i)
        return x * 2

    replayed = tl.compile(looked_up)
    x, i = tl.ones(3), tl.tensor([0, 2])
    assert replayed(x, i).tolist() == replayed(x, i).tolist() == [2, 2, 2]
    for bad in (tl.tensor([0, 7]), tl.tensor([-9, 0])):
        with pytest.raises(IndexError):
            looked_up(x, bad)
        with pytest.raises(IndexError):
            replayed(x, bad)


@for_each([op for op in OURS if op.affine])
def test_what_is_affine_is_halfway_where_an_argument_is(op):
    for sample in samples(op):
        for k in range(len(sample.arrays)):
            whole, half, none = (
                call(op, sample.tensors().map(lambda place, x, factor=factor, k=k: x.double() * (
                    factor if place == k else 1)))
                for factor in (1, 0.5, 0))
            assert tl.allclose(half, (whole + none) / 2)
