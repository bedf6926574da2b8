"""How many floating-point operations a program takes: an interpreter that counts them."""

from collections import Counter, defaultdict
from typing import Any

from tensorlib._core.interpreters.stack import Interpreter
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.utils.flop_formulas import Formula, flop_registry, register_flop_formula
from tensorlib.utils.module_tracker import ModuleTracker


class FlopCounterMode(Interpreter):
    """A context that counts what this thread computes, by operation and by the modules that run.

    Backward sweeps and compiled functions count too. depth: of the modules in the table, which
    `display` prints in the end. custom_mapping: formulas by operation. mods changes nothing.

    >>> x = tensorlib.ones(2, 3, requires_grad=True)
    >>> with tensorlib.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     (x @ tensorlib.ones(3, 4)).sum().backward()
    >>> counter.get_total_flops()
    96
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict[str, Formula] | None = None) -> None:
        self.depth, self.display, self.custom = depth, display, custom_mapping or {}
        self.flop_counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def settings(self) -> None:
        """The counts begin anew, and modules are known by name."""
        self.flop_counts.clear()
        self.modules = ModuleTracker().__enter__()

    def ended(self) -> None:
        """Prints the counts, if they are to be displayed."""
        self.modules.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def call(self, op: Any, args: Any, kwargs: Any) -> Any:
        """What an operation gives, after what it takes was counted."""
        result = self.below(op, args, kwargs)
        formula = self.custom.get(op.name) or flop_registry.get(op.name) or (
            op.multiplications and (lambda *shapes: 2 * op.multiplications(*shapes)))
        if formula is not None:
            shapes = [x.shape for x in args if isinstance(x, Tensor)]
            first = result[0] if isinstance(result, tuple) else result
            for name in self.modules.parents:
                self.flop_counts[name][op.name] += formula(shapes, first.shape)
        return result

    def get_total_flops(self) -> int:
        """The operations of all modules and outside of them."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """By module ("Global" for all), those of each operation."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text: modules down to a depth, with the operations of each."""
        rows = [f"{'module':40}{'FLOP':>16}"]
        for name, counts in sorted(self.flop_counts.items(), key=lambda row: row[0] != "Global"):
            if name.count(".") < (self.depth if depth is None else depth):
                rows.append(f"{name:40}{sum(counts.values()):>16,}")
                rows += [f" - {key:37}{count:>16,}" for key, count in counts.items()]
        return "\n".join(rows)


__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]
