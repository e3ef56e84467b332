"""The zygote: started once in a sandbox, it loads what jobs need and then forks one warden after the other."""

import argparse
import gc
import importlib
import os
import random
import site
import sys
import traceback

from sandboxes.runner import linux, probe
from sandboxes.runner.child import bound_for_all
from sandboxes.runner.frames import DescriptorEnd
from sandboxes.runner.place import Place, place_for
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
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def main() -> int:
    """Prepare, then serve the host until it closes the socket; return the exit code."""
    options = _parse_arguments()
    place = place_for(options)
    place.arrive()
    try:
        _load(options.modules, place)
        place.settle()
        return _serve(DescriptorEnd(options.incoming, options.outgoing), place)
    finally:
        place.leave()


def _load(modules: list[str], place: Place) -> None:
    for name in [*_USUAL_MODULES, probe.__name__, *modules]:
        importlib.import_module(name)
    site.setquit()
    os.environ.clear()
    os.environ.update(_ENVIRONMENT, HOME=place.work_folder, TMPDIR=place.work_folder)


def _serve(host: DescriptorEnd, place: Place) -> int:
    linux.set_undumpable()
    linux.drop_bounding_set()
    linux.set_no_new_privileges()
    bound_for_all()
    system_calls = SystemCallFilters(os.uname().machine, place.duties)
    system_calls.install_first()
    random.seed(0)
    gc.collect()
    gc.freeze()  # keep collections in children from touching, and so copying, what they share with this process
    gc.disable()
    while True:
        status = _run_warden(host, system_calls, place)
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
    parser.add_argument("--bare", help="do without namespaces; see `sandboxes.runner.bare.BarePlace.from_arguments`")
    parser.add_argument("modules", nargs="*")
    return parser.parse_args()


def _run_warden(host: DescriptorEnd, system_calls: SystemCallFilters, place: Place) -> int:
    """Fork one warden, wait for it, and return its wait status."""
    pid = place.fork()
    if pid == 0:
        code = 1
        try:
            code = run_job(host, system_calls, place)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitpid(pid, 0)[1]


if __name__ == "__main__":
    sys.exit(main())
