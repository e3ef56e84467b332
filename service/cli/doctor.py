"""`assay doctor`: what this machine can isolate, and what to change where it cannot."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import docker
import typer
from docker.errors import DockerException
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sandboxes.base import Job, Outcome, Profile, SandboxError
from sandboxes.bubblewrap import find_bwrap
from sandboxes.pool import SandboxConfig, start_sandbox
from service.cli.configuration import load_settings
from service.cli.pool import pool_table
from verifiers.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `ok` is None for what only informs."""

    subject: str
    found: str
    ok: bool | None = None


def command(
    url: Annotated[
        str | None, typer.Option(help="Tell of the sandboxes of the running service at this address instead.")
    ] = None,
    api_key: Annotated[str | None, typer.Option(envvar="ASSAY_API_KEY", help="Key for the service at --url.")] = None,
) -> None:
    """Tell what this machine can isolate, by trying it; ends with 1 when nothing here can."""
    if url is not None:
        Console(highlight=False).print(pool_table(url, api_key))
        return
    config = load_settings().sandbox_config()
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    for finding in (*_machine(), *_bubblewrap(config.bwrap), _engine()):
        table.add_row(_mark(finding.ok), finding.subject, Text(finding.found, overflow="fold"))
    console = Console(highlight=False)
    console.print(table)
    try:
        seconds, outcome = _try_job(config)
    except SandboxError as error:
        console.print(
            Text(f"The backend {config.backend} cannot isolate here, so nothing will be graded. {error}", style="red")
        )
        raise typer.Exit(1) from None
    console.print(Text(f"A job ran in a fresh sandbox, {seconds * 1e3:.0f} ms after its start: {outcome.result}"))
    chosen = f"Backend: {config.backend} (ASSAY_SANDBOX). `assay serve`, `grade` and `demo` will use it."
    console.print(Text(chosen, style="green"))


def _mark(ok: bool | None) -> Text:
    return {True: Text("✓", style="green"), False: Text("✗", style="red"), None: Text("·", style="dim")}[ok]


def _try_job(config: SandboxConfig) -> tuple[float, Outcome]:
    """Start a sandbox as the service does and run one job in it."""
    started = time.perf_counter()
    sandbox = start_sandbox(_profile_for(config), config)
    try:
        (outcome,) = sandbox.run(Job(guest="sandboxes.runner.probe:answer"))
    finally:
        sandbox.close()
    return time.perf_counter() - started, outcome


def _profile_for(config: SandboxConfig) -> Profile:
    """Return a profile that the backend has: an image holds only those of the verifiers."""
    if config.backend == "docker":
        return next(verifier.profile for verifier in REGISTRY.values() if verifier.profile is not None)
    return Profile("doctor", ())


def _engine() -> Finding:
    try:
        client = docker.from_env(timeout=5)
    except DockerException:
        return Finding("docker engine", "none answers; needed only for the backend `docker`")
    version = client.version()["Version"]
    client.close()
    return Finding("docker engine", version, True)


def _machine() -> Iterator[Finding]:
    """Describe what isolation stands on."""
    yield Finding("Python", f"{platform.python_version()} at {sys.executable}")
    yield Finding("kernel", f"{platform.release()} on {platform.machine()}", platform.system() == "Linux")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield Finding("CPUs, memory", f"{len(os.sched_getaffinity(0))} CPUs usable, {memory / 2**30:.1f} GiB")
    as_root = os.geteuid() == 0
    mode = "root: sandboxes get high uids of their own" if as_root else f"uid {os.geteuid()}: by user namespaces"
    yield Finding("started as", mode)
    yield _user_namespaces()
    actions = _read("/proc/sys/kernel/seccomp/actions_avail")
    yield Finding("system-call filter", "seccomp" if actions else "this kernel has no seccomp", bool(actions))
    yield _cgroups()


def _user_namespaces() -> Finding:
    """Report what the kernel's switches say; the job that is run afterwards has the last word."""
    switches = {
        "user.max_user_namespaces": (_read("/proc/sys/user/max_user_namespaces"), "0"),
        "kernel.unprivileged_userns_clone": (_read("/proc/sys/kernel/unprivileged_userns_clone"), "0"),
        "kernel.apparmor_restrict_unprivileged_userns": (
            _read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            "1",
        ),
    }
    if not Path("/proc/self/ns/user").exists():
        return Finding("user namespaces", "this kernel has none", False)
    wrong = [f"{name} is {value}" for name, (value, bad) in switches.items() if value == bad]
    if wrong:
        return Finding("user namespaces", "restricted: " + ", ".join(wrong), False)
    return Finding("user namespaces", f"allowed, up to {switches['user.max_user_namespaces'][0] or '?'}", True)


def _cgroups() -> Finding:
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return Finding("control groups", "version 2; not needed: limits are kept without them")
    return Finding("control groups", "version 1 or none; not needed: limits are kept without them")


def _bubblewrap(configured: str | None) -> Iterator[Finding]:
    try:
        path = find_bwrap(configured)
        version = subprocess.run([path, "--version"], check=True, capture_output=True, text=True, timeout=10).stdout
    except (SandboxError, OSError, subprocess.SubprocessError) as error:
        yield Finding("bubblewrap", str(error), False)
    else:
        yield Finding("bubblewrap", f"{version.split()[-1]} at {path}", True)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
