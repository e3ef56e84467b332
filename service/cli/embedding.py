"""The embedded grader, with its errors as the command line shows them."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.cli.errors import InputError, UnavailableError
from service.dispatch.base import DispatchError
from service.embedded import EmbeddedGrader
from service.errors import InvalidRequest
from service.settings import Settings


@contextmanager
def embedded_grader(settings: Settings) -> Iterator[EmbeddedGrader]:
    """Start workers, provide the grader, end them.

    Raises:
        UnavailableError: this machine cannot isolate, or no worker can be started.
        InputError: a task is beyond the bounds of the settings.
    """
    try:
        with EmbeddedGrader(settings) as grader:
            yield grader
    except DispatchError as error:
        raise UnavailableError(f"{error}\n`assay doctor` tells more") from None
    except InvalidRequest as error:
        raise InputError(error.detail) from None
