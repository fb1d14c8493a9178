"""Which versions of each API the releases of Kafka took, so that the broker can stand in for an older one.

One line an API: from which release on which highest version. The lowest was 0 until Kafka 4 dropped the oldest ones
(KIP-896). A release that a line does not reach did not have the API. Releases before 0.10.0 did not have ApiVersions,
so a client had to know, or try, what they took.

Source: `validVersions` of the message schemas of each release, and Kafka's protocol guide for those before 2.4.
Read next: `broker.dispatch`, which narrows what is served.
"""

from __future__ import annotations

__all__ = ["RELEASES", "versions_of_kafka"]

RELEASES = ("0.8.0", "0.8.1", "0.8.2", "0.9", "0.10.0", "0.10.1", "0.10.2", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2",
            "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8",
            "3.9", "4.0", "4.1", "4.2", "4.3", "4.4")
"""Releases whose versions are known here, oldest first."""

_HIGHEST = {
    "Produce": "0.8.0=0 0.9=1 0.10.0=2 0.11=3 1.0=5 2.0=6 2.1=7 2.4=8 2.8=9 3.7=10 3.8=11 4.0=12 4.1=13",
    "Fetch": "0.8.0=0 0.9=1 0.10.0=2 0.10.1=3 0.11=5 1.0=6 1.1=7 2.0=8 2.1=10 2.3=11 2.7=12 3.1=13 3.5=15 3.7=16 "
             "3.9=17 4.1=18",
    "ListOffsets": "0.8.0=0 0.10.1=1 0.11=2 2.0=3 2.1=4 2.2=5 2.8=6 3.0=7 3.5=8 3.9=9 4.0=10 4.2=11",
    "Metadata": "0.8.0=0 0.10.0=1 0.10.1=2 0.11=4 1.0=5 2.0=6 2.1=7 2.3=8 2.4=9 2.8=11 3.1=12 4.0=13",
    "OffsetCommit": "0.8.1=0 0.8.2=1 0.9=2 0.11=3 2.0=4 2.1=6 2.3=7 2.4=8 3.7=9 4.2=10",
    "OffsetFetch": "0.8.1=0 0.8.2=1 0.10.2=2 0.11=3 2.0=4 2.1=5 2.4=6 2.5=7 3.0=8 3.7=9 4.2=10",
    "FindCoordinator": "0.8.2=0 0.11=1 2.0=2 2.4=3 3.0=4 3.8=5 3.9=6",
    "JoinGroup": "0.9=0 0.10.1=1 0.11=2 2.0=3 2.2=4 2.3=5 2.4=6 2.5=7 3.2=9",
    "Heartbeat": "0.9=0 0.11=1 2.0=2 2.3=3 2.4=4",
    "LeaveGroup": "0.9=0 0.11=1 2.0=2 2.4=4 3.2=5",
    "SyncGroup": "0.9=0 0.11=1 2.0=2 2.3=3 2.4=4 2.5=5",
    "DescribeGroups": "0.9=0 0.11=1 2.0=2 2.3=3 2.4=5 4.0=6",
    "ListGroups": "0.9=0 0.11=1 2.0=2 2.4=3 2.6=4 3.8=5",
    "ApiVersions": "0.10.0=0 0.11=1 2.0=2 2.4=3 3.9=4 4.4=5",
    "CreateTopics": "0.10.1=0 0.10.2=1 0.11=2 2.0=3 2.4=5 2.7=6 2.8=7",
    "DeleteTopics": "0.10.1=0 0.11=1 2.0=2 2.1=3 2.4=4 2.7=5 2.8=6",
    "DeleteRecords": "0.11=0 2.0=1 2.6=2",
    "InitProducerId": "0.11=0 2.0=1 2.4=2 2.5=3 2.7=4 3.8=5",
    "AddPartitionsToTxn": "0.11=0 2.0=1 2.7=2 2.8=3 3.5=4 3.8=5",
    "AddOffsetsToTxn": "0.11=0 2.0=1 2.7=2 2.8=3 3.8=4",
    "EndTxn": "0.11=0 2.0=1 2.7=2 2.8=3 3.8=4 4.0=5",
    "WriteTxnMarkers": "0.11=0 2.8=1 4.2=2",
    "TxnOffsetCommit": "0.11=0 2.0=1 2.1=2 2.5=3 3.8=4 4.0=5 4.4=6",
    "OffsetForLeaderEpoch": "0.11=0 2.0=1 2.1=2 2.3=3 2.8=4",
    "DescribeAcls": "0.11=0 2.0=1 2.5=2 3.3=3",
    "CreateAcls": "0.11=0 2.0=1 2.5=2 3.3=3",
    "DeleteAcls": "0.11=0 2.0=1 2.5=2 3.3=3",
    "DescribeConfigs": "0.11=0 1.1=1 2.0=2 2.6=3 2.8=4",
    "AlterConfigs": "0.11=0 2.0=1 2.8=2",
    "AlterReplicaLogDirs": "1.0=0 2.0=1 2.8=2",
    "DescribeLogDirs": "1.0=0 2.0=1 2.6=2 3.2=3 3.3=4 4.3=5",
    "CreatePartitions": "1.0=0 2.0=1 2.5=2 2.7=3",
    "DeleteGroups": "1.1=0 2.0=1 2.4=2 4.4=3",
    "ElectLeaders": "2.2=0 2.4=2",
    "IncrementalAlterConfigs": "2.3=0 2.4=1",
    "AlterPartitionReassignments": "2.4=0 4.1=1",
    "ListPartitionReassignments": "2.4=0",
    "OffsetDelete": "2.4=0",
    "DescribeClientQuotas": "2.6=0 2.8=1",
    "AlterClientQuotas": "2.6=0 2.8=1",
    "DescribeUserScramCredentials": "2.7=0",
    "AlterUserScramCredentials": "2.7=0",
    "DescribeQuorum": "3.3=1 3.9=2",
    "DescribeCluster": "2.8=0 3.7=1 4.0=2",
    "DescribeProducers": "2.8=0",
    "DescribeTransactions": "3.0=0",
    "ListTransactions": "3.0=0 3.8=1 4.1=2",
    "DescribeTopicPartitions": "3.8=0",
    "ListConfigResources": "3.7=0 4.1=1",
    "ConsumerGroupHeartbeat": "3.7=0 4.0=1",
    "ConsumerGroupDescribe": "3.7=0 4.0=1",
    "ShareGroupHeartbeat": "4.1=1",
    "ShareGroupDescribe": "4.1=1",
    "ShareFetch": "4.1=1 4.2=2",
    "ShareAcknowledge": "4.1=1 4.2=2",
    "DescribeShareGroupOffsets": "4.1=0 4.2=1",
    "AlterShareGroupOffsets": "4.1=0",
    "DeleteShareGroupOffsets": "4.1=0",
}

_LOWEST_OF_KAFKA_4 = {
    "Produce": 3, "Fetch": 4, "ListOffsets": 1, "OffsetCommit": 2, "OffsetFetch": 1, "CreateTopics": 2,
    "DeleteTopics": 1, "OffsetForLeaderEpoch": 2, "DescribeConfigs": 1, "DescribeAcls": 1, "CreateAcls": 1,
    "DeleteAcls": 1, "AlterReplicaLogDirs": 1, "DescribeLogDirs": 1, "WriteTxnMarkers": 1, "ShareGroupHeartbeat": 1,
    "ShareGroupDescribe": 1, "ShareFetch": 1, "ShareAcknowledge": 1,
}


def versions_of_kafka(release: str) -> dict[str, tuple[int, int] | None]:
    """Lowest and highest version of every API in a release of Kafka; None where the release does not have it.

    Args:
        release: one of `RELEASES`; a patch number behind it is ignored ("3.9.2").

    Raises:
        ValueError: the release is not known.
    """
    known = next((each for each in RELEASES if f"{release}.".startswith(f"{each}.")), None)
    if known is None:
        raise ValueError(f"Kafka {release!r} is not known; there are {', '.join(RELEASES)}")
    place = RELEASES.index(known)
    is_kafka_4 = place >= RELEASES.index("4.0")
    found: dict[str, tuple[int, int] | None] = {}
    for name, steps in _HIGHEST.items():
        pairs = (step.split("=") for step in steps.split())
        reached = [int(version) for since, version in pairs if RELEASES.index(since) <= place]
        found[name] = (_LOWEST_OF_KAFKA_4.get(name, 0) if is_kafka_4 else 0, reached[-1]) if reached else None
    return found
