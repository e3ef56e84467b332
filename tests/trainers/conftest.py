"""A real service, started by the client itself."""

from tests.client.conftest import local

__all__ = ["local"]
