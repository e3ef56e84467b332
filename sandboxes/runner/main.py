"""The start of the program inside a sandbox: load what jobs need, give up what none needs, become warden and zygote."""

import argparse
import fcntl
import gc
import importlib
import os
import random
import signal
import site
import socket
import sys
import traceback
import types

from sandboxes.runner import linux, probe
from sandboxes.runner.child import Given, bound_for_all, function_named
from sandboxes.runner.frames import DescriptorEnd
from sandboxes.runner.line import Line
from sandboxes.runner.place import Place, place_for
from sandboxes.runner.seccomp import SystemCallFilters
from sandboxes.runner.warden import Warden
from sandboxes.runner.zygote import Zygote

_USUAL_MODULES = [
    "abc", "argparse", "array", "base64", "bisect", "calendar", "cmath", "collections", "collections.abc",
    "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "hashlib",
    "heapq", "inspect", "io", "itertools", "json", "math", "numbers", "operator", "os", "pathlib", "pprint",
    "queue", "random", "re", "statistics", "string", "struct", "sys", "textwrap", "threading", "time",
    "traceback", "types", "typing", "unicodedata", "uuid",
]  # fmt: skip
_FIRST_FREE = len(Given._fields)
_OWN_PACKAGES = ("sandboxes", "verifiers", "tests")

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def main() -> int:
    """Prepare, then serve the host until it closes the channel; return the exit code."""
    options = _parse_arguments()
    host = _take_channel(options.incoming, options.outgoing)
    place = place_for(options)
    place.arrive()
    try:
        loaded = _load(options.modules, options.prepare, place)
        place.settle()
        # Made now, since the system-call filter may allow no such pair any more.
        wardens_end, zygotes_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        system_calls = _confine(place)
        zygote = os.fork()
        if zygote == 0:
            wardens_end.close()
            for descriptor in {host.incoming, host.outgoing}:
                os.close(descriptor)
            _be_zygote(Zygote(Line(zygotes_end), system_calls, place, loaded))
        zygotes_end.close()
        return Warden(host, Line(wardens_end), zygote, place).serve()
    finally:
        try:
            place.leave()
        except SystemExit:  # told to leave while leaving; that comes once
            place.leave()


def _take_channel(incoming: int, outgoing: int) -> DescriptorEnd:
    """Take the channel to the host away from where something loaded might read or write by mistake."""
    nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    taken = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for descriptor in (incoming, outgoing)]
    for descriptor in {incoming, outgoing}:
        os.dup2(nothing, descriptor) if descriptor < 3 else os.close(descriptor)
    # The numbers that cases' descriptors get stay taken, so that none of the runner's own is ever among them.
    while (filler := os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)) < _FIRST_FREE:
        pass
    os.close(filler)
    return DescriptorEnd(*taken)


def _load(modules: list[str], prepare: str | None, place: Place) -> dict[str, types.ModuleType]:
    """Load what jobs need, and return the project's own modules by name.

    Those leave Python's table of modules, which a completion finds as in a fresh interpreter. Nothing here protects
    anything: what must not be reached is not in this process.
    """
    for name in [*_USUAL_MODULES, probe.__name__, *modules]:
        importlib.import_module(name)
    for add_names in (site.setquit, site.setcopyright, site.sethelper):
        add_names()
    if prepare is not None:
        function_named(prepare, sys.modules)()
    os.environ.clear()
    os.environ.update(_ENVIRONMENT, HOME=place.work_folder, TMPDIR=place.work_folder)
    own = [name for name in sys.modules if name.partition(".")[0] in _OWN_PACKAGES]
    return {name: sys.modules.pop(name) for name in own}


def _confine(place: Place) -> SystemCallFilters:
    linux.set_undumpable()
    linux.drop_bounding_set()
    linux.set_no_new_privileges()
    bound_for_all()
    system_calls = SystemCallFilters(os.uname().machine, place.duties)
    system_calls.install_first()
    return system_calls


def _be_zygote(zygote: Zygote) -> None:
    """Serve the warden and end this process."""
    code = 1
    try:
        linux.die_with_parent(signal.SIGKILL)  # a place may choose a milder signal
        linux.set_undumpable()
        random.seed(0)
        gc.collect()
        gc.freeze()  # keep collections in children from touching, and so copying, what they share with this process
        gc.disable()
        code = zygote.serve()
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--incoming", type=int, required=True, help="descriptor to read jobs from")
    parser.add_argument("--outgoing", type=int, required=True, help="descriptor to write outcomes to")
    parser.add_argument("--base-uid", type=int, help="first of three host uids to use when started as root")
    parser.add_argument(
        "--in-container", action="store_true", help="make a user namespace and a root: the engine made neither"
    )
    parser.add_argument("--bare", help="do without namespaces; see `sandboxes.runner.bare.BarePlace.from_arguments`")
    parser.add_argument("--prepare", help="module:function to call once when the modules are loaded")
    parser.add_argument("modules", nargs="*")
    return parser.parse_args()
