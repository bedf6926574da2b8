"""log(1 + exp(x)) and what is made of it: to the last places, and far from zero."""

import math

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.nn import functional as F


@pytest.mark.parametrize("dtype, units", [(np.float32, 2), (np.float64, 2)])
def test_softplus_and_logsigmoid_to_the_last_places(dtype, units):
    x = np.concatenate([np.linspace(-30, 30, 60001), np.linspace(-80, 80, 4001)]).astype(dtype)
    exact = np.logaddexp(np.longdouble(0), x.astype(np.longdouble))
    found = F.softplus(tl.tensor(x), threshold=1e4).numpy()
    assert (np.abs(found - exact) <= units * np.spacing(exact.astype(dtype))).all()
    assert np.array_equal(F.logsigmoid(tl.tensor(-x)).numpy(), -found)


def test_softplus_far_away():
    x = tl.tensor([-math.inf, -500.0, 100.0, 1e4, math.inf, math.nan])
    assert str(F.softplus(x, threshold=math.inf).tolist()) == "[0.0, 0.0, 100.0, 10000.0, inf, nan]"
    assert F.softplus(x[:5], 0.5, math.inf).tolist() == [0.0, 0.0, 100.0, 1e4, math.inf]
