"""Modules of which the code is that of a graph."""

import copy
import linecache
from operator import attrgetter
from typing import Any

from tensorlib import Tensor, nn
from tensorlib._core.base.explained import explain

from .graph import Graph
from .code import PythonCode

__all__ = ["GraphModule"]


def holder(module: nn.Module, path: str) -> Any:
    """The part of a module that holds what is at a path, or what is no module on the way there.

    Parts that are not there are made.
    """
    place: Any = module
    for part in path.split(".")[:-1]:
        if getattr(place, part, None) is None:
            setattr(place, part, nn.Module())
        place = getattr(place, part)
        if not isinstance(place, nn.Module):
            break
    return place


def copy_attribute(source: nn.Module, target: nn.Module, path: str) -> None:
    """Gives `target` the attribute at a path, and modules to hold it."""
    prefix, _, name = path.rpartition(".")
    place, held = attrgetter(prefix)(source) if prefix else source, holder(target, path)
    if place is not held:
        put(held, name, getattr(place, name))


def put(module: nn.Module, name: str, value: Any) -> None:
    """Sets an attribute; a tensor that is no parameter is a buffer."""
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


class GraphModule(nn.Module):
    """A module that runs a graph, with the parts of another module that the graph uses.

    After the nodes were changed, `recompile` writes the code anew.

    root: that module, or a dict of parts by their paths.
    class_name: the name that is printed.

    >>> layer = tensorlib.fx.symbolic_trace(tensorlib.nn.Sequential(tensorlib.nn.ReLU()))
    >>> print(layer.code.strip())
    def forward(self, input):
        _0 = getattr(self, "0")(input);  input = None
        return _0
    """

    _code: str

    def __new__(cls, *args: Any, **kwargs: Any) -> "GraphModule":
        own = cls if "_of_instance" in vars(cls) else type(
            "GraphModule", (cls,), {"_of_instance": True, "__module__": cls.__module__})
        return super().__new__(own)

    def __init__(self, root: nn.Module | dict[str, Any], graph: Graph,
                 class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        paths = dict.fromkeys(node.target for node in graph.nodes
                              if node.op in ("get_attr", "call_module"))
        if isinstance(root, nn.Module):
            self.training = root.training
            for path in paths:
                copy_attribute(root, self, path)
        else:
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!")
            for path in sorted(paths, key=lambda path: path.count(".")):
                put(holder(self, path), path.rpartition(".")[2], root[path])
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; one that is set is used by this module alone, and the code is written anew."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code that the graph was written as."""
        return self._code

    def recompile(self) -> PythonCode:
        """Writes the code of the graph as it is now, and runs that from now on."""
        written = self._graph.python_code("self")
        self._code = written.src
        names = dict(written.globals)
        place = f"<graph of {type(self).__name__} at {id(self):#x}>"
        linecache.cache[place] = (len(written.src), None, written.src.splitlines(True), place)
        names["__name__"] = place
        exec(compile(written.src, place, "exec"), names)
        type(self).forward = names["forward"]
        return written

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Whether a part could be added at a path; modules on the way are made."""
        place = holder(self, target)
        if not isinstance(place, nn.Module):
            return False
        place.add_module(target.rpartition(".")[2], m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Whether there was a part at this path; it is taken away."""
        *prefix, name = target.split(".")
        place: Any = self
        for part in [*prefix, name]:
            holder, place = place, getattr(place, part, None)
            if not isinstance(place, nn.Module):
                return False
        delattr(holder, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes the parts away that the graph does not use, and that hold none that it uses."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("get_attr", "call_module"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[:i + 1]) for i in range(len(parts)))
                inner = self.get_submodule(str(node.target)) if node.op == "call_module" else None
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules()
                            if name) if inner is not None else None
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True) -> str:
        """The code as that of a class.

        print_output: whether it is printed, too.
        """
        lines = self._code.strip().split("\n")
        text = "\n".join([f"class {type(self).__name__}(torch.nn.Module):",
                          *(f"    {line}".rstrip() for line in lines)])
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join([super().__str__(), self._code, "# To see more debug info, please use "
                          "`graph_module.print_readable()`"])

    def __deepcopy__(self, memo: dict[int, Any]) -> "GraphModule":
        state = {key: value for key, value in vars(self).items() if key != "_graph"}
        return _restored(copy.deepcopy(state, memo), copy.deepcopy(self._graph, memo),
                         type(self).__name__)

    def __copy__(self) -> "GraphModule":
        copied = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        copied.meta = dict(self.meta)
        return copied

    def __reduce__(self) -> Any:
        state = {key: value for key, value in vars(self).items() if key != "_graph"}
        return _restored, (state, self._graph, type(self).__name__)


def _restored(state: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    holder = nn.Module()
    vars(holder).update(state)
    module = GraphModule(nn.Module(), Graph(), name)
    for key, value in vars(holder).items():
        vars(module)[key] = value
    module.graph = graph
    return module


explain(vars(), __all__)
