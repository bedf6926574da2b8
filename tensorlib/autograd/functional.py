"""Derivatives of a function at a point, as in `torch.autograd.functional`.

The function takes one tensor or several, `inputs`, and returns one or a tuple of them. With
`create_graph` the results can be differentiated; with `strict` an output that does not depend on an
input, whose derivative is otherwise zero, is an error.

The conventions and errors are PyTorch's. The derivatives are computed by `Run` (run.py), as are the
transforms of `tensorlib.func`, which take nested containers.
"""

from tensorlib._core.base.explained import explain
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import set_grad_enabled
from tensorlib.autograd.run import Run

STRICT = "This is not allowed in strict mode"
INPUT_IS = "the input to the user-provided function is"


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, product): what `func` returns, and `v` times its Jacobian, for each input.

    Shapes: `v` has those of the outputs, the product those of the inputs. `v` may be left out for
    one output of one element.
    Raises: TypeError for what is neither a Tensor nor a tuple of them, RuntimeError for a `v` that
    is not like the outputs, and under `strict`.

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> vjp(lambda x: x * x, x, tensorlib.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    args, single = as_tuple("vjp", "inputs", inputs)
    with set_grad_enabled(create_graph):
        run = run_of("vjp", func, args)
        check_connected(run, strict)
        v = vectors("vjp", v, run.outputs, "the user-provided function returns")
        products = run.pull(v)
    check_graph(run, products, strict and create_graph)
    return run.value(), run.by_argument(products, single)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, product): what `func` returns, and its Jacobian times `v`, for each output.

    Computed by forward mode.

    Shapes: `v` has those of the inputs, the product those of the outputs. `v` may be left out for
    one input of one element.
    Raises: as `vjp`, for a `v` that is not like the inputs.

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> jvp(lambda x: x * x, x, tensorlib.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    args, _ = as_tuple("jvp", "inputs", inputs)
    with set_grad_enabled(create_graph):
        v = vectors("jvp", v, args, INPUT_IS)
        run = run_of("jvp", func, args, forward_mode=True)
        check_connected(run, strict)
        products = run.push(run.path(), v)
    check_graph(run, products, strict and create_graph)
    return run.value(), run.by_output(products)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False,
             strategy="reverse-mode"):
    """The Jacobian of `func`.

    strategy: "reverse-mode" is cheap for few outputs, "forward-mode" for few inputs. vectorize is
    taken as a hint and changes nothing.

    Shapes: that of the output followed by that of the input. With several outputs a tuple with one
    for each, with several inputs each a tuple in its turn.
    Raises: ValueError for another strategy, TypeError for what is neither a Tensor nor a tuple of
    them, RuntimeError under `strict`.

    >>> jacobian(lambda x: x * x, tensorlib.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError("jacobian: strategy must be 'reverse-mode' or 'forward-mode', got "
                         f"{strategy!r}")
    args, single = as_tuple("jacobian", "inputs", inputs)
    forward_mode = strategy == "forward-mode"
    with set_grad_enabled(create_graph):
        run = run_of("jacobian", func, args, forward_mode=forward_mode)
        check_connected(run, strict, each=True)
        jacobians = run.jacobians(forward_mode)
    for found in jacobians:
        check_graph(run, found, strict and create_graph)
    return run.contained(jacobians, single)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False,
            outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of `func`, which returns one element, with respect to each two inputs.

    outer_jacobian_strategy: "forward-mode" is forward over reverse mode.

    Shapes: that of one input followed by that of the other; with several inputs a tuple of tuples.
    Raises: as `jacobian`, and RuntimeError for an output of more than one element.

    >>> hessian(lambda x: (x * x * x).sum(), tensorlib.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    args, single = as_tuple("hessian", "inputs", inputs)

    def gradient(*args):
        return gradient_and_value("hessian", func, args, strict)[0]

    rows = jacobian(gradient, args, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows[0][0] if single else rows


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, product): what `func` returns, one element, and its Hessian times `v`.

    Computed by forward over reverse mode.

    Shapes: `v` and the product have those of the inputs.
    Raises: as `jvp`, and RuntimeError for an output of more than one element.
    Source: Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6 (1994).

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> hvp(lambda x: (x * x * x).sum(), x, tensorlib.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return second_order("hvp", func, inputs, v, create_graph, strict, forward_mode=True)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, product): what `func` returns, one element, and `v` times its Hessian.

    Computed by two sweeps of reverse mode. Arguments, shapes and errors are those of `hvp`.

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> vhp(lambda x: (x * x * x).sum(), x, tensorlib.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return second_order("vhp", func, inputs, v, create_graph, strict, forward_mode=False)


def second_order(name, func, inputs, v, create_graph, strict, forward_mode):
    """What `hvp` (by forward mode) and `vhp` return: the derivative of the gradient along `v`."""
    args, single = as_tuple(name, "inputs", inputs)

    def gradient(*args):
        return gradient_and_value(name, func, args, strict)

    with set_grad_enabled(create_graph):
        v = vectors(name, v, args, INPUT_IS)
        run = Run(name, gradient, args, {}, range(len(args)), has_aux=True,
                  forward_mode=forward_mode)
        check_gradient(name, run, strict)
        products = run.push(run.path(), v) if forward_mode else run.pull(v)
    check_graph(run, products, strict and create_graph)
    return run.aux, run.by_argument(products, single)


def gradient_and_value(name, func, args, strict):
    """The gradients of `func` with respect to each argument, and what it returns: one element."""
    run = run_of(name, func, args)
    value = run.value()
    if not isinstance(value, Tensor):
        raise RuntimeError(f"{name}: the function must return a single Tensor, got {len(value)}")
    if value.numel() != 1:
        raise RuntimeError(f"{name}: the Tensor returned by the function should contain a single "
                           f"element, got shape {tuple(value.shape)}")
    check_connected(run, strict)
    return tuple(run.gradients()), value


def run_of(name, func, args, forward_mode=False):
    """A run of `func`, which must return a Tensor or a tuple of them, by all its arguments."""
    def checked(*args):
        outputs = func(*args)
        as_tuple(name, "outputs of the user-provided function", outputs)
        return outputs

    return Run(name, checked, args, {}, range(len(args)), forward_mode=forward_mode)


def as_tuple(name, what, given):
    """A tensor or tuple of tensors as a tuple, and whether it was one alone. Raises: TypeError."""
    if isinstance(given, Tensor):
        return (given,), True
    if not isinstance(given, tuple) or not all(isinstance(x, Tensor) for x in given):
        kinds = (", ".join(type(x).__name__ for x in given) if isinstance(given, tuple)
                 else type(given).__name__)
        raise TypeError(f"{name}: the {what} must be either a Tensor or a tuple of Tensors, got "
                        f"{kinds}")
    return given, False


def vectors(name, v, tensors, whose):
    """`v` as a tuple with one tensor for each of `tensors`; ones where it may be left out."""
    if v is None:
        if len(tensors) != 1 or tensors[0].numel() != 1:
            raise RuntimeError(f"{name}: the vector v can only be None if {whose} a single Tensor "
                               "with a single element")
        return (tensors[0].new_ones(tensors[0].shape),)
    given, _ = as_tuple(name, "v", v)
    if len(given) != len(tensors):
        raise RuntimeError(f"{name}: v should contain {len(tensors)} Tensors, got {len(given)}")
    for x, like in zip(given, tensors):
        if x.shape != like.shape:
            raise RuntimeError(f"{name}: v has invalid size: should be {tuple(like.shape)} but got "
                               f"{tuple(x.shape)}")
    return given


# ---- what `strict` refuses -----------------------------------------------------------------------

def check_connected(run, strict, each=False):
    """Under `strict` raises RuntimeError for inputs that no output, or not `each`, depends on."""
    if not strict:
        return
    recording = run.recording
    for i, out in enumerate(recording.outputs):
        if not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs "
                f"must be computed in a differentiable manner from the input. {STRICT}")
    for place in range(len(recording.inputs)):
        depending = [recording.depends(out, place) for out in recording.outputs]
        if not (all(depending) if each else any(depending)):
            which = f"Output {depending.index(False)}" if each else "The output"
            raise RuntimeError(f"{which} of the user-provided function is independent of input "
                               f"{place}. {STRICT}.")


def check_gradient(name, run, strict):
    """Under `strict` raises RuntimeError for a gradient that depends on no input."""
    places = range(len(run.recording.inputs))
    for i, slope in enumerate(run.recording.outputs if strict else ()):
        if not any(run.recording.depends(slope, place) for place in places):
            raise RuntimeError(
                f"{name}: found that the jacobian of the user-provided function with respect to "
                f"input {i} is independent of the inputs. {STRICT}.")


def check_graph(run, results, wanted):
    """Where a graph is `wanted`, raises RuntimeError for an input that no result depends on."""
    for place in range(len(run.recording.inputs) if wanted else 0):
        if not any(run.recording.depends(x, place) for x in results):
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {place}. "
                f"{STRICT} when create_graph=True.")


# ---- parts of PyTorch's functions, for libraries that build their own of these -------------------

def _as_tuple(inp, arg_name=None, fn_name=None):
    """Whether it was a tuple, and it as one. Raises: TypeError for what is no Tensor in it.

    Without names it is not looked at, and the tuple is all.
    """
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (tuple, list)) else (inp,)
    given, single = as_tuple(fn_name, arg_name, inp)
    return not single, given


def _tuple_postprocess(res, to_unpack):
    """The only item in place of a tuple that was none: by one bool, or for two levels."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    res = res if inner else tuple([each[0] for each in res])
    return res if outer else res[0]


def _grad_postprocess(inputs, create_graph):
    """Tensors in tuples, without their graphs unless these are wanted."""
    if create_graph:
        return inputs
    return tuple([x.detach() if isinstance(x, Tensor) else _grad_postprocess(x, create_graph)
                  for x in inputs])


def _construct_standard_basis_for(tensors, tensor_numels):
    """For each tensor, as many columns of one identity as it has elements, in its dtype."""
    total, before = sum(tensor_numels), 0
    columns = []
    for x, count in zip(tensors, tensor_numels, strict=True):
        columns.append(x.new_zeros(total, count))
        columns[-1][before:before + count].fill_diagonal_(1)
        before += count
    return tuple(columns)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

explain(vars(), __all__)
