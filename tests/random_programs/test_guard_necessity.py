"""Each kind of guard is needed: where one is left out, a change of what is read goes unnoticed."""

import pytest

from tensorlib.program.compiled import compiling
from tensorlib.program.reads import accessors, recorder, settings
from tensorlib.program.reads.read_log import ReadLog

from . import running, reads, code_reads, library_reads, object_reads

WAYS = {**object_reads.WAYS, **code_reads.WAYS, **library_reads.WAYS}
MODULE = "m = nn.Sequential(nn.ReLU())"
# of each kind of entry, a read that has no other guard
ENTRIES = {
    "attr": reads.Way("y = y * o.k", "o.k = 3", reads.CLASS + "o.k = 2"),
    "attrs": reads.Way("y = y * (2 if o == S(2) else 3)", "o.k = 3",
        "@dataclasses.dataclass\nclass S:\n    k: int = 2\no = S()"),
    "key": reads.Way("y = y * o", "global o; o = 3", "o = 2"),
    "dict": reads.Way("y = y * len(list(o.values()))", "o['b'] = 3", "o = dict(a=2)"),
    "item": reads.Way("y = y * o[0]", "o[0] = 3", "o = [2]"),
    "list": reads.Way("for k in o: y = y * k", "o.append(3)", "o = [2]"),
    "class": reads.Way("y = y * o.m()", "C.m = lambda self: 7", reads.CLASS),
    "cell": reads.Way("y = y * o", "nonlocal o; o = 3", inner="o = 2"),
    "function": reads.Way("y = y * g()", "g.__code__ = (lambda: 3).__code__", "def g(): return 2"),
    "kind": reads.Way("y = y * o.m()", "o.__class__ = type('E', (), dict(m=lambda self: 5))",
        "class D:\n    def m(self): return 2\no = D()"),
}
# and of each accessor
ACCESSORS = {
    accessors.members_of: reads.Way("y = y * sum(o)", "o.add(5)", "o = {2}"),
    accessors.contents_of: reads.Way("y = y * float(o.sum())", "o[0] = 3", "o = np.ones(2)"),
    accessors.order_of: reads.Way("y = y * next(iter(o.values()))", "o.move_to_end('a')",
        "o = collections.OrderedDict(a=2, b=3)"),
    accessors.is_filled: reads.Way("y = y * (2 if o else 3)", "o.clear()", "o = [2]"),
    accessors.length_of: reads.Way("y = y * len(o)", "o.append(3)", "o = [2]"),
    accessors.classes_below: reads.Way("y = y * len(C.__subclasses__())",
        "o.k = type('E', (C,), {})", reads.CLASS),
    accessors.attribute_of: reads.Way("y = y * (2 if hasattr(w, 'odd') else 3)", "w.odd = 1",
        "w = tl.ones(1)"),
    accessors.field_of: reads.Way("y = y * (2 if hasattr(o, 'k') else 3)", "o.k = 3",
        "class P:\n    __slots__ = ('k',)\no = P()"),
    settings.current_setting: reads.Way("y = y * tl.get_num_threads()",
        "tl.set_num_threads(3 - tl.get_num_threads())", "tl.set_num_threads(1)"),
}


def unseen(f):
    """A function that passes for one of the library: a capture ends at others."""
    f.__code__ = f.__code__.replace(co_filename=recorder.__file__)
    return f


@pytest.mark.parametrize("kind", ENTRIES)
def test_each_kind_of_entry(monkeypatch, kind):
    text = reads.text_of(ENTRIES[kind])
    assert not running.difference(text)
    record = ReadLog.record

    def kept(self, holder, what, key, value):
        if what == kind:
            self.old[id(value)] = value          # its age is known by the entry, too
        else:
            record(self, holder, what, key, value)

    monkeypatch.setattr(ReadLog, "record", unseen(kept))
    assert running.difference(text)


@pytest.mark.parametrize("accessor", ACCESSORS, ids=lambda accessor: accessor.__name__)
def test_each_kind_of_value(monkeypatch, accessor):
    text = reads.text_of(ACCESSORS[accessor])
    assert not running.difference(text)
    record = recorder.ReadRecorder.record_value
    monkeypatch.setattr(recorder.ReadRecorder, "record_value", unseen(
        lambda self, holder, read, *rest: (
            None if read is accessor else record(self, holder, read, *rest))))
    assert running.difference(text)


def test_hooks_of_modules(monkeypatch):
    text = reads.text_of(reads.Way("y = m(y)", "m[0].register_forward_hook(lambda m, a, r: r * 2)",
                                 MODULE + "\nm[0].register_forward_hook(len).remove()"))
    assert not running.difference(text)
    guards = compiling.Guards
    monkeypatch.setattr(compiling, "Guards", lambda all, hooks: guards(all, []))
    assert running.difference(text)
