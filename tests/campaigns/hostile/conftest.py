"""The native modules for tests of them alone."""

from tests.support.twins import native

__all__ = ["native"]
