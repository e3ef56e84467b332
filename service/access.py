"""Who may call: API keys, and without keys only programs on this machine that are no web page."""

import hmac
import ipaddress
from urllib.parse import urlsplit

from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import Forbidden, ServiceProblem, Unauthorized
from service.responses import problem_response

OPEN_PATHS = frozenset({"/healthz", "/readyz"})


class AccessGuard:
    """ASGI middleware that answers 401 or 403 before a request reaches a route.

    With keys, every path but the health endpoints needs one. Without, the service listens on loopback, where the pages
    in a browser of this machine are the ones to keep out: a page cannot hide its `Origin`, and one that made its own
    name resolve to 127.0.0.1 (DNS rebinding) gives itself away by the `Host` header.
    """

    def __init__(self, app: ASGIApp, keys: tuple[SecretStr, ...]) -> None:
        self._app = app
        self._keys = tuple(key.get_secret_value().encode() for key in keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] == "http":
            refusal = self._refusal(Headers(scope=scope), scope["path"])
            if refusal is not None:
                await problem_response(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers, path: str) -> ServiceProblem | None:
        if self._keys:
            if path in OPEN_PATHS or self._is_known(_presented_key(headers)):
                return None
            return Unauthorized(
                "send an API key: `Authorization: Bearer KEY` or `X-API-Key: KEY`",
                headers={"www-authenticate": "Bearer"},
            )
        host = headers.get("host", "")
        if not _is_this_machine(host):
            return Forbidden(
                "the Host header does not name this machine (localhost, 127.0.0.1 or [::1]); to serve other names, "
                "set ASSAY_API_KEYS"
            )
        origin = headers.get("origin")
        if origin is not None and not _is_of(origin, host):
            return Forbidden("requests from web pages of other origins are refused")
        return None

    def _is_known(self, presented: bytes | None) -> bool:
        if presented is None:
            return False
        # Every key is compared, so that the time does not tell which one came close.
        matches = [hmac.compare_digest(presented, key) for key in self._keys]
        return any(matches)


def _presented_key(headers: Headers) -> bytes | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip().encode("latin-1")
    key = headers.get("x-api-key")
    return key.encode("latin-1") if key is not None else None


def _is_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


def _is_this_machine(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
