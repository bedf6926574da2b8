"""Nodes of a graph: what is called, with which arguments, and which nodes use the result.

>>> graph = tensorlib.fx.Graph()
>>> x = graph.placeholder("x")
>>> y = graph.call_function(tensorlib.relu, (x,))
>>> x.users, y.all_input_nodes
({relu: None}, [x])
"""

import builtins
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import tensorlib
from tensorlib._core.base import library
from tensorlib._core.base.explained import explain

__all__ = ["Argument", "Node", "Target", "base_types", "has_side_effect", "map_aggregate",
           "map_arg"]

Target = Callable[..., Any] | str
Argument = Any
base_types = (str, int, float, bool, complex, tensorlib.dtype, tensorlib.Tensor, tensorlib.device,
              tensorlib.memory_format, tensorlib.layout)
_side_effects: set[Callable[..., Any]] = {tensorlib._assert, print}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function: calls of it stay in graphs of which nobody uses the result."""
    _side_effects.add(fn)
    return fn


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to "
        "modify the kwargs or args of a torch.fx.Node object,\ninstead create a new copy of it "
        "and assign the copy to the node:\n\n    new_args = ...  # copy and mutate args\n"
        "    node.args = new_args\n")


class immutable_list(list[Any]):
    """A list in a node's arguments, which is replaced and not changed, so that uses stay right."""

    append = extend = insert = clear = pop = remove = reverse = sort = _refuse
    __delitem__ = __setitem__ = __iadd__ = __imul__ = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict in a node's arguments, which is replaced and not changed, so that uses stay right."""

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __setitem__ = __ior__ = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """The argument with `fn` of each leaf, in tuples, lists, dicts and slices as they were."""
    if isinstance(a, tuple):
        parts = [map_aggregate(part, fn) for part in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(part, fn) for part in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(*[map_aggregate(part, fn) for part in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Argument, fn: Callable[["Node"], Argument]) -> Argument:
    """The argument with `fn` of each node in it."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def is_of_library(value: Any) -> bool:
    """Whether the public name of a function, a class or a module is one of this library's."""
    return str(getattr(value, "__module__", "")).partition(".")[0] == "tensorlib"


def qualified_name(function: Callable[..., Any]) -> str:
    """The name by which code reaches a function: its module's, and its own there."""
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return name
    if function is getattr(tensorlib.Tensor, name, None) and not is_of_library(function):
        return f"{library.name}.Tensor.{name}"
    if getattr(tensorlib, name, None) is function:
        return f"{library.name}.{name}"
    module = getattr(function, "__module__", None) or "builtins"
    home: Any = tensorlib
    if module.partition(".")[0] == "tensorlib":
        for part in module.split(".")[1:]:
            home = getattr(home, part, None)
        if getattr(home, name, None) is not function:      # linalg_inv is inv of linalg
            name = next((key for key, value in vars(home).items() if value is function),
                        name) if home else name
        module = library.name + module.removeprefix("tensorlib")
    return f"{module}.{name}"


def type_name(kind: Any) -> str:
    """How a type is written in code."""
    if not isinstance(kind, type) or hasattr(kind, "__origin__"):
        return "..." if kind is ... else repr(kind) if not callable(kind) else getattr(
            kind, "__name__", repr(kind))
    if kind.__module__ == "builtins":
        return kind.__qualname__
    if is_of_library(kind):
        return f"{library.name}{kind.__module__.removeprefix('tensorlib')}.{kind.__qualname__}"
    return f"{kind.__module__}.{kind.__qualname__}"


def _formatted(arg: Argument) -> str:
    if isinstance(arg, list):
        return f"[{', '.join(map(_formatted, arg))}]"
    if isinstance(arg, tuple):
        return f"({', '.join(map(_formatted, arg))}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_formatted(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One step of a graph. The `op` says of which kind the `target` is.

    A `placeholder` is an argument, `get_attr` a parameter or another value of the module,
    `call_function`, `call_method` and `call_module` call what the target names, and `output` has
    what the graph gives as its one argument. `users` are the nodes that take this one; `meta` is
    for what passes note.
    """

    def __init__(self, graph: Any, name: str, op: str, target: Target, args: tuple[Argument, ...],
                 kwargs: dict[str, Argument], return_type: Any = None) -> None:
        wanted = "Callable" if op == "call_function" else "str"
        if not (callable(target) if op == "call_function" else isinstance(target, str)):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                             f"{type(target).__name__} but a {wanted} is expected")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._inputs: dict[Node, None] = {}
        self._take(args, kwargs)

    def _take(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}

        def use(node: Node) -> Node:
            self._inputs[node] = node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), use), map_arg(dict(kwargs), use)

    @property
    def args(self) -> tuple[Argument, ...]:
        """Positional arguments; those of a method begin with its object."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._take(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """Arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._take(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list["Node"]:
        """The nodes among the arguments, each once."""
        return list(self._inputs)

    @property
    def next(self) -> "Node":
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> "Node":
        """The node before this one."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """Where the operation was recorded, if its tracer noted it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces the positional argument at `idx`."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Adds a positional argument before the one at `idx`."""
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces, or adds, the argument of this name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Takes another node wherever this one took `old_input`."""
        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._take(map_arg(self._args, other), map_arg(self._kwargs, other))

    def replace_all_uses_with(self, replace_with: "Node",
                              delete_user_cb: Callable[["Node"], bool] = lambda user: True, *,
                              propagate_meta: bool = False) -> list["Node"]:
        """The nodes that took this one and take `replace_with` now.

        delete_user_cb: whether a user is to be changed.
        """
        if propagate_meta:
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def prepend(self, x: "Node") -> None:
        """Puts `x` before this node."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is not self:
            x._unlink()
            before = self._prev
            before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: "Node") -> None:
        """Puts `x` after this node."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node has an effect beside its result, so that it stays if nobody uses that.

        impure_random: not needed here; random operations advance the generator and always stay.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            module = self.graph.owning_module
            return module is None or getattr(module.get_submodule(self.target), "_is_impure", False)
        name = self.target if isinstance(self.target, str) else self.target.__name__
        in_place = name.endswith("_") and not name.endswith("__")
        return self.op != "get_attr" and (
            self.target in _side_effects or in_place and name not in ("and_", "or_")
            or self.target is operator.setitem or self.target in INPLACE)

    def format_node(self, placeholder_names: list[str] | None = None,
                    maybe_return_typename: list[str] | None = None) -> str | None:
        """The line for this node in the text of a graph."""
        kind = f"{type_name(self.type)} " if self.type else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target="
        if self.op == "output":
            return f"return {self._args[0]}"
        if self.op == "placeholder":
            default = f"(default={self._args[0]})" if self._args else ""
            return f"{head}{self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}{self.target}]"
        target = self.target
        if not isinstance(target, str):
            name = qualified_name(target)
            target = name.removeprefix("_") if "." in name else f"builtins.{name}"
        return (f"{head}{target}](args = {_formatted(self._args)}, "
                f"kwargs = {_formatted(self._kwargs)})")

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: "Node") -> bool:
        order = list(self.graph.nodes)
        return order.index(self) < order.index(other)


INPLACE = [getattr(operator, name) for name in (
    "iadd", "iand", "ifloordiv", "ilshift", "imod", "imul", "imatmul", "ior", "ipow", "irshift",
    "isub", "itruediv", "ixor")]

explain(vars(), __all__)
