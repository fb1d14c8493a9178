"""The table of error codes: code, name, Kafka's own name, retriable or not, and its meaning; and how rights are named.

Positive codes travel on the wire (Java: `org.apache.kafka.common.protocol.Errors`); negative ones are the
client's own, numbered as in librdkafka so that programs which compare codes keep working.

This module knows nothing else of the package.
"""

from __future__ import annotations

__all__ = ["CODES", "ErrorCode", "ErrorCodes", "lacking"]


def lacking(text: str, right: str) -> str:
    """A refusal with the right that it takes: brokers say only that something is missing."""
    return f"{text.rstrip('.')}; this needs {right}"


class ErrorCodes:
    """Every code as a class attribute, under librdkafka's name."""

    _BAD_MSG = -199
    _BAD_COMPRESSION = -198
    _DESTROY = -197
    _FAIL = -196
    _TRANSPORT = -195
    _CRIT_SYS_RESOURCE = -194
    _RESOLVE = -193
    _MSG_TIMED_OUT = -192
    _PARTITION_EOF = -191
    _UNKNOWN_PARTITION = -190
    _FS = -189
    _UNKNOWN_TOPIC = -188
    _ALL_BROKERS_DOWN = -187
    _INVALID_ARG = -186
    _TIMED_OUT = -185
    _QUEUE_FULL = -184
    _ISR_INSUFF = -183
    _NODE_UPDATE = -182
    _SSL = -181
    _WAIT_COORD = -180
    _UNKNOWN_GROUP = -179
    _IN_PROGRESS = -178
    _PREV_IN_PROGRESS = -177
    _EXISTING_SUBSCRIPTION = -176
    _ASSIGN_PARTITIONS = -175
    _REVOKE_PARTITIONS = -174
    _CONFLICT = -173
    _STATE = -172
    _UNKNOWN_PROTOCOL = -171
    _NOT_IMPLEMENTED = -170
    _AUTHENTICATION = -169
    _NO_OFFSET = -168
    _OUTDATED = -167
    _TIMED_OUT_QUEUE = -166
    _UNSUPPORTED_FEATURE = -165
    _WAIT_CACHE = -164
    _INTR = -163
    _KEY_SERIALIZATION = -162
    _VALUE_SERIALIZATION = -161
    _KEY_DESERIALIZATION = -160
    _VALUE_DESERIALIZATION = -159
    _PARTIAL = -158
    _READ_ONLY = -157
    _NOENT = -156
    _UNDERFLOW = -155
    _INVALID_TYPE = -154
    _RETRY = -153
    _PURGE_QUEUE = -152
    _PURGE_INFLIGHT = -151
    _FATAL = -150
    _INCONSISTENT = -149
    _GAPLESS_GUARANTEE = -148
    _MAX_POLL_EXCEEDED = -147
    _UNKNOWN_BROKER = -146
    _NOT_CONFIGURED = -145
    _FENCED = -144
    _APPLICATION = -143
    _ASSIGNMENT_LOST = -142
    _NOOP = -141
    _AUTO_OFFSET_RESET = -140
    _LOG_TRUNCATION = -139
    _INVALID_DIFFERENT_RECORD = -138
    _DESTROY_BROKER = -137
    UNKNOWN = -1
    NO_ERROR = 0
    OFFSET_OUT_OF_RANGE = 1
    INVALID_MSG = 2
    UNKNOWN_TOPIC_OR_PART = 3
    INVALID_MSG_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_FOR_PARTITION = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MSG_SIZE_TOO_LARGE = 10
    STALE_CTRL_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136


class ErrorCode:
    """One row of the table.

    Attributes:
        code: the number.
        name: librdkafka's name.
        kafka_name: the name in Java's Errors; the same as `name` for the client's own codes.
        retriable: the same call may succeed when it is tried again.
        about: what the code means, in one sentence.
    """

    __slots__ = ("about", "code", "kafka_name", "name", "retriable")

    def __init__(self, code: int, name: str, kafka_name: str, retriable: bool, about: str) -> None:
        self.code = code
        self.name = name
        self.kafka_name = kafka_name
        self.retriable = retriable
        self.about = about


_ROWS: tuple[tuple[str, bool, str] | tuple[str, bool, str, str], ...] = (
    # name, retriable, meaning, and Java's name where it differs
    ("_BAD_MSG", False, "Bytes from the broker break the wire format."),
    ("_BAD_COMPRESSION", False, "Compressed records cannot be decompressed."),
    ("_DESTROY", False, "The client has been closed."),
    ("_FAIL", False, "The operation failed for a reason without a code of its own."),
    ("_TRANSPORT", True, "The connection to the broker failed."),
    (
        "_CRIT_SYS_RESOURCE", False,
        "The system has run out of something the client cannot do without, such as memory or threads.",
    ),
    ("_RESOLVE", True, "The host name of a broker cannot be resolved."),
    ("_MSG_TIMED_OUT", True, "The record was not acknowledged within message.timeout.ms."),
    ("_PARTITION_EOF", False, "The consumer has reached the end of the partition; more records may come."),
    ("_UNKNOWN_PARTITION", False, "The topic has no such partition."),
    ("_FS", False, "A file cannot be read or written."),
    ("_UNKNOWN_TOPIC", False, "The cluster has no such topic, or it is hidden from this user."),
    ("_ALL_BROKERS_DOWN", True, "No broker can be reached."),
    ("_INVALID_ARG", False, "An argument or a configuration value is not valid."),
    ("_TIMED_OUT", True, "The operation did not finish in time."),
    ("_QUEUE_FULL", True, "The producer's buffer is full: serve delivery reports and try again."),
    ("_ISR_INSUFF", False, "The partition has fewer replicas in sync than the record needs."),
    ("_NODE_UPDATE", False, "The address of a broker has changed."),
    ("_SSL", False, "The TLS handshake failed or the TLS settings are wrong."),
    ("_WAIT_COORD", True, "The coordinator is not known yet."),
    ("_UNKNOWN_GROUP", False, "The group is not known."),
    ("_IN_PROGRESS", True, "The operation is still going on."),
    ("_PREV_IN_PROGRESS", False, "An earlier operation must finish first."),
    ("_EXISTING_SUBSCRIPTION", False, "The call would clash with the subscription that is there."),
    ("_ASSIGN_PARTITIONS", False, "Partitions are to be assigned."),
    ("_REVOKE_PARTITIONS", False, "Partitions are to be given up."),
    ("_CONFLICT", False, "Two settings or calls contradict each other."),
    ("_STATE", False, "The call is not allowed in the client's present state."),
    ("_UNKNOWN_PROTOCOL", False, "The protocol is not known."),
    ("_NOT_IMPLEMENTED", False, "This is not implemented."),
    ("_AUTHENTICATION", False, "The broker does not accept the credentials."),
    ("_NO_OFFSET", False, "No offset is stored that could be committed."),
    ("_OUTDATED", False, "The information is out of date."),
    ("_TIMED_OUT_QUEUE", True, "The request waited too long to be sent."),
    ("_UNSUPPORTED_FEATURE", False, "The broker does not support this feature."),
    ("_WAIT_CACHE", True, "The answer must wait for fresh metadata."),
    ("_INTR", True, "The operation was interrupted."),
    ("_KEY_SERIALIZATION", False, "The key cannot be serialized."),
    ("_VALUE_SERIALIZATION", False, "The value cannot be serialized."),
    ("_KEY_DESERIALIZATION", False, "The key cannot be deserialized."),
    ("_VALUE_DESERIALIZATION", False, "The value cannot be deserialized."),
    ("_PARTIAL", False, "Only a part of a message has arrived."),
    ("_READ_ONLY", False, "The object can only be read."),
    ("_NOENT", False, "There is no such entry."),
    ("_UNDERFLOW", False, "The data ends too early."),
    ("_INVALID_TYPE", False, "The value has the wrong type."),
    ("_RETRY", True, "The operation failed for a passing reason: try it again."),
    ("_PURGE_QUEUE", False, "The record was purged before it was sent."),
    ("_PURGE_INFLIGHT", False, "The record was purged while a request with it was on its way; the broker may have it."),
    ("_FATAL", False, "The client cannot go on: close it and see the reason."),
    ("_INCONSISTENT", False, "The client's view of the cluster contradicts itself."),
    ("_GAPLESS_GUARANTEE", False, "A record was lost where the producer promises to leave no gap."),
    ("_MAX_POLL_EXCEEDED", False, "The application did not poll within max.poll.interval.ms and has left the group."),
    ("_UNKNOWN_BROKER", False, "The cluster has no such broker."),
    ("_NOT_CONFIGURED", False, "What the call needs is not configured."),
    ("_FENCED", False, "A newer instance with the same identity has taken over."),
    ("_APPLICATION", False, "The application itself reported the error."),
    ("_ASSIGNMENT_LOST", False, "The group took the partitions away before they could be given up."),
    ("_NOOP", False, "There was nothing to do."),
    ("_AUTO_OFFSET_RESET", False, "There is no valid offset to read from and auto.offset.reset does not choose one."),
    ("_LOG_TRUNCATION", False, "Records that were read have since been lost by the partition."),
    ("_INVALID_DIFFERENT_RECORD", False, "Another record of the batch is invalid, which took this one with it."),
    ("_DESTROY_BROKER", False, "The connection's broker has been removed."),
    (
        "UNKNOWN", False,
        "The broker failed in a way that it has no code for; its log says more.",
        "UNKNOWN_SERVER_ERROR",
    ),
    ("NO_ERROR", False, "All went well.", "NONE"),
    (
        "OFFSET_OUT_OF_RANGE", False,
        "The partition does not hold this offset: it is deleted already or not written yet.",
    ),
    (
        "INVALID_MSG", True,
        "A record is damaged, too large, or lacks the key that a compacted topic needs.",
        "CORRUPT_MESSAGE",
    ),
    ("UNKNOWN_TOPIC_OR_PART", True, "The broker does not have this topic or partition.", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("INVALID_MSG_SIZE", False, "The number of bytes to fetch is not valid.", "INVALID_FETCH_SIZE"),
    ("LEADER_NOT_AVAILABLE", True, "The partition has no leader at the moment."),
    (
        "NOT_LEADER_FOR_PARTITION", True,
        "The broker does not lead this partition, or holds no replica of it.",
        "NOT_LEADER_OR_FOLLOWER",
    ),
    ("REQUEST_TIMED_OUT", True, "The broker could not finish the request in time."),
    ("BROKER_NOT_AVAILABLE", False, "The broker is not available."),
    ("REPLICA_NOT_AVAILABLE", True, "The replica is not available on this broker."),
    (
        "MSG_SIZE_TOO_LARGE", False,
        "The record batch is larger than the topic or the broker allows.",
        "MESSAGE_TOO_LARGE",
    ),
    (
        "STALE_CTRL_EPOCH", False,
        "The request comes from a controller that has been replaced.",
        "STALE_CONTROLLER_EPOCH",
    ),
    ("OFFSET_METADATA_TOO_LARGE", False, "The text to be kept with a committed offset is too long."),
    ("NETWORK_EXCEPTION", True, "The connection broke before the answer came."),
    ("COORDINATOR_LOAD_IN_PROGRESS", True, "The coordinator is still loading its state."),
    ("COORDINATOR_NOT_AVAILABLE", True, "There is no coordinator at the moment."),
    ("NOT_COORDINATOR", True, "The broker is not the coordinator, or is it no longer."),
    (
        "TOPIC_EXCEPTION", False,
        "The topic's name is not valid, or the topic may not be used like this.",
        "INVALID_TOPIC_EXCEPTION",
    ),
    ("RECORD_LIST_TOO_LARGE", False, "The batch is larger than a log segment may be."),
    ("NOT_ENOUGH_REPLICAS", True, "Too few replicas are in sync; nothing was written."),
    (
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND", True,
        "The records were written, but to fewer replicas than min.insync.replicas.",
    ),
    ("INVALID_REQUIRED_ACKS", False, "acks must be 0, 1 or -1."),
    ("ILLEGAL_GENERATION", False, "The group has moved on to another generation."),
    ("INCONSISTENT_GROUP_PROTOCOL", False, "The group's members share no protocol with this one, or it offers none."),
    ("INVALID_GROUP_ID", False, "The group's name is empty or not valid."),
    ("UNKNOWN_MEMBER_ID", False, "The coordinator does not know this member."),
    ("INVALID_SESSION_TIMEOUT", False, "The session timeout is outside of the limits that the broker sets."),
    ("REBALANCE_IN_PROGRESS", False, "The group is rebalancing; its members must join again."),
    ("INVALID_COMMIT_OFFSET_SIZE", False, "The offset commit is too large to be stored."),
    ("TOPIC_AUTHORIZATION_FAILED", False, "This user may not do this with the topic."),
    ("GROUP_AUTHORIZATION_FAILED", False, "This user may not do this with the group."),
    ("CLUSTER_AUTHORIZATION_FAILED", False, "This user may not do this with the cluster."),
    ("INVALID_TIMESTAMP", False, "A record's timestamp is further from the broker's time than the topic allows."),
    ("UNSUPPORTED_SASL_MECHANISM", False, "The broker does not offer this SASL mechanism."),
    ("ILLEGAL_SASL_STATE", False, "The request does not fit into this step of the authentication."),
    ("UNSUPPORTED_VERSION", False, "The broker does not know this version of the request."),
    ("TOPIC_ALREADY_EXISTS", False, "A topic of this name exists already."),
    ("INVALID_PARTITIONS", False, "The number of partitions is not valid."),
    ("INVALID_REPLICATION_FACTOR", False, "The replication factor is below 1 or above the number of brokers."),
    ("INVALID_REPLICA_ASSIGNMENT", False, "The assignment of replicas to brokers is not valid."),
    ("INVALID_CONFIG", False, "A configuration entry is not valid."),
    ("NOT_CONTROLLER", True, "The node is not the controller."),
    ("INVALID_REQUEST", False, "The request contradicts itself or its version; the broker's log says how."),
    ("UNSUPPORTED_FOR_MESSAGE_FORMAT", False, "The record format of the topic does not support the request."),
    ("POLICY_VIOLATION", False, "A policy of the cluster forbids this."),
    ("OUT_OF_ORDER_SEQUENCE_NUMBER", False, "A batch of this producer is missing before this one."),
    ("DUPLICATE_SEQUENCE_NUMBER", False, "The broker has this batch already."),
    ("INVALID_PRODUCER_EPOCH", False, "The producer's epoch is outdated."),
    ("INVALID_TXN_STATE", False, "The transaction is not in a state that allows this."),
    ("INVALID_PRODUCER_ID_MAPPING", False, "The producer id does not belong to this transactional id."),
    ("INVALID_TRANSACTION_TIMEOUT", False, "The transaction timeout is above the broker's transaction.max.timeout.ms."),
    ("CONCURRENT_TRANSACTIONS", True, "An earlier transaction of this transactional id is still being finished."),
    (
        "TRANSACTION_COORDINATOR_FENCED", False,
        "The transaction marker comes from a coordinator that has been replaced.",
    ),
    ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, "This user may not use the transactional id."),
    ("SECURITY_DISABLED", False, "The cluster runs without an authorizer."),
    ("OPERATION_NOT_ATTEMPTED", False, "Another part of the same request failed, so this part was not tried."),
    ("KAFKA_STORAGE_ERROR", True, "The broker's disk failed."),
    ("LOG_DIR_NOT_FOUND", False, "The broker has no such log directory."),
    ("SASL_AUTHENTICATION_FAILED", False, "The broker does not accept the credentials."),
    (
        "UNKNOWN_PRODUCER_ID", False,
        "The broker has forgotten this producer, for example because its records have expired.",
    ),
    ("REASSIGNMENT_IN_PROGRESS", False, "The partition's replicas are being moved."),
    ("DELEGATION_TOKEN_AUTH_DISABLED", False, "The cluster does not use delegation tokens."),
    ("DELEGATION_TOKEN_NOT_FOUND", False, "The delegation token does not exist."),
    ("DELEGATION_TOKEN_OWNER_MISMATCH", False, "Only the owner or a renewer may do this with the delegation token."),
    (
        "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", False,
        "Delegation tokens cannot be managed over this kind of connection.",
    ),
    ("DELEGATION_TOKEN_AUTHORIZATION_FAILED", False, "This user may not do this with the delegation token."),
    ("DELEGATION_TOKEN_EXPIRED", False, "The delegation token has expired."),
    ("INVALID_PRINCIPAL_TYPE", False, "This type of principal is not supported."),
    ("NON_EMPTY_GROUP", False, "The group still has members."),
    ("GROUP_ID_NOT_FOUND", False, "The group does not exist."),
    ("FETCH_SESSION_ID_NOT_FOUND", True, "The broker has dropped the fetch session; a new one is needed."),
    (
        "INVALID_FETCH_SESSION_EPOCH", True,
        "The fetch session's epoch is not the expected one; a new session is needed.",
    ),
    ("LISTENER_NOT_FOUND", True, "The leader has no listener like the one that was asked."),
    ("TOPIC_DELETION_DISABLED", False, "The cluster does not let topics be deleted."),
    ("FENCED_LEADER_EPOCH", True, "The client's leader epoch is older than the broker's."),
    ("UNKNOWN_LEADER_EPOCH", True, "The client's leader epoch is newer than the broker's, which has to catch up."),
    (
        "UNSUPPORTED_COMPRESSION_TYPE", False,
        "The records are compressed in a way that this version of the request does not allow.",
    ),
    ("STALE_BROKER_EPOCH", False, "The broker has registered anew since."),
    ("OFFSET_NOT_AVAILABLE", True, "The new leader does not know yet how far records are committed."),
    ("MEMBER_ID_REQUIRED", False, "Join again with the member id given in the answer."),
    ("PREFERRED_LEADER_NOT_AVAILABLE", True, "The preferred leader is not available."),
    ("GROUP_MAX_SIZE_REACHED", False, "The group has as many members as it may have."),
    ("FENCED_INSTANCE_ID", False, "Another member has taken this group.instance.id."),
    ("ELIGIBLE_LEADERS_NOT_AVAILABLE", True, "No replica that could lead the partition is available."),
    ("ELECTION_NOT_NEEDED", True, "The partition has the leader that it should have."),
    ("NO_REASSIGNMENT_IN_PROGRESS", False, "There is no reassignment to be cancelled."),
    ("GROUP_SUBSCRIBED_TO_TOPIC", False, "The group still reads the topic, so its offsets there cannot be deleted."),
    ("INVALID_RECORD", False, "The broker does not accept this record."),
    ("UNSTABLE_OFFSET_COMMIT", True, "A transaction that commits offsets is still open."),
    ("THROTTLING_QUOTA_EXCEEDED", True, "A quota is used up: wait and try again."),
    ("PRODUCER_FENCED", False, "A newer producer with the same transactional.id has taken over."),
    ("RESOURCE_NOT_FOUND", False, "The named resource does not exist."),
    ("DUPLICATE_RESOURCE", False, "The request names the same resource twice."),
    ("UNACCEPTABLE_CREDENTIAL", False, "The credential is not strong enough or not allowed."),
    ("INCONSISTENT_VOTER_SET", False, "Sender and receiver disagree about the controllers that vote."),
    ("INVALID_UPDATE_VERSION", False, "The version of the update is not valid."),
    ("FEATURE_UPDATE_FAILED", False, "The features could not be updated."),
    (
        "PRINCIPAL_DESERIALIZATION_FAILURE", False,
        "A forwarded principal cannot be read; the brokers' security settings differ.",
    ),
    ("SNAPSHOT_NOT_FOUND", False, "The snapshot does not exist."),
    ("POSITION_OUT_OF_RANGE", False, "The position lies outside of the snapshot."),
    ("UNKNOWN_TOPIC_ID", True, "The broker does not have a topic with this id."),
    ("DUPLICATE_BROKER_REGISTRATION", False, "Another broker runs with this id."),
    ("BROKER_ID_NOT_REGISTERED", False, "No broker with this id is registered."),
    ("INCONSISTENT_TOPIC_ID", True, "The topic's id in the log is another one; the topic was made anew."),
    ("INCONSISTENT_CLUSTER_ID", False, "The request was meant for another cluster."),
    ("TRANSACTIONAL_ID_NOT_FOUND", False, "The transactional id does not exist."),
    ("FETCH_SESSION_TOPIC_ID_ERROR", True, "The fetch session mixes topics with and without ids; a new one is needed."),
    ("INELIGIBLE_REPLICA", False, "A replica may not be in sync, because its broker is down or shutting down."),
    ("NEW_LEADER_ELECTED", False, "The change was made, and it made another broker the leader."),
    ("OFFSET_MOVED_TO_TIERED_STORAGE", False, "The offset is kept in tiered storage only."),
    ("FENCED_MEMBER_EPOCH", False, "The member's epoch is outdated: it must give up its partitions and join again."),
    ("UNRELEASED_INSTANCE_ID", False, "Another member still holds this group.instance.id."),
    ("UNSUPPORTED_ASSIGNOR", False, "The group does not support this assignor."),
    ("STALE_MEMBER_EPOCH", False, "The member's epoch is outdated: its next heartbeat brings the new one."),
    ("MISMATCHED_ENDPOINT_TYPE", False, "A request for controllers went to a broker, or the other way round."),
    ("UNSUPPORTED_ENDPOINT_TYPE", False, "This type of endpoint is not supported."),
    ("UNKNOWN_CONTROLLER_ID", False, "There is no controller with this id."),
    ("UNKNOWN_SUBSCRIPTION_ID", False, "The telemetry subscription has changed and must be fetched anew."),
    ("TELEMETRY_TOO_LARGE", False, "The telemetry is larger than the broker takes."),
    ("INVALID_REGISTRATION", False, "The controller does not accept the broker's registration."),
    ("TRANSACTION_ABORTABLE", False, "The transaction cannot be committed: abort it and begin anew."),
    (
        "INVALID_RECORD_STATE", False,
        "The record is no longer held by this share consumer, so it cannot be acknowledged.",
    ),
    ("SHARE_SESSION_NOT_FOUND", True, "The broker has dropped the share session; a new one is needed."),
    (
        "INVALID_SHARE_SESSION_EPOCH", True,
        "The share session's epoch is not the expected one; a new session is needed.",
    ),
    ("FENCED_STATE_EPOCH", False, "The share group's state has moved on to another epoch."),
    ("INVALID_VOTER_KEY", False, "The request was meant for a voter with another id or directory."),
    ("DUPLICATE_VOTER", False, "The controller is a voter already."),
    ("VOTER_NOT_FOUND", False, "The controller is not a voter."),
    ("INVALID_REGULAR_EXPRESSION", False, "The regular expression is not valid (RE2 syntax)."),
    (
        "REBOOTSTRAP_REQUIRED", False,
        "The client's knowledge of the cluster is useless: begin again from bootstrap.servers.",
    ),
    ("STREAMS_INVALID_TOPOLOGY", False, "The streams topology is not valid."),
    ("STREAMS_INVALID_TOPOLOGY_EPOCH", False, "The epoch of the streams topology is not valid."),
    ("STREAMS_TOPOLOGY_FENCED", False, "The streams topology is an outdated one."),
    ("SHARE_SESSION_LIMIT_REACHED", True, "The broker keeps as many share sessions as it may."),
    ("GROUP_DELETION_FAILED", False, "The group could not be deleted; its result says why."),
    ("STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", False, "The description of the streams topology was not accepted."),
    ("CONTROLLER_ID_NOT_REGISTERED", False, "No controller with this id is registered."),
)


def _row(name: str, retriable: bool, about: str, kafka_name: str = "") -> ErrorCode:
    return ErrorCode(getattr(ErrorCodes, name), name, kafka_name or name, retriable, about)


CODES: dict[int, ErrorCode] = {row.code: row for row in (_row(*values) for values in _ROWS)}
