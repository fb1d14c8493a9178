"""Users as values: passwords are hashed before they travel, quotas and tokens are read into what they mean."""

import hashlib

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import user_requests as admin
from headrace.types.users import (
    QuotaEntity,
    QuotaFilter,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from headrace.wire.messages.admin import quotas, security
from tests.support.travelling import travels


def test_credentials_are_read_by_user() -> None:
    assert travels(admin.describe_users(None), 0, 0).users is None
    assert [user.name for user in travels(admin.describe_users(["a"]), 0, 0).users] == ["a"]
    reply = security.DescribeUserScramCredentialsResponse(results=[
        security.DescribeUserScramCredentialsResult(user="a", credential_infos=[
            security.CredentialInfo(mechanism=2, iterations=4096), security.CredentialInfo(mechanism=9, iterations=1)]),
        security.DescribeUserScramCredentialsResult(user="b", error_code=91, error_message="No such user.")])
    found = admin.read_users(reply)
    assert found["a"] == UserScramCredentialsDescription("a", [
        ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), ScramCredentialInfo(ScramMechanism.UNKNOWN, 1)])
    assert found["b"] == KafkaError(91)
    with pytest.raises(KafkaException, match="DESCRIBE on the cluster"):
        admin.read_users(security.DescribeUserScramCredentialsResponse(error_code=31))


def test_a_password_is_hashed_with_its_salt_before_it_travels() -> None:
    sha256 = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    sha512 = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 5000)
    request = travels(admin.alter_users([
        UserScramCredentialUpsertion("a", sha256, b"secret", b"salt"), UserScramCredentialUpsertion("b", sha512, b"pw"),
        UserScramCredentialDeletion("c", ScramMechanism.SCRAM_SHA_256)], [b"random"] * 3), 0, 0)
    first, second = request.upsertions
    assert (first.name, first.mechanism, first.iterations, bytes(first.salt), bytes(first.salted_password)) == (
        "a", 1, 4096, b"salt", hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 4096))
    assert (second.mechanism, bytes(second.salted_password)) == (
        2, hashlib.pbkdf2_hmac("sha512", b"pw", b"random", 5000))
    assert [(each.name, each.mechanism) for each in request.deletions] == [("c", 1)]


def test_a_password_does_not_show() -> None:
    given = UserScramCredentialUpsertion("a", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 1), b"secret", b"salt")
    assert "secret" not in repr(given)
    assert "salt=" not in repr(given)


def test_each_user_has_its_own_end() -> None:
    reply = security.AlterUserScramCredentialsResponse(results=[
        security.AlterUserScramCredentialsResult(user="a"),
        security.AlterUserScramCredentialsResult(user="b", error_code=31)])
    found = admin.read_altered_users(reply)
    assert found["a"] is None
    assert found["b"] is not None
    assert found["b"].str().endswith("this needs ALTER on the cluster")


def test_quotas_are_asked_for_by_name_default_or_any() -> None:
    request = travels(admin.describe_quotas(QuotaFilter("alice", "", QuotaFilter.ANY, strict=True)), 0, 1)
    assert [(c.entity_type, c.match_type, c.match) for c in request.components] == [
        ("user", 0, "alice"), ("client-id", 1, None), ("ip", 2, None)]
    assert request.strict
    reply = quotas.DescribeClientQuotasResponse(entries=[quotas.DescribedQuotaEntry(
        entity=[quotas.DescribedQuotaEntity(entity_type="user", entity_name="alice"),
                quotas.DescribedQuotaEntity(entity_type="client-id", entity_name=None)],
        values=[quotas.DescribedQuotaValue(key="producer_byte_rate", value=5.0)])])
    assert admin.read_quotas(reply) == {QuotaEntity("alice", ""): {"producer_byte_rate": 5.0}}


def test_quotas_are_set_and_removed() -> None:
    entity = QuotaEntity("alice", "")
    (entry,) = travels(admin.alter_quotas({entity: {"a": 5.0, "b": None}}, True), 0, 1).entries
    assert [(e.entity_type, e.entity_name) for e in entry.entity] == [("user", "alice"), ("client-id", None)]
    assert [(op.key, op.value, op.remove) for op in entry.ops] == [("a", 5.0, False), ("b", 0.0, True)]
    reply = quotas.AlterClientQuotasResponse(entries=[quotas.AlteredQuotaEntry(error_code=31, entity=[
        quotas.AlteredQuotaEntity(entity_type="user", entity_name="alice"),
        quotas.AlteredQuotaEntity(entity_type="client-id", entity_name=None)])])
    error = admin.read_altered_quotas(reply)[entity]
    assert error is not None
    assert error.str().endswith("this needs ALTER_CONFIGS on the cluster")


def test_a_token_has_an_owner_and_a_secret_that_does_not_show() -> None:
    request = travels(admin.create_token(["User:bob", "eve"], "User:alice", 5000), 3, 3)
    assert (request.owner_principal_name, request.max_lifetime_ms) == ("alice", 5000)
    assert [(each.principal_type, each.principal_name) for each in request.renewers] == [("User", "bob"),
                                                                                        ("User", "eve")]
    token = admin.read_created_token(security.CreateDelegationTokenResponse(
        principal_type="User", principal_name="alice", issue_timestamp_ms=1, expiry_timestamp_ms=2, max_timestamp_ms=3,
        token_id="id", hmac=b"secret"), ["eve"])
    assert (token.owner, token.requester, token.expires, token.hmac) == ("User:alice", "User:alice", 2, b"secret")
    assert token.renewers == ["User:eve"]
    assert "secret" not in repr(token)


def test_tokens_are_listed_renewed_and_ended() -> None:
    assert travels(admin.describe_tokens(None), 0, 3).owners is None
    assert travels(admin.describe_tokens(["User:a"]), 0, 3).owners[0].principal_name == "a"
    (token,) = admin.read_tokens(security.DescribeDelegationTokenResponse(tokens=[security.DescribedDelegationToken(
        principal_type="User", principal_name="a", token_requester_principal_type="User",
        token_requester_principal_name="b", token_id="id", hmac=b"s")]))
    assert (token.owner, token.requester) == ("User:a", "User:b")
    assert travels(admin.renew_token(b"s", -1), 1, 2).renew_period_ms == -1
    assert travels(admin.expire_token(b"s", 7), 1, 2).expiry_time_period_ms == 7
    assert admin.read_token_time(security.RenewDelegationTokenResponse(expiry_timestamp_ms=9)) == 9
    with pytest.raises(KafkaException):
        admin.read_token_time(security.ExpireDelegationTokenResponse(error_code=62))
