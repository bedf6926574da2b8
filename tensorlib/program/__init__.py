"""Programs: the same operations as data, with a backward part built from them, and control flow."""

from tensorlib._core.base.explained import explain
from tensorlib.program.blocks import BranchMismatch
from tensorlib.program.control import case, cond, scan, switch_case, while_loop
from tensorlib.program.errors import CaptureError, ProgramError
from tensorlib.program.files import save
from tensorlib.program.gradients import append_backward, gradients, minimize
from tensorlib.program.inputs import data, parameter, program_guard
from tensorlib.program.model import Block, OpCall, Variable
from tensorlib.program.optimizing import optimize
from tensorlib.program.parsing import load, parse
from tensorlib.program.program import Program
from tensorlib.program.trace import trace
from tensorlib.program.verify import verify

__all__ = ["Block", "BranchMismatch", "CaptureError", "OpCall", "Program", "ProgramError",
           "Variable", "append_backward", "case", "cond", "data", "gradients", "load", "minimize",
           "optimize", "parameter", "parse", "program_guard", "save", "scan", "switch_case",
           "trace", "verify", "while_loop"]

explain(vars(), __all__)
