"""The ``cudabatch`` command: one file a verb, imported when that verb is asked for."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.metadata import version
from typing import NoReturn

from pytest_cudabatch.errors import CudaBatchError, UsageError

__all__ = ["main"]

_VERBS = {
    "fetch": "fetch real CUDA runtimes from the vendor's wheels",
    "probe": "tell what a host has, and whether its libraries answer as known",
    "matrix": "print the pairings of runtimes and drivers, and what is expected of each",
    "merge": "make one report, or JUnit XML, of reports and journals, also of a run that was killed",
    "record": "run any program and tell how its batch copies went",
    "bundle": "make a directory that installs and runs on a host without a network",
}
"""Each verb and its line in the help; the module of that name has ``configure`` and ``run``."""

_FAILED, _USAGE, _INTERRUPTED = 1, 4, 130


class _Parser(argparse.ArgumentParser):
    """Gives a wrong command line the same exit status as every other wrong input."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit status: 0, 1 where it failed, 4 for bad input.

    ``argv`` are the arguments without the program's name; None takes those of the process.
    """
    # Kept until the end, so that an OSError is known to be one of stdout, and no other.
    with redirect_stdout(io.StringIO()) as output:
        status = _run(sys.argv[1:] if argv is None else argv)
    try:
        _print(output.getvalue())
    except CudaBatchError as error:
        return _refuse(error, _FAILED)
    return status


def _run(arguments: Sequence[str]) -> int:
    try:
        options = _parser(arguments).parse_args(arguments)
        module = importlib.import_module(f"{__name__}.{options.verb}")
        status: int = module.run(options)
    except UsageError as error:
        return _refuse(error, _USAGE)
    except CudaBatchError as error:
        return _refuse(error, _FAILED)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except SystemExit:  # argparse has shown the help or the version
        return 0
    return status


def _print(text: str) -> None:
    """Write all of ``text``. Raises CudaBatchError where stdout is closed, full, or read by nobody."""
    if not text:
        return
    if sys.stdout is None:  # Python's way of saying that the process was started without one
        raise CudaBatchError("cannot write to stdout: it is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is still in the buffer would be written, and fail, once more when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise CudaBatchError(f"cannot write to stdout: {error.strerror}") from error


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; of the verbs only the one in ``arguments`` gets its options."""
    parser = _Parser(prog="cudabatch", description="CUDA batch copies across runtimes, drivers and images.")
    parser.add_argument(
        "--version", action="version", version=f"pytest-cudabatch {version('pytest-cudabatch')}"
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    wanted = next((argument for argument in arguments if not argument.startswith("-")), None)
    for verb, line in _VERBS.items():
        verb_parser = verbs.add_parser(verb, help=line, description=line[0].upper() + line[1:] + ".")
        if verb == wanted:
            importlib.import_module(f"{__name__}.{verb}").configure(verb_parser)
    return parser


def _refuse(error: CudaBatchError, status: int) -> int:
    sys.stderr.write(f"cudabatch: {error}\n")
    return status
