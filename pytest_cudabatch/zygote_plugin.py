"""The plugin's part inside a zygote and the cells forked from it.

The zygote imports what cells need, once, and never touches CUDA. A cell claims its slot of the evidence
file before anything of its test runs.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch.cell_evidence import EVIDENCE, PAIRINGS, CellEvidence
from pytest_cudabatch.cells import PAYLOAD, SPENT
from pytest_cudabatch.contract_check import known_contract
from pytest_cudabatch.cuda import STICKY_ERRORS, Schedule, lost_context
from pytest_cudabatch.errors import CudaError
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.interposer import EVIDENCE_VARIABLE, EvidenceFile, parse_injections
from pytest_cudabatch.plugin import RUN, is_cell, lacks_pairing
from pytest_cudabatch.run import IMPLEMENTATION_FIXTURES, RUN_VARIABLE, Run, cell_setting
from pytest_cudabatch.telling import ENVIRONMENT_FINDING, LOST_CONTEXT

__all__ = ["ZygotePlugin", "identity_of", "take_part"]

WARM_IMPORTS = (
    "importlib.readers",
    "numpy",
    "numpy.ctypeslib",
    "numpy.random",
    "pytest_cudabatch.copies",
    "pytest_cudabatch.cuda",
    "pytest_cudabatch.implementations",
)
"""What a cell would import first; paid once, before the fork. None of it opens CUDA.

numpy loads its random generators, a dozen extension modules, only when they are first used.
"""

BUSY_ERRORS = frozenset({2, 46})
"""Too little memory is left, or the device is exclusively another process's: cudaErrorMemoryAllocation and
cudaErrorDevicesUnavailable. Only calls of ours are judged by them, never those of the code under test."""

ALONE = frozenset({"cuda_inject", "cuda_load_order"})
"""The fixtures of what happens once a process: a look-up that a fault is injected into, a library's load."""

IDENTITY_MARKER = "cuda_identity"


def take_part(config: pytest.Config) -> None:
    """Join the run that the environment names, and warm this process up for its cells."""
    # Taken out, so that a pytest that a test starts belongs to no run.
    config.stash[RUN] = Run.read(Path(os.environ.pop(RUN_VARIABLE)))
    config.addinivalue_line("markers", f"{IDENTITY_MARKER}: what a cell is; set by the plugin itself")
    # Behind what is installed, so that a source tree in the project cannot shadow it.
    sys.path.extend(entry for entry in config.stash[RUN].search_path if entry not in sys.path)
    for name in WARM_IMPORTS:
        importlib.import_module(name)
    if EVIDENCE_VARIABLE in os.environ:
        _evidence_file(Path(os.environ[EVIDENCE_VARIABLE]))
    config.pluginmanager.register(ZygotePlugin(), "cudabatch-zygote")


@functools.cache
def _evidence_file(path: Path) -> EvidenceFile:
    """Open the file, or return it as the zygote has: a fork shares the mapping."""
    return EvidenceFile.open(path)


def identity_of(item: pytest.Item, nodeid: str | None = None) -> dict[str, Any]:
    """Say what a cell item is: its case, kind, implementation and pairing, by name.

    A case is the test with its own parameters: the item's id without the implementation and the pairing.
    ``nodeid`` is the item's id without what xdist has added to it. ``alone`` says that it needs a process of
    its own whatever the isolation.
    """
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    pairing = parameters.get("cuda_pairing")
    implementation = next((parameters[name] for name in IMPLEMENTATION_FIXTURES if name in parameters), None)
    suffix = "-".join(part for part in (implementation, pairing.id if pairing else None) if part)
    case = nodeid or item.nodeid
    if suffix:
        case = case.removesuffix(f"[{suffix}]").removesuffix(f"-{suffix}]")
        case += "]" if "[" in case.rpartition("::")[2] else ""
    return {
        "case": case,
        "kind": cell_setting(item, "kind"),
        "finding": cell_setting(item, "finding"),
        "implementation": implementation,
        "pairing": pairing.id if pairing else None,
        "alone": cell_setting(item, "alone") == "True"
        or not ALONE.isdisjoint(getattr(item, "fixturenames", ())),
    }


class ZygotePlugin:
    """Hooks of a zygote's pytest session."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Tell the supervisor what each cell is, by a marker that travels with the item."""
        run = config.stash[RUN]
        items[:] = [item for item in items if not lacks_pairing(item) and run.includes(item)]
        for item in items:
            if is_cell(item):
                item.add_marker(getattr(pytest.mark, IDENTITY_MARKER)(**identity_of(item)))
        if any("cuda_contract" in getattr(item, "fixturenames", ()) for item in items):
            known_contract()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Tell what an error of CUDA says of the process: its context is lost, or the device is taken."""
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, CudaError):
            if error.code in STICKY_ERRORS:
                item.user_properties.append((LOST_CONTEXT, str(error)))
            elif error.code in BUSY_ERRORS:
                item.user_properties.append((ENVIRONMENT_FINDING, Code.NO_GPU.value))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Find a context that was lost after the last call had returned, so that no other cell is blamed."""
        try:
            return (yield)
        finally:
            error = lost_context()
            if error is not None and all(name != LOST_CONTEXT for name, _ in item.user_properties):
                item.user_properties.append((LOST_CONTEXT, str(error)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let no other cell run in a process whose context is lost."""
        result = yield
        for name, value in item.user_properties:
            if name == LOST_CONTEXT:
                item.config.stash[SPENT] = f"its context was lost: {value}"
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Claim this cell's slot, so that the interposer records from here on."""
        payload = item.config.stash[PAYLOAD]
        slot = payload["slot"]
        assert isinstance(slot, int)
        file = _evidence_file(Path(str(payload["evidence"])))
        for injections in (item.config.stash[RUN].injections, payload.get("injections")):
            if injections is not None:
                file.request(slot, parse_injections(str(injections)))
        file.claim(slot)
        item.config.stash[EVIDENCE] = CellEvidence(file, slot)
        item.config.stash[PAIRINGS] = item.config.stash[RUN].pairings
        os.environ.update(Schedule.parse(item.config.stash[RUN].schedule).variables())
