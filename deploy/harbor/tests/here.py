"""An environment of Harbor on this machine, for machines where its containers can't be built.

Commands run in a mount namespace whose root has the folders of the machine, but for /app, /logs, /tests, /solution,
/installed-agent and /usr/local/bin, which are the trial's. It is for tasks that stay within them.
"""

import asyncio
import os
import shlex
import shutil
from pathlib import Path
from typing import override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

FOLDERS = ("/app", "/logs", "/tests", "/solution", "/installed-agent", "/usr/local/bin")


class Here(BaseEnvironment):
    """Implements the interface of an environment by bind mounts."""

    @staticmethod
    @override
    def type() -> str:
        return "here"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @override
    def _validate_definition(self) -> None:
        pass

    @property
    def _root(self) -> Path:
        return self.trial_paths.trial_dir / "here"

    def _at(self, path: str | Path) -> Path:
        return self._root / str(path).lstrip("/")

    @override
    async def start(self, force_build: bool) -> None:
        for folder in FOLDERS:
            self._at(folder).mkdir(parents=True, exist_ok=True)
        for folder in ("agent", "verifier", "artifacts"):
            self._at(f"/logs/{folder}").mkdir(parents=True, exist_ok=True)
        for entry in self.environment_dir.iterdir():
            if entry.is_file() and entry.name != "Dockerfile":
                shutil.copy(entry, self._at("/app") / entry.name)

    @override
    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._at(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._at(target_path))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._at(target_dir), dirs_exist_ok=True)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._at(source_path), target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._at(source_dir), target_dir, dirs_exist_ok=True)

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        root = shlex.quote(str(self._root / "root"))
        lines = ["set -e", f"mkdir -p {root}", f"mount -t tmpfs none {root}"]
        for entry in sorted(os.listdir("/")):
            if os.path.islink(f"/{entry}"):
                lines.append(f"cp -P /{entry} {root}/{entry}")
            elif os.path.isdir(f"/{entry}") and f"/{entry}" not in FOLDERS:
                lines.append(f"mkdir {root}/{entry} && mount --rbind /{entry} {root}/{entry}")
        for folder in FOLDERS:
            lines.append(
                f"mkdir -p {root}{folder} && mount --bind {shlex.quote(str(self._at(folder)))} {root}{folder}"
            )
        inner = f"cd {shlex.quote(cwd or '/app')} && {command}"
        lines.append(f"exec chroot {root} bash -c {shlex.quote(inner)}")
        script = "\n".join(lines)
        # As in Harbor's containers, standard error is mixed into standard output.
        process = await asyncio.create_subprocess_exec(
            "unshare", "--user", "--map-root-user", "--mount", "bash", "-c", script,
            env={"PATH": os.environ["PATH"], "HOME": "/root", **(self._merge_env(env) or {})},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            out, _ = await asyncio.wait_for(process.communicate(), timeout_sec)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        return ExecResult(stdout=out.decode(errors="replace"), stderr=None, return_code=process.returncode or 0)
