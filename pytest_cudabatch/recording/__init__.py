"""Recording any program under the interposer, without pytest."""

from pytest_cudabatch.recording.launch import StartError
from pytest_cudabatch.recording.recording import NotRecorded, Recording, Traced, record
from pytest_cudabatch.recording.report import as_json, exit_status, lines

__all__ = ["NotRecorded", "Recording", "StartError", "Traced", "as_json", "exit_status", "lines", "record"]
