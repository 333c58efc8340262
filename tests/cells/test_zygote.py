"""A zygote's life: what it collects, how it starts and fails to, and that nothing of it stays behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch.cells import CellRefusedError, End, Outcome, Zygote
from pytest_cudabatch.cells.processes import children
from pytest_cudabatch.errors import CellError

from .projects import HERMETIC, PLENTY, Watched, write_project, zygote_of

TWO_TESTS = """
    import os
    import pytest
    def test_one(): pass
    def test_zygote(): print(os.getppid())
"""


def run_all(zygote: Zygote) -> list[End]:
    return [zygote.run(item.nodeid, deadline=PLENTY).end for item in zygote.items]


def pid_of(zygote: Zygote) -> int:
    return int(zygote.run("test_a.py::test_zygote", deadline=PLENTY).output)


def descriptors(process: int | str) -> list[str]:
    return sorted(entry.name for entry in Path(f"/proc/{process}/fd").iterdir())


def test_items_carry_location_keywords_and_markers(tmp_path):
    source = """
        import pytest
        pytestmark = pytest.mark.usefixtures("tmp_path")
        @pytest.mark.skipif(False, reason="never")
        @pytest.mark.parametrize("value", [object()], ids=["only"])
        class TestClass:
            @pytest.mark.xfail(reason="known", strict=False)
            def test_one(self, value): pass
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        (item,) = zygote.items
        assert zygote.errors == ()
    assert item.nodeid == "test_a.py::TestClass::test_one[only]"
    assert item.location == ("test_a.py", 6, "TestClass.test_one[only]")
    assert {"test_one[only]", "TestClass", "test_a.py", "xfail", "usefixtures"} <= set(item.keywords)
    by_name = {marker.name: marker for marker in item.markers}
    assert list(by_name) == ["xfail", "parametrize", "skipif", "usefixtures"]
    assert dict(by_name["xfail"].kwargs) == {"reason": "known", "strict": False}
    assert (by_name["skipif"].args, by_name["skipif"].exact) == ((False,), True)
    assert by_name["usefixtures"].args == ("tmp_path",)
    parametrize = by_name["parametrize"]
    assert (parametrize.args[0], parametrize.args[1][:15], parametrize.exact) == (
        "value",
        "[<object object",
        False,
    )


def test_a_module_that_does_not_import_is_an_error_and_the_rest_runs(tmp_path):
    files = {"test_a.py": "import no_such_module\n", "test_b.py": "def test_one(): pass\n"}
    # -x in a project's settings must not end the collection
    with zygote_of(write_project(tmp_path, files), "-x") as zygote:
        (error,) = zygote.errors
        assert error.nodeid == "test_a.py"
        assert error.text.splitlines()[-1] == "E   ModuleNotFoundError: No module named 'no_such_module'"
        assert [item.nodeid for item in zygote.items] == ["test_b.py::test_one"]
        assert run_all(zygote) == [End.FINISHED]


def test_several_thousand_items_are_announced(tmp_path):
    source = f"""
        import pytest
        @pytest.mark.parametrize("value", range(3000))
        def test_one(value): '''{"much text, " * 20}'''
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        assert len(zygote.items) == 3000
        assert zygote.run("test_a.py::test_one[2999]", deadline=PLENTY).end is End.FINISHED


def test_an_unknown_item_is_an_error_and_harms_nothing(tmp_path):
    with zygote_of(write_project(tmp_path, {"test_a.py": TWO_TESTS})) as zygote:
        before = pid_of(zygote)
        with pytest.raises(CellError, match=r"^test_a.py::test_two is not among the 2 items and 0 errors of"):
            zygote.run("test_a.py::test_two", deadline=PLENTY)
        assert pid_of(zygote) == before


@pytest.mark.parametrize(
    ("conftest", "reason"),
    [
        ("import os; print('last words'); os._exit(9)", "it exited with status 9"),
        ("import os; print('last words'); os.abort()", "it was killed by SIGABRT"),
        ("print('last words'); raise SystemExit(3)", "it exited with status 3"),
    ],
)
def test_a_zygote_that_dies_at_start_says_so_with_its_output(tmp_path, conftest, reason):
    files = {"conftest.py": conftest, "test_a.py": TWO_TESTS}
    with zygote_of(write_project(tmp_path, files)) as zygote, pytest.raises(CellError) as caught:
        zygote.start()
    first, second, *_ = str(caught.value).splitlines()
    assert (first, second) == (f"the zygote of 'under test' did not start: {reason}", "last words")


def test_a_wrong_argument_shows_what_pytest_said(tmp_path):
    project = write_project(tmp_path, {"test_a.py": TWO_TESTS})
    with zygote_of(project, "no_such_file.py") as zygote, pytest.raises(CellError) as caught:
        zygote.start()
    assert "ERROR: file or directory not found: no_such_file.py" in str(caught.value).splitlines()
    assert str(caught.value).startswith("the zygote of 'under test' did not start: it exited with status 4\n")


@pytest.mark.parametrize("hang", ["ctypes.PyDLL(None).sleep(3600)", "threading.Event().wait()"])
def test_a_zygote_that_hangs_at_start_is_killed_in_time(tmp_path, hang):
    files = {"test_a.py": f"import ctypes, threading\nprint('hanging', flush=True)\n{hang}\n"}
    zygote = zygote_of(write_project(tmp_path, files), start_limit=2.0)
    with zygote, pytest.raises(CellError) as caught:
        zygote.start()
    first, *rest = str(caught.value).splitlines()
    assert first == "the zygote of 'under test' did not start: no answer within 2 s"
    assert "hanging" in rest[-1]


def test_a_test_that_kills_its_zygote_costs_only_itself(tmp_path):
    source = """
        import ctypes, os, signal
        def test_zygote(): print(os.getppid())
        def test_kills_zygote():
            os.kill(os.getppid(), signal.SIGKILL)
            ctypes.CDLL(None).pause()
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        before = pid_of(zygote)
        with pytest.raises(CellError, match="gave no answer to 'reap': it was killed by SIGKILL"):
            zygote.run("test_a.py::test_kills_zygote", deadline=PLENTY)
        assert pid_of(zygote) != before


def test_threads_of_an_import_are_named_and_prevent_the_fork(tmp_path):
    source = """
        import os, threading
        threading.Thread(target=threading.Event().wait, name="of the import", daemon=True).start()
        def test_one(): pass
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        for _ in range(2):
            with pytest.raises(CellRefusedError) as caught:
                zygote.run("test_a.py::test_one", deadline=PLENTY)
    assert str(caught.value) == (
        "test_a.py::test_one: it cannot be forked safely while it has other threads: "
        "Python thread 'of the import'"
    )


def test_the_child_finds_its_payload_and_the_variables_of_the_caller(tmp_path, monkeypatch):
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    source = """
        import json, os
        from pytest_cudabatch.cells import PAYLOAD
        NAMES = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDABATCH_ZYGOTE_FD"]
        AT_IMPORT = [os.environ.get(name) for name in NAMES]
        def test_one(pytestconfig):
            now = [os.environ.get(name) for name in NAMES]
            print(json.dumps([pytestconfig.stash[PAYLOAD], AT_IMPORT, now]))
    """
    project = write_project(tmp_path, {"test_a.py": source})
    with zygote_of(project, variables={"OMP_NUM_THREADS": "5"}) as zygote:
        outcome = zygote.run("test_a.py::test_one", deadline=PLENTY, payload={"slot": 3, "paths": ["/a"]})
    payload, at_import, now = json.loads(outcome.output)
    assert payload == {"slot": 3, "paths": ["/a"]}
    assert at_import == ["1", "1", "1", None]
    assert now == ["5", "7", None, None]


def test_a_payload_that_is_too_large_is_refused_whole(tmp_path):
    with zygote_of(write_project(tmp_path, {"test_a.py": TWO_TESTS})) as zygote:
        with pytest.raises(CellError, match=r"packet of \d+ bytes exceeds the limit"):
            zygote.run("test_a.py::test_one", deadline=PLENTY, payload={"text": "x" * (1 << 20)})
        assert zygote.run("test_a.py::test_one", deadline=PLENTY).end is End.FINISHED


def test_session_fixtures_and_captures_live_within_one_cell(tmp_path):
    source = """
        import os, sys, pytest
        @pytest.fixture(scope="session")
        def counted(seen=[]):
            seen.append(1)
            yield len(seen)
            print("torn down")
        def test_one(counted): assert counted == 1
        def test_two(counted): assert counted == 1
        def test_capture(capfd):
            os.write(1, b"captured")
            assert capfd.readouterr().out == "captured"
            print("shown")
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        outputs = [zygote.run(item.nodeid, deadline=PLENTY) for item in zygote.items]
    assert [outcome.text_of("teardown", "stdout") for outcome in outputs] == [
        "torn down\n",
        "torn down\n",
        "",
    ]
    assert outputs[2].text_of("call", "stdout") == "shown\n"
    assert [report["outcome"] for outcome in outputs for report in outcome.reports] == ["passed"] * 9


@pytest.mark.parametrize(
    "option",
    [
        "-v",
        "-vv",
        "--setup-show",
        "-q",
        "--capture=fd",
        "--durations=3",
        "-rA",
        "-Werror",
        "-pno:faulthandler",
    ],
)
def test_what_pytest_shows_does_not_get_into_a_tests_output(tmp_path, option):
    with zygote_of(write_project(tmp_path, {"test_a.py": TWO_TESTS}), option) as zygote:
        outcome = zygote.run("test_a.py::test_one", deadline=PLENTY)
        assert (outcome.end, outcome.output) == (End.FINISHED, "")


def test_many_cells_leave_no_descriptor_and_no_process(tmp_path):
    source = """
        import os
        def test_zygote(): print(os.getppid())
        def test_crash(): os.abort()
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        process = pid_of(zygote)
        mine, its = descriptors("self"), descriptors(process)
        for _ in range(25):
            assert zygote.run("test_a.py::test_crash", deadline=PLENTY).end is End.SIGNALLED
            assert pid_of(zygote) == process
        assert (descriptors("self"), descriptors(process)) == (mine, its)
        assert Path(f"/proc/{process}/task/{process}/children").read_text() == ""
        before = children()
    assert children() == before - {process}


def test_a_helper_started_at_import_is_no_leftover_but_ends_with_the_zygote(tmp_path):
    source = """
        import subprocess
        HELPER = subprocess.Popen(["sleep", "3600"])
        def test_one(): subprocess.Popen(["sleep", "3600"])
        def test_two(): print(HELPER.pid)
    """
    with zygote_of(write_project(tmp_path, {"test_a.py": source})) as zygote:
        first = zygote.run("test_a.py::test_one", deadline=PLENTY)
        second = zygote.run("test_a.py::test_two", deadline=PLENTY)
        helper = Watched([int(second.output)])
        assert (first.survivors, second.survivors) == (1, 0)
        assert helper.alive_after(0.0) == [int(second.output)]
    assert helper.alive_after(0.0) == []


def test_closing_is_repeatable_and_a_closed_zygote_starts_anew(tmp_path):
    zygote = zygote_of(write_project(tmp_path, {"test_a.py": TWO_TESTS}))
    zygote.close()
    first = pid_of(zygote)
    process = Watched([first])
    zygote.close()
    zygote.close()
    assert process.alive_after(0.0) == []
    assert pid_of(zygote) != first
    zygote.close()


def test_exit_handlers_of_imported_modules_run_when_the_zygote_ends(tmp_path):
    source = """
        import atexit, os
        def tell(pid=os.getpid()):
            if os.getpid() == pid:
                open("told", "w").close()
        atexit.register(tell)
        def test_one(): pass
    """
    project = write_project(tmp_path, {"test_a.py": source})
    with zygote_of(project) as zygote:
        assert run_all(zygote) == [End.FINISHED]
        assert not (project / "told").exists()
    assert (project / "told").exists()


SUPERVISOR = """
import sys
from pathlib import Path
from pytest_cudabatch.cells import Environment, Zygote
with Zygote(Environment("e", ("-p", "no:cacheprovider"), {}, Path.cwd())) as zygote:
    zygote.run("test_a.py::test_tells_and_hangs", deadline=3600)
"""

TELLS_AND_HANGS = """
    import ctypes, os, subprocess
    def test_tells_and_hangs():
        daemon = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        with open("told", "w") as told:
            told.write(f"{os.getppid()} {os.getpid()} {daemon.pid}")
        ctypes.PyDLL(None).pause()
"""

COLLECTION_TELLS_AND_HANGS = """
    import ctypes, os
    with open("told", "w") as told:
        told.write(str(os.getpid()))
    ctypes.PyDLL(None).sleep(3600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("source", [TELLS_AND_HANGS, COLLECTION_TELLS_AND_HANGS], ids=["test", "collection"])
def test_nothing_outlives_a_killed_supervisor(tmp_path, source, how):
    project = write_project(tmp_path, {"test_a.py": source})
    told = project / "told"
    os.mkfifo(told)
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], cwd=project, env={**os.environ, **HERMETIC}
    )
    with supervisor:
        processes = Watched([int(word) for word in read_fifo(told).split()])
        supervisor.send_signal(how)
        supervisor.wait(PLENTY)
        assert processes.alive_after(2.0) == []


def test_an_interrupt_while_a_cell_runs_ends_the_cell(tmp_path):
    """As Ctrl-C does: KeyboardInterrupt out of run, and nothing left."""
    project = write_project(tmp_path, {"test_a.py": TELLS_AND_HANGS})
    told = project / "told"
    os.mkfifo(told)
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR],
        cwd=project,
        env={**os.environ, **HERMETIC},
        stderr=subprocess.PIPE,
    )
    with supervisor:
        processes = Watched([int(word) for word in read_fifo(told).split()])
        supervisor.send_signal(signal.SIGINT)
        _, errors = supervisor.communicate(timeout=PLENTY)
        assert errors.splitlines()[-1] == b"KeyboardInterrupt"
        assert processes.alive_after(0.0) == []


def read_fifo(path: Path) -> str:
    """Read what one writer writes, and wait for it within bounds."""
    # Opened for writing too, so that nobody has to wait for the other side to open it.
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(PLENTY * 1000)
        return os.read(descriptor, 4096).decode()
    finally:
        os.close(descriptor)


def test_outcome_is_data_that_can_be_compared(tmp_path):
    with zygote_of(write_project(tmp_path, {"test_a.py": TWO_TESTS})) as zygote:
        outcome = zygote.run("test_a.py::test_one", deadline=PLENTY)
    assert outcome == Outcome(**vars(outcome))
    assert 0 < outcome.seconds < PLENTY
