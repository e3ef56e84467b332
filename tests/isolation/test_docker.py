"""What only the docker backend has."""

import pytest

from sandboxes.base import Case, Job, Profile, SandboxUnavailable
from sandboxes.docker_engine import DockerConfig, DockerSandbox
from sandboxes.images.build import build_image
from tests.isolation.conftest import DOCKER_BASE, IMAGE, PROFILES

PROFILE = Profile("isolation", ())
BROKEN = Profile("broken", ("tests.isolation.attempt_cells",))


def test_why_a_container_is_no_sandbox_is_said(docker_image: str) -> None:
    """A profile that cannot be loaded, or a bound too small for Python, stand for a runtime that cannot isolate."""
    with pytest.raises(SandboxUnavailable, match="other sources"):
        DockerSandbox(BROKEN, DockerConfig(docker_image))
    assert DOCKER_BASE is not None
    unprepared = Profile("broken", ("tests.isolation.processes",), prepare="no:one")
    build_image(DOCKER_BASE, "assay-sandbox:broken", [unprepared])
    sandbox = DockerSandbox(unprepared, DockerConfig("assay-sandbox:broken"))
    with pytest.raises(SandboxUnavailable, match=r"did not become a sandbox\. It said: KeyError: 'no'"):
        sandbox.wait_until_warm()


def test_an_unknown_image_and_runtime_are_named(docker_image: str) -> None:
    with pytest.raises(SandboxUnavailable, match="no image assay-sandbox:none"):
        DockerSandbox(PROFILE, DockerConfig("assay-sandbox:none"))
    with pytest.raises(SandboxUnavailable, match="no-such-runtime"):
        DockerSandbox(PROFILE, DockerConfig(docker_image, runtime="no-such-runtime"))


def test_a_containers_bounds_hold_for_all_its_jobs(docker_image: str) -> None:
    """The engine's bounds come on top of a job's; hitting them costs the sandbox, and is our fault."""
    assert PROFILE in PROFILES
    assert docker_image == IMAGE
    sandbox = DockerSandbox(PROFILE, DockerConfig(docker_image, memory_bytes=256 << 20, processes=64, cpus=0.5))
    host = sandbox._client.inspect_container(sandbox._container)["HostConfig"]
    assert (host["Memory"], host["PidsLimit"], host["NanoCpus"]) == (256 << 20, 64, 500_000_000)
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    (outcome,) = sandbox.run(Job(guest="sandboxes.runner.probe:answer", cases=[Case(argument="x")]))
    assert outcome.returned
    sandbox.close()
