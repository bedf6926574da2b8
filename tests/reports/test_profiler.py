"""Profiles: what they count, what they leave alone, and what they show."""

import json
import threading

import pytest

import tensorlib as tl
from tensorlib._core.interpreters import profile as observing
from tensorlib.nn import functional as F
from tensorlib.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from tensorlib.profiler.events import shown_line
from tensorlib.profiler.table import bytes_text, share_text, shortened, time_text


def program():
    x = tl.rand(20, 30, requires_grad=True)
    y = F.cross_entropy((x @ x.t()).relu() + 1, tl.zeros(20, dtype=tl.int64))
    y.backward()
    return x


def counts(prof):
    return {row.key: row.count for row in prof.key_averages()}


KINDS = {
    "add": lambda x: x + 1, "tanh": lambda x: x.tanh(), "mul_": lambda x: x.clone().mul_(2),
    "matmul": lambda x: x @ x, "sum": lambda x: x.sum(), "reshape": lambda x: x.reshape(9),
    "cat": lambda x: tl.cat([x, x]), "getitem": lambda x: x[0], "softmax": lambda x: x.softmax(0),
    "setitem": lambda x: x.clone().__setitem__(0, 1.0), "cross_entropy": lambda x: F.cross_entropy(
        x, tl.tensor([0, 1, 2])), "sin_": lambda x: tl.sin(x, out=tl.empty(3, 3)),
}


@pytest.mark.parametrize("key", KINDS)
def test_every_kind_of_operation_is_seen(key):
    x = tl.ones(3, 3)
    with profile() as prof:
        for _ in range(3):
            KINDS[key](x)
    assert counts(prof)[key] == 3


MADE = {
    "zeros": lambda: tl.zeros(300, 300), "ones": lambda: tl.ones(300, 300),
    "empty": lambda: tl.empty(300, 300), "full": lambda: tl.full((300, 300), 2.0),
    "rand": lambda: tl.rand(300, 300), "randn": lambda: tl.randn(300, 300),
    "randint": lambda: tl.randint(0, 9, (300, 300)), "randperm": lambda: tl.randperm(90_000),
    "arange": lambda: tl.arange(90_000), "linspace": lambda: tl.linspace(0, 1, 90_000),
    "eye": lambda: tl.eye(300), "zeros_like": lambda: tl.zeros_like(LARGE),
    "empty_like": lambda: tl.empty_like(LARGE), "randn_like": lambda: tl.randn_like(LARGE),
    "new_full": lambda: LARGE.new_full((300, 300), 1.0),
}
LARGE = tl.ones(300, 300)


@pytest.mark.parametrize("key", MADE)
def test_what_makes_tensors_of_sizes_alone_is_seen(key):
    with profile() as prof, record_function("around"):
        made = MADE[key]()
    around, event = prof.events()
    assert (around.key, event.key, event.count) == ("around", key, 1)
    assert event.cpu_memory_usage == around.cpu_memory_usage >= 90_000 * made.itemsize
    assert around.begin <= event.begin and event.stack[0].endswith(": <lambda>")
    assert 0 < event.cpu_time_total <= around.cpu_time_total


def test_sizes_that_are_refused_leave_no_event_open():
    with profile() as prof:
        with pytest.raises(RuntimeError):
            tl.zeros(-1)
        with pytest.raises(TypeError):
            tl.zeros_like(3)
        tl.ones(3)
        tl.ones(3).add_(1)
    assert counts(prof) == {"ones": 2, "add_": 1}
    assert all(event.cpu_time_total < 1e6 for event in prof.events())


def test_steps_of_optimizers_are_seen():
    class Own(tl.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    model = tl.nn.Linear(2, 1)
    optimizers = [tl.optim.SGD(model.parameters(), lr=0.1), Own(model.parameters())]
    with profile() as prof:
        for optimizer in optimizers:
            model(tl.ones(3, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    seen = {key: count for key, count in counts(prof).items() if key.startswith("Optimizer")}
    assert seen == {f"Optimizer.{method}#{name}.{method}": 1 for name in ("SGD", "Own")
                    for method in ("step", "zero_grad")}

    def fail():
        raise ValueError("mine")

    with profile() as prof, pytest.raises(ValueError, match="mine"):
        optimizers[0].step(fail)
    assert counts(prof) == {"Optimizer.step#SGD.step": 1}


def test_times_add_up():
    with profile() as prof:
        program()
    events = prof.events()
    assert all(0 <= event.self_cpu_time_total <= event.cpu_time_total for event in events)
    outer = [event for event in events if event.key in ("cross_entropy", "backward")]
    assert len(outer) == 2
    inner = {event.key for event in events} - {"cross_entropy", "backward"}
    assert {"matmul", "relu", "ReluBackward0", "MatmulBackward0"} <= inner
    for each in outer:
        inside = [event for event in events if event.begin > each.begin
                  and event.begin < each.begin + each.cpu_time_total]
        assert sum(event.self_cpu_time_total for event in inside) == pytest.approx(
            each.cpu_time_total - each.self_cpu_time_total)
    total = prof.key_averages().total_average()
    assert total.count == len(events)
    assert total.cpu_time_total == pytest.approx(events.self_cpu_time_total)


def test_results_are_the_same_when_observed():
    tl.manual_seed(3)
    plain = program().grad
    tl.manual_seed(3)
    with profile(record_shapes=True, with_stack=True):
        observed = program().grad
    assert plain.tolist() == observed.tolist()


def test_bytes_are_those_that_stay():
    with profile() as prof:
        kept = tl.ones(1000) + 1
        (kept + kept).sum()
    by_key = {row.key: row for row in prof.key_averages()}
    assert by_key["add"].cpu_memory_usage >= 8000
    assert by_key["sum"].cpu_memory_usage < 8000


def test_shapes_are_noted_where_they_are_asked_for():
    for wanted in (False, True):
        with profile(record_shapes=wanted) as prof:
            tl.ones(2, 3) @ tl.ones(3, 4)
            tl.ones(2, 3) @ tl.ones(3, 4)
            tl.ones(5, 3) @ tl.ones(3, 4)
        rows = [row for row in prof.key_averages(group_by_input_shape=True)
                if row.key == "matmul"]
        assert [(row.count, row.input_shapes) for row in rows] == (
            [(2, ((2, 3), (3, 4))), (1, ((5, 3), (3, 4)))] if wanted else [(3, ())])


def test_lines_are_the_users():
    x = tl.ones(4, 4)
    with profile() as prof:
        x.tanh(); x.exp()                     # noqa: E702
        F.layer_norm(x, (4,))
    rows = prof.by_line()
    assert {row.key.rpartition("(")[0] for row in rows} == {
        shown_line((__file__, 0, "")).rpartition("(")[0]}
    assert sorted(row.count for row in rows)[-1] >= 2 and len(rows) == 2
    assert [row.self_cpu_time_total for row in rows] == sorted(
        (row.self_cpu_time_total for row in rows), reverse=True)
    assert "test_lines_are_the_users" in rows.table()


def test_stacks_are_the_users():
    def inner():
        return tl.ones(3).tanh()

    def outer():
        return inner()

    with profile(with_stack=True) as prof:
        outer()
    (event,) = [event for event in prof.events() if event.key == "tanh"]
    assert [text.rpartition(": ")[2] for text in event.stack[:3]] == [
        "inner", "outer", "test_stacks_are_the_users"]
    with profile() as prof:
        inner()
    (event,) = [event for event in prof.events() if event.key == "tanh"]
    assert len(event.stack) == 1


def test_an_error_ends_the_event_and_is_the_same():
    with profile() as prof:
        with pytest.raises(RuntimeError, match="matmul: inner dimensions differ"):
            tl.ones(2, 3) @ tl.ones(2, 3)
        with pytest.raises(RuntimeError):
            tl.ones(2).backward()
        with pytest.raises(IndexError):
            tl.ones(2)[3]
        tl.ones(2).tanh()
    events = {event.key: event for event in prof.events()}
    assert events["tanh"].begin > events["matmul"].begin
    assert observing.is_observed() is False
    with pytest.raises(ZeroDivisionError), profile():
        1 / 0
    assert observing.is_observed() is False


def test_there_is_one_profile_at_a_time():
    with profile() as prof:
        with pytest.raises(RuntimeError, match="another profile"):
            profile().start()
        tl.ones(2).tanh()
    assert counts(prof)["tanh"] == 1
    tl.ones(2).tanh()
    assert counts(prof)["tanh"] == 1
    prof.stop()


def test_profiles_that_are_not_enabled_observe_nothing():
    with profile(enabled=False) as prof, profile(False), profile(use_cuda=False) as other:
        tl.ones(2).tanh()
        prof.step()
    assert not counts(prof) and counts(other)["tanh"] == 1


def test_threads_have_events_of_their_own():
    def work():
        for _ in range(50):
            tl.ones(9, 9) @ tl.ones(9, 9)

    with profile() as prof:
        with record_function("main"):
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert counts(prof)["matmul"] == 150
    (main,) = [event for event in prof.events() if event.key == "main"]
    assert main.self_cpu_time_total == main.cpu_time_total


def test_functions_of_the_users_are_events():
    @record_function("mine")
    def mine(x):
        return x + 1 if x.numel() == 1 else mine(x[:-1])

    assert mine(tl.ones(3)).item() == 2
    with profile() as prof:
        mine(tl.ones(3))
    assert counts(prof)["mine"] == 3
    with pytest.raises(TypeError, match="record_function"):
        record_function(3)
    with pytest.raises(TypeError, match="profile: activities must be of ProfilerActivity"):
        profile(activities=["cpu"])


def test_schedules():
    actions = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    assert "".join(actions(step).name[0] if actions(step) is not ProfilerAction.RECORD_AND_SAVE
                   else "S" for step in range(12)) == "NNWRSNWRSNNN"
    seen = []
    with profile(schedule=actions, on_trace_ready=lambda prof: seen.append(counts(prof))) as prof:
        for step in range(12):
            for _ in range(step):
                tl.ones(2).tanh()
            prof.step()
    assert [each["tanh"] for each in seen] == [3 + 4, 7 + 8]
    assert [name for name in seen[0] if name.startswith("Prof")] == [
        "ProfilerStep#3", "ProfilerStep#4"]
    for wrong in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}):
        with pytest.raises(ValueError, match="schedule"):
            schedule(**wrong)


@pytest.mark.parametrize("given, expected", [
    ({"skip_first_wait": 1}, "NRSNNRSN"), ({}, "NNNRSNNR"),
    ({"skip_first_wait": 1, "repeat": 1}, "NRSNNNNN"), ({"warmup": 1}, "NNNWRSNN")])
def test_a_first_cycle_without_its_rest(given, expected):
    actions = schedule(**{"skip_first": 1, "wait": 2, "warmup": 0, "active": 2,
                          **given})
    letters = {ProfilerAction.RECORD_AND_SAVE: "S"}
    assert "".join(letters.get(actions(step), actions(step).name[0])
                   for step in range(8)) == expected


def test_steps_without_a_schedule_are_events():
    prof = profile()
    prof.step()                                  # before it is taken: nothing
    with prof:
        tl.ones(2).tanh()
        prof.step()
        tl.ones(2).exp()
        prof.step()
        tl.ones(2).sin()
    prof.step()
    assert [event.key for event in prof.events()] == [
        "ones", "tanh", "ProfilerStep#1", "ones", "exp", "ProfilerStep#2", "ones", "sin"]
    assert prof.step_num == 2 and supported_activities() == {ProfilerActivity.CPU}


@pytest.mark.parametrize("call, text", [
    (lambda: time_text(2.5e6), "2.500s"), (lambda: time_text(1e6), "1.000s"),
    (lambda: time_text(999_999.0), "999.999ms"), (lambda: time_text(-1250.0), "-1.250ms"),
    (lambda: time_text(1e3), "1.000ms"), (lambda: time_text(999.0), "999.000us"),
    (lambda: bytes_text(3 << 30), "3.00 GB"), (lambda: bytes_text(1 << 20), "1.00 MB"),
    (lambda: bytes_text(-1536), "-1.50 KB"), (lambda: bytes_text(1023), "1023 B"),
    (lambda: share_text(1.0, 8.0), "12.50%"), (lambda: share_text(1.0, 0.0), "--"),
    (lambda: shortened("abcdefgh", 8), "abcdefgh"), (lambda: shortened("abcdefgh", 7), "abcd..."),
    (lambda: shortened("abcdefgh", 7, ends=True), "...efgh")])
def test_figures_as_text(call, text):
    assert call() == text


def test_long_names_are_shortened():
    with profile() as prof, record_function("x" * 90):
        pass
    assert prof.events()[0].name == prof.events()[0].key == "x" * 90
    line, = (line for line in prof.key_averages().table(row_limit=-1).splitlines() if "xx" in line)
    name = line.split()[0]
    assert name.endswith("x...") and len(name) < 90 and name[:-3] == "x" * (len(name) - 3)


def test_what_ends_early_is_handed_over():
    seen = []
    with profile(schedule=schedule(wait=0, warmup=0, active=9), on_trace_ready=seen.append) as prof:
        tl.ones(2).tanh()
    assert seen == [prof] and counts(prof)["tanh"] == 1


def test_the_table(tmp_path):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        program()
    text = prof.key_averages(group_by_input_shape=True).table(
        sort_by="self_cpu_time_total", row_limit=5, header="Of a small program")
    lines = text.splitlines()
    assert lines[0] == "Of a small program" and len(lines) == 1 + 3 + 5 + 2
    assert len({len(line.rstrip()) for line in lines[1:4:2]}) == 1
    for title in ("Name", "Self CPU %", "CPU total", "# of Calls", "Self CPU Mem", "Input Shapes"):
        assert title in lines[2]
    assert "Input Shapes" in prof.key_averages(group_by_input_shape=True).table(row_limit=0)
    assert "Mem" not in profile(profile_memory=False).key_averages().table()
    with pytest.raises(ValueError, match="sorted by 'speed'"):
        prof.key_averages().table(sort_by="speed")
    assert str(prof.key_averages()) == prof.key_averages().table()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CUDA])
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(use_cuda=True)


@pytest.mark.parametrize("figure", ["cuda_time_total", "self_cuda_time_total", "device_time_total",
                                    "self_device_time_total", "self_device_memory_usage"])
def test_figures_of_devices_that_are_not_there_are_zero(figure):
    with profile() as prof:
        tl.ones(2).tanh()
    rows = prof.key_averages()
    assert rows.table(sort_by=figure) == rows.table()
    assert [getattr(row, figure) for row in rows] == [0] * len(rows)


def test_a_table_of_what_ran_inside_of_nothing():
    x = tl.ones(3, 3, requires_grad=True)
    with profile() as prof:
        F.cross_entropy(x.tanh(), tl.zeros(3, dtype=tl.int64)).backward()
    for rows in (prof.events(), prof.key_averages()):
        whole, top = (rows.table(row_limit=-1, top_level_events_only=only).splitlines()
                      for only in (False, True))
        names = [line.split()[0] for line in top[3:-2]]
        assert names == ["tanh", "zeros", "cross_entropy", "backward"] and len(top) < len(whole)
        assert top[-1] == whole[-1]                      # the time of all


def test_traces_and_stacks_are_files(tmp_path):
    with profile(with_stack=True, on_trace_ready=tensorboard_trace_handler(tmp_path / "new")
                 ) as prof:
        program()
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == len(prof.events()) and all(event["dur"] >= 0 for event in events)
    assert {"matmul", "backward"} <= {event["name"] for event in events}
    assert len(list((tmp_path / "new").glob("*.pt.trace.json"))) == 1
    prof.export_stacks(tmp_path / "stacks.txt")
    stacks = (tmp_path / "stacks.txt").read_text().splitlines()
    assert any(line.rpartition(" ")[0].endswith(";matmul") for line in stacks)
    with pytest.raises(ValueError, match="metric"):
        prof.export_stacks(tmp_path / "stacks.txt", "bytes")
