"""Draws the picture with which docs/design.md begins: one operation, from its call to its gradient.

    python -m tools.path_of_a_call            writes it
    python -m tools.path_of_a_call --check    says whether it is stale, by the exit status too
"""

import sys
from pathlib import Path
from xml.sax.saxutils import escape

PATH = Path(__file__).parents[1] / "docs" / "path_of_a_call.svg"
WIDTH, HEIGHT = 860, 560
# Left edge, upper edge and width of a box, its title, and what happens in it.
BOXES = (
    (20, 20, 390, "1  parser", ("out = a.tanh()", "arguments checked, named, in one order")),
    (20, 110, 390, "2  dispatch", ("one flag: does anything interpret this thread's calls?",
                                   "no: on to the forward function")),
    (20, 200, 390, "3  forward function", ("promotion, broadcasting, dtype and shape of the result",
                                           "memory for it from the caching allocator")),
    (20, 290, 390, "4  tile program", ("[tanh], cut into tiles that stay in the L1 cache",
                                       "casts, strides and threads are dealt with here")),
    (20, 380, 390, "5  kernel", ("y[i] = tanh(x[i]) over one contiguous run",
                                 "compiled for each instruction set; knows no Tensor")),
    (20, 470, 390, "6  recording", ("does an input require a gradient? then a Node:",
                                    "edges to the inputs' nodes, and the saved value `out`")),
    (480, 110, 360, "interpreters", ("capture of a program, meta, profile, batch, ...",
                                     "one may do the call itself, or let it go on")),
    (480, 290, 360, "8  rule", ("g * (1 - out * out), written once with the operation",
                                "traced into a tile program, or one fused kernel")),
    (480, 380, 360, "9  leaf", ("gradients that meet are summed", "a.grad")),
    (480, 470, 360, "7  backward sweep", ("loss.backward(): nodes run newest first,",
                                          "each when all that use its result have run")),
)
BOX_HEIGHT = 70
# Lines from point to point, with an arrow at the end.
ARROWS = (
    ((215, 90), (215, 110)), ((215, 180), (215, 200)), ((215, 270), (215, 290)),
    ((215, 360), (215, 380)), ((215, 450), (215, 470)),
    ((410, 145), (480, 145)), ((660, 180), (660, 235), (410, 235)),
    ((410, 505), (480, 505)), ((840, 505), (852, 505), (852, 325), (840, 325)),
    ((480, 325), (445, 325), (445, 340), (410, 340)), ((660, 360), (660, 380)),
)
NOTES = ((418, 138, "yes"), (225, 195, "no"), (486, 252, "or: go on"), (416, 498, "later"))


def box(left, top, width, title, lines):
    """The text of one box."""
    yield (f'<rect x="{left}" y="{top}" width="{width}" height="{BOX_HEIGHT}" rx="6" '
           'fill="#f4f6fa" stroke="#44546a"/>')
    yield f'<text x="{left + 12}" y="{top + 21}" font-weight="bold">{escape(title)}</text>'
    for i, line in enumerate(lines):
        yield f'<text x="{left + 12}" y="{top + 41 + 18 * i}">{escape(line)}</text>'


def picture():
    """The whole text of the SVG file."""
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13" '
           'fill="#1b2430">')
    yield ('<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
           'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#44546a"/></marker>'
           '</defs>')
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    for points in ARROWS:
        path = " ".join(f"{x},{y}" for x, y in points)
        yield (f'<polyline points="{path}" fill="none" stroke="#44546a" stroke-width="1.5" '
               'marker-end="url(#end)"/>')
    for each in BOXES:
        yield from box(*each)
    for x, y, text in NOTES:
        yield f'<text x="{x}" y="{y}" font-style="italic" fill="#44546a">{escape(text)}</text>'
    yield "</svg>"


def main(arguments):
    """Writes the picture, or says whether it is stale: the exit status."""
    text = "\n".join(picture()) + "\n"
    if "--check" in arguments:
        stale = PATH.read_text() != text
        print(f"{PATH}: stale" if stale else "up to date")
        return int(stale)
    PATH.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
