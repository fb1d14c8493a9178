"""What can be set on a group: each setting's default and range, and what was set.

The settings and their ranges are Kafka's, but for those of time, which may be shorter, so that tests need not wait.
What is set on groups is kept with the topics (`broker.storage.catalog`). Read next: `broker.apis.configs`.
"""

from __future__ import annotations

import re

from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.catalog import Catalog
from headrace.broker.storage.topic_configs import BOOLEAN, INT, STRING, ConfigRow

__all__ = ["GroupConfigs", "duration_ms"]

_RESET = "share.auto.offset.reset"
_BY_DURATION = "by_duration:"
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{0,9}))?S)?)?", re.ASCII)
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1000)


class GroupConfigs:
    """The settings of all groups.

    Args:
        settings: the broker's, which give the defaults.
        catalog: keeps what is set.
    """

    def __init__(self, settings: BrokerSettings, catalog: Catalog) -> None:
        self._catalog = catalog
        self.rows = _rows(settings)

    def overrides(self, group_id: str) -> dict[str, str]:
        """What was set on a group."""
        return self._catalog.group_overrides.get(group_id, {})

    def configured(self) -> list[str]:
        """The groups on which something was set."""
        return list(self._catalog.group_overrides)

    def value(self, group_id: str, name: str) -> str:
        """A setting of a group, as text."""
        return self.overrides(group_id).get(name, self.rows[name].default)

    def number(self, group_id: str, name: str) -> int:
        """A setting of a group that is a number."""
        return int(self.value(group_id, name))

    def configure(self, group_id: str, overrides: dict[str, str]) -> None:
        """Replace what was set on a group."""
        if overrides:
            self._catalog.group_overrides[group_id] = overrides
        else:
            self._catalog.group_overrides.pop(group_id, None)
        self._catalog.save()

    def wrong(self, overrides: dict[str, str]) -> str | None:
        """What is wrong with settings that are given for a group, in one line; None when nothing is."""
        for name, value in overrides.items():
            row = self.rows.get(name)
            if row is None:
                return f"Groups have no setting {name!r}"
            if name == _RESET and value.startswith(_BY_DURATION):
                wrong = None if duration_ms(value) is not None else "must name a duration as PnDTnHnMn.nS"
            else:
                wrong = row.wrong(value.strip())
            if wrong:
                return f"{name} cannot be {value!r}: {wrong}"
        return None


def duration_ms(reset: str) -> int | None:
    """Milliseconds of a duration behind `by_duration:`, as Java's `Duration.parse` reads it; None when it is none."""
    text = reset.removeprefix(_BY_DURATION).upper()
    found = _ISO_DURATION.fullmatch(text)
    if found is None or text in ("P", "PT") or text.endswith("T"):
        return None
    *whole, fraction = found.groups()
    total = sum(int(part or 0) * unit for part, unit in zip(whole, _UNITS_MS, strict=True))
    return total + int((fraction or "").ljust(3, "0")[:3])


def _rows(settings: BrokerSettings) -> dict[str, ConfigRow]:
    """The settings by name, with the broker's as defaults."""
    return {
        "consumer.heartbeat.interval.ms": ConfigRow(
            INT, str(settings.consumer_heartbeat_interval_ms), "group.consumer.heartbeat.interval.ms", lowest=100,
            highest=15000),
        "consumer.session.timeout.ms": ConfigRow(
            INT, str(settings.consumer_session_timeout_ms), "group.consumer.session.timeout.ms", lowest=1000,
            highest=60000),
        _RESET: ConfigRow(STRING, "latest", choices=("earliest", "latest"),
                          about="Where the group begins in a partition: earliest, latest or by_duration:DURATION."),
        "share.delivery.count.limit": ConfigRow(
            INT, str(settings.share_delivery_count_limit), "group.share.delivery.count.limit", lowest=2, highest=10,
            about="How often a record is handed out before it is given up."),
        "share.heartbeat.interval.ms": ConfigRow(
            INT, str(settings.share_heartbeat_interval_ms), "group.share.heartbeat.interval.ms", lowest=100,
            highest=15000, about="How often members are to be heard of, milliseconds."),
        "share.isolation.level": ConfigRow(
            STRING, "read_uncommitted", choices=("read_committed", "read_uncommitted"),
            about="Whether records of open and aborted transactions are handed out."),
        "share.partition.max.record.locks": ConfigRow(
            INT, str(settings.share_partition_max_record_locks), "group.share.partition.max.record.locks", lowest=100,
            highest=4000, about="How many records of a partition the group may be at."),
        "share.record.lock.duration.ms": ConfigRow(
            INT, str(settings.share_record_lock_duration_ms), "group.share.record.lock.duration.ms", lowest=1000,
            highest=60000, about="How long a member may hold a record, milliseconds."),
        "share.renew.acknowledge.enable": ConfigRow(
            BOOLEAN, "true", about="Whether members may hold records for longer."),
        "share.session.timeout.ms": ConfigRow(
            INT, str(settings.share_session_timeout_ms), "group.share.session.timeout.ms", lowest=1000, highest=60000,
            about="After so long a silence a member is dropped, milliseconds."),
    }
