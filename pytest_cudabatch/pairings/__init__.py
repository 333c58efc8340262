"""Pairings of a runtime and a driver: from the matrix files, from a host, and selected by expression."""

from __future__ import annotations

from pytest_cudabatch.pairings.classes import one_of_each_class, one_of_each_major
from pytest_cudabatch.pairings.known_issues import KnownIssue, load_known_issues
from pytest_cudabatch.pairings.matrix import (
    Matrix,
    device_pairings,
    no_driver_pairings,
    simulated_pairings,
)
from pytest_cudabatch.pairings.matrix_files import load_matrix
from pytest_cudabatch.pairings.pairing import Basis, DriverEntry, Pairing, Platform, RuntimeEntry
from pytest_cudabatch.pairings.selection import Selection, select

__all__ = [
    "Basis",
    "DriverEntry",
    "KnownIssue",
    "Matrix",
    "Pairing",
    "Platform",
    "RuntimeEntry",
    "Selection",
    "device_pairings",
    "load_known_issues",
    "load_matrix",
    "no_driver_pairings",
    "one_of_each_class",
    "one_of_each_major",
    "select",
    "simulated_pairings",
]
