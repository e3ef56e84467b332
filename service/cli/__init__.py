"""The command line `assay`: `app` puts the commands together, each a module of its own."""

from service.cli.app import main

__all__ = ["main"]
