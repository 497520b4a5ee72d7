"""The agent that Harbor installs in the container of a task, and runs there."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import override

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import (
    AgentAuthenticationError,
    AgentSafetyRefusalError,
    ApiConnectionClosedError,
    ApiOverloadedError,
    ApiRateLimitError,
    ApiUsageLimitError,
    BaseInstalledAgent,
    ContextWindowExceededError,
    ModelNotFoundError,
    NonZeroAgentExitCodeError,
    with_prompt_template,
)
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

REMOTE_BINARY = "/usr/local/bin/inspan"
REMOTE_CONFIG = "/installed-agent/inspan/config.toml"
LOGS = "/logs/agent"

# Exit codes of inspan after which there is something to verify: it answered, or a limit ended it.
ENDED = {0, 10, 11, 13, 14, 15, 16, 17, 18, 19}

ERRORS: dict[int, type[NonZeroAgentExitCodeError]] = {
    12: AgentSafetyRefusalError,
    20: ApiConnectionClosedError,
    21: ApiRateLimitError,
    22: ApiUsageLimitError,
    23: ApiOverloadedError,
    24: ApiConnectionClosedError,
    25: ApiConnectionClosedError,
    26: ContextWindowExceededError,
    28: AgentAuthenticationError,
    29: AgentAuthenticationError,
    30: ApiUsageLimitError,
    33: ModelNotFoundError,
}


class Inspan(BaseInstalledAgent):
    """Uploads the static binary, runs one task in it, and leaves its log and its trajectory."""

    capabilities = AgentCapabilities(atif=True)

    @staticmethod
    @override
    def name() -> str:
        return "inspan"

    @override
    def get_version_command(self) -> str | None:
        return f"{REMOTE_BINARY} version"

    @override
    def parse_version(self, stdout: str) -> str:
        words = stdout.split()
        return words[1] if len(words) > 1 else stdout.strip()

    def _binary(self) -> Path:
        """The binary to upload; of the host, so that containers without a network work too."""
        named = self._get_env("INSPAN_BINARY") or shutil.which("inspan")
        if not named or not Path(named).is_file():
            raise RuntimeError(
                "there is no inspan to upload: set INSPAN_BINARY to a static Linux binary, or put inspan on PATH"
            )
        return Path(named)

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        await environment.upload_file(self._binary(), REMOTE_BINARY)
        await self.exec_as_root(environment, f"chmod 755 {REMOTE_BINARY}")

    @override
    async def configure(self, environment: BaseEnvironment) -> None:
        if config := self._get_env("INSPAN_CONFIG"):
            await self.exec_as_root(environment, "mkdir -p /installed-agent/inspan")
            await environment.upload_file(config, REMOTE_CONFIG)

    def _variables(self) -> dict[str, str]:
        """What reaches the agent: its settings, keys and addresses of providers, and where it keeps its state."""
        ours = {
            name: value
            for source in (os.environ, self.extra_env)
            for name, value in source.items()
            if name.startswith("INSPAN_") or name.endswith(("_API_KEY", "_BASE_URL"))
        }
        for name in ("INSPAN_BINARY", "INSPAN_CONFIG"):
            ours.pop(name, None)
        ours["INSPAN_STATE_DIR"] = f"{LOGS}/state"
        ours["INSPAN_CONFIG_DIR"] = str(Path(REMOTE_CONFIG).parent)
        return ours

    @override
    @with_prompt_template
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        args = [
            REMOTE_BINARY, "run", "--preset", "container", "--output", "stream-json",
        ]  # fmt: skip
        if self.model_name:
            args += ["--model", self.model_name]
        command = " ".join(shlex.quote(a) for a in args)
        # The code goes to a file: what Harbor sees of a pipe is that of tee in shells without pipefail.
        result = await environment.exec(
            command=(
                f"mkdir -p {LOGS}; {{ printf %s {shlex.quote(instruction)} | {command} 2>{LOGS}/inspan.err;"
                f" echo $? >{LOGS}/exit-code; }} | tee {LOGS}/inspan.jsonl >/dev/null;"
                f" {REMOTE_BINARY} sessions export last --format atif >{LOGS}/trajectory.json 2>>{LOGS}/inspan.err"
                f" || rm -f {LOGS}/trajectory.json; cat {LOGS}/exit-code; tail -c 2000 {LOGS}/inspan.err"
            ),
            env=self._variables(),
        )
        self._check(result.stdout or "")

    @staticmethod
    def _check(printed: str) -> None:
        """Raises what an exit code of inspan means for Harbor. It is the first line that the command prints.

        What explains it follows, on standard output too: containers mix standard error into that.
        """
        first, _, why = printed.partition("\n")
        code = int(first) if first.isdigit() else -1
        if code not in ENDED:
            raise ERRORS.get(code, NonZeroAgentExitCodeError)(
                f"inspan ended with code {code}: {why.strip()}"
            )

    def _export(self, target: Path) -> None:
        """Writes the trajectory on the host, from the state that the container has left."""
        state = self.logs_dir / "state"
        if target.exists() or not state.is_dir():
            return
        done = subprocess.run(
            [self._binary(), "sessions", "export", "last", "--format", "atif", "--state", state],
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            target.write_bytes(done.stdout)

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        target = self.logs_dir / "trajectory.json"
        try:
            self._export(target)
            trajectory = json.loads(target.read_text())
        except (OSError, RuntimeError, ValueError) as exc:
            self.logger.warning(f"there is no trajectory of inspan: {exc}")
            return
        totals = trajectory.get("final_metrics") or {}
        context.n_input_tokens = totals.get("total_prompt_tokens")
        context.n_cache_tokens = totals.get("total_cached_tokens")
        context.n_output_tokens = totals.get("total_completion_tokens")
        context.cost_usd = totals.get("total_cost_usd")
