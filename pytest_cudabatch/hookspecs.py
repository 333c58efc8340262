"""Hooks that projects and other plugins may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch.pairings import Pairing
    from pytest_cudabatch.verdicts import Cell


def pytest_cudabatch_modify_pairings(config: pytest.Config, pairings: list[Pairing]) -> None:
    """Change the run's pairings in place; called once, in the controller, after ``--cuda-select``."""


def pytest_cudabatch_cell_finished(config: pytest.Config, cell: Cell) -> None:
    """Hear of a cell's verdict; called in the controller, once a cell, in the order of arrival."""
