"""Evidence: what the audit library (native/interposer) saw of a process's copies, read back as values."""

from __future__ import annotations

from pytest_cudabatch.interposer.evidence import (
    Binding,
    Call,
    CopyPath,
    Evidence,
    Location,
    Lookup,
    MappedObject,
    Owner,
    Site,
)
from pytest_cudabatch.interposer.evidence_file import EvidenceFile, environment

__all__ = [
    "Binding",
    "Call",
    "CopyPath",
    "Evidence",
    "EvidenceFile",
    "Location",
    "Lookup",
    "MappedObject",
    "Owner",
    "Site",
    "environment",
]
