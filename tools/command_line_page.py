"""Write `docs/reference/command-line.md` from the parsers of all commands: `python -m tools.command_line_page`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from headrace.cli.shared.commands import COMMANDS, SECTIONS
from headrace.cli.shared.exits import MEANINGS
from headrace.cli.shared.parsers import Parser

PAGE = Path(__file__).parents[1] / "docs/reference/command-line.md"
_COMMON = {"bootstrap": "-b", "properties": "-X", "property_files": "--config", "profile": "--profile",
           "timeout": "--timeout", "registry": "--registry", "output": "-o", "yes": "--yes", "dry_run": "--dry-run"}
_HEAD = """# The command line

Made from the parsers of all commands by `python -m tools.command_line_page`. An option, property or command that is not
known is an error that names the nearest one; options cannot be abbreviated.

## Which cluster

What is stated more directly wins: an option, then `-X`, then a file of `--config`, then the environment, then a
profile.

| where | how |
|---|---|
| option | `-b HOST:PORT`, `--registry URL`, and the command's own |
| `-X NAME=VALUE` | a client's property under librdkafka's or Java's name; `schema.registry.NAME` is the registry's |
| `--config FILE` (`-F`) | the same, one NAME=VALUE a line, `#` begins a comment |
| environment | `HEADRACE_BOOTSTRAP_SERVERS`, `HEADRACE_SCHEMA_REGISTRY_URL` |
| profile | `--profile NAME` or `HEADRACE_PROFILE`, in `~/.config/headrace/config.toml` or the file `HEADRACE_CONFIG` |

A profile is a table of properties; those of its registry begin with `registry`. The default profile counts where
nothing else names brokers: elsewhere its password would go to a cluster that it is not of.

```toml
default = "local"

[local]
bootstrap.servers = "localhost:9092"
registry.url = "http://localhost:8081"

[prod]
bootstrap.servers = "kafka-1:9093,kafka-2:9093"
security.protocol = "sasl_ssl"
sasl.mechanism = "SCRAM-SHA-512"
sasl.username = "me"
sasl.password = "secret"
```

`headrace profiles list` and `show` tell what is there, without secrets.

## What is printed

`-o` chooses: `table` is for people, `wide` has more columns, `name` has the first column only. `json` is one array and
`tsv` has a header; both have every column, under the names below, and nothing is cut. Numbers are numbers, times are
milliseconds since 1970, what is not known is null (empty in TSV). Errors and notes go to standard error, one line each.
The head of a table is bold on a terminal, and not with `NO_COLOR`.

What cannot be undone asks for the name on a terminal; elsewhere it needs `--yes`. `--dry-run` says what would be done.

## Exit status

| status | meaning |
|---|---|
"""
_COMMON_HEAD = """
## Options that many commands have

| option | what it does |
|---|---|
"""


def page() -> str:
    """The page as it must be."""
    return "".join((_HEAD, *(f"| {status} | {meaning} |\n" for status, meaning in MEANINGS.items()), _COMMON_HEAD,
                    *_common_rows(), *(_section(name) for name in SECTIONS)))


def _common_rows() -> Iterator[str]:
    shown = set[str]()
    for command in COMMANDS.values():
        for parser in _parsers(command.load()).values():
            for argument in parser.arguments:
                if argument.dest in _COMMON and argument.option_strings and argument.dest not in shown:
                    shown.add(argument.dest)
                    yield _row(parser, argument)


def _section(section: str) -> str:
    return "".join((f"\n## {section[:1].upper()}{section[1:]}\n",
                    *(_command(name) for name, command in COMMANDS.items() if command.section == section)))


def _command(name: str) -> str:
    command = COMMANDS[name]
    module = command.load()
    parts = [f"\n### headrace {name}\n\n{command.about[:1].upper()}{command.about[1:]}.\n"]
    for sub, parser in _parsers(module).items():
        if sub:
            parts.append(f"\n#### headrace {name} {sub}\n\n{parser.description}\n")
        parts.append(_options(parser))
        if parser.columns:
            parts += ["\n| key | meaning |\n|---|---|\n",
                      *(f"| `{each.key}` | {_cell(each.about)} |\n" for each in parser.columns)]
        if examples := _examples(parser):
            parts.append(f"\n```\n{examples}\n```\n")
    return "".join(parts)


def _parsers(module: ModuleType) -> dict[str, Parser]:
    return module.make_parsers() if hasattr(module, "make_parsers") else {"": module.make_parser()}


def _options(parser: Parser) -> str:
    own = [each for each in parser.arguments if each.dest not in _COMMON or not each.option_strings]
    common = [f"`{_COMMON[each.dest]}`" for each in parser.arguments if each.dest in _COMMON and each.option_strings]
    rows = "".join(_row(parser, each) for each in own)
    table = f"\n| argument | what it does |\n|---|---|\n{rows}" if rows else ""
    return f"{table}\n{'And' if rows else 'Options:'} {', '.join(common)}.\n" if common else table


def _row(parser: Parser, argument: argparse.Action) -> str:
    value = argument.metavar or (f"{{{','.join(map(str, argument.choices))}}}" if argument.choices else "")
    names = ", ".join(argument.option_strings)
    takes = f" {value}" if names and argument.nargs != 0 else ""
    return f"| `{names}{takes}` | {_cell(parser.help_of(argument))} |\n" if names else (
        f"| `{value}` | {_cell(parser.help_of(argument))} |\n")


def _examples(parser: Parser) -> str:
    lines = (parser.epilog or "").split("examples:\n")
    return lines[1].split("\n\n")[0].rstrip() if len(lines) > 1 else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


if __name__ == "__main__":
    PAGE.write_text(page())
