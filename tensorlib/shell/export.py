"""`torch.export`: what a module does with arguments of some shapes, without the code of the module.

>>> layer = tensorlib.nn.Linear(2, 1)
>>> exported = tensorlib.export.export(layer, (tensorlib.ones(3, 2),))
>>> x = tensorlib.randn(3, 2)
>>> tensorlib.equal(exported.module()(x), layer(x))
True
"""

from collections.abc import Callable
from typing import Any

from tensorlib import Tensor, nn
from tensorlib._core.base.explained import explain
from tensorlib.program import Program, trace

__all__ = ["ExportedProgram", "export"]


class ExportedProgram:
    """What `export` gives: the program, and the state that the module had.

    The program (`tensorlib.program`) is `program`; it shares its parameters with the module.
    """

    def __init__(self, module: nn.Module, program: Program, example_inputs: Any) -> None:
        self.program, self.example_inputs = program, example_inputs
        self.state_dict: dict[str, Tensor] = module.state_dict()

    def module(self) -> nn.Module:
        """A module that runs the program, for arguments of the shapes that were exported.

        What it gives has no gradient, as what any program gives; `compile` keeps gradients.
        """
        return Exported(self.program)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.program(args, kwargs)

    def __str__(self) -> str:
        return f"ExportedProgram:\n{self.program}"


class Exported(nn.Module):
    """A module of which only the operations are left."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the exported module gives for these arguments."""
        return self.program(args, kwargs)


def export(mod: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
           dynamic_shapes: Any = None, strict: bool = False,
           preserve_module_call_signature: tuple[str, ...] = ()) -> ExportedProgram:
    """The program of a call of `mod`, for arguments of the same shapes and dtypes.

    Raises: NotImplementedError for `dynamic_shapes`; CaptureError where what the module does
    depends on elements; TypeError for what is not a module.
    """
    if not isinstance(mod, nn.Module):
        raise TypeError(f"export: takes a module, got {type(mod).__name__}")
    if dynamic_shapes is not None:
        raise NotImplementedError("export: programs have the shapes of the example; "
                                  "tensorlib.compile takes arguments of any")
    call: Callable[..., Any] = lambda args, kwargs: mod(*args, **kwargs)    # noqa: E731
    return ExportedProgram(mod, trace(call, tuple(args), kwargs or {}), (args, kwargs or {}))


explain(vars(), __all__)
