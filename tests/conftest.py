"""What all tests share: pytester, and nothing else; helpers live beside the tests that use them."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _in_order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep pytest-randomly, which is here to be tested, from shuffling what pytester runs."""
    if "pytester" in request.fixturenames:
        request.getfixturevalue("pytester")  # which forgets the variable
        monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:randomly")
