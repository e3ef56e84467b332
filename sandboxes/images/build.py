"""Builds the docker backend's image from a base image and the installed environment; no registry is asked."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import docker

from sandboxes.base import Profile
from sandboxes.docker_engine import LIBRARY_LABEL
from sandboxes.library import files, fingerprint, library

_DOCKERFILE = Path(__file__).parent / "Dockerfile"


def build_image(base: str, tag: str, profiles: Sequence[Profile]) -> str:
    """Build the image `tag` on `base`, an image with /usr/bin/python3, and return its id.

    Raises:
        docker.errors.DockerException: there is no engine, no such base, or the build failed.
    """
    client = docker.from_env()
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        _add(archive, "Dockerfile", _DOCKERFILE)
        placed: dict[str, Path] = {}
        for profile in profiles:
            placed |= files(library(profile))
        for inside, path in placed.items():
            _add(archive, f"library/{inside}", path)
    context.seek(0)
    image, _ = client.images.build(
        fileobj=context,
        custom_context=True,
        tag=tag,
        buildargs={"BASE": base},
        labels={LIBRARY_LABEL + profile.name: fingerprint(profile) for profile in profiles},
        rm=True,
    )
    client.close()
    return str(image.id)


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    entry = archive.gettarinfo(str(path), name)
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    with path.open("rb") as file:
        archive.addfile(entry, file)
