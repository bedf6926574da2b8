"""The code of a graph: one line for each node, which frees what no later line uses."""

import builtins
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tensorlib
from tensorlib._core.base import library

from .node import Node, qualified_name, type_name

SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%",
         "pow": "**", "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^",
         "matmul": "@"}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
OPERATORS = {**{name: f"{{}} {sign} {{}}" for name, sign in {**COMPARISONS, **SIGNS}.items()},
             "pos": "+{}", "neg": "-{}", "invert": "~{}", "getitem": "{}[{}]"}
IN_PLACE = {f"i{name.rstrip('_')}": f"{{}} {sign}= {{}}" for name, sign in SIGNS.items()}


@dataclass
class PythonCode:
    """Code and, by their names in it, the values that it takes from elsewhere."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None


def reached(base: str, target: str) -> str:
    """The code for an attribute, of which parts may be numbers: `getattr(self.layers, "0")`."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class Writer:
    """Writes nodes, and gathers the values that the code names."""

    def __init__(self, graph: Any, root: str) -> None:
        self.graph, self.root = graph, root
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.parameters: list[str] = []
        self.returns = ""
        self.lines: list[str] = []

    def named(self, hint: str, value: Any) -> str:
        """The name of a value in the code: its own in the library, or one that nobody has."""
        if hint.startswith(f"{library.name}.") and self._at(hint) is value:
            self.globals[library.name] = tensorlib
            return hint
        if getattr(builtins, hint, None) is value:
            return hint
        base = name = hint.replace(".", "_").replace("<", "_").replace(">", "_")
        number = 0
        taken = {node.name for node in self.graph.nodes}
        while name in taken or self.globals.get(name, value) is not value:
            number += 1
            name = f"{base}_{number}"
        self.globals[name] = value
        return name

    @staticmethod
    def _at(path: str) -> Any:
        place: Any = tensorlib
        for part in path.split(".")[1:]:
            place = getattr(place, part, None)
        return place

    def kind(self, value: Any) -> str:
        """The code for a type."""
        if value is None or value is ...:
            return str(value)
        name = type_name(value)
        if isinstance(value, type) and "[" not in name:
            return name if value.__module__ == "builtins" else self.named(name, value)
        return repr(value) if isinstance(value, str) else self.named(
            name if name.isidentifier() else "annotation", value)

    def value(self, arg: Any) -> str:
        """The code for an argument."""
        if isinstance(arg, Node):
            return arg.name
        if isinstance(arg, tuple):
            inside = ", ".join(map(self.value, arg)) + ("," if len(arg) == 1 else "")
            named = hasattr(arg, "_fields") or isinstance(arg, tensorlib.Size)
            return f"{self.named(type_name(type(arg)), type(arg))}(" + (
                f"({inside}))" if isinstance(arg, tensorlib.Size) else
                f"{inside})") if named else f"({inside})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            pairs = ", ".join(f"{key!r}: {self.value(value)}" for key, value in arg.items())
            return f"{{{pairs}}}"
        if isinstance(arg, slice):
            return f"slice({', '.join(map(self.value, (arg.start, arg.stop, arg.step)))})"
        if isinstance(arg, float) and not math.isfinite(arg):
            self.globals.setdefault("inf", math.inf)
            self.globals.setdefault("nan", math.nan)
        elif isinstance(arg, tensorlib.device):
            self.globals["device"] = tensorlib.device
        elif isinstance(arg, (tensorlib.dtype, tensorlib.layout, tensorlib.memory_format)):
            self.globals[library.name] = tensorlib
        elif not isinstance(arg, (str, int, float, complex, range)) and arg not in (None, ...):
            return self.named(getattr(arg, "__name__", type(arg).__name__.lower()), arg)
        return repr(arg)

    def arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        """The code for the arguments of a call."""
        return ", ".join([*map(self.value, args),
                          *(f"{key} = {self.value(value)}" for key, value in kwargs.items())])

    def call(self, node: Node) -> str:
        """The code of a function's call."""
        target: Any = node.target
        module, name = getattr(target, "__module__", None), target.__name__
        values = [self.value(arg) for arg in node.args]
        if module == "_operator" and name in OPERATORS:
            return f"{node}{self.typed(node)} = {OPERATORS[name].format(*values)}"
        if module == "_operator" and name in IN_PLACE:
            return (f"{IN_PLACE[name].format(*values)};  {node}{self.typed(node)} = {values[0]}")
        if (target is getattr and len(values) == 2 and isinstance(node.args[1], str)
                and node.args[1].isidentifier()):
            return f"{node}{self.typed(node)} = {reached(values[0], node.args[1])}"
        named = self.named(qualified_name(target), target)
        if node.meta.get("is_wrapped"):
            self.wrapped[named] = None
        return f"{node}{self.typed(node)} = {named}({self.arguments(node.args, node.kwargs)})"

    def typed(self, node: Node) -> str:
        """The code for the type of a node's result, if it has one."""
        return f" : {self.kind(node.type)}" if node.type is not None else ""

    def write(self, node: Node) -> None:
        """Writes the line of one node; a placeholder's stands among the parameters."""
        target: Any = node.target
        if node.op == "placeholder":
            default = f" = {self.value(node.args[0])}" if node.args else ""
            self.parameters.append(f"{target}{self.typed(node)}{default}")
            if target.replace("*", "") != node.name:
                self.lines.append(f"{node} = {target.replace('*', '')}\n")
        elif node.op == "call_function":
            self.lines.append(self.call(node))
        elif node.op == "call_method":
            method = reached(self.value(node.args[0]), target)
            self.lines.append(f"{node}{self.typed(node)} = {method}("
                              f"{self.arguments(node.args[1:], node.kwargs)})")
        elif node.op == "call_module":
            self.lines.append(f"{node}{self.typed(node)} = {reached(self.root, target)}("
                              f"{self.arguments(node.args, node.kwargs)})")
        elif node.op == "get_attr":
            self.lines.append(f"{node}{self.typed(node)} = {reached(self.root, target)}")
        elif node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.kind(node.type)}"
            self.lines.append(f"return {self.value(node.args[0])}")
        else:
            raise NotImplementedError(f"node: {node.op} {target}")


def written(graph: Any, root: str) -> PythonCode:
    """The code of the graph's function `forward`."""
    writer, last = Writer(graph, root), graph.last_uses()
    for node in graph.nodes:
        writer.write(node)
        if node.op != "placeholder":
            free = last[node] + ([] if node.users else [node])
            writer.lines.append(";  " + " = ".join([*map(str, free), "None"]) + "\n"
                                if free and node.op != "output" else "\n")
    body = "".join(writer.lines) or "pass\n"
    wraps = "\n".join(f'{library.name}.fx._symbolic_trace.wrap("{name}")'
                      for name in writer.wrapped)
    if wraps:
        writer.globals[library.name] = tensorlib
    parameters = ", ".join([root, *writer.parameters])
    code = "\n".join(f"    {line}" for line in body.split("\n"))
    return PythonCode(f"\n{wraps}\n\ndef forward({parameters}){writer.returns}:\n{code}",
                      writer.globals)
