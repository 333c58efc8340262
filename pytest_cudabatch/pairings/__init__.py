"""Pairings of a runtime and a driver: from the matrix files, from a host, and selected by expression."""

from __future__ import annotations

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
    "Matrix",
    "Pairing",
    "Platform",
    "RuntimeEntry",
    "Selection",
    "device_pairings",
    "load_matrix",
    "no_driver_pairings",
    "select",
    "simulated_pairings",
]
