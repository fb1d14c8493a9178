"""The topics that a pipeline needs, looked for before Spark starts.

This module does not import pyspark. Read next: `headrace.spark.cluster`, which asks the brokers.
"""

from __future__ import annotations

from headrace.errors import ConfigError
from headrace.spark.cluster import ClusterView
from headrace.spark.options import TopicSelection
from headrace.spark.pipeline.declared import EXACTLY_ONCE, Input
from headrace.spark.pipeline.endpoints import Endpoints
from headrace.spark.pipeline.supervisor import PipelineError

__all__ = ["check_sinks", "check_sources", "check_tables", "partitions_of"]


def check_tables(endpoints: Endpoints) -> None:
    """Look for the topics of tables; brokers that do not answer are waited for, as Spark would.

    Raises:
        ConfigError: one is not there.
        KafkaException: no broker answered in time.
    """
    for each in endpoints.spec.inputs:
        if each.topic and not each.streaming:
            partitions_of(endpoints, each)


def check_sinks(endpoints: Endpoints) -> None:
    """Look for the topics that are written exactly once: their partitions divide the rows among the tasks.

    Raises:
        ConfigError: one is not there.
        KafkaException: no broker answered in time.
    """
    for sink in endpoints.spec.sinks:
        if sink.topics and sink.guarantee == EXACTLY_ONCE:
            options = endpoints.written(sink)  # which may name other brokers than the file's
            topics = endpoints.topics_of(sink, options)
            try:
                with ClusterView(options.client, TopicSelection(topics=topics)) as view:
                    view.partitions()
            except ConfigError as error:
                raise ConfigError(f"sink {sink.name}: {error}") from None


def check_sources(endpoints: Endpoints) -> None:
    """Look for the topics of sources.

    Raises:
        PipelineError: one is not there.
        KafkaException: no broker answered in time.
    """
    for each in endpoints.spec.inputs:
        if each.streaming:
            try:
                partitions_of(endpoints, each)
            except ConfigError as error:
                raise PipelineError(str(error)) from None


def partitions_of(endpoints: Endpoints, each: Input) -> int:
    """How many partitions a source or table has.

    Raises:
        ConfigError: the topic is not there.
    """
    options = endpoints.parsed(each)
    try:
        with ClusterView(options.client, options.subscription) as view:
            return len(view.partitions())
    except ConfigError as error:
        raise ConfigError(f"{each.title}: {error}") from None
