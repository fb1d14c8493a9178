"""Assertions for a token endpoint: what they say, who signed them, and files that cannot be used or are renewed."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.exceptions import InvalidSignature

from headrace.config import ADMIN, Config
from headrace.errors import ConfigError, DependencyError
from headrace.net.auth.assertions import assertion_source
from tests.support.signing_keys import PASSPHRASE, SigningKeys


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> SigningKeys:
    return SigningKeys(tmp_path_factory.mktemp("keys"))


def config(**given: Any) -> Config:
    """With the grant jwt-bearer, and properties under what their names have behind `assertion.`, `_` for a dot."""
    return Config(ADMIN, {
        "bootstrap.servers": "b:1", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "sasl.oauthbearer.token.endpoint.url": "https://idp.invalid/token",
        **{f"sasl.oauthbearer.assertion.{name.replace('_', '.')}": value for name, value in given.items()}})


def test_an_assertion_says_who_asks_whom_and_for_how_long_and_is_signed(keys: SigningKeys) -> None:
    make = assertion_source(config(private_key_file=keys.rsa, claim_sub="alice", claim_iss="me", claim_aud="idp"))
    before = int(time.time())
    header, claims = keys.verified(keys.rsa, make())
    assert header == {"alg": "RS256", "typ": "JWT"}
    assert before <= claims["iat"] <= time.time()
    assert claims == {"sub": "alice", "iss": "me", "aud": "idp", "iat": claims["iat"], "exp": claims["iat"] + 300,
                      "nbf": claims["iat"] - 60}
    with pytest.raises(InvalidSignature):
        keys.verified(keys.other_rsa, make())


def test_nothing_is_said_that_the_properties_do_not_say_but_times_and_an_id_if_wanted(keys: SigningKeys) -> None:
    make = assertion_source(config(private_key_file=keys.rsa, claim_exp_seconds=1, claim_nbf_seconds=0,
                                   claim_jti_include=True))
    made = [keys.verified(keys.rsa, make())[1] for _ in range(2)]
    assert made[0].keys() == {"iat", "exp", "nbf", "jti"}
    assert (made[0]["exp"] - made[0]["iat"], made[0]["nbf"] - made[0]["iat"]) == (1, 0)
    assert UUID(made[0]["jti"]) != UUID(made[1]["jti"])


def test_a_key_of_a_curve_signs_with_two_numbers_of_one_width(keys: SigningKeys) -> None:
    make = assertion_source(config(private_key_file=keys.ec, algorithm="ES256"))
    for _ in range(20):  # a number in 256 is a byte shorter
        assert keys.verified(keys.ec, make())[0] == {"alg": "ES256", "typ": "JWT"}


@pytest.mark.parametrize("form", ["rsa", "old_rsa", "encrypted", "bare"])
@pytest.mark.parametrize("as_text", [False, True], ids=["file", "text"])
def test_a_key_is_taken_in_each_form(keys: SigningKeys, form: str, as_text: bool) -> None:
    path = getattr(keys, form)
    given = {"private_key_pem": f"\n{Path(path).read_text()}\n"} if as_text else {"private_key_file": path}
    made = config(**given, private_key_passphrase=PASSPHRASE)  # of a key without one it is no matter, as in OpenSSL
    keys.verified(keys.rsa, assertion_source(made)())
    assert PASSPHRASE not in repr(made)
    assert "BEGIN" not in repr(made)


def test_the_last_byte_of_a_key_is_no_blank_whatever_it_is(keys: SigningKeys) -> None:
    keys.verified(keys.bare_ec, assertion_source(config(private_key_file=keys.bare_ec, algorithm="ES256"))())


def test_a_template_says_what_the_properties_do_not_say(keys: SigningKeys, tmp_path: Path) -> None:
    template = tmp_path / "template.json"
    template.write_text(json.dumps({
        "header": {"kid": "k", "alg": "none", "typ": "x"},
        "payload": {"sub": "bob", "aud": ["a", "b"], "role": "ü", "exp": 1, "iat": 2, "nbf": 3, "jti": "mine"}}))
    for alias in ("jwt_template_file", "template_file"):
        make = assertion_source(config(private_key_file=keys.rsa, claim_sub="alice", **{alias: str(template)}))
        header, claims = keys.verified(keys.rsa, make())
        assert header == {"kid": "k", "alg": "RS256", "typ": "JWT"}
        now = claims["iat"]
        assert now > 1e9
        assert claims == {"sub": "alice", "aud": ["a", "b"], "role": "ü", "jti": "mine", "iat": now, "exp": now + 300,
                          "nbf": now - 60}


def test_a_ready_assertion_is_read_anew_for_each_request(tmp_path: Path) -> None:
    ready = tmp_path / "assertion"
    ready.write_text("first.one.x\n")
    make = assertion_source(config(file=str(ready)))
    assert make() == "first.one.x"
    ready.write_text("other.one.x")
    assert make() == "other.one.x"
    ready.unlink()
    with pytest.raises(ConfigError, match=r'"sasl\.oauthbearer\.assertion\.file" \(.*assertion\) cannot be read'):
        make()


def test_a_key_and_a_template_that_are_renewed_on_disk_are_used_as_soon_as_they_can_be(
    keys: SigningKeys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key, template = tmp_path / "key.pem", tmp_path / "template.json"
    key.write_bytes(Path(keys.rsa).read_bytes())
    template.write_text('{"header": {"kid": "old"}}')
    make = assertion_source(config(private_key_file=str(key), jwt_template_file=str(template)))
    assert keys.verified(keys.rsa, make())[0]["kid"] == "old"
    key.write_text("half of it")
    for _ in range(2):
        keys.verified(keys.rsa, make())
    [said] = [record.getMessage() for record in caplog.records]
    assert "made with what they held before" in said
    assert "private.key.file" in said
    assert "half" not in said
    key.write_bytes(Path(keys.other_rsa).read_bytes())
    template.write_text('{"header": {"kid": "new"}}')
    assert keys.verified(keys.other_rsa, make())[0]["kid"] == "new"


@pytest.mark.parametrize(("given", "text"), [
    ({"private_key_file": "/nowhere"}, 'private.key.file" (/nowhere) cannot be read: No such file'),
    ({"private_key_file": "/"}, "cannot be read: Is a directory"),
    ({"private_key_file": "a\0b"}, "cannot be read: embedded null"),
    ({"private_key_pem": "hunter2"}, 'private.key.pem" cannot be loaded: expected a private key in PEM'),
    ({"private_key_pem": "-----BEGIN hunter2"}, "cannot be loaded"),
    ({"private_key_file": "encrypted"}, 'is encrypted: give "sasl.oauthbearer.assertion.private.key.passphrase"'),
    ({"private_key_file": "encrypted", "private_key_passphrase": "x"},
     'expected a private key in PEM, and the right "sasl.oauthbearer.assertion.private.key.passphrase"'),
    ({"private_key_file": "ec"}, 'does not go with "sasl.oauthbearer.assertion.algorithm": "RS256": give an RSA key'),
    ({"private_key_file": "rsa", "algorithm": "ES256"}, '"ES256": give a key of the curve P-256'),
    ({"private_key_file": "other_ec", "algorithm": "es256"}, '"ES256": give a key of the curve P-256'),
    ({"private_key_file": "rsa", "jwt_template_file": "/nowhere"}, 'template.file" (/nowhere) cannot be read'),
    ({"private_key_file": "rsa", "jwt_template_file": "rsa"}, 'expected JSON such as {"header": {"kid"'),
    ({"file": "/nowhere"}, 'assertion.file" (/nowhere) cannot be read'),
    ({"file": "rsa"}, "has no assertion: expected one JWT"),
    ({"file": "/dev/null"}, "has no assertion: expected one JWT"),
])
def test_what_cannot_be_used_is_named_with_the_remedy_when_the_client_is_made(
    keys: SigningKeys, given: dict[str, str], text: str
) -> None:
    made = config(**{name: getattr(keys, value, value) for name, value in given.items()})
    with pytest.raises(ConfigError) as refused:
        assertion_source(made)
    assert text in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("text", ["[]", "1", "{}", '{"kid": "k"}', '{"header": []}', '{"header": {}, "payload": "x"}',
                                  "[" * 100_000, "\udcff"])
def test_a_template_that_is_none_is_refused(keys: SigningKeys, tmp_path: Path, text: str) -> None:
    template = tmp_path / "template.json"
    template.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=r'template\.json\) cannot be used: expected JSON such as'):
        assertion_source(config(private_key_file=keys.rsa, jwt_template_file=str(template)))


def test_without_the_package_that_signs_it_is_said_what_to_install_and_a_ready_assertion_is_sent(
    keys: SigningKeys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(DependencyError, match=r"private\.key\.file.*pip install 'headrace\[tls\]'"):
        assertion_source(config(private_key_file=keys.rsa))
    ready = tmp_path / "assertion"
    ready.write_text("a.b.c")
    assert assertion_source(config(file=str(ready)))() == "a.b.c"


def test_the_package_that_signs_is_loaded_only_to_sign() -> None:
    code = ("import sys\nimport headrace.net.auth.oidc\n"
            "print([name for name in sys.modules if name.partition('.')[0] == 'cryptography'])")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "[]\n"
