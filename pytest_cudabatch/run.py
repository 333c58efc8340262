"""One ``--cuda-matrix`` run, as data that crosses processes as JSON."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.pairings import Pairing, one_of_each_class, one_of_each_major, select
from pytest_cudabatch.scheduling import without_group

if TYPE_CHECKING:
    from pytest_cudabatch.reports import PlannedCell

__all__ = [
    "DEFAULT_TIER",
    "IMPLEMENTATION_FIXTURES",
    "RUN_ID_VARIABLE",
    "RUN_VARIABLE",
    "TIERS",
    "Run",
    "cell_setting",
    "marker_problem",
]

RUN_VARIABLE = "CUDABATCH_RUN"
"""Names the file with the run, in the environment of a zygote that is being started."""

RUN_ID_VARIABLE = "CUDABATCH_RUN_ID"
"""Names the run, in the environment of each of its zygotes, cells, and whatever these start."""

COPYING_FIXTURES = frozenset({"batch_copy", "copy_plan", "cuda_contract", "cuda_stream"})
"""What a test cannot have where there is no driver."""

IMPLEMENTATION_FIXTURES = ("batch_copy", "cuda_load_order")
"""What a test has where it is about an implementation; it is spread over those of the run."""

TIERS = ("smoke", "gate", "nightly")
"""The selections by size: each includes the ones before it."""

DEFAULT_TIER = "gate"
"""Of the run, and of a test that names none."""


def marker_problem(node: pytest.Item) -> str | None:
    """Say what is wrong with the arguments of a test's ``cuda_cell`` markers, if anything."""
    allowed: dict[str, Sequence[object]] = {
        "finding": [code.value for code in Code],
        "tier": TIERS,
        "pairings": ("each", "class", "major"),
        "alone": (True, False),
        "devices": range(1, 9),
    }
    for marker in node.iter_markers("cuda_cell"):
        unknown = sorted(marker.kwargs.keys() - {"kind", *allowed})
        if marker.args or unknown:
            return (
                "cuda_cell takes kind, finding, tier, pairings, alone and devices by name, "
                f"not {unknown or marker.args}"
            )
        for name, values in allowed.items():
            if name in marker.kwargs and marker.kwargs[name] not in values:
                return (
                    f"cuda_cell({name}={marker.kwargs[name]!r}): must be one of {', '.join(map(str, values))}"
                )
    return None


def cell_setting(node: pytest.Item, name: str) -> str | None:
    """Return what the closest ``cuda_cell`` marker with that keyword says of ``node``."""
    for marker in node.iter_markers("cuda_cell"):
        if name in marker.kwargs:
            return str(marker.kwargs[name])
    return None


def _selected_by_marker(pairings: Sequence[Pairing], marker: pytest.Mark) -> Sequence[Pairing]:
    """Apply one ``cuda_pairings`` marker; its expression is refused as pytest refuses a bad parametrize."""
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], str):
        pytest.fail(
            'cuda_pairings takes one expression, such as "runtime>=12.8 on driver>=13"', pytrace=False
        )
    try:
        return select(pairings, marker.args[0])
    except UsageError as error:
        problem = f"cuda_pairings: {error}"
    pytest.fail(problem, pytrace=False)


@dataclass(frozen=True)
class Run:
    """A run as every process of it knows it: the controller, its workers and their zygotes.

    ``suite_ids`` holds the ids of suite cells that the user asked for (None: all of them),
    ``project_arguments`` the paths and ids of the project's own tests that remain to be collected, and
    ``zygote_arguments`` the options of the command line that the project's zygote inherits.
    ``ends`` is when the budget is spent, in seconds since the epoch. ``excuses_known_issues`` says whether a
    failure that is a known issue counts as expected; they are read from the package and ``matrix_directory``.
    ``search_path`` is the controller's ``sys.path``, from which an implementation of the project is imported.
    ``schedule`` is that of simulated CUDA, as ``--cuda-schedule`` takes it, its seed included.
    ``isolation`` says what a process is for: a ``cell``, the cells of a ``pairing``, or ``none``: pytest's
    own process. ``distribution`` is xdist's --dist, ``no`` without workers. ``devices`` are the names of the
    GPUs that the caller has made visible, which xdist's workers share out. ``temporary`` is the directory
    below which cells have their temporary ones.
    """

    id: str
    started: str
    platform: str
    pairings: tuple[Pairing, ...]
    implementations: tuple[str, ...]
    tier: str
    selection: str | None
    injections: str | None
    timeout: float
    ends: float | None
    excuses_known_issues: bool
    matrix_directory: str | None
    suite: bool
    suite_ids: tuple[str, ...] | None
    project_arguments: tuple[str, ...]
    zygote_arguments: tuple[str, ...]
    search_path: tuple[str, ...] = ()
    schedule: str = "fair"
    isolation: str = "cell"
    distribution: str = "no"
    devices: tuple[str, ...] = ()
    temporary: str | None = None

    @staticmethod
    def new_id() -> str:
        """Return an id for a new run."""
        return uuid.uuid4().hex

    @staticmethod
    def now() -> str:
        """Return the current time as ISO 8601, in UTC, to the second."""
        return datetime.now(timezone.utc).isoformat(timespec="seconds")

    def pairing(self, pairing_id: str | None) -> Pairing | None:
        """Return the pairing with that id; None for None. Raises KeyError for an unknown id."""
        if pairing_id is None:
            return None
        return {pairing.id: pairing for pairing in self.pairings}[pairing_id]

    def planned(self, nodeids: Iterable[str]) -> Iterator[PlannedCell]:
        """Tell what cells of these ids are: the last of their parameters are implementation and pairing."""
        from pytest_cudabatch.reports import PlannedCell  # noqa: PLC0415 - in the controller only

        names = [[re.escape(name) for name in self.implementations], [re.escape(p.id) for p in self.pairings]]
        implementations, pairings = ("|".join(alternatives) for alternatives in names)
        pattern = re.compile(rf"(.*?)(\[|-)(?:({implementations})-)?({pairings})\]", re.DOTALL)
        for nodeid in nodeids:
            plain = without_group(nodeid, self.distribution)
            match = pattern.fullmatch(plain) if pairings else None
            if match is None:
                yield PlannedCell(nodeid, plain, None, None)
            else:
                start, separator, implementation, pairing = match.groups()
                yield PlannedCell(nodeid, start + ("]" if separator == "-" else ""), implementation, pairing)

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Spread a cell test over implementations, where it uses one, and pairings.

        Without a driver nothing can be copied, so a test that would copy gets no pairing.
        """
        pairings: Sequence[Pairing] = self.pairings
        spread = cell_setting(metafunc.definition, "pairings")
        if self.platform == "simulated" and spread == "class":
            pairings = one_of_each_class(pairings)
        elif spread == "major":
            pairings = one_of_each_major(pairings)
        if self.platform == "no-driver" and COPYING_FIXTURES.intersection(metafunc.fixturenames):
            pairings = ()
        for marker in metafunc.definition.iter_markers("cuda_pairings"):
            pairings = _selected_by_marker(pairings, marker)
        for name in IMPLEMENTATION_FIXTURES:
            if name in metafunc.fixturenames:
                names = self.implementations
                metafunc.parametrize(name, names, ids=list(names), indirect=True)
        metafunc.parametrize(
            "cuda_pairing", pairings, ids=[pairing.id for pairing in pairings], indirect=True
        )

    def includes(self, item: pytest.Item) -> bool:
        """Whether the run's selection by size includes ``item``."""
        tier = cell_setting(item, "tier") or DEFAULT_TIER
        # An unknown tier is told when the cell is run; left out here, it would never be.
        return tier not in TIERS or TIERS.index(tier) <= TIERS.index(self.tier)

    def to_json(self) -> dict[str, Any]:
        """Return the run as data that JSON can carry."""
        data = dict(vars(self))
        data["pairings"] = [pairing.to_json() for pairing in self.pairings]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """Read ``to_json``'s form back."""
        values = dict(data)
        values["pairings"] = tuple(Pairing.from_json(pairing) for pairing in data["pairings"])
        for name in ("implementations", "project_arguments", "zygote_arguments", "search_path", "devices"):
            values[name] = tuple(data[name])
        values["suite_ids"] = None if data["suite_ids"] is None else tuple(data["suite_ids"])
        return cls(**values)

    def write(self, path: Path) -> None:
        """Write the run to ``path`` for a zygote."""
        path.write_text(json.dumps(self.to_json()), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Run:
        """Read what ``write`` wrote."""
        return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
