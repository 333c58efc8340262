"""Sessions of this project: ``nox`` runs tests, lint and types; ``nox -l`` lists them all."""

from __future__ import annotations

import nox

nox.needs_version = ">=2025.2"
nox.options.sessions = ["tests", "lint", "types"]
nox.options.error_on_missing_interpreters = False

PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
BESIDE = ("tests/plugin/test_beside.py", "tests/plugin/test_xdist.py", "tests/plugin/test_progress.py")
STRICT = "-Ccmake.define.CUDABATCH_WERROR=ON"


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The project's own tests; what follows -- is pytest's."""
    session.install(STRICT, ".[dev]")
    session.run("pytest", "-n", "2", *session.posargs)


@nox.session
def oldest(session: nox.Session) -> None:
    """The tests on the oldest pytest that is supported."""
    session.install(STRICT, ".[dev]", "pytest==8.2.*")
    session.run("pytest", "-n", "2", *session.posargs)


@nox.session
@nox.parametrize("release", ["8.2.*", "9.1.*", "9.*"], ids=["oldest", "previous", "newest"])
def beside(session: nox.Session, release: str) -> None:
    """Cells beside pytest's options and other plugins, on the releases of pytest that are supported."""
    session.install(STRICT, ".[dev]", f"pytest=={release}")
    session.run("pytest", "-n", "2", "-m", "", *BESIDE, *session.posargs)


@nox.session
def sanitizers(session: nox.Session) -> None:
    """The simulator under ASan, UBSan and TSan; then all native parts, with traps at undefined behaviour."""
    session.install(STRICT, "-Ccmake.define.CUDABATCH_UBSAN=ON", ".[dev]")
    session.run("pytest", "-n", "2", "-m", "nightly or not nightly", "tests/native/test_simcuda_sanitized.py")
    session.run("pytest", "-n", "2", "tests/native", "tests/interposer", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules and format."""
    session.install("ruff>=0.9")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session(python=["3.10", "3.13"])
def types(session: nox.Session) -> None:
    """Strict types."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def matrix(session: nox.Session) -> None:
    """The compatibility matrix on simulated CUDA, or on a GPU with -- --cuda-platform=device."""
    session.install(".")
    session.run("pytest", "--cuda-matrix", "--cuda-suite-only", *session.posargs)


@nox.session(python="3.12")
def shipped(session: nox.Session) -> None:
    """Shipped builds with unmodified torch on simulated CUDA; fetches several gigabytes of wheels."""
    session.install(".", "torch==2.11.0", "sglang-kernel==0.4.4")
    session.install("--no-deps", "vllm==0.26.0")
    session.run("python", "bench/shipped.py", "--platform", "simulated", "--out", session.create_tmp())


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks; each prints ratios from one run."""
    session.install(".")
    session.run("python", "bench/startup.py", *session.posargs)
    session.run("python", "bench/isolation.py", "--torture")
    session.run("python", "bench/interposer.py")
