"""`headrace perf produce`: each client in a process of its own, at the embedded broker."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from headrace.admin import AdminClient
from headrace.broker.faults import Action, Fault
from headrace.cli.measuring import perf_produce
from headrace.cli.measuring.figures import LoadOutcome, middle, percentiles
from headrace.cli.measuring.peers import DEFAULTS, settings_of
from headrace.cli.measuring.tables import final_table
from headrace.cli.perf import main
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest

COMMAND = [sys.executable, "-c", "import sys; from headrace.cli import main; sys.exit(main())", "perf", "produce"]


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(topics={"mine": 2}) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_brokers(monkeypatch):
    monkeypatch.delenv("HEADRACE_BOOTSTRAP_SERVERS", raising=False)


def topics(broker):
    return set(AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics)


def test_without_brokers_it_is_the_embedded_one_and_says_so(capsys):
    assert main(["produce", "--num-records", "3000"]) == 0
    told = capsys.readouterr()
    assert "this is the embedded broker" in told.out
    head, _, row = told.out.splitlines()[-4:-1]
    assert head.split() == ["client", "records", "records/s", "MB/s", "CPU", "s/M", "p50", "p95", "p99", "p99.9",
                            "mean", "max", "ms", "failed"]
    assert row.split()[:2] == ["headrace", "3,000"]
    assert row.split()[-1] == "0"
    assert told.err == ""


def test_all_clients_are_measured_with_the_same_settings_and_compared(broker, tmp_path, capsys):
    report, picture = tmp_path / "perf.json", tmp_path / "perf.png"
    status = main(["produce", "-b", broker.bootstrap_servers, "--num-records", "2000", "--against", "all", "--rounds",
                   "2", "--json", str(report), "--plot", str(picture), "-X", "linger.ms=5"])
    told = capsys.readouterr()
    assert (status, told.err) == (0, "")
    found = json.loads(report.read_text())
    assert list(found["clients"]) == ["headrace", "confluent-kafka", "kafka-python", "aiokafka"]
    for client in found["clients"].values():
        assert [(each["records"], each["failed"]) for each in client["rounds"]] == [(2000, 0)] * 2
        assert all(len(each["latencies_ms"]) == 6 for each in client["rounds"])
        assert all(each["cpu_s"] > 0 for each in client["rounds"])
    assert "medians of 2 rounds" in told.out
    assert "x: that client's figure divided by headrace's" in told.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert topics(broker) == {"mine"}


def test_a_topic_that_was_there_stays_and_one_that_was_made_goes(broker, capsys):
    before = sum(broker.end_offsets("mine"))
    assert main(["produce", "-b", broker.bootstrap_servers, "--num-records", "1500", "--topic", "mine"]) == 0
    assert sum(broker.end_offsets("mine")) - before == 1500 + 1000  # those sent before the clock starts
    assert main(["produce", "-b", broker.bootstrap_servers, "--num-records", "1500", "--topic", "made"]) == 0
    assert topics(broker) == {"mine"}
    capsys.readouterr()


def test_a_steady_rate_is_kept_and_told_each_second(broker, capsys):
    assert main(["produce", "-b", broker.bootstrap_servers, "--num-records", "1300", "--throughput", "1000"]) == 0
    told = capsys.readouterr().out
    line = next(line for line in told.splitlines() if " sent " in line)
    assert re.match(r"headrace +1\.\d s +[\d,]+ sent +[\d,]+ records/s +0\.1 MB/s  p50 \S+  p99 \S+  max \S+ ms$", line)
    rate = float(told.splitlines()[-2].split()[2].replace(",", ""))
    assert 500 < rate <= 1010


def test_payloads_of_a_file_and_an_end_by_time(broker, tmp_path, capsys):
    path = tmp_path / "payloads"
    path.write_bytes(b"aaaa\nbb\n")
    assert main(["produce", "-b", broker.bootstrap_servers, "--payload-file", str(path), "--duration", "0.5",
                 "--throughput", "2000"]) == 0
    told = capsys.readouterr().out
    assert "3 B on average" in told
    assert 0 < int(told.splitlines()[-2].split()[1].replace(",", "")) <= 1_100


class LaggingBroker:
    """A consumer of a broker that knows of a new topic when it is asked for the third time."""

    def __init__(self, code):
        self.code, self.asked = code, 0

    def get_watermark_offsets(self, partition, timeout):
        self.asked += 1
        if self.asked < 3:
            raise KafkaException(KafkaError(self.code))
        return 0, 7


def test_a_broker_that_has_not_heard_of_the_new_topic_is_asked_again(monkeypatch):
    lagging = LaggingBroker(KafkaError._UNKNOWN_PARTITION)
    assert perf_produce._end_offset(lagging, None) == 7
    refusing = LaggingBroker(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException):
        perf_produce._end_offset(refusing, None)
    assert refusing.asked == 1
    monkeypatch.setattr(perf_produce, "_ADMIN_S", 0.0)
    with pytest.raises(KafkaException):
        perf_produce._end_offset(LaggingBroker(KafkaError._UNKNOWN_PARTITION), None)


def test_records_that_are_missing_in_the_topic_are_failures(broker, capsys, monkeypatch):
    counts = iter([10, 10 + 1000 + 5000 - 7])  # with those that are sent before the clock starts
    monkeypatch.setattr(perf_produce.PerfRun, "_count", lambda _run, _topic: next(counts))
    assert main(["produce", "-b", broker.bootstrap_servers, "--num-records", "5000", "--topic", "mine"]) == 1
    told = capsys.readouterr()
    assert "headrace: 7 records failed: 7 records are not in the topic" in told.err
    row = told.out.splitlines()[-2].split()
    assert (row[1], row[-1]) == ("4,993", "7")


def test_a_client_that_cannot_send_is_left_out_and_says_why(broker, capsys):
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=87, times=None))  # INVALID_RECORD
    try:
        status = main(["produce", "-b", broker.bootstrap_servers, "--num-records", "5000", "--topic", "mine"])
    finally:
        broker.clear_faults()
    assert status == 1
    assert "headrace is left out: RuntimeError: " in capsys.readouterr().err


def test_a_client_that_is_not_installed_is_named_with_the_remedy(broker, capsys, monkeypatch):
    monkeypatch.setattr(perf_produce, "version_of", lambda client: "1" if client == "headrace" else None)
    command = ["produce", "-b", broker.bootstrap_servers, "--num-records", "100", "--against"]
    assert main([*command, "all"]) == 0
    assert "kafka-python is left out: not installed: pip install kafka-python" in capsys.readouterr().err
    assert main([*command, "aiokafka"]) == 1


def test_a_client_without_an_equivalent_is_left_out(broker, capsys):
    command = ["produce", "-b", broker.bootstrap_servers, "--num-records", "100", "--against", "aiokafka"]
    assert main([*command, "-X", "partitioner=murmur2"]) == 1
    assert "aiokafka has nothing like partitioner" in capsys.readouterr().err


def test_settings_have_each_clients_names():
    properties = {**DEFAULTS, "bootstrap.servers": "a:1,b:2", "compression.type": "none",
                  "security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u",
                  "sasl.password": "p", "ssl.ca.location": "ca.pem"}
    found = settings_of("kafka-python", properties)
    assert found["bootstrap_servers"] == "a:1,b:2"
    assert (found["acks"], found["linger_ms"], found["batch_size"]) == ("all", 20, 1_000_000)
    assert (found["compression_type"], found["security_protocol"], found["ssl_cafile"]) == (None, "SASL_SSL", "ca.pem")
    assert settings_of("aiokafka", properties)["tls_files"] == {"ssl.ca.location": "ca.pem"}
    assert settings_of("confluent-kafka", properties) == properties
    with pytest.raises(ConfigError, match="No such configuration property"):
        settings_of("aiokafka", {**properties, "nonsense": "1"})


def test_secrets_are_not_shown(capsys):
    status = main(["produce", "--num-records", "100", "-X", "sasl.password=geheim", "-X", "sasl.username=u",
                   "-X", "sasl.mechanism=PLAIN", "-X", "security.protocol=sasl_plaintext"])
    told = capsys.readouterr()
    assert status == 4  # the embedded broker knows no SASL
    assert "sasl.password=[hidden]" in told.out
    assert "geheim" not in told.out + told.err


@pytest.mark.parametrize(("arguments", "complaint"), [
    (["--num-records", "0"], "not a number of at least 1"), (["--against", "nobody"], "invalid choice"),
    (["--record-size", "1000000", "--num-records", "10000"], "more than the embedded broker should hold"),
    (["-X", "transactional.id=t"], "transactions are not measured"),
    (["--payload-file", "/nowhere"], "No such file"), (["--duration", "-1"], "not a number of seconds"),
])
def test_wrong_usage_is_told_with_status_2(capsys, arguments, complaint):
    with pytest.raises(SystemExit) as left:
        main(["produce", *arguments])
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


def test_an_unknown_measurement_is_wrong_usage(capsys):
    assert main(["nothing"]) == 2
    assert "unknown command 'nothing'" in capsys.readouterr().err
    assert main(["--help"]) == 0


@pytest.mark.parametrize(("number", "name", "status"), [
    (signal.SIGINT, "Ctrl-C", 130), (signal.SIGTERM, "SIGTERM", 143)])
def test_a_signal_ends_it_with_the_figures_so_far_and_without_the_topic(broker, number, name, status):
    process = subprocess.Popen([*COMMAND, "-b", broker.bootstrap_servers, "--throughput", "1000", "--topic", "stopped"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while " sent " not in (line := process.stdout.readline()):
            assert line
        process.send_signal(number)
        rest = process.stdout.read()
        complaint = process.stderr.read()
        assert process.wait(30) == status
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
    assert complaint == ""
    assert f"stopped by {name}:" in rest
    assert re.search(r"^headrace +[\d,]+ ", rest, re.MULTILINE)
    deadline = time.monotonic() + 10
    while "stopped" in topics(broker):
        assert time.monotonic() < deadline


def test_percentiles_are_measured_values():
    assert percentiles([]) == []
    assert percentiles([0.002]) == [2.0] * 6
    assert percentiles([each / 1000 for each in range(1000, 0, -1)]) == [501.0, 951.0, 991.0, 1000.0, 500.5, 1000.0]


def test_the_middle_of_rounds_is_the_median_of_rates():
    rounds = [LoadOutcome(100, 1000, wall_s, cpu_s, [1.0] * 6) for wall_s, cpu_s in ((1, 3), (2, 2), (4, 1))]
    found = middle(rounds)
    assert (found.rate, found.cpu_s_per_million, found.mb_rate) == (50.0, 20_000.0, 0.0005)


def test_the_table_has_ratios_only_when_there_is_something_to_compare():
    one = LoadOutcome(1000, 100_000, 1.0, 0.5, [1.5, 2, 3, 4, 2, 1234.5])
    other = LoadOutcome(1000, 100_000, 2.0, 1.0, [])
    assert " x " not in final_table({"headrace": one}, "headrace")[0]
    lines = final_table({"headrace": one, "aiokafka": other}, "headrace")
    assert lines[2].split() == ["headrace", "1,000", "1,000", "1.00", "0.1", "500.00", "1.00", "1.5", "2", "3", "4",
                                "2", "1,234", "0"]
    assert lines[3].split() == ["aiokafka", "1,000", "500", "0.50", "0.1", "1,000.00", "2.00", *"------", "0"]
