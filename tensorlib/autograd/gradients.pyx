"""`backward()` and `grad()`: they check their arguments and run the sweep."""

from tensorlib._core.arrays.operands cimport scalar_tensor
from tensorlib._core.base.dtypes cimport COMPLEX_KIND, FLOAT32, KIND
from tensorlib._core.base.shape cimport LARGEST, items
from tensorlib._core.graph.node cimport Node, gradient_node
from tensorlib._core.sweep.state cimport nodes_below
from tensorlib._core.sweep.sweep cimport run_backward
from tensorlib._core.tensor.tensor cimport Tensor, new_scalar, requires_grad, same_shape
from tensorlib._core.tiles.copies cimport cast

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.importing import deferred
from tensorlib._core.sweep.graph_reader import gradient_place
from tensorlib.autograd.graph import GradientEdge
from tensorlib.ops.shape.joining import stack

# of a module that imports all batching rules
are_batches = deferred("tensorlib.autograd.pullback", "are_batches")
grads_of_examples = deferred("tensorlib.autograd.pullback", "grads_of_examples")


cdef int check_root(str name, Tensor x, int i) except -1:
    if not requires_grad(x):
        raise RuntimeError(
            f"{name}: element {i} of tensors does not require grad and does not have a grad_fn: "
            "call requires_grad_() on the leaves whose gradients are wanted before computing it "
            "from them, outside of no_grad and by operations that have a gradient")
    return 0


cdef Tensor first_gradient(str name, Tensor root, object gradient, int i):
    """The gradient that a sweep begins with: 1 for a tensor of one element, or what was given."""
    cdef Tensor g
    if isinstance(gradient, (list, tuple)) and len(gradient) == 1:       # as of several tensors
        gradient = gradient[0]
    if gradient is None:
        if root.numel_ != 1:
            raise RuntimeError(
                f"{name}: grad can be implicitly created only for scalar outputs; "
                f"the tensor has shape {tuple(root.shape)}, so pass its gradient")
        if KIND[root.type] == COMPLEX_KIND:
            raise RuntimeError(
                f"{name}: grad can be implicitly created only for real scalar outputs, but got "
                f"{root.dtype}; pass its gradient")
        g = scalar_tensor(1.0, root.type)
        return g if root.ndim_ == 0 else g.reshape(root.shape)
    if not isinstance(gradient, Tensor):
        raise TypeError(f"{name}: gradients can be either Tensors or None, but got "
                        f"{type_name(gradient)}")
    g = <Tensor>gradient
    if not same_shape(root, g):
        raise RuntimeError(
            f"{name}: Mismatch in shape: grad_output[{i}] has a shape of {tuple(g.shape)} and "
            f"output[{i}] has a shape of {tuple(root.shape)}")
    if (KIND[g.type] == COMPLEX_KIND) != (KIND[root.type] == COMPLEX_KIND):
        raise RuntimeError(
            f"{name}: Mismatch in dtype: grad_output[{i}] is {g.dtype} and output[{i}] is "
            f"{root.dtype}: both are complex, or none")
    return cast(g, root.type)


def backward(self, gradient=None, retain_graph=None, bint create_graph=False, inputs=None, *,
             no_grad_set=None):
    """Computes the gradients of this tensor and accumulates them into `.grad` of the leaves.

    gradient: that of something with respect to this tensor; 1 by default, for one element.
    retain_graph: keeps the saved values for another sweep (by default as `create_graph`).
    create_graph: records the sweep itself, for derivatives of higher order.
    inputs: accumulates into these tensors only; as by `retain_grad` into those that are not leaves.
    no_grad_set: tensors, or names of leaves, whose gradients are taken as zero; what only leads to
    them is not run.

    Shapes: `gradient` has that of this tensor, each `.grad` that of its leaf.
    Raises: RuntimeError for a tensor without a graph, a missing gradient, one of another shape or a
    complex one of real numbers, a second sweep through released values, a saved value that was
    overwritten; TypeError for a gradient that is not a Tensor.
    Source: Griewank and Walther, Evaluating Derivatives, second edition (SIAM, 2008).

    >>> x = tensorlib.tensor([1., 2.], requires_grad=True)
    >>> (x * x).backward(tensorlib.tensor([1., 10.]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    cdef Tensor x
    if not isinstance(self, Tensor):
        raise TypeError(f"backward: self must be a Tensor, not {type(self).__name__}")
    x = <Tensor>self
    check_root("backward", x, 0)
    run_backward((x,), (first_gradient("backward", x, gradient, 0),),
                 create_graph if retain_graph is None else retain_graph, create_graph,
                 None if inputs is None else as_kept(inputs), True,
                 as_no_grad_set("backward", no_grad_set, (x,)))


cdef tuple as_tensors(str name, object given):
    cdef tuple tensors = (given,) if isinstance(given, Tensor) else items(given, LARGEST)
    for x in tensors:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected Tensors, got {type_name(x)}")
    return tensors


cdef Tensor at_edge(str name, object edge):
    """What stands for the input whose gradient is computed at `edge`: the leaf, or a mere mark."""
    cdef Node node
    cdef Tensor x
    cdef Py_ssize_t slot = edge.output_nr
    if not isinstance(edge.node, Node):
        raise TypeError(f"{name}: the node of a GradientEdge must be a node of the graph, not "
                        f"{type(edge.node).__name__}")
    node = <Node>edge.node
    if not 0 <= slot < node.n_outputs:
        raise RuntimeError(f"{name}: the GradientEdge names output {slot} of {node.name()}, which "
                           f"has {node.n_outputs}")
    if node.is_leaf:
        return node.variable
    if name == "backward":
        raise RuntimeError("backward: inputs has a GradientEdge of a result, which has no .grad to "
                           "accumulate into; use autograd.grad")
    x = new_scalar(FLOAT32)
    x.grad_node, x.slot = node, <int>slot
    return x


cdef tuple as_inputs(str name, object given):
    cdef tuple tensors
    if isinstance(given, GradientEdge):
        given = (given,)
    if not isinstance(given, Tensor):
        given = [at_edge(name, x) if isinstance(x, GradientEdge) else x
                 for x in items(given, LARGEST)]
    tensors = as_tensors(name, given)
    if not tensors:
        raise RuntimeError(f"{name}: inputs argument cannot be empty")
    for i, x in enumerate(tensors):
        if not requires_grad(<Tensor>x):
            raise RuntimeError(f"{name}: one of the differentiated Tensors (number {i}) does not "
                               "require grad")
    return tensors


cdef tuple as_kept(object given):
    """The inputs of backward; those that are not leaves keep their gradients from now on."""
    cdef tuple tensors = as_inputs("backward", given)
    for x in tensors:
        x.retain_grad()
    return tensors


cdef set as_no_grad_set(str name, object given, tuple roots):
    """The (node, output) of the tensors, and of the leaves named, whose gradients are zero."""
    cdef set names, places
    cdef dict leaves = {}
    cdef Node node
    if given is None:
        return None
    cdef tuple values = (given,) if isinstance(given, (Tensor, str)) else items(given, LARGEST)
    for x in values:
        if not isinstance(x, (Tensor, str)):
            raise TypeError(f"{name}: no_grad_set takes Tensors and names of leaves, got "
                            f"{type_name(x)}")
    names = {x for x in values if isinstance(x, str)}
    places = {gradient_place(x) for x in values if isinstance(x, Tensor)}
    for node in nodes_below([gradient_node(x) for x in roots], [], 0, False)[0] if names else ():
        if node.is_leaf and node.variable.name is not None:
            leaves.setdefault(node.variable.name, []).append((node, 0))
    unknown = sorted(names.difference(leaves))
    if unknown:
        raise ValueError(f"{name}: no_grad_set names {unknown[0]!r}, but no leaf of this graph "
                         f"has this name; the named ones are {sorted(leaves)}")
    return places.union(*[leaves[found] for found in names])


cdef tuple as_gradients(str name, tuple roots, object given):
    cdef tuple gradients
    cdef int i
    if given is None:
        gradients = (None,) * len(roots)
    else:
        gradients = (given,) if isinstance(given, Tensor) else items(given, LARGEST)
    if len(gradients) != len(roots):
        raise RuntimeError(f"{name}: got {len(roots)} tensors and {len(gradients)} gradients")
    for i in range(len(roots)):
        check_root(name, roots[i], i)
    return tuple([first_gradient(name, roots[i], gradients[i], i) for i in range(len(roots))])


def backward_all(tensors, grad_tensors=None, retain_graph=None, bint create_graph=False,
                 *, inputs=None, no_grad_set=None):
    """Computes the gradients of several tensors in one sweep; as `Tensor.backward` for each.

    Raises: as `Tensor.backward`, and RuntimeError for another number of gradients than of tensors.

    >>> x = tensorlib.tensor(3., requires_grad=True)
    >>> tensorlib.autograd.backward([x * x, 2 * x])
    >>> x.grad
    tensor(8.)
    """
    cdef tuple roots = as_tensors("backward", tensors)
    run_backward(roots, as_gradients("backward", roots, grad_tensors),
                 create_graph if retain_graph is None else retain_graph, create_graph,
                 None if inputs is None else as_kept(inputs), True,
                 as_no_grad_set("backward", no_grad_set, roots))


cdef bint has_none(tuple found) noexcept:
    """Whether one of the gradients is None: `None in found` would compare the tensors with it."""
    for g in found:
        if g is None:
            return True
    return False


cdef tuple with_zeros(tuple found, tuple wanted, set zero):
    """The gradients, zeros for inputs at the places whose gradients are `zero`."""
    return tuple([x.new_zeros(x.shape) if g is None and gradient_place(x) in zero else g
                  for x, g in zip(wanted, found)])


cdef tuple grads_of_rows(object outputs, object inputs, object grad_outputs, object retain_graph,
                         bint create_graph, object allow_unused, bint materialize, object zero):
    """What `grad` gives for each row of `grad_outputs`, stacked."""
    cdef tuple given = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(
        grad_outputs or ())
    cdef set counts = {len(g) if isinstance(g, Tensor) and g.dim() else 0
                       for g in given if g is not None}
    cdef bint retain = create_graph if retain_graph is None else retain_graph
    cdef list rows
    if len(counts) != 1 or 0 in counts:
        raise RuntimeError("grad: is_grads_batched takes grad_outputs with one number of rows, 1 "
                           f"or more, along their first dims, got {sorted(counts)}")
    n = counts.pop()
    rows = [grad(outputs, inputs, [None if g is None else g[i] for g in given],
                 retain or i < n - 1, create_graph, True, allow_unused, False, materialize,
                 no_grad_set=zero) for i in range(n)]
    return tuple([None if found[0] is None else stack(found) for found in zip(*rows)])


cdef bint are_examples(object given) except -1:
    """Whether there are examples of a batch among what was given as gradients, as under `vmap`."""
    cdef list others = [g for g in (given if isinstance(given, (list, tuple)) else (given,))
                        if g is not None and not isinstance(g, Tensor)]
    if not others:
        return False
    return are_batches(others)


cdef tuple gradients_of_examples(tuple roots, tuple wanted, object given, bint create_graph,
                                 set zero):
    """What `grad` gives under `vmap` for gradients that are examples of a batch."""
    cdef list gradients = list(given) if isinstance(given, (list, tuple)) else [given]
    cdef int i
    for i in range(len(roots)):
        check_root("grad", roots[i], i)
        if i < len(gradients) and gradients[i] is None:
            gradients[i] = first_gradient("grad", roots[i], None, i)
    if zero is not None:
        raise RuntimeError("grad: no_grad_set is not taken with examples of a batch")
    return grads_of_examples(
        roots, wanted, gradients, create_graph,
        lambda each: grad(roots, wanted, each, True, create_graph, True, True))


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, bint create_graph=False,
         only_inputs=True, allow_unused=None, bint is_grads_batched=False,
         bint materialize_grads=False, *, no_grad_set=None):
    """The gradients of the sum of `outputs` (weighted by `grad_outputs`) for each of `inputs`.

    A tuple of tensors; nothing is accumulated. An input that the outputs do not depend on is an
    error, unless `allow_unused` (then None) or `materialize_grads` (then zeros). The gradients of
    `no_grad_set`, tensors or names of leaves, are taken as zero. An input may be a `GradientEdge`.
    `only_inputs` is taken for PyTorch's sake and changes nothing. Under `vmap`, `grad_outputs` may
    be examples of a batch: all go through the graph at once, and it is kept.

    Shapes: each gradient has that of its input, those in `grad_outputs` those of the outputs; with
    `is_grads_batched` all of these have one more dim in front, and there is a sweep for each row.
    Raises: as `Tensor.backward`; RuntimeError for an unused input or one that requires no gradient,
    and for rows of other numbers; ValueError for materialize_grads with allow_unused=False.

    >>> x = tensorlib.tensor(3., requires_grad=True)
    >>> tensorlib.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    cdef tuple roots, wanted, found, gradients
    cdef set zero
    if is_grads_batched:
        return grads_of_rows(outputs, inputs, grad_outputs, retain_graph, create_graph,
                             allow_unused, materialize_grads, no_grad_set)
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: expected allow_unused to be True or not passed when "
                         "materialize_grads=True, but got: allow_unused=False")
    inputs = (inputs,) if isinstance(inputs, (Tensor, GradientEdge)) else items(inputs, LARGEST)
    roots, wanted = as_tensors("grad", outputs), as_inputs("grad", inputs)
    zero = as_no_grad_set("grad", no_grad_set, roots)
    if grad_outputs is not None and are_examples(grad_outputs):
        found = gradients_of_examples(roots, wanted, grad_outputs, create_graph, zero)
    else:
        gradients = as_gradients("grad", roots, grad_outputs)
        found = run_backward(roots, gradients,
                             create_graph if retain_graph is None else retain_graph, create_graph,
                             wanted, False, zero)
    if not has_none(found):
        return found
    if zero:
        found = with_zeros(found, wanted, zero)
        if not has_none(found):
            return found
    if materialize_grads:
        if any(g is None and isinstance(x, GradientEdge) for x, g in zip(inputs, found)):
            raise RuntimeError("grad: materialize_grads cannot be used when the given input is a "
                               "GradientEdge: its shape is not known")
        return tuple([x.new_zeros(x.shape, requires_grad=create_graph) if g is None else g
                      for x, g in zip(wanted, found)])
    if not allow_unused:
        raise RuntimeError(
            "grad: one of the differentiated Tensors (number "
            f"{[g is None for g in found].index(True)}) appears to not have been used in the "
            "graph; set allow_unused=True if this is the desired behavior")
    return found
