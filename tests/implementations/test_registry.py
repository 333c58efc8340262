"""Names of implementations: what the controller accepts without importing, what the child loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.implementations import BUILTIN, Implementation, check, load, names

ADAPTERS = ("sgl-kernel", "vllm")
"""The entry points of this package itself."""

MODULE = """
class Half:
    name = "half"

class Kernel:
    name = "kernel"
    def expected_path(self, plan, pairing):
        return "batch"
    def open(self):
        raise NotImplementedError

kernel = Kernel()
class family:
    member = kernel
half = Half
"""


@pytest.fixture
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on sys.path with a module ``mine_cb``, one that cannot be imported, and an entry point."""
    (tmp_path / "mine_cb.py").write_text(MODULE)
    (tmp_path / "broken_cb.py").write_text("raise ImportError('needs a GPU')\n")
    metadata = tmp_path / "mine_cb-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine-cb\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[pytest_cudabatch.implementations]\nmine-kernel = mine_cb:kernel\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("mine_cb", "broken_cb"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


@pytest.mark.parametrize("name", BUILTIN)
def test_ours_exist_and_describe_themselves(name: str) -> None:
    check(name)
    implementation = load(name)
    assert isinstance(implementation, Implementation)
    assert (implementation.name, implementation.description) == (name, BUILTIN[name].description)


def test_names_are_ours_and_those_of_entry_points(importable: Path) -> None:
    assert names() == (
        "reference",
        "per-copy",
        "per-copy-coalesced",
        "specimen:driver-version",
        "specimen:dlsym-always-9",
        "specimen:dlsym-always-8",
        "specimen:linked-runtime-version",
        "specimen:unchecked-null",
        "specimen:no-driver-guard",
        "specimen:silent-fallback",
        "specimen:fallback-ignores-errors",
        "specimen:fallback-on-invalid",
        "specimen:leaves-last-error",
        "specimen:default-stream",
        "specimen:zero-size-unfiltered",
        "specimen:no-capture-check",
        "specimen:straddles-registration",
        "specimen:overreads-attrs",
        "specimen:current-device",
        "specimen:source-freed-early",
        "specimen:missing-order",
        "specimen:returns-before-done",
        "specimen:off-by-one",
        "specimen:swapped-pages",
        "specimen:no-plt",
        "specimen:address-taken",
        "specimen:preloaded-dlsym",
        "specimen:static-cudart",
        "mine-kernel",
        "sgl-kernel",
        "vllm",
    )


def test_only_specimens_have_a_finding_and_say_so() -> None:
    hard_to_see = {"no-plt", "address-taken", "preloaded-dlsym", "static-cudart"}
    assert {name for name, recipe in BUILTIN.items() if recipe.finding} == {
        name for name in BUILTIN if name.startswith("specimen:") and name[9:] not in hard_to_see
    }
    for recipe in BUILTIN.values():
        assert recipe.finding is None or recipe.description.endswith(f" Finding: {recipe.finding}.")


@pytest.mark.parametrize("name", ["mine-kernel", "mine_cb:kernel", "mine_cb:family.member"])
def test_python_objects_are_checked_without_import_and_loaded(importable: Path, name: str) -> None:
    check(name)
    assert "mine_cb" not in sys.modules
    assert load(name).name == "kernel"


@pytest.mark.parametrize("name", ["refrence", "specimen:nothing", "a b:c", "mine_cb:", ":kernel", ""])
def test_unknown_names_are_refused_with_those_that_exist(name: str) -> None:
    with pytest.raises(UsageError) as refusal:
        check(name)
    assert refusal.value.problems == (
        f"there is no implementation {name!r}; known here: {', '.join((*BUILTIN, *ADAPTERS))}; "
        "or write module:attribute of a Python object",
    )


def test_a_module_that_is_not_found_is_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        check("no_such_module_cb.part:kernel")
    assert refusal.value.problems == (
        "implementation 'no_such_module_cb.part:kernel': there is no module 'no_such_module_cb' to import",
    )


def test_what_fails_at_import_passes_the_check_and_shows_on_load(importable: Path) -> None:
    check("broken_cb:kernel")
    with pytest.raises(ImportError, match=r"^needs a GPU$"):
        load("broken_cb:kernel")


def test_a_missing_attribute_is_an_import_error(importable: Path) -> None:
    with pytest.raises(
        ImportError, match="implementation 'mine_cb:nothing': module 'mine_cb' has no attribute"
    ):
        load("mine_cb:nothing")


def test_an_object_that_is_no_implementation_is_refused(importable: Path) -> None:
    with pytest.raises(TypeError, match=r"'mine_cb:half' is <class .*, which lacks one of: name, "):
        load("mine_cb:half")


def test_the_registry_does_not_import_numpy() -> None:
    code = (
        "import sys, pytest_cudabatch.implementations, pytest_cudabatch.cuda; print('numpy' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
