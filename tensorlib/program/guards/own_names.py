"""The built-in functions and classes, which the code of captures and replays calls by their names:
a program that puts another one there runs eagerly as long as it is there."""

import builtins

from tensorlib.program.guards.guarded import DictGuard

BUILTINS = vars(builtins)
# What talks to people or opens files, which no capture calls, and programs do replace.
NOT_CALLED = {"breakpoint", "copyright", "credits", "exit", "help", "input", "license", "open",
              "print", "quit"}
OWN = {name: x for name, x in BUILTINS.items()
       if callable(x) and not name.startswith("_") and name not in NOT_CALLED}
PAIRS = tuple(OWN.items())
guard = DictGuard(BUILTINS, OWN, None, "in the library")


def replaced() -> str:
    """The name of a built-in function in whose place there is another; "" for none."""
    for name, x in PAIRS:
        if BUILTINS.get(name) is not x:
            return name
    return ""
