"""What the batch functions answer, call by call: asked of real and simulated libraries, held in a file."""

from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.asking import Answers, Target, ask
from pytest_cudabatch.contract.contract import Contract, ContractAnswer, Difference, Source, differences
from pytest_cudabatch.contract.contract_file import contract_text, load_contract, packaged_contract
from pytest_cudabatch.contract.questions import ROWS, Question, questions_for
from pytest_cudabatch.contract.recording import Recording, RecordingHost, updated
from pytest_cudabatch.contract.table import page
from pytest_cudabatch.contract.targets import device_targets, simulated_targets

__all__ = [
    "ROWS",
    "Answer",
    "Answers",
    "Contract",
    "ContractAnswer",
    "Difference",
    "Question",
    "Recording",
    "RecordingHost",
    "Source",
    "Target",
    "ask",
    "contract_text",
    "device_targets",
    "differences",
    "load_contract",
    "packaged_contract",
    "page",
    "questions_for",
    "simulated_targets",
    "updated",
]
