"""HTTP to registries: retries, failover, one time for the whole call, and answers that are none."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from headrace.client.registry.answers import MOST_ANSWER_BYTES
from headrace.client.registry.http_transport import (
    HttpTransport,
    RegistryRequest,
    jittered_s,
    tls_of,
)
from headrace.client.registry.registry_settings import RegistrySettings, TlsFiles
from headrace.errors import ConfigError, DependencyError, SchemaRegistryError
from tests.support.scripted_registry import CLOSE, CUT, Said, ScriptedRegistry, scripted_registry

SUBJECTS = RegistryRequest("GET", ("subjects",), {"deleted": False})


class Waits:
    """Keeps how long a transport wanted to wait, and does not."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)


def run(conf: dict[str, Any], *requests: RegistryRequest, waits: Waits | None = None, chance: float = 0.5) -> Any:
    """The answer to the last request."""
    async def main() -> Any:
        transport = HttpTransport(RegistrySettings(conf), waits or Waits(), lambda: chance)
        try:
            for request in requests or (SUBJECTS,):
                answer = await transport.send(request, {})
            return answer
        finally:
            await transport.sessions.aclose()

    return asyncio.run(main())


def failure(conf: dict[str, Any], *requests: RegistryRequest, waits: Waits | None = None) -> SchemaRegistryError:
    with pytest.raises(SchemaRegistryError) as raised:
        run(conf, *requests, waits=waits)
    return raised.value


@pytest.fixture
def nobody() -> Iterator[str]:
    """A URL where nobody listens, and whose port nobody else is given."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


def test_a_request_has_an_escaped_path_a_query_and_json(registry: ScriptedRegistry) -> None:
    registry.answers({"id": 1})
    request = RegistryRequest("POST", ("subjects", ":.ctx:a/b ?#%ü", "versions"),
                              {"normalize": True, "k": ["a b", "c&d"]}, {"schema": "ü"})
    assert run({"url": f"{registry.url}/base/"}, request) == {"id": 1}
    (asked,) = registry.asked
    assert (asked.method, asked.path) == ("POST", "/base/subjects/%3A.ctx%3Aa%2Fb%20%3F%23%25%C3%BC/versions")
    assert asked.query == {"normalize": ["true"], "k": ["a b", "c&d"]}
    assert asked.body == {"schema": "ü"}
    assert asked.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert asked.headers["accept"].startswith("application/vnd.schemaregistry.v1+json")
    assert asked.headers["confluent-accept-unknown-properties"] == "true"
    assert asked.headers["user-agent"].startswith("headrace/")


@pytest.mark.parametrize(("name", "path"), [
    ("..", "/subjects/%2E%2E"), (".", "/subjects/%2E"), ("a..b", "/subjects/a..b")])
def test_a_subject_of_dots_is_no_way_up(registry: ScriptedRegistry, name: str, path: str) -> None:
    registry.answers([])
    run({"url": registry.url}, RegistryRequest("DELETE", ("subjects", name), {}))
    assert registry.asked[0].path == path


def test_connections_are_kept(registry: ScriptedRegistry) -> None:
    registry.otherwise = lambda asked: []
    run({"url": registry.url}, *[SUBJECTS] * 5)
    assert (len(registry.asked), registry.connections) == (5, 1)


def test_no_content_is_none(registry: ScriptedRegistry) -> None:
    registry.answers(Said(None, 204), Said(b""))
    assert run({"url": registry.url}) is None
    assert run({"url": registry.url}) is None


@pytest.mark.parametrize("status", [401, 403, 404, 405, 409, 422, 501])
def test_a_refusal_is_said_at_once_with_the_registrys_code_and_words(
    registry: ScriptedRegistry, nobody: str, status: int
) -> None:
    registry.answers(Said({"error_code": status * 100 + 1, "message": "no way"}, status))
    error = failure({"url": f"{registry.url},{nobody}"})
    assert (error.http_status_code, error.error_code, error.error_message) == (status, status * 100 + 1, "no way")
    assert len(registry.asked) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_server_that_may_do_better_is_asked_again(registry: ScriptedRegistry, status: int) -> None:
    registry.answers(Said({"message": "later"}, status), Said({"message": "later"}, status), ["a"])
    waits = Waits()
    assert run({"url": registry.url, "retries.wait.ms": 100, "retries.max.wait.ms": 10_000}, waits=waits) == ["a"]
    assert waits.waited == [0.05, 0.1]


def test_the_last_answer_is_the_error_when_there_are_no_retries_left(registry: ScriptedRegistry) -> None:
    registry.answers(*[Said({"error_code": 50001, "message": f"error {n}"}, 500) for n in range(3)])
    error = failure({"url": registry.url, "max.retries": 2})
    assert (error.error_code, error.error_message) == (50001, "error 2")


@pytest.mark.parametrize("how", [CLOSE, CUT])
def test_a_lost_connection_is_tried_again(registry: ScriptedRegistry, how: str) -> None:
    registry.answers(how, how, ["a"])
    assert run({"url": registry.url}) == ["a"]
    assert len(registry.asked) == 3


@pytest.mark.parametrize("how", [CLOSE, CUT])
def test_connections_that_are_always_lost_are_an_error(registry: ScriptedRegistry, how: str) -> None:
    registry.otherwise = lambda asked: how
    error = failure({"url": registry.url, "max.retries": 1})
    assert (error.http_status_code, error.error_code) == (-1, -1)
    assert error.error_message.startswith(f"no answer from {registry.url}: ")
    assert len(registry.asked) == 2


def test_a_registry_that_is_not_there_is_an_error_with_its_cause(nobody: str) -> None:
    waits = Waits()
    error = failure({"url": nobody}, waits=waits)
    assert "no answer from http://127.0.0.1:" in str(error)
    assert "is the registry running, and is url right?" in str(error)
    assert type(error.__cause__).__name__ == "ConnectError"
    assert len(waits.waited) == 3


def test_the_next_registry_is_asked_and_stays_the_first_one(registry: ScriptedRegistry, nobody: str) -> None:
    registry.otherwise = lambda asked: ["a"]
    waits = Waits()
    assert run({"url": f"{nobody},{registry.url}", "max.retries": 1}, SUBJECTS, SUBJECTS, waits=waits) == ["a"]
    assert (len(registry.asked), len(waits.waited)) == (2, 1)


def test_a_call_asks_each_registry_though_others_find_one_meanwhile(registry: ScriptedRegistry) -> None:
    """What other calls found while this one waited does not make it ask the same registry twice."""
    registry.otherwise = lambda asked: ["a"]
    go = threading.Event()
    with scripted_registry() as broken:
        broken.answers(Said({"message": "broken"}, 503, until=go))
        broken.otherwise = lambda asked: Said({"message": "broken"}, 503)

        async def main() -> None:
            transport = HttpTransport(RegistrySettings({"url": f"{broken.url},{registry.url}", "max.retries": 0}))
            waits = asyncio.create_task(transport.send(SUBJECTS, {}))
            await asyncio.to_thread(broken.came.acquire)
            assert await transport.send(SUBJECTS, {}) == ["a"]
            go.set()
            assert await waits == ["a"]
            await transport.sessions.aclose()

        asyncio.run(main())


def test_a_wait_that_would_outlast_the_call_is_not_begun(registry: ScriptedRegistry) -> None:
    registry.answers(Said({"error_code": 50003, "message": "no leader"}, 500))
    waits = Waits()
    error = failure({"url": registry.url, "timeout": 5, "retries.wait.ms": 60_000, "retries.max.wait.ms": 60_000},
                    waits=waits)
    assert (error.error_code, waits.waited) == (50003, [])


def test_a_registry_that_fails_is_passed_over(registry: ScriptedRegistry) -> None:
    registry.answers(["a"])
    with scripted_registry() as broken:
        broken.otherwise = lambda asked: Said({"message": "broken"}, 503)
        assert run({"url": f"{broken.url},{registry.url}", "max.retries": 2}) == ["a"]
        assert len(broken.asked) == 3


def test_retries_and_other_registries_are_told_at_debug_level_without_secrets(
    registry: ScriptedRegistry, nobody: str, caplog: pytest.LogCaptureFixture
) -> None:
    registry.answers([])
    with caplog.at_level("DEBUG"):
        gone = nobody.replace("://", "://user:secret@")
        run({"url": f"{gone},{registry.url}", "max.retries": 1, "bearer.auth.credentials.source": "STATIC_TOKEN",
             "bearer.auth.token": "secret"})
    told = [record.getMessage() for record in caplog.records if record.name == "headrace"]
    assert [("it is tried again" in each, "1 other registries are left" in each) for each in told] == [
        (True, False), (False, True)]
    assert "secret" not in caplog.text


def test_when_all_fail_the_last_one_says_why(registry: ScriptedRegistry, nobody: str) -> None:
    registry.otherwise = lambda asked: Said({"error_code": 50003, "message": "no leader"}, 500)
    error = failure({"url": f"{nobody},{registry.url}", "max.retries": 0})
    assert (error.http_status_code, error.error_code, error.error_message) == (500, 50003, "no leader")


def test_the_time_is_that_of_the_whole_call_and_each_registry_has_its_share(registry: ScriptedRegistry) -> None:
    never = threading.Event()
    registry.otherwise = lambda asked: Said([], until=never)
    try:
        with scripted_registry() as second:
            second.answers(["a"])
            assert run({"url": f"{registry.url},{second.url}", "timeout": 0.4}) == ["a"]
        error = failure({"url": registry.url, "timeout": 0.5})
    finally:
        never.set()
    assert error.error_message == f"no answer from {registry.url} within 0.5 seconds (timeout)"
    assert (error.http_status_code, error.error_code) == (-1, -1)
    assert len(registry.asked) == 2


def test_a_server_says_how_long_to_wait_up_to_the_limit(registry: ScriptedRegistry) -> None:
    said = [Said({"message": "slowly"}, 429, (("Retry-After", text),)) for text in ("3", "900", "Wed, 21 Oct 2015")]
    registry.answers(*said, [])
    waits = Waits()
    run({"url": registry.url, "retries.wait.ms": 0}, waits=waits)
    assert waits.waited == [3.0, 20.0, 0.0]


def test_what_is_not_json_is_an_error(registry: ScriptedRegistry) -> None:
    for body, why in ((b"<html>login</html>", "it is not JSON: '<html>login</html>'"), (b"\xff\xfe", "it is not JSON"),
                      (b"[" * 200_000, "it is nested too deep: '[[["), (b'{"a":', "it is not JSON")):
        registry.answers(Said(body))
        error = failure({"url": registry.url})
        assert (error.http_status_code, error.error_code) == (200, -1)
        assert why in error.error_message
        assert len(error.error_message) < 400


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b"{}", b'"text"', b'{"message": 3}', b"[" * 200_000])
def test_a_refusal_that_says_nothing_is_shown_as_it_is(registry: ScriptedRegistry, body: bytes) -> None:
    registry.answers(Said(body, 403))
    error = failure({"url": registry.url})
    assert (error.http_status_code, error.error_code) == (403, -1)
    assert error.error_message.startswith("Unknown Schema Registry Error: ")
    assert len(error.error_message) < 400


def test_a_redirection_is_not_followed_for_credentials_would_be(registry: ScriptedRegistry) -> None:
    registry.answers(Said(b"", 307, (("Location", "http://elsewhere/subjects"),)))
    error = failure({"url": registry.url})
    assert error.http_status_code == 307
    assert "(it points to http://elsewhere/subjects)" in error.error_message


def test_an_answer_of_a_hundred_megabytes_is_not_read(registry: ScriptedRegistry) -> None:
    registry.answers(Said(b"x" * 100_000_000))
    tracemalloc.start()
    try:
        error = failure({"url": registry.url})
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.error_message == "the registry's answer is larger than 33554432 bytes"
    assert error.http_status_code == 200
    assert most < 3 * MOST_ANSWER_BYTES


def test_an_answer_in_an_encoding_is_refused_for_it_could_be_a_bomb(registry: ScriptedRegistry) -> None:
    registry.answers(Said(b"", headers=(("Content-Encoding", "gzip"),)))
    assert "in the encoding gzip, which it was not asked for" in failure({"url": registry.url}).error_message
    assert registry.asked[0].headers["accept-encoding"] == "identity"


def test_basic_credentials_are_sent(registry: ScriptedRegistry) -> None:
    registry.answers([])
    run({"url": registry.url.replace("://", "://user:pass@")})
    assert registry.asked[0].headers["authorization"] == "Basic dXNlcjpwYXNz"
    assert registry.asked[0].headers["host"] == f"127.0.0.1:{registry.port}"


def test_a_proxy_of_the_environment_is_heeded(
    registry: ScriptedRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.answers(["through"])
    monkeypatch.setenv("HTTP_PROXY", registry.url)
    assert run({"url": "http://registry.invalid:8081"}) == ["through"]


def test_a_proxy_is_asked_in_the_place_of_the_registry(registry: ScriptedRegistry) -> None:
    registry.answers(["through"])
    assert run({"url": "http://registry.invalid:8081", "proxy": registry.url}) == ["through"]
    assert registry.asked[0].headers["host"] == "registry.invalid:8081"


def test_a_proxy_that_cannot_be_one_is_told_without_its_password() -> None:
    with pytest.raises(ConfigError, match="proxy cannot be used") as raised:
        HttpTransport(RegistrySettings({"url": "http://a", "proxy": "gopher://me:secret@proxy"}))
    assert "secret" not in str(raised.value)


def test_a_task_that_is_cancelled_ends_the_request(registry: ScriptedRegistry) -> None:
    never = threading.Event()
    registry.otherwise = lambda asked: Said([], until=never)

    async def main() -> None:
        transport = HttpTransport(RegistrySettings({"url": registry.url}))
        task = asyncio.create_task(transport.send(SUBJECTS, {}))
        await asyncio.to_thread(registry.came.acquire)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await transport.sessions.aclose()

    try:
        asyncio.run(main())
    finally:
        never.set()


def test_loops_that_run_at_once_keep_their_connections(registry: ScriptedRegistry) -> None:
    registry.otherwise = lambda asked: ["a"]
    transport = HttpTransport(RegistrySettings({"url": registry.url}))
    turn = threading.Barrier(2, timeout=30)

    async def ask() -> None:
        for _ in range(3):
            turn.wait()
            await transport.send(SUBJECTS, {})
        await transport.sessions.aclose()

    threads = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(registry.asked), registry.connections) == (6, 2)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # an error's traceback would keep the next one
def test_each_loop_has_connections_of_its_own(registry: ScriptedRegistry) -> None:
    """Those of a loop that has ended cannot be closed any more."""
    registry.otherwise = lambda asked: ["a"]
    transport = HttpTransport(RegistrySettings({"url": registry.url}))
    for _ in range(2):
        assert asyncio.run(transport.send(SUBJECTS, {})) == ["a"]
    assert registry.connections == 2
    del transport
    gc.collect()


def test_waits_double_up_to_their_limit_and_chance_takes_a_part() -> None:
    assert [jittered_s(1.0, 20.0, failures, 1.0) for failures in (1, 2, 3, 6, 5000)] == [1.0, 2.0, 4.0, 20.0, 20.0]
    assert jittered_s(1.0, 20.0, 3, 0.25) == 1.0


def test_without_the_http_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(DependencyError, match=r"pip install headrace\[registry\]"):
        HttpTransport(RegistrySettings({"url": "http://a"}))


class Files:
    """Certificates of a registry, of a client, and of their authority, as files."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.ca, self.certificate, self.key, self.both = (
            str(folder / name) for name in ("ca.pem", "client.pem", "client.key", "both.pem"))
        authority.cert_pem.write_to_path(self.ca)
        client = authority.issue_cert("client@example.org")
        client.cert_chain_pems[0].write_to_path(self.certificate)
        client.private_key_pem.write_to_path(self.key)
        client.private_key_and_cert_chain_pem.write_to_path(self.both)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(self.server)
        authority.configure_trust(self.server)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


def over_tls(files: Files, conf: dict[str, Any], mode: ssl.VerifyMode = ssl.CERT_NONE) -> Any:
    files.server.verify_mode = mode
    with scripted_registry(files.server) as registry:
        registry.otherwise = lambda asked: ["a"]
        return run({"url": registry.url, **conf})


def test_a_registry_over_tls_is_trusted_by_its_authority(files: Files) -> None:
    assert over_tls(files, {"ssl.ca.location": files.ca}) == ["a"]
    assert over_tls(files, {"ssl.ca.location": False}) == ["a"]


def test_a_registry_that_nobody_vouches_for_is_refused_at_once(files: Files) -> None:
    waits = Waits()
    with scripted_registry(files.server) as registry:
        error = failure({"url": registry.url}, waits=waits)
    assert "its certificate is not trusted (" in error.error_message
    assert "set ssl.ca.location to its authority's" in error.error_message
    assert waits.waited == []


def test_a_client_shows_its_certificate(files: Files) -> None:
    for more in ({"ssl.certificate.location": files.both},
                 {"ssl.certificate.location": files.certificate, "ssl.key.location": files.key}):
        assert over_tls(files, {"ssl.ca.location": files.ca, **more}, ssl.CERT_REQUIRED) == ["a"]
    with pytest.raises(SchemaRegistryError, match="no answer from https"):
        over_tls(files, {"ssl.ca.location": files.ca, "max.retries": 0}, ssl.CERT_REQUIRED)


def test_certificates_that_are_renewed_on_disk_are_used_and_a_request_underway_is_answered(
    tmp_path_factory: pytest.TempPathFactory
) -> None:
    given, renewed = (Files(tmp_path_factory.mktemp(name)) for name in ("given", "renewed"))
    given.server.verify_mode = renewed.server.verify_mode = ssl.CERT_REQUIRED
    may_answer = threading.Event()

    async def main(old: ScriptedRegistry, new: ScriptedRegistry) -> None:
        transport = HttpTransport(RegistrySettings({
            "url": f"{old.url},{new.url}", "max.retries": 0, "ssl.ca.location": given.ca,
            "ssl.certificate.location": given.certificate, "ssl.key.location": given.key}), Waits())
        underway = asyncio.create_task(transport.send(SUBJECTS, {}))
        await asyncio.to_thread(old.came.acquire)
        for name in ("ca", "certificate", "key"):
            Path(getattr(given, name)).write_bytes(Path(getattr(renewed, name)).read_bytes())
        assert await transport.send(SUBJECTS, {}) == ["of the new one"]
        may_answer.set()
        assert await underway == ["of the old one"]
        await transport.sessions.aclose()

    with scripted_registry(given.server) as old, scripted_registry(renewed.server) as new:
        old.answers(Said(["of the old one"], until=may_answer))
        new.answers(["of the new one"])
        asyncio.run(main(old, new))


@pytest.mark.parametrize("named", [
    lambda files: TlsFiles("/no/such.pem", None, None, None), lambda files: TlsFiles(files.key, None, None, None),
    lambda files: TlsFiles(None, "/no/such.pem", None, None), lambda files: TlsFiles(None, files.ca, None, "secret"),
])
def test_files_that_cannot_be_loaded_are_named(files: Files, named: Callable[[Files], TlsFiles]) -> None:
    given = named(files)
    with pytest.raises(ConfigError, match="cannot be loaded") as raised:
        tls_of(given)
    assert str(given.ca or given.certificate) in str(raised.value)
    assert "secret" not in str(raised.value)


def test_who_names_an_authority_trusts_no_other() -> None:
    authority = trustme.CA()
    with authority.cert_pem.tempfile() as path:
        assert len(tls_of(TlsFiles(path, None, None, None)).get_ca_certs()) == 1
