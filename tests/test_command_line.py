"""What a zygote inherits of a command line, and that a run with such a command line works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch import command_line, plugin
from pytest_cudabatch.command_line import inherited_arguments

DEVELOPMENT = """
def pytest_addoption(parser):
    parser.addoption("--dev")
    parser.addoption("--fast", action="store_true")
    parser.addoption("--both", nargs=2)
    parser.addoption("--maybe", nargs="?", const="yes")
    parser.addoption("--several", nargs="*")
    parser.addoption("--cuda-of-ours")
"""


class Declared:
    """Stands in for pytest's parser: notes each option and whether it takes a value."""

    def __init__(self) -> None:
        self.options: dict[str, bool] = {}

    def getgroup(self, name: str, description: str = "") -> Declared:
        assert (name, bool(description)) == ("cudabatch", True)
        return self

    def addoption(self, name: str, **attributes: Any) -> None:
        self.options[name] = attributes.get("action") != "store_true"

    def addini(self, name: str, help_text: str, **attributes: Any) -> None:
        pass


def own_options() -> dict[str, bool]:
    declared = Declared()
    plugin.pytest_addoption(declared)  # type: ignore[arg-type] # all of it that is used
    return declared.options


def spellings() -> list[tuple[str, ...]]:
    return [
        words
        for name, takes_value in own_options().items()
        for words in (((name, "1"), (f"{name}=1",)) if takes_value else ((name,),))
    ]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeconftest(DEVELOPMENT)
    pytester.makepyfile(test_l="def test_it(): pass")
    return pytester


def inherited(project: pytest.Pytester, *words: str) -> tuple[str, ...]:
    """Return what a zygote inherits of these words, and of the --basetemp that pytester adds.

    Without the end, which keeps out what is installed here and runs tests anew.
    """
    config = project.parseconfig(*words)
    arguments, kept_out = inherited_arguments(config), tuple(command_line._kept_out(config))
    assert arguments[len(arguments) - len(kept_out) :] == kept_out
    return arguments[: len(arguments) - len(kept_out)]


def test_there_are_options_of_ours_to_look_at() -> None:
    assert {"--cuda-matrix": False, "--cuda-budget": True}.items() <= own_options().items()


@pytest.mark.parametrize("words", spellings(), ids="_".join)
def test_an_option_of_ours_is_not_inherited_nor_its_value(
    project: pytest.Pytester, words: tuple[str, ...]
) -> None:
    assert inherited(project, "--dev", "before", *words, "test_l.py", "--fast") == (
        "--dev",
        "before",
        "--fast",
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--dev test_l.py test_l.py", "--dev test_l.py"),
        ("test_l.py --dev test_l.py", "--dev test_l.py"),
        ("--dev=test_l.py test_l.py test_l.py", "--dev=test_l.py"),
        ("--fast test_l.py", "--fast"),
        ("--both test_l.py test_l.py test_l.py", "--both test_l.py test_l.py"),
        ("--maybe test_l.py", "--maybe test_l.py"),
        ("--maybe --fast test_l.py", "--maybe --fast"),
        ("--cuda-of-ours 3 test_l.py", "--cuda-of-ours 3"),
        ("--fast -- test_l.py", "--fast"),
        ("test_l.py --several a b --fast test_l.py", "--several a b --fast"),
        ("-k it -m x -r a -ra -n 0 -n0 -vv -xq -xvk it test_l.py", ""),
        ("--maxfail 3 --durations 5 --junitxml x.xml -c pytest.ini --rootdir . test_l.py", ""),
        ("--deselect test_l.py test_l.py", ""),
        ("-W error -p no:doctest -pno:pastebin -o xfail_strict=true --strict-markers",
         "-W error -p no:doctest -pno:pastebin -o xfail_strict=true --strict-markers"),
        ("-p no:capture", ""),
        ("-pno:capture", ""),
        ("--strict-config --import-mode importlib", "--import-mode importlib"),
    ],
)  # fmt: skip
def test_what_is_inherited(project: pytest.Pytester, words: str, expected: str) -> None:
    project.makefile(".ini", pytest="[pytest]\nmarkers = x\n")
    assert inherited(project, *words.split()) == tuple(expected.split())


def test_options_of_the_ini_file_the_environment_and_an_argument_file(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makeini("[pytest]\naddopts = --dev 'an ini value' -v\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--fast --cuda-budget '3 s'")
    Path("arguments").write_text("--both\none\ntwo words\ntest_l.py\n", encoding="utf-8")
    assert inherited(project, "@arguments", "test_l.py") == (
        *("--dev", "an ini value"),
        "--fast",
        *("--both", "one", "two words"),
    )


def test_an_option_that_must_be_given(project: pytest.Pytester) -> None:
    project.makeconftest(DEVELOPMENT + '    parser.addoption("--must", required=True)\n')
    words = (
        "--cuda-budget",
        "3",
        "--fast",
        "test_l.py",
        "--must",
        "test_l.py",
        "test_l.py",
        "--maxfail",
        "-1",
    )
    assert inherited(project, *words) == ("--fast", "--must", "test_l.py")


COVERAGE = """
def pytest_addoption(parser):
    group = parser.getgroup("cov")
    group.addoption("--cov", action="append", nargs="?", const=True)
    group.addoption("--cov-report", action="append")
    group.addoption("--no-cov", action="store_true")
"""


def test_coverage_stays_with_the_controller(project: pytest.Pytester) -> None:
    """The same options as pytest-cov's, which need not be installed."""
    project.makepyfile(coverage_options=COVERAGE)
    project.syspathinsert()
    words = "-p coverage_options -p no:pytest_cov --cov src --cov-report term --no-cov test_l.py"
    assert inherited(project, *words.split()) == tuple(words.split()[:4])


RERUNFAILURES = """
import threading

def pytest_addoption(parser):
    group = parser.getgroup("rerunfailures")
    group.addoption("--reruns", type=int)
    parser.addini("reruns", "the same")

def pytest_configure(config):
    config.addinivalue_line("markers", "flaky(reruns): run it anew")
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""

CELL = """
import pytest

def test_cell(cuda_pairing):
    pass
"""


def run(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.RunResult, list[str]]:
    result = pytester.runpytest_subprocess(
        *("--cuda-matrix", "--cuda-no-suite", "--cuda-platform", "simulated", "--cuda-report", "report.json"),
        *("--cuda-select", "runtime==12.9 on driver==13.0"),
        *arguments,
    )
    assert (pytester.path / "report.json").is_file(), result.stderr.str()
    cells = json.loads((pytester.path / "report.json").read_text())["cells"]
    return result, [cell["verdict"] for cell in cells]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--cuda-budget", "300"),
        ("--cuda-require", "simulated:1"),
        ("--cuda-inject", "batch=801"),
        ("--cuda-known-issues", "fail"),
        ("-p", "no:capture"),
    ],
    ids=" ".join,
)
def test_a_run_with_options_in_two_words(pytester: pytest.Pytester, arguments: tuple[str, ...]) -> None:
    pytester.makepyfile(CELL)
    result, verdicts = run(pytester, *arguments)
    assert (result.ret, verdicts) == (0, ["passed"])


@pytest.mark.parametrize("loaded", ["option", "environment"])
def test_a_plugin_that_reruns_and_starts_a_thread_stays_out(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, loaded: str
) -> None:
    """Its options, its marker and its ini setting are no errors there, however strict the project is."""
    pytester.makepyfile(rerunfailures=RERUNFAILURES)
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    if loaded == "environment":
        monkeypatch.setenv("PYTEST_PLUGINS", "rerunfailures")
    pytester.makeini(
        "[pytest]\nmarkers = ours\nreruns = 2\nfilterwarnings = error\n"
        "addopts = --strict-markers --strict-config --reruns 1\n"
    )
    pytester.makepyfile(CELL.replace("def test", "@pytest.mark.ours\n@pytest.mark.flaky(reruns=2)\ndef test"))
    result, verdicts = run(pytester, *(("-p", "rerunfailures") if loaded == "option" else ()))
    assert (result.ret, verdicts) == (0, ["passed"])


def test_a_cell_does_not_empty_the_temporary_directory_of_another(pytester: pytest.Pytester) -> None:
    """Whoever first asks for a path below --basetemp, which pytester gives, empties it."""
    pytester.makepyfile("""
        from pathlib import Path

        def test_first(cuda_pairing, tmp_path):
            (tmp_path / "kept").touch()
            Path("place").write_text(str(tmp_path / "kept"))

        def test_second(cuda_pairing, tmp_path):
            assert Path(Path("place").read_text()).exists()
    """)
    result, verdicts = run(pytester)
    assert (result.ret, verdicts) == (0, ["passed", "passed"])
