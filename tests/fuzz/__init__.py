"""Fuzzers: odd calls, each in a process that may die, told from good behaviour by simple rules.

`python -m tests.fuzz --help` runs them long; `test_fuzz.py` runs each kind briefly. A call is an
expression in Python's own text, made from a kind, a seed and a number alone, so that any one can
be run again. It is a finding if the process dies or hangs, if it raises SystemError, or if a call
that raises has changed its arguments.

values.py       texts of odd values, by what they are odd in
liars.py        objects whose `__index__`, `__len__`, `__array__`, ... lie, raise, or run code
targets.py      texts of everything that can be called
programs.py     small programs that work, for threads and failing allocations
kinds.py        how a call of each kind is made
judge.py        runs one call in this process and says what is wrong with it
failing.py      allocations that fail
worker.py       the process that runs calls one after the other
supervisor.py   starts workers, notes which call ended one, and how
"""
