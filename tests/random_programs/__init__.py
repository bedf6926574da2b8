"""Random programs: functions that read random state in many ways, and operations on tensors of odd
layouts, each run eagerly and compiled and compared to the bit, results and state alike.

`python -m tests.random_programs --help` runs many; `test_random_reads.py` runs a few. A program
depends only on a kind, a seed and a number, so it can be run again; a failing one is shrunk first.

running.py      runs the text of a program, eagerly or compiled, and notes all that can be seen
holders.py      what holds a value: how one is made, read and changed
leaves.py       the values that are held, and what a function does with them
states.py       draws functions that read held values, with changes between calls
layouts.py      draws programs on tensors that are strided, expanded, or share memory
reads.py        one way to read, with a change of what is read; tables of these:
object_reads.py, code_reads.py, library_reads.py
"""
