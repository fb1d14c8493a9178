"""pytest imports the plugin in every run of an environment that has the package, whether it is used or not."""

import subprocess
import sys

import headrace.testing


def test_the_plugin_imports_nothing_that_is_not_used():
    ran = subprocess.run([sys.executable, "-c", "import sys, pytest, headrace.testing.plugin\n"
                          "print(sorted(name for name in sys.modules if name.startswith('headrace')))"],
                         capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == str(["headrace", "headrace.testing", "headrace.testing.plugin"])


def test_every_public_name_comes_when_it_is_asked_for():
    assert all(getattr(headrace.testing, name).__name__ == name for name in headrace.testing.__all__)
    assert not hasattr(headrace.testing, "Broker")
