"""Threads that do something at the same time."""

import threading


def together(call, count=4, times=60, others=()):
    """Calls `call(k, i)` on `count` threads, `times` times on each, and raises what any of them
    raises. Meanwhile each of the `others` is called again and again on a thread of its own."""
    raised, over = [], threading.Event()
    barrier = threading.Barrier(count + len(others))

    def run(k):
        try:
            barrier.wait(30)
            for i in range(times):
                call(k, i)
        except BaseException as error:
            raised.append(error)

    def go_on(other):
        try:
            barrier.wait(30)
            while not over.is_set():
                other()
        except BaseException as error:
            raised.append(error)

    around = [threading.Thread(target=go_on, args=(other,)) for other in others]
    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in around + threads:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    for thread in around:
        thread.join()
    if raised:
        raise raised[0]
