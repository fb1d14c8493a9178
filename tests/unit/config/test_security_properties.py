"""Properties of security: Java's and librdkafka's spellings, and what contradicts what."""

from typing import Any

import pytest

from headrace.config import ADMIN, Config
from headrace.config.security_properties import GRANTS, JWT_BEARER, by_assertion, unheeded_security
from headrace.errors import ConfigError

SASL = {"security.protocol": "SASL_SSL"}
PLAIN = {**SASL, "sasl.mechanism": "PLAIN"}
OIDC = {**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "https://h/t"}
ASSERTION = "sasl.oauthbearer.assertion."
KEY, READY = {f"{ASSERTION}private.key.file": "k"}, {f"{ASSERTION}file": "f"}
SECRET = {"sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s"}
BEARER = {**OIDC, "sasl.oauthbearer.grant.type": JWT_BEARER}
RETRIEVERS = "org.apache.kafka.common.security.oauthbearer."


def config(**properties: Any) -> Config:
    return Config(ADMIN, {"bootstrap.servers": "b:1", **properties})


@pytest.mark.parametrize("line", [
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="U" password="P w\\"d;";',
    ' required username="U" password="P w\\"d;";',
    'shaded.PlainLoginModule REQUIRED\n  username=U\n  password="P w\\"d;" ; ',
])
def test_java_s_line_of_credentials_is_understood(line: str) -> None:
    made = config(**PLAIN, **{"sasl.jaas.config": line, "ssl.protocol": "TLSv1.3", "ssl.enabled.protocols": "TLSv1.3",
                              "ssl.endpoint.identification.algorithm": "HTTPS"})
    assert (made["sasl.username"], made["sasl.password"]) == ("U", 'P w"d;')
    assert "P w" not in repr(made)


def test_the_options_of_each_of_java_s_modules_are_taken_over() -> None:
    scram = config(**SASL, **{"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config":
                              'x.ScramLoginModule required username="i" password="k" tokenauth="true";'})
    assert scram["sasl.scram.tokenauth"] is True
    oauth = config(**SASL, **{
        "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "https://h/t", "sasl.jaas.config":
        'x.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="a b" extension_logicalCluster="lkc" '
        'extension_identityPoolId="p-1,p-2";'})
    assert oauth["sasl.oauthbearer.method"] == "oidc"
    assert [oauth[f"sasl.oauthbearer.{name}"] for name in ("client.id", "client.secret", "scope", "extensions")] == [
        "i", "s", "a b", r"logicalCluster=lkc,identityPoolId=p-1\,p-2"]
    line = 'x.OAuthBearerLoginModule required clientId="i" clientSecret="s" extension_a="b";'
    given = config(**OIDC, **{"sasl.oauthbearer.extensions": "c=d", "sasl.jaas.config": line})
    assert given["sasl.oauthbearer.extensions"] == "c=d"
    unsecured = config(**SASL, **{"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config":
                                  'x.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice" '
                                  'unsecuredLoginLifetimeSeconds="60";'})
    assert unsecured["enable.sasl.oauthbearer.unsecure.jwt"] is True
    assert unsecured["sasl.oauthbearer.config"] == "principal=alice lifeSeconds=60"
    kerberos = config(**SASL, **{"sasl.mechanism": "GSSAPI", "sasl.jaas.config":
                                 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true '
                                 'keyTab="/k" principal="a@R" serviceName="broker";'})
    assert [kerberos[f"sasl.kerberos.{name}"] for name in ("keytab", "principal", "service.name")] == [
        "/k", "a@R", "broker"]


@pytest.mark.parametrize(("properties", "text"), [
    ({**SASL, "sasl.username": "u"}, '"sasl.mechanism" is missing'),
    ({**SASL, "sasl.mechanism": "SCRAM-SHA-256", "sasl.password": "p"}, '"sasl.username" is missing'),
    ({**PLAIN, "sasl.username": "u"}, '"sasl.password" is missing'),
    ({**PLAIN, "sasl.username": "u\0", "sasl.password": "p"}, "NUL"),
    ({**SASL, "sasl.mechanism": "SCRAM-SHA-1"}, "did you mean"),
    ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, 'needs a source of tokens: "oauth_cb"'),
    ({**SASL, "sasl.mechanism": "OAUTHBEARER", "oauth_cb": print, "sasl.oauthbearer.method": "oidc"}, "exclude"),
    ({**SASL, "sasl.mechanism": "OAUTHBEARER", "oauth_cb": print, "enable.sasl.oauthbearer.unsecure.jwt": True},
     "exclude"),
    ({**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"}, "token.endpoint.url"),
    ({**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "https://h"}, "client.id"),
    ({**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "h/t",
      "sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s"}, "expected https://host/path"),
    *(({**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s"}, "expected https://host/path")
      for url in ("https://h:x/t", "https://h:99999/t", "https://[::1/t", "https://h/a b", "https://h/a\nb", "ftp://h")),
    ({**OIDC, **KEY, "sasl.oauthbearer.grant.type": "password"}, "expected one of client_credentials, urn:ietf:param"),
    ({**OIDC, "sasl.oauthbearer.client.id": "i"},
     'client.secret" is missing: "sasl.oauthbearer.method": "oidc" needs it, or "sasl.oauthbearer.assertion.private'),
    (BEARER, '"sasl.oauthbearer.assertion.private.key.file" is missing: "sasl.oauthbearer.grant.type": '),
    ({**BEARER, **SECRET, f"{ASSERTION}claim.iss": "i"}, 'private.key.file" is missing'),
    ({**BEARER, **KEY, f"{ASSERTION}private.key.pem": "hunter2"}, 'private.key.pem" exclude each other'),
    *(({**grant, **READY, f"{ASSERTION}{name}": value}, f'assertion.{name}" exclude each other: what is in the ')
      for grant in (BEARER, OIDC) for name, value in (
          ("private.key.file", "k"), ("private.key.pem", "hunter2"), ("private.key.passphrase", "hunter2"),
          ("jwt.template.file", "t"), ("claim.sub", "s"), ("claim.aud", "a"), ("claim.iss", "i"),
          ("claim.jti.include", "false"), ("claim.exp.seconds", 300), ("claim.nbf.seconds", 60))),
    ({**BEARER, **KEY, "sasl.oauthbearer.jwt.retriever.class": f"{RETRIEVERS}ClientCredentialsJwtRetriever"},
     "contradict each other: give one of them"),
    ({**BEARER, **KEY, "sasl.oauthbearer.jwt.retriever.class": f"{RETRIEVERS}FileJwtRetriever"},
     "other classes of Java cannot run here: give oauth_cb"),
    ({**PLAIN, "sasl.jaas.config": "username=hunter2"}, "cannot be read"),
    ({**PLAIN, "sasl.jaas.config": 'a.ScramLoginModule required username="u" password="p";'}, "does not go with"),
    ({**PLAIN, "sasl.jaas.config": "a.LdapLoginModule required;"}, "not known"),
    ({**PLAIN, "sasl.username": "v", "sasl.jaas.config": 'required username="u" password="p";'}, "different values"),
])
def test_contradictions_are_refused_with_the_reason(properties: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config(**properties)
    assert text in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(("properties", "text"), [
    ({"sasl.mechanism": "PLAIN", "sasl.username": "u"}, '"sasl.mechanism" is given and has no effect: '
     '"security.protocol" is "plaintext", which is without SASL: set it to "sasl_ssl" (or "sasl_plaintext")'),
    ({"security.protocol": "ssl", "sasl.password": "p"}, 'set it to "sasl_ssl"'),
    ({**PLAIN, "sasl.username": "u", "sasl.password": "p"}, None),
    ({"security.protocol": "ssl"}, None),
])
def test_credentials_that_nobody_asks_for_are_taken_and_told(properties: dict[str, Any], text: str | None) -> None:
    made = config(**properties)
    told = unheeded_security(made.given, made["security.protocol"])
    assert told is None if text is None else text in str(told)


@pytest.mark.parametrize(("properties", "shown"), [
    ({**OIDC, **SECRET}, False),
    ({**OIDC, **SECRET, **KEY}, False),
    ({**OIDC, **SECRET, f"{ASSERTION}claim.iss": "i"}, False),
    ({**OIDC, **SECRET, **KEY, f"{ASSERTION}claim.iss": "i"}, True),
    ({**OIDC, **SECRET, **KEY, **READY, f"{ASSERTION}claim.iss": "i"}, True),
    ({**OIDC, **KEY}, True),
    ({**OIDC, **READY}, True),
    ({**BEARER, **SECRET, f"{ASSERTION}private.key.pem": "k"}, True),
    ({**BEARER, **READY, f"{ASSERTION}algorithm": "ES256", f"{ASSERTION}claim.sub": ""}, True),
])
def test_an_assertion_is_shown_in_a_secret_s_place_as_java_does_it(properties: dict[str, Any], shown: bool) -> None:
    assert by_assertion(config(**properties)) is shown


@pytest.mark.parametrize(("name", "grant"), [
    ("DefaultJwtRetriever", GRANTS[0]), ("ClientCredentialsJwtRetriever", GRANTS[0]),
    ("JwtBearerJwtRetriever", JWT_BEARER)])
def test_java_s_class_that_gets_tokens_is_the_grant_type_that_it_is(name: str, grant: str) -> None:
    made = config(**OIDC, **SECRET, **KEY, **{"sasl.oauthbearer.jwt.retriever.class": f"{RETRIEVERS}{name}"})
    assert made["sasl.oauthbearer.grant.type"] == grant


def test_keys_and_their_passwords_are_not_shown() -> None:
    made = config(**BEARER, **{f"{ASSERTION}private.key.{name}": "hunter2" for name in ("pem", "passphrase")})
    assert "hunter2" not in repr(made)
