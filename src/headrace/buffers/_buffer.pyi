"""The native twin has the names and types of the plain one."""

from headrace.buffers.buffer_pool import CALLBACK_BYTES as CALLBACK_BYTES
from headrace.buffers.buffer_pool import FEW_MESSAGES as FEW_MESSAGES
from headrace.buffers.buffer_pool import OVERHEAD_BYTES as OVERHEAD_BYTES
from headrace.buffers.buffer_pool import BufferPool as BufferPool
from headrace.buffers.closed_batch import ClosedBatch as ClosedBatch
from headrace.buffers.column_input import append_columns as append_columns
from headrace.buffers.delivery_future import DeliveryFuture as DeliveryFuture
from headrace.buffers.fast_path import AIOProduceFastPath as AIOProduceFastPath
from headrace.buffers.fast_path import Polling as Polling
from headrace.buffers.fast_path import ProduceFastPath as ProduceFastPath
from headrace.buffers.fast_path import ServeFastPath as ServeFastPath
from headrace.buffers.future_condition import FutureCondition as FutureCondition
from headrace.buffers.lanes.direct_lane import DirectLane as DirectLane
from headrace.buffers.lanes.direct_lane import DirectPartition as DirectPartition
from headrace.buffers.lanes.direct_lane import DirectReplies as DirectReplies
from headrace.buffers.lanes.fetch_lane import FetchLane as FetchLane
from headrace.buffers.lanes.fetch_lane import FetchLanes as FetchLanes
from headrace.buffers.lanes.tls_pipe import TlsPipe as TlsPipe
from headrace.buffers.loop_turns import LoopTurn as LoopTurn
from headrace.buffers.loop_turns import LoopTurns as LoopTurns
from headrace.buffers.open_batches import OpenBatches as OpenBatches
from headrace.buffers.record_accumulator import WAKE as WAKE
from headrace.buffers.record_accumulator import RecordAccumulator as RecordAccumulator
from headrace.buffers.report_run import ReportRun as ReportRun
from headrace.buffers.spin_wait import SpinWait as SpinWait
from headrace.buffers.tether import Tether as Tether
