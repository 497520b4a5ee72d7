"""Task folders end to end through Harbor, with the offline model, which follows the commands in its task."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harbor.agents.installed.base import (
    ApiRateLimitError,
    NonZeroAgentExitCodeError,
)
from harbor.utils.trajectory_validator import TrajectoryValidator

from inspan_harbor import Inspan
from inspan_harbor.agent import ENDED, ERRORS

HERE = Path(__file__).parent

TASKS = {
    "writes": ("call: write_file {\"path\":\"answer.txt\",\"content\":\"42\\n\"}\nbash: grep -q 42 answer.txt\nsay: Done.", 1),
    "lies": ("say: All tests pass.", 0),
    "reads-the-tests": ("bash: cat /tests/* > answer.txt\nsay: Done.", 0),
    "down": ("fail: 401\nsay: never", None),  # Harbor verifies nothing after such an error
}  # fmt: skip


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="session")
def trials(tmp_path_factory) -> dict[str, Path]:
    """The folders of one job over all tasks, by task."""
    if not os.environ.get("INSPAN_BINARY"):
        pytest.skip("INSPAN_BINARY names no binary")
    dir = tmp_path_factory.mktemp("job")
    for name, (instruction, _) in TASKS.items():
        task = dir / "tasks" / name
        put(task / "task.toml", 'version = "1.0"\n[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 60\n[environment]\n')
        put(task / "instruction.md", instruction)
        put(task / "environment" / "Dockerfile", "FROM scratch\nWORKDIR /app\n")
        put(
            task / "tests" / "test.sh",
            "if grep -q 42 /app/answer.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n",
        )
    done = subprocess.run(
        [Path(sys.executable).parent / "harbor", "run", "-p", dir / "tasks", "-a", "inspan_harbor:Inspan", "-e", "here:Here",
         "-m", "script/", "-o", dir / "jobs", "--job-name", "job", "-n", "1", "--yes", "--quiet", "--max-retries", "0"],
        env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}", "INSPAN_MAX_TURNS": "20"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    out = {}
    for result in (dir / "jobs" / "job").glob("*/result.json"):
        out[json.loads(result.read_text())["task_name"].split("/")[-1]] = result.parent
    assert set(out) == set(TASKS), done.stdout + done.stderr
    return out


@pytest.mark.parametrize("name", TASKS)
def test_reward(trials, name):
    result = json.loads((trials[name] / "result.json").read_text())
    rewards = (result["verifier_result"] or {}).get("rewards", {})
    assert rewards.get("reward") == TASKS[name][1], result


@pytest.mark.parametrize("name", TASKS)
def test_trajectory_is_accepted(trials, name):
    path = trials[name] / "agent" / "trajectory.json"
    validator = TrajectoryValidator()
    assert validator.validate(path), validator.errors


def test_usage(trials):
    result = json.loads((trials["writes"] / "result.json").read_text())
    assert result["agent_result"]["n_input_tokens"] > 0
    assert result["exception_info"] is None
    assert result["agent_info"]["name"] == "inspan"


def test_failure_is_recorded(trials):
    result = json.loads((trials["down"] / "result.json").read_text())
    assert result["exception_info"]["exception_type"] == "AgentAuthenticationError", result["exception_info"]


@pytest.mark.parametrize("code", sorted(ENDED))
def test_codes_that_are_verified(code):
    Inspan._check(f"{code}\ninspan: a warning\n")


def test_codes_that_are_errors():
    for code, error in ERRORS.items():
        with pytest.raises(error):
            Inspan._check(f"{code}\nwhy")
    with pytest.raises(ApiRateLimitError, match="ended with code 21: why"):
        Inspan._check("21\nwhy\n")
    for text in ("1\n", "", "130\n", "why\n0\n"):
        with pytest.raises(NonZeroAgentExitCodeError):
            Inspan._check(text)
