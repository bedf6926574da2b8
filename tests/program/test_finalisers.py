"""Objects with a finaliser: what is compiled keeps none of them alive, so that each is finalised
when the eager call has it be."""

import gc
import warnings

from cases import each

import tensorlib as tl


class Resource:
    """Something that is closed when nobody uses it any more."""

    def __init__(self, closed, scale=2.0):
        self.closed, self.scale = closed, scale

    def __del__(self):
        self.closed.append(self.scale)


def opened_inside(compiled):
    closed = []

    def scaled(x):
        resource = Resource(closed)
        y = x * resource.scale
        return y + 1
    f = compiled(scaled)
    return [(f(tl.ones(2)).tolist(), tuple(closed)) for _ in range(4)]


def given(compiled):
    closed, seen = [], []
    f = compiled(lambda x, resource: x * resource.scale)
    for scale in (1.0, 2.0, 2.0):
        seen.append((f(tl.ones(2), Resource(closed, scale)).tolist(), tuple(closed)))
    return seen


def read_from_outside(compiled):
    closed, seen = [], []
    resource = Resource(closed)
    f = compiled(lambda x: x * resource.scale)
    for scale in (2.0, 2.0, 3.0, 4.0):
        seen.append((f(tl.ones(2)).tolist(), tuple(closed)))
        resource = Resource(closed, scale)
    return seen


def an_attribute_of_its_own(compiled):
    closed, seen = [], []

    class Model(tl.nn.Module):
        def __init__(self):
            super().__init__()
            self.resource = Resource(closed)

        def forward(self, x):
            return x * self.resource.scale

    model = Model()
    f = compiled(model)
    for scale in (2.0, 2.0, 3.0, 4.0):
        seen.append((f(tl.ones(2)).tolist(), tuple(closed)))
        model.resource = Resource(closed, scale)
    return seen


@each("use", [opened_inside, given, read_from_outside, an_attribute_of_its_own])
def test_finalisers_run_when_the_eager_call_has_them_run(use):
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert use(tl.compile) == use(lambda f: f)
    assert all("__del__" in str(x.message) for x in caught) and len(caught) == 1
