"""Which freed memory is kept, to be handed out again."""

from process import run_forked

SIZES = """
import time
import tensorlib as tl
for megabytes in (4, 5, 6, 7):
    tl.empty(megabytes << 18)            # more together than twice the largest
time.sleep(0.3)
before = tl.memory.stats()
for _ in range(20):
    tl.empty(7 << 18)
after = tl.memory.stats()
print(after["reused"] - before["reused"] >= 19, after["kept"] <= 2 * after["peak"])
"""


def test_sizes_that_a_program_has_done_with_make_room_for_the_one_that_it_uses():
    assert run_forked(SIZES) == "True True\n"
