"""Transforms by reverse mode: gradients, vector-Jacobian products, Jacobians by rows."""

import functools

from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.run import Run
from tensorlib.func.arguments import directions_of, entry, places_of


@entry
def grad(func, argnums=0, has_aux=False, *, holomorphic=False):
    """A function that returns the gradient of `func`, which returns a tensor of one element.

    argnums: the argument that is differentiated, or a tuple of them, which gives a tuple. An
    argument may be a container of tensors; its gradient is one alike. has_aux: `func` returns
    (output, aux), and the gradient function (gradient, aux). holomorphic: the function takes and
    gives complex tensors and has a complex derivative, which is the result.

    Shapes: the gradient has those of the argument.
    Raises: RuntimeError if the output is not a scalar, for complex outputs without `holomorphic`
    and real ones with it, for argnums that name no argument, or if `func` writes in place to an
    argument or to a tensor that it captured; ValueError for an argument that is not a tensor.

    Source: Griewank and Walther, Evaluating Derivatives, second edition (SIAM, 2008).

    >>> x = tensorlib.tensor(2.0)
    >>> cube = lambda x: x * x * x
    >>> grad(cube)(x), grad(grad(cube))(x)
    (tensor(12.), tensor(12.))
    >>> grad(cube, holomorphic=True)(tensorlib.tensor(1 + 2j))
    tensor(-9.+12.j)
    """
    @entry
    @functools.wraps(func)
    def gradient(*args, **kwargs):
        run, found = _differentiated("grad", func, argnums, has_aux, holomorphic, args, kwargs)
        return run.with_aux(found)
    return gradient


@entry
def value_and_grad(func, argnums=0, has_aux=False, *, holomorphic=False):
    """A function that returns (value, gradient) of `func`, or ((value, aux), gradient).

    Arguments (`holomorphic=` among them) and errors are those of `grad`.

    >>> value_and_grad(tensorlib.square)(tensorlib.tensor(3.0))
    (tensor(9.), tensor(6.))
    """
    @entry
    @functools.wraps(func)
    def both(*args, **kwargs):
        run, found = _differentiated(
            "value_and_grad", func, argnums, has_aux, holomorphic, args, kwargs)
        return run.with_aux(run.value()), found
    return both


@entry
def grad_and_value(func, argnums=0, has_aux=False, *, holomorphic=False):
    """A function that returns (gradient, value) of `func`, or (gradient, (value, aux)).

    PyTorch's order of what `value_and_grad` returns. Arguments (`holomorphic=` among them) and
    errors are those of `grad`.

    >>> grad_and_value(tensorlib.square)(tensorlib.tensor(3.0))
    (tensor(6.), tensor(9.))
    """
    @entry
    @functools.wraps(func)
    def both(*args, **kwargs):
        run, found = _differentiated(
            "grad_and_value", func, argnums, has_aux, holomorphic, args, kwargs)
        return found, run.with_aux(run.value())
    return both


def _differentiated(name, func, argnums, has_aux, holomorphic, args, kwargs):
    """A run of `func`, whose output must be a scalar, and its gradient."""
    places, single = places_of(name, argnums, len(args))
    run = Run(name, func, args, kwargs, places, has_aux)
    out = run.value()
    if not isinstance(out, Tensor):
        raise RuntimeError(f"{name}: expected the function to return a Tensor, got "
                           f"{type_name(out)}")
    if out.ndim:
        raise RuntimeError(
            f"{name}: expected the function to return a scalar Tensor, got one of shape "
            f"{tuple(out.shape)}; vjp and jacrev take such functions, elementwise_grad those that "
            "act on each element")
    return run, run.by_argument(derivatives(run, holomorphic), single)


def derivatives(run, holomorphic):
    """The gradient of each input; with `holomorphic` the complex derivative, its conjugate."""
    if not holomorphic:
        check_floating(run.name, run.outputs)
        return run.gradients()
    run.check_directions(False, True)
    return [g.conj() for g in run.gradients()]


@entry
def elementwise_grad(func, argnums=0, *, holomorphic=False):
    """A function that returns the derivative of `func`, a function of each element, at each.

    It is the gradient of the sum of what `func` returns. Arguments (`holomorphic=` among
    them) are those of `grad`.

    Shapes: the output may have any; the derivative has that of the argument.
    Raises: as `grad`, but not for an output that is not a scalar.

    >>> elementwise_grad(tensorlib.square)(tensorlib.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    @entry
    @functools.wraps(func)
    def derivative(*args, **kwargs):
        name = "elementwise_grad"
        places, single = places_of(name, argnums, len(args))
        run = Run(name, func, args, kwargs, places)
        return run.by_argument(derivatives(run, holomorphic), single)
    return derivative


@entry
def vjp(func, *primals, has_aux=False):
    """(output, vjp_fn), or (output, vjp_fn, aux), of `func` at `primals`.

    `vjp_fn(cotangents)` takes what is like the output and returns the product with the Jacobian
    from the left: a tuple with one for each primal. It may be called again and again.

    Shapes: cotangents have those of the output, products those of the primals.
    Raises: RuntimeError for outputs that are neither floating nor complex tensors, or for
    cotangents that are not like the output.

    >>> out, vjp_fn = vjp(tensorlib.sin, tensorlib.zeros(2))
    >>> vjp_fn(tensorlib.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    run = Run("vjp", func, primals, {}, range(len(primals)), has_aux)
    check_floating("vjp", [out for out in run.outputs if not out.is_complex()])

    @entry
    def vjp_fn(*cotangents, retain_graph=True):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        given = directions_of(
            "vjp", "cotangent", given, run.structure, "the output", run.outputs)
        return run.by_argument(run.pull(given, retain_graph), False)

    return run.with_aux(run.value(), vjp_fn)


@entry
def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, holomorphic=False):
    """A function that returns the Jacobian of `func`, computed by reverse mode.

    It has the container of the output, and in it that of the argument (a tuple where argnums is
    one). Cheap where outputs are few. chunk_size: how many rows to compute at once; fewer take less
    memory. holomorphic: the function takes and gives complex tensors and has a complex derivative,
    which is the result.

    Shapes: each tensor has the output's followed by the input's.
    Raises: as `vjp`, ValueError for a chunk_size below 1, and RuntimeError for complex outputs
    without `holomorphic`.

    >>> jacrev(tensorlib.square)(tensorlib.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    @entry
    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        if chunk_size is not None and chunk_size < 1:
            raise ValueError("jacrev: `chunk_size` should be greater than 0.")
        places, single = places_of("jacrev", argnums, len(args))
        run = Run("jacrev", func, args, kwargs, places, has_aux)
        check_floating("jacrev", [out for out in run.outputs if not out.is_complex()])
        return run.with_aux(run.contained(
            run.jacobians(chunk_size=chunk_size, holomorphic=holomorphic), single))
    return jacobian


def check_floating(name, outputs):
    """Raises RuntimeError for outputs that have no gradient."""
    for out in outputs:
        if not out.is_floating_point():
            hint = ("; holomorphic=True gives the complex derivative of a function that has one"
                    if out.is_complex() else "")
            raise RuntimeError(f"{name}: all outputs of the function must be floating-point "
                               f"Tensors, got a Tensor of {out.dtype}{hint}")
