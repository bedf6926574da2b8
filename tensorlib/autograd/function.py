"""`Function`: an operation with a forward and a backward written in Python, as in PyTorch."""

import functools
from inspect import signature
from types import FunctionType

from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.explained import explain
from tensorlib._core.base.warned import warn_of
from tensorlib._core.graph.op import Op
from tensorlib._core.interpreters.stack import offered_as
from tensorlib._core.sweep.graph_reader import input_facts
from tensorlib._core.sweep.python_nodes import (
    custom_node,
    is_forward_mode,
    mark_written,
    payload_of,
    rewrite_history,
    saved_tensors,
    set_history,
    view_of_input,
    wanted_inputs,
)
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd import function_vmap
from tensorlib.autograd.modes import is_grad_enabled, no_grad
from tensorlib.autograd.batch import Batched, outside_of_all
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.publish import defaults as defaults_of

NO_JVP = ("You must implement the jvp function for custom autograd.Function to use it with "
          "forward mode AD.")


class FunctionCtx:
    """The `ctx` by which the forward of a `Function` passes values to its backward."""

    def __init__(self, needs_input_grad=()):
        self.needs_input_grad = needs_input_grad
        self.materialize_grads = True
        self._to_save = self._for_forward = self._dirty = self._fixed = ()
        self._node = self._layout = None       # of the saved values, while a rule of the user runs

    def save_for_backward(self, *tensors):
        """Saves tensors (or None) for the backward, which raises if one of them is overwritten."""
        self._to_save = checked_saved("save_for_backward", tensors)

    def save_for_forward(self, *tensors):
        """Saves tensors (or None) for `jvp`, with the same check."""
        self._for_forward = checked_saved("save_for_forward", tensors)

    def mark_dirty(self, *tensors):
        """Marks inputs that the forward wrote to; each must be returned."""
        self._dirty = checked_tensors("mark_dirty", tensors)

    def mark_non_differentiable(self, *tensors):
        """Marks outputs that have no gradient."""
        self._fixed = checked_tensors("mark_non_differentiable", tensors)

    def set_materialize_grads(self, value):
        """Whether the backward gets zeros (the default) or None for outputs without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self):
        """The saved tensors in order; `backward` and `jvp` check that they were not overwritten."""
        if self._node is None:
            return self._to_save
        kept, restored = saved_tensors(self._node), []
        for place, slot in self._layout:
            x = None if place is None else kept[place]
            if slot is not None:     # an output, which is linked to the graph only now
                x = x.detach()
                set_history(self._node, slot, x)
            restored.append(x)
        return tuple(restored)

    def kept_by(self, node):
        """The saved tensors, as `grad_fn.saved_tensors` returns them outside the rules."""
        before = self._node, self._layout
        self._node, self._layout = node, self._backward_layout
        try:
            return self.saved_tensors
        finally:
            self._node, self._layout = before


def checked_saved(name, tensors):
    """Tensors (or None) that a forward saves. Raises TypeError for something else."""
    for i, x in enumerate(tensors):
        if x is not None and not isinstance(x, Tensor):
            raise TypeError(f"{name} can only save variables, but argument {i} is of type "
                            f"{type(x).__name__}")
    return tensors


def checked_tensors(name, tensors):
    """Tensors that a forward marks. Raises RuntimeError for something else."""
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{name}: takes Tensors, but argument {i} is {type_name(x)}")
    return tensors


class Function:
    """An operation of your own: subclass it, write `forward` and `backward`, call `apply`.

    `forward(ctx, *args)` runs outside the graph; `backward(ctx, *grads)` gets a gradient for each
    output and returns one, or None, for each of `args`. Made of operations on `ctx.saved_tensors`
    it can itself be differentiated. With `setup_context(ctx, inputs, output)` the forward takes no
    `ctx`, and its defaults are among the inputs. `jvp(ctx, *tangents)` returns the tangents of the
    outputs. Within `func.vmap` it runs example by example, unless it has `generate_vmap_rule =
    True`, which runs all three on the whole batch, or a `vmap(info, in_dims, *args)` of its own,
    which returns the outputs and their dims.

    Raises: NotImplementedError for a forward, backward or jvp that is asked for and not written;
    RuntimeError for the call of an instance, and where backward returns another number of gradients
    than there are arguments, or jvp than there are outputs.

    >>> class Cube(tensorlib.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * g * x ** 2
    >>> x = tensorlib.tensor(2., requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    generate_vmap_rule = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._op = Op(cls.__name__, cls.__doc__ or "", ("inputs",), variadic=True,
                     linearity="function", node_name=f"{cls.__name__}Backward")
        cls._op.add_rule(None, functools.partial(run_backward, cls), names=("node", "g"))
        cls._op.add_tangent(functools.partial(run_jvp, cls), (), linearity="function")

    def __init__(self, *args, **kwargs):
        name = type(self).__name__
        warn_of(f"{name}: a Function needs no instance; call {name}.apply(...)",
                DeprecationWarning, level=2)

    def __call__(self, *args, **kwargs):
        name = type(self).__name__
        raise RuntimeError(f"{name}: a Function is not called; call {name}.apply(...) with a "
                           "static forward")

    @staticmethod
    def forward(*args, **kwargs):
        """The result: forward(ctx, *args), or forward(*args) beside `setup_context`."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Saves what the backward needs, apart from the forward."""

    @staticmethod
    def backward(ctx, *grads):
        """The gradients of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx, *tangents):
        """The tangents of the outputs from those of the inputs."""
        raise NotImplementedError(NO_JVP)

    @staticmethod
    def vmap(info, in_dims, *args):
        """The outputs for a batch of `info.batch_size` examples, and the dims where they have it.

        `in_dims` says where each argument has it, None for what the examples share.
        """
        raise NotImplementedError("vmap: a Function without one runs example by example")

    # looked up at each call, since rules may be replaced

    @classmethod
    def _gradient_rule(cls):
        """`backward`, or `vjp` where only that is written."""
        return cls.backward if cls.backward is not Function.backward else cls.vjp

    @classmethod
    def _sets_up(cls):
        """Whether `setup_context` is written, so that the forward takes no `ctx`."""
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _has_vmap(cls):
        """Whether `vmap` is written."""
        return cls.vmap is not Function.vmap

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs the forward and records it. Keywords are arguments in the places of these names."""
        if kwargs or cls._sets_up():
            args = in_order(cls, args, kwargs)
        if Batched in map(type, args):
            return function_vmap.apply_to_batch(cls, args, BatchedFunction)
        done = offered_as("function", cls, args)
        if done is not NotImplemented:
            return done
        ctx = FunctionCtx(tuple(isinstance(x, Tensor) and x.requires_grad for x in args))
        with no_grad():
            output = function_vmap.run_forward(cls, ctx, args)
        several = isinstance(output, (tuple, list))
        outputs = recorded(cls, ctx, args, list(output) if several else [output])
        return type(output)(outputs) if several else outputs[0]


def in_order(cls, args, kwargs):
    """The arguments by position: those by keyword and, beside `setup_context`, the defaults too.

    Raises: TypeError for a keyword that has no place among them.
    """
    sets_up = cls._sets_up()
    names, defaults = positional(cls.forward, 0 if sets_up else 1)       # after ctx
    if not kwargs and len(args) >= len(names):
        return args
    for name in kwargs:
        if name not in names[len(args):]:
            what = "multiple values for" if name in names else "an unexpected keyword"
            raise TypeError(f"{cls.__name__}.forward() got {what} argument {name!r}")
    found = list(args)
    for name in names[len(args):]:
        if name in kwargs:
            found.append(kwargs.pop(name))
        elif sets_up and name in defaults:
            found.append(defaults[name])
        elif kwargs:
            raise TypeError(f"{cls.__name__}.forward() missing required argument {name!r}")
        else:
            break                                                        # as the forward will say
    return tuple(found)


def positional(function, skipped):
    """The names of the positional parameters after those skipped, and the defaults."""
    if type(function) is FunctionType and not hasattr(function, "__wrapped__"):
        code = function.__code__
        return code.co_varnames[skipped:code.co_argcount], defaults_of(function)
    placed = [p for p in signature(function).parameters.values()
              if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return ([p.name for p in placed[skipped:]],
            {p.name: p.default for p in placed if p.default is not p.empty})


def recorded(cls, ctx, args, outputs):
    """The outputs of a forward, linked to a new node where an input requires grad."""
    slots = {id(x): k for k, x in enumerate(outputs) if isinstance(x, Tensor)}
    dirty, fixed = ({id(x) for x in marked} for marked in (ctx._dirty, ctx._fixed))
    if not dirty <= set(slots):
        raise RuntimeError(
            f"{cls.__name__}: Some elements marked as dirty during the forward method were not "
            "returned as output. The inputs that are modified inplace must all be outputs of the "
            "Function.")
    for x in ctx._dirty:
        mark_written(cls.__name__, x)
    given = {id(x) for x in args}
    returned = [
        outward(x, () if id(x) in fixed else args) if isinstance(x, Tensor) and id(x) not in dirty
        and (id(x) in given or x.requires_grad or x._base is not None) else x for x in outputs]
    if not (is_grad_enabled() and any(ctx.needs_input_grad)):
        return returned
    ctx._shapes = [(x.shape, x.dtype) if isinstance(x, Tensor) else None for x in outputs]
    ctx._places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
    ctx._n_args = len(args)
    own = {key: k for key, k in slots.items() if key not in given or key in dirty}
    saved = []
    ctx._backward_layout = laid_out(ctx._to_save, own, saved)
    ctx._jvp_layout = laid_out(ctx._for_forward if is_forward_mode() else (), own, saved)
    tensors = tuple(args[i] for i in ctx._places)
    node = custom_node(cls._op, tensors, tuple(saved), len(outputs), ctx)
    ctx._to_save = ctx._for_forward = ctx._dirty = ()
    for k, x in enumerate(returned):
        if id(outputs[k]) in dirty:
            rewrite_history(node, k, x)
        elif isinstance(x, Tensor) and id(outputs[k]) not in fixed:
            set_history(node, k, x)
    ctx._fixed = ()
    return returned


def outward(x, args):
    """An output as a view of the argument whose memory it shares, else as a tensor by itself."""
    for a in args:
        if isinstance(a, Tensor) and (
                a is x or x._base is not None and (x._base is a or x._base is a._base)):
            return view_of_input(x, a)
    return x.detach()


def laid_out(tensors, own, saved):
    """The index in `saved` of each of the tensors, which are added, and the output that it is.

    An output, which `own` numbers, is saved without its history: the node would keep itself alive.
    """
    layout = []
    for x in tensors:
        slot = own.get(id(x))
        layout.append((None if x is None else len(saved), slot))
        if x is not None:
            saved.append(x if slot is None else x.detach())
    return layout


# ---- what the node runs --------------------------------------------------------------------------

def run_backward(cls, node, g):
    """The gradients of the tensors among the arguments, from the user's backward."""
    ctx = payload_of(node)
    gs = g if isinstance(g, tuple) else (g,)
    if ctx.materialize_grads:
        gs = tuple(
            FUNCTIONS["zeros"](like[0], dtype=like[1])
            if x is None and like is not None and has_gradients(like[1]) else x
            for x, like in zip(gs, ctx._shapes))
    wanted = dict(zip(ctx._places, wanted_inputs(node)))
    ctx.needs_input_grad = tuple(wanted.get(i, False) for i in range(ctx._n_args))
    ctx._node, ctx._layout = node, ctx._backward_layout
    try:
        with outside_of_all():          # saved values and gradients of nodes are whole batches
            grads = cls._gradient_rule()(ctx, *gs)
    finally:
        ctx._node = None
    return in_places(cls, ctx, grads if isinstance(grads, tuple) else (grads,))


def in_places(cls, ctx, grads):
    """One gradient for each tensor. Raises RuntimeError for a wrong number of them."""
    name, n = cls._op.node_name, ctx._n_args
    if len(grads) < n or any(x is not None for x in grads[n:]):
        raise RuntimeError(f"function {name} returned an incorrect number of gradients (expected "
                           f"{n}, got {len(grads)})")
    for i, x in enumerate(grads):
        if x is not None and i < n and i not in ctx._places:
            raise RuntimeError(
                f"function {name} returned a gradient different than None at position {i + 1}, but "
                "the corresponding forward input was not a Variable")
    return tuple(grads[i] for i in ctx._places)


def run_jvp(cls, node, tangents):
    """The tangents of the outputs, a tuple, from those (or None) of the tensors given."""
    if cls.jvp is Function.jvp:
        raise NotImplementedError(f"{cls.__name__}: {NO_JVP}")
    ctx = payload_of(node)
    if ctx.materialize_grads:
        tangents = tuple(
            FUNCTIONS["zeros"](like[0], dtype=like[1])
            if x is None and has_gradients(like[1]) else x
            for x, like in zip(tangents, [input_facts(node, i) for i in range(len(tangents))]))
    by_place = dict(zip(ctx._places, tangents))
    ctx._node, ctx._layout = node, ctx._jvp_layout
    try:
        with outside_of_all():
            moved = cls.jvp(ctx, *[by_place.get(i) for i in range(ctx._n_args)])
    finally:
        ctx._node = None
    moved = moved if isinstance(moved, tuple) else (moved,)
    if len(moved) != len(ctx._shapes):
        raise RuntimeError(
            f"{cls.__name__}'s jvp returned an invalid number of forward gradients (expected "
            f"{len(ctx._shapes)} but got {len(moved)})")
    return tuple(map(functools.partial(tangent_like, cls), range(len(moved)), moved, ctx._shapes))


def tangent_like(cls, k, tangent, like):
    """A tangent that a user's jvp returned, in the dtype of output `k`.

    Raises: RuntimeError for something else than a Tensor (or None) of the output's shape.
    """
    if tangent is None:
        return None
    if not isinstance(tangent, Tensor):
        raise RuntimeError(f"{cls.__name__}'s jvp: expected a Tensor or None for output {k}, got "
                           f"{type_name(tangent)}")
    if like is None or tangent.shape != like[0]:
        expected = "None" if like is None else f"a tangent of shape {tuple(like[0])}"
        raise RuntimeError(f"{cls.__name__}'s jvp: expected {expected} for output {k}, got one of "
                           f"shape {tuple(tangent.shape)}")
    return tangent if tangent.dtype == like[1] else tangent.to(like[1])


# ---- batches -------------------------------------------------------------------------------------

class InplaceFunction(Function):
    """`Function` under an older name, with a flag for rules that write over what they are given.

    >>> class Double(tensorlib.autograd.function.InplaceFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.mark_dirty(x)
    ...         return x.mul_(2)
    >>> Double.apply(tensorlib.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class BatchedFunction(Function):
    """A Function on all examples of a batch: `vmap` of its forward, its backward and its jvp."""

    generate_vmap_rule = True            # for enclosing batches
    forward = staticmethod(function_vmap.forward)
    backward = staticmethod(function_vmap.backward)
    jvp = staticmethod(function_vmap.jvp)


# ---- once_differentiable -------------------------------------------------------------------------

def once_differentiable(function):
    """A backward that is not itself recorded: differentiating its results is an error.

    To be placed below `@staticmethod`, above `def backward`.

    Raises: RuntimeError in a sweep through the results.
    """
    @functools.wraps(function)
    def wrapper(ctx, *gs):
        with no_grad():
            grads = function(ctx, *gs)
        if not is_grad_enabled():
            return grads
        origins = tuple(x for x in (*gs, *ctx.saved_tensors)
                        if isinstance(x, Tensor) and x.requires_grad)
        several = isinstance(grads, tuple)
        marked = tuple(x.detach() if isinstance(x, Tensor) else x
                       for x in (grads if several else (grads,)))
        if origins:
            node = custom_node(_ONCE, origins, (), len(marked), None)
            for k, x in enumerate(marked):
                if isinstance(x, Tensor):
                    set_history(node, k, x)
        return marked if several else marked[0]
    return wrapper


def _refuse(node, g):
    """Raises: RuntimeError, always."""
    raise RuntimeError(
        "trying to differentiate twice a function that was marked with @once_differentiable")


_ONCE = Op("once_differentiable", "The results of a backward that has none of its own.",
           ("inputs",), variadic=True)
_ONCE.add_rule(None, _refuse)

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]

explain(vars(), __all__)
