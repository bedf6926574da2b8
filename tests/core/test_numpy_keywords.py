"""NumPy's names of arguments (axis, keepdims, x, a, x1, x2), where PyTorch's parser takes them, and
the names that its functions have where its documentation calls them otherwise (input for A)."""

import inspect
import operator

import pytest
from cases import each

import tensorlib as tl

X = tl.tensor([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]])

CALLS = {
    name: (name, (X,), {}) for name in """
    all amax amin aminmax any argmax argmin argsort count_nonzero cummax cummin cumprod cumsum
    diff log_softmax logcumsumexp logsumexp max mean median min mode nanmean nanmedian nansum prod
    softmax sort std std_mean sum trapezoid unbind unsqueeze var var_mean squeeze
    gradient""".split()
} | {
    "cat": ("cat", ([X, X],), {}), "stack": ("stack", ([X, X],), {}),
    "chunk": ("chunk", (X, 2), {}),
    "topk": ("topk", (X, 1), {}), "kthvalue": ("kthvalue", (X, 1), {}),
    "cross": ("cross", (X.T, X.T), {}), "cosine_similarity": ("cosine_similarity", (X, X), {}),
    "repeat_interleave": ("repeat_interleave", (X, 2), {}),
    "tensor_split": ("tensor_split", (X, 2), {}),
    "sum of a kept dim": ("sum", (X,), {"keepdim": "keepdims"}),
}


def parts(found):
    return list(found) if isinstance(found, (tuple, list)) else [found]


@each("key", CALLS)
def test_axis_is_dim(key):
    name, args, more = CALLS[key]
    function = getattr(tl, name)
    found = function(*args, axis=0, **dict.fromkeys(more.values(), True))
    wanted = function(*args, dim=0, **dict.fromkeys(more, True))
    for x, y in zip(parts(found), parts(wanted), strict=True):
        assert tl.equal(x, y)
    if hasattr(tl.Tensor, name) and isinstance(args[0], tl.Tensor):
        found = getattr(args[0], name)(*args[1:], axis=0)
        assert all(map(tl.equal, parts(found), parts(function(*args, dim=0))))


def test_other_names_stand_for_input_and_other():
    assert tl.equal(tl.sin(x=X), X.sin()) and tl.equal(tl.sin(a=X), X.sin())
    assert tl.equal(tl.add(x1=X, x2=1), X + 1) and tl.equal(tl.sum(a=X, axis=-1), X.sum(-1))


M, V = tl.tensor([[2.0, 1.0], [1.0, 3.0]]), tl.tensor([1.0, 2.0])

MATRICES = {
    "det": {}, "linalg.norm": {}, "linalg.matrix_norm": {}, "linalg.vector_norm": {},
    "linalg.cholesky": {}, "linalg.cholesky_ex": {}, "linalg.eigh": {}, "linalg.eig": {},
    "linalg.eigvals": {}, "linalg.eigvalsh": {}, "linalg.pinv": {}, "linalg.matrix_power": {"n": 2},
    "linalg.matrix_exp": {}, "linalg.matrix_rank": {}, "linalg.cond": {},
    "linalg.solve_triangular": {"B": M, "upper": True}, "linalg.lstsq": {"b": M},
    "linalg.tensorinv": {"ind": 1}, "linalg.tensorsolve": {"other": V}, "linalg.ldl_factor": {},
    "linalg.ldl_factor_ex": {}, "linalg.householder_product": {"tau": V}}


@each("own", ["input", "x", "a"])
@each("name", MATRICES)
def test_matrices_are_input_as_they_are_A(name, own):
    function, others = operator.attrgetter(name)(tl), MATRICES[name]
    wanted = function(M, *others.values()) if name != "linalg.solve_triangular" else (
        function(M, **others))
    found = function(**{own: M}, **others)
    assert all(tl.equal(x, y) for x, y in zip(parts(found), parts(wanted), strict=True))


def test_norms_take_all_of_numpys_names():
    assert tl.linalg.norm(x=M, axis=1, keepdims=True).shape == (2, 1)
    assert tl.linalg.norm(A=M).equal(tl.linalg.norm(M))


def test_names_that_differ_from_those_of_the_documentation():
    classes = tl.tensor([1, 0])
    assert tl.nn.functional.one_hot(input=classes).equal(tl.nn.functional.one_hot(tensor=classes))
    assert V.dot(tensor=V) == V.dot(other=V) == tl.dot(V, tensor=V) == 5
    assert [len(x) for x in tl.tensor_split(V, tensor_indices_or_sections=tl.tensor([0]))] == [0, 2]
    for given in ({"A": M, "input": M}, {"A": M, "x": M}):
        with pytest.raises(TypeError):
            tl.linalg.cond(**given)


def test_a_parameter_of_the_function_itself_stays_what_it_is():
    assert tl.trapezoid(X, x=tl.tensor([0.0, 1.0, 3.0])).tolist() == [5.0, 5.25]
    assert tl.cdist(x1=X, x2=X).shape == (2, 2)


@pytest.mark.parametrize("call", [
    lambda: tl.sum(X, dim=0, axis=0), lambda: tl.sin(X, axis=0), lambda: tl.softmax(X, axi=0)],
    ids=["both", "no dim", "misspelt"])
def test_what_a_function_does_not_take_is_refused(call):
    with pytest.raises(TypeError):
        call()


def test_they_are_renamed_before_anything_looks_at_the_call():
    seen = []

    class Own(tl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, kwargs))
            return super().__torch_function__(func, types, args, kwargs)

    tl.softmax(X.as_subclass(Own), axis=0)
    assert seen == [("softmax", {"dim": 0})]
    rows = tl.func.vmap(lambda row: tl.softmax(row, axis=0))(X)
    assert tl.allclose(rows, X.softmax(1))


def softmax_of_a_stack(x):
    return tl.stack([x, x * 2], axis=1).softmax(axis=-1)


def test_they_are_captured():
    compiled = tl.compile(softmax_of_a_stack)
    for _ in range(3):
        assert tl.equal(compiled(X), softmax_of_a_stack(X))


def test_signatures_show_the_own_names():
    assert "axis" not in inspect.signature(tl.sum).parameters
