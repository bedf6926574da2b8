"""What scripts and libraries of some years ago call, here and in PyTorch."""

import pytest
from cases import each

import tensorlib as tl

torch = pytest.importorskip("torch")

CALLS = {
    "add": lambda lib, x, y, z: lib.add(x, 3, y),
    "add method": lambda lib, x, y, z: x.add(-0.5, y),
    "add_": lambda lib, x, y, z: x.add_(2, y),
    "add with a tensor": lambda lib, x, y, z: x.add(lib.tensor(2.0), y),
    "add out": lambda lib, x, y, z: lib.add(x, 2, y, out=lib.empty(3)),
    "sub": lambda lib, x, y, z: lib.sub(x, 3, y),
    "sub_": lambda lib, x, y, z: x.sub_(-0.5, y),
    "addcmul": lambda lib, x, y, z: lib.addcmul(x, 2, y, z),
    "addcmul_": lambda lib, x, y, z: x.addcmul_(1 - 0.9, y, z),
    "addcdiv_": lambda lib, x, y, z: x.addcdiv_(-0.1, y, z),
    "contains": lambda lib, x, y, z: [v in x for v in (1, 2.0, 7, True, x, y, float("nan"))],
    "contains text": lambda lib, x, y, z: "a" in x,
    "contains nothing": lambda lib, x, y, z: None in x,
    "contains another shape": lambda lib, x, y, z: lib.ones(2, 2) in x,
    "two tensors": lambda lib, x, y, z: x.add(y, y),
    "twice alpha": lambda lib, x, y, z: x.add(2, y, alpha=3),
    "a product": lambda lib, x, y, z: x.mul(2, y),
    "number last": lambda lib, x, y, z: x.addcmul(y, z, 2),
}


def outcome(library, call):
    given = (library.tensor(v) for v in ([1.0, 2.0, -3.0], [4.0, 0.5, 2.0], [0.25, 2.0, 8.0]))
    try:
        result = call(library, *given)
    except (TypeError, RuntimeError) as error:
        return type(error)
    return result.tolist() if hasattr(result, "tolist") else result


@pytest.mark.filterwarnings("ignore")
@each("call", CALLS.values(), ids=CALLS)
def test_the_outcome_is_the_same(call):
    ours, theirs = outcome(tl, call), outcome(torch, call)
    assert ours == (theirs if isinstance(theirs, type) else pytest.approx(theirs, rel=1e-6))


@pytest.mark.parametrize("shape", [
    (2, 3, 4, 5), (1, 1, 1, 1), (2, 1, 3, 4), (2, 3, 1, 1), (1, 3, 1, 4),
    (2, 3, 2), (2, 3, 2, 2, 2)])
def test_which_orders_of_elements_a_tensor_has(shape):
    found = []
    for library in (tl, torch):
        x, formats = library.ones(shape), (library.channels_last, library.channels_last_3d)
        assert x.is_contiguous(memory_format=library.preserve_format)
        for change in (lambda x, f: x, lambda x, f: x.to(memory_format=f),
                       lambda x, f: x.contiguous(memory_format=f).clone(),
                       lambda x, f: x.to(memory_format=f) * 2, lambda x, f: x.transpose(0, 1)):
            for format in formats:
                try:
                    y = change(x, format)
                except RuntimeError:
                    found.append("refused")
                    continue
                found += [y.is_contiguous(), *(y.is_contiguous(memory_format=f) for f in formats)]
    assert found[:len(found) // 2] == found[len(found) // 2:]
