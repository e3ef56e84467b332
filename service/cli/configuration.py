"""Settings as the command line builds them: options given win over the environment."""

from pydantic import ValidationError

from service.cli.errors import InputError
from service.settings import Settings


def load_settings(**options: object) -> Settings:
    """Return the settings; options that are None were not given.

    Raises:
        InputError: names each setting that is wrong.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        problems = []
        for detail in error.errors(include_url=False, include_input=False):
            name = ".".join(map(str, detail["loc"]))
            source = f"--{name.replace('_', '-')}" if name in given else f"ASSAY_{name.upper()}"
            problems.append(f"{source}: {detail['msg']}" if name else detail["msg"].removeprefix("Value error, "))
        raise InputError("; ".join(problems)) from None
