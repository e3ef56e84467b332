"""Who may call, and what the service refuses to start with."""

from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from service.settings import ExposureRefused, Settings
from tests.service.conftest import ServerProcess, StartServer, format_tasks

KEYS = ("first-key-of-the-test-suite", "second-key-of-the-test-suite")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("guarded") / "server.log", {"ASSAY_API_KEYS": ", ".join(KEYS)})
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.end()


def test_keys(guarded: ServerProcess) -> None:
    body = {"tasks": format_tasks(1)}
    for key in KEYS:
        for headers in ({"authorization": f"Bearer {key}"}, {"authorization": f"bearer {key}"}, {"x-api-key": key}):
            assert guarded.client.post("/v1/grade", json=body, headers=headers).status_code == 200
    refused: list[dict[str, str]] = [
        {},
        {"authorization": "Bearer"},
        {"authorization": KEYS[0]},
        {"authorization": f"Basic {KEYS[0]}"},
        {"authorization": f"Bearer {KEYS[0]}x"},
        {"authorization": f"Bearer {KEYS[0][:-1]}"},
        {"authorization": f"Bearer {','.join(KEYS)}"},
        {"x-api-key": ""},
        {"x-api-key": "ÿ"},
    ]
    for headers in refused:
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        response = guarded.client.post("/v1/grade", json=body, headers=encoded)
        assert response.status_code == 401, headers
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path", ["/v1/verifiers", "/v1/jobs/x", "/openapi.json", "/docs", "/nothing", "/healthz/", "/"]
)
def test_everything_but_health_needs_a_key(guarded: ServerProcess, path: str) -> None:
    assert guarded.client.get(path).status_code == 401


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://]", "null", "http://evil.example"])
def test_an_origin_that_is_none_is_refused(start_server: StartServer, origin: str) -> None:
    response = start_server().client.get("/v1/verifiers", headers={"origin": origin})
    assert response.status_code == 403
    assert response.headers["content-type"] == "application/problem+json"


def test_health_needs_no_key(guarded: ServerProcess) -> None:
    assert guarded.client.get("/healthz").json() == {"status": "ok"}
    assert guarded.client.get("/readyz").json() == {"status": "ready"}


def test_keys_are_never_logged(start_server: StartServer) -> None:
    server = start_server(ASSAY_API_KEYS=",".join(KEYS), ASSAY_LOG_LEVEL="debug")
    server.client.get(f"/v1/verifiers?key={KEYS[0]}", headers={"x-api-key": KEYS[0]})
    server.client.post(
        "/v1/grade", json={"tasks": format_tasks(1, "a secret completion")}, headers={"x-api-key": KEYS[1]}
    )
    server.end()
    assert "/v1/verifiers" in server.log
    assert not any(key in server.log for key in KEYS)
    assert "secret completion" not in server.log


def test_keys_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_API_KEYS", ",".join(KEYS))
    settings = Settings()
    assert len(settings.api_keys) == 2
    assert not any(key in text for key in KEYS for text in (repr(settings), str(settings), settings.model_dump_json()))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "", "example.org"])
def test_exposure_needs_keys(host: str) -> None:
    with pytest.raises(ExposureRefused, match="ASSAY_API_KEYS"):
        Settings(host=host).check_exposure()
    Settings(host=host, api_keys=KEYS).check_exposure()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    Settings(host=host).check_exposure()


@pytest.mark.parametrize("keys", ["short", "fifteen-letters", "long-enough-to-be-used,short"])
def test_weak_keys_are_refused_without_showing_them(monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    monkeypatch.setenv("ASSAY_API_KEYS", keys)
    with pytest.raises(ValidationError, match="at least 16 characters") as refused:
        Settings()
    assert not any(key in str(refused.value) for key in keys.split(","))


def test_a_page_of_this_server_may_call_it(server: ServerProcess) -> None:
    response = server.client.post("/v1/grade", json={"tasks": format_tasks(1)}, headers={"origin": server.url})
    assert response.status_code == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_names_of_this_machine(server: ServerProcess, host: str) -> None:
    assert server.client.get("/v1/verifiers", headers={"host": host}).status_code == 200
