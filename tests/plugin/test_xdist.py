"""Cells over xdist's workers: every --dist mode, and workers that die."""

from __future__ import annotations

import json
from typing import Any

import pytest

MATRIX = (
    "--cuda-matrix",
    "--cuda-platform=simulated",
    "--cuda-no-suite",
    "--cuda-report=run.json",
    "--cuda-report=run.jsonl",
)
TWO_PAIRINGS = "--cuda-select=runtime==12.9 on driver>=13.0,<=13.2"
FILES = {
    "test_one": """
        import pytest

        def test_good(cuda_pairing):
            pass

        @pytest.mark.xdist_group("two@gether")
        @pytest.mark.parametrize("mail", ["a@b"])
        def test_wrong(cuda_pairing, mail):
            assert cuda_pairing is None
        """,
    "test_two": """
        import os, signal
        import pytest

        @pytest.mark.xdist_group("two@gether")
        def test_crash(cuda_pairing):
            os.kill(os.getpid(), signal.SIGSEGV)

        class TestOne:
            def test_skip(self, cuda_pairing):
                pytest.skip("not today")

            @pytest.mark.cuda_cell
            def test_without_pairing(self):
                pass
        """,
}
VERDICTS = {
    "test_one.py::test_good": "passed",
    "test_one.py::test_wrong[a@b]": "failed",
    "test_two.py::test_crash": "crashed",
    "test_two.py::TestOne::test_skip": "skipped",
}


def report(pytester: pytest.Pytester) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((pytester.path / "run.json").read_text())
    return data


IN_THE_GATE = {("load", "cell"), ("load", "pairing"), ("loadgroup", "cell")}
MODES = [
    pytest.param(mode, isolation, marks=[] if (mode, isolation) in IN_THE_GATE else [pytest.mark.nightly])
    for mode in ("load", "loadscope", "loadfile", "loadgroup", "worksteal", "each")
    for isolation in ("cell", "pairing")
]


@pytest.mark.parametrize(("mode", "isolation"), MODES)
def test_every_mode(pytester: pytest.Pytester, mode: str, isolation: str) -> None:
    pytester.makepyfile(**FILES)
    result = pytester.runpytest_subprocess(
        *MATRIX, TWO_PAIRINGS, f"--cuda-isolation={isolation}", "-n2", f"--dist={mode}"
    )
    assert result.ret == 1
    data = report(pytester)
    times = 2 if mode == "each" else 1
    expected = [
        *(
            (case, pairing, verdict)
            for case, verdict in VERDICTS.items()
            for pairing in ("cu12.9-d13.0", "cu12.9-d13.2")
        ),
        ("test_two.py::TestOne::test_without_pairing", None, "passed"),
    ]
    found = [(cell["case"], cell["pairing"], cell["verdict"]) for cell in data["cells"]]
    assert sorted(found, key=str) == sorted(expected * times, key=str)
    assert data["errors"] == []
    result.assert_outcomes(passed=3 * times, failed=4 * times, skipped=2 * times)


KILLS_ITS_WORKER = """
import os, pathlib, signal
import pytest

@pytest.mark.parametrize("number", range(6))
def test_cell(cuda_pairing, number):
    if number == 2:
        zygote = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
        worker = int(zygote.rpartition(")")[2].split()[1])
        os.kill(worker, signal.SIGKILL)
        signal.pause()  # until the zygote finds that nobody waits for an answer
"""


@pytest.mark.parametrize("isolation", ["cell", "pairing"])
def test_a_worker_that_dies_costs_its_cell_alone(pytester: pytest.Pytester, isolation: str) -> None:
    pytester.makepyfile(KILLS_ITS_WORKER)
    one = "--cuda-select=runtime==12.9 on driver==13.0"
    result = pytester.runpytest_subprocess(*MATRIX, one, "-n1", f"--cuda-isolation={isolation}", timeout=120)
    assert result.ret == 1
    data = report(pytester)
    numbers = {cell["case"].partition("[")[2]: cell["verdict"] for cell in data["cells"]}
    lost = {cell["case"].partition("[")[2] for error in data["errors"] for cell in error["cells"]}
    assert all(error["summary"].startswith("worker 'gw") for error in data["errors"])
    # Of a company xdist blames the cell that it has asked for; the next worker runs each by itself.
    assert lost == ({"2]"} if isolation == "cell" else {"0]", "2]"})
    assert numbers == {name: "passed" for name in ("0]", "1]", "2]", "3]", "4]", "5]") if name not in lost}


def test_no_worker_left_ends_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(KILLS_ITS_WORKER)
    one = "--cuda-select=runtime==12.9 on driver==13.0"
    result = pytester.runpytest_subprocess(*MATRIX, one, "-n1", "--max-worker-restart=0", timeout=120)
    assert result.ret != 0
    data = report(pytester)
    assert {cell["case"].partition("[")[2] for cell in data["cells"]} == {"0]", "1]"}
    unfinished = [error for error in data["errors"] if error.get("unfinished")]
    assert sum(len(error["cells"]) for error in unfinished) == 3
    assert json.loads((pytester.path / "run.jsonl").read_text().splitlines()[-1])["event"] == "finished"
