"""Tensors as text: `repr`, `str`, `format` and the options of printing.

The rules are PyTorch's. Only the elements that are shown are read and formatted, so that a tensor
of any size prints at once.
"""

import math
from contextlib import contextmanager
from types import SimpleNamespace

from tensorlib._core.arrays.arrays import shown
from tensorlib._core.base.dtypes import get_default_dtype
from tensorlib._core.interpreters.stack import tell
from tensorlib._core.tensor.tensor import Tensor, attach

FAR = 1000                  # indentation is limited to so many columns
PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
# How numbers are shown: the digits after the point; from how many elements on there is a summary,
# and how many it shows at each end of a dim; the width of a line; whether in scientific notation
# (None: where the values ask for it).
options = SimpleNamespace(**PROFILES["default"], sci_mode=None)


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None,
                     profile=None, sci_mode=None):
    """Sets how tensors are printed. None keeps a setting, except for `sci_mode`: automatic.

    `profile` is "default", "short" or "full". Raises: ValueError.
    """
    changes = {"precision": precision, "threshold": threshold,
               "edgeitems": edgeitems, "linewidth": linewidth}
    changes = {name: value for name, value in changes.items() if value is not None}
    for name, value in changes.items():
        if not (isinstance(value, int) or (name == "threshold" and value == math.inf)) or value < 0:
            raise ValueError(
                f"set_printoptions: {name} must be an int of 0 or more, got {value!r}")
    if profile is not None:
        if profile not in PROFILES:
            raise ValueError(
                f"set_printoptions: profile must be one of {', '.join(PROFILES)}, got {profile!r}")
        changes = {**PROFILES[profile], **changes}
    for name, value in changes.items():
        setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions():
    """The options of printing as a dict."""
    return dict(vars(options))


@contextmanager
def printoptions(**changes):
    """A context in which `set_printoptions(**changes)` holds.

    >>> with tensorlib.printoptions(precision=2):
    ...     print(tensorlib.tensor(1 / 3))
    tensor(0.33)
    """
    before = get_printoptions()
    set_printoptions(**changes)
    try:
        yield
    finally:
        vars(options).update(before)


def formatter(values):
    """The function that writes one element, and the width it needs, for an array of elements.

    Python's own numbers are read: so few elements are shown that arrays would be slower.
    """
    numbers = values.ravel().tolist()
    if values.dtype.kind == "c":
        return of_parts(*formatter(values.real), *formatter(values.imag))
    if values.dtype.kind != "f":
        return str, max(len(str(number)) for number in numbers)
    finite = [number for number in numbers if math.isfinite(number) and number != 0]
    if not finite:
        return whole, 1
    smallest, largest = min(map(abs, finite)), max(map(abs, finite))
    integral = all(map(float.is_integer, finite))
    scientific = options.sci_mode
    if scientific is None:
        wide = largest / smallest > 1000 or largest > 1e8
        scientific = wide or (not integral and smallest < 1e-4)
    if scientific:
        write = f"{{:.{options.precision}e}}".format
    elif integral:
        write = whole
    else:
        write = f"{{:.{options.precision}f}}".format
    return write, max(map(len, map(write, finite)))


def of_parts(real, real_width, imag, imag_width):
    """As `formatter` for complex numbers, made of those of their parts."""
    def write(value):
        second = imag(value.imag)
        sign = "" if second.startswith("-") else "+"
        return f"{real(value.real).rjust(real_width)}{sign}{second}j"
    return write, real_width + imag_width + 1


def whole(value):
    """A number without digits after the point."""
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


def vector(items, cut, indent, width):
    """The text of the innermost dim, broken into lines."""
    per_line = max(1, (options.linewidth - indent) // (width + 2))
    if cut:
        middle = len(items) // 2
        items = [*items[:middle], " ..." if middle else "...", *items[middle:]]
    lines = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def nested(values, cut, indent, write, width):
    """The text of an array; `cut` says for each dim whether its middle was left out."""
    if values.ndim == 0:
        return write(values.item())
    if values.ndim == 1:
        items = [write(value) for value in values.tolist()]
        return vector(items, cut[0], indent, width)
    parts = [nested(part, cut[1:], indent + 1, write, width) for part in values]
    if cut[0]:
        parts.insert(len(parts) // 2, "...")
    gap = "," + "\n" * (values.ndim - 1) + " " * (indent + 1)
    return "[" + gap.join(parts) + "]"


def elements_text(x, indent):
    """The elements as text, in brackets."""
    edge = options.edgeitems if x.numel() > options.threshold else None
    values = shown(x, edge)
    cut = [edge is not None and size > 2 * edge for size in x.shape]
    if not values.size:      # no edges are shown at all
        return "[" * x.dim() + "..." + "]" * x.dim()
    write, width = formatter(values)
    if values.dtype.kind == "c":
        return nested(values, cut, indent, write, width)
    return nested(values, cut, indent, lambda value: write(value).rjust(width), width)


def text(self, left=0):
    """The repr: the elements, and dtype, device and graph if they are not the default ones.

    left: how many characters precede it on its first line.
    """
    tell("leaving", "repr", self)
    name = "tensor" if type(self) is Tensor else type(self).__name__
    indent = min(left, FAR) + len(name) + 1
    suffixes = []
    default, in_pairs = get_default_dtype().name, get_default_dtype().to_complex().name
    if has_no_elements(self):
        body, plain = "...", (default,)
        suffixes += ["device='meta'", f"size={tuple(self.shape)}"]
    elif self.numel() == 0:
        body = "[]"
        plain = (default,)
        if self.dim() != 1:
            suffixes.append(f"size={tuple(self.shape)}")
    else:
        body = elements_text(self, indent)
        plain = (default, in_pairs, "int64", "bool")
    if self.dtype.name not in plain:
        suffixes.append(f"dtype={self.dtype}")
    if self.grad_fn is not None:
        suffixes.append(f"grad_fn=<{self.grad_fn.name()}>")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    return with_suffixes(f"{name}({body}", suffixes, indent, left)


def with_suffixes(out, suffixes, indent, left=0):
    """A text with suffixes, of which each goes on a line of its own where the last one is full."""
    column = len(out) - out.rfind("\n") + 1 + (0 if "\n" in out else left)
    for suffix in suffixes:
        if column + len(suffix) + 2 > options.linewidth:
            out += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            out += ", " + suffix
            column += len(suffix) + 2
    return out + ")"


def has_no_elements(x):
    """Whether only shape and dtype can be shown."""
    return x.is_meta


def __format__(self, spec):
    """A 0-d tensor is formatted as its number; one of a subclass only if the format says how."""
    shows = spec or type(self) is Tensor
    if self.dim() == 0 and shows and not has_no_elements(self):
        return format(self.item(), spec)
    return object.__format__(self, spec)


attach("_text", text)
attach("__format__", __format__)
