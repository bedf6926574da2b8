"""Packed and padded sequences: their dtypes, their ways back and what they refuse."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn.utils import rnn
from tensorlib.nn.utils.rnn import PackedSequence

SEQUENCES = [tl.tensor([[1.75], [2.75]]), tl.tensor([[-2.0], [3.0], [4.5]])]


def packed():
    return rnn.pack_sequence(SEQUENCES, enforce_sorted=False)


@each("change, dtype, numbers", [
    ("double", tl.float64, [-2, 1.75, 3, 2.75, 4.5]),
    ("float", tl.float32, [-2, 1.75, 3, 2.75, 4.5]), ("half", tl.float16, [-2, 1.75, 3, 2.75, 4.5]),
    ("long", tl.int64, [-2, 1, 3, 2, 4]), ("int", tl.int32, [-2, 1, 3, 2, 4]),
    ("short", tl.int16, [-2, 1, 3, 2, 4]), ("char", tl.int8, [-2, 1, 3, 2, 4]),
    ("byte", tl.uint8, [254, 1, 3, 2, 4])])
def test_other_dtypes(change, dtype, numbers):
    """The data alone changes, and where it has the dtype nothing is made anew."""
    first = packed()
    for found in (getattr(first, change)(), first.to(dtype), first.to(dtype=dtype),
                  first.to(tl.ones(1).to(dtype))):
        assert type(found) is PackedSequence and found.data.dtype == dtype
        assert found.data.flatten().tolist() == numbers
        assert all(kept is given for kept, given in zip(found[1:], first[1:]))
        assert (found is first) == (dtype == tl.float32)
        assert getattr(found, change)() is found


def test_a_packed_sequence_is_on_no_other_device():
    first = packed()
    assert first.cpu() is first and first.pin_memory() is first and first.to("cpu") is first
    assert first.is_cuda is False and first.is_pinned() is False


def test_the_parts_may_be_given_as_a_pair():
    data, sizes = tl.ones(3), tl.tensor([2, 1])
    for given in ((data, sizes), [data, sizes]):
        found = PackedSequence(given)
        assert found.data is data and found.batch_sizes is sizes and found[2:] == (None, None)
    found = PackedSequence(data, sizes, tl.tensor([1, 2, 0]))
    assert found.unsorted_indices.tolist() == [2, 0, 1]
    assert PackedSequence(data, sizes, tl.tensor([1, 0]), data).unsorted_indices is data
    for given, kind in ((data, "Tensor"), ([data], "list"), ((data, sizes, None), "tuple")):
        with pytest.raises(AssertionError, match=f"data is the pair .* got {kind}$"):
            PackedSequence(given)


@pytest.mark.parametrize("batch_first", [False, True])
def test_there_and_back(batch_first):
    padded = rnn.pad_sequence(SEQUENCES, batch_first, padding_value=9.0)
    first = rnn.pack_padded_sequence(padded, [2, 3], batch_first, enforce_sorted=False)
    assert first.data.flatten().tolist() == [-2, 1.75, 3, 2.75, 4.5]
    assert first.batch_sizes.tolist() == [2, 2, 1] and first.sorted_indices.tolist() == [1, 0]
    again, lengths = rnn.pad_packed_sequence(first, batch_first, padding_value=9.0)
    assert again.equal(padded) and lengths.tolist() == [2, 3]
    longer, lengths = rnn.pad_packed_sequence(first, batch_first, 9.0, total_length=5)
    by_row = longer if batch_first else longer.transpose(0, 1)
    assert by_row[..., 0].tolist() == [[1.75, 2.75, 9, 9, 9], [-2, 3, 4.5, 9, 9]]
    assert lengths.tolist() == [2, 3]
    assert rnn.pad_packed_sequence(first, batch_first, 9.0, total_length=3)[0].equal(padded)
    for found in (rnn.unpack_sequence(first), rnn.unpad_sequence(padded, [2, 3], batch_first)):
        assert all(row.equal(wanted) for row, wanted in zip(found, SEQUENCES, strict=True))


def test_padding_on_either_side():
    rows = [tl.tensor([1, 2]), tl.tensor([3])]
    assert rnn.pad_sequence(rows, True, 7, "left").tolist() == [[1, 2], [7, 3]]
    assert rnn.pad_sequence(rows, True, 7, "right").tolist() == [[1, 2], [3, 7]]
    assert rnn.pad_sequence(rows, padding_value=7, padding_side="left").tolist() == [[1, 7], [2, 3]]
    assert rnn.pad_sequence(iter(rows)).tolist() == [[1, 3], [2, 0]]


@each("act, error, text", [
    (lambda: rnn.pack_padded_sequence(tl.ones(3), [1]), RuntimeError, "2 dims or more, got 1$"),
    (lambda: rnn.pack_padded_sequence(tl.ones(3, 2), [3]), RuntimeError,
     r"to be equal to batch_size, but got 1 \(batch_size=2\)$"),
    (lambda: rnn.pack_padded_sequence(tl.ones(2, 3), [2, 2, 2], True), RuntimeError,
     r"but got 3 \(batch_size=2\)$"),
    (lambda: rnn.pack_padded_sequence(tl.ones(3, 2), [[3, 2]]), RuntimeError, "batch_size, but"),
    (lambda: rnn.pack_padded_sequence(tl.ones(3, 0), []), RuntimeError,
     "cannot pack a batch without sequences$"),
    (lambda: rnn.pack_padded_sequence(tl.ones(3, 2), [3, 0]), RuntimeError,
     "an element in 'lengths' that is <= 0$"),
    (lambda: rnn.pack_padded_sequence(tl.ones(3, 2), [4, 2]), RuntimeError,
     "a length of 4 is more than the 3 steps of the input$"),
    (lambda: rnn.pack_padded_sequence(tl.ones(3, 2), [1, 2]), RuntimeError,
     "must be sorted in decreasing order when `enforce_sorted` is True"),
    (lambda: rnn.pack_sequence(SEQUENCES), RuntimeError, "must be sorted in decreasing order"),
    (lambda: rnn.pad_packed_sequence(packed(), total_length=2), ValueError,
     "got total_length=2 and max sequence length being 3$"),
    (lambda: rnn.pad_packed_sequence(packed()[:2]), TypeError, "a PackedSequence, not tuple$"),
    (lambda: rnn.pad_sequence(SEQUENCES, padding_side="up"), RuntimeError,
     "to be one of left or right, but got up.$"),
    (lambda: rnn.pad_sequence(3), RuntimeError, "^pad_sequence: Expected iterable.*'int'>$"),
    (lambda: rnn.pad_sequence([]), RuntimeError, "received an empty list of sequences$"),
    (lambda: rnn.unpad_sequence(tl.ones(3, 2), [1]), RuntimeError, "1 lengths for 2 sequences$"),
    (lambda: rnn.unpad_sequence(tl.ones(3, 2), [1, 1], True), RuntimeError, "2 lengths for 3"),
])
def test_what_is_refused(act, error, text):
    with pytest.raises(error, match=text):
        act()


def test_the_least_that_is_taken():
    found = rnn.pack_padded_sequence(tl.ones(1, 1), [1])
    assert found.data.tolist() == [1] and found.batch_sizes.tolist() == [1]
    same = rnn.pack_padded_sequence(tl.arange(4).reshape(2, 2), [2, 2])
    assert same.data.tolist() == [0, 1, 2, 3] and same.sorted_indices is None
