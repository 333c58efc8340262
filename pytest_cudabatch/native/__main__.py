"""``python -m pytest_cudabatch.native``: run a program on simulated CUDA, or print what its environment is.

``python -m pytest_cudabatch.native --driver 13.0 -- python mine.py`` runs mine.py; without a program the
variables are printed for a shell to evaluate.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.errors import CudaBatchError, UsageError
from pytest_cudabatch.native import library

_DRIVERS = {
    CudaVersion(12, 0): "driver-12.4",
    CudaVersion(12, 8): "driver-12.8",
    CudaVersion(13, 0): "driver-13.0",
}
_RUNTIMES = {
    CudaVersion(12, 0): "runtime-12.6",
    CudaVersion(12, 8): "runtime-12.8",
    CudaVersion(13, 0): "runtime-13.0",
}
"""The directory of each kind, by the oldest version that its library can be set to."""
_BEYOND = CudaVersion(14, 0)
_FILES = {12: "libcudart.so.12", 13: "libcudart.so.13"}


def environment(
    driver: CudaVersion, runtimes: Sequence[CudaVersion] = (), inherited: str | None = None
) -> dict[str, str]:
    """Return the variables that put simulated CUDA of these versions before any other.

    ``runtimes`` are at most one of each major version; ``inherited`` is an LD_LIBRARY_PATH to go on with.
    Raises UsageError for versions that cannot be simulated, InstallationError where nothing is built.
    """
    directories = [library(f"simcuda/{_directory(_DRIVERS, driver)}/libcuda.so.1").parent]
    variables = {"CUDABATCH_SIM_DRIVER": str(driver.api)}
    for runtime in runtimes:
        file = f"simcuda/{_directory(_RUNTIMES, runtime)}/{_FILES[runtime.major]}"
        directories.append(library(file).parent)
        variables[f"CUDABATCH_SIM_RUNTIME_{runtime.major}"] = str(runtime.api)
    path = [*map(str, directories), *filter(None, [inherited])]
    return {"LD_LIBRARY_PATH": os.pathsep.join(path), **variables}


def _directory(kinds: dict[CudaVersion, str], version: CudaVersion) -> str:
    fitting = [first for first in kinds if first <= version < _BEYOND]
    if not fitting:
        raise UsageError(f"CUDA {version} is not simulated; there is 12.0 to 13.9")
    return kinds[max(fitting)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_cudabatch.native",
        description="Run a program on simulated CUDA; without one, print the variables for a shell.",
    )
    parser.add_argument(
        "--driver", default="13.0", metavar="VERSION", help="what libcuda.so.1 reports (13.0)"
    )
    parser.add_argument(
        "--runtime",
        action="append",
        metavar="VERSION",
        help="a libcudart to simulate, once for each major version (12.8 and 13.0)",
    )
    parser.add_argument("--devices", type=int, choices=range(1, 9), help="how many devices there are (1)")
    parser.add_argument("--schedule", metavar="fair|adversarial[:SEED]", help="when queued work runs (fair)")
    parser.add_argument("program", nargs="*", help="what to run, and its arguments, after --")
    return parser


def _variables(options: argparse.Namespace) -> dict[str, str]:
    runtimes = [CudaVersion.parse(text) for text in options.runtime or ("12.8", "13.0")]
    if len({runtime.major for runtime in runtimes}) != len(runtimes):
        raise UsageError("--runtime: at most one of each major version")
    found = environment(CudaVersion.parse(options.driver), runtimes, os.environ.get("LD_LIBRARY_PATH"))
    if options.devices is not None:
        found["CUDABATCH_SIM_DEVICES"] = str(options.devices)
    if options.schedule is not None:
        found["CUDABATCH_SIM_SCHEDULE"] = options.schedule
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status where it does not turn into the program."""
    options = _parser().parse_args(arguments)
    try:
        variables = _variables(options)
        if options.program:
            os.execvpe(options.program[0], options.program, {**os.environ, **variables})  # noqa: S606  # the point
    except (CudaBatchError, OSError) as error:
        sys.stderr.write(f"python -m pytest_cudabatch.native: {error}\n")
        return 2
    sys.stdout.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    return 0


if __name__ == "__main__":
    sys.exit(main())
