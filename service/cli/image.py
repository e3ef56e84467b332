"""`assay image build`: the image that the docker backend runs completions in."""

from typing import Annotated

import typer
from docker.errors import DockerException
from rich.console import Console

from sandboxes.images.build import build_image
from service.cli.configuration import load_settings
from service.cli.errors import CliError
from verifiers.registry import REGISTRY

app = typer.Typer(help="Images of the docker backend.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Images of the docker backend."""


@app.command()
def build(
    base: Annotated[str, typer.Option(help="An image of the engine with /usr/bin/python3; nothing is pulled for you.")],
    tag: Annotated[
        str | None, typer.Option(help="The new image's name; that of ASSAY_DOCKER_IMAGE when left out.")
    ] = None,
) -> None:
    """Build the sandbox image from a base and from what is installed here, without a registry."""
    name = tag or load_settings().docker_image
    profiles = [verifier.profile for verifier in REGISTRY.values() if verifier.profile is not None]
    profiles += [profile for verifier in REGISTRY.values() for profile in verifier.more_profiles]
    try:
        image = build_image(base, name, profiles)
    except DockerException as error:
        raise CliError(f"the image could not be built: {error}") from None
    Console(highlight=False).print(
        f"Built {name} ({image.removeprefix('sha256:')[:12]}); use it with ASSAY_SANDBOX=docker."
    )
