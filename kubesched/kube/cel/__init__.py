"""CEL over devices: whether a selector's expression is true of a device.

    facts = FactBook().facts("gpu.example.com", device)
    holds('device.attributes["gpu.example.com"].model == "a100"', facts)

`holds` answers, or raises `CompileError` or `EvaluationError` with one line that says why. Answers are remembered by
expression and by kind of device. Parsing and type checking are the CEL library's (`checking`), evaluation and all of
Kubernetes' functions are ours (`evaluation` and the modules beside it).
"""

from kubesched.kube.cel.devices import Allowance, DeviceFacts, FactBook, NoAllowance, derive, holds
from kubesched.kube.cel.values import CelError, CompileError, EvaluationError

__all__ = [
    "Allowance",
    "CelError",
    "CompileError",
    "DeviceFacts",
    "EvaluationError",
    "FactBook",
    "NoAllowance",
    "derive",
    "holds",
]
