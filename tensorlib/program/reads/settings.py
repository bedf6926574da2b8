"""Settings: functions that get or set global state, and functions that read or write files.

The result of a getter is compared before each replay. A setter ends the capture, since a replay
would not repeat it.
"""

import copy
import copyreg
import sys
from abc import get_cache_token
from pathlib import Path
from typing import Any

import numpy as np

from tensorlib._core.arrays.printing import get_printoptions
from tensorlib.program.reads.known import ATOMS, is_of_library

# Functions of the library, by their names: some of them lie on floors above this one.
GETTERS = frozenset("""are_deterministic_algorithms_enabled clear_autocast_cache
    get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device
    get_default_dtype get_default_load_endianness get_deterministic_debug_mode get_device_module
    get_float32_matmul_precision get_num_interop_threads get_num_threads get_printoptions
    get_worker_info initial_seed is_anomaly_enabled is_autocast_available is_autocast_cache_enabled
    is_autocast_cpu_enabled is_autocast_enabled is_deterministic_algorithms_warn_only_enabled
    is_grad_enabled is_inference_mode_enabled is_warn_always_enabled""".split())
SETTERS = frozenset("""add_safe_globals clear_safe_globals empty_cache get_rng_state load
    load_state_dict_from_url printoptions reset_peak save set_cache_limit set_default_device
    set_default_dtype set_default_load_endianness set_default_tensor_type
    set_default_validate_args set_deterministic_debug_mode set_detect_anomaly
    set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads
    set_printoptions set_rng_state set_sharing_strategy set_warn_always show_config stats summary
    use_deterministic_algorithms""".split())
OTHER_GETTERS = {id(x) for x in (np.geterr, np.get_printoptions, sys.getrecursionlimit)}
OTHER_SETTERS = {id(x) for x in (
    np.seterr, np.set_printoptions, np.errstate, np.printoptions, np.seterrcall, np.geterrcall,
    np.setbufsize, np.getbufsize, np.load, np.save, np.savez, np.savez_compressed, np.loadtxt,
    np.savetxt, np.genfromtxt, np.fromfile, np.memmap, np.show_config, np.lib.format.open_memmap,
    np.fromregex, np.rec.fromfile, np.polynomial.set_default_printstyle,
    np.busday_count, np.busday_offset, np.is_busday,      # which may read the clock
    *(vars(np)[name] for name in ("info", "lookfor", "show_runtime", "source", "who")
      if name in vars(np)))}                  # which print
NUMPY = Path(np.__file__).parent
FORMATTERS = {id(x) for x in (       # what writes arrays and tensors as text
    str, repr, format, ascii, np.array2string, np.array_repr, np.array_str)}


def is_one_of(f: Any, of_library: frozenset[str], of_numpy: set[int]) -> bool:
    """Whether a function, or a class, is one of these, such as `GETTERS` and `OTHER_GETTERS`."""
    return id(f) in of_numpy or is_of_library(f) and getattr(f, "__name__", None) in of_library


def current_setting(f: Any, args: tuple[Any, ...]) -> Any:
    """The result of a getter, in a form that can be compared."""
    found = f(*args)
    return found if id(type(found)) in ATOMS else repr(found)


def record_setting(recorder: Any, f: Any, args: tuple[Any, ...] = ()) -> None:
    """Records the result of a getter of settings."""
    recorder.record_value(f, current_setting, args)


def record_print_options(recorder: Any) -> None:
    """Records the settings by which arrays and tensors are written as text."""
    record_setting(recorder, get_printoptions)
    record_setting(recorder, np.get_printoptions)
    recorder.record_value(np.polynomial.Polynomial, style_of_polynomials, None)


def style_of_polynomials(kind: Any, _: Any) -> bool:
    """Whether polynomials of NumPy's are written in Unicode."""
    return bool(kind._use_unicode)



def record_settings_of_file(recorder: Any, path: str) -> None:
    """Records the settings that functions of a file read which are taken as they are."""
    if path == copy.__file__:
        recorder.record_container(copyreg.dispatch_table)
    elif path.endswith("arrayprint.py") and Path(path).is_relative_to(NUMPY):
        record_print_options(recorder)


def record_abstract_classes(recorder: Any) -> None:
    """Records which classes are registered with abstract ones."""
    record_setting(recorder, get_cache_token)
