"""What all tests share: pytester, and nothing else; helpers live beside the tests that use them."""

from __future__ import annotations

pytest_plugins = ["pytester"]
