"""Reading and changing the configuration of topics, brokers and other resources.

Read next: `machines.admin.config_requests`.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Request, Response, String, Struct, field

__all__ = [
    "AlterConfigsRequest", "AlterConfigsResource", "AlterConfigsResourceResponse", "AlterConfigsResponse",
    "AlterableConfig", "ListedConfigResource", "DescribeConfigsRequest", "DescribeConfigsResource",
    "DescribeConfigsResourceResult", "DescribeConfigsResponse", "DescribeConfigsResult", "DescribeConfigsSynonym",
    "IncrementalAlterConfigsRequest", "IncrementalAlterConfigsResource", "IncrementalAlterConfigsResourceResponse",
    "IncrementalAlterConfigsResponse", "IncrementalAlterableConfig", "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
]


class DescribeConfigsResource(Struct):
    """A resource whose configuration is asked for."""

    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""
    configuration_keys: Array[String] | None = field()
    """Names of the entries wanted; null for all."""


class DescribeConfigsRequest(Request, key=32, versions="0-4", flexible="4+"):
    """Ask for configuration (KIP-133). v1: synonyms (KIP-226). v3: documentation and types (KIP-569)."""

    resources: Array[DescribeConfigsResource] = field()
    """One entry for each resource."""
    include_synonyms: Bool = field("1+")
    """Ask for where else a value comes from."""
    include_documentation: Bool = field("3+")
    """Ask for what each entry means."""


class DescribeConfigsSynonym(Struct):
    """Another place that gives a value for the same entry, the strongest first."""

    name: String = field("1+")
    """Name of the entry."""
    value: String | None = field("1+")
    """Value of the entry; null when it is a secret."""
    source: Int8 = field("1+")
    """Where the value is set, numbered as in `config_source`."""


class DescribeConfigsResourceResult(Struct):
    """One configuration entry."""

    name: String = field()
    """Name of the entry."""
    value: String | None = field()
    """Value of the entry; null when it is a secret."""
    read_only: Bool = field()
    """The entry cannot be changed."""
    is_default: Bool = field("0")
    """Nobody has set the value."""
    config_source: Int8 = field("1+", default=-1, ignorable=True)
    """Where the value is set: 1 topic, 2 broker, 3 cluster default, 4 static, 5 default, 6 broker logger, 7 client
    metrics, 8 group.
    """
    is_sensitive: Bool = field()
    """The value is a secret and is not shown."""
    synonyms: Array[DescribeConfigsSynonym] = field("1+", ignorable=True)
    """Where else the value may come from, the strongest first."""
    config_type: Int8 = field("3+", ignorable=True)
    """Type of the value: 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password."""
    documentation: String | None = field("3+", ignorable=True)
    """What the entry means; null unless asked for."""


class DescribeConfigsResult(Struct):
    """The configuration of one resource."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""
    configs: Array[DescribeConfigsResourceResult] = field()
    """Configuration entries."""


class DescribeConfigsResponse(Response, to=DescribeConfigsRequest):
    """The configuration of each resource."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    results: Array[DescribeConfigsResult] = field()
    """One entry for each that was asked for."""


class AlterableConfig(Struct):
    """A configuration entry and its new value."""

    name: String = field()
    """Name of the entry."""
    value: String | None = field()
    """Value to set; null for the default."""


class AlterConfigsResource(Struct):
    """A resource and its whole new configuration."""

    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""
    configs: Array[AlterableConfig] = field()
    """Configuration entries."""


class AlterConfigsRequest(Request, key=33, versions="0-2", flexible="2+"):
    """Replace configuration as a whole: what is not named goes back to its default (KIP-133).

    IncrementalAlterConfigs changes single entries.
    """

    resources: Array[AlterConfigsResource] = field()
    """One entry for each resource."""
    validate_only: Bool = field()
    """Check the request and change nothing."""


class AlterConfigsResourceResponse(Struct):
    """Whether one resource was changed."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""


class AlterConfigsResponse(Response, to=AlterConfigsRequest):
    """Whether each resource was changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    responses: Array[AlterConfigsResourceResponse] = field()
    """One entry for each resource."""


class IncrementalAlterableConfig(Struct):
    """A configuration entry and what to do with it."""

    name: String = field()
    """Name of the entry."""
    config_operation: Int8 = field()
    """What to do: 0 set, 1 delete, 2 append, 3 subtract."""
    value: String | None = field()
    """Value to set, append or subtract; null to delete."""


class IncrementalAlterConfigsResource(Struct):
    """A resource and the entries to change."""

    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""
    configs: Array[IncrementalAlterableConfig] = field()
    """Configuration entries."""


class IncrementalAlterConfigsRequest(Request, key=44, versions="0-1", flexible="1+"):
    """Change single entries of configuration (KIP-339)."""

    resources: Array[IncrementalAlterConfigsResource] = field()
    """One entry for each resource."""
    validate_only: Bool = field()
    """Check the request and change nothing."""


class IncrementalAlterConfigsResourceResponse(Struct):
    """Whether one resource was changed."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""


class IncrementalAlterConfigsResponse(Response, to=IncrementalAlterConfigsRequest):
    """Whether each resource was changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    responses: Array[IncrementalAlterConfigsResourceResponse] = field()
    """One entry for each resource."""


class ListConfigResourcesRequest(Request, key=74, versions="0-1", flexible="0+"):
    """Ask which resources have configuration of their own (KIP-714). v1: of any type (KIP-1142)."""

    resource_types: Array[Int8] = field("1+")
    """Types wanted; empty for all that can be configured."""


class ListedConfigResource(Struct):
    """A resource with configuration."""

    resource_name: String = field()
    """Name of the resource."""
    resource_type: Int8 = field("1+", default=16, ignorable=True)
    """Type of the resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""


class ListConfigResourcesResponse(Response, to=ListConfigResourcesRequest):
    """The resources found."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    config_resources: Array[ListedConfigResource] = field()
    """One entry for each resource."""
