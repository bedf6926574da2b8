"""Hooks that a captured function registers on gradients, and that run in sweeps after the call.

A replay registers the same objects. So a hook must not refer to objects that each call makes anew.
"""

import dis
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from tensorlib._core.sweep.graph_reader import was_made_since
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import OpCall

ATOMS = (int, float, complex, str, bytes, bool, type(None))


class PutHooks:
    """The hooks of a capture. all: each one with its handle."""

    def __init__(self, recorder: Any):
        self.recorder = recorder
        self.all: list[tuple[Any, Any]] = []
        self.cells: list[tuple[Any, Any]] = []       # cells of closures, each with its contents

    def put(self, x: Tensor, hook: Any, handle: Any) -> None:
        """Records a hook, or with None that the tensor retains its gradient. Raises: CaptureError.
        """
        self.require_same(hook)
        self.all.append((hook, handle))
        self.recorder.note(OpCall("hook", {"input": self.recorder.variable_of(x)}, (),
                                  {"hook": hook}, user_line()))

    def require_same(self, hook: Any) -> None:
        """Raises: CaptureError for a hook that is a new object in each call. If that can only be
        known after the call, the capture is dropped (`why_not`)."""
        waiting, seen = [hook], set()
        while waiting:
            x = waiting.pop()
            if type(x) in ATOMS or id(x) in seen:
                continue
            seen.add(id(x))
            if isinstance(x, FunctionType):
                if any(op.opname in ("STORE_DEREF", "DELETE_DEREF")
                       for op in dis.get_instructions(x)):
                    raise CaptureError("a hook that changes variables of the function around it "
                                       f"can't be captured, {user_line()}")
                held = [(cell, held_by(cell)) for cell in x.__closure__ or ()]
                self.cells += held
                waiting += (y for _, y in held)
                waiting += (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values(),
                            *vars(x).values())
            elif type(x) is MethodType:
                waiting += (x.__self__, x.__func__)
            elif type(x) is partial:
                waiting += (x.func, *x.args, *x.keywords.values())
            elif id(x) in self.recorder.reads.covered or (
                    isinstance(x, Tensor) and was_made_since(x, self.recorder.epoch)):
                raise CaptureError("a hook that holds an argument, or a tensor which the function "
                                   f"made, can't be captured, {user_line()}")
            else:
                self.recorder.reads.require_old(x, "a hook holds what each call makes anew")

    def why_not(self) -> str:
        """Why, as known after the call, a replay can't register them; or ""."""
        if any(held_by(cell) is not held for cell, held in self.cells):
            return "a hook reads a variable of the function that is set after it is put"
        if any(handle is not None and handle.key not in handle.hooks for _, handle in self.all):
            return "a hook is taken off again"
        return ""


def held_by(cell: Any) -> Any:
    """The contents of a cell; the cell itself if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell
