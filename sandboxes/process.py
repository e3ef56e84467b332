"""The process backend: a runner without namespaces, for places that are themselves the isolation.

A Lambda function or a Fargate task is a virtual machine for one tenant and allows neither namespaces nor an engine.
What parts jobs from each other there, and from the worker, is in `sandboxes.runner.bare`; docs/security.md says how far
it reaches.
"""

import contextlib
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandboxes.base import Profile, SandboxUnavailable
from sandboxes.library import interpreter_paths, library
from sandboxes.local_sandbox import Capability, LocalSandbox, is_root_with
from sandboxes.runner import landlock, tree
from sandboxes.runner.place import SYSTEM_LIBRARIES
from sandboxes.zygote_sandbox import profile_arguments, start_runner

FIRST_UID = 6_000_000
"""Start of the uids that sandboxes use when started as root; no account has one, nor a bubblewrap sandbox."""
_UIDS_PER_SANDBOX = 3
_SANDBOXES = 100_000
_ROOT_CAPABILITIES: tuple[Capability, ...] = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SETPCAP"),
)
_NOT_STAGED = shutil.ignore_patterns("site-packages", "test", "idlelib", "ensurepip", "lib2to3")
_END_SECONDS = 15.0
_IN_MEMORY = Path("/dev/shm")  # noqa: S108
_ROOM_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class ProcessConfig:
    """How sandboxes are started."""

    anywhere: bool = False
    """Start also where the place is not known to be an isolation of its own."""
    folder: str | None = None
    """Where sandboxes make their folders; in memory where that has room, else where temporary files go."""
    landlock: int | None = None
    """Use no newer ABI of Landlock than this, 0 for none; all that the kernel has when not given."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What there is to build on."""

    seccomp: bool
    landlock: int
    """Number of the ABI; 0 for none."""
    uid: int
    root: bool
    """Root, with the powers that uids for jobs need."""


class ProcessSandbox(LocalSandbox):
    """A warm sandbox without namespaces (see `sandboxes.base.Sandbox`)."""

    def __init__(self, profile: Profile, config: ProcessConfig) -> None:
        """Start the sandbox; it gets warm by itself, and `wait_until_warm` says when.

        Raises:
            SandboxUnavailable: the place is not known to be an isolation, or its kernel has too little.
        """
        kernel = _this_kernel(config)
        reason = reason_to_refuse(config, os.environ, kernel)
        if reason is not None:
            raise SandboxUnavailable(reason)
        self.landlock = kernel.landlock
        """Number of the Landlock ABI that is used; 0 for none."""
        self._folder, uids = _claim(_parent(config), kernel)
        try:
            interpreter, readable = _furnish(self._folder, profile, for_all=kernel.root)
            place = json.dumps(
                {"folder": str(self._folder), "uids": uids, "landlock": kernel.landlock, "readable": readable}
            )
            super().__init__(
                lambda inner: [
                    interpreter,
                    *start_runner(str(self._folder / "lib")),
                    *("--incoming", str(inner), "--outgoing", str(inner), "--bare", place),
                    *profile_arguments(profile),
                ],
                environment={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
            )
        except BaseException:
            tree.remove(str(self._folder))
            raise

    @staticmethod
    def advise(written: str) -> str:
        """See `LocalSandbox.advise`."""
        last = written.splitlines()[-1] if written else "no message"
        return f"The sandbox did not start. It said: {last}"

    def close(self) -> None:
        """See `sandboxes.base.Sandbox.close`; the warden ends all that is below it, and removes its folder."""
        self._host.close()
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
        if self._folder.exists():  # the warden had not got so far, or was killed
            tree.remove(str(self._folder))


def reason_to_refuse(config: ProcessConfig, environment: Mapping[str, str], kernel: Kernel) -> str | None:
    """Return why no sandbox may be started here, and what to change; None where one may."""
    if not config.anywhere and not is_isolation(environment):
        return (
            "The process backend makes no namespaces: it is for places that are themselves the isolation (an AWS "
            "Lambda function, a Fargate task), and this is not known to be one. Use the bubblewrap or the docker "
            "backend, or set ASSAY_PROCESS_SANDBOX_ANYWHERE=true where a virtual machine of its own holds nothing else"
        )
    if not kernel.seccomp:
        return "The process backend needs a kernel with seccomp (CONFIG_SECCOMP_FILTER)"
    if kernel.uid == 0 and not kernel.root:
        names = ", ".join(f"CAP_{name}" for name in _ROOT_CAPABILITIES)
        return f"The process backend needs these capabilities of root: {names}. Grant them, or start it as another user"
    if not kernel.root and kernel.landlock < landlock.FIRST_WITH_TRUNCATE:
        return (
            "The process backend needs Landlock (Linux 6.2 or newer, with `landlock` in its boot parameter lsm=), or "
            "to be started as root: with neither, nothing keeps one job's files from the next"
        )
    return None


def is_isolation(environment: Mapping[str, str]) -> bool:
    """Whether these environment variables are those of an AWS Lambda function or a Fargate task."""
    is_lambda = {"AWS_LAMBDA_FUNCTION_NAME", "LAMBDA_TASK_ROOT"} <= environment.keys()
    is_fargate = (
        environment.get("AWS_EXECUTION_ENV") == "AWS_ECS_FARGATE" and "ECS_CONTAINER_METADATA_URI_V4" in environment
    )
    return is_lambda or is_fargate


def _this_kernel(config: ProcessConfig) -> Kernel:
    abi = landlock.supported()
    return Kernel(
        seccomp="\nSeccomp:" in Path("/proc/self/status").read_text(encoding="ascii"),
        landlock=abi if config.landlock is None else min(abi, config.landlock),
        uid=os.geteuid(),
        root=is_root_with(_ROOT_CAPABILITIES),
    )


def _parent(config: ProcessConfig) -> Path:
    """Return where to make a sandbox's folder: to make and remove files costs a disk many times what memory costs."""
    if config.folder is not None:
        return Path(config.folder).resolve()
    with contextlib.suppress(OSError):
        memory = os.statvfs(_IN_MEMORY)
        if memory.f_bavail * memory.f_frsize >= _ROOM_BYTES and not memory.f_flag & os.ST_NOEXEC:
            return _IN_MEMORY
    return Path(tempfile.gettempdir()).resolve()


def _claim(parent: Path, kernel: Kernel) -> tuple[Path, list[int] | None]:
    """Make the sandbox's folder and, as root, choose its uids; the folder's name keeps others from choosing them."""
    if not kernel.root:
        return Path(tempfile.mkdtemp(prefix="assay-", dir=parent)), None
    if not _all_may_enter(parent):
        raise SandboxUnavailable(
            f"Only root may enter {parent}; choose a folder for sandboxes that every user may enter"
        )
    while True:
        first = FIRST_UID + _UIDS_PER_SANDBOX * random.randrange(_SANDBOXES)  # noqa: S311 - no secret
        folder = parent / f"assay-{first}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        folder.chmod(0o711)
        return folder, [first + number for number in range(_UIDS_PER_SANDBOX)]


def _furnish(folder: Path, profile: Profile, *, for_all: bool) -> tuple[str, list[str]]:
    """Put the library into the folder, and what of the interpreter the sandbox's uids could not reach.

    Returns the interpreter, and what jobs must be able to read.
    """
    readable = [str(folder / "lib"), *SYSTEM_LIBRARIES, *profile.paths]
    for inside, outside in library(profile).items():
        placed = folder / "lib" / inside
        placed.parent.mkdir(parents=True, exist_ok=True)
        if for_all and not _all_may_read(outside):
            _stage(outside, placed)
        else:
            placed.symlink_to(outside)
            readable.append(str(outside))
    interpreter = Path(sys.executable).resolve()
    parts = [Path(path) for path in interpreter_paths()]
    if not for_all or all(_all_may_read(part) for part in parts):
        return str(interpreter), [*readable, *map(str, parts)]
    prefix = Path(sys.base_prefix).resolve()
    staged = folder / "python"
    for part in parts:
        _stage(part, staged / part.relative_to(prefix))
    return str(staged / interpreter.relative_to(prefix)), [*readable, str(staged)]


def _all_may_enter(folder: Path) -> bool:
    return all(step.stat().st_mode & stat.S_IXOTH for step in (folder, *folder.parents))


def _all_may_read(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IROTH) and _all_may_enter(path if path.is_dir() else path.parent)


def _stage(source: Path, destination: Path) -> None:
    """Make a file or folder readable to all at another place, by hard links where that is possible."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    if not source.is_dir():
        _link(str(source), str(destination))
        return
    shutil.copytree(source, destination, ignore=_NOT_STAGED, copy_function=_link)
    for folder, _, _ in os.walk(destination):
        Path(folder).chmod(0o755)


def _link(source: str, destination: str) -> None:
    readable = Path(source).stat().st_mode | 0o444
    if Path(source).stat().st_mode == readable:
        try:
            os.link(source, destination)
        except OSError:
            pass  # another file system, or one without links
        else:
            return
    shutil.copy2(source, destination)
    Path(destination).chmod(stat.S_IMODE(readable))
