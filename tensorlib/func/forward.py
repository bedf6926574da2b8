"""Transforms by forward mode, and those that combine it with reverse mode.

The function is recorded once; tangents go through its graph by the operations' own forward rules.
"""

import functools

from tensorlib.autograd.run import Run
from tensorlib.func.arguments import directions_of, entry, places_of
from tensorlib.func.reverse import grad, jacrev, vjp
from tensorlib.ops.primitive import NoForwardRule


@entry
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(output, tangent), or (output, tangent, aux), of `func` at `primals` towards `tangents`.

    Both are tuples, one for each argument. The tangent is the Jacobian times `tangents`; zeros for
    outputs that depend on none, which are an error where `strict`.

    Shapes: tangents have those of the primals, the tangent those of the output.
    Raises: RuntimeError for tangents that are not like the primals, for an operation without a
    forward-mode rule, and under `strict`.

    Source: Wengert, "A simple automatic derivative evaluation program", Communications of the ACM
    7(8), 1964.

    >>> x = tensorlib.tensor([0.0, 1.0])
    >>> jvp(tensorlib.square, (x,), (tensorlib.ones(2),))
    (tensor([0., 1.]), tensor([0., 2.]))
    """
    check_tuple("jvp", "primals", primals)
    run = Run("jvp", func, primals, {}, range(len(primals)), has_aux, forward_mode=True)
    path = run.path()
    if strict and path.independent_outputs():
        raise RuntimeError(f"jvp: output {path.independent_outputs()[0]} of the function is "
                           "independent of its inputs; this is not allowed with strict=True")
    tangent = pushed("jvp", run, path, tangents)
    return run.with_aux(run.value(), tangent)


@entry
def linearize(func, *primals):
    """(output, jvp_fn) of `func` at `primals`.

    `jvp_fn(*tangents)` returns the tangent of the output. The function is run once, here, and its
    graph serves every call. Shapes and errors are those of `jvp`.

    >>> out, jvp_fn = linearize(tensorlib.sin, tensorlib.zeros(2))
    >>> jvp_fn(tensorlib.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    run = Run("linearize", func, primals, {}, range(len(primals)), forward_mode=True)
    path = run.path()

    @entry
    def jvp_fn(*tangents):
        return pushed("linearize", run, path, tangents)

    return run.value(), jvp_fn


def check_tuple(name, what, given):
    """Raises RuntimeError for arguments that are not in a tuple."""
    if not isinstance(given, tuple):
        raise RuntimeError(f"{name}: expected {what} to be a tuple, so that func(*{what}) can be "
                           f"called; got {type(given).__name__}")


def pushed(name, run, path, tangents):
    """The tangent of a run's output, in its container."""
    given = directions_of(
        name, "tangent", tangents, run.inputs, "the primals", run.recording.inputs)
    return run.by_output(run.push(path, given))


@entry
def jacfwd(func, argnums=0, has_aux=False, *, holomorphic=False):
    """A function that returns the Jacobian of `func`, computed by forward mode, column by column.

    Arguments, result and shapes are those of `jacrev`, errors those of `jvp`, and RuntimeError for
    complex inputs without `holomorphic`. Cheap where inputs are few.

    >>> jacfwd(tensorlib.square)(tensorlib.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    @entry
    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        places, single = places_of("jacfwd", argnums, len(args))
        run = Run("jacfwd", func, args, kwargs, places, has_aux, forward_mode=True)
        return run.with_aux(run.contained(
            run.jacobians(forward_mode=True, holomorphic=holomorphic), single))
    return jacobian


@entry
def hessian(func, argnums=0, *, holomorphic=False):
    """A function that returns the second derivatives of `func`: forward mode over reverse mode.

    The result is that of `jacfwd(jacrev(func, argnums), argnums)`. Where an operation from outside
    has no rule for forward mode, reverse mode runs twice. holomorphic: as in `jacrev`.

    Shapes: the output's, then the input's twice.
    Raises: as `jacrev` and `jvp`.

    Source: Griewank and Walther, Evaluating Derivatives, second edition (SIAM, 2008).

    >>> hessian(lambda x: (x * x * x).sum())(tensorlib.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    gradients = jacrev(func, argnums, holomorphic=holomorphic)

    @entry
    @functools.wraps(func)
    def second(*args, **kwargs):
        try:
            return jacfwd(gradients, argnums, holomorphic=holomorphic)(*args, **kwargs)
        except NoForwardRule:
            return jacrev(gradients, argnums, holomorphic=holomorphic)(*args, **kwargs)
    return second


@entry
def hvp(func, primals, tangents):
    """(output, product) of `func`, which returns a scalar, at `primals`.

    The product is the Hessian times `tangents`, one for each primal, not in a tuple where there is
    only one. `primals` and `tangents` may be single tensors too. It is a directional derivative of
    the gradient: forward mode over reverse mode.

    Shapes: tangents and product have those of the primals.
    Raises: RuntimeError for an output that is not a scalar, and as `jvp`.
    Source: Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6 (1994).

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> hvp(lambda x: (x * x * x).sum(), x, tensorlib.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    primals, tangents = as_tuples("hvp", primals, "tangents", tangents)
    _, product, value = jvp(gradient_with_value(func, primals), primals, tangents, has_aux=True)
    return value, product


@entry
def vhp(func, primals, cotangents):
    """(output, product) of `func`, which returns a scalar, at `primals`.

    The product is `cotangents` times the Hessian, by two sweeps of reverse mode. Shapes and errors
    are those of `hvp`.

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> vhp(lambda x: (x * x * x).sum(), (x,), (tensorlib.ones(2),))
    (tensor(9.), tensor([ 6., 12.]))
    """
    primals, cotangents = as_tuples("vhp", primals, "cotangents", cotangents)
    _, vjp_fn, value = vjp(gradient_with_value(func, primals), *primals, has_aux=True)
    products = vjp_fn(*cotangents)
    return value, products[0] if len(primals) == 1 else products


def as_tuples(name, primals, what, directions):
    """Both as tuples, where single ones were given."""
    if not isinstance(primals, (tuple, list)):
        primals, directions = (primals,), (directions,)
    check_tuple(name, "primals", primals)
    check_tuple(name, what, directions)
    return tuple(primals), tuple(directions)


def gradient_with_value(func, primals):
    """A function that returns the gradient of `func` by all primals, and its value with it."""
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))

    def with_value(*args):
        value = func(*args)
        return value, value
    return grad(with_value, argnums, has_aux=True)
