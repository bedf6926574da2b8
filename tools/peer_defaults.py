"""What PyTorch's functions and methods in Python take where an argument is left out.

    python -m tools.peer_defaults --write     renews tests/differential/peer_defaults.txt

It needs an environment that has PyTorch too. A line is the name of a function that tensorlib has as
well, and its arguments with a default. The tests compare tensorlib's with them without PyTorch.
"""

import importlib
import inspect
import sys
from pathlib import Path

PATH = Path(__file__).parents[1] / "tests" / "differential" / "peer_defaults.txt"
MODULES = ["", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize",
           "nn.utils.parametrizations", "nn.utils.prune", "nn.utils.stateless",
           "optim", "optim.lr_scheduler", "optim.swa_utils", "utils.data", "utils.checkpoint",
           "distributions", "distributions.transforms", "distributions.constraints", "autograd",
           "autograd.functional", "autograd.graph", "autograd.forward_ad", "func", "amp", "testing"]


def functions(library):
    """(name, function) of the public functions of the modules, and of their classes' methods."""
    for name in MODULES:
        try:
            module = importlib.import_module(".".join(filter(None, (library, name))))
        except ImportError:
            continue
        for what in sorted({*vars(module), *getattr(module, "__all__", ())}):    # some come late
            full, value = ".".join(filter(None, (name, what))), getattr(module, what)
            if what.startswith("_") or getattr(value, "__module__", "") == "typing":
                continue
            if isinstance(value, type):
                for method in own(value) if library == "torch" else dir(value):
                    if not method.startswith("_") or method in ("__init__", "__call__"):
                        yield f"{full}.{method}", getattr(value, method, None)
            elif callable(value):
                yield full, value


def own(cls):
    """The names of what a class has not from another that is public, too."""
    return [name for name in dir(cls) if not any(
        getattr(base, name, None) is getattr(cls, name, None) and not base.__name__.startswith("_")
        for base in cls.__mro__[1:])]


def defaults(function):
    """The arguments that may be left out, with what they are then, as text; None if not known."""
    function = getattr(function, "__func__", function)
    if isinstance(function, property) or not callable(function):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return {x.name: text(x.default) for x in parameters if x.default is not x.empty}


def text(value):
    """A default as both libraries write it."""
    if isinstance(value, type) or inspect.isroutine(value):
        return value.__name__
    return repr(value).replace("torch.", "").replace("tensorlib.", "").replace("Size([])", "()")


def recorded():
    """{name: {argument: default}} of the file."""
    found = {}
    for line in PATH.read_text().splitlines():
        name, *pairs = line.split("\t")
        found[name] = dict(pair.split("=", 1) for pair in pairs)
    return found


def lines():
    """The lines of the file, of the PyTorch that is installed."""
    ours = {name for name, function in functions("tensorlib") if defaults(function)}
    found = set()
    for name, function in functions("torch"):
        known = (defaults(function) if name in ours else None) or {}
        pairs = [f"{argument}={value}" for argument, value in known.items() if "<" not in value]
        if pairs:
            found.add("\t".join([name, *pairs]))
    return sorted(found)


if __name__ == "__main__":
    if "--write" in sys.argv:
        PATH.write_text("\n".join(lines()) + "\n")
    print(f"{len(lines())} functions")
