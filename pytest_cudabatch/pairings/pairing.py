"""A pairing: a runtime on a driver, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_cudabatch.abi import FIRST_BATCH_VERSION, BatchAbi, CudaVersion
from pytest_cudabatch.runtimes import RuntimeFile, Source

__all__ = ["Basis", "DriverEntry", "Pairing", "Platform", "RuntimeEntry"]

Platform = Literal["device", "simulated", "no-driver"]
"""What a pairing runs on: a real GPU, simulated CUDA, or a real libcudart without a driver."""

Basis = Literal["observed", "header", "assumed"]
"""Where what is expected of a pairing comes from, best first."""


@dataclass(frozen=True)
class RuntimeEntry:
    """A pairing's libcudart: ``release`` is as exact as is known, ``path`` None where there is no file.

    ``abi`` is the ABI in which it has the batch function, or would have it, if it ``exports_batch``.
    """

    version: CudaVersion
    release: str
    abi: BatchAbi
    exports_batch: bool
    path: Path | None
    source: Source

    @classmethod
    def of_file(cls, file: RuntimeFile) -> RuntimeEntry:
        """Return the entry of a libcudart on disk."""
        return cls(file.version, file.release, file.abi, file.exports_batch, file.path, file.source)

    def describe(self) -> dict[str, str]:
        """Return what a report says of it: the same on every host, so without its path."""
        return {"version": self.release, "abi": self.abi.value, "source": self.source}

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON data."""
        return {
            "version": str(self.version),
            "release": self.release,
            "abi": self.abi.value,
            "exports_batch": self.exports_batch,
            "path": _text(self.path),
            "source": self.source,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuntimeEntry:
        """Read ``to_json``'s form back. Raises KeyError or ValueError on anything else."""
        return cls(
            version=CudaVersion.parse(data["version"]),
            release=data["release"],
            abi=BatchAbi(data["abi"]),
            exports_batch=data["exports_batch"],
            path=_path(data["path"]),
            source=data["source"],
        )


@dataclass(frozen=True)
class DriverEntry:
    """A pairing's libcuda: the CUDA ``version`` that it reports, and apart from it the driver's ``release``.

    ``path`` is None where the loader's own choice is taken, as on a GPU host; ``version`` is None where there
    is no driver at all.
    """

    version: CudaVersion | None
    path: Path | None = None
    release: str | None = None

    @property
    def has_batch(self) -> bool:
        """Whether it has the batch function (cuda.h: since 12.8)."""
        return self.version is not None and self.version >= FIRST_BATCH_VERSION

    def describe(self) -> dict[str, str | None]:
        """Return what a report says of it for a pairing; its release is told of the host."""
        return {"version": _text(self.version)}

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON data."""
        return {"version": _text(self.version), "path": _text(self.path), "release": self.release}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DriverEntry:
        """Read ``to_json``'s form back. Raises KeyError on anything else."""
        version = None if data["version"] is None else CudaVersion.parse(data["version"])
        return cls(version, _path(data["path"]), data["release"])


@dataclass(frozen=True)
class Pairing:
    """A runtime on a driver on one platform; ``basis`` says where what is expected of it comes from."""

    runtime: RuntimeEntry
    driver: DriverEntry
    platform: Platform
    basis: Basis

    @property
    def id(self) -> str:
        """The name in node ids, ``"cu12.9-d13.0"``: the same on every host and for every patch level.

        Without a driver it is ``"cu12.9-dnone"``.
        """
        return f"cu{self.runtime.version}-d{self.driver.version or 'none'}"

    @property
    def runtime_route(self) -> bool:
        """Whether the function can be had from the runtime and its driver has it."""
        return self.runtime.exports_batch and self.driver.has_batch

    @property
    def driver_route(self) -> bool:
        """Whether cuGetProcAddress of the driver gives the function, whatever the runtime is."""
        return self.driver.has_batch

    def to_json(self) -> dict[str, Any]:
        """Return the pairing as JSON data, for other processes of the same run."""
        return {
            "runtime": self.runtime.to_json(),
            "driver": self.driver.to_json(),
            "platform": self.platform,
            "basis": self.basis,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Pairing:
        """Read ``to_json``'s form back. Raises KeyError or ValueError on anything else."""
        return cls(
            RuntimeEntry.from_json(data["runtime"]),
            DriverEntry.from_json(data["driver"]),
            data["platform"],
            data["basis"],
        )


def _text(value: Path | CudaVersion | None) -> str | None:
    return None if value is None else str(value)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)
