"""The reference: a page for each public function, class and method, made from the live package."""

import importlib
import inspect
import re
import types
from dataclasses import dataclass, field
from pathlib import Path

from tensorlib import Tensor
from tensorlib._core.graph.op import Op
from tensorlib.ops.declare import FUNCTIONS
from tools import operations
from tools.reference import MODULES, SETTINGS, VARIABLES, parameters_of, source_of
from tools.signatures import plain, summary
from tools.site.docstrings import escaped, markdown
from tools.site.documents import pages, put, raw_link, relinked
from tools.site.examples import example, has_example
from tools.site.figures import tables
from tools.site.pictures import picture

# Pages that no list at the side has: it is part of each page, which would be twice as long.
ORPHAN = "---\norphan: true\n---"
MANY_METHODS = 60       # of a class that has all that tensors have: only what each returns is shown


@dataclass
class Entry:
    """One public name: where it is, what it is, and its other name if it is an alias."""
    qualified: str
    value: object
    kind: str = "function"
    source: str | None = None           # the path of its source in the checkout
    alias_of: str | None = None
    notes: list = field(default_factory=list)

    @property
    def name(self):
        return self.qualified.rpartition(".")[2]


@dataclass
class Group:
    """What is on one page of the list: a family of operations, or a module."""
    title: str
    entries: list
    text: str = ""

    @property
    def slug(self):
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower().replace("`", "")).strip("-")[:60]


def groups():
    """All groups, in the order of the reference: operations, methods, modules, settings."""
    first = {}
    for name, function in FUNCTIONS.items():
        first.setdefault(id(function), name)
    for module, names in operations.families().items():
        if names:
            yield Group(operations.heading(module), [
                operation(name, module, first) for name in sorted(names, key=str.lower)])
    yield Group("Further methods of Tensor", [
        Entry(f"tensorlib.Tensor.{name}", value, "method")
        for name, value in sorted(vars(Tensor).items()) if is_own_method(name, value)])
    yield Group("Attributes of a tensor", [
        Entry(f"tensorlib.Tensor.{name}", value, "property")
        for name, value in sorted(vars(Tensor).items())
        if not name.startswith("_") and inspect.isdatadescriptor(value)])
    for path, title, text in MODULES:
        yield Group(title, list(members(path)), text)
    for title, names in SETTINGS:
        yield Group(title, list(members("tensorlib", names)))


def is_own_method(name, value):
    inplace = name.endswith("_") and name[:-1] in FUNCTIONS
    return not (name.startswith("_") or name in FUNCTIONS or inplace) and callable(value)


def operation(name, module, first):
    """The entry of an operation, with where its gradient comes from and its forms."""
    function = FUNCTIONS[name]
    own = first[id(function)]
    source = str(Path(module.__file__).relative_to(operations.DOCS.parent))
    gradient = operations.gradient(name, function)
    forms = operations.forms(name, parameters_of(name, function) or "")
    notes = [f"Forms: {', '.join(['function', forms] if forms else ['function'])}."]
    if gradient:
        notes.append(f"Gradient: {gradient} ([what this means](index.md#gradients)).")
    return Entry(f"tensorlib.{name}", function, "function", source,
                 None if own == name else f"tensorlib.{own}", notes)


def members(path, names=None):
    """The entries of the public names of the module that is imported by that path."""
    owner = importlib.import_module(path)
    for name in sorted(names or owner.__all__, key=str.lower):
        value = getattr(owner, name)
        if isinstance(value, types.FunctionType):      # it may stand for another
            value = getattr(importlib.import_module(value.__module__), name, value)
        if callable(value) and value.__module__.startswith("tensorlib"):
            yield Entry(f"{path}.{name}", value,
                        "class" if isinstance(value, type) else "function",
                        source_of(value).removeprefix("../"))


# ---- pages ---------------------------------------------------------------------------------------

def write(folder):
    """Writes the page of each group and of each of its entries, and the list of groups.

    Returns the names of the pages that have no example.
    """
    found = list(groups())
    taken = {}
    for group in found:
        for entry in group.entries:
            taken.setdefault(entry.qualified.lower(), []).append(entry.qualified)
    names = {name: name if i == 0 else f"{name}-class"     # for file systems that ignore case
             for same in taken.values()
             for i, name in enumerate(sorted(set(same), key=str.swapcase))}
    written = {}
    for group in found:
        put(folder / f"{group.slug}.md", group_page(group, names, folder.parent))
        for entry in group.entries:
            if entry.qualified not in written:
                page = entry_page(entry, group, names, folder.parent)
                written[entry.qualified] = bool(entry.alias_of) or ">>>" in page
                put(folder / f"{names[entry.qualified]}.md", page)
    put(folder / "index.md", index_page(found))
    return [name for name, has_example in written.items() if not has_example]


def index_page(found):
    """The list of all groups."""
    told = operations.INTRODUCTION.partition("The column *gradient*")[2].partition("The column is")
    lines = [f"- [{escaped(group.title)}]({group.slug}.md)" for group in found]
    return "\n".join([
        "# Reference", "",
        "All that is public, a page for each name. The search at the left finds a name or a word "
        "of its description. Examples begin where `import tensorlib as tl` and "
        "`from tensorlib import nn` have been run.", "", *lines, "",
        "## Gradients", "", "Where the derivative of a function comes from:",
        told[0].partition(":\n")[2].rstrip(), "",
        "## Environment variables", VARIABLES.partition("\n")[2], ""])


def group_page(group, names, source):
    """What a family or a module has, with the first sentence of each."""
    known = {path: f"../{name}" for path, name in pages().items()}
    text = [relinked(group.text, "docs/operations.md", known, source), ""] if group.text else []
    rows = [f"| [`{entry.name}`]({names[entry.qualified]}.md) | {says(entry)} |"
            for entry in group.entries]
    return "\n".join([ORPHAN, "", f"# {escaped(group.title)}", "", "[Reference](index.md)", "",
                      *text, "| | |", "| --- | --- |", *rows, ""])


def says(entry):
    if entry.alias_of:
        return f"Another name of `{entry.alias_of.rpartition('.')[2]}`."
    return escaped(summary(entry.value)).replace("|", "\\|").replace("\\\\|", "\\|")


def entry_page(entry, group, names, source):
    """The page of one name."""
    parts = [ORPHAN, f"# {escaped(entry.qualified)}",
             f"[Reference](index.md) / [{escaped(group.title)}]({group.slug}.md)",
             declaration(entry)]
    if entry.alias_of:
        parts.append(f"Another name of [`{entry.alias_of}`]({names[entry.alias_of]}.md).")
    doc = inspect.getdoc(entry.value) or ""
    parameters = names_of_parameters(entry.value)
    parts.append(markdown(doc, parameters))
    if not has_example(entry) and (shown := example(entry)):
        parts.append(f"```python\n{shown}\n```")
    parts += entry.notes
    if entry.source:
        parts.append(raw_link("Source", entry.source, source, up="../"))
    if drawn := curve(entry):
        parts += ["## Picture", drawn]
    parts.append(tables(entry.name) if entry.name in FUNCTIONS or "functional" in
                 entry.qualified or ".optim." in entry.qualified else "")
    if entry.kind == "class":
        parts += methods_of(entry.value)
    return "\n\n".join(part for part in parts if part) + "\n"


def names_of_parameters(value):
    try:
        return [name for name in inspect.signature(value).parameters if name != "self"]
    except (ValueError, TypeError):
        return []


def declaration(entry):
    """The signature, as Sphinx shows and lists it."""
    if entry.kind == "property":
        return f"```{{py:property}} {entry.qualified}\n```"
    shown = entry.qualified
    if parameters_of(entry.name, entry.value) is not None:
        shown += f"({shown_parameters(entry.name, entry.value, entry.kind == 'method')})"
    return f"```{{py:{entry.kind}}} {shown}\n```"


def shown_parameters(name, value, method=False):
    """The parameters as text, without the first one of a method."""
    try:
        found = list(plain(name, value))[method:]
    except (ValueError, TypeError):
        return "..."
    return re.sub(r"<[^>]*>", "...", ", ".join(found))


def curve(entry):
    """The picture of an element-wise function of one tensor, also of a module that applies one."""
    op, value = getattr(entry.value, "op", None), entry.value
    if isinstance(value, type):
        if not value.__module__.endswith("modules.activation"):
            return None
    elif not isinstance(op, Op) or not op.elementwise:
        return None
    try:
        function = value() if isinstance(value, type) else value
        return None if hasattr(function, "dim") else picture(entry.name, function)
    except (TypeError, RuntimeError, IndexError, ValueError):
        return None                         # it needs more than a tensor, or no real numbers


def methods_of(cls):
    """What a class has beside what all of its kind have: its own public methods."""
    own = [(name, value) for name, value in sorted(vars(cls).items())
           if not name.startswith("_") and inspect.isroutine(value) and inspect.getdoc(value)
           and callable(getattr(cls, name))]
    if not own or cls is Tensor:
        return []
    parts = ["## Methods"]
    if len(own) > MANY_METHODS:
        rows = [f"| `{name}` | {escaped(summary(value)).replace('|', chr(92) + '|')} |"
                for name, value in own]
        return [*parts, "\n".join(["| | |", "| --- | --- |", *rows])]
    for name, value in own:
        bound = getattr(cls, name)
        first = not isinstance(value, (staticmethod, classmethod))
        shown = f"`{name}({shown_parameters(name, bound, first)})`"
        told = markdown(inspect.getdoc(bound), names_of_parameters(bound))
        parts.append(f"### {escaped(name)}\n\n{shown}\n\n{told}")
    return parts
