"""`python -m tools.foreign`: install the clients of other projects that the tests run, or those named."""

from __future__ import annotations

import argparse
import sys
import time

from tools.foreign.install import CLIENTS, MissingClientError, program


def main() -> int:
    """Install, one after the other; exit status 1 when one cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m tools.foreign", description="Install other projects' clients.")
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"out of {', '.join(CLIENTS)}; all by default")
    names = parser.parse_args().clients or list(CLIENTS)
    if unknown := [name for name in names if name not in CLIENTS]:
        parser.error(f"there is no client {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
    failed = False
    for name in names:
        begin = time.monotonic()
        try:
            program(name)
            print(f"{name}: ready after {time.monotonic() - begin:.1f} s")
        except MissingClientError as error:
            failed = True
            print(f"{name}: {error}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
