"""Calls about users: what is wrong with a credential, a quota or a token is refused before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from headrace.admin import (
    AdminClient,
    QuotaEntity,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from headrace.client.admin.admin_area import ByKey
from headrace.client.admin.admin_calls import AdminCalls
from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import KafkaError, KafkaException
from headrace.wire.messages.admin import quotas, security
from tests.support.scripted_broker import ScriptedBroker, admin_config

INFO = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
NOBODY = {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}
Up, Down = UserScramCredentialUpsertion, UserScramCredentialDeletion


@pytest.mark.parametrize(("given", "error"), [
    (None, TypeError), ("test", TypeError), ([], ValueError), ([None], TypeError),
    ([UserScramCredentialAlteration("sam")], TypeError), ([UserScramCredentialAlteration("")], ValueError),
    ([Up(None, INFO, b"p")], TypeError), ([Up("", INFO, b"p")], ValueError),  # type: ignore[arg-type]
    ([Up("sam", INFO, b"")], ValueError), ([Up("sam", INFO, "p")], TypeError),  # type: ignore[arg-type]
    ([Up("sam", INFO, b"p", b"")], ValueError), ([Up("sam", INFO, b"p", "s")], TypeError),  # type: ignore[arg-type]
    ([Up("sam", None, b"p")], TypeError),  # type: ignore[arg-type]
    ([Up("sam", ScramCredentialInfo("x", 1), b"p")], TypeError),  # type: ignore[arg-type]
    ([Up("sam", ScramCredentialInfo(INFO.mechanism, "x"), b"p")], TypeError),  # type: ignore[arg-type]
    ([Up("sam", ScramCredentialInfo(INFO.mechanism, 0), b"p")], ValueError),
    ([Down("", INFO.mechanism)], ValueError), ([Down("sam", 1)], TypeError),  # type: ignore[arg-type]
])
def test_alterations_that_make_no_sense_are_refused(given: Any, error: type[Exception]) -> None:
    with AdminClient(NOBODY) as admin, pytest.raises(error):
        admin.alter_user_scram_credentials(given)


@pytest.mark.parametrize(("given", "error"), [(10, TypeError), ([None], TypeError), ([""], ValueError)])
def test_users_are_named(given: Any, error: type[Exception]) -> None:
    with AdminClient(NOBODY) as admin, pytest.raises(error):
        admin.describe_user_scram_credentials(given)


def test_all_users_are_one_future_and_some_are_one_each() -> None:
    with AdminClient(NOBODY) as admin:
        assert isinstance(admin.describe_user_scram_credentials(), Future)
        assert set(admin.describe_user_scram_credentials(["a", "b", "a"])) == {"a", "b"}
        assert admin.describe_user_scram_credentials([]) == {}


def test_credentials_are_made_and_found() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("one", 1))
        results = [security.DescribeUserScramCredentialsResult(user="sam", credential_infos=[
            security.CredentialInfo(mechanism=2, iterations=4096)])]
        broker.on(security.DescribeUserScramCredentialsRequest,
                  security.DescribeUserScramCredentialsResponse(results=results))
        broker.on(security.AlterUserScramCredentialsRequest, security.AlterUserScramCredentialsResponse(results=[
            security.AlterUserScramCredentialsResult(user="sam"),
            security.AlterUserScramCredentialsResult(user="tom", error_code=91)]))
        core = ClientCore(Config(ADMIN, admin_config()), connector=broker.connector)
        admin = AdminCalls(core)
        assert await admin.alter_user_scram_credentials([Up("sam", INFO, b"p"), Down("tom", INFO.mechanism)]
                                                        ).results() == {"sam": None, "tom": KafkaError(91)}
        described = UserScramCredentialsDescription("sam", [INFO])
        some, everybody = admin.describe_user_scram_credentials(["sam"]), admin.describe_user_scram_credentials()
        assert isinstance(some, ByKey)
        assert await some.results() == {"sam": described}
        assert not isinstance(everybody, ByKey)
        assert await everybody == {"sam": described}
        results.append(security.DescribeUserScramCredentialsResult(user="tom", error_code=31))
        with pytest.raises(KafkaException, match="DESCRIBE on the cluster"):
            await admin.describe_user_scram_credentials()  # type: ignore[misc]
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("call", [
    lambda admin, given: admin.create_delegation_token(max_lifetime=given),
    lambda admin, given: admin.renew_delegation_token(b"s", period=given),
    lambda admin, given: admin.expire_delegation_token(b"s", after=given)])
@pytest.mark.parametrize(("given", "error"), [
    ("x", TypeError), (-1, ValueError), (float("nan"), ValueError), (float("inf"), ValueError), (1e30, ValueError)])
def test_a_time_that_is_none_never_gives_a_token_that_lives_as_long_as_the_cluster_allows(
    call: Callable[[AdminClient, Any], Any], given: Any, error: type[Exception]
) -> None:
    with AdminClient(NOBODY) as admin, pytest.raises(error, match=r"max_lifetime|period|after"):
        call(admin, given)


def test_a_token_that_would_not_live_is_not_made() -> None:
    with AdminClient(NOBODY) as admin, pytest.raises(ValueError, match="max_lifetime is 0"):
        admin.create_delegation_token(max_lifetime=0)


def test_quotas_and_tokens_are_made_and_found() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("one", 1))
        broker.on(quotas.DescribeClientQuotasRequest, quotas.DescribeClientQuotasResponse(entries=[]))
        broker.on(quotas.AlterClientQuotasRequest, quotas.AlterClientQuotasResponse(entries=[quotas.AlteredQuotaEntry(
            entity=[quotas.AlteredQuotaEntity(entity_type="user", entity_name="sam")])]))
        broker.on(security.CreateDelegationTokenRequest, security.CreateDelegationTokenResponse(
            token_id="id", hmac=b"s"))
        broker.on(security.DescribeDelegationTokenRequest, security.DescribeDelegationTokenResponse(tokens=[]))
        broker.on(security.RenewDelegationTokenRequest, security.RenewDelegationTokenResponse(expiry_timestamp_ms=7))
        broker.on(security.ExpireDelegationTokenRequest, security.ExpireDelegationTokenResponse(error_code=65))
        core = ClientCore(Config(ADMIN, admin_config()), connector=broker.connector)
        admin = AdminCalls(core)
        assert await admin.describe_client_quotas() == {}
        assert await admin.alter_client_quotas({QuotaEntity("sam"): {"producer_byte_rate": 1.0}}).results() == {
            QuotaEntity("sam"): None}
        assert (await admin.create_delegation_token(renewers=["User:a"], max_lifetime=60)).token_id == "id"
        assert await admin.describe_delegation_tokens() == []
        assert await admin.renew_delegation_token(b"s") == 7
        with pytest.raises(KafkaException):
            await admin.expire_delegation_token(b"s", after=1)
        with pytest.raises(ValueError, match="neither"):
            admin.alter_client_quotas({QuotaEntity(): {}})
        await core.close()

    asyncio.run(run())
