"""One broker process of a test cluster: its properties, its log, and the signals that hurt it.

It must not know of the cluster's other nodes beyond what its properties say. Read next: `tools.kafka.cluster`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.jvm_options import short_lived
from tools.kafka.access import ALLOWED_URLS, write_properties
from tools.kafka.java import java_command

_STOP_TIMEOUT_S: Final = 30.0
_LOG4J: Final = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


class KafkaStartError(RuntimeError):
    """A broker did not come up. The text shows the end of its log."""


class Node:
    """A combined broker and controller.

    Args:
        node_id: its `node.id`, from 1.
        version: version of Apache Kafka.
        directory: where its properties, data and log are; made by `format`.
        heap_mb: size of its heap, in MiB.
        jvm_options: further options of its JVM.
        keep: leave the directory when the process that started the node ends without closing it.
    """

    def __init__(
        self, node_id: int, version: str, directory: Path, heap_mb: int, *, keep: bool = True,
        jvm_options: Sequence[str] = (),
    ) -> None:
        self.node_id = node_id
        self.version = version
        self.directory = directory
        self.heap_mb = heap_mb
        self.keep = keep
        self.jvm_options = tuple(jvm_options)
        self._process: subprocess.Popen[bytes] | None = None
        self._warden: subprocess.Popen[bytes] | None = None

    def __getstate__(self) -> dict[str, object]:
        # A later run of the tools finds the process by its pid file; handles do not travel.
        return {**self.__dict__, "_process": None, "_warden": None}

    @property
    def log(self) -> Path:
        """File with everything the broker wrote, over all its starts."""
        return self.directory / "node.log"

    @property
    def pid(self) -> int | None:
        """Process id, also when an earlier run of these tools started it; None when it is not running."""
        if self._process is not None:
            return None if self._process.poll() is not None else self._process.pid
        with contextlib.suppress(OSError, ValueError):
            pid = int(self._pid_file.read_text())
            if str(self.directory).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        return None

    def cpu_s(self) -> float:
        """CPU seconds that the running broker has used since it was started; 0 when it is not known."""
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def format(self, cluster_id: str, properties: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
        """Write the properties and make the data directory ready for the first start."""
        self.directory.mkdir(parents=True, exist_ok=True)
        write_properties(self._properties_file, {**properties, "log.dirs": str(self.directory / "data")})
        self._log4j_file.write_text(_LOG4J)
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties_file),
                             *arguments, options=short_lived(f"kafka-{self.version}"))
        # Java takes its arguments apart in the locale's encoding; users' names need not be ASCII.
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        if done.returncode:
            raise KafkaStartError(f"node {self.node_id} cannot be formatted: {done.stdout}{done.stderr}")

    def start(self, *, outlive: bool = False) -> None:
        """Start the process; it is not ready yet when this returns.

        Args:
            outlive: leave it running when this Python process ends, however it ends.
        """
        if self.pid is not None:
            return
        options = (*self.jvm_options, f"-Xmx{self.heap_mb}m", f"-Xms{self.heap_mb // 2}m",
                   # What compression unpacks for itself goes when the node goes, killed or not.
                   "-Djava.awt.headless=true", f"-Djava.io.tmpdir={self.directory}",
                   f"-D{ALLOWED_URLS}={(self.directory.parent / 'jwks.json').as_uri()}")
        command = self._java("kafka.Kafka", str(self._properties_file), options=options)
        with self.log.open("ab") as log:
            # In a session of its own: Ctrl-C goes to the clients, which then find the broker still there.
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             cwd=self.directory, start_new_session=True)
        self._pid_file.write_text(str(self._process.pid))
        if not outlive:
            # Waits for the end of this process, which closes the pipe, and takes the broker along.
            clean = "" if self.keep else f"; rm -rf {shlex.quote(str(self.directory))}"
            self._warden = subprocess.Popen(["sh", "-c", f"read _; kill -9 {self._process.pid}{clean}"],
                                            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)

    def stop(self) -> None:
        """Stop it in good order: leaders move away first."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        if not self._gone_within(_STOP_TIMEOUT_S):
            self.kill()
        self._dismiss_warden()

    def kill(self) -> None:
        """Kill it at once (SIGKILL)."""
        self._signal(signal.SIGKILL)
        self._gone_within(_STOP_TIMEOUT_S)
        self._dismiss_warden()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def require_alive(self) -> None:
        """Raise `KafkaStartError` with the end of the log when the process has ended."""
        if self.pid is None:
            raise KafkaStartError(f"node {self.node_id} ended; the end of {self.log}:\n{self.log_tail()}")

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of the log."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return "(no log)"

    @property
    def _properties_file(self) -> Path:
        return self.directory / "server.properties"

    @property
    def _log4j_file(self) -> Path:
        return self.directory / "log4j2.properties"

    @property
    def _pid_file(self) -> Path:
        return self.directory / "pid"

    def _java(self, main_class: str, *arguments: str, options: Sequence[str]) -> list[str]:
        log4j = f"-Dlog4j2.configurationFile={self._log4j_file}"
        return java_command(main_class, *arguments, version=self.version, options=(*options, log4j))

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _gone_within(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self.pid is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _dismiss_warden(self) -> None:
        # The broker is gone and its number may be given to another process: the warden must not act on it.
        if self._warden is not None:
            self._warden.kill()
            self._warden.communicate()
            self._warden = None
