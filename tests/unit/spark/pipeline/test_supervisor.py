"""Queries that fail: when they begin again, when no more, and what is said about it; without Spark."""

import pytest

from headrace.errors import ConfigError, KafkaError, KafkaException, SchemaRegistryError
from headrace.spark.pipeline.declared import RestartRule
from headrace.spark.pipeline.supervisor import NotNowError, PipelineError, Supervisor, first_line
from headrace.values.value_format import malformed_remedy

RULE = RestartRule(attempts=3, first_s=1.0, longest_s=3.0, healthy_s=100.0)


class Query:
    """A query that fails when it is told to."""

    def __init__(self, name):
        self.name = name
        self.failure = None
        self.stopped = False
        self.status = {"message": "Initializing sources"}

    @property
    def isActive(self):
        return self.failure is None and not self.stopped

    def exception(self):
        return self.failure

    def stop(self):
        self.stopped = True


class Stage:
    """A supervisor with two queries, a clock that is set by hand, and chance as it is told."""

    def __init__(self, rule=RULE, chance=1.0):
        self.now_s = 0.0
        self.chance = chance
        self.started = []
        self.told = []
        self.refusal = None
        self.supervisor = Supervisor(self.start, rule, self.told.append, lambda: self.now_s, lambda: self.chance)
        self.supervisor.begin(["a", "b"])

    def start(self, name):
        if self.refusal:
            raise self.refusal
        self.started.append(name)
        return Query(name)

    def fail(self, name, text="it broke"):
        self.supervisor.queries[name].failure = text
        self.supervisor.look()

    def wait(self, seconds):
        self.now_s += seconds
        self.supervisor.look()


@pytest.fixture
def stage():
    return Stage()


def test_a_query_that_failed_begins_again_when_its_time_has_come_and_the_others_go_on(stage):
    stage.supervisor.queries["b"].stop()
    assert stage.supervisor.running
    stage.fail("a")
    assert stage.supervisor.running
    stage.wait(0.9)
    assert stage.started == ["a", "b"]
    stage.wait(0.2)
    assert stage.started == ["a", "b", "a"]
    assert stage.supervisor.running
    assert stage.supervisor.restarts == {"a": 1}
    assert stage.told == ["sink a failed: it broke; restart 1 of 3 in 1.0 s", "sink a runs again"]
    stage.supervisor.queries["a"].stop()
    assert not stage.supervisor.running


def test_a_run_is_not_over_while_nobody_has_looked_at_a_failure(stage):
    stage.supervisor.queries["a"].stop()
    stage.supervisor.queries["b"].failure = "it broke"
    assert stage.supervisor.running  # who took the query for finished would end here, with rows missing


def test_a_query_that_fails_while_it_is_asked_whether_it_runs_is_not_taken_for_finished(stage):
    class Dying(Query):
        """Fails right behind the first question about it, whatever is asked."""

        asked = 0

        @property
        def isActive(self):
            self.asked += 1
            self.failure = "it broke" if self.asked > 1 else None
            return super().isActive

    stage.supervisor.queries["a"].stop()
    stage.supervisor.queries["b"] = Dying("b")
    assert stage.supervisor.running
    assert stage.supervisor.running


def test_the_bound_of_the_wait_doubles_up_to_its_limit_and_chance_divides_it(stage):
    waits = []
    for chance in (1.0, 1.0, 0.5):
        stage.chance = chance
        stage.fail("a")
        waits.append(stage.told[-1].rpartition(" in ")[2])
        stage.wait(10)
    assert waits == ["1.0 s", "2.0 s", "1.5 s"]


def test_it_gives_up_after_so_many_failures_in_a_row_and_says_how_many(stage):
    for _ in range(3):
        stage.fail("a")
        stage.wait(10)
    with pytest.raises(PipelineError, match="sink a failed 4 times in a row, the last time: it broke"):
        stage.fail("a")


def test_a_query_that_ran_well_for_long_enough_counts_its_failures_from_0(stage):
    for _ in range(10):
        stage.fail("a")
        stage.wait(3)
        stage.wait(RULE.healthy_s)
    assert stage.supervisor.restarts == {"a": 10}
    assert "restart 1 of 3" in stage.told[-2]


def test_failures_of_one_query_are_not_those_of_another(stage):
    for name in ("a", "b", "a", "b", "a", "b"):
        stage.fail(name)
        stage.wait(10)
    assert stage.supervisor.restarts == {"a": 3, "b": 3}


@pytest.mark.parametrize("failure", [
    "headrace.errors.ConfigError: topic t does not exist", "headrace.spark.plan.DataLossError: records may be lost",
    "headrace.errors.SerializationError: at /need: the schema's field has no column, and no default",
    "headrace.errors.SchemaRegistryError: the schema is incompatible (HTTP status code 409, SR code 409)",
    "headrace.errors.SchemaRegistryError: the schema is invalid (HTTP status code 422, SR code 42201)",
])
def test_what_no_restart_mends_ends_the_run_at_once(stage, failure):
    with pytest.raises(PipelineError, match="sink a failed: headrace"):
        stage.fail("a", failure)


def test_a_registry_that_is_away_is_waited_for(stage):
    stage.fail("a", "headrace.errors.SchemaRegistryError: no answer of 409 (HTTP status code 503, SR code -1)")
    stage.wait(10)
    assert stage.supervisor.restarts == {"a": 1}


def test_a_checkpoint_of_a_query_with_other_sources_ends_the_run_and_what_to_do_is_said(stage):
    told = ("assertion failed: There are [1] sources in the checkpoint offsets and now there are [2] sources requested "
            "by the query. Cannot continue.")
    with pytest.raises(PipelineError, match="of a query that reads more or fewer sources: give the sink another name"):
        stage.fail("a", told)


def test_two_runs_with_one_checkpoint_are_told_of_each_other_and_the_other_one_is_waited_for(stage):
    stage.fail("a", "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for "
                    "17.")
    assert stage.told[0].startswith("sink a failed: its checkpoint is used by another run at the same time: end one of")
    assert stage.told[0].endswith("Multiple streaming jobs detected for 17.); restart 1 of 3 in 1.0 s")
    stage.wait(1)
    assert stage.supervisor.restarts == {"a": 1}


def test_without_attempts_the_first_failure_ends_the_run():
    with pytest.raises(PipelineError, match="sink a failed: it broke"):
        Stage(RestartRule(attempts=0)).fail("a")


def test_a_run_that_is_to_end_starts_nothing_again(stage):
    stage.fail("a")
    stage.now_s += 10
    stage.supervisor.look(restart=False)
    assert stage.started == ["a", "b"]
    stage.supervisor.queries["b"].failure = "it broke"
    with pytest.raises(PipelineError, match="sink b failed"):
        stage.supervisor.look(restart=False)


def test_a_query_that_cannot_be_started_again_ends_the_run(stage):
    stage.fail("a")
    stage.refusal = ConfigError("sink a: no such column")
    with pytest.raises(PipelineError, match="sink a: no such column"):
        stage.wait(10)


def test_a_query_whose_brokers_do_not_answer_when_it_is_to_begin_again_has_failed_once_more(stage):
    stage.fail("a")
    stage.refusal = KafkaException(KafkaError(KafkaError._TRANSPORT, "no broker answers"))
    stage.wait(1)
    assert stage.told == ["sink a failed: it broke; restart 1 of 3 in 1.0 s",
                          "sink a failed: no broker answers; restart 2 of 3 in 2.0 s"]
    assert stage.supervisor.running
    stage.refusal = None
    stage.wait(2)
    assert stage.told[2:] == ["sink a runs again"]
    assert stage.supervisor.restarts == {"a": 1}


def test_a_query_whose_registry_does_not_answer_when_it_is_to_begin_again_has_failed_once_more(stage):
    stage.fail("a")
    stage.refusal = SchemaRegistryError(-1, -1, "the registry does not answer")
    stage.wait(1)
    assert stage.told[1:] == ["sink a failed: the registry does not answer; restart 2 of 3 in 2.0 s"]
    stage.refusal = None
    stage.wait(2)
    assert stage.supervisor.restarts == {"a": 1}


@pytest.mark.parametrize("status", [409, 422])
def test_a_registry_that_will_not_have_the_schema_when_a_query_is_to_begin_again_ends_the_run(stage, status):
    stage.fail("a")
    stage.refusal = SchemaRegistryError(status, status, "the schema is incompatible")
    with pytest.raises(PipelineError, match=r"^sink a failed: the schema is incompatible$"):
        stage.wait(1)


def test_queries_that_cannot_begin_anew_for_now_have_failed_and_begin_later(stage):
    stage.supervisor.stop()
    stage.refusal = NotNowError("table items: no broker answers")
    stage.supervisor.begin(["a", "b"])
    assert stage.told == [f"sink {name} failed: table items: no broker answers; restart 1 of 3 in 1.0 s"
                          for name in "ab"]
    assert stage.supervisor.running
    assert not stage.supervisor.settled  # who stops them to begin them anew waits for that
    stage.refusal = None
    stage.wait(1)
    assert stage.started == ["a", "b", "a", "b"]
    assert stage.supervisor.restarts == {"a": 1, "b": 1}


def test_queries_that_were_well_until_they_are_begun_anew_have_all_their_restarts(stage):
    for _ in range(3):
        stage.fail("a")
        stage.wait(10)
    stage.now_s += 200
    stage.refusal = NotNowError("table items: no broker answers")
    stage.supervisor.stop()
    stage.supervisor.begin(["a", "b"])
    assert stage.told[-2].endswith("restart 1 of 3 in 1.0 s")


def test_what_is_wrong_when_queries_begin_anew_ends_the_run(stage):
    stage.refusal = ConfigError("sink a: no such column")
    with pytest.raises(PipelineError, match="sink a: no such column"):
        stage.supervisor.begin(["a", "b"])


def test_the_first_beginning_raises_what_it_meets():
    refusal = KafkaException(KafkaError(KafkaError._TRANSPORT, "no broker answers"))

    def start(name):
        raise refusal

    with pytest.raises(KafkaException, match="no broker answers"):
        Supervisor(start, RULE, print).begin(["a"])


def test_brokers_that_never_answer_end_the_run(stage):
    stage.fail("a")
    stage.refusal = KafkaException(KafkaError(KafkaError._TRANSPORT, "no broker answers"))
    stage.wait(10)
    stage.wait(10)
    with pytest.raises(PipelineError, match="sink a failed 4 times in a row, the last time: no broker answers"):
        stage.wait(10)


def test_all_are_stopped(stage):
    queries = list(stage.supervisor.queries.values())
    stage.supervisor.stop()
    assert [query.stopped for query in queries] == [True, True]


def test_queries_are_settled_when_they_have_worked_as_long_as_they_took_to_begin(stage):
    queries = stage.supervisor.queries
    stage.now_s += 4.0
    assert not stage.supervisor.settled
    queries["a"].status["message"] = "Waiting for data to arrive"
    assert not stage.supervisor.settled
    queries["b"].status["message"] = "Processing new data"
    assert not stage.supervisor.settled
    stage.now_s += 3.9
    assert not stage.supervisor.settled
    stage.now_s += 0.1
    assert stage.supervisor.settled
    stage.supervisor.begin(["a", "b"])
    assert not stage.supervisor.settled


def test_what_may_be_done_about_values_is_told_with_the_key_of_the_file():
    said = first_line(f"Traceback:\nheadrace.errors.SerializationError: no number. {malformed_remedy('value')}\n  at x")
    assert said.startswith('headrace.errors.SerializationError: no number. Set malformed of the source to "keep" ')
    assert "value.malformed" not in said
