"""Who isolates, and how each is asked to; all in one environment, each run with its own plugin alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CONTENDERS", "PEERS", "PYTEST", "Contender", "make_environment", "pytest_command"]

PYTEST = "pytest==9.1.*"
"""The newest on which all of them run: two use private functions of pytest that 9.2 does not have."""

PEERS = ("pytest-forked", "pytest-isolate", "pytest-isolated", "pytest-xdist", "pytest-timeout")

BARE_FORK = '''"""A fork for each test and nothing else, of a process that has imported what a zygote has."""
import gc, importlib, os
from pytest_cudabatch.zygote_plugin import WARM_IMPORTS

def pytest_sessionstart():
    for name in WARM_IMPORTS:
        importlib.import_module(name)

def pytest_collection_finish():
    gc.collect()
    gc.freeze()

def pytest_runtest_protocol(item):
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)
    return True
'''


@dataclass(frozen=True)
class Contender:
    """A way to run tests by ``options`` of pytest.

    ``hangs`` are the options that give a test a limit in seconds, which ``{limit}`` stands for; without any
    it has none. ``dear`` ones are run on fewer tests.
    """

    name: str
    options: tuple[str, ...]
    hangs: tuple[str, ...] = ()
    dear: bool = False
    isolates: bool = True

    @property
    def is_ours(self) -> bool:
        """Whether it is this project."""
        return "--cuda-matrix" in self.options


OURS = (
    *("-p", "xdist.plugin", "-p", "timeout", "-p", "pytest_cudabatch.plugin"),
    *("--cuda-matrix", "--cuda-no-suite", "--cuda-platform=simulated", "--cuda-report=run.jsonl"),
    "--cuda-select=runtime==12.9 on driver==13.0",
)
CONTENDERS = (
    Contender("pytest-cudabatch", OURS, ("--cuda-timeout={limit}",)),
    Contender("pytest-forked", ("-p", "pytest_forked", "--forked")),
    Contender("pytest-isolate", ("-p", "pytest_isolate.plugin", "--isolate"), ("--isolate-timeout={limit}",)),
    Contender(
        "pytest-isolated",
        ("-p", "pytest_isolated.plugin", "--isolated"),
        ("--isolated-timeout={limit}",),
        dear=True,
    ),
    Contender(
        "pytest-xdist",
        ("-p", "xdist.plugin", "-p", "timeout", "-n1"),
        ("--timeout={limit}", "--timeout-method=thread"),
    ),
    Contender("bare fork", ("-p", "bare_fork"), isolates=False),
    Contender("plain pytest", (), isolates=False),
)


def make_environment(directory: Path, source: Path) -> Path:
    """Make a virtual environment with all of them and the project in ``source``; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    python = directory / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, PYTEST, *PEERS, str(source)], check=True)
    site = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    Path(site.stdout.strip(), "bare_fork.py").write_text(BARE_FORK, encoding="utf-8")
    return python


def pytest_command(
    python: Path, contender: Contender, arguments: Sequence[str], base: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of a run of ``contender``."""
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *contender.options, *arguments]
    environment = {**base, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CUDABATCH_NATIVE_STACKS": "0"}
    environment.pop("PYTEST_ADDOPTS", None)
    return command, environment
