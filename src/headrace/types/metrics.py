"""What `metrics()` of a client returns, and what `stats_cb` gets as JSON: librdkafka's names.

Only type checkers and readers need these: nothing imports them when it runs.
Source of the names: librdkafka, STATISTICS.md. Read next: `client.statistics`, which fills them in.
"""

from __future__ import annotations

from typing import TypedDict

__all__ = [
    "BrokerMetrics", "GroupMetrics", "IdempotenceMetrics", "Metrics", "PartitionMetrics", "TopicMetrics",
    "WindowMetrics",
]


class WindowMetrics(TypedDict):
    """Figures of the last values of a quantity, 1,000 at most, all as whole numbers; zeros where there was none.

    Attributes:
        min, max, avg, sum, stddev, p50, p75, p90, p95, p99, p99_99: of these values.
        cnt: how many they are.
    """

    min: int
    max: int
    avg: int
    sum: int
    stddev: int
    p50: int
    p75: int
    p90: int
    p95: int
    p99: int
    p99_99: int
    cnt: int


class BrokerMetrics(TypedDict):
    """One broker; the counters go on for as long as the client lives.

    Attributes:
        name: ``host:port/id``; ``host:port/bootstrap`` for a server of `bootstrap.servers`.
        nodeid: its id, -1 for a bootstrap server; nodename: ``host:port``.
        source: "configured" for a bootstrap server, else "learned".
        state: "INIT", "CONNECT", "APIVERSION_QUERY", "UP" or "DOWN", of its best connection.
        outbuf_cnt, waitresp_cnt: requests that wait for the connection, and for their reply.
        tx, txbytes, txerrs: requests written, their bytes; requests that failed before.
        rx, rxbytes, rxerrs: replies, their bytes; requests that lost their reply with the connection.
        req_timeouts: requests whose time was over.
        req: requests written, by name.
        connects, disconnects: attempts to connect; connections that came to an end.
        rtt: time from a request to its reply, in microseconds.
        throttle: `throttle_time_ms` of the replies, in milliseconds.
    """

    name: str
    nodeid: int
    nodename: str
    source: str
    state: str
    outbuf_cnt: int
    waitresp_cnt: int
    tx: int
    txbytes: int
    txerrs: int
    rx: int
    rxbytes: int
    rxerrs: int
    req_timeouts: int
    req: dict[str, int]
    connects: int
    disconnects: int
    rtt: WindowMetrics
    throttle: WindowMetrics


class PartitionMetrics(TypedDict, total=False):
    """One partition. A producer has the first block, a consumer the second.

    Attributes:
        partition: its number; leader: broker id, -1 while it is not known.
        xmit_msgq_cnt, xmit_msgq_bytes: records in closed batches that wait to be sent, bytes of these batches.
        msgs_inflight: records that were sent and are not acknowledged.
        txmsgs, txbytes: records acknowledged, bytes of their batches as sent.
        next_offset: the next one to fetch; app_offset: the next one to hand out; -1001 while not known.
        stored_offset, committed_offset: what the next commit covers, and what the last one did; -1001 for none.
        lo_offset, hi_offset: first offset and high watermark as of the last fetch; -1 while not known.
        ls_offset: the last stable offset, as of then: in front of the first open transaction.
        eof_offset: the end of which the application was told last; -1001 for none.
        leader_epoch: of the leader that the last record came from; -1 while not known.
        fetch_state: "active", or "offset-query", "validate-epoch-wait" or "stopped".
        consumer_lag: `ls_offset` (with "isolation.level" read_uncommitted `hi_offset`) less `app_offset`; -1 while one
            is not known.
        consumer_lag_stored: the same less `stored_offset`.
        rxmsgs, rxbytes: records fetched since the partition was assigned, as their batches count them, and their bytes
            as sent.
        fetchq_cnt, fetchq_size: of these, what is in answers that were not handed out to the end.
    """

    partition: int
    leader: int
    xmit_msgq_cnt: int
    xmit_msgq_bytes: int
    msgs_inflight: int
    txmsgs: int
    txbytes: int
    next_offset: int
    app_offset: int
    stored_offset: int
    committed_offset: int
    lo_offset: int
    hi_offset: int
    ls_offset: int
    eof_offset: int
    leader_epoch: int
    fetch_state: str
    consumer_lag: int
    consumer_lag_stored: int
    rxmsgs: int
    rxbytes: int
    fetchq_cnt: int
    fetchq_size: int


class TopicMetrics(TypedDict, total=False):
    """One topic.

    Attributes:
        topic: its name.
        batchsize, batchcnt: bytes as sent, and records, of a producer's acknowledged batches.
        partitions: by number, as text.
    """

    topic: str
    batchsize: WindowMetrics
    batchcnt: WindowMetrics
    partitions: dict[str, PartitionMetrics]


class IdempotenceMetrics(TypedDict):
    """The producer's identity, as its last acknowledged batch had it: epochs are per partition here.

    Attributes:
        idemp_state: "Init" before that, then "Assigned".
        producer_id, producer_epoch: -1 before that.
    """

    idemp_state: str
    producer_id: int
    producer_epoch: int


class GroupMetrics(TypedDict):
    """The consumer's part in its group.

    Attributes:
        state: "up" while the coordinator is known, "query-coord" while it is looked for, "init" without a group.
        join_state: "steady" of a member that reads what it was given; "wait-join", "wait-sync", "wait-assign-call" or
            "wait-unassign-call" on the way there; "init" of a consumer that is no member.
        rebalance_age: milliseconds since partitions last came or went; 0 before.
        rebalance_cnt: how often they did.
        assignment_size: partitions that are assigned.
    """

    state: str
    join_state: str
    rebalance_age: int
    rebalance_cnt: int
    assignment_size: int


class Metrics(TypedDict, total=False):
    """What `metrics()` returns; `stats_cb` gets it as JSON, with what `client.peer_statistics` adds.

    Counts of records are 0 in a client that does not have them.

    Attributes:
        name: ``client.id#producer-1``: numbered in this process; client_id: `client.id`.
        type: "producer" or "consumer".
        ts: a monotonic clock, in microseconds; time: seconds since the epoch; age: microseconds since the client was
            made.
        replyq: callbacks that wait for `poll()`.
        tx, tx_bytes, rx, rx_bytes: requests and replies of all brokers, and their bytes.
        metadata_cache_cnt: topics that the client knows; simple_cnt: always 0.
        brokers: by `BrokerMetrics.name`; topics: by name.
        msg_cnt, msg_size: records that wait in a producer, from `produce()` to the report, and their memory in bytes.
        msg_max, msg_size_max: their limits, 0 for none.
        txmsgs, txmsg_bytes: records acknowledged, bytes of their batches as sent.
        rxmsgs, rxmsg_bytes: records that a consumer has fetched, and their bytes, those of partitions that it has no
            more included.
        eos: of a producer with `enable.idempotence`.
        cgrp: of a consumer.
    """

    name: str
    client_id: str
    type: str
    ts: int
    time: int
    age: int
    replyq: int
    tx: int
    tx_bytes: int
    rx: int
    rx_bytes: int
    metadata_cache_cnt: int
    simple_cnt: int
    brokers: dict[str, BrokerMetrics]
    topics: dict[str, TopicMetrics]
    msg_cnt: int
    msg_size: int
    msg_max: int
    msg_size_max: int
    txmsgs: int
    txmsg_bytes: int
    rxmsgs: int
    rxmsg_bytes: int
    eos: IdempotenceMetrics
    cgrp: GroupMetrics
