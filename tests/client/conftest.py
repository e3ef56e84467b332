"""A real service, started by the client itself."""

from collections.abc import Iterator

import pytest
from assay import Assay


@pytest.fixture(scope="session")
def local() -> Iterator[Assay]:
    """A client of a service on this machine that tests share."""
    with Assay.local(settings={"ASSAY_WORKERS": "2", "ASSAY_WARM_VERIFIERS": ""}) as assay:
        yield assay
