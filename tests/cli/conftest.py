"""Runs the installed program, as a person would."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def assay(tmp_path: Path) -> Run:
    """Return a function that runs `assay ARGUMENTS` in an empty folder, with one worker unless told otherwise."""

    def run(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        done = subprocess.run(
            [str(Path(sys.executable).with_name("assay")), *arguments],
            check=False,
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**inherited, "COLUMNS": "100", "ASSAY_WORKERS": "1", **environment},
            timeout=120,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
