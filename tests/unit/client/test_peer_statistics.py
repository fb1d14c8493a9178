"""Every field of librdkafka's statistics: what is not counted here has the value of nothing to tell."""

from typing import Any

from headrace.client.peer_statistics import whole_statistics
from headrace.net.stats import Window
from headrace.types.metrics import BrokerMetrics
from headrace.types.records import NodeAddress


def figures(kind: str, partition: dict[str, Any]) -> Any:
    rtt = Window()
    rtt.add(7)
    broker = {"nodeid": 1, "state": "UP", "rtt": rtt.metrics(), "throttle": Window().metrics()}
    return {"type": kind, "topics": {"t": {"topic": "t", "partitions": {"0": {"partition": 0, **partition}}}},
            "brokers": {"b:1/1": broker, "b:1/bootstrap": {**broker, "nodeid": -1}}}


def test_a_broker_names_the_partitions_that_it_leads() -> None:
    brokers = whole_statistics(figures("producer", {"leader": 1}))["brokers"]
    assert brokers["b:1/1"]["toppars"] == {"t-0": {"topic": "t", "partition": 0}}
    assert brokers["b:1/bootstrap"]["toppars"] == {}
    nowhere = whole_statistics(figures("producer", {"leader": -1}))["brokers"]
    assert [broker["toppars"] for broker in nowhere.values()] == [{}, {}]


def test_what_is_counted_stays_and_what_is_not_is_zero_or_not_known() -> None:
    whole = whole_statistics(figures("producer", {"leader": 1, "txmsgs": 5}))
    broker, partition = whole["brokers"]["b:1/1"], whole["topics"]["t"]["partitions"]["0"]
    assert (broker["rtt"]["sum"], broker["int_latency"]["cnt"], broker["txidle"]) == (7, 0, -1)
    assert (partition["txmsgs"], partition["msgs"], partition["rxmsgs"], partition["desired"]) == (5, 5, 0, False)
    assert (partition["broker"], partition["app_offset"], partition["consumer_lag"]) == (1, -1001, -1)
    assert "cgrp" not in whole


def test_a_consumer_has_the_committed_offset_under_both_spellings() -> None:
    given = {**figures("consumer", {"leader": 1, "committed_offset": 4, "rxmsgs": 9}), "cgrp": {"state": "up"}}
    whole = whole_statistics(given)
    partition = whole["topics"]["t"]["partitions"]["0"]
    assert (partition["committed_offset"], partition["commited_offset"], partition["msgs"]) == (4, 4, 9)
    assert partition["desired"] is True
    assert whole["cgrp"] == {"state": "up", "stateage": 0, "rebalance_reason": ""}


def test_all_brokers_of_the_cluster_are_there_and_one_that_was_not_used_has_every_field() -> None:
    nodes = [NodeAddress(1, "b", 1), NodeAddress(2, "b", 2)]
    brokers = whole_statistics(figures("producer", {"leader": 2}), nodes)["brokers"]
    unused = brokers["b:2/2"]
    assert (unused["name"], unused["nodeid"], unused["nodename"]) == ("b:2/2", 2, "b:2")
    assert (unused["source"], unused["state"], unused["tx"], unused["req"]) == ("learned", "INIT", 0, {})
    assert unused["toppars"] == {"t-0": {"topic": "t", "partition": 0}}
    assert unused.keys() == {*brokers["b:1/1"], *BrokerMetrics.__annotations__}
    assert brokers["b:1/1"]["rtt"]["sum"] == 7


def test_a_bootstrap_server_is_there_until_the_brokers_are_known_and_while_it_is_used() -> None:
    known = [NodeAddress(1, "b", 1)]
    for state, nodes, there in (("DOWN", [], True), ("DOWN", [NodeAddress(-1000, "b", 1)], True), ("UP", known, True),
                                ("CONNECT", known, True), ("INIT", known, False), ("DOWN", known, False)):
        given = figures("producer", {"leader": 1})
        given["brokers"]["b:1/bootstrap"]["state"] = state
        assert ("b:1/bootstrap" in whole_statistics(given, nodes)["brokers"]) == there, (state, nodes)
