"""Tests in processes of their own: a zygote per environment, a fork per test, and the proof of its end."""

from pytest_cudabatch.cells.batch import Batch, BatchCell
from pytest_cudabatch.cells.cell import CellRefusedError
from pytest_cudabatch.cells.clearing import Watchman
from pytest_cudabatch.cells.directory import RunDirectory
from pytest_cudabatch.cells.importing import ImportGuard
from pytest_cudabatch.cells.launch import Environment
from pytest_cudabatch.cells.outcome import (
    CapturedText,
    CollectedItem,
    CollectedMarker,
    CollectionError,
    End,
    Location,
    Outcome,
    RecordedWarning,
    Stop,
)
from pytest_cudabatch.cells.payload import PAYLOAD, SPENT
from pytest_cudabatch.cells.protocol import Json, Phase
from pytest_cudabatch.cells.reports import complete_reports, failure_representation
from pytest_cudabatch.cells.supervisor import Zygote

__all__ = [
    "PAYLOAD",
    "SPENT",
    "Batch",
    "BatchCell",
    "CapturedText",
    "CellRefusedError",
    "CollectedItem",
    "CollectedMarker",
    "CollectionError",
    "End",
    "Environment",
    "ImportGuard",
    "Json",
    "Location",
    "Outcome",
    "Phase",
    "RecordedWarning",
    "RunDirectory",
    "Stop",
    "Watchman",
    "Zygote",
    "complete_reports",
    "failure_representation",
]
