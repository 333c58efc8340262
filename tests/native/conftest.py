"""What the tests of the native parts share."""

from __future__ import annotations

import pytest

from .fakes import Fakes


@pytest.fixture(scope="session")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Fakes:
    """Build the fakes of CUDA's libraries. Tests that use them need a compiler: mark them needs_compiler."""
    return Fakes(tmp_path_factory.mktemp("fakes"))
