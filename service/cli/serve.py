"""`assay serve`: the HTTP service in the foreground."""

from typing import Annotated

import typer

from service.cli.configuration import load_settings
from service.cli.errors import InputError, UnavailableError
from service.dispatch.base import DispatchError
from service.settings import ExposureRefused, Settings


def command(
    *,
    host: Annotated[str | None, typer.Option(help="Address to bind; anything but loopback needs API keys.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="TCP port; 0 takes a free one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes; one a CPU when left out.")] = None,
    queue_limit: Annotated[int | None, typer.Option(min=1, help="Tasks that may wait before 429 is answered.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Start the service.

    All settings can also be given by the environment (ASSAY_HOST, ASSAY_PORT, ASSAY_API_KEYS, …; the README lists
    them). Ends with 3 when this machine cannot isolate.
    """
    from service.server import serve  # noqa: PLC0415 - the web framework would slow down every other command's start

    settings = load_settings(host=host, port=port, workers=workers, queue_limit=queue_limit, log_level=log_level)

    if settings.port:
        typer.echo(f"assay: starting; the interface is described at {_url(settings)}/docs", err=True)
    try:
        serve(settings)
    except ExposureRefused as error:
        raise InputError(str(error)) from None
    except DispatchError as error:
        raise UnavailableError(f"{error}\n`assay doctor` tells more") from None
    except OSError as error:
        raise UnavailableError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None


def _url(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"
