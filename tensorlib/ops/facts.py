"""The facts of an operation: what its record says beside what it computes.

Passes, captures, exports and profiles ask the record, and do not compare names. The library's own
operations count as pure, and as neither reading nor checking values, unless their declaration says
otherwise; tests run all of them to verify it. Of other operations nothing is assumed that they do
not declare.
"""

from tensorlib.ops.complete import is_ours

# The keywords of declarations, all of which are fields of the record.
FACTS = ("pure", "reads_values", "checks_values", "sized_by_values", "packs", "whole", "affine",
         "key", "draws", "multiplications")
KEYWORDS = (*FACTS, "complex")


def facts_of(function, given, loop=False, refuses=None):
    """The facts of a record, and what else a declaration gives by keyword.

    function: what is declared. loop: one of ours or NumPy's does it on each element, which is pure
    and asks for none. refuses: what integers it refuses.
    """
    known = loop or is_ours(function)
    facts = {"pure": known, "reads_values": not known, "checks_values": not known,
             "sized_by_values": not known, "family": getattr(function, "__module__", None) or ""}
    if loop:
        facts["checks_values"] = refuses is not None
    facts.update((name, given[name]) for name in FACTS if name in given)
    if "complex" in given:                # which is a word of Cython's, where the record is
        facts["takes_complex"] = given["complex"]
    return facts, {name: x for name, x in given.items() if name not in KEYWORDS}
