"""The docker backend: a runner in a locked-down container, and in there in namespaces of its own.

The container has no network, a read-only root, no capabilities, no new privileges, a system-call profile, and bounds on
processes, memory and CPU. Jobs go through the container's attached standard input and output, so the engine may be
anywhere. The kernel's isolation of one job from the next is the same as with bubblewrap: the runner makes a user
namespace in the container, and per case a pid and a mount namespace.
"""

import contextlib
import json
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from sandboxes.base import Profile, SandboxUnavailable
from sandboxes.library import fingerprint
from sandboxes.zygote_sandbox import ZygoteSandbox, profile_arguments, start_runner

LABEL = "dev.assay.sandbox"
"""Label of every container of this backend, so that an operator finds them."""
LIBRARY_LABEL = "dev.assay.library."
"""With a profile's name: the label of an image that holds the fingerprint of the profile's library."""
_SECCOMP_PROFILE = Path(__file__).parent / "images" / "seccomp.json"
_HEADER = struct.Struct(">BxxxL")
_STDOUT = 1
_ERRORS_KEPT = 4000
_SIGNS = ("mount", "unshare", "setgroups")
_NO_MOUNTS = (
    "Its runtime, or the host, does not let a container make user namespaces and mount in them, which the isolation of "
    "one job from the next needs"
)


@dataclass(frozen=True, slots=True)
class DockerConfig:
    """How containers are started."""

    image: str = "assay-sandbox:latest"
    """Built by `assay image build`."""
    runtime: str | None = None
    """Another runtime of the engine, such as `runsc` (gVisor) or `kata`."""
    memory_bytes: int = 4 << 30
    """Bound of the whole container; jobs have their own, smaller ones."""
    processes: int = 512
    cpus: float | None = None
    """CPUs that a container may use at most; no bound when not given."""


class DockerSandbox(ZygoteSandbox):
    """A warm sandbox in a container (see `sandboxes.base.Sandbox`)."""

    def __init__(self, profile: Profile, config: DockerConfig) -> None:
        """Start a container; it gets warm by itself, and `wait_until_warm` says when.

        Raises:
            SandboxUnavailable: no engine or no image; the message says what to change.
        """
        self._container = ""
        try:
            self._client: docker.APIClient = docker.from_env().api
        except DockerException as error:
            raise SandboxUnavailable(f"the docker backend needs a running engine: {error}") from None
        try:
            _check_image(self._client, config.image, profile)
            self._container = self._create(profile, config)
            self._attached = self._client.attach_socket(
                self._container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
            self._stream: socket.socket = self._attached._sock
            self._client.start(self._container)
        except SandboxUnavailable:
            self._client.close()
            raise
        except ImageNotFound:
            self._client.close()
            raise SandboxUnavailable(
                f"the engine has no image {config.image}; build it with `assay image build --base BASE`"
            ) from None
        except DockerException as error:
            if self._container:  # made, but not started: nothing else would remove it
                self._client.remove_container(self._container, force=True)
            self._client.close()
            raise SandboxUnavailable(f"the engine could not start a container: {error}") from None
        self._errors = b""
        self._left_in_chunk = 0
        super().__init__(self._receive, self._stream.sendall)

    def _create(self, profile: Profile, config: DockerConfig) -> str:
        host = self._client.create_host_config(
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=[
                "no-new-privileges",
                f"seccomp={json.dumps(json.loads(_SECCOMP_PROFILE.read_text(encoding='utf-8')))}",
                "apparmor=unconfined",  # docker's own profile forbids every mount; see docs/security.md
            ],
            pids_limit=config.processes,
            mem_limit=config.memory_bytes,
            memswap_limit=config.memory_bytes,
            runtime=config.runtime,
            ipc_mode="private",
            auto_remove=True,
            log_config={"type": "none", "config": {}},
            **({"nano_cpus": int(config.cpus * 1e9)} if config.cpus is not None else {}),
        )
        # A namespace may mount a /proc of its own only where it sees one that nothing covers.
        host["MaskedPaths"] = []
        host["ReadonlyPaths"] = []
        created: dict[str, Any] = self._client.create_container(
            config.image,
            command=[
                *start_runner(),
                "--incoming",
                "0",
                "--outgoing",
                "1",
                "--in-container",
                *profile_arguments(profile),
            ],
            hostname="sandbox",
            environment={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
            user="65532:65532",
            stdin_open=True,
            labels={LABEL: profile.name},
            host_config=host,
        )
        # Standard input closes, and with it the container ends, when this process does.
        return str(created["Id"])

    def _receive(self, size: int) -> bytes:
        """Return bytes of the container's standard output, taken out of the engine's multiplexed stream."""
        while self._left_in_chunk == 0:
            header = self._exactly(_HEADER.size)
            if not header:
                return b""
            kind, length = _HEADER.unpack(header)
            if kind == _STDOUT:
                self._left_in_chunk = length
            else:
                self._errors = (self._errors + self._exactly(length))[-_ERRORS_KEPT:]
        part = self._stream.recv(min(size, self._left_in_chunk))
        self._left_in_chunk -= len(part)
        return part

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._stream.recv(size - len(parts))
            if not part:
                return b""
            parts += part
        return bytes(parts)

    def set_timeout(self, seconds: float) -> None:
        """See `ZygoteSandbox.set_timeout`."""
        self._stream.settimeout(seconds)

    def explain(self, failure: str) -> str:
        """See `ZygoteSandbox.explain`."""
        written = self._errors.decode(errors="replace").strip()
        said = written.splitlines()[-1] if written else failure
        advice = f" {_NO_MOUNTS}" if any(sign in said for sign in _SIGNS) else ""
        return f"The container did not become a sandbox. It said: {said}.{advice}"

    def close(self) -> None:
        """See `sandboxes.base.Sandbox.close`."""
        self._stream.close()
        self._attached.close()
        with contextlib.suppress(NotFound, APIError):
            self._client.remove_container(self._container, force=True)
        self._client.close()


def _check_image(client: docker.APIClient, image: str, profile: Profile) -> None:
    labels = client.inspect_image(image)["Config"]["Labels"] or {}
    if labels.get(LIBRARY_LABEL + profile.name) != fingerprint(profile):
        raise SandboxUnavailable(
            f"the image {image} was built from other sources than this service; build it again with `assay image build`"
        )
