"""Statistics with every field of librdkafka's: what reads these by name, as its exporters do, finds each of them.

A field that has no meaning here has the value that librdkafka gives where there is nothing to tell: zero for counts and
for times, -1 for what is not known, -1001 for an offset. Only `stats_cb` gets them; `metrics()` has what means
something. A producer's `txn_` fields are left out: zero would tell of a transaction what is not so.

The brokers are librdkafka's as well: who counts those that are up counts all that there are, and none twice.

Source of the names and values: librdkafka, STATISTICS.md, and its code. Read next: `client.statistics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from headrace.net.stats import Window
from headrace.types.records import OFFSET_INVALID, NodeAddress

if TYPE_CHECKING:
    from headrace.types.metrics import BrokerMetrics, Metrics, PartitionMetrics, TopicMetrics, WindowMetrics

__all__ = ["whole_statistics"]

_BROKER: Final = {
    "stateage": 0, "outbuf_msg_cnt": 0, "waitresp_msg_cnt": 0, "txretries": 0, "txidle": -1, "rxcorriderrs": 0,
    "rxpartial": 0, "rxidle": -1, "zbuf_grow": 0, "buf_grow": 0, "wakeups": 0,
}
_NEVER_USED: Final = {
    "source": "learned", "state": "INIT", "outbuf_cnt": 0, "waitresp_cnt": 0, "tx": 0, "txbytes": 0, "txerrs": 0,
    "rx": 0, "rxbytes": 0, "rxerrs": 0, "req_timeouts": 0, "connects": 0, "disconnects": 0,
}
_UNUSED_STATES: Final = ("INIT", "DOWN")
_PARTITION: Final = {
    "unknown": False, "msgq_cnt": 0, "msgq_bytes": 0, "xmit_msgq_cnt": 0, "xmit_msgq_bytes": 0, "fetchq_cnt": 0,
    "fetchq_size": 0, "fetch_state": "none", "query_offset": OFFSET_INVALID, "next_offset": 0,
    "app_offset": OFFSET_INVALID, "stored_offset": OFFSET_INVALID, "stored_leader_epoch": -1,
    "committed_offset": OFFSET_INVALID, "committed_leader_epoch": -1, "eof_offset": OFFSET_INVALID,
    "lo_offset": OFFSET_INVALID, "hi_offset": OFFSET_INVALID, "ls_offset": OFFSET_INVALID, "consumer_lag": -1,
    "consumer_lag_stored": -1, "leader_epoch": -1, "txmsgs": 0, "txbytes": 0, "rxmsgs": 0, "rxbytes": 0,
    "rx_ver_drops": 0, "msgs_inflight": 0, "next_ack_seq": 0, "next_err_seq": 0, "acked_msgid": 0,
}


def whole_statistics(metrics: Metrics, nodes: Iterable[NodeAddress] = ()) -> dict[str, Any]:
    """What `stats_cb` gets of a client's figures.

    Args:
        metrics: the figures.
        nodes: the brokers of the cluster, as far as they are known.
    """
    topics = metrics["topics"]
    led = _led(topics)
    whole: dict[str, Any] = {
        **metrics, "topics": {name: _topic(topic, metrics["type"]) for name, topic in topics.items()},
        "brokers": {name: _broker(broker, led) for name, broker in _brokers(metrics["brokers"], nodes).items()}}
    if "eos" in metrics:
        whole["eos"] = {"idemp_stateage": 0, "epoch_cnt": 0, **metrics["eos"]}
    if "cgrp" in metrics:
        whole["cgrp"] = {"stateage": 0, "rebalance_reason": "", **metrics["cgrp"]}
    return whole


def _brokers(counted: Mapping[str, BrokerMetrics], nodes: Iterable[NodeAddress]) -> dict[str, Any]:
    """All brokers of the cluster, those included that the client has not talked to yet.

    A bootstrap server is one of them under another name: it is left out while it is not used, when they are known.
    """
    unused = {node.id: node for node in nodes if node.id >= 0}
    known = bool(unused)
    brokers: dict[str, Any] = {}
    for name, broker in counted.items():
        unused.pop(broker["nodeid"], None)
        if not known or broker["nodeid"] >= 0 or broker["state"] not in _UNUSED_STATES:
            brokers[name] = broker
    for node in unused.values():
        place = f"{node.host}:{node.port}"
        name = f"{place}/{node.id}"
        brokers[name] = {"name": name, "nodeid": node.id, "nodename": place, "req": {}, **_NEVER_USED}
    return brokers


def _led(topics: dict[str, TopicMetrics]) -> dict[int, dict[str, Any]]:
    """The partitions of each leader, by its id."""
    led: dict[int, dict[str, Any]] = {}
    for name, topic in topics.items():
        for partition in topic["partitions"].values():
            number = partition["partition"]
            led.setdefault(partition["leader"], {})[f"{name}-{number}"] = {"topic": name, "partition": number}
    return led


def _broker(broker: Mapping[str, Any], led: dict[int, dict[str, Any]]) -> dict[str, Any]:
    windows = {name: _window(broker.get(name)) for name in ("int_latency", "outbuf_latency", "rtt", "throttle")}
    toppars = led.get(broker["nodeid"], {}) if broker["nodeid"] >= 0 else {}
    return {**_BROKER, **broker, **windows, "toppars": toppars}


def _topic(topic: TopicMetrics, kind: str) -> dict[str, Any]:
    return {"age": 0, "metadata_age": 0, **topic, "batchsize": _window(topic.get("batchsize")),
            "batchcnt": _window(topic.get("batchcnt")),
            "partitions": {number: _partition(partition, kind) for number, partition in topic["partitions"].items()}}


def _partition(partition: PartitionMetrics, kind: str) -> dict[str, Any]:
    whole = {**_PARTITION, **partition, "broker": partition["leader"], "desired": kind == "consumer"}
    return {**whole, "msgs": whole["rxmsgs" if kind == "consumer" else "txmsgs"],
            "commited_offset": whole["committed_offset"]}  # spelt so in librdkafka as well


def _window(window: Any) -> dict[str, int]:
    measured: WindowMetrics = window or Window().metrics()
    return {**measured, "hdrsize": 0, "outofrange": 0}  # type: ignore[dict-item]
