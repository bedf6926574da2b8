"""Where sizes are multiplied, tensors looked at and the GIL released: read from the sources.

`test_memory_safety.py` shows that memory is safe; this holds the places by which it is.
"""

import re
from pathlib import Path

from cases import each

CORE = Path(__file__).parents[2] / "tensorlib" / "_core"
SOURCES = {path.relative_to(CORE).as_posix(): path.read_text()
           for suffix in ("*.pyx", "*.pxd") for path in sorted(CORE.rglob(suffix))}


def code_lines(text):
    """Numbered lines without docstrings and comments."""
    text = re.sub(r'"""[\s\S]*?"""', lambda found: "\n" * found[0].count("\n"), text)
    return [(number, line.split("#")[0].rstrip()) for number, line in
            enumerate(text.splitlines(), 1)]


def functions(text):
    """The functions of a source: their text, from one `def` at the margin or in a class on."""
    starts = [found.start() for found in re.finditer(r"^ {0,4}(?:cdef|cpdef|def) [^=\n]*\(", text,
                                                     re.MULTILINE)]
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)])]


# ---- sizes ---------------------------------------------------------------------------------------
# A running product of sizes can only be that of some sizes of one tensor, which were counted when
# it was made. Anything else goes through `count`, `widen`, `times` or `add_sizes` of base/shape.

RUNNING_PRODUCT = re.compile(r"\*= .*\b(?:dims|sizes)\b")
COUNTED = {
    "base/shape.pyx": "row_major of the sizes of a tensor or after count()",
    "layout/views.pyx": "groups of the dims of a tensor; sizes after count()",
    "layout/joining.pyx": "sizes after count()",
    "products/product.pyx": "batch dims of the operands, which broadcast to those of the result",
    "apply/elementwise.pyx": "some sizes of one tensor",
    "arrays/convert.pyx": "sizes of the tensor that is filled",
    "index/scatter_along.pyx": "some sizes of one tensor",
    "convolutions/as_products.pyx": "some sizes of one tensor",
    "convolutions/channels_last.pyx": "some sizes of one tensor",
    "index/scatter_reduce.pyx": "some sizes of one tensor",
    "index/slices.pyx": "some sizes of one tensor",
    "create/padding.pyx": "some sizes of one tensor",
    "index/strided.pyx": "neighbouring dims of a tensor",
    "tiles/copies.pyx": "the sizes of a tensor",
    "tiles/plan.pyx": "neighbouring dims of the output",
    "tiles/pieces.pyx": "neighbouring dims of the output",
    "tiles/transposed_operands.pyx": "the dims of the output",
    "reduce/arrange.pxd": "the sizes of one tensor",
    "reduce/arrange.pyx": "some sizes of one tensor",
    "sweep/accumulate.pyx": "the sizes of a tensor",
    "reduce/distances.pyx": "some sizes of one tensor",
    "reduce/exponentials.pyx": "some sizes of one tensor",
    "reduce/reductions.pyx": "some sizes of one tensor",
    "layout/rolling.pyx": "some sizes of one tensor",
    "layers/glu.pyx": "some sizes of one tensor",
    "layers/group_norm.pyx": "some sizes of one tensor",
    "layers/nll.pyx": "some sizes of one tensor",
    "layers/norms.pyx": "some sizes of one tensor",
    "reduce/scans.pyx": "some sizes of one tensor",
    "products/transforms.pyx": "some sizes of one tensor",
    "reduce/search.pyx": "some sizes of one tensor",
    "tensor/lanes.pxd": "the sizes of one tensor",
    "tensor/properties.pyx": "the sizes of one tensor that has elements",
    "layers/resample.pyx": "some sizes of one tensor",
    "layers/windows.pyx": "some sizes of one tensor, and of windows that lie in it",
}


def running_products():
    return [(file, number) for file, text in SOURCES.items() for number, line in code_lines(text)
            if RUNNING_PRODUCT.search(line)]


def test_running_products_of_sizes_are_those_of_a_tensor():
    assert {file for file, _ in running_products()} == set(COUNTED)


def test_what_may_overflow_is_counted():
    """Bytes of memory are asked for, and work is weighed, with numbers that were checked."""
    unchecked = [f"{file}:{number}: {line.strip()}" for file, text in SOURCES.items()
                 for number, line in code_lines(text)
                 if re.search(r"\ballocate\((?!x\.numel_ \* ITEMSIZE\[dtype\]\)|0\)|Py_ssize_t"
                              r"|x\.storage\.nbytes\))", line)
                 and not file.startswith("base/storage")]
    assert not unchecked
    weighed = [f"{file}:{number}" for file, text in SOURCES.items()
               for number, line in code_lines(text)
               if re.search(r"\* \w+(?:\.\w+)? <=? (?:RELEASE_GIL|SERIAL_BELOW|GRAIN)", line)]
    assert not weighed


def test_tensors_are_made_where_sizes_and_places_are_checked():
    """Only new_tensor, over_storage and alias make tensors of compiled code."""
    makers = [(file, found[0]) for file, text in SOURCES.items() for function in functions(text)
              for found in [re.match(r"[\w ]*\b(\w+)\(", function)]
              if "Tensor.__new__(Tensor)" in function]
    assert {name.rstrip("(").split()[-1] for _, name in makers} == {
        "new_tensor", "over_storage", "alias"}
    text = SOURCES["tensor/tensor.pyx"]
    assert text.count("refuse_size(") == 2 and text.count("refuse_place(") == 1


# ---- arguments -----------------------------------------------------------------------------------

def test_dims_are_settled_before_the_tensor_is_looked_at():
    for file, text in SOURCES.items():
        if file in ("base/shape.pyx", "base/shape.pxd"):
            continue
        for function in functions(text):
            found = re.search(r"\b(?:wrap_dim|parse_dims)\((?!str)[^)]*\bndim_", function)
            if found:
                assert "settled(" in function[:found.start()], (file, function[:200])


# ---- memory in use -------------------------------------------------------------------------------

FREE_OF_TENSORS = {"base/pool.pyx": "wakes threads", "products/blas.pyx": "sets their number",
                   "products/plans.pyx": "fills memory of its own",
                   "products/transforms.pyx": "in a thread of the pool, whose caller holds it",
                   "sweep/state.pyx": "waits for another thread",
                   "base/epochs.pyx": "waits for other threads"}


def unlocked_blocks(text):
    """Each block without the GIL, with the line before it and the one after."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if line.strip() == "with nogil:":
            indent = len(line) - len(line.lstrip())
            end = start + 1
            while end < len(lines) and (not lines[end].strip()
                                        or len(lines[end]) - len(lines[end].lstrip()) > indent):
                end += 1
            yield lines[:start], lines[start + 1:end], lines[end:]


def test_work_without_the_gil_holds_the_memory_it_uses():
    seen = 0
    for file, text in SOURCES.items():
        for before, block, after in unlocked_blocks(text):
            if file in FREE_OF_TENSORS:
                continue
            seen += 1
            assert any("work_begins()" in line for line in before[-6:]), (file, block)
            assert any("work_ends(epoch)" in line for line in after[:7]), (file, block)
            looks = [line for line in block
                     if re.search(r"\.(?:data_pointer|dims|steps|numel_|ndim_|storage)\b", line)
                     and "plan." not in line]
            assert not looks, (file, looks)
    assert seen >= 10


@each("file", [file for file in SOURCES if "nogil" in SOURCES[file]])
def test_functions_without_the_gil_take_no_tensors(file):
    heads = re.findall(r"^cdef [^=(\n]*\([^)]*\)[^:\n]*nogil:", SOURCES[file], re.MULTILINE)
    assert not [head for head in heads if re.search(r"\(.*\bTensor \w", head, re.DOTALL)]


def test_only_replace_gives_a_tensor_other_memory():
    writers = {(file, re.match(r"[^(]*?(\w+)\(", function)[1])
               for file, text in SOURCES.items() for function in functions(text)
               if re.search(r"\b(?!export)\w+\.storage = ", function)}
    assert {name for _, name in writers} == {
        "new_tensor", "over_storage", "alias", "replace", "new_empty", "data", "set_data"}
