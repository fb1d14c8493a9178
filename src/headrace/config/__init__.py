"""Configuration: one row per property, and the checked mapping that clients read.

The documentation page of all properties is made from `PROPERTIES`, `WITHOUT_EFFECT` and `NOT_SUPPORTED`.
Read next: `headrace.config.mapping`.
"""

from headrace.config.mapping import PROPERTIES, Config
from headrace.config.property import ADMIN, CONSUMER, PRODUCER, SHARE, Property, convert
from headrace.config.rows_elsewhere import NOT_SUPPORTED, WITHOUT_EFFECT
from headrace.config.rules import is_by_lot

__all__ = [
    "ADMIN", "CONSUMER", "NOT_SUPPORTED", "PRODUCER", "PROPERTIES", "SHARE", "WITHOUT_EFFECT", "Config", "Property",
    "convert", "is_by_lot",
]
