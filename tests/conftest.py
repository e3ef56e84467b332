"""Fixtures that all tests share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository; without it tests are skipped on a desk and fail in CI."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is missing")
        pytest.skip("../shared/data is not here")
    return folder
