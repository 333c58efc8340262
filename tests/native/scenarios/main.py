"""Runs one scenario in this process: ``main.py NAME REQUEST``; see tests/native/processes.py."""

from __future__ import annotations

import batch
import batch_3d
import capture
import contexts
import devices
import faults
import frameworks
import memory
import pools
import processes
import schedule
import streams
import versions
from simulated import main

# Imported for the scenarios they register.
__all__ = [
    "batch",
    "batch_3d",
    "capture",
    "contexts",
    "devices",
    "faults",
    "frameworks",
    "memory",
    "pools",
    "processes",
    "schedule",
    "streams",
    "versions",
]

if __name__ == "__main__":
    main()
