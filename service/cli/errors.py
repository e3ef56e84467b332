"""Exit codes of the command line, and the errors that end a command with a message."""

VERDICT_ERRORS = 1
"""Everything was answered, but at least one task ended in an error."""
USAGE = 2
"""The arguments, the settings or the input are wrong; nothing was graded."""
UNAVAILABLE = 3
"""Nothing can be graded now: this machine cannot isolate, or the service cannot be reached."""

DEFECT = 4
"""Something went wrong that no message was written for."""


class CliError(Exception):
    """Ends the command with its message on standard error."""

    exit_code = USAGE


class InputError(CliError):
    """Arguments, settings or input that a person must change."""


class UnavailableError(CliError):
    """Grading is impossible here and now."""

    exit_code = UNAVAILABLE
