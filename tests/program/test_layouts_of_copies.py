"""`copy_` in captured code: the target keeps its strides, whatever those of the source."""

import pytest

import tensorlib as tl


def plain(x, source):
    y = x * 2.0
    y.copy_(source)
    return y


def behind_a_branch(x, source):
    y = tl.cond(x.sum() > -1e9, lambda a: a * 2.0, lambda a: a * 3.0, (x,))
    y.copy_(source)
    return y + 0.0, y


def behind_a_scan(x, source):
    y, _ = tl.scan(lambda carry, row: (carry * 2.0 + row, carry), x, tl.stack([x, x]))
    y.add_(1.0)
    y.copy_(source)
    return y


@pytest.mark.parametrize("f", [plain, behind_a_branch, behind_a_scan])
@pytest.mark.parametrize("turn", [lambda x: x, tl.t, lambda x: x[:1].expand(3, 3)])
def test_the_target_keeps_its_strides(f, turn):
    compiled = tl.compile(f)
    for _ in range(3):
        x, source = tl.randn(3, 3), turn(tl.randn(3, 3))
        found, wanted = compiled(x, source), f(x, source)
        pairs = zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]
        for y, z in pairs:
            assert y.stride() == z.stride() and y.equal(z)
