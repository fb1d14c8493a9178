"""Calls about the cluster: brokers, features, controllers and directories.

It must not know the faces. Read next: `machines.admin.cluster_requests`.
"""

from __future__ import annotations

import operator
import sys

from headrace.arguments import instance_of, list_of, mapping_of
from headrace.client.admin.admin_area import AdminArea, ByKey, Single, check_numbers, flag, partitions_of
from headrace.client.admin.admin_engine import ANY_NODE, CONTROLLER
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import cluster_requests as requests
from headrace.machines.admin.admin_results import raise_failure
from headrace.types.admin import DescribeClusterResult
from headrace.types.cluster_parts import FeatureMetadata, LogDirDescription, QuorumInfo
from headrace.types.records import TopicPartition, Uuid
from headrace.wire.messages.admin.nodes import UnregisterBrokerRequest
from headrace.wire.messages.cluster.metadata import DescribeClusterRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest

__all__ = ["ClusterCalls"]

_ALTER = "ALTER on the cluster"


class ClusterCalls(AdminArea):
    """The cluster."""

    def describe_cluster(
        self, *, request_timeout: float | None = None, include_authorized_operations: bool = False
    ) -> Single[DescribeClusterResult]:
        """Find out about the cluster.

        The result has its id, controller and brokers, and if asked what this client may do with the cluster.
        """
        authorized = flag(include_authorized_operations, "include_authorized_operations")
        limit_s = self.limit(request_timeout)
        request = DescribeClusterRequest(include_cluster_authorized_operations=authorized)

        async def describe() -> DescribeClusterResult:
            try:
                return await self.engine.single(ANY_NODE, request, limit_s, requests.read_cluster)
            except KafkaException as failed:
                if failed.error.code() != KafkaError._UNSUPPORTED_FEATURE:
                    raise
            return await self.engine.single(ANY_NODE, requests.describe_old_cluster(authorized), limit_s,
                                            requests.read_old_cluster)

        return describe()

    def cluster_id(self, timeout: float = -1) -> Single[str | None]:
        """The id of the cluster; None when the broker is from before Kafka 0.10.1.

        Args:
            timeout: seconds; socket.timeout.ms when it is negative.
        """
        return self.core.cluster_id(self.limit_of(timeout))

    def describe_features(self, *, request_timeout: float | None = None) -> Single[FeatureMetadata]:
        """Find the features of the cluster. The result has the levels in use, and those that a broker supports."""
        return self.engine.single(ANY_NODE, _ask_versions(), self.limit(request_timeout), requests.read_features)

    def describe_api_versions(
        self, broker: int = -1, *, request_timeout: float | None = None
    ) -> Single[dict[int, tuple[int, int]]]:
        """Find which requests a broker understands. The result has the lowest and the highest version by API key.

        Args:
            broker: its id; -1 for any.
            request_timeout: seconds for the whole call.
        """
        node_id = operator.index(broker)
        return self.engine.single(node_id if node_id >= 0 else ANY_NODE, _ask_versions(), self.limit(request_timeout),
                                  requests.read_api_versions)

    def update_features(
        self, levels: dict[str, int], *, allow_downgrade: bool = False, unsafe: bool = False,
        validate_only: bool = False, request_timeout: float | None = None, operation_timeout: float | None = None,
    ) -> ByKey[str, None]:
        """Raise or lower the levels of features. Futures by feature.

        Args:
            levels: new level by feature; 0 takes it out of use.
            allow_downgrade: levels may go down where nothing is lost.
            unsafe: levels may go down even if something is lost.
            validate_only: check whether it could be done, and do nothing.
            request_timeout: seconds for the whole call.
            operation_timeout: seconds that the brokers may take.
        """
        wanted = mapping_of(str, int, levels, "levels")
        limit_s, operation_s = self.times(request_timeout, operation_timeout)
        request = requests.update_features(
            wanted, flag(allow_downgrade, "allow_downgrade"), flag(unsafe, "unsafe"), operation_s,
            flag(validate_only, "validate_only"))
        return ByKey(wanted, lambda: self.engine.at(
            CONTROLLER, request, limit_s, lambda reply: requests.read_updated_features(reply, wanted)))

    def describe_metadata_quorum(self, *, request_timeout: float | None = None) -> Single[QuorumInfo]:
        """Find how the controllers stand. The result says who leads, who votes, and how far each is."""
        limit_s = self.limit(request_timeout)
        return self.engine.single(ANY_NODE, requests.describe_quorum(), limit_s, requests.read_quorum)

    def add_raft_voter(
        self, voter_id: int, directory_id: Uuid, endpoints: dict[str, tuple[str, int]], *,
        request_timeout: float | None = None,
    ) -> Single[None]:
        """Make a controller a voter (KIP-853).

        Args:
            voter_id: its node id.
            directory_id: id of its log directory, see `describe_metadata_quorum`.
            endpoints: host and port by name of listener.
            request_timeout: seconds for the whole call.
        """
        places, limit_s = mapping_of(str, tuple, endpoints, "endpoints"), self.limit(request_timeout)
        request = requests.add_voter(operator.index(voter_id), instance_of(Uuid, directory_id, "directory_id"), places,
                                     limit_s)
        return self.engine.single(CONTROLLER, request, limit_s, lambda reply: raise_failure(
            f"voter {voter_id}", reply.error_code, reply.error_message, _ALTER))

    def remove_raft_voter(
        self, voter_id: int, directory_id: Uuid, *, request_timeout: float | None = None
    ) -> Single[None]:
        """Take the vote from a controller (KIP-853); arguments as of `add_raft_voter`."""
        limit_s = self.limit(request_timeout)
        request = requests.remove_voter(operator.index(voter_id), instance_of(Uuid, directory_id, "directory_id"))
        return self.engine.single(CONTROLLER, request, limit_s, lambda reply: raise_failure(
            f"voter {voter_id}", reply.error_code, reply.error_message, _ALTER))

    def unregister_broker(self, broker_id: int, *, request_timeout: float | None = None) -> Single[None]:
        """Let the cluster forget a broker that will not come back."""
        limit_s, request = self.limit(request_timeout), UnregisterBrokerRequest(broker_id=operator.index(broker_id))
        return self.engine.single(CONTROLLER, request, limit_s, lambda reply: raise_failure(
            f"broker {broker_id}", reply.error_code, reply.error_message, _ALTER))

    def describe_log_dirs(
        self, brokers: list[int], partitions: list[TopicPartition] | None = None, *,
        request_timeout: float | None = None,
    ) -> ByKey[int, dict[str, LogDirDescription | KafkaError]]:
        """Find what lies in the directories of brokers, and how much room is left. Futures by broker.

        Each resolves to the directories by path; one that cannot be read has its error there.

        Args:
            brokers: their ids.
            partitions: look for these only.
            request_timeout: seconds for the whole call.
        """
        ids, limit_s = list_of(int, brokers, "brokers", filled=True), self.limit(request_timeout)
        given = None if partitions is None else partitions_of(partitions, "partitions")
        request = requests.describe_log_dirs(given)

        async def look() -> dict[int, dict[str, LogDirDescription | KafkaError] | KafkaError]:
            found, errors = await self.engine.at_brokers(request, limit_s, requests.read_log_dirs, ids)
            return {**found, **errors}

        return ByKey(dict.fromkeys(ids), look)

    def alter_replica_log_dirs(
        self, broker: int, directories: dict[TopicPartition, str], *, request_timeout: float | None = None
    ) -> ByKey[TopicPartition, None]:
        """Move replicas of one broker to other directories of it. Futures by partition: they resolve when it begins.

        Args:
            broker: its id.
            directories: path by partition.
            request_timeout: seconds for the whole call.
        """
        places = mapping_of(TopicPartition, str, directories, "directories")
        check_numbers(places)
        limit_s, request = self.limit(request_timeout), requests.move_replicas(places)
        return ByKey(places, lambda: self.engine.at(
            operator.index(broker), request, limit_s, requests.read_moved_replicas))


def _ask_versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="headrace",
                              client_software_version=sys.modules["headrace"].__release__)
