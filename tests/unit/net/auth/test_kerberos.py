"""GSSAPI, spoken by the package gssapi."""

import asyncio
import sys

import pytest

from headrace.errors import DependencyError
from tests.support.sasl_broker import SaslBroker, client


def test_gssapi_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)

    async def run() -> None:
        with pytest.raises(DependencyError, match=r"pip install 'headrace\[gssapi\]'"):
            client(SaslBroker(), {"security.protocol": "sasl_plaintext"})

    asyncio.run(run())
