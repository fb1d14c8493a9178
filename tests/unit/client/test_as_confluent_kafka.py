"""Libraries that import confluent_kafka get headrace, in a process of their own each."""

import multiprocessing
import subprocess
import sys
import textwrap

import pytest


def run(text, *options, check=True):
    done = subprocess.run([sys.executable, *options, "-c", textwrap.dedent(text)], capture_output=True, text=True,
                          timeout=60)
    assert not check or done.returncode == 0, done.stderr
    return done


def test_each_module_is_ours_under_the_name_of_the_peer():
    run("""
        import headrace.as_confluent_kafka as stand_in
        stand_in.install()
        stand_in.install()
        import confluent_kafka, headrace, headrace.admin, importlib
        from confluent_kafka import Producer, TopicPartition
        from confluent_kafka.admin import AdminClient, NewTopic
        from confluent_kafka.aio import AIOProducer
        from confluent_kafka.schema_registry.avro import AvroSerializer
        from confluent_kafka.schema_registry import avro
        from confluent_kafka.cimpl import KafkaError
        assert confluent_kafka is headrace and confluent_kafka.admin is headrace.admin
        assert Producer is headrace.Producer and KafkaError is headrace.KafkaError
        assert avro is headrace.schema_registry.avro and AvroSerializer.__module__.startswith("headrace.")
        assert headrace.__spec__.name == "headrace" and headrace.admin.__spec__.name == "headrace.admin"
        assert headrace.__name__ == "headrace" and importlib.import_module("headrace.admin") is headrace.admin
        import pickle
        assert pickle.loads(pickle.dumps(TopicPartition("t", 1))) == headrace.TopicPartition("t", 1)
    """)


def test_libraries_that_ask_for_the_version_find_that_of_the_api():
    done = run("""
        import headrace.as_confluent_kafka
        headrace.as_confluent_kafka.install()
        import confluent_kafka
        print(confluent_kafka.__version__, confluent_kafka.version(), confluent_kafka.libversion()[1] >> 16)
    """)
    assert done.stdout.split() == ["2.16.1", "2.16.1", str(0x0210)]


def test_a_broker_is_told_the_version_of_headrace_whatever_libraries_are_told():
    run("""
        import headrace, headrace.as_confluent_kafka
        own = headrace.__version__
        headrace.as_confluent_kafka.install()
        from headrace.client.admin.cluster_calls import _ask_versions
        from headrace.client.registry.http_transport import _READ
        assert _ask_versions().client_software_version == own and _READ["User-Agent"] == f"headrace/{own}"
    """)


def test_a_module_that_is_not_here_is_said_to_be_missing():
    done = run("""
        import headrace.as_confluent_kafka
        headrace.as_confluent_kafka.install()
        import confluent_kafka.nonsense
    """, check=False)
    assert "ModuleNotFoundError: No module named 'confluent_kafka.nonsense': headrace stands in" in done.stderr


def test_the_peer_that_is_imported_already_stays_and_that_is_said():
    done = run("""
        import confluent_kafka, headrace.as_confluent_kafka
        headrace.as_confluent_kafka.install()
    """, check=False)
    assert "ImportError: confluent_kafka is imported already: call" in done.stderr


@pytest.mark.parametrize("by_name", [False, True])
def test_a_program_runs_as_it_is(tmp_path, by_name):
    (tmp_path / "program.py").write_text(
        "import sys, confluent_kafka\nif __name__ == '__main__':\n    print(confluent_kafka.__name__, sys.argv[1:])\n")
    named = ["-m", "program"] if by_name else [str(tmp_path / "program.py")]
    done = subprocess.run([sys.executable, "-m", "headrace.as_confluent_kafka", *named, "-x", "1"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "headrace ['-x', '1']\n", "")


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("way", sorted({*multiprocessing.get_all_start_methods()} - {"fork"}))
def test_processes_that_a_program_starts_anew_run_on_headrace_too(tmp_path, way, by_name):
    (tmp_path / "program.py").write_text(textwrap.dedent(f"""
        import multiprocessing
        from confluent_kafka.admin import AdminClient
        import confluent_kafka

        def work(names):
            names.put(confluent_kafka.__name__)

        if __name__ == "__main__":
            context = multiprocessing.get_context("{way}")
            names = context.Queue()
            worker = context.Process(target=work, args=(names,))
            worker.start()
            print(names.get(timeout=50), AdminClient.__module__)
            worker.join()
    """))
    done = subprocess.run([sys.executable, "-m", "headrace.as_confluent_kafka", *(["-m"] if by_name else []),
                           "program" if by_name else "program.py"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)
    assert (done.stdout, done.stderr) == ("headrace headrace.client.admin.admin_client\n", "")


def test_a_program_finds_the_modules_beside_it_and_its_own_place(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "beside.py").write_text("NAME = 'beside'\n")
    (folder / "program.py").write_text("import beside, sys\nprint(beside.NAME, __file__, sys.path[0])\n")
    done = subprocess.run([sys.executable, "-m", "headrace.as_confluent_kafka", "folder/program.py"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"beside {folder / 'program.py'} {folder.resolve()}\n", "")


@pytest.mark.parametrize("arguments", [[], ["-m"], ["--help"]])
def test_without_a_program_the_usage_is_shown(arguments):
    done = subprocess.run([sys.executable, "-m", "headrace.as_confluent_kafka", *arguments], capture_output=True,
                          text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m headrace.as_confluent_kafka")
