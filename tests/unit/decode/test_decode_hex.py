"""`headrace decode` on hex: every usual form, frames without a capture, and replies whose request nobody saw."""

import random
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.decode.files.hextext import read_hex
from headrace.decode.output.nodes import Damage
from headrace.wire.messages.admin.security import CreateDelegationTokenResponse
from headrace.wire.messages.cluster.session import SaslAuthenticateRequest, SaslAuthenticateResponse
from headrace.wire.messages.consumer.fetch import FetchResponse
from tests.support.decode_samples import BROKER, CLIENT, TOPIC_ID, batch, conversation, pcap, reply, talk

SAID = conversation()
FRAME = SAID[4].data


def groups(data, size, by=" "):
    return by.join(data[at:at + size].hex() for at in range(0, len(data), size))


def printed(data):
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)


def lines(data, row, size=16):
    return "".join(row(at, data[at:at + size]) for at in range(0, len(data), size))


def xxd(data):
    return lines(data, lambda at, part: f"{at:08x}: {groups(part, 2):<39}  {printed(part)}\n")


def hexdump_c(data):
    def row(at, part):
        left, right = groups(part[:8], 1), groups(part[8:], 1)
        return f"{at:08x}  {left:<23}  {right:<23}  |{printed(part)}|\n"

    return lines(data, row) + f"{len(data):08x}\n"


def od(data, base="o", width=7):
    return lines(data, lambda at, part: f"{at:0{width}{base}} {groups(part, 1)}\n") + f"{len(data):0{width}{base}}\n"


def words(data):
    """hexdump without options: words of two bytes, the second one first."""
    def row(at, part):
        pairs = (part[i:i + 2].ljust(2, b"\0") for i in range(0, len(part), 2))
        return f"{at:07x} " + " ".join(pair[::-1].hex() for pair in pairs) + "\n"

    return lines(data, row) + f"{len(data):07x}\n"


def tcpdump(packets):
    def dump(packet):
        return lines(packet, lambda at, part: f"\t0x{at:04x}:  {groups(part, 2):<39}  {printed(part)}\n")

    return "".join(f"12:00:00.00{number:04} IP a.1 > b.2: Flags [P.], length 1\n{dump(packet)}"
                   for number, packet in enumerate(packets))


def followed(said):
    text, at = "", {True: 0, False: 0}
    for by_client, data in said:
        for place in range(0, len(data), 16):
            part = data[place:place + 16]
            left, right = groups(part[:8], 1), groups(part[8:], 1)
            indent = "" if by_client else "    "
            text += f"{indent}{at[by_client]:08X}  {left:<23}  {right:<23}   {printed(part[:8])} {printed(part[8:])}\n"
            at[by_client] += len(part)
    return text


FORMS = {
    "plain": bytes.hex, "upper case": lambda d: d.hex().upper(), "in bytes": lambda d: d.hex(" "),
    "in bytes with colons": lambda d: d.hex(":"), "in lines": lambda d: "\n".join(re.findall(".{1,40}", d.hex())),
    "0x in front": lambda d: "0x" + d.hex(), "0x each": lambda d: ", ".join(f"0x{byte:02x}" for byte in d),
    "0x each without zeros": lambda d: " ".join(f"{byte:#x}" for byte in d),
    "a C array": lambda d: ["unsigned char x[] ", " {"][0][:0] + "{" + ",".join(f"0x{b:02X}" for b in d) + "};",
    "escapes": lambda d: "".join(f"\\x{byte:02x}" for byte in d), "Python's bytes": repr,
    "Python's bytes in parts": lambda d: f"({d[:9]!r}\n {d[9:]!r})", "a bytearray": lambda d: repr(bytearray(d)),
    "xxd": xxd, "hexdump -C": hexdump_c, "od -tx1": od, "od -Ad -tx1": lambda d: od(d, "d"),
    "od -Ax -tx1": lambda d: od(d, "x", 6), "hexdump": words,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_hex_gives_the_bytes(form):
    chance = random.Random(form)
    for data in [FRAME, *(bytes(chance.choices(b"\0\1\xffab 01|>*'\"\\\n", k=size)) for size in range(1, 80))]:
        assert b"".join(block.data for block in read_hex(FORMS[form](data))) == data


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_in_every_form_of_hex_is_decoded(decode, form):
    told = decode(FORMS[form](FRAME), "--json")
    found, = told.objects()
    assert (told.status, found["api"], found["kind"]) == (0, "Produce", "request")
    assert found["fields"]["topic_data"][0]["partition_data"][0]["records"][0]["records"][1]["value"] == "two"


@pytest.mark.parametrize("command", ["xxd", "xxd -a", "xxd -p", "xxd -c 32", "xxd -g1 -u", "hexdump -C", "hexdump",
                                     "od -tx1", "od -A x -tx1z", "od -A d -t x1"])
def test_what_the_tools_themselves_print_is_read(command):
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    chance = random.Random(command)
    for size in (1, 15, 16, 17, 31, 32, 100, 4096):
        for data in (chance.randbytes(size), bytes(size), bytes(chance.choices(b"ab 01", k=size))):
            text = subprocess.run(command.split(), input=data, capture_output=True, check=True).stdout.decode()
            if command == "od -tx1" and data == bytes(32):
                continue  # a line and a star: the offset 0000040 could be hexdump's as well
            assert b"".join(block.data for block in read_hex(text)) == data, text


def test_lines_left_out_for_being_alike_are_put_back():
    text = "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n*\n00000050\n"
    assert read_hex(text)[0].data == bytes(0x50)


def test_packets_as_tcpdump_prints_them_are_put_together(decode):
    found = decode(tcpdump(talk(conversation(), step=50)), "--json").objects()
    assert [o["api"] for o in found if o["kind"] == "request"] == ["ApiVersions", "Metadata", "Produce", "Fetch"]
    assert found[0]["time"].startswith("12:00:00.0000")
    assert found[1]["latency_ms"] > 0


def test_a_followed_stream_has_two_sides(decode):
    found = decode(followed(SAID), "--json").objects()
    assert [(o["kind"], o["api"]) for o in found] == [
        (kind, api) for api in ("ApiVersions", "Metadata", "Produce", "Fetch") for kind in ("request", "reply")]


def test_a_followed_stream_as_c_arrays_and_as_raw_lines(decode):
    arrays = "".join(f"char peer{1 - s.by_client}_{n}[] = {{ /* Packet {n} */\n" + ", ".join(
        f"0x{b:02x}" for b in s.data) + " };\n" for n, s in enumerate(SAID))
    raw = "===\nFollow: tcp,raw\nFilter: tcp.stream eq 0\nNode 0: a:1\nNode 1: b:2\n" + "".join(
        ("" if s.by_client else "\t") + s.data.hex() + "\n" for s in SAID)
    for text in (arrays, raw):
        found = decode(text, "--json").objects()
        assert [o["api"] for o in found][::2] == ["ApiVersions", "Metadata", "Produce", "Fetch"]


def test_hex_on_the_command_line_is_decoded(capsys):
    from headrace.cli.decode import main

    assert main(["00000012001200040000000700047465737400010100"]) == 0
    assert capsys.readouterr().out.startswith('ApiVersions (18) v4 request, correlation 7, client "test"')


def test_frames_are_read_with_and_without_their_lengths_and_several_in_a_row(decode):
    assert decode(FRAME[4:], "--json").objects()[0]["api"] == "Produce"
    found = decode(b"".join(said.data for said in SAID), "--json").objects()
    assert found[1]["position"] == len(SAID[0].data)
    assert [(o["kind"], o["api"]) for o in found] == [
        (kind, api) for api in ("ApiVersions", "Metadata", "Produce", "Fetch") for kind in ("request", "reply")]


def test_hex_of_batches_and_of_captures_is_seen_as_what_it_is(decode):
    assert decode(batch().hex(), "--json").objects()[0]["records"][0]["value"] == "one"
    assert decode(pcap(talk(SAID)).hex(), "--json").objects()[0]["source"] == f"{CLIENT[0]}:{CLIENT[1]}"
    assert BROKER[1] == 9092


def test_a_reply_is_of_the_api_that_is_named(decode):
    data = SAID[7].data.hex()
    found, = decode(data, "--json", "--api", "fetch", "--version", "13").objects()
    assert (found["api"], found["version"], found["fields"]["responses"][0]["topic_id"]) == (
        "Fetch", 13, "EjRWeBI0VngSNFZ4EjRWeA")
    assert TOPIC_ID
    newest, = decode(data, "--json", "--api", "1").objects()
    assert newest["version"] >= 13
    told = decode(data, "--api", "Fetch", "--version", "3")
    assert told.status == 1


@pytest.mark.parametrize("place", [3, 7])
def test_a_reply_without_a_request_is_guessed_and_the_others_that_fit_are_listed(decode, place):
    told = decode(SAID[place].data.hex(), "--json")
    found, = told.objects()
    assert (told.status, found["api"]) == (0, {3: "Metadata", 7: "Fetch"}[place])
    assert found["note"].startswith("guessed, fits v")
    text = decode(reply(FetchResponse(), 4, 1).data.hex()).text
    assert "; also " in text
    assert "(--api NAME --version N decides)" in text


def test_a_frame_that_is_cut_shows_what_is_there(decode):
    told = decode(FRAME[:90].hex(), "--json")
    found, = told.objects()
    assert told.status == 1
    assert found["damage"] == f"only the first 86 of {len(FRAME) - 4} bytes are there"
    assert found["fields"]["topic_data"][0]["name"] == "orders"


def test_a_damaged_request_names_the_field_and_the_byte(decode):
    broken = bytearray(FRAME)
    broken[broken.index(b"orders") - 1] = 0x7F
    told = decode(bytes(broken).hex(), "--json", "--api", "Produce")
    found, = told.objects()
    assert told.status == 1
    assert found["fields"]["timeout_ms"] == 1000
    assert re.fullmatch(r"126 bytes should follow and \d+ are there \(at byte \d+ of the frame, "
                        r"in topic_data\[0\]\.name\)", found["damage"])


@pytest.mark.parametrize("message", [
    SaslAuthenticateResponse(auth_bytes=b"r=nonce,s=SECRET,i=4096"), CreateDelegationTokenResponse(hmac=b"SECRET"),
])
@pytest.mark.parametrize("version", [0, 2])
def test_a_guess_never_shows_a_secret(decode, message, version):
    told = decode(reply(message, version, 1).data.hex())
    assert "SECRET" not in told.text
    assert "<hidden " in told.text


def test_sasl_bytes_are_hidden_whatever_way_they_come(decode):
    from tests.support.decode_samples import request

    data = request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0s3cr3t"), 2, 1).data
    for told in (decode(data.hex()), decode(data, "--json"), decode(data[:-3].hex()), decode(data[4:].hex(" "))):
        assert "s3cr3t" not in told.text
        assert "SaslAuthenticate" in told.text


@pytest.mark.parametrize(("text", "reason"), [
    ("abc", "3 hex digits"), ("hello world", "is no hex"), ("0x12 zz", "is no hex"), ("b'\\xzz'", "Python's bytes"),
])
def test_what_is_no_hex_is_named(decode, text, reason):
    told = decode(text)
    assert told.status == 1
    assert reason in told.text


def test_what_is_nothing_known_is_named(decode):
    assert "say what it is with --as" in decode(b"\xff\xfe\xfd" * 20).text
    assert "unpack it first" in decode(b"\x1f\x8b\x08" + bytes(50)).text
    assert decode("é").status == 1


def blocks_or_damage(text):
    try:
        return read_hex(text)
    except Damage as damage:
        return str(damage)


@given(st.text(max_size=300))
def test_any_text_is_hex_or_a_named_damage(text):
    assert blocks_or_damage(text)


@given(st.text("0123456789abcdefx:|*'b\\ \t\n>", max_size=300))
def test_texts_that_are_nearly_hex_are_read_or_a_named_damage(text):
    assert blocks_or_damage(text)
