"""The host's driver: the CUDA version that its libcuda reports, its release, GPUs, and whether it works.

Asked in a process of its own with a time limit: a libcuda that crashes or hangs is an answer, and the
asking process stays free of CUDA, so that it may fork.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.runtimes.elf import SharedObject
from pytest_cudabatch.runtimes.inquiry import Answers, ask

__all__ = ["DriverFacts", "probe"]

_CHILD = Path(__file__).with_name("driver_child.py")
_KERNEL_MODULE = Path("/proc/driver/nvidia/version")

_CODES = {
    3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    999: "CUDA_ERROR_UNKNOWN",
}
"""The CUresults of cuda.h that a probe of a host meets; others are shown by number."""


@dataclass(frozen=True)
class DriverFacts:
    """What a probe found out; a fact that it could not get is None or empty.

    ``version`` is the CUDA version that the driver supports, ``release`` the driver's own release
    (``"580.159.04"``), ``gpus`` the names of the visible devices in their order, ``context`` whether the
    first of them gives a context. ``reason`` says why ``context`` is false, and is empty otherwise.
    ``path`` is the libcuda that was loaded; ``simulated`` tells that it is this project's.
    """

    version: CudaVersion | None
    release: str | None
    gpus: tuple[str, ...]
    context: bool
    reason: str
    path: Path | None
    simulated: bool

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON data, for other processes of the same run."""
        return {
            "version": str(self.version) if self.version else None,
            "release": self.release,
            "gpus": list(self.gpus),
            "context": self.context,
            "reason": self.reason,
            "path": str(self.path) if self.path else None,
            "simulated": self.simulated,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DriverFacts:
        """Read ``to_json``'s form back. Raises KeyError where a fact is missing."""
        return cls(
            version=CudaVersion.parse(data["version"]) if data["version"] else None,
            release=data["release"],
            gpus=tuple(data["gpus"]),
            context=data["context"],
            reason=data["reason"],
            path=Path(data["path"]) if data["path"] else None,
            simulated=data["simulated"],
        )


def probe(limit: float, *, driver: Path | None = None) -> DriverFacts:
    """Ask ``driver`` (a libcuda; None: the one that the loader finds) for at most ``limit`` seconds.

    Never raises for what the library does: a missing, crashing or hanging one is told in ``reason``, with
    the facts that were learnt before.
    """
    answers = ask(_CHILD, [str(driver)] if driver else [], limit=limit)
    facts = answers.facts
    path = Path(facts["path"]) if facts.get("path") else None
    reason = _reason(answers)
    return DriverFacts(
        version=CudaVersion.from_api(facts["version"]) if facts.get("version") else None,
        release=facts.get("release") or kernel_module_release(),
        gpus=tuple(facts.get("gpus", ())),
        context=not reason,
        reason=reason,
        path=path,
        simulated=path is not None and _is_simulated(path),
    )


def _reason(answers: Answers) -> str:
    """Return why there is no context, or nothing where there is one."""
    facts = answers.facts
    if answers.fault:
        return answers.fault
    if "load_error" in facts:
        return f"libcuda could not be loaded: {facts['load_error']}"
    for function, key in (
        ("cuInit", "init_code"),
        ("cuDeviceGetCount", "count_code"),
        ("cuDevicePrimaryCtxRetain", "context_code"),
    ):
        if facts.get(key):
            return f"{function} returned {_code(facts[key])}"
    return "" if facts.get("gpus") else "the driver sees no GPU"


def _code(number: int) -> str:
    return f"{number} ({_CODES[number]})" if number in _CODES else str(number)


def _is_simulated(path: Path) -> bool:
    try:
        return SharedObject.read(path).simulated
    except UsageError:  # the loader took it, so it is a library; one that cannot be read again is not ours
        return False


def kernel_module_release(description: Path = _KERNEL_MODULE) -> str | None:
    """Return the release of the loaded kernel module, where NVML did not tell it."""
    try:
        match = re.search(
            r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", description.read_text(encoding="utf-8")
        )
    except OSError:
        return None
    return match[1] if match else None
