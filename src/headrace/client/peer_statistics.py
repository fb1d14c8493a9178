"""Statistics with every field of librdkafka's: what reads these by name, as its exporters do, finds each of them.

A field that has no meaning here has the value that librdkafka gives where there is nothing to tell: zero for counts and
for times, -1 for what is not known, -1001 for an offset. Only `stats_cb` gets them; `metrics()` has what means
something. A producer's `txn_` fields are left out: zero would tell of a transaction what is not so.

Source of the names and values: librdkafka, STATISTICS.md, and its code. Read next: `client.statistics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headrace.net.stats import Window
from headrace.types.records import OFFSET_INVALID

if TYPE_CHECKING:
    from headrace.types.metrics import BrokerMetrics, Metrics, PartitionMetrics, TopicMetrics, WindowMetrics

__all__ = ["whole_statistics"]

_BROKER: Final = {
    "stateage": 0, "outbuf_msg_cnt": 0, "waitresp_msg_cnt": 0, "txretries": 0, "txidle": -1, "rxcorriderrs": 0,
    "rxpartial": 0, "rxidle": -1, "zbuf_grow": 0, "buf_grow": 0, "wakeups": 0,
}
_PARTITION: Final = {
    "unknown": False, "msgq_cnt": 0, "msgq_bytes": 0, "xmit_msgq_cnt": 0, "xmit_msgq_bytes": 0, "fetchq_cnt": 0,
    "fetchq_size": 0, "fetch_state": "none", "query_offset": OFFSET_INVALID, "next_offset": 0,
    "app_offset": OFFSET_INVALID, "stored_offset": OFFSET_INVALID, "stored_leader_epoch": -1,
    "committed_offset": OFFSET_INVALID, "committed_leader_epoch": -1, "eof_offset": OFFSET_INVALID,
    "lo_offset": OFFSET_INVALID, "hi_offset": OFFSET_INVALID, "ls_offset": OFFSET_INVALID, "consumer_lag": -1,
    "consumer_lag_stored": -1, "leader_epoch": -1, "txmsgs": 0, "txbytes": 0, "rxmsgs": 0, "rxbytes": 0,
    "rx_ver_drops": 0, "msgs_inflight": 0, "next_ack_seq": 0, "next_err_seq": 0, "acked_msgid": 0,
}


def whole_statistics(metrics: Metrics) -> dict[str, Any]:
    """What `stats_cb` gets of a client's figures."""
    topics = metrics["topics"]
    led = _led(topics)
    whole: dict[str, Any] = {
        **metrics, "topics": {name: _topic(topic, metrics["type"]) for name, topic in topics.items()},
        "brokers": {name: _broker(broker, led) for name, broker in metrics["brokers"].items()}}
    if "eos" in metrics:
        whole["eos"] = {"idemp_stateage": 0, "epoch_cnt": 0, **metrics["eos"]}
    if "cgrp" in metrics:
        whole["cgrp"] = {"stateage": 0, "rebalance_reason": "", **metrics["cgrp"]}
    return whole


def _led(topics: dict[str, TopicMetrics]) -> dict[int, dict[str, Any]]:
    """The partitions of each leader, by its id."""
    led: dict[int, dict[str, Any]] = {}
    for name, topic in topics.items():
        for partition in topic["partitions"].values():
            number = partition["partition"]
            led.setdefault(partition["leader"], {})[f"{name}-{number}"] = {"topic": name, "partition": number}
    return led


def _broker(broker: BrokerMetrics, led: dict[int, dict[str, Any]]) -> dict[str, Any]:
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
