"""The facts of an operation: properties in its record, besides what it computes.

Passes, captures, exports and profiles use the record, and do not compare names. The library's own
operations count as pure, and as neither reading nor checking values, unless their declaration says
otherwise; tests run all of them to verify it. Facts that operations from outside do not declare
have the conservative value.
"""

from tensorlib.ops.complete import is_ours

# The keywords of declarations, all of which are fields of the record.
FACTS = ("pure", "reads_values", "checks_values", "sized_by_values", "packs", "whole", "affine",
         "key", "draws", "multiplications")
KEYWORDS = (*FACTS, "complex")


def facts_of(function, given, loop=False, refuses=None):
    """The facts of a record, and the other keywords of a declaration.

    function: the declared function. loop: it is element-wise by a loop of ours or NumPy's, so it is
    pure and reads no values. refuses: the integers for which it raises.
    """
    known = loop or is_ours(function)
    facts = {"pure": known, "reads_values": not known, "checks_values": not known,
             "sized_by_values": not known, "family": getattr(function, "__module__", None) or ""}
    if loop:
        facts["checks_values"] = refuses is not None
    facts.update((name, given[name]) for name in FACTS if name in given)
    if "complex" in given:                # a keyword in Cython, where the record is defined
        facts["takes_complex"] = given["complex"]
    return facts, {name: x for name, x in given.items() if name not in KEYWORDS}
