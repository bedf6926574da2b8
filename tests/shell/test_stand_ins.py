"""Modules that scripts for PyTorch import, and what stands in them for what is not here."""

import importlib
import multiprocessing
import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import distributed, nn
from tensorlib.distributions import utils


@each("name", ["cuda", "cuda.amp", "backends.cudnn", "amp", "jit", "memory"])
def test_a_module_of_the_shell_is_one_of_the_package_and_there_once(name):
    module = importlib.import_module(f"tensorlib.{name}")
    assert module.__name__ == f"tensorlib.{name}" and "shell" in Path(module.__file__).parts
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"tensorlib.shell.{name}")


def test_what_the_shell_defines_is_pickled_by_its_public_name():
    with pytest.warns(UserWarning, match="not available"):
        scaler = tl.amp.GradScaler()
    assert b"shell" not in pickle.dumps(scaler)
    assert type(pickle.loads(pickle.dumps(scaler))) is tl.amp.GradScaler is tl.GradScaler


def test_datasets_have_two_names():
    older = importlib.import_module("tensorlib.data.dataset")
    assert older is importlib.import_module("tensorlib.utils.data.dataset")
    assert tl.data.DataLoader is tl.utils.data.DataLoader
    assert tl.serialization.load is tl.load


def test_what_is_drawn_in_a_fork_changes_nothing():
    tl.random.manual_seed(4)
    expected = tl.rand(3).tolist()
    for raised in (False, True):
        tl.manual_seed(4)
        try:
            with tl.random.fork_rng(devices=[]):
                tl.random.manual_seed(9)
                tl.rand(7)
                if raised:
                    raise KeyError
        except KeyError:
            pass
        assert tl.rand(3).tolist() == expected
    tl.manual_seed(4)
    with tl.random.fork_rng(enabled=False):
        assert tl.rand(3).tolist() == expected
    assert tl.rand(3).tolist() != expected


def test_the_generators_functions_are_those_of_the_package():
    for name in set(tl.random.__all__) - {"fork_rng"}:
        assert getattr(tl.random, name) is getattr(tl, name)


def test_there_are_no_groups_of_processes():
    assert not distributed.is_initialized()
    for ask in (distributed.get_rank, distributed.get_world_size):
        with pytest.raises(ValueError, match=f"{ask.__name__}: there is no process group"):
            ask()
    with pytest.raises(ValueError, match="all_reduce: there is no process group"):
        distributed.all_reduce(tl.ones(2))             # with mpi4py or without
    with pytest.raises(ValueError, match="init_process_group: backend is 'mpi'"):
        distributed.init_process_group("nccl", rank=0, world_size=1)


def test_functions_for_a_compiler_run_as_they_are():
    def double(x):
        return x + x if x.sum() > 0 else x - 1

    module = tl.nn.Linear(2, 2)
    for same in (tl.jit.script(double), tl.jit.trace(double, tl.ones(2), check_trace=False),
                 tl.jit.script_if_tracing(double), tl.jit.ignore(double), tl.jit.unused(double),
                 tl.jit.ignore(drop=True)(double), tl.jit.export(double)):
        assert same is double
    for same in (tl.jit.script(module), tl.jit.trace(module, (tl.ones(2),)),
                 tl.jit.trace_module(module, {"forward": tl.ones(2)}), tl.jit.freeze(module.eval()),
                 tl.jit.optimize_for_inference(module)):
        assert same is module
    with pytest.raises(tl.jit.Error):
        tl.jit.script(double)("no tensor")
    assert isinstance(module, tl.jit.ScriptModule)
    assert not isinstance(tl.nn.Linear(2, 2), tl.jit.ScriptModule)
    assert not tl.jit.is_scripting() and not tl.jit.is_tracing()
    assert tl.jit.annotate(list[int], [3]) == [3] and tl.jit.Attribute(2.5, float) == 2.5
    assert tl.jit.isinstance(3, int) and not tl.jit.isinstance(3.0, int)


def test_libraries_of_operations_compiled_for_pytorch_do_not_load():
    with pytest.raises(OSError, match="ops.load_library: metrics.so has operations compiled for"):
        tl.ops.load_library("metrics.so")


def test_threads_between_operations_are_a_setting():
    assert tl.get_num_interop_threads() == 1
    tl.set_num_interop_threads(4)
    assert tl.get_num_interop_threads() == 4
    tl.set_num_interop_threads(1)
    with pytest.raises(RuntimeError, match="expects a positive number of threads, got 0"):
        tl.set_num_interop_threads(0)
    for wrong in ("2", 2.0, True):
        with pytest.raises(TypeError, match="set_num_interop_threads: expects an int"):
            tl.set_num_interop_threads(wrong)


def test_old_names_of_interpolate_warn():
    x = tl.arange(8.0).reshape(1, 2, 2, 2)
    functional = tl.nn.functional
    with pytest.warns(UserWarning, match="upsample_nearest. is deprecated"):
        assert functional.upsample_nearest(x, scale_factor=2).equal(
            functional.interpolate(x, scale_factor=2))
    with pytest.warns(UserWarning, match="upsample_bilinear. is deprecated"):
        assert functional.upsample_bilinear(x, 3).equal(
            functional.interpolate(x, 3, mode="bilinear", align_corners=True))


def test_what_torchscript_would_compile_runs_eagerly(tmp_path):
    @tl.jit.script
    def scaled(x, n: int):
        return x * n if x.sum() > 0 else x - n

    class Model(tl.jit.ScriptModule):
        limit: tl.jit.Final[int] = 3

        @tl.jit.script_method
        def forward(self, x):
            return self.other(x) + tl.jit.annotate(int, 2)

        @tl.jit.export
        def other(self, x):
            return self.print(x) if tl.jit.is_scripting() or tl.jit.is_tracing() else x

        @tl.jit.ignore(drop=True)
        def print(self, x):
            raise AssertionError

        unused = tl.jit.unused(print)
        ignored = tl.jit.ignore(print)

    assert scaled(tl.ones(2), 3).tolist() == [3.0, 3.0]
    assert tl.jit.script_if_tracing(scaled)(-tl.ones(1), 1).tolist() == [-2.0]
    model = tl.jit.script(Model().eval())
    traced = tl.jit.trace(model, (tl.ones(1),), strict=False)
    assert traced(tl.ones(1)).tolist() == [3.0] and isinstance(traced, tl.jit.ScriptModule)
    assert tl.jit.optimize_for_inference(tl.jit.freeze(model)) is model
    assert not isinstance(scaled, tl.jit.ScriptFunction)
    with pytest.raises(RuntimeError, match="freeze: expects a module in eval mode"):
        tl.jit.freeze(model.train())
    with pytest.raises(RuntimeError, match="jit.save: there is no TorchScript here"):
        tl.jit.save(model, tmp_path / "model.pt")
    with pytest.raises(RuntimeError, match="jit.load: there is no TorchScript here"):
        tl.jit.load(tmp_path / "model.pt")


def test_a_function_that_is_not_to_be_captured():
    seen = []

    @tl.compiler.disable
    def counted(x):
        seen.append(tl.compiler.is_compiling())
        return 2 * x

    named = tl.compiler.disable(recursive=False, reason="it counts")(counted)
    assert named.__name__ == "counted"
    with pytest.warns(RuntimeWarning, match="compiler.disable: .*counted is not to be captured"):
        compiled = tl.compile(lambda x: counted(x) + 1)
        assert [compiled(tl.ones(1)).item() for _ in range(3)] == [3.0] * 3
    assert seen == [False] * 3              # at each call
    with pytest.raises(tl.program.CaptureError, match=r"not to be captured \(it counts\)"):
        tl.compile(named, fullgraph=True)(tl.ones(1))
    with pytest.raises(tl.program.CaptureError, match=r"not to be captured \(it counts\)"):
        tl.program.trace(named, tl.ones(1))


def test_what_asks_whether_it_is_captured():
    def asked(x):
        return x + int(tl.compiler.is_compiling() and tl.compiler.is_dynamo_compiling())

    assert asked(tl.zeros(1)).item() == 0 and tl.compiler.compile(asked)(tl.zeros(1)).item() == 1
    assert not tl.compiler.is_compiling() and not tl.compiler.is_exporting()
    assert tl.compiler.allow_in_graph(asked) is tl.compiler.assume_constant_result(asked) is asked
    assert tl.compiler.list_backends() == []
    assert tl.compiler.reset() is tl.compiler.cudagraph_mark_step_begin() is None


def test_multiprocessing_is_pythons():
    assert tl.multiprocessing.Process is multiprocessing.Process
    assert set(multiprocessing.__all__) < set(tl.multiprocessing.__all__)
    with tl.multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(tl.sum, [tl.ones(3), tl.ones(2)]) == [3, 2]
    try:
        tl.multiprocessing.set_sharing_strategy("file_system")
        assert tl.multiprocessing.get_sharing_strategy() == "file_system"
    finally:
        tl.multiprocessing.set_sharing_strategy("file_descriptor")
    assert tl.multiprocessing.get_all_sharing_strategies() == {"file_system", "file_descriptor"}
    with pytest.raises(ValueError, match="set_sharing_strategy: expected one of file_descriptor, "):
        tl.multiprocessing.set_sharing_strategy("none")


def test_variables():
    x = tl.ones(2)
    v = tl.autograd.Variable(x, requires_grad=True)
    assert v.requires_grad and v.is_leaf and not x.requires_grad and v.data_ptr() == x.data_ptr()
    assert not tl.autograd.Variable(v * 2).requires_grad
    assert isinstance(x, tl.autograd.Variable) and not isinstance(3, tl.autograd.Variable)
    with pytest.warns(UserWarning, match="volatile has no effect"):
        assert tl.autograd.variable.Variable(x, volatile=True).tolist() == [1.0, 1.0]
    for data in (3, [1.0], np.ones(2)):
        with pytest.raises(TypeError, match="Variable: data must be a Tensor, not"):
            tl.autograd.Variable(data)
    with pytest.raises(RuntimeError, match="floating"):
        tl.autograd.Variable(tl.arange(3), requires_grad=True)


def test_types_of_annotations_and_arguments():
    assert isinstance(2.5, tl.types.Number) and isinstance("cpu", tl.types.Device)
    assert isinstance(None, tl.types.Device) and isinstance("a", tl.types.FileLike)
    assert tl.types.Tensor is tl.Tensor
    assert isinstance(tl.strided, tl.layout) and isinstance(tl.ones(2).layout, tl.layout)
    assert isinstance(tl.preserve_format, tl.memory_format)
    assert not isinstance(tl.strided, tl.memory_format)
    handle = nn.Linear(1, 1).register_forward_hook(print)
    assert isinstance(handle, tl.utils.hooks.RemovableHandle)
    assert pickle.loads(pickle.dumps(tl.contiguous_format)) is tl.contiguous_format


@each("diag", [-3, -2, -1, 0, 1, 2])
def test_the_lower_triangle_as_a_vector_and_back(diag):
    matrix = tl.arange(18.0).reshape(2, 3, 3) + 1
    vector = utils.tril_matrix_to_vec(matrix, diag)
    expected = [row[:i + 1 + diag] for i, row in enumerate(matrix[1].tolist()) if i + 1 + diag > 0]
    assert vector[1].tolist() == sum(expected, [])
    if diag in (-1, 0, 1):                   # of other vectors, more than one size is right
        assert utils.vec_to_tril_matrix(vector, diag).tolist() == tl.tril(matrix, diag).tolist()


def test_what_distributions_are_made_of():
    class Own:
        @utils.lazy_property
        def value(self):
            return tl.ones(1)

    own = Own()
    assert own.value is own.value
    assert [t.shape for t in utils.broadcast_all(tl.ones(3), 2.0)] == [(3,), (3,)]
    with pytest.raises(ValueError, match="tril_matrix_to_vec: diag must be from -2 to 1, got 2"):
        utils.tril_matrix_to_vec(tl.ones(2, 2), 2)
    with pytest.raises(ValueError, match="vec_to_tril_matrix: no square matrix has 4 elements"):
        utils.vec_to_tril_matrix(tl.ones(4))


# ---- processes that do one thing -----------------------------------------------------------------

def doing(i, what, folder):
    if what == "write":
        folder.joinpath(str(i)).write_text(str(tl.ones(3).sum().item() + i))
    elif what == "raise" and i == 1:
        raise ValueError("the second one fails")
    elif what == "die" and i == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def started(what, folder, **options):
    return tl.multiprocessing.start_processes(doing, (what, folder), 2, start_method="fork",
                                              **options)


def test_processes_run_a_function_with_their_number(tmp_path):
    assert started("write", tmp_path) is None
    assert [tmp_path.joinpath(i).read_text() for i in "01"] == ["3.0", "4.0"]
    context = started("write", tmp_path, join=False)
    assert len(context.pids()) == 2
    while not context.join():
        pass


def test_a_process_that_fails_says_which_and_how(tmp_path):
    with pytest.raises(tl.multiprocessing.ProcessRaisedException) as error:
        started("raise", tmp_path)
    assert "process 1 terminated with the following error" in str(error.value)
    assert "ValueError: the second one fails" in str(error.value)
    assert error.value.error_index == 1 and error.value.pid > 0
    with pytest.raises(tl.multiprocessing.ProcessExitedException, match="signal SIGKILL") as error:
        started("die", tmp_path)
    again = pickle.loads(pickle.dumps(error.value))
    assert (again.exit_code, again.signal_name, again.error_index) == (-9, "SIGKILL", 1)


def test_spawned_processes_import_what_they_run(capfd):
    tl.multiprocessing.spawn(print, nprocs=1)
    assert capfd.readouterr().out == "0\n"
