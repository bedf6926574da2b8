"""Docstrings as Markdown: fields in bold, arguments as a list, examples as blocks of code."""

import re
import textwrap

FIELDS = ("Args", "Shapes", "Units", "Gradient", "Raises", "Source", "Note")
FIELD = re.compile(rf"({'|'.join(FIELDS)}):\s*")
CODE = re.compile(r"`+[^`]+`+")
SPECIAL = re.compile(r"([\\*_\[\]<>|#$~{}])")


def escaped(text):
    """Text with what Markdown would read as marks escaped, outside of code."""
    parts, end = [], 0
    for match in CODE.finditer(text):
        parts += [SPECIAL.sub(r"\\\1", text[end:match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, SPECIAL.sub(r"\\\1", text[end:])])


def blocks(doc):
    """The parts of a docstring: pairs of "example", "code", "list" or "text", and its lines."""
    kind, lines = "text", []
    for line in [*doc.expandtabs().splitlines(), ""]:
        stripped = line.strip()
        begins = ("example" if stripped.startswith(">>> ") else
                  "list" if re.match(r"[-*] ", stripped) else kind)
        if not stripped or (begins != kind and kind != "example") or (
                kind == "text" and FIELD.match(stripped)):
            if lines:
                yield kind, lines
            kind, lines = (begins if stripped else "text"), []
        if stripped:
            lines.append(line)


def markdown(doc, parameters=()):
    """A cleaned docstring as Markdown. parameters: the names whose lines `name: ...` are a list."""
    found, named = [], re.compile(
        r"\s*(\*{0,2}(?:%s)(?:(?:, | and )\*{0,2}(?:%s))*): (.*)" % (("|".join(
            re.escape(p) for p in parameters) or "(?!)",) * 2))
    for kind, lines in blocks(doc):
        if kind == "example":
            found.append("```python\n" + textwrap.dedent("\n".join(lines)) + "\n```")
        elif kind == "list":
            found.append("\n".join(escaped_item(line) for line in lines))
        elif kind == "text" and all(line.startswith("    ") for line in lines) and not any(
                named.match(line) for line in lines):
            found.append("```text\n" + textwrap.dedent("\n".join(lines)) + "\n```")
        else:
            found += paragraphs(lines, named)
    return "\n\n".join(found)


def escaped_item(line):
    match = re.match(r"(\s*[-*] )(.*)", line)
    return match[1] + escaped(match[2]) if match else escaped(line)


def paragraphs(lines, named):
    """Lines of text as paragraphs; what begins with the name of a parameter is an item."""
    parts = []                              # [whether it is an item, its text]
    for line in lines:
        if match := named.match(line):
            names = re.sub(r"\*{0,2}\w+", lambda name: "`" + name[0] + "`",
                           match[1].replace(" and ", ", "))
            parts.append([True, f"- {names}: {escaped(match[2])}"])
        elif match := FIELD.match(line.strip()):
            parts.append([False, f"**{match[1]}**: " + escaped(line.strip()[match.end():])])
        elif parts:
            parts[-1][1] += "\n" + ("  " if parts[-1][0] else "") + escaped(line.strip())
        else:
            parts.append([False, escaped(line.strip())])
    text, before = "", False
    for is_item, part in parts:
        text += ("" if not text else "\n" if is_item and before else "\n\n") + part
        before = is_item
    return [text.replace("**: \n", "**:\n").rstrip()]
