"""What a profile needs inside a sandbox, and where that lies in the environment of this process."""

import hashlib
import importlib.util
import sys
import sysconfig
from pathlib import Path

from sandboxes.base import Profile, SandboxUnavailable

LIBRARY = "/assay/lib"
"""Where the runner, the preloaded modules and their packages are inside a sandbox."""


def library(profile: Profile) -> dict[str, Path]:
    """Return the files and folders that stand in the sandbox's library, by their path there.

    Raises:
        SandboxUnavailable: a module or package is not installed.
    """
    found: dict[str, Path] = {}
    for name in ("sandboxes.runner", *profile.modules):
        parts = name.split(".")
        for depth in range(1, len(parts)):
            package = importlib.util.find_spec(".".join(parts[:depth]))
            if package is not None and package.origin is not None:  # a namespace package has no file
                found["/".join(parts[:depth]) + "/__init__.py"] = Path(package.origin).resolve()
        origin = _origin(name)
        if origin.name == "__init__.py":
            found["/".join(parts)] = origin.parent
        else:
            found["/".join(parts) + ".py"] = origin
    for name in profile.packages:
        origin = _origin(name)
        if origin.name == "__init__.py":
            found[name] = origin.parent
        else:
            found[origin.name] = origin
    return found


def interpreter_paths() -> list[str]:
    """Return what the interpreter needs beside the system's libraries: its prefix, or its single files under /usr."""
    prefix = Path(sys.base_prefix).resolve()
    if prefix == Path("/usr"):
        return [str(Path(sys.executable).resolve())]
    # Not the prefix itself, whose site-packages and other versions are no business of a completion's.
    library = Path(sysconfig.get_path("stdlib", vars={"base": str(prefix), "installed_base": str(prefix)})).resolve()
    shared = [str(path) for path in (prefix / "lib").glob("libpython*.so*")]
    return [str(Path(sys.executable).resolve()), str(library), *shared]


def files(entries: dict[str, Path]) -> dict[str, Path]:
    """Return the single source files of a library, by their path in it."""
    found: dict[str, Path] = {}
    for inside, outside in entries.items():
        if outside.is_dir():
            for path in outside.rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    found[f"{inside}/{path.relative_to(outside)}"] = path
        else:
            found[inside] = outside
    return dict(sorted(found.items()))


def fingerprint(profile: Profile) -> str:
    """Return a hash of all that a profile has inside; it tells whether an image was made from the same sources."""
    digest = hashlib.sha256()
    for inside, path in files(library(profile)).items():
        digest.update(f"{inside}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _origin(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SandboxUnavailable(f"the module {name}, which a sandbox must preload, is not installed")
    return Path(spec.origin).resolve()
