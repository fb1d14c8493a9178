"""Both twins through the same tests: `twin` is a namespace with the names that the native modules have."""

from tests.support.twins import native, plain, twin

__all__ = ["native", "plain", "twin"]
