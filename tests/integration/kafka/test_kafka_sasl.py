"""SASL and mutual TLS at a real Kafka: every mechanism, with and without TLS, renewals, and clear refusals."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import trustme

from headrace import KafkaError, KafkaException, Producer
from headrace.admin import AdminClient, NewTopic
from headrace.net.auth.tokens import unsecured_token
from tests.support.configuration import GENERAL, OLDER
from tests.support.real_kafka import read_all, running
from tests.support.signing_keys import SigningKeys
from tools.kafka import KafkaCluster
from tools.kafka.access import ALLOWED_FILES, ALLOWED_URLS, java_properties, write_properties
from tools.kafka.java import java_tool
from tools.kafka.security import MECHANISMS, USERS

SESSION_MS = 4_000
"""A session is renewed a twentieth of this before its end at the latest: a busy machine needs so much."""
NUMBERS = count()
WAYS = [("MTLS", ""), *((listener, mechanism) for listener in ("SASL_PLAINTEXT", "SASL_SSL")
                        for mechanism in MECHANISMS)]
RENEWED = {"PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"}


@pytest.fixture(scope="module", params=[GENERAL, pytest.param(OLDER, marks=pytest.mark.slow)])
def secured(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """One broker with all listeners; over SASL_PLAINTEXT it wants to be told every 4 s who speaks."""
    yield from running(KafkaCluster(
        request.param, quick=True, listeners=("SSL", "MTLS", "SASL_PLAINTEXT", "SASL_SSL", "OIDC"),
        properties={f"listener.name.sasl_plaintext.{name.lower()}.connections.max.reauth.ms": str(SESSION_MS)
                    for name in RENEWED}))


def go_the_whole_way(cluster: KafkaCluster, properties: dict[str, Any]) -> None:
    """Make a topic, write, and read, each with a client of its own."""
    topic = f"secured-{next(NUMBERS)}"
    with AdminClient(properties) as admin:
        admin.create_topics([NewTopic(topic, 1)])[topic].result(10)
    with Producer(properties) as producer:
        for i in range(100):
            producer.produce(topic, str(i))
        assert producer.flush(10) == 0
    assert [m.value() for m in read_all(cluster, topic, 100, **properties)] == [str(i).encode() for i in range(100)]


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_every_client_works_over_each_listener(secured: KafkaCluster, listener: str, mechanism: str) -> None:
    go_the_whole_way(secured, secured.client_properties(listener, mechanism))


def test_signed_tokens_from_a_token_endpoint_are_taken(secured: KafkaCluster) -> None:
    before = len(secured.tokens.asked)
    go_the_whole_way(secured, secured.client_properties("OIDC", "OAUTHBEARER"))
    assert len(secured.tokens.asked) - before == 3, "one token for each client, whatever the number of its connections"


@pytest.mark.parametrize(("grant", "algorithm"), [
    ("urn:ietf:params:oauth:grant-type:jwt-bearer", "RS256"), ("urn:ietf:params:oauth:grant-type:jwt-bearer", "ES256"),
    ("client_credentials", "RS256")])
def test_tokens_that_an_endpoint_gives_for_a_signed_assertion_are_taken(
    secured: KafkaCluster, tmp_path: Path, grant: str, algorithm: str
) -> None:
    keys = SigningKeys(tmp_path)
    key, other = (keys.rsa, keys.other_rsa) if algorithm == "RS256" else (keys.ec, keys.rsa)
    secured.tokens.verify = lambda assertion: keys.verified(key, assertion)[1]
    given = secured.client_properties("OIDC", "OAUTHBEARER")
    del given["sasl.oauthbearer.client.secret"]
    said = {"algorithm": algorithm, "claim.sub": "alice", "claim.iss": "me", "claim.aud": secured.tokens.url,
            "private.key.file": key}
    properties = {**given, "sasl.oauthbearer.grant.type": grant,
                  **{f"sasl.oauthbearer.assertion.{name}": value for name, value in said.items()}}
    go_the_whole_way(secured, properties)
    said |= {"private.key.file": other, "algorithm": "RS256"}
    properties |= {f"sasl.oauthbearer.assertion.{name}": value for name, value in said.items()}
    with AdminClient(properties) as admin, pytest.raises(KafkaException, match="invalid_grant") as refused:
        admin.list_topics(timeout=10)
    assert refused.value.error == KafkaError._AUTHENTICATION


@pytest.mark.parametrize("retriever", ["JwtBearerJwtRetriever", "DefaultJwtRetriever"])
def test_with_java_s_properties_the_same_assertion_is_sent_as_by_java(
    secured: KafkaCluster, tmp_path: Path, retriever: str
) -> None:
    keys, url = SigningKeys(tmp_path), secured.tokens.url
    secured.tokens.verify = lambda assertion: keys.verified(keys.rsa, assertion)[1]
    (tmp_path / "template").write_text('{"header": {"kid": "k"}, "payload": {"sub": "alice", "role": ["a", 1]}}')
    said = {"claim.iss": "me", "claim.aud": url, "claim.exp.seconds": "20", "claim.nbf.seconds": "10",
            "claim.jti.include": "true", "private.key.file": keys.rsa, "template.file": str(tmp_path / "template")}
    given = {
        **java_properties("OIDC", "OAUTHBEARER", secured.certificates, url), "sasl.oauthbearer.scope": "x y",
        "sasl.oauthbearer.jwt.retriever.class": f"org.apache.kafka.common.security.oauthbearer.{retriever}",
        **{f"sasl.oauthbearer.assertion.{name}": value for name, value in said.items()}}
    done = java_tool(
        "topics", "--bootstrap-server", secured.bootstrap("OIDC"), "--command-config",
        str(write_properties(tmp_path / "java", given)), "--list",
        options=[f"-D{ALLOWED_URLS}={url}", f"-D{ALLOWED_FILES}={keys.rsa},{tmp_path / 'template'}"])
    assert done.returncode == 0, done.stderr.decode()
    theirs = dict(parse_qsl(secured.tokens.asked[-1]))
    assert secured.certificates is not None
    with AdminClient({**given, "bootstrap.servers": secured.bootstrap("OIDC"),
                      "https.ca.location": str(secured.certificates.ca)}) as admin:
        assert admin.list_topics(timeout=10).brokers
    ours = dict(parse_qsl(secured.tokens.asked[-1]))
    seen = []
    for form in (theirs, ours):
        name = "assertion" if retriever == "JwtBearerJwtRetriever" else "client_assertion"
        header, claims = keys.verified(keys.rsa, form.pop(name))
        assert len(claims.pop("jti")) == 36
        made_at = claims.pop("iat")
        seen.append((form, header, claims, claims.pop("exp") - made_at, made_at - claims.pop("nbf")))
    assert seen[0] == seen[1]


def oidc(cluster: KafkaCluster) -> dict[str, Any]:
    properties = cluster.client_properties("OIDC", "OAUTHBEARER")
    return {name: value for name, value in properties.items() if "oauthbearer" not in name}


def test_kafka_stores_a_password_as_it_is_and_so_do_we_take_it(secured: KafkaCluster) -> None:
    properties = {**secured.client_properties("SASL_SSL"), "sasl.username": "dora", "sasl.password": USERS["dora"]}
    with AdminClient(properties) as admin:
        assert admin.list_topics(timeout=5).brokers


# Renewal


def test_producers_under_load_renew_their_sessions_on_one_connection_and_lose_nothing(secured: KafkaCluster) -> None:
    properties = {name: secured.client_properties("SASL_PLAINTEXT", name) for name in sorted(RENEWED)}
    port = int(properties["PLAIN"]["bootstrap.servers"].rpartition(":")[2])
    errors: list[KafkaError] = []
    reports = {name: Reports() for name in properties}
    topics = {name: f"renewed-{next(NUMBERS)}" for name in properties}
    producers = {name: Producer({**given, "error_cb": errors.append}) for name, given in properties.items()}
    for name, producer in producers.items():
        producer.produce(topics[name], b"first")
        assert producer.flush(10) == 0
    before, sent, ends_at = sockets_to(port), 0, time.monotonic() + 2 * SESSION_MS / 1000 + 0.2
    while time.monotonic() < ends_at:
        for name, producer in producers.items():
            producer.produce(topics[name], str(sent), on_delivery=reports[name])
            producer.poll(0)
        sent += 1
        time.sleep(0.001)
    assert [producer.flush(10) for producer in producers.values()] == [0, 0, 0]
    after = sockets_to(port)
    for producer in producers.values():
        producer.close()
    assert [str(error) for error in errors] == []
    assert after == before
    assert len(before) == len(producers)
    for report in reports.values():
        assert report.errors == []
        assert report.offsets == list(range(1, sent + 1))


class Reports:
    def __init__(self) -> None:
        self.offsets: list[Any] = []
        self.errors: list[KafkaError] = []

    def __call__(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.offsets.append(message.offset())
        else:
            self.errors.append(error)


def sockets_to(port: int) -> set[str]:
    """This process's open connections to a port, as the system names them."""
    own = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            own.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:
            continue
    with open("/proc/self/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return {row[9] for row in rows if int(row[2].rpartition(":")[2], 16) == port and f"socket:[{row[9]}]" in own}


def test_records_of_a_producer_that_was_let_in_wait_for_the_next_token(secured: KafkaCluster) -> None:
    """As in librdkafka: where a token is late, or a password was replaced, records had no other fault."""
    away: list[bool] = []
    reports = Reports()
    topics = [f"waits-{next(NUMBERS)}" for _ in range(2)]

    def token(config: str) -> tuple[str, float]:
        if away:
            raise ConnectionError("the identity provider is away")
        made = unsecured_token("principal=alice lifeSeconds=3", {}, time.time())
        return made.value, made.expires_at

    given = secured.client_properties("SASL_PLAINTEXT", "OAUTHBEARER")
    properties = {name: value for name, value in given.items() if "oauthbearer" not in name}
    with Producer({**properties, "oauth_cb": token, "error_cb": lambda error: None}) as producer:
        producer.produce(topics[0], b"first", on_delivery=reports)
        assert producer.flush(10) == 0
        away.append(True)
        time.sleep(4)
        for topic in topics:
            producer.produce(topic, b"late", on_delivery=reports)
        assert producer.flush(1) == 2
        assert reports.errors == []
        away.clear()
        assert producer.flush(20) == 0
    assert reports.errors == []
    assert sorted(reports.offsets) == [0, 0, 1]


# Refusals


def wrong(cluster: KafkaCluster, case: str) -> tuple[dict[str, Any], int, str]:
    """Properties that cannot work, and the code and text of the error that must come."""
    scram, plain = cluster.client_properties("SASL_SSL"), cluster.client_properties("SASL_PLAINTEXT", "PLAIN")
    authentication, tls = KafkaError._AUTHENTICATION, KafkaError._SSL
    strict = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    old = unsecured_token("principal=alice", {}, time.time() - 7200).value
    unsigned = old.partition(".")[2]
    return {
        "wrong password, SCRAM": ({**scram, "sasl.password": "wrong"}, authentication, '"sasl.password"'),
        "wrong password, PLAIN": ({**plain, "sasl.password": "wrong"}, authentication, "Invalid username or password"),
        "wrong mechanism": ({**oidc(cluster), **strict}, authentication, "it takes OAUTHBEARER"),
        "expired token": ({**cluster.client_properties("SASL_PLAINTEXT", "OAUTHBEARER"), "oauth_cb":
                           lambda config: (old, time.time() + 60), "enable.sasl.oauthbearer.unsecure.jwt": False},
                          authentication, "invalid_token"),
        "unsigned token": ({**oidc(cluster), "oauth_cb": lambda config: (f"e30.{unsigned}", time.time() + 60)},
                           authentication, "invalid_token"),
        "another authority": ({**without(scram, "ssl.ca.location"), "ssl.ca.pem":
                               trustme.CA().cert_pem.bytes().decode()}, tls, '"ssl.ca.location"'),
        "another host": ({**scram, "bootstrap.servers": scram["bootstrap.servers"].replace("127.0.0.1", "127.1")},
                         tls, "for another host"),
        "no certificate": (without(cluster.client_properties("MTLS"), "ssl.certificate.location", "ssl.key.location"),
                           tls, '"ssl.certificate.location"'),
        "certificate of another authority": ({**cluster.client_properties("MTLS"), **foreign_identity()}, tls,
                                             "refuses this client's certificate"),
        "SASL at a port without": ({**plain, "bootstrap.servers": cluster.bootstrap_servers}, authentication,
                                   "without SASL"),
        "plaintext at a TLS port": ({**plain, "bootstrap.servers": scram["bootstrap.servers"]}, tls, '"sasl_ssl"'),
        "TLS at a plaintext port": ({**scram, "bootstrap.servers": plain["bootstrap.servers"]}, KafkaError._TRANSPORT,
                                    '"security.protocol"'),
        "no SASL at a SASL port": ({"bootstrap.servers": plain["bootstrap.servers"]}, KafkaError._TRANSPORT,
                                   '"sasl_plaintext"'),
    }[case]


def foreign_identity() -> dict[str, str]:
    """A certificate that no broker knows the authority of, and its key."""
    leaf = trustme.CA().issue_cert("client@headrace.test")
    return {"ssl.certificate.location": "", "ssl.key.location": "",
            "ssl.certificate.pem": "".join(blob.bytes().decode() for blob in leaf.cert_chain_pems),
            "ssl.key.pem": leaf.private_key_pem.bytes().decode()}


def without(properties: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in names}


@pytest.mark.parametrize("case", [
    "wrong password, SCRAM", "wrong password, PLAIN", "wrong mechanism", "expired token", "unsigned token",
    "another authority", "another host", "no certificate", "certificate of another authority",
    "SASL at a port without", "plaintext at a TLS port", "TLS at a plaintext port", "no SASL at a SASL port",
])
def test_a_wrong_way_is_soon_an_error_that_names_the_cause(secured: KafkaCluster, case: str) -> None:
    properties, code, text = wrong(secured, case)
    errors: list[KafkaError] = []
    reported: Future[KafkaError | None] = Future()
    started = time.monotonic()
    producer = Producer({**properties, "error_cb": errors.append})
    producer.produce("t", b"v", on_delivery=lambda error, message: reported.set_result(error))
    while not errors and time.monotonic() - started < 20:
        producer.poll(0.02)
    assert errors, "nothing was reported"
    assert errors[0] == code
    assert text in errors[0].str()
    assert "\n" not in errors[0].str()
    if code != KafkaError._TRANSPORT:  # those may pass; of others the records are told, and so are calls
        producer.flush(20)
        assert reported.result(0) == code
        with pytest.raises(KafkaException) as failed:
            producer.list_topics(timeout=10)
        assert failed.value.error == code
        assert time.monotonic() - started < 20
    producer.purge()
    producer.close()
    for secret in (*USERS.values(), "wrong"):
        assert secret not in " ".join(map(repr, errors))
