"""Where `produce()` puts records: accumulators of open batches, and the reports of their records. Native or plain.

`implementation` says which one is used; it is never native where `headrace.records` is plain.
It must not know brokers or partitions' leaders. Read next: `headrace.buffers.record_accumulator`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from headrace import records
from headrace.buffers.buffer_pool import CALLBACK_BYTES, FEW_MESSAGES, OVERHEAD_BYTES
from headrace.buffers.delivery_future import ProduceResult

_PLAIN = records.implementation == "plain" or find_spec("headrace.buffers._buffer") is None

# The twins have the same names and types; for a type checker they are the plain one's.
if TYPE_CHECKING or _PLAIN:
    from headrace.buffers.alarm import Alarm
    from headrace.buffers.buffer_pool import BufferPool
    from headrace.buffers.closed_batch import ClosedBatch
    from headrace.buffers.column_input import append_columns
    from headrace.buffers.delivery_future import DeliveryFuture
    from headrace.buffers.fast_path import AIOProduceFastPath, Polling, ProduceFastPath, ServeFastPath
    from headrace.buffers.future_condition import FutureCondition
    from headrace.buffers.lanes.direct_lane import DirectLane, DirectPartition, DirectReplies
    from headrace.buffers.lanes.fetch_lane import FetchLane, FetchLanes
    from headrace.buffers.lanes.tls_pipe import Lendable, TlsPipe
    from headrace.buffers.loop_turns import LoopTurn, LoopTurns
    from headrace.buffers.open_batches import OpenBatches
    from headrace.buffers.record_accumulator import WAKE, RecordAccumulator
    from headrace.buffers.report_run import ReportRun
    from headrace.buffers.spin_wait import SpinWait
    from headrace.buffers.tether import Tether
else:
    from headrace.buffers._buffer import (
        WAKE,
        AIOProduceFastPath,
        Alarm,
        BufferPool,
        ClosedBatch,
        DeliveryFuture,
        DirectLane,
        DirectPartition,
        DirectReplies,
        FetchLane,
        FetchLanes,
        FutureCondition,
        LoopTurn,
        LoopTurns,
        OpenBatches,
        Polling,
        ProduceFastPath,
        RecordAccumulator,
        ReportRun,
        ServeFastPath,
        SpinWait,
        Tether,
        TlsPipe,
        append_columns,
    )

    Lendable = int | TlsPipe

__all__ = [
    "CALLBACK_BYTES",
    "FEW_MESSAGES",
    "OVERHEAD_BYTES",
    "WAKE",
    "AIOProduceFastPath",
    "Alarm",
    "BufferPool",
    "ClosedBatch",
    "DeliveryFuture",
    "DirectLane",
    "DirectPartition",
    "DirectReplies",
    "FetchLane",
    "FetchLanes",
    "FutureCondition",
    "Lendable",
    "LoopTurn",
    "LoopTurns",
    "OpenBatches",
    "Polling",
    "ProduceFastPath",
    "ProduceResult",
    "RecordAccumulator",
    "ReportRun",
    "ServeFastPath",
    "SpinWait",
    "Tether",
    "TlsPipe",
    "append_columns",
    "implementation",
]

implementation = "plain" if _PLAIN else "native"
"""Which one is used: "native" or "plain"."""
