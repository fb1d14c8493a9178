"""Administration: `AdminClient` and the values that it takes and gives, under confluent_kafka.admin's names.

The asyncio client is `headrace.aio.AIOAdminClient`.
"""

from __future__ import annotations

from headrace.client.admin.admin_client import AdminClient
from headrace.client.cluster_metadata import (
    BrokerMetadata,
    ClusterMetadata,
    GroupMember,
    GroupMetadata,
    PartitionMetadata,
    TopicMetadata,
)
from headrace.errors import KafkaError, KafkaException
from headrace.types.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from headrace.types.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DeletedRecords,
    DescribeClusterResult,
    EarliestSpec,
    IsolationLevel,
    LatestSpec,
    ListOffsetsResultInfo,
    MaxTimestampSpec,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TimestampSpec,
    TopicDescription,
)
from headrace.types.cluster import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    TopicCollection,
)
from headrace.types.cluster_parts import (
    FeatureMetadata,
    LogDirDescription,
    PartitionProducer,
    PartitionReassignment,
    QuorumInfo,
    QuorumReplicaState,
    ReplicaInfo,
    TransactionDescription,
    TransactionListing,
)
from headrace.types.groups import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ListConsumerGroupsResult,
    ListedShareGroup,
    MemberAssignment,
    MemberDescription,
    OffsetReset,
    ShareGroupDescription,
    SharePartitionOffset,
)
from headrace.types.records import OFFSET_INVALID, TopicPartition
from headrace.types.users import (
    DelegationToken,
    QuotaEntity,
    QuotaFilter,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)

CONFIG_SOURCE_UNKNOWN_CONFIG = ConfigSource.UNKNOWN_CONFIG.value
CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG = ConfigSource.DYNAMIC_BROKER_CONFIG.value
CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value
CONFIG_SOURCE_STATIC_BROKER_CONFIG = ConfigSource.STATIC_BROKER_CONFIG.value
CONFIG_SOURCE_DEFAULT_CONFIG = ConfigSource.DEFAULT_CONFIG.value
CONFIG_SOURCE_GROUP_CONFIG = ConfigSource.GROUP_CONFIG.value
RESOURCE_UNKNOWN = ResourceType.UNKNOWN.value
RESOURCE_ANY = ResourceType.ANY.value
RESOURCE_TOPIC = ResourceType.TOPIC.value
RESOURCE_GROUP = ResourceType.GROUP.value
RESOURCE_BROKER = ResourceType.BROKER.value
RESOURCE_TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID.value

_ConsumerGroupState = ConsumerGroupState
_ConsumerGroupTopicPartitions = ConsumerGroupTopicPartitions
_ConsumerGroupType = ConsumerGroupType
_ElectionType = ElectionType
_IsolationLevel = IsolationLevel
_TopicCollection = TopicCollection
_TopicPartition = TopicPartition
"""Programs import these from confluent_kafka.admin, where they have an underscore."""

__path__: list[str] = []
"""Modules may be imported from below (`headrace.client.peer_modules`), and none is a file."""

__all__ = [
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AdminClient",
    "AlterConfigOpType",
    "BrokerMetadata",
    "CONFIG_SOURCE_DEFAULT_CONFIG",
    "CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG",
    "CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG",
    "CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG",
    "CONFIG_SOURCE_GROUP_CONFIG",
    "CONFIG_SOURCE_STATIC_BROKER_CONFIG",
    "CONFIG_SOURCE_UNKNOWN_CONFIG",
    "ClusterMetadata",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConsumerGroupDescription",
    "ConsumerGroupListing",
    "DelegationToken",
    "DeletedRecords",
    "DescribeClusterResult",
    "EarliestSpec",
    "FeatureMetadata",
    "GroupMember",
    "GroupMetadata",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "LatestSpec",
    "ListConsumerGroupsResult",
    "ListOffsetsResultInfo",
    "ListedShareGroup",
    "LogDirDescription",
    "MaxTimestampSpec",
    "MemberAssignment",
    "MemberDescription",
    "NewPartitions",
    "NewTopic",
    "OFFSET_INVALID",
    "OffsetReset",
    "OffsetSpec",
    "PartitionMetadata",
    "PartitionProducer",
    "PartitionReassignment",
    "QuorumInfo",
    "QuorumReplicaState",
    "QuotaEntity",
    "QuotaFilter",
    "RESOURCE_ANY",
    "RESOURCE_BROKER",
    "RESOURCE_GROUP",
    "RESOURCE_TOPIC",
    "RESOURCE_TRANSACTIONAL_ID",
    "RESOURCE_UNKNOWN",
    "ReplicaInfo",
    "ResourcePatternType",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramMechanism",
    "ShareGroupDescription",
    "SharePartitionOffset",
    "TimestampSpec",
    "TopicDescription",
    "TopicMetadata",
    "TransactionDescription",
    "TransactionListing",
    "UserScramCredentialAlteration",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "UserScramCredentialsDescription",
]
