"""The command around `headrace decode`: options, filters, exit statuses, pipes, and messages of every kind."""

import json
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.cli.decode import main
from headrace.decode.messages.bodies import read_reply, read_request
from headrace.decode.messages.fields import MessageView
from headrace.decode.messages.names import TopicNames
from headrace.decode.messages.tolerant import read_partly
from headrace.decode.output.nodes import Item
from headrace.decode.output.rendering import JsonOutput, TextOutput
from headrace.decode.stream.loose import Hint, loose_frames
from headrace.wire.api import API
from headrace.wire.codec import decode as decode_message
from headrace.wire.codec import encode
from headrace.wire.layout import columns
from headrace.wire.messages.admin.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from headrace.wire.messages.admin.security import (
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenResponse,
    RenewDelegationTokenRequest,
    ScramCredentialUpsertion,
)
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from headrace.wire.messages.cluster.session import ApiVersionsRequest, SaslAuthenticateRequest, SaslAuthenticateResponse
from headrace.wire.messages.controllers.brokers import EnvelopeRequest
from headrace.wire.messages.groups.classic_groups import (
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from tests.support.decode_samples import Said, batch, conversation, pcap, reply, request, talk

COMMAND = [sys.executable, "-c", "import sys; from headrace.cli import main; sys.exit(main())", "decode"]
CAPTURE = pcap(talk(conversation()))


def rendered(message, version):
    """The text and the JSON of a message."""
    found = []
    for make in (lambda write: TextOutput(write, width=0, colour=False, fields=True),
                 lambda write: JsonOutput(write, fields=True)):
        parts = []
        output = make(parts.append)
        output.show(Item("request", "-", {}, MessageView(TopicNames(), None).nodes(message, version)))
        found.append("".join(parts))
    return found[0], json.loads(found[1])["fields"]


def every_message():
    from tests.campaigns.conformance.wire_values import random_message

    for number, api in enumerate(API.values()):
        for cls in (api.request, api.response):
            for version in range(api.min_version, api.max_version + 1):
                yield cls, version, random_message(cls, version, __import__("random").Random(number * 100 + version))


def test_every_message_of_every_version_is_shown_with_all_its_fields():
    for cls, version, message in every_message():
        _, fields = rendered(message, version)
        expected = {column.name for column in columns(cls) if column.versions.holds(version)}
        assert expected <= fields.keys(), (cls, version)


def shared(whole, part):
    """What of one tree is in the other too: tagged fields that were not sent are not set by the tolerant reader."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return {name: shared(content, part[name]) for name, content in whole.items() if name in part}
    if isinstance(whole, list) and isinstance(part, list) and len(whole) == len(part):
        return [shared(*pair) for pair in zip(whole, part, strict=True)]
    return whole


def test_the_tolerant_reader_reads_what_the_codec_reads():
    for cls, version, message in every_message():
        data = encode(message, version)
        found = read_partly(cls, memoryview(data), version, 0)
        assert (found.problem, found.position) == ("", len(data)), (cls, version)
        part, whole = (rendered(one, version)[1] for one in (found.message, decode_message(cls, data, version)))
        assert part == shared(whole, part)
        assert len(part) >= len([c for c in columns(cls) if c.versions.holds(version) and not c.is_tagged(version)])


def test_a_message_that_is_cut_anywhere_is_shown_up_to_there():
    for cls, version, message in every_message():
        data = encode(message, version)
        for stop in {0, len(data) // 3, len(data) // 2, len(data) - 1} - {-1, len(data)}:
            found = read_partly(cls, memoryview(data)[:stop], version, 0)
            assert found.problem, (cls, version, stop)
            assert found.position <= stop
            rendered(found.message, version)


@settings(max_examples=300)
@given(st.binary(max_size=200), st.booleans(), st.integers(0, 95), st.integers(0, 18))
def test_random_bytes_as_a_frame_raise_nothing(data, is_request, key, version):
    if is_request:
        body = read_request(key.to_bytes(2, "big") + version.to_bytes(2, "big") + data)
    else:
        body = read_reply(key, version, data)
    if body.message is not None:
        rendered(body.message, body.version)
    for frame in loose_frames(data, Hint(API.get(key), None)):
        assert frame.kind in ("request", "reply")


@pytest.mark.parametrize("said", [
    request(SaslAuthenticateRequest(auth_bytes=b"SECRET"), 2, 1),
    reply(SaslAuthenticateResponse(auth_bytes=b"SECRET"), 2, 1),
    request(AlterUserScramCredentialsRequest(upsertions=[
        ScramCredentialUpsertion(name="alice", salt=b"SECRET1", salted_password=b"SECRET2")]), 0, 1),
    reply(CreateDelegationTokenResponse(hmac=b"SECRET"), 3, 1),
    request(RenewDelegationTokenRequest(hmac=b"SECRET"), 2, 1),
    request(AlterConfigsRequest(resources=[AlterConfigsResource(configs=[
        AlterableConfig(name=name, value="SECRET") for name in (
            "ssl.key.password", "sasl.jaas.config", "ssl.keystore.key", "listener.name.x.SASL.jaas.Config")])]), 1, 1),
    request(EnvelopeRequest(request_data=request(SaslAuthenticateRequest(auth_bytes=b"SECRET"), 2, 1).data[4:]), 0, 1),
], ids=lambda said: str(len(said.data)))
def test_secrets_are_never_shown(decode, said):
    key = "--api", API[int.from_bytes(said.data[4:6], "big")].name if said.by_client else {
        True: "SaslAuthenticate", False: "CreateDelegationToken"}[len(said.data) < 40]
    for options in ((), ("--json",), ("--width", "0")):
        told = decode(said.data, *options, *key)
        assert told.status == 0
        assert "SECRET" not in told.text
        assert "hidden" in told.text


def test_the_subscription_of_a_member_is_read(decode):
    from headrace.wire.codec import encode_prefixed

    inner = encode_prefixed(ConsumerProtocolSubscription(topics=["orders"]), 1)
    message = JoinGroupRequest(group_id="g", protocol_type="consumer", protocols=[
        JoinGroupRequestProtocol(name="range", metadata=inner),
        JoinGroupRequestProtocol(name="x", metadata=b"\xff\xff?")])
    found, = decode(request(message, 5, 1).data, "--json").objects()
    assert found["fields"]["protocols"][0]["metadata"]["topics"] == ["orders"]
    assert found["fields"]["protocols"][1]["metadata"] == {"hex": "ffff3f"}


def test_filters_choose_by_api_topic_and_error(decode):
    failed = MetadataResponse(topics=[MetadataResponseTopic(name="gone", error_code=3)])
    data = pcap(talk([*conversation(), request(MetadataRequest(), 12, 9), reply(failed, 12, 9)]))
    chosen = decode(data, "--json", "--api", "Produce,fetch").objects()
    assert [o["api"] for o in chosen] == ["Produce"] * 2 + ["Fetch"] * 2
    about = decode(data, "--json", "--topic", "orders").objects()
    assert [o["api"] for o in about] == ["Metadata"] * 2 + ["Produce"] * 2 + ["Fetch"] * 2  # Fetch has its id only
    errors = decode(data, "--errors-only", "--json").objects()
    assert [o["correlation_id"] for o in errors] == [9]
    assert "error_code: 3 UNKNOWN_TOPIC_OR_PARTITION: " in decode(data, "--errors-only").text


def test_headlines_only_and_the_summary(decode):
    lines = decode(CAPTURE, "--no-fields", "--summary").text.splitlines()
    assert len(lines) == 8 + 1 + 4 + 1
    assert " ".join(lines[8].split()) == "api requests replies request_bytes reply_bytes errors p50_ms p99_ms max_ms"
    assert lines[12].split()[:3] == ["Produce", "1", "1"]
    assert lines[12].split()[-1] == "1.0"
    found = decode(CAPTURE, "--no-fields", "--summary", "--json").objects()
    assert found[-1] == {"kind": "summary", "damaged": 0}
    assert all("fields" not in one for one in found)


def test_colour_is_for_terminals_and_for_those_who_ask(decode, monkeypatch):
    assert "\x1b[" not in decode(CAPTURE).text
    assert decode(CAPTURE, "--color", "always").text.startswith("\x1b[1m")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in decode(CAPTURE).text


def test_a_directory_stands_for_its_segments_in_order(decode, tmp_path):
    (tmp_path / "orders-0").mkdir()
    for base in (2, 0):
        (tmp_path / "orders-0" / f"{base:020}.log").write_bytes(batch(base_offset=base))
    lines = decode(tmp_path / "orders-0", "--no-records").text.splitlines()
    assert [line.split()[0] for line in lines] == ["==", "batch", "==", "batch"]
    assert "base_offset 0," in lines[1]


def test_as_overrides_what_is_seen(decode):
    assert decode(batch(), "--as", "segment").status == 0
    assert decode(CAPTURE, "--as", "segment").status == 1
    assert decode(CAPTURE, "--as", "hex").status == 1


@pytest.mark.parametrize(("arguments", "complaint"), [
    (["--api", "Nothing", "x"], "there is no API 'Nothing'"), (["--version", "3", "x"], "--version says"),
    (["--width", "-1", "x"], "is not a number"), (["--as", "what", "x"], "invalid choice"),
    (["--show-secrets", "x"], "unrecognized arguments"),
])
def test_wrong_usage_is_told_with_status_2(capsys, arguments, complaint):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_directory_without_segments_is_wrong_usage(tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        main([str(tmp_path)])
    assert left.value.code == 2
    assert "there is no segment" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_told_in_one_line_and_the_others_are_shown(tmp_path, capsys):
    path = tmp_path / "there"
    path.write_bytes(CAPTURE)
    assert main([str(tmp_path / "nowhere"), str(path), "--no-fields"]) == 1
    told = capsys.readouterr()
    assert told.err == f"headrace decode: {tmp_path / 'nowhere'}: No such file or directory\n"
    assert told.out.count("request") == 4


def test_help_says_what_is_read_and_gives_examples(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    text = capsys.readouterr().out
    assert left.value.code == 0
    for word in ("captures", "segments", "hex", "examples:", "Exit status", "never shown"):
        assert word in text


def test_a_live_capture_is_shown_while_it_grows():
    process = subprocess.Popen([*COMMAND, "--no-fields", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdin.write(CAPTURE[:300])
        process.stdin.flush()
        assert b"ApiVersions (18) v3 request" in process.stdout.readline()
        process.stdin.write(CAPTURE[300:])
        process.stdin.close()
        assert len(process.stdout.read().splitlines()) == 7
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(batch([b"x" * 90] * 100, base_offset=100 * n) for n in range(200)))
    process = subprocess.Popen([*COMMAND, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline().startswith(b"batch at byte 0")
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert (process.wait(30), complaint) == (0, b"")


def test_ctrl_c_is_quiet():
    process = subprocess.Popen([*COMMAND, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(CAPTURE[:300])
    process.stdin.flush()
    assert process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert (process.returncode, complaint) == (130, b"")


def test_a_negative_size_and_an_empty_frame_are_damage_not_errors(decode):
    empty = Said(True, b"\0\0\0\0")
    told = decode(pcap(talk([*conversation()[:2], empty, *conversation()[2:4]])), "--json")
    assert told.status == 1
    assert [o["api"] for o in told.objects() if o["kind"] == "reply"] == ["ApiVersions", "Metadata"]


def test_tagged_fields_that_are_not_known_are_shown_by_their_number(decode):
    asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    asked.unknown_tags = {77: b"later"}
    data = request(asked, 3, 1).data
    assert decode(data, "--json").objects()[0]["fields"]["unknown_tags"] == {"77": "later"}
    assert 'unknown_tags: 77 "later"' in decode(data).text
    token = SaslAuthenticateRequest(auth_bytes=b"x")
    token.unknown_tags = {77: b"SECRET"}
    assert "SECRET" not in decode(request(token, 2, 1).data).text
    cut = decode(data[:-1], "--json")
    assert cut.objects()[0]["fields"]["client_software_name"] == "test"
