"""Downloads wheels with pip, so that the user's pip configuration (index, proxy, certificates) applies."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cudabatch.errors import CudaBatchError, UsageError

__all__ = ["DownloadError", "IndexOptions", "download", "run_pip"]

_NO_RELEASE = re.compile(
    r"Could not find a version that satisfies the requirement (.+?) \(from versions: (.*?)\)"
)
_UNREACHABLE = re.compile(r"connection broken by '([^'(]*)|(Connection to \S+ timed out)")


class DownloadError(CudaBatchError):
    """pip could not bring what was asked for: no such release, no network, or an index that refused."""


@dataclass(frozen=True)
class IndexOptions:
    """Where pip looks, beside the user's own pip configuration; as pip's options of the same names."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Return the options as pip's command line takes them."""
        index = ["--index-url", self.index_url] if self.index_url else []
        extra = [word for url in self.extra_index_urls for word in ("--extra-index-url", url)]
        links = [word for place in self.find_links for word in ("--find-links", place)]
        return index + extra + links


def download(
    requirements: Sequence[str],
    directory: Path,
    index: IndexOptions,
    *,
    dependencies: bool = False,
    target: Sequence[str] = (),
) -> None:
    """Put wheels for ``requirements`` (PEP 508) into ``directory``, built ones only.

    ``target`` holds pip's options for another Python or platform than this one. Raises DownloadError.
    """
    alone = [] if dependencies else ["--no-deps"]
    run_pip(
        [
            "download",
            *alone,
            "--only-binary=:all:",
            "-d",
            str(directory),
            *target,
            *index.arguments(),
            *requirements,
        ]
    )


def run_pip(arguments: Sequence[str]) -> None:
    """Run this interpreter's pip. Raises DownloadError with pip's reason, or UsageError without a pip."""
    if importlib.util.find_spec("pip") is None:
        raise UsageError(f"{sys.executable} has no pip; add it with: {sys.executable} -m ensurepip")
    options = ["--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    finished = subprocess.run(  # noqa: S603 - this interpreter's pip, without a shell
        [sys.executable, "-m", "pip", arguments[0], *options, *arguments[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if finished.returncode != 0:
        raise DownloadError(explain(finished.stdout))


def explain(output: str) -> str:
    """Return in one line what a failed pip said in ``output``."""
    missing = _NO_RELEASE.search(output)
    unreachable = _UNREACHABLE.search(output)
    if missing and missing[2] != "none":
        return f"there is no {missing[1]}; the index has {missing[2]}"
    if unreachable:
        return f"the package index could not be reached ({unreachable[1] or unreachable[2]})"
    if missing:
        return f"pip found no {missing[1]}: no index or --find-links directory has it, or none can be reached"
    errors = [line for line in output.splitlines() if line.startswith("ERROR:")] or output.splitlines()
    return f"pip failed: {errors[-1].removeprefix('ERROR:').strip() if errors else 'it said nothing'}"
