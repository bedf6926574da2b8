"""`x.storage()`: the memory of a tensor as a row of elements."""

import sys

import tensorlib as tl


def test_it_is_the_memory_that_views_share():
    x = tl.arange(6.0).reshape(2, 3)[1]
    storage = x.storage()
    assert len(storage) == storage.size() == 6 and storage.tolist() == [0, 1, 2, 3, 4, 5]
    assert (storage[1], list(storage)[2], storage.dtype) == (1.0, 2.0, tl.float32)
    assert storage.data_ptr() == x.untyped_storage().data_ptr() and storage.nbytes() == 24
    storage[4] = 9.0
    assert x.tolist() == [3.0, 9.0, 5.0]
    assert not tl.empty(0).storage() and storage.element_size() == 4
    assert sys.getsizeof(tl.ones(1000).storage()) - sys.getsizeof(tl.ones(1).storage()) == 3996
    assert storage.untyped().nbytes() == 24 and "6 elements" in repr(storage)
