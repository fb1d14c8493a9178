"""Which properties win, and what profiles say."""

from pathlib import Path
from typing import Any

import pytest

from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.properties import (
    add_property_options,
    add_registry_option,
    need_brokers,
    properties_of,
    registry_properties_of,
)
from headrace.errors import ConfigError

FILE = """
default = "local"

[local]
bootstrap.servers = "localhost:9092"
linger.ms = 5

[prod]
"bootstrap.servers" = "kafka:9093"
security.protocol = "sasl_ssl"
sasl.password = "geheim"
enable.idempotence = true

[prod.registry]
url = "https://registry"
basic.auth.user.info = "me:geheim"
timeout = 3
"""


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "profiles.toml"
    path.write_text(FILE)
    monkeypatch.setenv("HEADRACE_CONFIG", str(path))
    return path


def given(*arguments: str) -> Any:
    parser = Parser("headrace test")
    add_property_options(parser, "some must be named")
    add_registry_option(parser)
    return parser.parse_args(arguments)


def test_the_default_profile_is_meant_where_no_brokers_are_named(profiles: Path) -> None:
    assert properties_of(given()) == {"bootstrap.servers": "localhost:9092", "linger.ms": "5"}
    assert properties_of(given("-X", "linger.ms=7"))["linger.ms"] == "7"


def test_the_default_profile_says_nothing_where_other_brokers_are_named(
    profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert properties_of(given("-b", "a:1")) == {"bootstrap.servers": "a:1"}
    assert properties_of(given("-X", "metadata.broker.list=a:1")) == {"metadata.broker.list": "a:1"}
    profiles.write_text(FILE.replace('default = "local"', 'default = "prod"'))
    assert registry_properties_of(given("-b", "a:1")) == {}
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", "e:1")
    assert properties_of(given()) == {"bootstrap.servers": "e:1"}
    assert registry_properties_of(given()) == {}


def test_a_profile_that_is_named_counts_beside_what_is_stated_more_directly(
    profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = properties_of(given("--profile", "prod", "-b", "a:1"))
    assert found == {"bootstrap.servers": "a:1", "security.protocol": "sasl_ssl", "sasl.password": "geheim",
                     "enable.idempotence": "true"}
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", "e:1")
    assert properties_of(given("--profile", "prod"))["bootstrap.servers"] == "e:1"
    monkeypatch.setenv("HEADRACE_PROFILE", "prod")
    assert properties_of(given())["security.protocol"] == "sasl_ssl"
    assert "security.protocol" not in properties_of(given("--profile", "local"))


def test_options_win_over_x_and_x_over_files_and_files_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", "environment:1")
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nacks=1\n")
    assert properties_of(given())["bootstrap.servers"] == "environment:1"
    assert properties_of(given("--config", str(file))) == {"bootstrap.servers": "file:1", "acks": "1"}
    x = ("--config", str(file), "-X", "bootstrap.servers=x:1")
    assert properties_of(given(*x))["bootstrap.servers"] == "x:1"
    assert properties_of(given(*x, "--bootstrap-server", "option:1"))["bootstrap.servers"] == "option:1"


def test_what_belongs_to_the_registry_is_for_its_client_only(
    profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = given("--profile", "prod", "-X", "schema.registry.max.retries=2")
    assert registry_properties_of(named) == {"url": "https://registry", "basic.auth.user.info": "me:geheim",
                                             "timeout": 3.0, "max.retries": 2.0}
    assert not [name for name in properties_of(named) if "registry" in name]
    assert registry_properties_of(given("--registry", "http://r:1")) == {"url": "http://r:1"}
    monkeypatch.setenv("HEADRACE_SCHEMA_REGISTRY_URL", "http://e:1")
    assert registry_properties_of(given())["url"] == "http://e:1"


def test_a_number_of_the_registry_must_be_one() -> None:
    with pytest.raises(ConfigError, match=r"schema\.registry\.timeout must be a number, not 'soon'"):
        registry_properties_of(given("-X", "schema.registry.timeout=soon"))


def test_a_profile_that_is_not_there_is_told_with_the_nearest_one(profiles: Path) -> None:
    with pytest.raises(ConfigError, match=r"no profile 'prd' in .*: it has local, prod; did you mean prod"):
        properties_of(given("--profile", "prd"))


@pytest.mark.parametrize(("content", "complaint"), [
    ("local = 3", "local is no profile"), ("[local]\na = [1]", "local: a must be a text"), ("x = ", "not TOML"),
    ('default = "none"\n[local]\n', "no profile 'none'"), ("default = 3", "default must be the name"),
])
def test_a_wrong_file_is_told_without_its_values(profiles: Path, content: str, complaint: str) -> None:
    profiles.write_text(content)
    with pytest.raises(ConfigError, match=complaint):
        properties_of(given())


def test_without_any_profile_nothing_is_needed_until_brokers_are(tmp_path: Path) -> None:
    assert properties_of(given()) == {}
    with pytest.raises(ConfigError, match="no brokers are named: give -b HOST:PORT or --profile NAME"):
        need_brokers({})


def test_a_file_that_the_environment_names_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_CONFIG", str(tmp_path / "nowhere.toml"))
    with pytest.raises(ConfigError, match="which HEADRACE_CONFIG names, does not exist"):
        properties_of(given())
