"""Sets up `.venv` from requirements.lock; does nothing when it is up to date.

Needs a bare Python 3.11 or newer: Debian's python3 comes without pip, venv's ensurepip and compiler, so pip is taken
from the wheel beside this file. Kept readable for old Pythons, so that they can say what is wrong.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the whole point of this check is to run on an older Python
    sys.exit(
        "assay: Python 3.11 or newer is needed, but {} is Python {}.{}.\n"
        "Install one and name it: make PYTHON=/usr/bin/python3.11 …".format(sys.executable, *sys.version_info[:2])
    )

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "assay.stamp"
PIP_WHEEL = HERE / "pip-26.3-py3-none-any.whl"
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"
LOCK = ROOT / "requirements.lock"
INPUTS = (LOCK, ROOT / "pyproject.toml", ROOT / "client" / "pyproject.toml", Path(__file__).resolve())


def main() -> None:
    """Bring `.venv` up to date; one process at a time."""
    lock = os.open(ROOT, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    wanted = fingerprint()
    usable = same_interpreter()
    if usable and STAMP.is_file() and STAMP.read_text() == wanted:
        return
    STAMP.unlink(missing_ok=True)
    sys.stderr.write("assay: setting up .venv (once; up to a minute) …\n")
    if not usable:
        call(sys.executable, "-m", "venv", "--without-pip", "--clear", str(VENV))
    install()
    STAMP.write_text(wanted)


def fingerprint() -> str:
    """Return a hash of everything that decides what gets installed, and of where: an environment cannot be moved."""
    digest = hashlib.sha256(f"{VENV} {PIP_SHA256}".encode())
    for path in INPUTS:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def same_interpreter() -> bool:
    """Return whether `.venv` starts and was made from the Python that runs this."""
    ask = [str(VENV / "bin" / "python"), "-c", "import sys; print(sys.version, sys.base_prefix)"]
    try:
        answer = subprocess.run(ask, check=False, capture_output=True, text=True).stdout
    except OSError:
        return False
    return answer.strip() == f"{sys.version} {sys.base_prefix}"


def install() -> None:
    """Install pip, the locked packages, and this repository's two packages in editable form."""
    if hashlib.sha256(PIP_WHEEL.read_bytes()).hexdigest() != PIP_SHA256:
        sys.exit(f"assay: {PIP_WHEEL} is damaged; restore it with git checkout")
    python = str(VENV / "bin" / "python")
    # The wheel can run itself: pip is the first thing that pip installs.
    call(python, f"{PIP_WHEEL}/pip", "install", *QUIET, "--no-index", "--force-reinstall", str(PIP_WHEEL))
    pip = (python, "-m", "pip", "install", *QUIET)
    call(*pip, "--only-binary", ":all:", "--require-hashes", "-r", str(LOCK))
    local = ("--no-index", "--no-deps", "--no-build-isolation", "-e", str(ROOT / "client"), "-e", str(ROOT))
    call(*pip, *local)


QUIET = ("--quiet", "--quiet", "--disable-pip-version-check", "--no-input", "--no-warn-script-location")


def call(*command: str) -> None:
    """Run a command; when it fails, say which and stop."""
    # What a person set for other projects (PYTHONPATH, PIP_USER, PIP_TARGET …) must not change what is installed here.
    dropped = {"PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_NO_BINARY"}
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    code = subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode
    if code:
        sys.exit(f"assay: this command failed with exit code {code}; .venv is not ready:\n  {' '.join(command)}")


if __name__ == "__main__":
    main()
