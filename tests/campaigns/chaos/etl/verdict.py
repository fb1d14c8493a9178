"""What is wrong with a stage of the chain, from what its workers wrote down and what brokers have. Knows no client.

Numbers of records, in the topic behind the stage, say whether each came out as often as it should. The journals and the
commits, as the brokers hold them, say whether the group kept its word meanwhile.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from .commit_log import Commits
from .journal import COMMIT, COMMITTED, DONE, READ, Event, Run, Story
from .spans import Offsets, covered, merged

VIOLATIONS: Final = (
    "missing",  # a record that did not come out
    "twice",  # one that came out more than once, and must not
    "damaged",  # other bytes than were sent, or of a record that was never sent
    "out of order",  # behind a later record of its partition
    "ahead of processing",  # below a committed offset, and not worked on by the one who committed it
    "set back",  # a commit of a lower offset than the one before
    "not asked for",  # a commit that no worker has made
    "not kept",  # a commit that a worker was told to be done, and the brokers do not have
    "not committed",  # worked on, and behind the last committed offset when all is over
    "of two owners",  # a partition that two members had in one generation
    "owned twice",  # one that two live members had at one time
    "not held",  # records of a partition that the reader was not assigned
    "read backwards",
    "skipped",  # a record that a reader left out
    "not over",  # something did not come to its end in time
)
_AROUND_S: Final = 10.0
"""So much of a journal is shown before and behind what is wrong: longer than a session lasts, and a freeze."""
_TELLING: Final = ("partitions", "generation", "outcome", "error")
"""What of an event is shown."""


def check_copies(numbers: Mapping[int, int], wanted: int, *, once: bool) -> Counter[str]:
    """How often each record is in a topic.

    Args:
        numbers: how often, by number; -1 for damaged ones.
        wanted: all numbers below this must be there.
        once: and not twice.
    """
    found = Counter(numbers)
    damaged = found.pop(-1, 0)
    twice = found.total() - len(found)
    return +Counter({"damaged": damaged, "missing": wanted - len(found), "twice": twice if once else 0})


def check_order(partitions: Iterable[Iterable[int]]) -> Counter[str]:
    """Whether the numbers of each partition grow: what is committed with what was read keeps its order."""
    disorder = sum(later < before for numbers in partitions for before, later in pairwise(numbers))
    return +Counter({"out of order": disorder})


class GroupCheck:
    """One group with the partitions of its topic.

    Args:
        stories: of all its workers.
        source: which offsets of each partition have a record.
        commits: as the brokers have them.
        once: all that is worked on must be committed in the end.

    Attributes:
        violations: by kind.
        details: of those that need a journal to be understood, a line each.
    """

    def __init__(self, stories: list[Story], source: dict[int, Offsets], commits: Commits, *, once: bool) -> None:
        self._stories, self._source, self._commits, self._once = stories, source, commits, once
        self.violations: Counter[str] = Counter()
        self.details: list[str] = []

    def run(self) -> Counter[str]:
        """Check everything; counts by kind of violation."""
        for story in self._stories:
            self._check_reads(story)
        self._check_generations()
        self._check_owners()
        for partition, there in self._source.items():
            self._check_commits(partition, there)
        return +self.violations

    # What each reads

    def _check_reads(self, story: Story) -> None:
        """From an assignment to its end, what a worker gets of a partition has no gap and goes forwards."""
        behind: dict[int, int | None] = {}
        for event in story.events:
            if event["what"] == "assign":
                behind |= dict.fromkeys(event["partitions"])
            elif event["what"] in ("revoke", "lost"):
                for partition in event["partitions"]:
                    behind.pop(partition, None)
            elif event["what"] == "rewind":
                behind |= dict(event["offsets"])
            elif event["what"] == READ:
                for run in _runs(event):
                    self._check_run(run, behind)

    def _check_run(self, run: Run, behind: dict[int, int | None]) -> None:
        there = self._source[run.partition]
        self.violations["not held"] += run.partition not in behind
        expected = behind.get(run.partition)
        if expected is not None:
            self.violations["read backwards"] += run.first < expected
            self.violations["skipped"] += there.between(expected, run.first)
        self.violations["skipped"] += max(there.between(run.first, run.last + 1) - run.count, 0)
        self.violations["damaged"] += max(run.count - there.between(run.first, run.last + 1), 0)
        behind[run.partition] = run.last + 1

    # Who has what

    def _check_generations(self) -> None:
        """In a generation, or epoch, a partition is one member's."""
        members: dict[tuple[int, int], set[str]] = defaultdict(set)
        for story in self._stories:
            for event in story.events:
                if event.get("generation", -1) >= 0:
                    partitions = event.get("partitions") or [run.partition for run in _runs(event)]
                    for partition in partitions:
                        members[partition, event["generation"]].add(event["member"])
        self.violations["of two owners"] += sum(len(owners) - 1 for owners in members.values())

    def _check_owners(self) -> None:
        """At any time, a partition is one live member's."""
        held = sorted((*each, story.name) for story in self._stories for each in held_by(story))
        last: dict[int, tuple[float, str]] = {}
        for partition, since, end, name in held:
            until, owner = last.get(partition, (since, ""))
            if since < until:
                self.violations["owned twice"] += 1
                self.details.append(f"{name} has partition {partition} from {since:.3f} s to {end:.3f} s, and {owner} "
                                    f"until {until:.3f} s")
                self.details += [_excerpt(story, since - _AROUND_S, until + _AROUND_S) for story in self._stories
                                 if story.name in (name, owner)]
            last[partition] = max((until, owner), (end, name))

    # What is committed

    def _check_commits(self, partition: int, there: Offsets) -> None:
        meant = [intents for story in self._stories if (intents := Intents(story, partition)).offsets]
        before = 0
        for offset in self._commits.get(partition, []):
            made_by = [each for each in meant if offset in each.offsets]
            self.violations["not asked for"] += not made_by
            self.violations["set back"] += offset < before
            if made_by and offset > before:
                new = there.between(before, offset)
                self.violations["ahead of processing"] += new - max(
                    covered(there, each.spans, before, offset) for each in made_by)
            before = offset
        if self._once:
            self.violations["not committed"] += there.between(before, 1 << 62)
        kept = set(self._commits.get(partition, []))
        self.violations["not kept"] += sum(len(each.told - kept) for each in meant)


class Intents:
    """What a worker meant to commit of a partition.

    Attributes:
        offsets: each may be committed.
        told: those of them that were committed, as it was told.
        spans: what it had worked on for them, from a first offset up to an end.
    """

    def __init__(self, story: Story, partition: int) -> None:
        outcomes = {event["number"]: event["outcome"] for event in story.events if event["what"] == DONE}
        self.offsets: set[int] = set()
        self.told: set[int] = set()
        spans = []
        for event in story.events:
            outcome = outcomes.get(event.get("number"), "")
            if event["what"] == COMMIT and not outcome.startswith("aborted"):
                offsets = {offset for each, offset in event["offsets"] if each == partition}
                self.offsets |= offsets
                self.told |= offsets if outcome == COMMITTED else set()
                spans += [(run.first, run.last + 1) for run in _runs(event) if run.partition == partition]
        self.spans = merged(spans)


def held_by(story: Story) -> Iterator[tuple[int, float, float]]:
    """Which partitions a worker had, from when to when, as long as the group cannot have taken them from it.

    Where it lost a partition nobody knows since when: the last commit that was carried out shows that it still had it.
    Where it was frozen it may have lost everything before it knew. What it is assigned right behind that may be an
    answer from before: it has it from the first commit on that is carried out.
    """
    since: dict[int, float] = {}
    doubted: set[int] = set()
    proven = before = begun = 0.0
    for event in story.events:
        at = event["at"]
        if event["what"] == "assign":
            if story.frozen_at(before, at) is None:
                since |= dict.fromkeys(event["partitions"], at)
            else:
                doubted |= set(event["partitions"])
        elif event["what"] == COMMIT:
            begun = at
        elif event["what"] == DONE and event["outcome"] == COMMITTED:
            proven = begun
            since |= dict.fromkeys(doubted, begun)
            doubted.clear()
        elif event["what"] in ("revoke", "lost"):
            end = at if event["what"] == "revoke" else proven
            yield from _ended(story, since, event["partitions"], end)
            doubted -= set(event["partitions"])
        before = at
    last = story.killed_at if story.killed_at is not None else max((event["at"] for event in story.events), default=0.0)
    yield from _ended(story, since, list(since), last)


def _ended(
    story: Story, since: dict[int, float], partitions: Iterable[int], end: float
) -> Iterator[tuple[int, float, float]]:
    for partition in partitions:
        begin = since.pop(partition, None)
        if begin is not None:
            yield partition, begin, max(begin, story.frozen_at(begin, end) or end)


def _excerpt(story: Story, begin: float, end: float) -> str:
    """What a worker wrote down in a time, and what was done to it, as one line."""
    told = " ".join(
        f"{event['at']:.3f}:{event['what']}{[event[name] for name in _TELLING if name in event]}"
        for event in story.events if begin <= event["at"] <= end)
    return f"{story.name}: frozen {story.frozen}, killed {story.killed_at}; {told}"


def _runs(event: Event) -> list[Run]:
    return [Run(*run) for run in event.get("runs", ())]
