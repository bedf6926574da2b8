"""The plausible faults of a source file in Python or Cython: one small change of one line each.

Comments, strings, imports, types and lines that only declare are left alone. There is no parser of
Cython for Python, so a fault is decided by the tokens around it.
"""

import re
from typing import NamedTuple

TOKEN = re.compile(r"""
    (?P<text> [rbf]{0,2}(?:\"\"\"[\s\S]*?\"\"\" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'))
    | (?P<number> 0[xX][0-9a-fA-F]+ | (?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)
    | (?P<word> [^\W\d]\w*)
    | (?P<op> \*\*=?|//=?|<<=?|>>=?|->|[-+*/%&|^<>=!:]=|[-+*/%&|^~<>=()\[\]{},:.;@?])
    | (?P<line> (?<!\\)\n)
    | (?P<other> \#[^\n]*|[\s\S])""", re.VERBOSE)
DECLARES = re.compile(r"(cdef|ctypedef)\s+(extern|struct|enum|packed|union|fused)\b|cdef\s*:")
LEFT_ALONE = {"import", "from", "cimport", "include", "ctypedef", "class", "global", "nonlocal",
              "assert"}
TEST_DATA = {"samples", "edges", "errors", "reference"}     # in a declaration: no fault of it
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
         "*": "+", "/": "*", "//": "/", "%": "//", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
         "^": "&", "**": "*", "+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "&=": "|=",
         "and": "or", "or": "and"}
OTHER_WORD = {"True": "False", "False": "True", "break": "pass", "continue": "pass", "not": ""}
ORDERED = {"-", "/", "//", "%", "<<", ">>", "<", "<=", ">", ">=", ",", "=="}
KEYWORDS = {"return", "and", "or", "not", "in", "is", "if", "else", "elif", "while", "yield",
            "lambda", "for", "None", "True", "False", "raise"}
CAST = re.compile(r"(?<![\w)\]])<[A-Za-z_][\w .]*[\s*]*(\[[^\]]*\])?>|(?<=return )<[\w .*]+>")
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
        if skipped is None and tokens[0].text not in LEFT_ALONE and tokens[0].kind != "text":
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
        elif match.lastgroup not in ("line", "other"):
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
    tokens = list(mutable(text, tokens))
    loop = any(token.text == "for" for token in tokens)
    for i, (kind, old, start, stop, _) in enumerate(tokens):
        before = tokens[i - 1] if i else Token("op", "(", 0, 0, 0)
        after = tokens[i + 1] if i + 1 < len(tokens) else before
        binary = before.kind in ("number", "text") or before.text in (")", "]") or (
            before.kind == "word" and before.text not in KEYWORDS)
        if kind == "number":
            yield from ((start, stop, new) for new in other_numbers(old))
        elif old in OTHER and binary:
            yield start, stop, OTHER[old]
        elif old in OTHER_WORD:
            yield start, stop, OTHER_WORD[old]
        elif old == "-":
            yield start, stop, ""
        elif old == "is" and after.text != "not":
            yield stop, stop, " not"
        elif old == "in" and binary and not loop:
            yield start, start, "not "
        elif [t.text for t in tokens[i:i + 4:3]] == ["range", ")"]:
            yield tokens[i + 3].start, tokens[i + 3].start, " - 1"
        if old in ORDERED and swappable(tokens[i - 2:i + 3]):
            middle = text[before.stop:after.start]
            yield before.start, after.stop, after.text + middle + before.text


def swappable(around):
    """Whether two plain names stand beside an operator or a comma, and nothing binds tighter."""
    if len(around) < 5:
        return False
    outer, x, middle, y, beyond = around
    return (x.kind == y.kind == "word" and x.text != y.text and not {x.text, y.text} & KEYWORDS
            and beyond.text in (")", ",", "]", ":")
            and (outer.text in ("(", ",") and x.depth > 0 if middle.text == ","
                 else outer.text in ("(", ",", "[", "=", "return", "if", "and", "or")))


def mutable(text, tokens):
    """The tokens of a statement but for types, casts, signatures and data for tests."""
    first = tokens[0].text
    if first in ("cdef", "cpdef"):
        equals = [i for i, t in enumerate(tokens) if t.text == "=" and t.depth == 0]
        tokens = tokens[equals[0]:] if equals and tokens[-1].text != ":" else []
    elif first in ("def", "@"):
        kinds = ("number",) if first == "def" else ()
        tokens = [token for before, token in zip(tokens, tokens[1:]) if before.text == "="
                  and (token.text in ("True", "False") or token.kind in kinds)]
    cast_stop, data_depth = 0, None
    for token, after in zip(tokens, [*tokens[1:], None]):
        if token.text == "<" and (cast := CAST.match(text, token.start)):
            cast_stop = cast.end()
        if token.text in TEST_DATA and after and after.text == "=" and token.depth:
            data_depth = token.depth
        elif token.text == "," and token.depth == data_depth:
            data_depth = None
        if token.start >= cast_stop and data_depth is None:
            yield token


def other_numbers(old):
    """One more and one less; or another digit, that makes a difference in half precision."""
    if old.isdigit():
        yield str(int(old) + 1)
        if int(old):
            yield str(int(old) - 1)
    elif "x" in old.lower():
        yield old[:-1] + ("3" if old[-1] != "3" else "5")
    else:
        mantissa = re.match(r"[\d.]*", old)[0]
        digits = [i for i, c in enumerate(mantissa) if c.isdigit() and c != "0"]
        digits = digits or [i for i, c in enumerate(mantissa) if c.isdigit()]
        i = digits[min(2, len(digits) - 1)]
        yield old[:i] + ("3" if old[i] != "3" else "5") + old[i + 1:]
