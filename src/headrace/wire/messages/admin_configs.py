"""TODO"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Request, Response, String, Struct, field

__all__ = [
    "AlterConfigsAlterableConfig", "AlterConfigsRequest", "AlterConfigsResource", "AlterConfigsResourceResponse",
    "AlterConfigsResponse", "DescribeConfigsRequest", "DescribeConfigsResource", "DescribeConfigsResourceResult",
    "DescribeConfigsResponse", "DescribeConfigsResult", "DescribeConfigsSynonym",
    "IncrementalAlterConfigsAlterConfigsResource", "IncrementalAlterConfigsAlterableConfig",
    "IncrementalAlterConfigsRequest", "IncrementalAlterConfigsResponse",
    "IncrementalAlterConfigsResponseAlterConfigsResourceResponse",
]


class DescribeConfigsResource(Struct):
    """TODO DescribeConfigsResource"""

    resource_type: Int8 = field()
    resource_name: String = field()
    configuration_keys: Array[String] | None = field()


class DescribeConfigsRequest(Request, key=32, versions="0-4", flexible="4+"):
    """TODO DescribeConfigsRequest"""

    resources: Array[DescribeConfigsResource] = field()
    include_synonyms: Bool = field("1+")
    include_documentation: Bool = field("3+")


class DescribeConfigsSynonym(Struct):
    """TODO DescribeConfigsSynonym"""

    name: String = field("1+")
    value: String | None = field("1+")
    source: Int8 = field("1+")


class DescribeConfigsResourceResult(Struct):
    """TODO DescribeConfigsResourceResult"""

    name: String = field()
    value: String | None = field()
    read_only: Bool = field()
    is_default: Bool = field("0")
    config_source: Int8 = field("1+", default=-1, ignorable=True)
    is_sensitive: Bool = field()
    synonyms: Array[DescribeConfigsSynonym] = field("1+", ignorable=True)
    config_type: Int8 = field("3+", ignorable=True)
    documentation: String | None = field("3+", ignorable=True)


class DescribeConfigsResult(Struct):
    """TODO DescribeConfigsResult"""

    error_code: Int16 = field()
    error_message: String | None = field()
    resource_type: Int8 = field()
    resource_name: String = field()
    configs: Array[DescribeConfigsResourceResult] = field()


class DescribeConfigsResponse(Response, to=DescribeConfigsRequest):
    """TODO DescribeConfigsResponse"""

    throttle_time_ms: Int32 = field()
    results: Array[DescribeConfigsResult] = field()


class AlterConfigsAlterableConfig(Struct):
    """TODO AlterConfigsAlterableConfig"""

    name: String = field()
    value: String | None = field()


class AlterConfigsResource(Struct):
    """TODO AlterConfigsResource"""

    resource_type: Int8 = field()
    resource_name: String = field()
    configs: Array[AlterConfigsAlterableConfig] = field()


class AlterConfigsRequest(Request, key=33, versions="0-2", flexible="2+"):
    """TODO AlterConfigsRequest"""

    resources: Array[AlterConfigsResource] = field()
    validate_only: Bool = field()


class AlterConfigsResourceResponse(Struct):
    """TODO AlterConfigsResourceResponse"""

    error_code: Int16 = field()
    error_message: String | None = field()
    resource_type: Int8 = field()
    resource_name: String = field()


class AlterConfigsResponse(Response, to=AlterConfigsRequest):
    """TODO AlterConfigsResponse"""

    throttle_time_ms: Int32 = field()
    responses: Array[AlterConfigsResourceResponse] = field()


class IncrementalAlterConfigsAlterableConfig(Struct):
    """TODO IncrementalAlterConfigsAlterableConfig"""

    name: String = field()
    config_operation: Int8 = field()
    value: String | None = field()


class IncrementalAlterConfigsAlterConfigsResource(Struct):
    """TODO IncrementalAlterConfigsAlterConfigsResource"""

    resource_type: Int8 = field()
    resource_name: String = field()
    configs: Array[IncrementalAlterConfigsAlterableConfig] = field()


class IncrementalAlterConfigsRequest(Request, key=44, versions="0-1", flexible="1+"):
    """TODO IncrementalAlterConfigsRequest"""

    resources: Array[IncrementalAlterConfigsAlterConfigsResource] = field()
    validate_only: Bool = field()


class IncrementalAlterConfigsResponseAlterConfigsResourceResponse(Struct):
    """TODO IncrementalAlterConfigsResponseAlterConfigsResourceResponse"""

    error_code: Int16 = field()
    error_message: String | None = field()
    resource_type: Int8 = field()
    resource_name: String = field()


class IncrementalAlterConfigsResponse(Response, to=IncrementalAlterConfigsRequest):
    """TODO IncrementalAlterConfigsResponse"""

    throttle_time_ms: Int32 = field()
    responses: Array[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = field()
