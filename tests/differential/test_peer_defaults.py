"""What an argument is where it is left out, beside PyTorch's, of which a list is kept."""

import pytest

from tools import peer_defaults

NO_BEARING = "it chooses a way to the same result"
# Defaults that differ, by function and argument.
REASONS = {
    ("cdist", "compute_mode"): NO_BEARING,
    ("save", "pickle_protocol"): "nothing is pickled",
    ("save", "_use_new_zipfile_serialization"): "nothing is pickled",
    ("meshgrid", "indexing"): "PyTorch warns that it takes 'ij' until it is given",
    ("nn.functional.affine_grid", "align_corners"): "PyTorch warns that it takes False",
}


@pytest.fixture(scope="module")
def ours():
    return {name: found for name, function in peer_defaults.functions("tensorlib")
            if (found := peer_defaults.defaults(function)) is not None}


def test_defaults_are_pytorchs(ours):
    differ = {(name, argument): (ours[name][argument], value)
              for name, wanted in peer_defaults.recorded().items()
              for argument, value in wanted.items()
              if argument in ours[name] and ours[name][argument] != value}
    assert {pair: values for pair, values in differ.items() if pair not in REASONS} == {}
    assert set(REASONS) <= set(differ)


def test_the_list_has_what_both_have(ours):
    names = set(peer_defaults.recorded())
    assert len(names) > 600 and names <= set(ours)
    assert {"nn.Module.named_buffers", "nn.Linear.__init__", "optim.AdamW.__init__",
            "nn.TransformerDecoderLayer.forward", "utils.data.DataLoader.__init__"} <= names
