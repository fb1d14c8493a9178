"""`headrace decode` on captures: every container, every link, and what networks do to a connection."""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.decode.capture.captures import CaptureReader, Packet
from headrace.decode.capture.tcp import Stamp, Stream
from headrace.decode.output.nodes import Damage
from headrace.decode.stream.connections import Connections
from headrace.decode.stream.exchange import Frame
from headrace.wire.messages.cluster.session import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.support.decode_samples import (
    ACK,
    BROKER,
    CLIENT,
    LINKS,
    PSH,
    RST,
    SYN,
    Said,
    batch,
    block,
    conversation,
    pcap,
    pcapng,
    reply,
    request,
    talk,
    tcp,
)

NAMES = ["ApiVersions", "ApiVersions", "Metadata", "Metadata", "Produce", "Produce", "Fetch", "Fetch"]


def names(objects):
    return [found["api"] for found in objects if found["kind"] in ("request", "reply")]


def frames_of(packets, **options):
    """The frames that some packets make, without the command around."""
    connections = Connections(**options)
    found = [event for number, data in enumerate(packets, 1)
             for event in connections.push(Packet(number, 0, number * 10**6, 101, data, len(data)))]
    return [*found, *connections.flush()]


def bodies(events):
    return sorted((e.kind, e.name, e.body.version, e.body.correlation_id, e.body.damage, e.size) for e in events)


@pytest.mark.parametrize("link", LINKS)
def test_every_link_gives_the_same_frames(decode, link):
    told = decode(pcap(talk(conversation()), LINKS[link]), "--json")
    assert (told.status, names(told.objects())) == (0, NAMES)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_in_both_byte_orders_and_resolutions(decode, order, nano):
    told = decode(pcap(talk(conversation()), order=order, nano=nano), "--json").objects()
    assert names(told) == NAMES
    assert told[0]["time"] == "2023-11-14 22:13:20.125456000Z"  # the third packet
    assert told[1]["latency_ms"] == 1.0


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", [6, 9])
def test_pcapng_in_both_byte_orders_and_resolutions(decode, order, resolution):
    told = decode(pcapng(talk(conversation()), order=order, resolution=resolution), "--json").objects()
    assert names(told) == NAMES
    assert told[0]["time"] == "2023-11-14 22:13:20.125456000Z"


def test_pcapng_with_two_sections_of_different_byte_order_and_simple_packets(decode):
    packets = talk(conversation())
    simple = b"".join(block(3, struct.pack(">I", len(p) + 14) + LINKS["ethernet"].head + p, ">") for p in packets[4:])
    second = (block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1), ">")
              + block(1, struct.pack(">HHI", 1, 0, 0), ">") + simple)
    told = decode(pcapng(packets[:4]) + second, "--json").objects()
    assert names(told) == NAMES
    assert "time" not in told[-1]


@pytest.mark.parametrize("extensions", [b"", b"\x00\x06" + bytes(7), b"\x3c\x2b\x01" + bytes(14) + b"\x06" + bytes(7),
                                        b"\x33\x06\x04" + bytes(22), b"\x2c\x06" + bytes(7)])
def test_ipv6_with_extension_headers(decode, extensions):
    told = decode(pcap(talk(conversation(), ipv6=extensions), LINKS["raw"]), "--json").objects()
    assert names(told) == NAMES
    assert told[0]["source"] == "[::ffff:10.0.0.1]:40000"


def test_a_total_length_of_0_is_a_packet_that_the_network_card_is_yet_to_cut(decode):
    assert names(decode(pcap(talk(conversation(), total=0)), "--json").objects()) == NAMES


def test_a_headline_says_who_what_and_how_long(decode):
    lines = decode(pcap(talk(conversation()))).text.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads[4] == ('2023-11-14 22:13:20.129456Z  #7  10.0.0.1:40000 -> 10.0.0.2:9092  Produce (0) v9 request, '
                        'correlation 3, client "test", 136 bytes')
    assert heads[5] == ('2023-11-14 22:13:20.130456Z  #8  10.0.0.2:9092 -> 10.0.0.1:40000  Produce (0) v9 reply, '
                        'correlation 3, client "test", 53 bytes, after 1.000 ms')


def test_records_inside_of_requests_and_replies_are_shown_with_their_topic_by_name(decode):
    text = decode(pcap(talk(conversation()))).text
    assert text.count('key "k", value "two", headers h="x", n=null') == 2
    assert "topic_id: EjRWeBI0VngSNFZ4EjRWeA (orders)" in text


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_splits_reorderings_and_retransmissions_of_a_stream_give_the_same_frames(seed, step, first, again):
    chance = random.Random(seed)
    expected = bodies(frames_of(talk(conversation())))
    packets = talk(conversation(), step=step, first=(first, first ^ 0x8000_0000))
    start, middle = packets[:2], packets[2:]
    if again:
        middle += [chance.choice(middle) for _ in range(len(middle) // 3)]
    # Anything may overtake anything, but a request comes before the reply to it by more than a few packets.
    order = sorted(range(len(middle)), key=lambda place: place + chance.uniform(0, 12))
    assert bodies(frames_of(start + [middle[place] for place in order])) == expected


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_a_stream_is_the_same_bytes_however_they_were_cut_doubled_and_mixed(seed, size, first):
    chance = random.Random(seed)
    data = chance.randbytes(size)
    cuts = [(a, a + chance.randint(1, 50)) for a in range(0, size, chance.randint(1, 30)) for _ in (0, 1)]
    cuts += [(a, size) for a in (0,)] if chance.random() < 0.3 else [(a, min(size, a + 30)) for a in range(0, size, 30)]
    chance.shuffle(cuts)
    stream = Stream(first)
    pieces = [piece for a, b in cuts for piece in stream.push((first + a) % 2**32, data[a:b], 0, Stamp(0, 0, 0))]
    assert b"".join(piece.data for piece in pieces) == data
    assert stream.waiting == 0


def test_a_lost_packet_inside_of_a_frame_costs_that_frame_only(decode):
    packets = talk(conversation(), step=60)
    produce = next(i for i, packet in enumerate(packets) if b"test" in packet and packet[56:58] == b"\0\0")
    told = decode(pcap(packets[:produce + 1] + packets[produce + 2:]), "--json")
    found = told.objects()
    assert told.status == 1
    assert sorted(names(found)) == sorted(NAMES)
    assert [o["damage"] for o in found if "damage" in o] == [
        "60 bytes are missing", "only the first 56 of 136 bytes are there"]
    damaged = next(o for o in found if o["kind"] == "request" and "damage" in o)
    assert damaged["api"] == "Produce"
    assert damaged["fields"]["acks"] == -1


def test_a_lost_packet_across_the_end_of_a_frame_is_followed_by_the_next_frame_that_can_be_found(decode):
    said = conversation()
    sides = {True: [s for s in said if s.by_client], False: [s for s in said if not s.by_client]}
    packets = talk([Said(side, b"".join(s.data for s in sides[side])) for side in (True, False)], step=100)
    told = decode(pcap(packets[:2] + packets[3:]), "--json")  # the first 100 bytes of the requests
    assert told.status == 1
    assert names(told.objects())[0] == "Fetch"
    assert any("bytes were passed over" in o.get("note", "") for o in told.objects())


def test_a_reply_that_was_captured_before_its_request_is_matched(decode):
    packets = talk(conversation())
    packets[2], packets[3] = packets[3], packets[2]
    found = decode(pcap(packets), "--json").objects()
    assert names(found) == NAMES
    assert found[1]["kind"] == "reply"


def test_packets_that_were_captured_in_part_say_how_much_is_missing(decode):
    told = decode(pcap(talk(conversation()), snap=150), "--json")
    produce = next(o for o in told.objects() if o.get("api") == "Produce" and o["kind"] == "request")
    assert (told.status, produce["damage"]) == (1, "only the first 80 of 136 bytes are there")
    assert names(told.objects()) == NAMES


def test_a_connection_that_is_older_than_the_capture_is_found_by_its_frames(decode):
    found = decode(pcap(talk(conversation(), opened=False)[1:]), "--json").objects()
    assert names(found) == NAMES[2:]  # the first reply has no request
    found = decode(pcap(talk(conversation(), opened=False, step=50)[1:]), "--json").objects()
    assert names(found) == NAMES[2:]


def test_two_connections_over_the_same_ports_are_two(decode):
    told = decode(pcap(talk(conversation(), closed=False) + talk(conversation(), first=(77, 99))), "--json")
    assert (told.status, names(told.objects())) == (0, NAMES * 2)


def test_a_connection_that_ends_within_a_frame_is_no_damage(decode):
    packets = talk(conversation(), step=30, closed=False)
    told = decode(pcap([*packets[:-1], tcp(CLIENT, BROKER, 0, flags=RST)]), "--json")
    assert told.status == 0
    assert "bytes had come at the end" in told.objects()[-1]["note"]


def test_a_produce_request_without_acks_waits_for_no_reply(decode):
    said = [request(ProduceRequest(acks=0), 9, 1), request(ApiVersionsRequest(), 0, 1),
            reply(ApiVersionsResponse(), 0, 1)]
    assert names(decode(pcap(talk(said)), "--json").objects()) == ["Produce", "ApiVersions", "ApiVersions"]


def test_an_answer_in_version_0_to_an_unknown_version_of_api_versions_is_read(decode):
    said = [request(ApiVersionsRequest(), 4, 1), reply(ApiVersionsResponse(error_code=35), 0, 1)]
    found = decode(pcap(talk(said)), "--json").objects()[1]
    assert (found["version"], found["fields"]["error_code_name"]) == (0, "UNSUPPORTED_VERSION")


def test_apis_and_versions_that_are_not_known_are_no_damage(decode):
    frame = struct.pack(">ihhihs", 13, 120, 3, 9, 1, b"c") + b"??"
    later = struct.pack(">ihhihs", 13, 3, 30, 10, 1, b"c") + b"??"
    answer = Said(False, struct.pack(">iii", 8, 9, 0))
    told = decode(pcap(talk([Said(True, frame), Said(True, later), answer])), "--json")
    found = told.objects()
    assert told.status == 0
    assert found[0]["note"] == "API key 120 is not known here"
    assert found[1]["note"].startswith("this version is not known here (Metadata is known in versions 0-")
    assert found[2]["api"] == "API 120"


def test_fragments_tls_and_foreign_connections_are_named_and_not_read(decode):
    def opened(port, data):
        client = ("10.0.0.1", port)
        return [tcp(client, BROKER, 1, flags=SYN), tcp(BROKER, client, 1, flags=SYN | ACK, acknowledged=2),
                tcp(client, BROKER, 2, data)]

    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40)
    fragment = tcp(CLIENT, BROKER, 1, b"abcdefgh", fragment=0x2000)
    told = decode(pcap([*opened(1, hello), *opened(2, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), fragment]), "--json")
    notes = [o["note"] for o in told.objects()]
    assert told.status == 1  # of the fragment
    assert notes == ["this connection is encrypted with TLS and cannot be read",
                     "1 fragments of IP packets, which are not put together",
                     "1 connection encrypted with TLS, which cannot be read", "1 connection that are not Kafka's"]


def test_raw_sasl_tokens_are_told_by_their_size_only(decode):
    def token(by_client, data):
        return Said(by_client, len(data).to_bytes(4, "big") + data)

    said = [request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1), reply(SaslHandshakeResponse(), 0, 1),
            token(True, b"\0alice\0s3cr3t"), token(False, b""), token(True, b"n,,n=alice,r=fyko+d2l"),
            token(False, b"r=fyko+d2lbbFgONRv9qkxdawL,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"), *conversation()[:2]]
    told = decode(pcap(talk(said)))
    assert told.status == 0
    assert "s3cr3t" not in told.text
    assert "fyko" not in told.text
    assert told.text.count("SASL token <hidden ") == 4
    assert "<hidden 13 bytes>" in told.text
    assert "client_software_name" in told.text


def test_only_connections_of_the_named_port_are_shown(decode):
    data = pcap(talk(conversation()))
    assert decode(data, "--port", "9092").text.count("request") == 4
    assert decode(data, "--port", "9093").text == ""


@pytest.mark.parametrize(("make", "text"), [
    (lambda data: data[:-5], "the capture ends within a packet"),
    (lambda data: data[:24] + b"\xff" * 40, "a packet of 4294967295 bytes: the capture is damaged"),
])
def test_a_damaged_pcap_is_read_up_to_the_damage_and_its_byte_is_named(decode, make, text):
    whole = pcap(talk(conversation(), closed=False))
    told = decode(make(whole))
    assert told.status == 1
    assert text in told.text
    assert "at byte " in told.text


@pytest.mark.parametrize(("at", "change", "text"), [
    (4, b"\x0d\0\0\0", "a packet of 13 bytes"), (8, b"abcd", "the byte order mark 61626364"),
])
def test_a_damaged_pcapng_names_what_is_wrong(decode, at, change, text):
    whole = pcapng(talk(conversation()))
    told = decode(whole[:at] + change + whole[at + 4:])
    assert told.status == 1
    assert text in told.text


@settings(max_examples=150)
@given(st.binary(max_size=400), st.sampled_from([pcap, pcapng]), st.integers(0, 2**32 - 1), st.integers(1, 97))
def test_random_damage_of_a_capture_raises_nothing_but_a_named_damage(noise, make, seed, step):
    chance = random.Random(seed)
    whole = bytearray(make(talk(conversation(batch([b"x" * 50] * 3, codec=1)))))
    for byte in noise:
        whole[chance.randrange(len(whole))] = byte
    reader, connections = CaptureReader(), Connections()
    position = 0
    try:
        for at in range(0, len(whole), step):
            for packet in reader.feed(bytes(whole[at:at + step])):
                list(connections.push(packet))
        reader.end()
    except Damage as damage:
        position = damage.position
    assert 0 <= position <= len(whole)
    for event in connections.flush():
        assert event.stamp.packet >= 0


def test_bytes_after_a_gap_are_given_when_the_receiver_has_confirmed_them_for_a_second():
    stream = Stream(0)
    assert [p.data for p in stream.push(0, b"abc", 0, Stamp(0, 1, 0))] == [b"abc"]
    assert stream.push(5, b"fgh", 0, Stamp(10**9, 2, 0)) == []
    assert stream.acknowledge(8, 10**9 + 5) == []
    assert [(p.size, p.data) for p in stream.acknowledge(8, 2 * 10**9)] == [(2, None), (3, b"fgh")]


def test_what_waits_for_missing_bytes_is_bounded():
    stream = Stream(0, max_waiting=1000)
    pieces = [p for at in range(10, 5000, 10) for p in stream.push(at + 1, b"0123456789", 0, Stamp(0, 0, 0))]
    assert sum(p.size for p in pieces) > 3000
    assert pieces[0].data is None


def test_a_frame_longer_than_any_broker_takes_is_damage_and_the_next_is_found():
    said = conversation()
    broken = Said(True, b"\x7f\xff\xff\xff" + b"z" * 20)
    events = frames_of(talk([said[0], said[1], broken, *said[2:]], step=1 << 16))
    assert [e.name for e in events if isinstance(e, Frame)] == NAMES
    assert any("a frame of 2147483647 bytes cannot be" in e.text for e in events if not isinstance(e, Frame))


def test_a_push_flag_or_none_makes_no_difference():
    plain = [tcp(CLIENT, BROKER, 1001 + 4 * i, b"", flags=ACK) for i in range(3)]
    assert frames_of(plain) == []
    assert PSH  # packets of `talk` have it
