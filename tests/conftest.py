"""What all tests share: the hypothesis profile, all operations, little for the collector to do."""

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.pathlib import import_path
from hypothesis import HealthCheck, settings

# Threads of OpenBLAS and of PyTorch spin where they wait, which beside other processes takes twice
# the processor time of the tests. What NumPy and PyTorch are asked for needs one thread, and
# where a test asks for more, they sleep at once. Both are read when NumPy is imported.
for variable, value in (("OPENBLAS_NUM_THREADS", "1"), ("OPENBLAS_THREAD_TIMEOUT", "4"),
                        ("OMP_NUM_THREADS", "1")):
    os.environ.setdefault(variable, value)

from tensorlib import get_num_threads, set_num_threads          # noqa: E402
from tensorlib.ops.lazy import declare_all                      # noqa: E402

# No deadline: the time of one example says more about the machine than about the code.
for name, count in (("tensorlib", 40), ("thorough", 500)):
    settings.register_profile(name, deadline=None, max_examples=count,
                              suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tensorlib")      # or what `--hypothesis-profile` names

# To rewrite the asserts of all tests takes twice as long as to collect them, in each process. So it
# is done once; where nothing is to be written beside the sources, what it gives lies in `build`.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / "build" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

gc.disable()        # until all tests are there: none of what they are made of is garbage
declare_all()       # tests are generated from all declarations; test_lazy_families.py has lazy ones


def pytest_addoption(parser):
    parser.addoption("--op", metavar="NAME", help="what is tried on every operation, on this one")


def pytest_collection_modifyitems(config, items):
    """With `--op NAME` those tests alone that go through the operations of a room, and it alone."""
    if wanted := config.getoption("--op"):
        others = []
        for item in items:
            params = item.callspec.params if hasattr(item, "callspec") else {}
            if wanted in params.get("room", {}):
                params["room"] = {wanted: params["room"][wanted]}
            else:
                others.append(item)
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Of two processes that collect the same tests, one begins at the end: in a fresh clone each
    rewrites the asserts of half of the files then, and reads what the other has written."""
    worker = getattr(session.config, "workerinput", {}).get("workerid", "gw0")
    if int(worker[2:]) % 2:
        for path in sorted(Path(__file__).parent.rglob("test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):      # of which the collection tells
                import_path(path, root=session.config.rootpath, consider_namespace_packages=False)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report):
    """Nobody reads the keywords of what passed, to send which takes longest of what is sent."""
    data = yield
    if data and report.passed and "keywords" in data:
        data["keywords"] = {}
    return data


BETWEEN = 20        # tests
ran = []            # since objects were frozen


def pytest_collection_finish(session):
    """Tests that collect garbage, or look who refers to what, need not go through the tests
    themselves, some thousands in each process."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item):
    """Nor through the reports of those that ran, and what these keep: it is frozen now and then."""
    if len(ran) >= BETWEEN:
        gc.collect()
        gc.freeze()
        ran.clear()
    ran.append(item)


@pytest.fixture
def restore_threads():
    """As many threads after a test as there were before it."""
    before = get_num_threads()
    yield
    set_num_threads(before)
