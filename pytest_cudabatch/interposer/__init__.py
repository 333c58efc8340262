"""Evidence: what the audit library (native/interposer) saw of a process's copies, read back as values.

And injection: which of a process's calls the library delays, answers itself, or fails, on request.
"""

from __future__ import annotations

from pytest_cudabatch.interposer.evidence import Evidence
from pytest_cudabatch.interposer.evidence_file import EVIDENCE_VARIABLE, EvidenceFile, environment
from pytest_cudabatch.interposer.injections import (
    AppliedInjection,
    Effect,
    EffectKind,
    Injection,
    parse_injections,
)
from pytest_cudabatch.interposer.observations import (
    Binding,
    Call,
    Capabilities,
    CopyPath,
    Fault,
    Location,
    Lookup,
    MappedObject,
    Owner,
    Site,
    VersionQuery,
)
from pytest_cudabatch.interposer.processes import Image, Notes, ProcessEvidence, StartedProgram, read_notes

__all__ = [
    "EVIDENCE_VARIABLE",
    "AppliedInjection",
    "Binding",
    "Call",
    "Capabilities",
    "CopyPath",
    "Effect",
    "EffectKind",
    "Evidence",
    "EvidenceFile",
    "Fault",
    "Image",
    "Injection",
    "Location",
    "Lookup",
    "MappedObject",
    "Notes",
    "Owner",
    "ProcessEvidence",
    "Site",
    "StartedProgram",
    "VersionQuery",
    "environment",
    "parse_injections",
    "read_notes",
]
