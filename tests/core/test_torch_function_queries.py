"""What is not an operation goes to `__torch_function__` of a subclass, too, as in PyTorch."""

import copy

import pytest
from cases import each

import tensorlib as tl

try:
    import torch
except ImportError:
    torch = None

LIBRARIES = [tl] if torch is None else [tl, torch]


def asked(t):
    """A subclass of Tensor of library `t`, with the functions that it was given."""
    seen = []

    class Asked(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, kwargs or {}))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Asked, seen


ALIKE = "zeros_like ones_like empty_like rand_like randn_like".split()
NEW = "new_zeros new_ones new_empty".split()
QUERIES = """size numel dim tolist stride is_contiguous storage_offset element_size data_ptr numpy
    requires_grad_ zero_ uniform_ normal_ random_ bernoulli_ float double cpu __len__
    __repr__""".split()
PROPERTIES = """shape dtype device ndim layout grad requires_grad is_leaf grad_fn data T mT real
    is_sparse is_cuda _version itemsize nbytes""".split()


def test_a_tensor_like_one_of_a_subclass_is_made_by_it():
    for t in LIBRARIES:
        kind, seen = asked(t)
        x = t.ones(2, 3).as_subclass(kind)
        for name in ALIKE:
            seen.clear()
            made = getattr(t, name)(x, dtype=t.float64)
            assert type(made) is kind and seen == [(getattr(t, name), {"dtype": t.float64})], name
        seen.clear()
        assert type(t.full_like(x, 2.0)) is type(t.randint_like(x, 3)) is kind
        assert [func for func, _ in seen] == [t.full_like, t.randint_like]
        seen.clear()
        assert type(t.bernoulli(x)) is kind and seen[0][0] == t.bernoulli


def test_what_a_subclass_makes_of_its_dtype_is_of_it():
    for t in LIBRARIES:
        kind, seen = asked(t)
        x = t.ones(2, 3).as_subclass(kind)
        for name in NEW:
            assert type(getattr(x, name)(2)) is kind, name
        assert type(x.new_full((2,), 3.0)) is type(x.new_tensor([1.0])) is kind
        assert [func for func, _ in seen] == [getattr(t.Tensor, name) for name in (
            *NEW, "new_full", "new_tensor")]


def test_methods_without_a_record_are_asked():
    for t in LIBRARIES:
        kind, seen = asked(t)
        for name in QUERIES:
            x = t.ones(2, 3).as_subclass(kind)
            plain = getattr(t.ones(2, 3), name)()
            seen.clear()
            found = getattr(x, name)()
            if isinstance(plain, t.Tensor):
                assert type(found) is kind, name
            assert [func for func, _ in seen] == [getattr(t.Tensor, name)], name


def test_properties_are_asked_by_their_getters():
    for t in LIBRARIES:
        kind, seen = asked(t)
        for name in PROPERTIES:
            x = t.ones(2, 2).as_subclass(kind)
            plain = getattr(t.ones(2, 2), name)
            seen.clear()
            found = getattr(x, name)
            assert [func for func, _ in seen] == [getattr(t.Tensor, name).__get__], name
            assert type(found) is (kind if isinstance(plain, t.Tensor) else type(plain)), name


def test_a_gradient_is_set_by_its_setter_and_stays_as_it_is():
    for t in LIBRARIES:
        kind, seen = asked(t)
        x, g = t.ones(2).as_subclass(kind), t.ones(2)
        x.grad = g
        assert x.grad is g
        assert [func for func, _ in seen] == [t.Tensor.grad.__set__, t.Tensor.grad.__get__]


def test_what_a_subclass_has_of_its_own_is_not_asked():
    for t in LIBRARIES:
        kind, seen = asked(t)

        class Own(kind):
            shape = property(lambda self: "own")

            def numel(self):
                return super().numel() + 1

        x = t.ones(2).as_subclass(Own)
        assert (x.shape, x.numel()) == ("own", 3)
        assert [func for func, _ in seen] == [t.Tensor.numel]


def test_a_class_may_answer_in_the_place_of_the_tensor():
    for t in LIBRARIES:
        class Taller(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                found = super().__torch_function__(func, types, args, kwargs or {})
                return found + 1 if func == t.Tensor.dim else found

        x = t.ones(2, 3).as_subclass(Taller)
        assert x.dim() == 3 and x.shape == (2, 3)


def test_the_default_keeps_the_class():
    for t in LIBRARIES:
        class Plain(t.Tensor):
            pass

        x = t.ones(2, 3).as_subclass(Plain)
        for made in t.zeros_like(x), x.new_ones(2), x.data, x.T, x.requires_grad_(), copy.copy(x):
            assert type(made) is Plain
        assert x.shape == (2, 3) and len(x) == 2 and x.numel() == 6


def test_an_answer_about_a_subclass_is_the_same_compiled():
    kind, _ = asked(tl)
    x = tl.arange(4.0).as_subclass(kind)

    def f(x):
        return tl.zeros_like(x) + x.numel() * x

    with pytest.warns(RuntimeWarning, match="an argument is a Asked, whose class has a"):
        found = tl.compile(f)(x)
    assert type(found) is kind and found.tolist() == f(x).tolist()


@each("name", ["deg2rad_", "sgn_", "sqrt_", "frac_", "logit_"])
def test_a_subclass_is_asked_for_the_whole_write(name):
    seen = []

    class Asked(tl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)
    x, plain = tl.full((3,), 0.25).as_subclass(Asked), tl.full((3,), 0.25)
    assert getattr(x, name)() is x and seen == [name]
    assert x.tolist() == getattr(plain, name)().tolist()
