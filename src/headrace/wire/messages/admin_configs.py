"""Configuration of topics and brokers."""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    String,
    Struct,
    field,
)

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterConfigsResponse",
    "AlterableConfig",
    "DescribeConfigsRequest",
    "DescribeConfigsResource",
    "DescribeConfigsResourceResult",
    "DescribeConfigsResponse",
    "DescribeConfigsResult",
    "DescribeConfigsSynonym",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
]


class DescribeConfigsResource(Struct):
    """One entry: describe configs resource."""

    resource_type: Int8 = field()
    resource_name: String = field()
    configuration_keys: Array[String] | None = field(nullable="0+")


class DescribeConfigsRequest(Request, key=32, versions="0-4", flexible="4+"):
    """Read configuration."""

    resources: Array[DescribeConfigsResource] = field()
    include_synonyms: Bool = field("1+")
    include_documentation: Bool = field("3+")


class DescribeConfigsSynonym(Struct):
    """One entry: describe configs synonym."""

    name: String = field("1+")
    value: String | None = field("1+", nullable="0+")
    source: Int8 = field("1+")


class DescribeConfigsResourceResult(Struct):
    """One entry: describe configs resource result."""

    name: String = field()
    value: String | None = field(nullable="0+")
    read_only: Bool = field()
    is_default: Bool = field("0")
    config_source: Int8 = field("1+", default=-1, ignorable=True)
    is_sensitive: Bool = field()
    synonyms: Array[DescribeConfigsSynonym] = field("1+", ignorable=True)
    config_type: Int8 = field("3+", default=0, ignorable=True)
    documentation: String | None = field("3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    """One entry: describe configs result."""

    error_code: Int16 = field()
    error_message: String | None = field(nullable="0+")
    resource_type: Int8 = field()
    resource_name: String = field()
    configs: Array[DescribeConfigsResourceResult] = field()


class DescribeConfigsResponse(Response, key=32, versions="0-4", flexible="4+"):
    """Answer to `DescribeConfigsRequest`."""

    throttle_time_ms: Int32 = field()
    results: Array[DescribeConfigsResult] = field()


DescribeConfigsRequest.response_type = DescribeConfigsResponse


class AlterableConfig(Struct):
    """One entry: alterable config."""

    name: String = field()
    value: String | None = field(nullable="0+")


class AlterConfigsResource(Struct):
    """One entry: alter configs resource."""

    resource_type: Int8 = field()
    resource_name: String = field()
    configs: Array[AlterableConfig] = field()


class AlterConfigsRequest(Request, key=33, versions="0-2", flexible="2+"):
    """Replace the whole configuration of a resource; see IncrementalAlterConfigs."""

    resources: Array[AlterConfigsResource] = field()
    validate_only: Bool = field()


class AlterConfigsResourceResponse(Struct):
    """One entry: alter configs resource response."""

    error_code: Int16 = field()
    error_message: String | None = field(nullable="0+")
    resource_type: Int8 = field()
    resource_name: String = field()


class AlterConfigsResponse(Response, key=33, versions="0-2", flexible="2+"):
    """Answer to `AlterConfigsRequest`."""

    throttle_time_ms: Int32 = field()
    responses: Array[AlterConfigsResourceResponse] = field()


AlterConfigsRequest.response_type = AlterConfigsResponse


class IncrementalAlterConfigsRequest(Request, key=44, versions="0-1", flexible="1+"):
    """Change single configuration values (KIP-339)."""

    resources: Array[AlterConfigsResource] = field()
    validate_only: Bool = field()


class IncrementalAlterConfigsResponse(Response, key=44, versions="0-1", flexible="1+"):
    """Answer to `IncrementalAlterConfigsRequest`."""

    throttle_time_ms: Int32 = field()
    responses: Array[AlterConfigsResourceResponse] = field()


IncrementalAlterConfigsRequest.response_type = IncrementalAlterConfigsResponse
