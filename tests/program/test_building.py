"""Programs by hand: variables, shapes, feeding and fetching, the backward part, training steps."""

import pytest

import tensorlib as tl
from tensorlib import program
from tensorlib.program import Program


def regression():
    with Program() as p:
        x = program.data("x", (None, 3))
        w = program.parameter("w", tl.full((3, 2), 0.5))
        loss = (x @ w).tanh().square().mean()
    return p, x, w, loss


def test_shapes_are_inferred_as_lines_are_written():
    with Program():
        x = program.data("x", (None, 3))
        assert x.softmax(1).shape == (None, 3)
        assert x.mean(0).shape == (3,)
        assert x.reshape(-1, 1)[:, 0].shape == (None,)
        assert tl.cat([x, x], 1).shape == (None, 6)
        assert (x > 0).dtype == tl.bool
        assert [part.shape for part in x.max(1)] == [(None,), (None,)]
        assert (x + tl.ones(3)).shape == (None, 3)
        assert tl.nn.functional.dropout(x, 0.5).shape == (None, 3)
        for wrong in (lambda: x @ x, lambda: x.reshape(7, -1), lambda: x[:, 3], lambda: x.sum(2)):
            with pytest.raises((RuntimeError, IndexError)):
                wrong()


def test_running_gives_what_eager_code_gives():
    p, x, w, loss = regression()
    pairs = program.append_backward(loss)
    assert [(a.name, b.name) for a, b in pairs] == [("w", "w@GRAD")]
    value, slope = p.run({"x": tl.ones(4, 3)}, [loss, "w@GRAD"])
    (weight,) = p.parameters()
    expected = (tl.ones(4, 3) @ weight).tanh().square().mean()
    expected.backward()
    assert value == expected and (slope == weight.grad).all()


def test_parts_of_a_gradient_are_named_and_summed():
    with Program() as p:
        w = program.parameter("w", [1.0, 2.0])
        loss = (w * w.exp()).sum() + w.sum()
    program.append_backward(loss)
    (call,) = [call for call in p.block.ops if call.type == "sum" and "parts" in call.inputs]
    assert [x.name for x in call.inputs["parts"]] == [
        f"w@GRAD@RENAME@{i}" for i in range(len(call.inputs["parts"]))]
    assert [x.name for x in call.outputs] == ["w@GRAD"]


def test_what_takes_no_part_is_left_out():
    with Program() as p:
        x, y = program.data("x", (3,)), program.data("y", (3,))
        v, w = program.parameter("v", [1.0] * 3), program.parameter("w", [2.0] * 3)
        a = x * v
        loss = (a * (y * w).detach()).sum()
    assert [a.name for a, _ in program.append_backward(loss)] == ["v"]
    assert all("mul_1" not in call.type for call in p.block.ops)
    assert program.gradients(loss, y) == [None]
    assert program.append_backward(loss, no_grad_set=[a]) == []
    assert program.append_backward(loss, no_grad_set=["v"]) == []
    assert program.append_backward(loss, ["v", "w"])[0][0] is v


def test_callbacks_see_each_call():
    p, x, w, loss = regression()
    seen, before = [], len(p.block.ops)
    program.append_backward(loss, callbacks=[lambda block, call: seen.append((block, call))])
    assert seen == [(p.block, call) for call in p.block.ops[before:]]


def test_checkpoints_compute_again_and_change_nothing():
    weight = tl.linspace(-1, 1, 16).reshape(4, 4)
    with Program() as p:
        x = program.data("x", (2, 4))
        w = program.parameter("w", weight)
        h, kept = x, []
        for i in range(6):
            h = (h @ w).tanh() + h.sin()
            if i % 2:
                kept.append(h)
        loss = h.sum()
    plain = p.clone()
    (w_grad,) = [g for _, g in program.append_backward(loss, checkpoints=kept)]
    (other,) = [g for _, g in program.append_backward(plain.variable(loss.name))]
    x = tl.ones(2, 4)
    assert (p.run({"x": x}, w_grad) == plain.run({"x": x}, other)).all()
    assert any("@AGAIN" in y.name for call in p.block.ops for y in call.writes())
    mine = {y.name for y in kept}
    for call in p.block.ops[p.block.ops.index(next(
            c for c in p.block.ops if any("@GRAD" in y.name for y in c.writes()))):]:
        first = [y.name for y in call.reads() if y.name.startswith(("tanh", "add", "matmul"))
                 and "@" not in y.name]
        assert set(first) <= mine | {"tanh_5", "add_5", "matmul_5", "tanh_4", "add_4", "matmul_4",
                                     "sin_4", "sin_5"} or call.type.endswith("_gradient")


@pytest.mark.parametrize("momentum", [0, 0.9])
def test_minimize_makes_a_training_step(momentum):
    p, x, w, loss = regression()
    (weight,) = p.parameters()
    twin = weight.detach().clone().requires_grad_()
    program.minimize(loss, tl.optim.SGD(p.parameters(), lr=0.1, momentum=momentum))
    eager = tl.optim.SGD([twin], lr=0.1, momentum=momentum)
    for seed in range(5):
        tl.manual_seed(seed)
        batch = tl.randn(6, 3)
        got = p.run({"x": batch}, loss)
        expected = (batch @ twin).tanh().square().mean()
        eager.zero_grad()
        expected.backward()
        eager.step()
        assert got == expected
    assert (weight == twin).all()


def test_wrong_arguments_of_append_backward():
    p, x, w, loss = regression()
    for wrong in (3, tl.ones(1), "loss"):
        with pytest.raises(TypeError):
            program.append_backward(wrong)
    for wrong in ({"parameter_list": [3]}, {"no_grad_set": [tl]}, {"callbacks": [3]}):
        with pytest.raises(TypeError):
            program.append_backward(loss, **wrong)
    _, _, other, other_loss = regression()
    for wrong in ({"parameter_list": ["v"]}, {"no_grad_set": ["v"]}, {"parameter_list": [other]}):
        with pytest.raises(ValueError):
            program.append_backward(loss, **wrong)
    with pytest.raises(ValueError, match="one element"):
        program.append_backward(x)
    with pytest.raises(TypeError, match="optimiser"):
        program.minimize(loss, 3)
    with pytest.raises(ValueError, match="parameters"):
        program.minimize(loss, tl.optim.SGD([tl.ones(2, requires_grad=True)], lr=1.0))


def test_feeding_and_fetching_what_is_not_there():
    p, x, w, loss = regression()
    with pytest.raises(KeyError, match="'y'.*x"):
        p.run({"x": tl.ones(1, 3), "y": 3}, loss)
    with pytest.raises(KeyError, match="nothing"):
        p.run({"x": tl.ones(1, 3)}, "nothing")
    with pytest.raises(ValueError, match="x"):
        p.run({}, loss)
    with pytest.raises(RuntimeError, match=r"float32\[None, 3\].*float32\[3, 1\]"):
        p.run({"x": tl.ones(3, 1)}, loss)
    with pytest.raises(RuntimeError, match=r"float32.*int64"):
        p.run({"x": tl.ones(1, 3).long()}, loss)
    with pytest.raises(TypeError, match="1 inputs"):
        p(1, 2)
    with pytest.raises(ValueError, match="another program"):
        p.run({"x": tl.ones(1, 3)}, regression()[3])


def test_data_and_parameters_are_checked():
    with pytest.raises(RuntimeError, match="no program"):
        program.data("x", (1,))
    with Program():
        program.data("x", (1,))
        for error, call in ((ValueError, lambda: program.data("x", (1,))),
                            (ValueError, lambda: program.data("y", (-1,))),
                            (TypeError, lambda: program.data("y", (1.5,))),
                            (TypeError, lambda: program.data(3, (1,))),
                            (ValueError, lambda: program.parameter("x", 1.0)),
                            (RuntimeError, lambda: program.parameter("n", tl.tensor([1])))):
            with pytest.raises(error):
                call()


def test_pruned_programs_have_what_their_outputs_need():
    p, x, w, loss = regression()
    program.minimize(loss, tl.optim.SGD(p.parameters(), lr=0.1))
    small = p.prune(loss)
    assert [call.type for call in small.block.ops] == ["matmul", "tanh", "square", "mean"]
    before = p.parameters()[0].detach().clone()
    assert small(tl.ones(2, 3)) == p.run({"x": tl.ones(2, 3)}, loss)
    assert not (before == p.parameters()[0]).all()


def test_a_training_step_is_captured_whole():
    layer = tl.ops.compose("dense_in_test", lambda x, w, b: (x @ w + b).tanh())
    w, b = tl.full((3, 2), 0.3, requires_grad=True), tl.zeros(2, requires_grad=True)

    def step(x):
        for p in (w, b):
            p.grad = None
        loss = layer(x, w, b).square().sum()
        loss.backward()
        with tl.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
        return loss

    def reset():
        with tl.no_grad():
            w.fill_(0.3)
            b.zero_()

    x = tl.linspace(-1, 1, 12).reshape(4, 3)
    made = program.trace(step, x)
    results = []
    for run in (made, step):
        reset()
        losses = [run(x).item() for _ in range(3)]
        results.append((losses, w.tolist(), b.tolist(), w.grad.tolist()))
    assert results[0] == results[1]
    assert any(call.type.endswith("dense_in_test") and call.blocks() for call in made.block.ops)


def test_modules_and_containers():
    model = tl.nn.Sequential(tl.nn.Linear(3, 4), tl.nn.Tanh(), tl.nn.Linear(4, 2))
    x = tl.ones(5, 3)
    made = program.trace(lambda d, scale: [{"y": model(d["x"]) * scale}], {"x": x}, 2.0)
    assert (made({"x": x}, 2.0)[0]["y"] == model(x) * 2).all()
    assert len(made.parameters()) == 4
    assert {"_0.weight", "_2.bias"} <= {x.name for x in program.trace(model, x).persistables()}


def test_random_numbers_are_drawn_anew():
    made = program.trace(lambda x: tl.rand(3) + tl.randn(3) * x + tl.nn.functional.dropout(x, 0.5),
                         tl.ones(3))
    tl.manual_seed(1)
    first, second = made(tl.ones(3)), made(tl.ones(3))
    tl.manual_seed(1)
    x = tl.ones(3)
    assert (first == tl.rand(3) + tl.randn(3) * x + tl.nn.functional.dropout(x, 0.5)).all()
    assert not (first == second).all()


def test_writes_into_what_was_there_before_are_done_by_each_run():
    running = tl.zeros(3)

    def function(x):
        with tl.no_grad():
            running.mul_(0.5).add_(x)
        running[0] = 7
        return running * 2

    made = program.trace(function, tl.ones(3))
    assert (running == tl.tensor([7.0, 1, 1])).all()
    made(tl.ones(3))
    assert (running == tl.tensor([7.0, 1.5, 1.5])).all()
