"""The figures as a picture: rate over time, and latency by percentile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.cli.measuring.figures import PERCENTILES, LoadOutcome
from headrace.errors import DependencyError

__all__ = ["draw", "require_matplotlib"]

_COLOURS = ("#0b6e99", "#d9822b", "#4c9f70", "#8e5ea2")


def require_matplotlib() -> None:
    """Make sure, before anything is measured, that the picture can be drawn.

    Raises:
        DependencyError: matplotlib is missing.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise DependencyError("--plot needs matplotlib: pip install matplotlib") from None


def draw(path: Path, outcomes: dict[str, LoadOutcome], title: str) -> None:
    """Draw the last run of each client into a file; its ending says the format.

    Raises:
        OSError: it cannot be written.
        ValueError: the ending is no format.
    """
    from matplotlib.figure import Figure

    steady = any(len(found.seconds) > 1 for found in outcomes.values())
    panels = [_rates, _seconds, _latencies] if steady else [_rates, _latencies]
    figure = Figure(figsize=(5 * len(panels), 4.2), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        panel(axes, outcomes)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=140)


def _coloured(outcomes: dict[str, LoadOutcome]) -> Iterator[tuple[str, LoadOutcome, str]]:
    for (client, found), colour in zip(outcomes.items(), _COLOURS, strict=False):
        yield client, found, colour


def _rates(axes: Any, outcomes: dict[str, LoadOutcome]) -> None:
    for client, found, colour in _coloured(outcomes):
        bar = axes.bar(client, found.rate, color=colour, width=0.6)
        axes.bar_label(bar, [f"{found.rate:,.0f}"], padding=2, fontsize=9)
    axes.set_title("records per second", fontsize=10)
    axes.margins(y=0.1)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)


def _seconds(axes: Any, outcomes: dict[str, LoadOutcome]) -> None:
    from matplotlib.ticker import FuncFormatter

    for client, found, colour in _coloured(outcomes):
        if found.seconds:
            axes.plot(*zip(*found.seconds, strict=True), marker="o", markersize=4, linewidth=1.6, color=colour,
                      label=client)
    axes.set_title("records per second, each second of the last run", fontsize=10)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.grid(axis="y", color="#dde3e8", linewidth=0.8)
    axes.legend(frameon=False, loc="best", fontsize=9)


def _latencies(axes: Any, outcomes: dict[str, LoadOutcome]) -> None:
    from matplotlib.ticker import FuncFormatter

    for client, found, colour in _coloured(outcomes):
        if found.latencies_ms:
            axes.plot(range(len(PERCENTILES)), found.latencies_ms[: len(PERCENTILES)], marker="o", markersize=4,
                      linewidth=1.6, color=colour, label=client)
    axes.set_title("milliseconds until stored", fontsize=10)
    axes.set_xticks(range(len(PERCENTILES)), [f"p{percent:g}" for percent in PERCENTILES])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.grid(axis="y", color="#dde3e8", linewidth=0.8)
    axes.legend(frameon=False, loc="best", fontsize=9)
