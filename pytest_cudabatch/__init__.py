"""Tests native CUDA batch copies across pairings of a runtime and a driver.

The public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_cudabatch.abi import BatchAbi, CudaVersion
    from pytest_cudabatch.contract_check import ContractCheck
    from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, Plan, copy_one_by_one, make_plan
    from pytest_cudabatch.cuda import Runtime
    from pytest_cudabatch.errors import CudaBatchError, CudaError, UsageError
    from pytest_cudabatch.fixtures import EvidenceReader, GateMaker, Injector, PlanMaker
    from pytest_cudabatch.implementations import BoundImplementation, Implementation
    from pytest_cudabatch.interposer import Call, CopyPath, Evidence
    from pytest_cudabatch.load_order import LoadOrder
    from pytest_cudabatch.pairings import Pairing
    from pytest_cudabatch.telling import Blame
    from pytest_cudabatch.under_test import BatchCopy
    from pytest_cudabatch.verdicts import Cell, Verdict

__all__ = [
    "BatchAbi",
    "BatchCopy",
    "Blame",
    "BoundImplementation",
    "BoundPlan",
    "Call",
    "Cell",
    "ContractCheck",
    "CopyPath",
    "CudaBatchError",
    "CudaError",
    "CudaVersion",
    "Direction",
    "Evidence",
    "EvidenceReader",
    "GateMaker",
    "Implementation",
    "Injector",
    "LoadOrder",
    "Mixture",
    "Pairing",
    "Plan",
    "PlanMaker",
    "Runtime",
    "UsageError",
    "Verdict",
    "copy_one_by_one",
    "make_plan",
]

_HOMES = {
    "abi": ("BatchAbi", "CudaVersion"),
    "contract_check": ("ContractCheck",),
    "copies": ("BoundPlan", "Direction", "Mixture", "Plan", "copy_one_by_one", "make_plan"),
    "cuda": ("Runtime",),
    "errors": ("CudaBatchError", "CudaError", "UsageError"),
    "fixtures": ("EvidenceReader", "GateMaker", "Injector", "PlanMaker"),
    "implementations": ("BoundImplementation", "Implementation"),
    "interposer": ("Call", "CopyPath", "Evidence"),
    "load_order": ("LoadOrder",),
    "pairings": ("Pairing",),
    "telling": ("Blame",),
    "under_test": ("BatchCopy",),
    "verdicts": ("Cell", "Verdict"),
}
"""Which room each public name lives in."""


def __getattr__(name: str) -> object:
    for room, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
