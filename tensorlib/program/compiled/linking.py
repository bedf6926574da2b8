"""How the results of a captured function are connected to the caller's graph."""

from collections.abc import Iterable
from typing import Any

from tensorlib._core.sweep.graph_reader import savers_above
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.capture.capturing import ReplayRecorder
from tensorlib.program.compiled.chains import has_gradient, runs_code_of_users
from tensorlib.program.differentiation.backward import dependents
from tensorlib.program.guards.signatures import storage_of
from tensorlib.program.ir.model import Variable, inner_calls
from tensorlib.program.run.plan import Unplanned


def check_kept_gradients(recorder: ReplayRecorder, found: list[Any]) -> None:
    """Raises: Unplanned if a result shares the memory of a `.grad` that the call sets, which is not
    a result of a replay."""
    kept = {storage_of(x.value.grad) for x in recorder.grads if x.value.grad is not None}
    if any(isinstance(x, Tensor) and x.numel() and storage_of(x) in kept for x in found):
        raise Unplanned("it returns a .grad that it sets, or a view of it; clone it")


def leaves_made(recorder: ReplayRecorder, tensors: tuple[Tensor, ...],
                found: list[Any]) -> dict[int, Variable]:
    """The leaves, by id, that the call made (as transforms do) and that results depend on. Nothing
    else refers to them, but sweeps go there and need the path. Raises: Unplanned."""
    around = {id(x) for x in (*tensors, *(x.value for x in recorder.program.persistables()))}
    leaves = savers_above([x for x in found if isinstance(x, Tensor) and x.requires_grad
                           and x.grad_fn is not None], recorder.begun)[-1]
    made = [x for x in leaves if id(x) not in around]
    if not all(id(x) in recorder.known for x in made):
        raise Unplanned("its result leads to a leaf of which it is not known what made it")
    return {id(x): recorder.variable_of(x) for x in made}


def is_linked(recorder: ReplayRecorder, tensors: tuple[Tensor, ...], slots: list[Any],
              found: list[Any], own: Iterable[Variable]) -> bool:
    """Whether a result has a gradient. Raises: Unplanned if a result is a new leaf that requires
    one, if it has none where a replay would give it one, or if the sources of its gradient are
    unknown."""
    inputs, lasting = recorder.program.inputs, recorder.program.persistables()
    sources = [x for x, like in zip((*inputs, *lasting), (*tensors, *(x.value for x in lasting)))
               if like.requires_grad]
    depends = dependents(recorder.block.ops, [*sources, *own])
    given = {*inputs, *lasting}
    linked = False
    for x, tensor in zip(slots, found):
        if type(x) is Variable and x not in given:
            if (x in depends) != tensor.requires_grad:
                raise Unplanned("what it returns requires a gradient in another way than a replay "
                                "would give it")
            linked = linked or tensor.requires_grad
    if linked and any(runs_code_of_users(inner) and has_gradient(inner)
                      for call in recorder.block.ops for block in call.blocks()
                      for inner in inner_calls(block)):
        raise Unplanned("an autograd.Function in a branch or a loop is run once more for its "
                        "gradient, which is asked for after the call: what it reads may be another "
                        "then")
    return linked
