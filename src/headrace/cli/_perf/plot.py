"""The figures as a picture: rate over time, and latency by percentile."""

from __future__ import annotations

from pathlib import Path

from headrace.cli._perf.figures import PERCENTILES, Outcome
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


def draw(path: Path, outcomes: dict[str, Outcome], title: str) -> None:
    """Draw the last run of each client into a file; its ending says the format.

    Raises:
        OSError: it can not be written.
        ValueError: the ending is no format.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    rates, latencies = figure.subplots(1, 2)
    for (client, found), colour in zip(outcomes.items(), _COLOURS, strict=False):
        points = found.seconds or [(found.wall_s, found.rate)]
        rates.plot(*zip(*points, strict=True), marker="o", markersize=4, linewidth=1.6, color=colour, label=client)
        if found.latencies_ms:
            latencies.plot(range(len(PERCENTILES)), found.latencies_ms[: len(PERCENTILES)], marker="o", markersize=4,
                           linewidth=1.6, color=colour, label=client)
    rates.set_xlim(left=0)
    rates.set_ylim(bottom=0)
    rates.set_xlabel("seconds")
    rates.set_ylabel("records per second")
    rates.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    latencies.set_xticks(range(len(PERCENTILES)), [f"p{percent:g}" for percent in PERCENTILES])
    latencies.set_yscale("log")
    latencies.set_ylabel("milliseconds until stored")
    latencies.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    for axes in (rates, latencies):
        axes.grid(axis="y", color="#dde3e8", linewidth=0.8)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    rates.legend(frameon=False, loc="best")
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=140)
