"""Nothing of this machine's own configuration counts."""

import pytest


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in ("HEADRACE_BOOTSTRAP_SERVERS", "HEADRACE_SCHEMA_REGISTRY_URL", "HEADRACE_PROFILE", "HEADRACE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
