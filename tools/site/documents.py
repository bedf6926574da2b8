"""The pages that people wrote, copied to where Sphinx reads them, with links that hold there."""

import base64
import json
import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?!https?:|#)([^)#\s]+)(#[^)\s]+)?\)")
FENCED = re.compile(r"(^ *```.*?^ *```$)|(?:(?!^ *```).)+", re.MULTILINE | re.DOTALL)
PICTURES = (".png", ".svg")
# Pages outside of docs/, and what they are called on the site.
OTHERS = {
    "examples/README.md": "gallery", "benchmarks/README.md": "benchmarks",
    "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog", "SECURITY.md": "security",
}
# Generated lists that the site has as pages of the reference.
REPLACED = {"docs/operations.md": "reference/index", "README.md": "index",
            **{f"docs/reference/{path.name}": "reference/index"
               for path in (ROOT / "docs" / "reference").glob("*.md")}}
TOUR = "tour"


def pages():
    """The documents of the checkout by their path in it: what they are called on the site."""
    found = {f"docs/{path.name}": path.stem for path in sorted((ROOT / "docs").glob("*.md"))}
    found = {path: name for path, name in found.items() if path not in REPLACED}
    return found | {path: name for path, name in OTHERS.items() if (ROOT / path).exists()}


def write(source):
    """Writes all documents, the tour, pictures and linked files into the folder of sources."""
    known = {**pages(), **REPLACED, "examples/tour.ipynb": TOUR}
    for path, name in pages().items():
        text = (ROOT / path).read_text()
        if path == "docs/index.md":
            text = with_unlisted(text)
        put(source / f"{name}.md", relinked(text, path, known, source))
    put(source / f"{TOUR}.md", tour(source, known))


def with_unlisted(text):
    """The first page, with all documents that no list of its has in the last of its lists."""
    listed = re.findall(r"^[\w/]+$", text, re.MULTILINE)
    left = [name for name in pages().values() if name not in listed and name != "index"]
    head, end, tail = text.rstrip().rpartition("\n```")
    return head + "".join(f"\n{name}" for name in left) + end + tail + "\n"


def relinked(text, path, known, source):
    """A document with its links to pages, pictures and files as they are on the site."""
    def link(match):
        label, target, fragment = match[1], match[2], match[3] or ""
        place = Path(os.path.normpath(Path(path).parent / target))
        file = ROOT / place
        if str(place) in known:
            page = known[str(place)]
            return f"{label}({page}.md{'' if page in REPLACED.values() else fragment})"
        if file.suffix in PICTURES:
            copied(file, source / "pictures" / place)
            return f"{label}(pictures/{place})"
        if file.is_dir():
            return label.lstrip("!")[1:-1]
        return raw_link(label[1:-1], place, source)
    return FENCED.sub(lambda part: re.sub(r"\n+( *```)$", r"\n\1", part[0]) if part[1] else
                      LINK.sub(link, part[0]), text)


def raw_link(label, place, source, up=""):
    """A link to a file of the checkout, which is copied as it stands, as plain text."""
    copied(ROOT / place, source / "files" / "source" / f"{place}.txt")
    return f'<a class="source" href="{up}source/{place}.txt">{label}</a>'


def copied(file, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copyfile(file, target)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def tour(source, known):
    """The notebook as a page: its texts, its code, what it printed and drew."""
    parts, count = [], 0
    for cell in json.loads((ROOT / "examples" / "tour.ipynb").read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(relinked(text, "examples/tour.ipynb", known, source))
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                count += 1
                picture = source / "pictures" / "tour" / f"{count}.png"
                picture.parent.mkdir(parents=True, exist_ok=True)
                picture.write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![what the cell above drew](pictures/tour/{count}.png)")
            else:
                printed = "".join(output.get("text") or data.get("text/plain", ""))
                parts.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
