"""A root of its own for a zygote that was started in a container: the interpreter, the library, four devices, no more.

The bubblewrap backend makes the same root by bwrap's options.
"""

import os

from sandboxes.runner import linux
from sandboxes.runner.place import DEVICES, SYSTEM_LIBRARIES

WORK_FOLDER = "/work"
_LIBRARY = "/assay/lib"
_RESTRICTED = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID
_LINKS = {
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/fd": "/proc/self/fd",
    "/dev/shm": WORK_FOLDER,  # noqa: S108 - inside the sandbox
    "/tmp": WORK_FOLDER,  # noqa: S108
}


def enter_own_root(interpreter: str) -> None:
    """Put together a root in memory, move into it and drop the old one. Needs a mount namespace of one's own.

    Raises:
        OSError: the kernel, or the engine's profile, does not allow it.
    """
    new = WORK_FOLDER  # any folder of the image will do: it is covered only in this namespace
    linux.mount("root", new, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,mode=0755")
    for path in (*SYSTEM_LIBRARIES, _LIBRARY, interpreter):
        _show(path, new)
    for name in DEVICES:
        _show(f"/dev/{name}", new)
    os.makedirs(f"{new}/proc", 0o755)
    linux.mount("/proc", f"{new}/proc", "", linux.MS_BIND | linux.MS_REC)
    for path, target in _LINKS.items():
        os.symlink(target, new + path)
    os.makedirs(new + WORK_FOLDER, 0o755)
    os.makedirs(f"{new}/old", 0o755)
    linux.pivot_root(new, f"{new}/old")
    os.chdir("/")
    linux.unmount("/old")
    os.rmdir("/old")
    linux.mount("", "/", "", _RESTRICTED | linux.MS_NODEV)


def _show(path: str, new: str) -> None:
    """Make a file, folder or link of the old root visible at the same place in the new one."""
    if os.path.islink(path):
        os.makedirs(os.path.dirname(new + path), 0o755, exist_ok=True)
        os.symlink(os.readlink(path), new + path)
    elif os.path.isdir(path):
        os.makedirs(new + path, 0o755, exist_ok=True)
        linux.mount(path, new + path, "", linux.MS_BIND | linux.MS_REC)
        linux.mount("", new + path, "", _RESTRICTED | linux.MS_NODEV)
    elif os.path.exists(path):
        os.makedirs(os.path.dirname(new + path), 0o755, exist_ok=True)
        os.close(os.open(new + path, os.O_CREAT | os.O_WRONLY, 0o644))
        linux.mount(path, new + path, "", linux.MS_BIND)
        linux.mount("", new + path, "", _RESTRICTED)
