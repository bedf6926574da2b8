"""What notebooks show: tensors as tables, modules as trees, graphs and programs as pictures."""

import importlib
import sys
import types
from html.parser import HTMLParser

import pytest

import tensorlib as tl
from tensorlib import graph, nn, program
from tensorlib.graph.html import CHILDREN, EDGE, INFINITE, NAN


class Page(HTMLParser):
    """The text of an HTML fragment, whose tags have to be closed in their order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts, self.cells, self.rows = [], [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.cells.append(dict(attributes).get("style", ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)
        if self.open[-1] in ("td", "th"):
            self.rows[-1].append(text)


def page(x):
    return Page(x._repr_html_())


def test_a_matrix_is_a_table_with_its_kind_above():
    x = tl.tensor([[1.0, float("nan"), -2.5], [float("inf"), 0.0, 3.0]], requires_grad=True)
    found = page(x)
    assert found.texts[:7] == ["Tensor", " ", "(2, 3)", "float32", "requires_grad", "1 NaN",
                               "1 inf"]
    assert found.rows == [["0", "1", "2"], ["0", "1.0000", "nan", "-2.5000"],
                          ["1", "inf", "0.0000", "3.0000"]]
    one, nan, negative, infinite, zero, three = found.cells
    assert nan == NAN and infinite == INFINITE and "background" not in zero
    assert "214,69,69,0.15" in one and "214,69,69,0.45" in three and "43,108,176" in negative
    assert "grad_fn=MulBackward0" in page(x * 2).texts


@pytest.mark.parametrize("x, rows", [
    (tl.tensor(3), [["3"]]), (tl.tensor([1, -2]), [["0", "1"], ["1", "-2"]]),
    (tl.tensor([True]), [["0"], ["True"]]), (tl.ones(0), []), (tl.ones(2, 0, 3), []),
    (tl.tensor([0.5], dtype=tl.bfloat16), [["0"], ["0.5000"]]),
    (tl.tensor([float("nan")] * 2), [["0", "1"], ["nan", "nan"]])])
def test_tensors_of_any_kind(x, rows):
    assert page(x).rows == rows


def test_large_tensors_are_abbreviated():
    """Rows and columns in the middle, and matrices after the third."""
    x = (tl.arange(1000.0 * 400) % 397).view(1000, 400)
    html = x._repr_html_()
    found = Page(html)
    assert len(html) < 20_000 and len(found.rows) == 2 * EDGE + 2
    assert [row[0] for row in found.rows[1:]] == [*"01234", *["⋮"], *map(str, range(995, 1000))]
    assert found.rows[1][:8] == ["0", "0.", "1.", "2.", "3.", "4.", "…", "395."]
    many = page(tl.zeros(4, 5, 2, 2))
    assert "and 17 more" in many.texts and "[0, 2]" in many.texts and "[0, 3]" not in many.texts


def test_what_has_no_elements_to_show_is_shown_as_text():
    assert tl.ones(2, device="meta")._repr_html_() is None
    assert tl.eye(2).to_sparse()._repr_html_() is None


def test_nothing_that_a_user_names_is_markup():
    class Odd(nn.Module):
        def extra_repr(self):
            return "<b>&"

    x = tl.ones(1)
    x.name = "<script>"
    assert "&lt;script&gt;" in x._repr_html_() and "<script>" not in x._repr_html_()
    odd = Odd()
    odd.add_module("<i>", Odd())
    assert "(<b>&)" in page(odd).texts[1] and "<i>" not in odd._repr_html_()


def test_a_module_is_a_tree_with_its_parameters():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
    model[0].bias.requires_grad_(False)
    found = page(model)
    text = "".join(found.texts)
    assert "Sequential 13 parameters, 3 frozen" in text
    assert "(0): Linear(in_features=2, out_features=3, bias=True) 9 parameters, 3 frozen" in text
    assert "(1): Sequential 4 parameters" in text and "(0): ReLU" in text
    assert model._repr_html_().count("<details") == 2
    model[1][1].weight = nn.Parameter(tl.ones(1, 3))
    shared = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    shared[1].weight = shared[0].weight
    assert "Sequential 15 parameters" in "".join(page(shared).texts)
    assert "not yet made" in nn.LazyLinear(3)._repr_html_()
    assert "and 3 more" in page(nn.ModuleList(nn.ReLU() for _ in range(CHILDREN + 3))).texts


@pytest.fixture
def graphviz(monkeypatch):
    """The package, as it draws where its program is there."""
    drawn = []

    class Source:
        def __init__(self, text):
            self.text = text

        def pipe(self, format, encoding):
            drawn.append(self.text)
            return f"<{format}>{encoding}"

    monkeypatch.setitem(sys.modules, "graphviz", types.SimpleNamespace(Source=Source))
    return drawn


def test_graphs_and_programs_are_pictures(graphviz):
    w = tl.ones(3, requires_grad=True)
    text = graph.dot((w * w).sum())
    assert isinstance(text, str) and text._repr_svg_() == "<svg>utf-8" and graphviz == [text]
    found = program.trace(lambda x: x.tanh() * 2, tl.ones(2))
    assert found._repr_svg_() == "<svg>utf-8" and "tanh" in graphviz[1]
    x = w
    for _ in range(500):
        x = x * 2
    assert graph.dot(x.sum())._repr_svg_() is None          # nobody would read it


def test_without_graphviz_notebooks_show_the_text(monkeypatch):
    def missing(name):
        raise ImportError(name)

    text = graph.dot(tl.ones(3, requires_grad=True).sum())
    monkeypatch.setattr(importlib, "import_module", missing)
    assert text._repr_svg_() is None
