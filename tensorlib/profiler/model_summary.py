"""A model as a table: its layers with output shapes, parameters and multiplications."""

from typing import Any, NamedTuple

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd import no_grad
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.profiler.table import bytes_text
from tensorlib.utils.flop_counter import FlopCounterMode


class Layer(NamedTuple):
    """A module of a model. Its figures include those of modules in it."""

    name: str                    # as in `named_modules`; "" for the model
    kind: str
    depth: int
    gives: str                   # the shape of what it gave last; "" if it was not called
    parameters: int
    multiplications: int
    calls: int


class ModelSummary:
    """What `tensorlib.summary` gives: rows and totals; as a string, a table."""

    def __init__(self, layers: list[Layer], shown_depth: int, counts: dict[str, int]) -> None:
        self.layers, self._shown_depth = layers, shown_depth
        self.total_params = counts["params"]
        self.trainable_params = counts["trainable"]
        self.param_bytes = counts["param_bytes"]         # and buffers
        self.total_multiplications = layers[0].multiplications
        self.input_bytes = counts["input_bytes"]
        self.output_bytes = counts["output_bytes"]       # of all that innermost modules gave

    def __str__(self) -> str:
        rows = [("layer", "gives", "parameters", "multiplications")]
        for layer in self.layers:
            if layer.depth <= self._shown_depth:
                name = layer.name.rpartition(".")[2]
                title = "  " * layer.depth + (f"{name}: " if name else "") + layer.kind
                rows.append((title + (f" x{layer.calls}" if layer.calls > 1 else ""),
                             layer.gives if layer.calls else "not called",
                             f"{layer.parameters:,}", f"{layer.multiplications:,}"))
        widths = [max(map(len, column)) + gap for column, gap in zip(zip(*rows), (2, 0, 2, 2))]
        lines = [f"{a:{widths[0]}}{b:{widths[1]}}{c:>{widths[2]}}{d:>{widths[3]}}"
                 for a, b, c, d in rows]
        rule = "-" * sum(widths)
        trained = ("all of them trained" if self.trainable_params == self.total_params
                   else f"{self.trainable_params:,} of them trained")
        return "\n".join([
            lines[0], rule, *lines[1:], rule,
            f"{self.total_params:,} parameters ({bytes_text(self.param_bytes)}), {trained}",
            f"{self.total_multiplications:,} multiplications",
            f"{bytes_text(self.input_bytes)} in, {bytes_text(self.output_bytes)} of what layers "
            "give"])

    __repr__ = __str__


def summarized(model: Any, input_shape: Any, input_data: Any, dtypes: Any, depth: int
               ) -> ModelSummary:
    """What `tensorlib.summary` gives: see there."""
    if not hasattr(model, "named_modules"):
        raise TypeError(f"summary: expected a Module, got {type(model).__name__}")
    args, kwargs = inputs(input_shape, input_data, dtypes)
    seen = Observer(model)
    training = [module for module in model.modules() if module.training]
    try:
        model.eval()
        with no_grad():
            model(*args, **kwargs)
    finally:
        for module in training:
            module.training = True
        seen.leave()
    unique = {id(param): param for param in model.parameters()}.values()
    held = [*unique, *model.buffers()]
    return ModelSummary(seen.layers(), depth, {
        "params": sum(param.numel() for param in unique),
        "trainable": sum(param.numel() for param in unique if param.requires_grad),
        "param_bytes": sum(x.nbytes for x in held),
        "input_bytes": sum(x.nbytes for x in tensors_in([args, kwargs])),
        "output_bytes": seen.output_bytes})


def inputs(input_shape: Any, input_data: Any, dtypes: Any
           ) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a model is called on: zeros of the shapes, or the data itself."""
    if input_data is not None:
        if isinstance(input_data, dict):
            return (), input_data
        return (input_data if isinstance(input_data, (tuple, list)) else (input_data,)), {}
    if input_shape is None:
        raise ValueError("summary: takes input_shape, as (1, 3, 32, 32), or input_data")
    several = len(input_shape) > 0 and not isinstance(input_shape[0], int)
    shapes = list(input_shape) if several else [input_shape]
    kinds = dtypes if isinstance(dtypes, (tuple, list)) else [dtypes] * len(shapes)
    if len(kinds) != len(shapes):
        raise ValueError(f"summary: {len(kinds)} dtypes for {len(shapes)} shapes")
    return tuple(FUNCTIONS["zeros"](tuple(shape), dtype=kind)
                 for shape, kind in zip(shapes, kinds)), {}


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in nested containers."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [x for each in value for x in tensors_in(each)] if isinstance(
        value, (tuple, list)) else []


def shapes_of(value: Any) -> str:
    """The shapes in what a module gave, as text."""
    if isinstance(value, Tensor):
        return str(tuple(value.shape))
    found = tensors_in(value)
    return ", ".join(str(tuple(x.shape)) for x in found) if found else type(value).__name__


class Observer:
    """Records what the modules of a model give and multiply while it runs, by hooks."""

    def __init__(self, model: Any) -> None:
        self.modules: list[tuple[str, Any]] = list(model.named_modules())
        self.output_bytes = 0
        self._gives: dict[Any, str] = {}
        self._calls: dict[Any, int] = {}
        self._products: dict[Any, int] = {}
        self._begun: list[int] = []
        self._counter = FlopCounterMode(display=False).__enter__()
        self._handles = []
        for _, module in self.modules:
            self._handles.append(module.register_forward_pre_hook(self._enter))
            self._handles.append(module.register_forward_hook(self._leave_module))

    def _enter(self, module: Any, args: Any) -> None:
        self._begun.append(self._counter.get_total_flops())

    def _leave_module(self, module: Any, args: Any, output: Any) -> None:
        flops = self._counter.get_total_flops() - self._begun.pop()
        self._products[module] = self._products.get(module, 0) + flops // 2
        self._calls[module] = self._calls.get(module, 0) + 1
        self._gives[module] = shapes_of(output)
        if not any(True for _ in module.children()):
            self.output_bytes += sum(x.nbytes for x in tensors_in(output))

    def leave(self) -> None:
        """Removes the hooks."""
        self._counter.__exit__()
        for handle in self._handles:
            handle.remove()

    def layers(self) -> list[Layer]:
        """The rows, each module below the one that has it."""
        return [Layer(name, type(module).__name__, name.count(".") + bool(name),
                      self._gives.get(module, ""),
                      sum(param.numel() for param in module.parameters()),
                      self._products.get(module, 0), self._calls.get(module, 0))
                for name, module in self.modules]
