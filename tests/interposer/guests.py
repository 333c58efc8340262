"""The native parts built for aarch64, and programs that run on them by user-mode emulation (qemu-user)."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_cudabatch.interposer import EvidenceFile, parse_injections

from .programs import Compiler, Ended

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
SYSROOT = Path("/usr/aarch64-linux-gnu")
"""Where Debian's cross compiler has the guest's C library."""

NATIVE = Path(__file__).parents[2] / "pytest_cudabatch" / "native"
"""In the repository: an installed package has no C sources."""

TARGETS = (
    "cudabatch_interposer",
    "simulated_driver_12080",
    "simulated_driver_13000",
    "simulated_runtime_12080",
    "simulated_runtime_13000",
    "reference",
    "per-copy",
    "specimen-no-plt",
    "specimen-dlsym-always-9",
)
"""What the tests run: building all of it takes twice as long."""

MISSING = [name for name in (COMPILER, EMULATOR, "cmake") if shutil.which(name) is None]


@dataclass(frozen=True)
class Build:
    """A build of the native parts: where its libraries lie."""

    directory: Path

    @property
    def interposer(self) -> Path:
        return self.directory / "interposer" / "libcudabatch_interposer.so"

    def simulated(self, library: str) -> Path:
        return self.directory / "simcuda" / library

    def implementation(self, name: str) -> Path:
        return self.directory / "dispatch" / f"lib{name}.so"


def configure(directory: Path, processor: str, compiler: str) -> str:
    """Configure a build for a processor, and return what CMake said."""
    command = ["cmake", "-S", str(NATIVE), "-B", str(directory), "-DCMAKE_SYSTEM_NAME=Linux"]
    options = [f"-DCMAKE_SYSTEM_PROCESSOR={processor}", f"-DCMAKE_C_COMPILER={compiler}"]
    done = subprocess.run(
        [*command, *options, "-DCMAKE_BUILD_TYPE=Release", "-DCUDABATCH_WERROR=ON"],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def build(directory: Path, *targets: str) -> Build:
    """Build for aarch64, all or some targets, with warnings as errors."""
    configure(directory, "aarch64", COMPILER)
    chosen = [f"--target={target}" for target in targets]
    command = ["cmake", "--build", str(directory), "--parallel", "2", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return Build(directory)


def built_once(directory: Path) -> Build:
    """Build what tests run, or wait for the process that does: workers of one run share the directory."""
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "done").exists():
            build(directory, *TARGETS)
            (directory / "done").touch()
    return Build(directory)


@dataclass
class Guests:
    """Runs sources/guest.c in the emulator, with evidence or without."""

    build: Build
    compiler: Compiler
    directory: Path
    evidence_file: EvidenceFile = field(init=False)

    def __post_init__(self) -> None:
        self.evidence_file = EvidenceFile.create(self.directory / "evidence", slots=4)

    @property
    def program(self) -> Path:
        return self.compiler.library("guest", "guest.c", "-ldl")

    def start(
        self,
        program: Path,
        *arguments: object,
        settings: Mapping[str, object] | None = None,
        evidence: EvidenceFile | None = None,
        preload: Path | None = None,
    ) -> subprocess.Popen[str]:
        """Start a program with pipes for its input and output. The emulator itself is not audited."""
        inside = {"LD_AUDIT": str(self.build.interposer)} if evidence else {}
        inside |= {"LD_PRELOAD": str(preload)} if preload else {}
        settings = settings or {}
        named = {f"TEST_{name.upper()}": str(value) for name, value in settings.items()}
        recorded = {"CUDABATCH_EVIDENCE": str(evidence.path)} if evidence else {}
        options = [part for name, value in inside.items() for part in ("-E", f"{name}={value}")]
        return subprocess.Popen(
            [EMULATOR, "-L", str(SYSROOT), *options, str(program), *map(str, arguments)],
            env={**os.environ, **recorded, **named},
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start_steps(
        self, *steps: str, settings: Mapping[str, object], rules: str = "", preload: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start the guest program with a fresh slot 0, which is claimed and has its rules."""
        self.evidence_file.clear(0)
        process = self.start(
            self.program, *steps, settings=settings, evidence=self.evidence_file, preload=preload
        )
        self.evidence_file.claim(0, process.pid)  # the guest's pid is its emulator's
        self.evidence_file.request(0, parse_injections(rules) if rules else ())
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        return process

    def run(self, *steps: str, settings: Mapping[str, object], rules: str = "") -> Ended:
        """Run the guest program's steps to their end."""
        process = self.start_steps(*steps, settings=settings, rules=rules)
        return self._ended(process)

    def run_plain(self, *steps: str, settings: Mapping[str, object]) -> Ended:
        """Run the steps without the interposer."""
        self.evidence_file.clear(0)
        process = self.start(self.program, *steps, settings=settings)
        return self._ended(process, "go\n")

    def _ended(self, process: subprocess.Popen[str], input_: str | None = None) -> Ended:
        output, errors = process.communicate(input_, timeout=60)
        said = [json.loads(line) for line in output.splitlines()]
        return Ended(process.returncode, said, errors, self.evidence_file.read(0))
