"""Regular expressions that take time in proportion to the text, whatever they say: the syntax of RE2, without captures.

A pattern becomes steps, and a text is read once, with the set of steps that are reached so far. Python's `re` goes
back and tries again, which a client could use to stop the broker.

Left out of RE2's syntax: flags, Unicode classes (`\\p{...}`) and word boundaries.
Source: https://github.com/google/re2/wiki/Syntax, R. Cox, "Regular Expression Matching Can Be Simple And Fast".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

__all__ = ["Pattern", "PatternError"]

_MAX_STEPS = 3000
_MAX_REPEATS = 1000
_MAX_DEPTH = 100
_COUNTS = re.compile(r"\{(\d{1,9})(,(\d{0,9}))?\}")
_GROUP_START = re.compile(r"\?(?::|P?<\w+>)", re.ASCII)
_NAME = re.compile(r"\[:(\^?)([a-z]+):\]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_DIGITS, _WORDS, _SPACES = "0123456789", re.compile(r"[0-9A-Za-z_]"), "\t\n\f\r "

Test = Callable[[str], bool]
_NAMED: dict[str, Test] = {
    "alnum": lambda each: each.isascii() and each.isalnum(), "alpha": lambda each: each.isascii() and each.isalpha(),
    "digit": lambda each: each in _DIGITS, "lower": lambda each: each.isascii() and each.islower(),
    "upper": lambda each: each.isascii() and each.isupper(), "space": lambda each: each in "\t\n\v\f\r ",
    "blank": lambda each: each in "\t ", "xdigit": lambda each: each in "0123456789abcdefABCDEF",
    "word": lambda each: _WORDS.match(each) is not None, "ascii": str.isascii,
    "cntrl": lambda each: each.isascii() and not each.isprintable(), "print": lambda each: " " <= each <= "~",
    "graph": lambda each: "!" <= each <= "~", "punct": lambda each: "!" <= each <= "~" and not each.isalnum()}
"""Classes of characters that are written `[:name:]` or `[:^name:]`."""


class PatternError(ValueError):
    """The pattern cannot be read, or would take too many steps."""


class _Step:
    """One place in a pattern: a test on the next character, or, without one, where to go on at once."""

    __slots__ = ("anchor", "next", "test")

    def __init__(self, test: Test | None = None, following: Iterable[_Step] = (), anchor: str = "") -> None:
        self.test = test
        self.next = list(following)
        self.anchor = anchor


Build = Callable[[_Step], _Step]
"""Gives the first step of a part, from the step behind it."""


class Pattern:
    """A compiled pattern.

    Args:
        text: the pattern.

    Raises:
        PatternError: it is not one, or too large.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._count = 0
        build = self._alternatives()
        if self._at < len(text):
            raise PatternError(f"there is a ')' too many at {self._at}")
        self._end = _Step()
        self._start = build(self._end)

    def matches(self, text: str) -> bool:
        """Whether the whole text fits."""
        reached = self._closure([self._start], text, 0)
        for position, character in enumerate(text):
            stepped = [after for step in reached if step.test is not None and step.test(character)
                       for after in step.next]
            if not stepped:
                return False
            reached = self._closure(stepped, text, position + 1)
        return self._end in reached

    def _closure(self, steps: list[_Step], text: str, position: int) -> set[_Step]:
        """All steps that are reached without reading a character."""
        found: set[_Step] = set()
        waiting = steps
        while waiting:
            step = waiting.pop()
            if step in found or (step.anchor == "^" and position) or (step.anchor == "$" and position < len(text)):
                continue
            found.add(step)
            if step.test is None:
                waiting.extend(step.next)
        return found

    # -- reading a pattern

    def _step(self, test: Test | None = None, following: Iterable[_Step] = (), anchor: str = "") -> _Step:
        self._count += 1
        if self._count > _MAX_STEPS:
            raise PatternError("the pattern is too large")
        return _Step(test, following, anchor)

    def _peek(self) -> str:
        return self._text[self._at:self._at + 1]

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise PatternError("the pattern ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _alternatives(self) -> Build:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise PatternError("the pattern is nested too deeply")
        choices = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            choices.append(self._sequence())
        self._depth -= 1
        if len(choices) == 1:
            return choices[0]
        return lambda behind: self._step(following=[each(behind) for each in choices])

    def _sequence(self) -> Build:
        parts: list[Build] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._one()))

        def build(behind: _Step) -> _Step:
            for part in reversed(parts):
                behind = part(behind)
            return behind

        return build

    def _repeated(self, part: Build) -> Build:
        repeats = 0
        while True:
            found = _COUNTS.match(self._text, self._at)
            if found is not None:
                least, most = int(found[1]), int(found[3]) if found[3] else int(found[1])
                part = self._times(part, least, None if found[2] and not found[3] else most)
                self._at = found.end()
            elif self._peek() and self._peek() in "*+?":
                sign = self._take()
                part = self._times(part, 1 if sign == "+" else 0, 1 if sign == "?" else None)
            else:
                return part
            if self._peek() == "?":
                self._at += 1  # lazy or not, the same texts fit
            repeats += 1
            if repeats > 1:
                raise PatternError("a repetition is repeated")

    def _times(self, part: Build, least: int, most: int | None) -> Build:
        if max(least, most or 0) > _MAX_REPEATS or (most is not None and most < least):
            raise PatternError(f"{least} to {most} repetitions are not possible; {_MAX_REPEATS} are the most")

        def build(behind: _Step) -> _Step:
            if most is None:
                loop = self._step(following=[behind])
                loop.next.append(part(loop))
                first = loop
            else:
                first = behind
                for _ in range(most - least):
                    first = self._step(following=[part(first), behind])
            for _ in range(least):
                before, first = first, part(first)
                if first is before:
                    break  # it is empty, and stays so; nested ones would be built a thousand times each
            return first

        return build

    def _one(self) -> Build:
        character = self._take()
        if character == "(":
            return self._group()
        if character in "*+?":
            raise PatternError(f"nothing stands before the '{character}' at {self._at - 1}")
        if character in "^$":
            return lambda behind: self._step(following=[behind], anchor=character)
        if character == "[":
            return self._testing(self._class())
        if character == ".":
            return self._testing(lambda each: each != "\n")
        if character == "\\":
            return self._escaped()
        return self._testing(character.__eq__)

    def _testing(self, test: Test) -> Build:
        return lambda behind: self._step(test, [behind])

    def _group(self) -> Build:
        if (start := _GROUP_START.match(self._text, self._at)) is not None:
            self._at = start.end()
        elif self._peek() == "?":
            raise PatternError("flags and lookaround are not known")
        build = self._alternatives()
        if self._peek() != ")":
            raise PatternError("a ')' is missing")
        self._at += 1
        return build

    def _escaped(self) -> Build:
        character = self._take()
        if character in "Az":
            return lambda behind: self._step(following=[behind], anchor="^" if character == "A" else "$")
        if character == "Q":
            end = self._text.find("\\E", self._at)
            literal = self._text[self._at:end if end >= 0 else len(self._text)]
            self._at = len(self._text) if end < 0 else end + 2

            def build(behind: _Step) -> _Step:
                for each in reversed(literal):
                    behind = self._step(each.__eq__, [behind])
                return behind

            return build
        return self._testing(self._escape(character))

    def _escape(self, character: str) -> Test:
        """What `\\` and a character stand for, outside of and in a class."""
        kinds: dict[str, Test] = {"d": lambda each: each in _DIGITS, "s": lambda each: each in _SPACES,
                                  "w": lambda each: _WORDS.match(each) is not None}
        if character.lower() in kinds:
            test = kinds[character.lower()]
            return test if character.islower() else lambda each: not test(each)
        if character == "x":
            return self._hexadecimal().__eq__
        if character.isalnum() and character not in _ESCAPES:
            raise PatternError(f"'\\{character}' is not known")
        return _ESCAPES.get(character, character).__eq__

    def _hexadecimal(self) -> str:
        found = re.compile(r"\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2})").match(self._text, self._at)
        code = int(found[1] or found[2], 16) if found else 1 << 24
        if found is None or code > 0x10FFFF:
            raise PatternError("'\\x' wants two hexadecimal digits, or some in braces")
        self._at = found.end()
        return chr(code)

    def _class(self) -> Test:
        negated = self._peek() == "^"
        self._at += negated
        tests: list[Test] = []
        while self._peek() != "]" or not tests:
            tests.append(self._range())
        self._at += 1
        return lambda each: any(test(each) for test in tests) != negated

    def _range(self) -> Test:
        if (named := _NAME.match(self._text, self._at)) is not None:
            if named[2] not in _NAMED:
                raise PatternError(f"the class {named[0]} is not known")
            self._at = named.end()
            test, negated = _NAMED[named[2]], bool(named[1])
            return lambda each: test(each) != negated
        first = self._take()
        if first == "\\":
            escaped = self._take()
            if escaped in "dDsSwW":
                return self._escape(escaped)
            first = self._hexadecimal() if escaped == "x" else self._plain(escaped)
        if self._peek() != "-" or self._text[self._at + 1:self._at + 2] in ("]", ""):
            return first.__eq__
        self._at += 1
        last = self._take()
        if last == "\\":
            escaped = self._take()
            last = self._hexadecimal() if escaped == "x" else self._plain(escaped)
        if last < first:
            raise PatternError(f"the range {first}-{last} is empty")
        return lambda each: first <= each <= last

    def _plain(self, escaped: str) -> str:
        if escaped.isalnum() and escaped not in _ESCAPES:
            raise PatternError(f"'\\{escaped}' is not known in a class")
        return _ESCAPES.get(escaped, escaped)
