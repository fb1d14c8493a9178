"""The native twin has the names and types of the plain one."""

from headrace.records.batch import Cursor as Cursor
from headrace.records.batch import FrameMemory as FrameMemory
from headrace.records.batch import PollFastPath as PollFastPath
from headrace.records.batch import ReadPosition as ReadPosition
from headrace.records.builder import Batch as Batch
from headrace.records.builder import BatchBuilder as BatchBuilder
from headrace.records.builder import set_base_offset as set_base_offset
from headrace.records.builder import set_log_append_time as set_log_append_time
from headrace.records.columns.capsules import array_capsule as array_capsule
from headrace.records.columns.capsules import schema_capsule as schema_capsule
from headrace.records.columns.capsules import stream_capsule as stream_capsule
from headrace.records.columns.columns import ColumnBuilder as ColumnBuilder
from headrace.records.columns.columns import read_columns as read_columns
from headrace.records.hashing import crc32 as crc32
from headrace.records.hashing import crc32c as crc32c
from headrace.records.hashing import fnv1a as fnv1a
from headrace.records.hashing import murmur2 as murmur2
from headrace.records.header import scan as scan
from headrace.records.header import verify as verify
from headrace.records.message import Message as Message
from headrace.records.message import acquired as acquired
