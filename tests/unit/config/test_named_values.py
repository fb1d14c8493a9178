"""Lists of name=value in one property: read as librdkafka reads them, refused with what is wrong and without values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.named_values import AwsIdentity, aws_identity, azure_query, escaped, named_values
from headrace.errors import ConfigError

EASY = "region=eu-central-1,audience=https://confluent.cloud/oidc"


@pytest.mark.parametrize(("text", "pairs"), [
    ("", {}), ("  ", {}), (",,", {}), ("a=b", {"a": "b"}), (" a=b , c=d ", {"a": "b", "c": "d"}),
    ("a=", {"a": ""}), ("a=b=c", {"a": "b=c"}), ("a=1,a=2", {"a": "2"}),
    (r"pool=p-1\,p-2,cluster=lkc", {"pool": "p-1,p-2", "cluster": "lkc"}),
    (r"a=x\\,b=y", {"a": "x\\", "b": "y"}), (r"a=x\ty", {"a": "x\ty"}), (r"a=x\q", {"a": "xq"}),
    ("a=x\\", {"a": "x"}),
])
def test_pairs_are_read_and_a_comma_with_a_backslash_belongs_to_its_value(text: str, pairs: dict[str, str]) -> None:
    assert named_values(text) == pairs


@pytest.mark.parametrize("text", ["a", "=b", "a=b,c", "  =x"])
def test_what_is_no_pair_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigError, match=r'^"sasl.oauthbearer.extensions" cannot be read: expected name=value,'):
        named_values(text)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text(st.characters(
    codec="ascii", exclude_categories=["C"])).map(str.strip)))
def test_any_printable_value_can_be_written_down(values: dict[str, str]) -> None:
    assert named_values(",".join(f"{name}={escaped(value)}" for name, value in values.items())) == values


def test_a_query_for_azure_is_found_among_the_pairs() -> None:
    assert azure_query("query=api-version=2018-02-01&resource=api://x,other=y") == \
        "api-version=2018-02-01&resource=api://x"
    assert not azure_query("")
    assert not azure_query("query=")


def test_who_names_region_and_audience_gets_what_aws_does_by_itself() -> None:
    assert aws_identity(EASY) == AwsIdentity("eu-central-1", "https://confluent.cloud/oidc", 300, "ES384", None,
                                             debug=False, tags={})


def test_everything_may_be_said() -> None:
    assert aws_identity(f"{EASY},duration_seconds=60,signing_algorithm=RS256,sts_endpoint=https://sts.example,"
                        "aws_debug=Console,tag_team=data,tag_cost=") == \
        AwsIdentity("eu-central-1", "https://confluent.cloud/oidc", 60, "RS256", "https://sts.example", debug=True,
                    tags={"team": "data", "cost": ""})


@pytest.mark.parametrize(("text", "why"), [
    ("", "lacks 'region'"), ("region=x", "lacks 'audience'"), ("audience=x", "lacks 'region'"),
    ("region=,audience=x", "has no value for 'region'"), ("region=x,audience=", "has no value for 'audience'"),
    (f"{EASY},durationseconds=60", "unknown name 'durationseconds'; did you mean 'duration_seconds'"),
    (f"{EASY},extension_a=60", "unknown name 'extension_a'; there are region, audience"),
    (f"{EASY},duration_seconds=59", "not 60 to 3600"), (f"{EASY},duration_seconds=3601", "not 60 to 3600"),
    (f"{EASY},duration_seconds=1e2", "not 60 to 3600"), (f"{EASY},signing_algorithm=HS256", "ES384 or RS256"),
    (f"{EASY},aws_debug=loud", "none or console"), (f"{EASY},tag_=x", "a tag without a name"),
    (EASY + "".join(f",tag_{number}=x" for number in range(51)), "more than 50 tags"),
])
def test_what_aws_would_not_take_is_refused_and_no_value_is_shown(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        aws_identity(text)
    assert "sasl.oauthbearer.config" in str(refused.value)
    assert "confluent.cloud" not in str(refused.value)
