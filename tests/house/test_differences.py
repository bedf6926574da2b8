"""The differences from PyTorch that the tests excuse are those of the table that users read."""

import re
from pathlib import Path

import pytest
from cases import each
from peer import DIFFERENCES

CONVENTIONS = Path(__file__).parents[2] / "docs" / "conventions.md"

# The beginning of the row of the table for each operation that peer.py excuses.
POSITIONS = "positions in `index_select`"
PROMOTED = "matrix products of different dtypes"
ROWS = {
    "reversed slices": ["slices with a negative step"],
    **{name: [PROMOTED] for name in (
        "@", "mm", "mv", "bmm", "dot", "addmm", "addmv", "baddbmm", "inner")},
    "matmul": ["`bool @ bool`", PROMOTED],
    "softmax": ["softmax of integers"], "log_softmax": ["softmax of integers"],
    "sub": ["bools in a difference"], "-": ["bools in a difference"],
    "reflected -": ["bools in a difference"],
    "**": ["bools to the power of a bool"],
    "reflected **": ["bools to the power of a bool", "an integer to the power of an integer"],
    "clamp": ["a bound of `clamp`"], "crossed clamp": ["a bound of `clamp`"],
    "writing a tensor": ["`x[[0]] = values` of another dtype"],
    "index_fill": [POSITIONS, "the error of an index of a wrong dtype"],
    "index_copy": [POSITIONS], "index_add": [POSITIONS], "gather": [POSITIONS],
    "scatter": [POSITIONS], "scatter_add": [POSITIONS], "take_along_dim": [POSITIONS],
    "take_along_dim of all": [POSITIONS],
}


@pytest.mark.skipif(not CONVENTIONS.exists(), reason="needs the repository")
@each("operation", sorted({each.operation for each in DIFFERENCES}))
def test_what_is_excused_is_in_the_table(operation):
    table = CONVENTIONS.read_text().partition("\n## Differences from PyTorch\n")[2]
    firsts = [match[1] for match in re.finditer(r"^\| (.*?) \|", table, re.MULTILINE)]
    for beginning in ROWS[operation]:
        assert any(first.startswith(beginning) for first in firsts), beginning
