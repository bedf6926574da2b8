"""Pickles read as data: an interpreter of their opcodes that calls nothing it does not know.

Python's own `pickle` imports what a pickle names and calls it. Here a name is looked up in a table,
and what the table does not have is an error. Lengths and positions are held against the bytes that
are there, and what calls and keys make of values against the bytes read so far, so that a short
file can't ask for much memory or time, also where it refers to one value again and again.
"""

from __future__ import annotations

import pickletools
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from tensorlib.io.files.errors import LoadError

__all__ = ["Global", "Interpreter", "Stateful"]


class Global:
    """A name in a pickle: what a call of it gives, or None where it can't be called."""

    def __init__(self, name: str, call: Callable[..., Any] | None = None, value: Any = None,
                 is_class: bool = False) -> None:
        self.name, self.call, self.value, self.is_class = name, call, value, is_class


class Stateful:
    """An object that takes its state after it was made, and stands for another from then on."""

    def set_state(self, state: Any) -> None:
        raise NotImplementedError


Instruction = Callable[["Interpreter", Any], None]
INSTRUCTIONS: dict[str, Instruction] = {}
MARK = object()
LARGEST_KEY = 10_000           # parts of a key, all that it holds counted
DEEPEST_KEY = 100              # Python hashes what is in it by recursion
FREE, PER_BYTE = 1 << 20, 16   # what a pickle may have made and visited, in parts or bytes


def instruction(*names: str) -> Callable[[Instruction], Instruction]:
    """Makes a function the one that runs the opcodes of these names."""
    def enter(function: Instruction) -> Instruction:
        INSTRUCTIONS.update(dict.fromkeys(names, function))
        return function
    return enter


class Interpreter:
    """Runs one pickle. `find` looks a name up, `persistent` what stands outside of the pickle."""

    def __init__(self, find: Callable[[str, str], Any], persistent: Callable[[Any], Any]) -> None:
        self.find, self.persistent = find, persistent
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.spent = self.place = 0

    def run(self, file: Any) -> Any:
        """The object of the pickle at the file's place, which ends up after it.

        `genops` raises a ValueError for one without an end.
        """
        start = file.tell()
        for opcode, argument, place in pickletools.genops(file):
            self.place = place - start
            if opcode.name == "STOP":
                return plain(self.pop())
            step = INSTRUCTIONS.get(opcode.name)
            if step is None:
                raise LoadError(f"the pickle has the instruction {opcode.name} at byte {place}, "
                                "which load() does not follow")
            step(self, argument)

    def spend(self, parts: int) -> None:
        """Counts bytes that are copied and parts that are visited. Raises: LoadError."""
        self.spent += parts
        if self.spent > FREE + PER_BYTE * self.place:
            raise LoadError("the pickle makes much more of its values than it has bytes")

    def spend_on(self, values: Any) -> None:
        """Counts what is in the arguments or the state of an object."""
        for value in values:
            if type(value) in SIZED:
                self.spend(len(value))

    def hashed(self, key: Any) -> Any:
        """`key`, which is hashed soon; that takes as long as there are parts in it."""
        if isinstance(key, NESTED):
            self.spend(parts_of(key))
        return key

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is MARK:
            raise LoadError("the pickle takes more from its stack than there is")
        return self.stack.pop()

    def top(self) -> Any:
        self.push(value := self.pop())
        return value

    def marked(self) -> list[Any]:
        """All that was pushed since the last mark, which is taken away too."""
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is MARK:
                values = [plain(value) for value in self.stack[place + 1:]]
                del self.stack[place:]
                return values
        raise LoadError("the pickle has no mark where it needs one")


NESTED = (tuple, frozenset)              # what has parts that are hashed with it
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, OrderedDict, Counter)


def plain(value: Any) -> Any:
    """What a name or an object with state stands for, where it is used as a value."""
    if isinstance(value, Global):
        if value.value is None:
            raise LoadError(f"the pickle has {value.name} as a value")
        return value.value
    return value.value if isinstance(value, Stateful) else value  # type: ignore[attr-defined]


# ---- instructions ------------------------------------------------------------------------------

@instruction("PROTO", "FRAME")
def skip(machine: Interpreter, argument: Any) -> None:
    """Says something about the pickle itself."""


@instruction("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
             "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
             "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8")
def literal(machine: Interpreter, argument: Any) -> None:
    """Pushes the argument of the opcode."""
    machine.push(argument)


def constant(make: Callable[[], Any]) -> Instruction:
    """The instruction that pushes what `make` gives."""
    return lambda machine, argument: machine.push(make())


INSTRUCTIONS.update({
    "NONE": constant(lambda: None), "NEWTRUE": constant(lambda: True),
    "NEWFALSE": constant(lambda: False), "EMPTY_LIST": constant(list),
    "EMPTY_TUPLE": constant(tuple), "EMPTY_DICT": constant(dict), "EMPTY_SET": constant(set),
    "MARK": constant(lambda: MARK)})


def tuple_of(count: int) -> Instruction:
    """The instruction that makes a tuple of the `count` values on top of the stack."""
    def step(machine: Interpreter, argument: Any) -> None:
        values = [plain(machine.pop()) for _ in range(count)]
        machine.push(tuple(reversed(values)))
    return step


def paired(machine: Interpreter, values: list[Any]) -> dict[Any, Any]:
    """A dict of keys and values in turn. Raises: LoadError for an odd number."""
    if len(values) % 2:
        raise LoadError("the pickle has a key without a value")
    return dict(zip(map(machine.hashed, values[::2]), values[1::2]))


def of_marked(make: Callable[[Interpreter, list[Any]], Any]) -> Instruction:
    """The instruction that pushes what `make` gives for the values since the mark."""
    return lambda machine, argument: machine.push(make(machine, machine.marked()))


INSTRUCTIONS.update({
    "TUPLE": of_marked(lambda machine, values: tuple(values)),
    "TUPLE1": tuple_of(1), "TUPLE2": tuple_of(2), "TUPLE3": tuple_of(3),
    "LIST": of_marked(lambda machine, values: values), "DICT": of_marked(paired),
    "FROZENSET": of_marked(lambda machine, values: frozenset(map(machine.hashed, values)))})


def parts_of(key: Any) -> int:
    """How many parts a key has: a tuple that has the same tuple twice has its parts twice."""
    count, waiting = 0, [(key, 0)]
    while waiting:
        value, depth = waiting.pop()
        count += 1
        nested = isinstance(value, NESTED)
        if nested and not has_nested(value):
            count, depth, nested = count + len(value), depth + bool(value), False
        if count > LARGEST_KEY or depth > DEEPEST_KEY:
            raise LoadError(f"the pickle has a key of more than {LARGEST_KEY} parts, or more than "
                            f"{DEEPEST_KEY} deep")
        if nested:
            waiting.extend((part, depth + 1) for part in value)
    return count


def has_nested(values: Any) -> bool:
    """Whether some of them have parts in turn, by their types: mostly there are one or two."""
    return any(issubclass(kind, NESTED) for kind in set(map(type, values)))


@instruction("POP")
def drop(machine: Interpreter, argument: Any) -> None:
    """Pops a value, or a mark."""
    if machine.stack and machine.stack[-1] is MARK:
        machine.stack.pop()
    else:
        machine.pop()


@instruction("POP_MARK")
def drop_marked(machine: Interpreter, argument: Any) -> None:
    """Pops the values since the mark."""
    machine.marked()


@instruction("DUP")
def again(machine: Interpreter, argument: Any) -> None:
    """Pushes the top of the stack once more."""
    machine.push(machine.top())


@instruction("PUT", "BINPUT", "LONG_BINPUT")
def note(machine: Interpreter, argument: Any) -> None:
    """Puts the top of the stack in the memo."""
    machine.memo[argument] = machine.top()


@instruction("MEMOIZE")
def note_next(machine: Interpreter, argument: Any) -> None:
    """Puts the top of the stack in the memo, under the next number."""
    machine.memo[len(machine.memo)] = machine.top()


@instruction("GET", "BINGET", "LONG_BINGET")
def recall(machine: Interpreter, argument: Any) -> None:
    """Pushes a value of the memo. Raises: LoadError for a number that it does not have."""
    if argument not in machine.memo:
        raise LoadError(f"the pickle refers to object {argument}, which it does not have")
    machine.push(machine.memo[argument])


@instruction("APPENDS")
def append(machine: Interpreter, argument: Any) -> None:
    """Appends the values since the mark to a list."""
    values = machine.marked()
    of_type(machine.top(), list).extend(values)


@instruction("ADDITEMS")
def add_items(machine: Interpreter, argument: Any) -> None:
    """Adds the values since the mark to a set."""
    values = machine.marked()
    of_type(machine.top(), set).update(map(machine.hashed, values))


@instruction("SETITEMS")
def set_items(machine: Interpreter, argument: Any) -> None:
    """Puts the keys and values since the mark in a dict."""
    pairs = paired(machine, machine.marked())
    of_type(machine.top(), dict, OrderedDict, Counter, defaultdict).update(pairs)


@instruction("APPEND")
def append_one(machine: Interpreter, argument: Any) -> None:
    """Appends the top of the stack to a list."""
    value = plain(machine.pop())
    of_type(machine.top(), list).append(value)


@instruction("SETITEM")
def set_item(machine: Interpreter, argument: Any) -> None:
    """Puts the key and the value on top of the stack in a dict."""
    value, key = plain(machine.pop()), plain(machine.pop())
    of_type(machine.top(), dict, OrderedDict, Counter, defaultdict)[machine.hashed(key)] = value


def of_type(value: Any, *kinds: type) -> Any:
    """`value`, if it is of just one of the types: methods of others might run anything."""
    if type(value) not in kinds:
        raise LoadError(f"the pickle fills a {type(value).__name__} as if it were a "
                        f"{kinds[0].__name__}")
    return value


@instruction("GLOBAL")
def named(machine: Interpreter, argument: Any) -> None:
    """Pushes what a name in a module stands for."""
    module, _, name = argument.partition(" ")
    machine.push(machine.find(module, name))


@instruction("STACK_GLOBAL")
def named_on_stack(machine: Interpreter, argument: Any) -> None:
    """Pushes what the name and the module on the stack stand for."""
    name, module = machine.pop(), machine.pop()
    machine.push(machine.find(of_type(module, str), of_type(name, str)))


@instruction("BINPERSID")
def outside(machine: Interpreter, argument: Any) -> None:
    """Pushes what a persistent id stands for."""
    machine.push(machine.persistent(machine.pop()))


@instruction("REDUCE", "NEWOBJ")
def call(machine: Interpreter, argument: Any) -> None:
    """Calls a function, or makes an object of a class, with a tuple of arguments."""
    arguments, function = of_type(machine.pop(), tuple), machine.pop()
    machine.push(called(machine, function, arguments))


def called(machine: Interpreter, function: Any, arguments: tuple[Any, ...]) -> Any:
    """The result of a call, if the function is a name that may be called."""
    if not isinstance(function, Global) or function.call is None:
        what = function.name if isinstance(function, Global) else type(function).__name__
        raise LoadError(f"the pickle calls {what}, which load() does not call")
    machine.spend_on(arguments)
    if getattr(function.call, "hashes", False):
        for argument in arguments:
            if type(argument) in SIZED and has_nested(argument):
                for key in argument:
                    machine.hashed(key)
    try:
        return function.call(*arguments)
    except LoadError:
        raise
    except Exception as error:
        raise LoadError(f"the pickle calls {function.name} in a way that fails: {error}"[:500]
                        ) from error


@instruction("NEWOBJ_EX")
def call_with_keywords(machine: Interpreter, argument: Any) -> None:
    """As `call`. Raises: LoadError for keyword arguments."""
    keywords, arguments = of_type(machine.pop(), dict), of_type(machine.pop(), tuple)
    if keywords:
        raise LoadError("the pickle makes an object with keywords")
    machine.push(called(machine, machine.pop(), arguments))


@instruction("BUILD")
def set_state(machine: Interpreter, argument: Any) -> None:
    """Gives an object its state. Raises: LoadError for one that takes none."""
    state = plain(machine.pop())
    target = machine.top()
    machine.spend_on(state if type(state) is tuple else [state])
    if isinstance(target, Stateful):
        target.set_state(state)
    elif type(target) is OrderedDict:         # of a module, with the versions of its layers
        vars(target).update({key: state[key] for key in of_type(state, dict) if key == "_metadata"})
    else:
        raise LoadError(f"the pickle gives a state to a {type(target).__name__}")
