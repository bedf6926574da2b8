"""Programs: operations as data (the IR), with control flow, gradients, passes and replay."""

from tensorlib._core.base.explained import explain
from tensorlib.program.building.blocks import BranchMismatch
from tensorlib.program.capture.trace import trace
from tensorlib.program.control import case, cond, scan, switch_case, while_loop
from tensorlib.program.differentiation.gradients import append_backward, gradients, minimize
from tensorlib.program.inputs import data, parameter, program_guard
from tensorlib.program.ir.errors import CaptureError, ProgramError
from tensorlib.program.ir.files import save
from tensorlib.program.ir.model import Block, OpCall, Variable
from tensorlib.program.optimizing import optimize
from tensorlib.program.parsing import load, parse
from tensorlib.program.program import Program
from tensorlib.program.verify import verify

__all__ = ["Block", "BranchMismatch", "CaptureError", "OpCall", "Program", "ProgramError",
           "Variable", "append_backward", "case", "cond", "data", "gradients", "load", "minimize",
           "optimize", "parameter", "parse", "program_guard", "save", "scan", "switch_case",
           "trace", "verify", "while_loop"]

explain(vars(), __all__)
