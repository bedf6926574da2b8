"""Timers: they run what they are told, as often as they say. What they measure is not tested."""

import pytest

import tensorlib as tl
from tensorlib.utils.benchmark import Compare, Language, Measurement, TaskSpec, Timer, select_unit


class Clock:
    """A clock on which each statement takes as long as it says."""

    def __init__(self):
        self.now, self.threads, self.calls = 0.0, set(), 0

    def __call__(self):
        return self.now

    def work(self, seconds):
        self.now += seconds
        self.calls += 1
        self.threads.add(tl.get_num_threads())


def timer_of(clock, seconds, **options):
    return Timer(f"clock.work({seconds})", timer=clock, globals={"clock": clock}, **options)


def test_timeit_runs_as_often_as_it_says():
    clock = Clock()
    found = timer_of(clock, 0.5).timeit(200)
    assert clock.calls == 202 and found.number_per_run == 200
    assert found.median == found.mean == pytest.approx(0.5) and found.times == [found.median]
    with pytest.raises(ValueError, match="number"):
        timer_of(clock, 0.5).timeit(0)


def test_threads_are_those_asked_for_and_restored():
    before = tl.get_num_threads()
    for threads in (1, 3):
        clock = Clock()
        timer_of(clock, 0.1, num_threads=threads).timeit(3)
        assert clock.threads == {threads} and tl.get_num_threads() == before


@pytest.mark.parametrize("seconds", [1e-7, 1e-3, 0.05, 3.0])
def test_blocks_fill_the_time(seconds):
    clock, seen = Clock(), []
    found = timer_of(clock, seconds).blocked_autorange(
        lambda number, time: seen.append((number, time)), min_run_time=0.2)
    assert sum(found.raw_times) >= 0.2 and found.median == pytest.approx(seconds)
    assert [time for _, time in seen] == found.raw_times
    assert {number for number, _ in seen} == {found.number_per_run}
    assert found.number_per_run == 1 or found.number_per_run * seconds <= 0.02


def test_adaptive_ranges_stop_when_times_agree():
    clock = Clock()
    found = timer_of(clock, 0.01).adaptive_autorange()
    assert len(found.raw_times) == 4 and found.iqr == pytest.approx(0)
    wild = iter(range(1, 10**6))
    clock.wild = lambda: clock.work(next(wild) % 7 + 0.1)
    found = Timer("clock.wild()", timer=clock, globals={"clock": clock}).adaptive_autorange(
        max_run_time=100.0)
    assert 100 <= sum(found.raw_times) < 110 and found.has_warnings


def test_setups_and_names():
    assert Timer("assert x == 3; x", setup="x = 3").timeit(5).number_per_run == 5
    Timer("""
        assert torch.arange(3).tolist() == x
        """, setup="""
        x = [0, 1]
        x.append(2)
    """, language=Language.PYTHON).timeit(1)
    names = {"x": 1}
    Timer("x = 2", globals=names).timeit(1)
    assert names == {"x": 1}
    for wrong in ({"language": "c++"}, {"language": Language.CPP}, {"global_setup": "int x;"},
                  {"stmt": print}):
        with pytest.raises(ValueError, match="Timer"):
            Timer(**wrong)
    for missing in (Timer().repeat, Timer().autorange):
        with pytest.raises(NotImplementedError, match="blocked_autorange"):
            missing()


def test_measurements():
    spec = TaskSpec("x", label="sums", sub_label="small", num_threads=2)
    found = Measurement(10, [1.0, 2.0, 3.0, 2.0], spec)
    assert found.times == [0.1, 0.2, 0.3, 0.2]
    assert (found.median, found.mean) == (0.2, pytest.approx(0.2))
    assert found.iqr == pytest.approx(0.05) and found.title == "sums: small"
    text = repr(found)
    assert "Median: 200.00 ms" in text and "4 measurements, 10 runs per measurement, 2 th" in text
    (merged,) = Measurement.merge([found, Measurement(1, [0.4], spec)])
    assert sorted(merged.times) == [0.1, 0.2, 0.2, 0.3, 0.4]
    steady = Measurement(1, [1.0, 1.001] * 50, TaskSpec("x"))
    assert steady.significant_figures == 4 and not steady.has_warnings
    with pytest.raises(ValueError):
        Measurement(1, [], spec)


@pytest.mark.parametrize("seconds, unit", [(2.0, "s"), (1.0, "s"), (0.9, "ms"), (1e-6, "us"),
                                           (5e-7, "ns"), (1e-12, "ns")])
def test_units(seconds, unit):
    assert select_unit(seconds)[0] == unit


def test_comparisons():
    def row(name, column, time, threads=1):
        return Measurement(1, [time] * 3, TaskSpec(
            "x", label="sums", sub_label=name, description=column, num_threads=threads))

    compare = Compare([row("small", "ours", 2e-6), row("small", "theirs", 4e-6),
                       row("large", "ours", 3e-3)])
    compare.extend_results([row("small", "ours", 1e-6, threads=2)])
    compare.trim_significant_figures()
    compare.colorize()
    assert str(compare).splitlines() == [
        "[sums]",
        "             ours  theirs",
        "1 thread:",
        "small         2.0    4.0*",
        "large      3000.0",
        "2 threads:",
        "small        1.0*",
        "", "Times are in us."]
    with pytest.raises(TypeError, match="Measurements"):
        Compare([3])


def test_adaptive_ranges_tell_of_each_run():
    clock, seen = Clock(), []
    found = timer_of(clock, 0.1).adaptive_autorange(callback=lambda *run: seen.append(run))
    assert [time for _, time in seen] == found.raw_times and len(seen) == 4
    assert {number for number, _ in seen} == {found.number_per_run}


def measured(stmt="f(x)", times=(2e-3,), number=1, **spec):
    return Measurement(number, times, TaskSpec(stmt, **spec))


def test_what_a_measurement_of_one_run_says():
    found = measured(times=[3e-3], number=2, setup=" x = 1\n")
    assert found.iqr == 0 and found.significant_figures == 2 and not found.has_warnings
    assert repr(found).splitlines()[1:] == [
        "f(x)", "setup: x = 1", "  1.50 ms", "  1 measurement, 2 runs per measurement, 1 thread"]
    assert found.env == "Unspecified env" and measured(env="here").env == "here"


@pytest.mark.parametrize("spec, title, row", [
    ({}, "f(x)", "f(x)"), ({"stmt": "a\nb"}, "stmt: (multi-line)", "a\nb"),
    ({"label": "sums"}, "sums", "f(x)"), ({"stmt": ""}, "", "[Unknown]"),
    ({"label": "sums", "sub_label": "of rows"}, "sums: of rows", "of rows"),
])
def test_how_a_measurement_is_called(spec, title, row):
    assert measured(**spec).title == title and measured(**spec).as_row_name == row


def test_the_best_of_a_row_or_a_column_is_marked(capsys):
    results = [measured(times=[time], label="l", sub_label=row, description=column)
               for row, column, time in (("a", "x", 1e-3), ("a", "y", 2e-3), ("b", "x", 3e-3),
                                         ("b", "y", 1.5e-3), ("c", "x", 4e-3))]
    wanted = {None: ["a 1.0 2.0", "b 3.0 1.5", "c 4.0"],
              True: ["a 1.0* 2.0", "b 3.0 1.5*", "c 4.0*"],
              False: ["a 1.0* 2.0", "b 3.0 1.5*", "c 4.0"]}
    for rowwise, rows in wanted.items():
        table = Compare(results)
        if rowwise is not None:
            table.colorize(rowwise)
        table.print()
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert lines == ["[l]", "x y", "1 thread:", *rows, "", "Times are in ms."]
