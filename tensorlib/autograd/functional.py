"""Derivatives of a function at a point, as in `torch.autograd.functional`.

The function takes one tensor or several, `inputs`, and returns one or a tuple of them. With
`create_graph` the results can be differentiated; with `strict` an output that does not depend on an
input, whose derivative is otherwise zero, is an error. `tensorlib.func` has the same as transforms,
for nested containers.
"""

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.jacobians import columns_of, rows_of
from tensorlib.autograd.modes import set_grad_enabled
from tensorlib.autograd.transform import Trace

STRICT = "This is not allowed in strict mode"


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, product): what `func` returns, and `v` times its Jacobian, for each input.

    `v` is like the outputs; it may be left out for one output of one element.

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> vjp(lambda x: x * x, x, tensorlib.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    tensors, single = as_tensors("vjp", "inputs", inputs)
    with set_grad_enabled(create_graph):
        trace = Trace(tensors)
        values, single_out = run("vjp", trace, func)
        check_connected(trace, strict)
        v = vectors("vjp", v, values, "the user-provided function returns")
        products = trace.pull(v, False)
    check_graph(trace, products, strict and create_graph)
    return packed(values, single_out), packed(products, single)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, product): what `func` returns, and its Jacobian times `v`, for each output.

    `v` is like the inputs; it may be left out for one input of one element. Computed by forward
    mode.

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> jvp(lambda x: x * x, x, tensorlib.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    tensors, single = as_tensors("jvp", "inputs", inputs)
    with set_grad_enabled(create_graph):
        v = vectors("jvp", v, tensors, "the input to the user-provided function is")
        trace = Trace(tensors, forward=True)
        values, single_out = run("jvp", trace, func)
        check_connected(trace, strict)
        products = trace.push(trace.path(), v)
    check_graph(trace, products, strict and create_graph)
    return packed(values, single_out), packed(products, single_out)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False,
             strategy="reverse-mode"):
    """The Jacobian of `func`: a tensor of the output's shape followed by the input's.

    With several outputs a tuple with one for each, with several inputs each a tuple in its turn.
    strategy: "reverse-mode" is cheap for few outputs, "forward-mode" for few inputs. vectorize is
    taken as a hint and changes nothing.

    >>> jacobian(lambda x: x * x, tensorlib.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError("jacobian: strategy must be 'reverse-mode' or 'forward-mode', got "
                         f"{strategy!r}")
    tensors, single = as_tensors("jacobian", "inputs", inputs)
    forward = strategy == "forward-mode"
    with set_grad_enabled(create_graph):
        trace = Trace(tensors, forward=forward)
        values, single_out = run("jacobian", trace, func)
        check_connected(trace, strict, each=True)
        blocks = columns_of(trace) if forward else [
            rows_of(trace, place) for place in range(len(values))]
    for row in blocks:
        check_graph(trace, row, strict and create_graph)
    return packed([packed(row, single) for row in blocks], single_out)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False,
            outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of `func`, which returns one element, with respect to each two inputs.

    outer_jacobian_strategy: "forward-mode" is forward over reverse mode.

    >>> hessian(lambda x: (x * x * x).sum(), tensorlib.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    tensors, single = as_tensors("hessian", "inputs", inputs)

    def slopes(*args):
        gradients = gradients_of("hessian", func, args, strict)[1]
        return tuple(gradients)

    blocks = jacobian(slopes, tensors, create_graph, strict, vectorize, outer_jacobian_strategy)
    return packed([packed(row, single) for row in blocks], single)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, product): what `func` returns, one element, and its Hessian times `v`.

    Computed by forward over reverse mode.

    >>> x = tensorlib.tensor([1.0, 2.0])
    >>> hvp(lambda x: (x * x * x).sum(), x, tensorlib.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return second_order("hvp", func, inputs, v, create_graph, strict, forward=True)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, product): what `func` returns, one element, and `v` times its Hessian.

    Computed by two sweeps of reverse mode.
    """
    return second_order("vhp", func, inputs, v, create_graph, strict, forward=False)


def second_order(name, func, inputs, v, create_graph, strict, forward):
    """What `hvp` (with `forward`, by forward mode) and `vhp` return."""
    tensors, single = as_tensors(name, "inputs", inputs)
    with set_grad_enabled(create_graph):
        v = vectors(name, v, tensors, "the input to the user-provided function is")
        with Trace(tensors, forward) as trace:
            value, slopes = gradients_of(name, func, trace.inputs, strict)
        check_slopes(name, trace, slopes, strict)
        *_, value = trace.finish([*slopes, value])
        if forward:
            products = trace.push(trace.path(), v)[:-1]
        else:
            products = trace.pull([*v, value.new_zeros(value.shape)], False)
    check_graph(trace, products, strict and create_graph)
    return value, packed(products, single)


def gradients_of(name, func, tensors, strict):
    """What `func` returns, one element, and its gradients with respect to the tensors."""
    trace = Trace(tensors)
    values, single = run(name, trace, func)
    if not single:
        raise RuntimeError(f"{name}: the function must return a single Tensor, got {len(values)}")
    if values[0].numel() != 1:
        raise RuntimeError(f"{name}: the Tensor returned by the function should contain a single "
                           f"element, got shape {tuple(values[0].shape)}")
    check_connected(trace, strict)
    return values[0], trace.pull([values[0].new_ones(values[0].shape)], False)


def run(name, trace, func):
    """The tensors that `func` returns on a trace's inputs, and whether it is one alone."""
    with trace:
        outputs = func(*trace.inputs)
    outputs, single = as_tensors(name, "outputs of the user-provided function", outputs)
    return trace.finish(list(outputs)), single


def as_tensors(name, what, given):
    """A tensor or tuple of tensors as a tuple, and whether it was one alone. Raises: TypeError."""
    single = isinstance(given, Tensor)
    tensors = (given,) if single else given
    if not isinstance(tensors, tuple) or not all(isinstance(x, Tensor) for x in tensors):
        kinds = (", ".join(type(x).__name__ for x in tensors) if isinstance(tensors, tuple)
                 else type(given).__name__)
        raise TypeError(f"{name}: the {what} must be either a Tensor or a tuple of Tensors, got "
                        f"{kinds}")
    return tensors, single


def packed(values, single):
    """A tuple of the values, or the only one."""
    return values[0] if single else tuple(values)


def vectors(name, v, tensors, whose):
    """`v` as a list with one tensor for each of `tensors`; ones where it may be left out."""
    if v is None:
        if len(tensors) != 1 or tensors[0].numel() != 1:
            raise RuntimeError(f"{name}: the vector v can only be None if {whose} a single Tensor "
                               "with a single element")
        return [tensors[0].new_ones(tensors[0].shape)]
    given, _ = as_tensors(name, "v", v)
    if len(given) != len(tensors):
        raise RuntimeError(f"{name}: v should contain {len(tensors)} Tensors, got {len(given)}")
    for x, like in zip(given, tensors):
        if x.shape != like.shape:
            raise RuntimeError(f"{name}: v has invalid size: should be {tuple(like.shape)} but got "
                               f"{tuple(x.shape)}")
    return [x.to(like.dtype) for x, like in zip(given, tensors)]


def check_connected(trace, strict, each=False):
    """Under `strict` raises RuntimeError for inputs that no output, or not `each`, depends on."""
    if not strict:
        return
    for i, out in enumerate(trace.outputs):
        if not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs "
                f"must be computed in a differentiable manner from the input. {STRICT}")
    for place in range(len(trace.inputs)):
        depending = [trace.depends(out, place) for out in trace.outputs]
        if not (all(depending) if each else any(depending)):
            which = f"Output {depending.index(False)}" if each else "The output"
            raise RuntimeError(f"{which} of the user-provided function is independent of input "
                               f"{place}. {STRICT}.")


def check_slopes(name, trace, slopes, strict):
    """Under `strict` raises RuntimeError for a gradient that depends on no input."""
    places = range(len(trace.inputs))
    for i, slope in enumerate(slopes if strict else ()):
        if not any(trace.depends(slope, place) for place in places):
            raise RuntimeError(
                f"{name}: found that the jacobian of the user-provided function with respect to "
                f"input {i} is independent of the inputs. {STRICT}.")


def check_graph(trace, results, wanted):
    """Where a graph is `wanted`, raises RuntimeError for an input that no result depends on."""
    for place in range(len(trace.inputs) if wanted else 0):
        if not any(trace.depends(x, place) for x in results):
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {place}. "
                f"{STRICT} when create_graph=True.")


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
