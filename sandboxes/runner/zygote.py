"""The zygote: started once in a sandbox, it loads what jobs need and then forks one warden after the other."""

import argparse
import gc
import importlib
import os
import random
import signal
import site
import sys
import traceback

from sandboxes.runner import linux, probe
from sandboxes.runner.child import DRIVER_UID, GUEST_UID, WORK_FOLDER, bound_for_all
from sandboxes.runner.frames import DescriptorEnd
from sandboxes.runner.root import enter_own_root
from sandboxes.runner.seccomp import SystemCallFilters
from sandboxes.runner.warden import run_job

_USUAL_MODULES = [
    "abc", "argparse", "array", "base64", "bisect", "calendar", "cmath", "collections", "collections.abc",
    "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "hashlib",
    "heapq", "inspect", "io", "itertools", "json", "math", "numbers", "operator", "os", "pathlib", "pprint",
    "queue", "random", "re", "statistics", "string", "struct", "sys", "textwrap", "threading", "time",
    "traceback", "types", "typing", "unicodedata", "uuid",
]  # fmt: skip

_ENVIRONMENT = {
    "HOME": WORK_FOLDER,
    "TMPDIR": WORK_FOLDER,
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def main() -> int:
    """Prepare, then serve the host until it closes the socket; return the exit code."""
    options = _parse_arguments()
    for name in [*_USUAL_MODULES, probe.__name__, *options.modules]:
        importlib.import_module(name)
    site.setquit()
    os.environ.clear()
    os.environ.update(_ENVIRONMENT)
    separate_uids = options.base_uid is not None
    if separate_uids:
        _leave_root(options.base_uid)
        _become_first_process()
    elif options.in_container:
        _enter_user_namespace()
        enter_own_root(os.path.realpath(sys.executable))
        _become_first_process()
    # Process 1 is deaf to signals it has no handler for, and Python handles this one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    linux.die_with_parent(signal.SIGKILL)
    linux.set_undumpable()
    linux.drop_bounding_set()
    linux.set_no_new_privileges()
    bound_for_all()
    system_calls = SystemCallFilters(os.uname().machine)
    system_calls.install_first()
    random.seed(0)
    gc.collect()
    gc.freeze()  # keep collections in children from touching, and so copying, what they share with this process
    gc.disable()
    host = DescriptorEnd(options.incoming, options.outgoing)
    own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    while True:
        status = _run_warden(host, own_namespace, system_calls, separate_uids=separate_uids)
        if status != 0:
            return os.waitstatus_to_exitcode(status) & 0xFF


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--incoming", type=int, required=True, help="descriptor to read jobs from")
    parser.add_argument("--outgoing", type=int, required=True, help="descriptor to write outcomes to")
    parser.add_argument("--base-uid", type=int, help="first of three host uids to use when started as root")
    parser.add_argument(
        "--in-container", action="store_true", help="make a user namespace and a root: the engine made neither"
    )
    parser.add_argument("modules", nargs="*")
    return parser.parse_args()


def _run_warden(
    host: DescriptorEnd, own_namespace: int, system_calls: SystemCallFilters, *, separate_uids: bool
) -> int:
    """Fork one warden as process 1 of a new namespace, wait for it, and return its wait status."""
    linux.unshare(linux.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(own_namespace)
            code = run_job(host, system_calls, separate_uids=separate_uids)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    # Without this the next unshare would nest, which the kernel refuses.
    linux.join_namespace(own_namespace, linux.CLONE_NEWPID)
    return os.waitpid(pid, 0)[1]


def _leave_root(base_uid: int) -> None:
    """Leave the host's root for a user namespace in which 0 and the children's uids are unprivileged host uids."""
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    inside = {0: base_uid, GUEST_UID: base_uid + 1, DRIVER_UID: base_uid + 2}
    mapping = "".join(f"{uid} {host_uid} 1\n" for uid, host_uid in inside.items())
    os.setgroups([])
    target = os.getpid()
    unshared = os.pipe()
    if os.fork() == 0:
        code = 1
        try:
            os.close(unshared[1])
            os.read(unshared[0], 1)
            for name in ("gid_map", "uid_map"):
                with open(f"/proc/{target}/{name}", "w") as file:
                    file.write(mapping)
            code = 0
        finally:
            os._exit(code)
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    os.close(unshared[1])
    _, status = os.wait()
    if status != 0:
        raise OSError("the user namespace could not be mapped")
    os.close(unshared[0])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    linux.die_with_parent(signal.SIGKILL)  # the change of uid undid bwrap's own wish


def _enter_user_namespace() -> None:
    """Enter a user namespace in which this process's uid is the guests', and has the powers that a warden needs."""
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{GUEST_UID} {uid} 1"), ("gid_map", f"{GUEST_UID} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _become_first_process() -> None:
    """Go on as process 1 of a pid namespace that belongs to the user namespace; what started it only waits.

    Only so may this process return to its own pid namespace after each warden.
    """
    linux.unshare(linux.CLONE_NEWPID)
    pid = os.fork()
    if pid != 0:
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


if __name__ == "__main__":
    sys.exit(main())
