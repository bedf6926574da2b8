"""How the library was built, in words, under the names of `torch.__config__`."""

from contextlib import redirect_stdout
from io import StringIO

import tensorlib as tl

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What `tensorlib.show_config()` prints."""
    with redirect_stdout(StringIO()) as text:
        tl.show_config()
    return text.getvalue()


def parallel_info() -> str:
    """How many threads share the work of an operation, and how many processors there are."""
    threads = tl.show_config("dicts")["threads"]
    return "".join(f"{name}: {count}\n" for name, count in threads.items())
