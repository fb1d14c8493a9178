"""Configuration: one row per property, and the checked mapping that clients read.

The documentation page of all properties is made from `PROPERTIES` and, in
`headrace.config.rows_elsewhere`, `WITHOUT_EFFECT` and `NOT_SUPPORTED`, which few programs load.
Read next: `headrace.config.mapping`.
"""

from headrace.config.mapping import PROPERTIES, Config, is_secret
from headrace.config.property import ADMIN, CONSUMER, PRODUCER, SHARE, Property, convert
from headrace.config.rules import is_by_lot

__all__ = [
    "ADMIN", "CONSUMER", "PRODUCER", "PROPERTIES", "SHARE", "Config", "Property", "convert", "is_by_lot",
    "is_secret",
]
