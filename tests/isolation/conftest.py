"""The backends that the isolation tests run against: all that this machine can run.

With `ASSAY_TEST_DOCKER_BASE`, the name of a base image with /usr/bin/python3 that the engine has, the docker backend is
among them (`docs/development.md` says how such an image is made without a registry).
"""

import os
from collections.abc import Callable, Iterator

import pytest

from sandboxes.base import Profile
from sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox
from sandboxes.docker_engine import DockerConfig, DockerSandbox
from sandboxes.images.build import build_image
from sandboxes.process import ProcessConfig, ProcessSandbox
from sandboxes.zygote_sandbox import ZygoteSandbox

ROLES = Profile("roles", ("tests.isolation.roles",), prepare="tests.isolation.roles:prepare")
PROFILES = (Profile("isolation", ()), ROLES)
DOCKER_BASE = os.environ.get("ASSAY_TEST_DOCKER_BASE")
IMAGE = "assay-sandbox:isolation-tests"
OLD_LANDLOCK = 0 if os.geteuid() == 0 else 5
"""The oldest Landlock with which the process backend starts: root needs none, others one that cannot bound signals."""

Start = Callable[[Profile], ZygoteSandbox]
"""Starts a sandbox of one backend."""


@pytest.fixture(scope="session")
def docker_image() -> str:
    """The docker backend's image, built for the profiles of these tests."""
    if DOCKER_BASE is None:
        pytest.skip("ASSAY_TEST_DOCKER_BASE is not set")
    build_image(DOCKER_BASE, IMAGE, PROFILES)
    return IMAGE


@pytest.fixture(scope="session", params=["bubblewrap", "docker", "process", "process-old"])
def backend(request: pytest.FixtureRequest) -> str:
    """The name of the backend under test; `process-old` is that of an older kernel."""
    return str(request.param)


@pytest.fixture(scope="session")
def start(backend: str, request: pytest.FixtureRequest) -> Start:
    """Start a sandbox of the backend under test."""
    if backend == "bubblewrap":
        return lambda profile: BubblewrapSandbox(profile, BubblewrapConfig())
    if backend == "process":
        return lambda profile: ProcessSandbox(profile, ProcessConfig(anywhere=True))
    if backend == "process-old":
        return lambda profile: ProcessSandbox(profile, ProcessConfig(anywhere=True, landlock=OLD_LANDLOCK))
    image = request.getfixturevalue("docker_image")
    return lambda profile: DockerSandbox(profile, DockerConfig(image=image))


@pytest.fixture(scope="module")
def sandbox(start: Start, request: pytest.FixtureRequest) -> Iterator[ZygoteSandbox]:
    """A warm sandbox with the profile that the test module names in `PROFILE`."""
    warm = start(request.module.PROFILE)
    warm.wait_until_warm()
    yield warm
    warm.close()
