"""Several threads that take batches from one iterator of a loader."""

import threading

import pytest

from tensorlib.utils.data import DataLoader


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_share_the_batches_of_an_iterator(workers):
    epoch, taken, errors = iter(DataLoader(list(range(200)), batch_size=2,
                                           num_workers=workers)), [], []

    def take():
        try:
            for batch in epoch:
                taken.append(batch.tolist())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and sorted(sum(taken, [])) == list(range(200))
