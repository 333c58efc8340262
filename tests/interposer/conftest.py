from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .programs import Compiler, Programs


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler(tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def programs(compiler: Compiler, tmp_path: Path) -> Iterator[Programs]:
    made = Programs(compiler, tmp_path)
    yield made
    made.evidence_file.close()
