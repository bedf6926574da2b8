"""`call` and `build_grad_op`: calls of operations as records, and their backward operations."""

from typing import Any

from tensorlib._core.base.dtypes import dtype, has_gradients
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.settings import Held
from tensorlib._core.base.shape import listed
from tensorlib._core.graph.modes import _set_grad_enabled, is_grad_enabled
from tensorlib._core.graph.op import Op, find
from tensorlib._core.interpreters.foreign import is_tensor
from tensorlib._core.sweep.python_nodes import linked_alias, sweep_inside
from tensorlib._core.sweep.rules import gradients
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.compose import ARGUMENT
from tensorlib.ops.declare import FUNCTIONS, resolved, run_resolved


class Call:
    """One run of an operation: `op`, `inputs`, `outputs` and `attributes` by name.

    It is a source for the evaluation of rules, as a node of the graph is. `likes` are the shapes
    and dtypes of all inputs, if only the inputs that the gradient needs are kept.
    """

    __slots__ = ("op", "inputs", "outputs", "attributes", "likes")

    def __init__(self, op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
                 attributes: dict[str, Any], likes: list[Any] | None = None):
        self.op, self.inputs, self.outputs = op, inputs, outputs
        self.attributes, self.likes = attributes, likes

    def __repr__(self) -> str:
        return (f"Call(op={self.op!r}, inputs={self.inputs!r}, outputs={self.outputs!r}, "
                f"attributes={self.attributes!r})")

    def input(self, i: int) -> Any:
        """The tensor with this number among all that were given."""
        return self.inputs[0][i] if self.op.variadic else self.inputs[i]

    def output(self, k: int) -> Any:
        """The output with this number."""
        return self.outputs[k]

    @property
    def facts(self) -> list[tuple[Any, Any]]:
        """For each tensor that was given: its shape and dtype."""
        if self.likes is None:
            return [(x.shape, x.dtype) for x in flat(self.inputs)]
        return self.likes[0] if self.op.variadic else self.likes


class GradOp:
    """The backward operation of one call; called with output gradients it returns input gradients.

    `op` is the Op, `needs` names its inputs, of which `inputs` holds those that the call has, and
    `outputs` its results; `attributes` are the forward's. `likes` are the shape and dtype of each
    input, where the gradient follows from rules. An operation on a sequence of tensors has a
    sequence of gradients; one that cuts a tensor into any number of parts takes theirs as a tuple.
    """

    __slots__ = ("op", "needs", "inputs", "outputs", "attributes", "likes")

    def __init__(self, op: Op, needs: tuple[str, ...], inputs: tuple[Any, ...],
                 outputs: tuple[str, ...], attributes: dict[str, Any], likes: list[Any] | None):
        self.op, self.needs, self.inputs, self.outputs = op, needs, inputs, outputs
        self.attributes, self.likes = attributes, likes

    def __repr__(self) -> str:
        return f"GradOp({self.op.name}: {', '.join(self.needs)} -> {', '.join(self.outputs)})"

    def __call__(self, *grads: Any) -> tuple[Any, ...]:
        wanted = len(self.needs) - len(self.inputs)
        if len(grads) != wanted:
            raise TypeError(f"{self.op.name}: takes {wanted} output gradients, got {len(grads)}")
        facts = {} if self.likes is None else {"likes": self.likes}
        return self.op(*self.inputs, *grads, **self.attributes, **facts)


def call(name: str | Op, *inputs: Any, **attributes: Any) -> Call:
    """Runs an operation, by its name or its record, and returns the call as a record.

    The record names the operation that ran: a call of "max" without a `dim`, for example, runs
    "amax".

    >>> from tensorlib import ops
    >>> found = ops.call("sum", tensorlib.tensor([[1., 2.], [3., 4.]]), dim=0)
    >>> found.outputs, found.attributes["dim"]
    ((tensor([4., 6.]),), 0)
    """
    op = find(name) if isinstance(name, str) else getattr(name, "op", name)
    if not isinstance(op, Op):
        raise TypeError(f"call: takes an operation or its name, not {type(name).__name__}")
    if len(inputs) != len(op.arguments):
        raise TypeError(
            f"call: {op.name} takes {', '.join(op.arguments)}; got {len(inputs)} inputs")
    if unknown := set(attributes) - set(op.attributes):
        raise TypeError(f"call: {op.name} has no attribute {sorted(unknown)[0]!r}; it has "
                        f"{', '.join(op.attributes) or 'none'}")
    if op.convert is not None:
        op, inputs, attributes = resolved(op, inputs, attributes)
    result = run_resolved(op, inputs, attributes)
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return Call(op, tuple(as_input(x, outputs[0]) for x in inputs), outputs,
                {**dict(zip(op.attributes, op.defaults)), **attributes})


def as_input(x, output):
    """An input as it is recorded: a number as a tensor, a sequence of tensors as a tuple."""
    if isinstance(x, (int, float, complex)):
        return FUNCTIONS["tensor"](x, dtype=output.dtype)
    return listed(x) if isinstance(x, (list, tuple)) else x


def build_grad_op(call: Call) -> GradOp:
    """The backward operation of a call; called with output gradients it returns input gradients.

    Raises: RuntimeError for an operation without a gradient.

    >>> from tensorlib import ops
    >>> back = ops.build_grad_op(ops.call("tanh", tensorlib.zeros(2)))
    >>> back.needs, back.outputs
    (('out', 'grad_out'), ('grad_input',))
    >>> back(tensorlib.ones(2))
    (tensor([1., 1.]),)
    """
    if not isinstance(call, Call):
        raise TypeError(f"build_grad_op: takes what ops.call returns, not {type(call).__name__}")
    op = call.op
    if op.gradient is None:
        raise RuntimeError(f"build_grad_op: {op.name} has no gradient")
    known = {**dict(zip(op.outputs, call.outputs)), **dict(zip(op.arguments, call.inputs))}
    likes = None
    if op.linearity != "composite":
        likes = [[(y.shape, y.dtype) for y in x] if isinstance(x, tuple) else (x.shape, x.dtype)
                 for x in call.inputs]
    return GradOp(op.gradient, op.needs, tuple(known[n] for n in op.needs if n in known),
                  op.gradient.outputs, call.attributes, likes)


# ---- the backward operation of an operation ------------------------------------------------------

def needs_of(op):
    """The inputs and outputs that the gradient of an operation needs, then its output gradients."""
    if not op.differentiable:
        return ()
    if op.linearity == "composite":
        kept = op.arguments
    else:
        named = {name for rule in op.rules if rule is not None for name in rule.names}
        kept = tuple(name for name in (*op.arguments, *op.outputs) if name in named)
    return (*kept, *output_gradients(op))


def output_gradients(op):
    """The names of the gradients of an operation's outputs.

    They are `grad_OUTPUT`, with further prefixes if an input has that name, as in a backward
    operation.
    """
    found = []
    for name in op.outputs:
        name = f"grad_{name}"
        while name in op.arguments or name in found:
            name = f"grad_of_{name}"
        found.append(name)
    return tuple(found)


def gradient_of(op):
    """The backward operation, composed of operations, so that it can be differentiated too."""
    needs = needs_of(op)
    places = {name: i for i, name in enumerate(needs)}
    inputs = [places.get(name) for name in op.arguments]      # where each is among the values
    outputs = [places.get(name) for name in op.outputs]
    first = len(needs) - len(op.outputs)                      # of the gradients

    def gradient(*values, likes=None, wanted=None, **attributes):
        gs = checked_gradients(op, needs, first, values)
        known = Call(op, tuple([None if i is None else values[i] for i in inputs]),
                     tuple([None if i is None else values[i] for i in outputs]),
                     attributes, checked_likes(op, likes))
        facts = known.facts
        wanted = [has_gradients(dtype) and (wanted is None or wanted[i])
                  for i, (_, dtype) in enumerate(facts)]
        if any_is_given(gs):
            grads = tuple(gradients(known, op, wanted, gs[0] if len(gs) == 1 else gs,
                                    is_grad_enabled()))
        else:
            grads = tuple(FUNCTIONS["zeros"](shape, dtype=dtype) if is_wanted else None
                          for is_wanted, (shape, dtype) in zip(wanted, facts))
        return (grads,) if op.variadic else grads

    def composite_gradient(*values, wanted=None, **attributes):
        gs = checked_gradients(op, needs, first, values)
        if "wanted" in op.attributes:        # a gradient itself, which may be needed in part only
            attributes["wanted"] = tuple(g is not None for g in flat(gs))
        return swept(op, tuple(values[i] for i in inputs), attributes, gs, wanted)

    own = {**dict(zip(op.attributes, op.defaults)), "wanted": None}
    attributes, defaults = tuple(own), tuple(own.values())
    if op.linearity == "composite":
        gradient = composite_gradient
    else:
        attributes, defaults = (*attributes, "likes"), (*defaults, None)
    made = Op(f"{op.name}_gradient", f"The gradients of the inputs of `{op.name}`.", needs,
              attributes, defaults, tuple(f"grad_{name}" for name in op.arguments),
              forward=gradient, linearity="composite", pure=op.pure,
              family=op.family)
    made.function = gradient
    return made


def checked_gradients(op, needs, first, values):
    """The gradients among the arguments of a backward operation, those from `first` on.
    Raises: TypeError."""
    if len(values) != len(needs):
        raise TypeError(f"{op.name}_gradient: takes {', '.join(needs)}; got {len(values)} values")
    gs = values[first:]
    for name, g in zip(needs[first:], gs):
        if g is None or type(g) is Tensor:
            continue
        if not all(x is None or is_tensor(x) for x in flat([g])):
            raise TypeError(f"{op.name}_gradient: {name} must be a Tensor or None, not "
                            f"{type_name(g)}")
    return gs


def any_is_given(gs):
    """Whether one of the gradients, some of which may be sequences, is not None."""
    for g in gs:
        if type(g) is Tensor or g is not None and any(x is not None for x in flat([g])):
            return True
    return False


def checked_likes(op, likes):
    """The `likes` of a backward operation: shape and dtype of each input. Raises: TypeError."""
    given = likes if isinstance(likes, (list, tuple)) else ()
    if len(given) != len(op.arguments) or not all([
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], dtype)
            for pair in (given[0] if op.variadic else given)]):
        raise TypeError(f"{op.name}_gradient: likes must be the shape and dtype of each input, got "
                        f"{likes!r}")
    return likes


def swept(op, inputs, attributes, gs, wanted=None):
    """The gradients of a composed function, by running it again and sweeping its graph."""
    before = is_grad_enabled()
    with Held((_set_grad_enabled,), (True,)):
        own = tuple(tuple(inner_input(y) for y in x) if isinstance(x, tuple) else inner_input(x)
                    if wanted is None or before or wanted[i] else x for i, x in enumerate(inputs))
        result = run_resolved(op, own, attributes)
    roots = [(x, g) for x, g in zip(flat([result]), flat(gs))
             if g is not None and isinstance(x, Tensor) and x.requires_grad]
    inputs = tuple(x for x in flat(own) if isinstance(x, Tensor) and x.requires_grad)
    found = sweep_inside(tuple(x for x, _ in roots), tuple(g for _, g in roots), inputs, before)
    grads = {id(x): x.new_zeros(x.shape) if g is None else g for x, g in zip(inputs, found)}
    return tuple(tuple(grads.get(id(y)) for y in x) if isinstance(x, tuple) else grads.get(id(x))
                 for x in own)


def flat(values):
    """The values, with nested sequences flattened."""
    found = []
    for x in values:
        found += flat(x) if isinstance(x, (tuple, list)) else [x]
    return found


def inner_input(x):
    """An input that requires grad, linked to the original one if that does."""
    if not isinstance(x, Tensor) or not has_gradients(x.dtype):
        return x
    return linked_alias(ARGUMENT, x) if x.requires_grad else x.detach().requires_grad_()


def packed_gradient(rule):
    """The gradient rule `rule` with a result that is contiguous.

    A rule that reads elements can't run on `meta` during planning (`program/run/plan.py`), where
    later calls need the layout of its result.
    """
    def packed(*values):
        return rule(*values).contiguous()

    packed.names = getattr(rule, "names", None) or (
        rule.__code__.co_varnames[:rule.__code__.co_argcount])
    packed.is_packed = True
    return packed
