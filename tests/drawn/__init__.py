"""Programs that are drawn: functions that read drawn state in drawn ways, and operations on tensors
of odd layouts, each run eagerly and compiled and compared to the bit, results and state alike.

`python -m tests.drawn --help` runs many; `test_drawn.py` runs a few. A program is made from a kind,
a seed and a number alone, so that any one can be run again, and is printed as small as it fails.

running.py      runs the text of a program, eagerly or compiled, and notes all that can be seen
holders.py      what holds a value: how one is made, read and changed
leaves.py       the values that are held, and what a function does with them
states.py       draws functions that read held values, with changes between calls
layouts.py      draws programs on tensors that are strided, expanded, or share memory
ways.py         one way to read, with a change of what is read; tables of these:
ways_of_objects.py, ways_of_code.py, ways_of_libraries.py
"""
