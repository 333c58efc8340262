"""``cudabatch record`` on real programs: of one process and of many, well-behaved and not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.commands import main

from .recorded import DRIVER, RUNTIMES, arguments, record, script


def static_program(directory: Path) -> Path:
    target = directory / "static-program"
    source = "int main(void) { return 3; }"
    subprocess.run(["cc", "-static", "-x", "c", "-", "-o", str(target)], input=source, text=True, check=True)
    return target


def test_one_process(tmp_path: Path) -> None:
    recorded = record(tmp_path, *script("copy(10, 300, 20)\nprint('its own output')\nsys.exit(7)"))
    assert (recorded.status, recorded.output, recorded.errors) == (7, "its own output\n", "")
    data = recorded.data
    assert (data["schema"], data["exit_code"], data["signal"]) == ("pytest-cudabatch/recording/1", 7, None)
    [process] = data["processes"]
    reference = str(native.library("implementations/libreference.so"))
    [caller] = process["callers"]
    assert (caller["file"], caller["path"]) == (reference, "batch")
    assert (process["path"], process["abis"], process["streams"]) == ("batch", ["v12080"], 1)
    assert process["calls"] == {"batch": 3, "per_copy": 0}
    assert (process["descriptors"], process["largest_batch"]) == (330, 300)
    assert process["owners"] == [str(DRIVER)]
    assert (process["errors"], process["mismatches"], process["unfinished"]) == ([], [], [])
    [lookup] = process["lookups"]
    assert (lookup["name"], lookup["version"], lookup["found"]["file"]) == (
        "cuMemcpyBatchAsync",
        12080,
        str(DRIVER),
    )
    assert {
        (query["function"], query["version"], query["owner"])
        for query in process["versions"]
        if query["caller"]["file"] == reference
    } == {("cudaRuntimeGetVersion", 13000, str(RUNTIMES[13]))}
    assert data["sum"]["calls"] == {"batch": 3, "per_copy": 0}
    assert (data["not_recorded"], data["without_cuda"], data["unserved"]) == ([], 0, 0)


def test_text_goes_to_stderr(tmp_path: Path) -> None:
    done = subprocess.run(
        arguments(command=script("copy(10)\nprint('its own output')")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "its own output\n"
    lines = done.stderr.splitlines()
    assert lines[0] == "cudabatch: processes that use CUDA: 1; exit status 0"
    assert lines[1].endswith(": path batch, streams 1")
    assert lines[2] == (
        "cudabatch:   libreference.so: batch, 1 batch calls (v12080; 10 descriptors, at most 10 in one), "
        "0 single copies"
    )
    assert all(line.startswith("cudabatch: ") for line in lines)


def test_streams_of_calls_that_were_not_kept_may_be_more(tmp_path: Path) -> None:
    done = subprocess.run(
        arguments(command=script("copy(*[1] * 129)")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr.splitlines()[1].endswith(": path batch, streams at least 1")


def test_forked_children_and_started_ones(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        *script("""
import multiprocessing
if __name__ == "__main__" and len(sys.argv) == 1:
    for count in (1, 2):
        child = os.fork()
        if child == 0:
            copy(*range(1, count + 1))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    subprocess.run([*sys.orig_argv, "child"], check=True)
    spawned = multiprocessing.get_context("spawn").Process(target=os.getpid)
    spawned.start()
    spawned.join()
else:
    copy(1, 2, 3, name="per-copy")
"""),
    )
    assert (recorded.status, recorded.errors) == (0, "")
    assert recorded.counts == [("batch", 1, 0), ("batch", 2, 0), ("fallback", 0, 6)]
    parents = {process["parent"] for process in recorded.data["processes"]}
    assert len(parents) == 1  # the first process, which itself made no call
    assert parents.isdisjoint(process["pid"] for process in recorded.data["processes"])
    total = recorded.data["sum"]
    assert (total["path"], total["calls"]) == ("fallback", {"batch": 3, "per_copy": 6})
    assert recorded.data["without_cuda"] >= 2  # the first one, the spawned one, and multiprocessing's tracker
    assert recorded.data["not_recorded"] == []


def test_nothing_is_lost_when_the_program_is_killed_in_a_call(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "interposer" / "sources" / "inert_runtime.c"
    runtime = tmp_path / "libcudart.so.14"
    subprocess.run(
        ["cc", "-shared", "-fPIC", str(source), "-o", str(runtime), "-Wl,-soname,libcudart.so.14"], check=True
    )
    recorded = record(
        tmp_path,
        *script(f"""
import ctypes, threading
from pytest_cudabatch.interposer import EvidenceFile
library = ctypes.CDLL({str(runtime)!r})
copy = library.cudaMemcpyBatchAsync
copy.argtypes = [ctypes.c_uint64] * 8
stream = ctypes.c_void_p()
library.cudaStreamCreate(ctypes.byref(stream))
copy(0, 0, 0, 5, 0, 0, 1, stream.value)
library.check_hang(os.pipe()[0])  # nobody ever writes
threading.Thread(target=copy, args=(0, 0, 0, 999, 0, 0, 1, stream.value), daemon=True).start()
with EvidenceFile.open(Path(os.environ["CUDABATCH_EVIDENCE"])) as evidence:
    while not evidence.processes()[0].evidence.in_flight:
        pass
os.kill(os.getpid(), signal.SIGKILL)
"""),
    )
    assert recorded.status == 128 + signal.SIGKILL
    assert (recorded.data["exit_code"], recorded.data["signal"]) == (None, signal.SIGKILL)
    [process] = recorded.data["processes"]
    [call] = process["unfinished"]
    assert (call["function"], call["count"], call["returned"]) == ("cudaMemcpyBatchAsync", 999, None)
    assert (process["calls"]["batch"], process["descriptors"]) == (2, 1004)


def test_a_crash_is_explained(tmp_path: Path) -> None:
    recorded = record(tmp_path, *script("copy(10, name='specimen:driver-version', major=12)"))
    assert recorded.status == 128 + signal.SIGSEGV
    [process] = recorded.data["processes"]
    [mismatch] = process["mismatches"]
    assert (mismatch["given"], mismatch["taken"]) == (8, 9)
    assert Path(mismatch["caller"]["file"]).name == "libspecimen-driver-version.so"
    assert mismatch["callee"]["file"] == str(RUNTIMES[12])
    assert process["unfinished"][0]["caller"] == mismatch["caller"]
    assert process["fault"]["signal"] == "SIGSEGV"
    assert process["fault"]["place"]["file"] == str(DRIVER)


def test_injection_holds_in_every_process(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        *script("""
if os.fork() == 0:
    copy(5)
    os._exit(0)
assert os.wait()[1] == 0
copy(5, 5)
"""),
        options=["--inject", "batch@1=801"],
    )
    assert (recorded.status, recorded.errors) == (0, "")
    assert recorded.counts == [("fallback", 1, 5), ("fallback", 2, 5)]
    assert [process["injections"] for process in recorded.data["processes"]] == [
        [{"rule": "batch@1=801", "seen": 1, "fired": 1}],
        [{"rule": "batch@1=801", "seen": 2, "fired": 1}],
    ]
    assert [error["last_code"] for error in recorded.data["sum"]["errors"]] == [801, 801]


def test_static_program_is_named(tmp_path: Path) -> None:
    static = static_program(tmp_path)
    recorded = record(tmp_path, str(static))
    reason = f"{static} is statically linked"
    assert recorded.status == 3
    assert recorded.errors == f"cudabatch: {reason}: nothing will be recorded of it\n"
    [program] = recorded.data["not_recorded"]
    assert (program["program"], program["reason"]) == (str(static), reason)


def test_programs_that_children_are_and_cannot_be_recorded(tmp_path: Path) -> None:
    static = static_program(tmp_path)
    shell_script = tmp_path / "script"
    shell_script.write_text("#!/bin/sh\n./static-program || exec ./static-program\n")
    shell_script.chmod(0o755)
    recorded = record(
        tmp_path,
        *script(f"""
subprocess.run([{str(shell_script)!r}], check=False)
subprocess.run([sys.executable, "-c", "pass"], env={{}}, check=True)
subprocess.run(["static-program"], env={{**os.environ, "PATH": "."}}, check=False)
"""),
    )
    assert recorded.status == 0
    reasons = [
        (Path(program["program"]).name, program["reason"]) for program in recorded.data["not_recorded"]
    ]
    by_name = sorted(reasons)
    static_reason = ("static-program", f"{static} is statically linked")
    python = Path(sys.executable).name
    assert [name for name, _ in by_name] == sorted([python, *["static-program"] * 3])
    assert by_name.count(static_reason) >= 2
    assert (python, "was started with an environment of its own, without LD_AUDIT") in by_name


@pytest.mark.parametrize(
    ("command", "status", "error"),
    [("no-such-program", 127, "No such file or directory"), ("/etc/passwd", 126, "Permission denied")],
)
def test_program_that_cannot_be_run(
    command: str, status: int, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "--", command]) == status
    assert capsys.readouterr() == ("", f"cudabatch: cannot run {command}: {error}\n")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["record"], "the following arguments are required: CMD (see cudabatch record --help)"),
        (["record", "--inject", "batch", "--", "true"], "the injection does not parse: '=' and an effect"),
        (
            ["record", "-o", "/no/such/directory/file", "--", "true"],
            "cannot write /no/such/directory/file: No",
        ),
    ],
)
def test_wrong_use(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 4
    assert capsys.readouterr().err.startswith(f"cudabatch: {error}")


WAITING = """
def stop(number, frame):
    print("got", number, flush=True)
    sys.exit(9)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_signal_to_us_is_the_programs(tmp_path: Path) -> None:
    with subprocess.Popen(
        arguments(command=script(WAITING)),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (9, f"got {signal.SIGTERM:d}\n")
    assert errors.endswith("exit status 9\n")


IN_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
"""Gives the command a terminal, whose other side are this process's own streams."""


def test_control_c_reaches_the_program_once_and_leaves_us_running(tmp_path: Path) -> None:
    once = WAITING.replace("sys.exit(9)", "sys.stdin.readline()\n    sys.exit(9)")
    with subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, *arguments(command=script(once))],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        seen = b""
        for wanted, answer in ((b"ready", b"\x03"), (b"got 2", b"\n"), (b"exit status 9", b"")):
            while wanted not in seen:
                piece = process.stdout.read(1000)
                assert piece, seen
                seen += piece
            process.stdin.write(answer)
        assert process.wait(timeout=60) == 9
    assert seen.count(b"got 2") == 1
