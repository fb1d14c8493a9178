"""Write `docs/reference/produce-errors.md` from the table in `headrace.machines.producer.error_actions`:
`python -m tools.produce_errors_page`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headrace.error_codes import CODES
from headrace.errors import KafkaError
from headrace.machines.producer.error_actions import ERROR_ACTIONS, ErrorAction

__all__ = ["PAGE", "codes_of", "page", "row_of"]

PAGE = Path(__file__).parents[1] / "docs/reference/produce-errors.md"
_FILE = "tests/unit/client/producer/test_producer_error_codes.py"
_HEAD = """# What the producer does about each error code

Made from the table in `headrace/machines/producer/error_actions.py` by `python -m tools.produce_errors_page`. The code
comes in a partition's part of a produce response. Codes that are not listed are sent again when the table of error
codes calls them retriable, and reported otherwise. A batch that is sent again keeps its place and its sequence; when
`message.timeout.ms` or `retries` is over, its records fail with an error that names the last answer, and whose
`maybe_applied` says whether they may be stored: each such code is tried in
`tests/unit/client/producer/test_producer_error_codes.py::test_when_retries_are_over_the_error_says_whether_the_record_may_be_stored`.
The tests use the embedded broker.

| code | name | what is done | what the application sees | test |
|---|---|---|---|---|
"""
_TAIL = """
## Parts of batches

Halves of a batch that is too large carry its sequences on the same records, so nothing behind them changes. When the
broker names records (KIP-467), these are reported and the rest is a new batch: with idempotence it gets sequences of
the partition's next epoch, because those behind the missing records would be refused. The rest fails with them where
sending it could do harm or no good: an earlier attempt of the batch may have been stored (`maybe_applied`), or it
belongs to a transaction, which cannot be committed any more. `headrace/machines/producer/split.py` shows why this
is safe, and `python -m tests.campaigns.sim.divided` tries it on as many schedules as you like.

## Without acknowledgements

With `acks=0` no reply is awaited and reports know no offset. A broker that refuses a batch closes the connection; the
producer then asks for new metadata, and what was written meanwhile is lost
(`tests/unit/client/producer/test_producer_acks_0.py::test_a_leader_that_hangs_up_makes_the_producer_look_for_the_new_one`).

## Older brokers

Releases from Kafka 0.10.0 on are written to. What they do not know is an error and never left out silently.

| leader | what happens | test |
|---|---|---|
"""
_OLD_FILE = "tests/unit/client/producer/test_producer_old_brokers.py"
_OLD = (
    ("before 0.11", "message sets of format 1 (Produce 2) or 0 (Produce 0, 1)",
     "test_records_arrive_in_message_sets"),
    ("before 0.11", "idempotence: the producer fails and asks for `enable.idempotence=false`, also where that was only "
     "the default", "test_idempotence_is_never_dropped_silently"),
    ("before 0.11", "records with headers fail, the others are stored",
     "test_records_with_headers_fail_alone_for_an_old_broker_has_no_room_for_them"),
    ("before 2.1", "`compression.type=zstd`: records fail with UNSUPPORTED_COMPRESSION_TYPE",
     "test_zstd_fails_where_the_broker_does_not_know_it"),
)
_K = KafkaError
_OUTCOMES = {
    ErrorAction.STORED: ("records are delivered; their offset is not known",
                      "test_a_repeated_batch_counts_as_delivered"),
    ErrorAction.RETRY: ("nothing: records are delivered later", "test_a_passing_state_of_the_broker_is_waited_out"),
    ErrorAction.REJECTED: ("nothing: records are delivered later", "test_a_passing_state_of_the_broker_is_waited_out"),
    ErrorAction.MOVED: ("nothing: records are delivered later",
                     "test_after_new_metadata_the_batch_is_sent_again"),
    ErrorAction.SEQUENCE: ("nothing, or a failure with `maybe_applied` when an earlier attempt may have been stored; "
                      "in a transaction it has to be aborted",
                      "test_a_refused_number_is_followed_by_one_of_the_next_epoch"),
    ErrorAction.FAIL: ("the records of the batch fail with this error, the next ones are stored",
                    "test_what_no_retry_cures_is_reported_and_the_next_record_is_stored"),
    ErrorAction.FATAL: ("every record fails; the producer can only be closed",
                     "test_a_producer_that_may_not_write_fails_as_a_whole"),
}
_TOO_LARGE = ("nothing; a single record that is too large fails alone", "test_a_batch_that_is_too_large_goes_in_halves")
_NAMED = ("the records that the broker names fail, each for its own reason; all of them when it names none",
          "test_the_records_that_the_broker_names_fail_and_no_other")
_DOOMED = ("the record fails, and its transaction has to be aborted",
           "test_a_refusal_dooms_the_transaction_and_no_more")
_OWN = {
    _K.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    _K.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    _K.INVALID_RECORD: _NAMED,
    _K.INVALID_TIMESTAMP: _NAMED,
    _K.TRANSACTION_ABORTABLE: _DOOMED,
    _K.INVALID_TXN_STATE: _DOOMED,
    _K.INVALID_PRODUCER_ID_MAPPING: _DOOMED,
    _K.UNKNOWN_PRODUCER_ID: (
        "as OUT_OF_ORDER_SEQUENCE_NUMBER, whose next epoch is safe in any case (KIP-360); in a transaction sequences "
        "begin again at zero if the log's start is beyond the last acknowledged offset, for then nothing was lost",
        "test_a_transaction_goes_on_when_the_broker_forgot_the_producer_and_nothing_was_lost"),
}


def row_of(code: int) -> tuple[str, str]:
    """What the application sees of a code, and the test that shows it."""
    return _OWN.get(code) or _OUTCOMES[ERROR_ACTIONS[code]]


def codes_of(test: str) -> list[int]:
    """The codes that a test is there for."""
    return [code for code in ERROR_ACTIONS if code and row_of(code)[1] == test]


def page() -> str:
    """The page as it must be."""
    rows = [(str(code), CODES[code].kafka_name, ERROR_ACTIONS[code].value, *row_of(code))
            for code in sorted(ERROR_ACTIONS) if code]
    return _HEAD + _table(_FILE, rows) + _TAIL + _table(_OLD_FILE, _OLD)


def _table(file: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Rows whose last cell is a test; only the first names the file."""
    made = [f"| {' | '.join(cells)} | `::{test}` |\n" for *cells, test in rows]
    return "".join(made).replace("`::", f"`{file}::", 1)


if __name__ == "__main__":
    PAGE.write_text(page())
