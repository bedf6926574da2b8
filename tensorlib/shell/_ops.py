"""The types of operations in `torch.ops`, which libraries ask for."""

from ._absent import _absent
from ._aten import OpOverload

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket"]

OpOverloadPacket = OpOverload
HigherOrderOperator = _absent("HigherOrderOperator", "functions of functions are functions here")
