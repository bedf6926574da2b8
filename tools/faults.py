"""The plausible faults of a source file in Python or Cython: one small change of one line each.

Comments, strings, imports and lines that only declare are left alone. There is no parser of Cython
for Python: the tokens decide, and what does not compile is drawn again.
"""

import re
from typing import NamedTuple

TOKEN = re.compile(r"""
    (?P<text> [rbf]{0,2}(?:\"\"\"[\s\S]*?\"\"\" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'))
    | (?P<number> 0[xX][0-9a-fA-F]+ | (?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)
    | (?P<word> [^\W\d]\w*)
    | (?P<cast> (?<![\w)\]]\ )<[A-Za-z_][\w.]*[\s*]*(?:\[[^\]]*\])?>)
    | (?P<op> \*\*=?|//=?|<<=?|>>=?|->|[-+*/%&|^<>=!:]=|[-+*/%&|^~<>=()\[\]{},:.;@?])
    | (?P<line> (?<!\\)\n)
    | (?P<other> \#[^\n]*|[\s\S])""", re.VERBOSE)
DECLARES = re.compile(r"(cdef|ctypedef)\s+(extern|struct|enum|packed|union|fused)\b|cdef\s*:")
LEFT_ALONE = {"import", "from", "cimport", "include", "ctypedef", "class", "global", "assert"}
TEST_DATA = {"samples", "edges", "errors", "reference"}     # in a declaration: no fault of it
ERRORS = re.compile(r"[A-Z_]+ = refusals\(")                 # nor of these
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
         "*": "+", "/": "*", "//": "/", "%": "//", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
         "^": "&", "**": "*", "+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "&=": "|=",
         "and": "or", "or": "and", "True": "False", "False": "True", "break": "pass",
         "continue": "pass", "not": "", "is": "is not"}
ORDERED = {"-", "/", "//", "%", "<<", ">>", "<", "<=", ">", ">=", ","}
UNARY = {"return", "and", "or", "not", "in", "is", "if", "else", "lambda", "yield"}
BINDING = {"for", "None", "True", "False", ".", "*", "/"} | UNARY
CLOSING = {")", "]", ",", ":"}
CALL = re.compile(r"[A-Za-z_][\w.]*(\[[^\]]*\])?\(.*\)$", re.DOTALL)
STORE = re.compile(r"([A-Za-z_]\w*\s*[-+*/|&^%]=|[A-Za-z_]\w*[.\[][^=(]*\s[-+*/|&^%]?=)[^=]")


class Token(NamedTuple):
    kind: str
    text: str
    start: int      # in the file
    stop: int
    depth: int      # of the brackets around it


class Fault(NamedTuple):
    path: str
    start: int      # of what is replaced in the file
    stop: int
    new: str

    def apply(self, text):
        return text[:self.start] + self.new + text[self.stop:]


def faults(path, text):
    """The faults of a file: a list for each line that has any."""
    skipped = None      # the indent of a block that only declares
    lines = {}
    for tokens in statements(text):
        start = tokens[0].start
        indent = start - text.rfind("\n", 0, start) - 1
        if skipped is not None and indent > skipped:
            continue
        source = text[start:tokens[-1].stop]
        skipped = indent if DECLARES.match(source) else None
        if (skipped is None and tokens[0].text not in LEFT_ALONE and tokens[0].kind != "text"
                and not ERRORS.match(source)):
            for fault in {*of_statement(source, tokens), *of_tokens(text, tokens)}:
                lines.setdefault(text.count("\n", 0, fault[0]), []).append(Fault(path, *fault))
    return [sorted(lines[line]) for line in sorted(lines)]


def statements(text):
    """The tokens of each statement."""
    depth, found = 0, []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "line" and not depth:
            if found:
                yield found
            found = []
        elif match.lastgroup not in ("line", "other", "cast"):
            depth -= match[0] in (")", "]", "}")
            found.append(Token(match.lastgroup, match[0], *match.span(), depth))
            depth += match[0] in ("(", "[", "{")


def of_statement(source, tokens):
    """A statement that is dropped, or a check of which one outcome is."""
    first, last = tokens[0], tokens[-1]
    if first.text in ("if", "elif", "while"):
        colon = next(t.start for t in tokens if t.text == ":" and t.depth == 0)
        for outcome in ("False", "True") if first.text == "if" else ("False",):
            yield first.stop + 1, colon, outcome
    elif first.text == "raise" or CALL.match(source) or STORE.match(source):
        yield first.start, last.stop, "pass"
    elif source.startswith("with nogil"):
        yield first.start, last.stop, "if True:"


def of_tokens(text, tokens):
    """An operator, a word, a number or two operands changed."""
    first = tokens[0].text
    if first in ("def", "@"):                                   # but for types and signatures
        tokens = [t for before, t in zip(tokens, tokens[1:]) if before.text == "="
                  and (t.text in ("True", "False") or t.kind == "number" and first == "def")]
    elif first in ("cdef", "cpdef"):
        equals = [i for i, t in enumerate(tokens) if t.text == "=" and not t.depth]
        tokens = tokens[equals[0]:] if equals and tokens[-1].text != ":" else []
    data = None                                                 # the depth of data for tests
    for i, (kind, old, start, stop, depth) in enumerate(tokens):
        before, after = tokens[i - 1], tokens[min(i + 1, len(tokens) - 1)]
        if old in TEST_DATA and after.text == "=" and depth:
            data = depth
        elif old == "," and depth == data:
            data = None
        if data is not None:
            continue
        binary = (before.kind != "op" or before.text in ")]") and before.text not in UNARY
        if kind == "number":
            yield from ((start, stop, new) for new in other_numbers(old))
        elif old == "-" and not binary:
            yield start, stop, ""
        elif old in OTHER and (binary or kind == "word") and after.text != "not":
            yield start, stop, OTHER[old]
        elif old == "in" and not any(token.text == "for" for token in tokens):
            yield start, start, "not "
        elif old == "range" and [t.text for t in tokens[i + 1:i + 4:2]] == ["(", ")"]:
            yield tokens[i + 3].start, tokens[i + 3].start, " - 1"
        around = {token.text for token in tokens[max(i - 2, 0):i + 3]}
        if (old in ORDERED and before.kind == after.kind == "word" and before.text != after.text
                and not around & BINDING and {t.text for t in tokens[i + 2:i + 3]} <= CLOSING):
            yield before.start, after.stop, after.text + text[before.stop:after.start] + before.text


def other_numbers(old):
    """One more and one less; or another digit, that makes a difference in half precision."""
    if old.isdigit():
        yield str(int(old) + 1)
        if int(old):
            yield str(int(old) - 1)
    elif "x" in old.lower():
        yield old[:-1] + ("3" if old[-1] != "3" else "5")
    else:
        digits = [i for i, c in enumerate(re.match(r"[\d.]*", old)[0]) if c.isdigit()]
        i = ([i for i in digits if old[i] != "0"] or digits)[:3][-1]
        yield old[:i] + ("3" if old[i] != "3" else "5") + old[i + 1:]
