"""``cudabatch record``: any program under the interposer, without pytest."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.interposer import Injection, parse_injections
from pytest_cudabatch.recording import Recording, StartError, as_json, exit_status, lines, record

__all__ = ["configure", "run"]

_UNWRITTEN = 4
"""Exit status where all was well but that a file could not be written after the program's end."""

_EPILOG = """\
The program's streams are its own; what was recorded goes to stderr, or to the file of -o. The exit status is
the program's; 128 + N where signal N ended it; 127 or 126 where there is no such program or it cannot be run;
4 where it was 0 and a file could not be written.
Children that go on when the program has ended are recorded up to then.
SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that are sent to cudabatch are passed on to the program.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.usage = "cudabatch record [--inject RULES] [--trace FILE] [-o FILE] [--json] -- CMD [ARG ...]"
    parser.epilog = _EPILOG
    parser.add_argument("--json", action="store_true", help="write the recording as JSON")
    parser.add_argument(
        "--inject",
        metavar="RULES",
        help='faults in every process, such as "batch@2=801; lookup=null"; each counts its own calls',
    )
    parser.add_argument(
        "--trace", metavar="FILE", type=Path, help="keep every batch's descriptors, without data, for replay"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to this file, not to stderr")
    parser.add_argument("command", nargs="+", metavar="CMD", help="the program and its arguments, after --")


def run(options: argparse.Namespace) -> int:
    """Run the program, write what was recorded, and return the program's exit status."""
    injections: Sequence[Injection] = parse_injections(options.inject) if options.inject else ()
    _check_writable(options.output)
    _check_writable(options.trace)
    try:
        recording = record(options.command, injections, options.trace, _say)
    except StartError as error:
        _say(str(error))
        return error.status
    unwritten = [*_write(recording, options)]
    if isinstance(recording.traced, str):
        unwritten.append(recording.traced)
    for problem in unwritten:
        _say(problem)
    return exit_status(recording) or (_UNWRITTEN if unwritten else 0)


def _say(text: str) -> None:
    _tell(f"cudabatch: {text}\n")


def _tell(text: str) -> None:
    """Write to stderr, where there is one that takes it: the exit status is the program's all the same."""
    if sys.stderr is None:  # Python's way of saying that the process was started without one
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        sys.stderr = None  # what is still in the buffer would change the exit status when Python ends


def _check_writable(output: Path | None) -> None:
    """Raise UsageError before a long run, not after it, where its results could not be kept."""
    if output is None:
        return
    try:
        output.open("a", encoding="utf-8").close()
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error


def _write(recording: Recording, options: argparse.Namespace) -> Iterator[str]:
    """Write the recording, to stderr where the file of -o does not take it, and yield why it does not."""
    if options.json:
        text = json.dumps(as_json(recording), indent=1) + "\n"
    else:
        text = "".join(f"cudabatch: {line}\n" for line in lines(recording))
    try:
        if options.output is not None:
            options.output.write_text(text, encoding="utf-8", errors="surrogateescape")
            return
    except OSError as error:
        yield f"cannot write {options.output}: {error.strerror}"
    _tell(text)
