"""Completion scripts for bash, zsh and fish, made from the parsers of all commands.

They are static: a shell that completes starts no Python. shtab, which makes such scripts, needs one tree of argparse
parsers, and all commands would have to be imported to build it whenever one of them runs (decision 0043).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.cli.shared.commands import COMMANDS
from headrace.cli.shared.parsers import Parser

__all__ = ["SHELLS", "Word", "completion_script", "words_of_all"]

_FILES: Final = ("FILE", "DIR")
_HELP: Final = "--help"


class Word(NamedTuple):
    """Something that can be typed behind other words.

    Args:
        text: what is typed.
        about: what it means; one line.
        values: what may follow it.
        takes_value: something must follow it.
        takes_file: what follows is a file.
    """

    text: str
    about: str
    values: tuple[str, ...] = ()
    takes_value: bool = False
    takes_file: bool = False


_Words = dict[tuple[str, ...], list[Word]]


def words_of_all() -> _Words:
    """What may be typed behind each sequence of commands: `()`, `("topics",)`, `("topics", "list")`."""
    found: _Words = {(): [Word(name, command.about) for name, command in COMMANDS.items()]}
    for name, command in COMMANDS.items():
        module = command.load()
        if hasattr(module, "make_parsers"):
            parsers: dict[str, Parser] = module.make_parsers()
            found[name,] = [Word(each, _line(parser.description)) for each, parser in parsers.items()]
            found |= {(name, each): list(_words(parser)) for each, parser in parsers.items()}
        else:
            found[name,] = list(_words(module.make_parser()))
    return found


def _words(parser: Parser) -> Iterator[Word]:
    for action in parser.arguments:
        choices = tuple(map(str, action.choices or ()))
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        for option in action.option_strings:
            about = _line(parser.help_of(action))
            yield Word(option, about, choices, action.nargs != 0, any(kind in metavar for kind in _FILES))
        if not action.option_strings:
            yield from (Word(choice, "") for choice in choices)
    yield Word(_HELP, "show what there is")


def _line(text: str | None) -> str:
    """The first clause: what stands behind it is for a help page."""
    return (text or "").partition(";")[0].partition(" (")[0].rstrip(".").replace("\n", " ")


def completion_script(shell: str) -> str:
    """The script for a shell.

    Args:
        shell: one of `SHELLS`.
    """
    return SHELLS[shell](words_of_all())


def _bash(words: _Words) -> str:
    cases = "\n".join(f'    "{" ".join(path)}") words="{" ".join(word.text for word in each)}"'
                      f'{"; files=1" if each[-1].text == _HELP else ""} ;;' for path, each in words.items())
    values = "\n".join(f'    "{" ".join((*path, word.text))}") words="{" ".join(word.values)}"; return 0 ;;'
                       for path, each in words.items() for word in each if word.values)
    files = sorted({word.text for each in words.values() for word in each if word.takes_file})
    others = sorted({word.text for each in words.values() for word in each
                     if word.takes_value and not word.values and not word.takes_file})
    return f"""# bash completion of headrace: eval "$(headrace completion bash)"
_headrace_values() {{
  case "$1" in
{values}
  esac
  case "$2" in
    {"|".join(files)}) files=1; return 0 ;;
    {"|".join(others)}) return 0 ;;
  esac
  return 1
}}
_headrace() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path="" words="" files="" at next
  for ((at = 1; at < COMP_CWORD; at++)); do
    next="${{path:+$path }}${{COMP_WORDS[at]}}"
    case "$next" in
      {"|".join(f'"{" ".join(path)}"' for path in words if path)}) path=$next ;;
      *) break ;;
    esac
  done
  COMPREPLY=()
  if ! _headrace_values "$path $before" "$before"; then
    case "$path" in
{cases}
    esac
    [[ $word == -* ]] && files=""
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ -n $files ]] && COMPREPLY+=($(compgen -f -- "$word"))
}}
complete -o filenames -F _headrace headrace
"""


def _zsh(words: _Words) -> str:
    functions = []
    for path, each in words.items():
        name = "_headrace" + "".join(f"_{part}" for part in path).replace("-", "_")
        if any((*path, word.text) in words for word in each):
            rows = "\n".join(f"    {_quoted(_escaped(word.text, ':') + ':' + word.about)}" for word in each)
            calls = "\n".join(f"      {word.text}) {name}_{word.text.replace('-', '_')} ;;" for word in each)
            functions.append(f"""{name}() {{
  local -a found=(
{rows}
  )
  local curcontext=$curcontext state line
  _arguments -C '1: :->command' '*:: :->rest'
  case $state in
    command) _describe command found ;;
    rest) case $words[1] in
{calls}
    esac ;;
  esac
}}""")
        else:
            rows = " \\\n".join(f"    {_quoted(_zsh_option(word))}" for word in each if word.text.startswith("-"))
            functions.append(f"{name}() {{\n  _arguments \\\n{rows} \\\n    '*:file:_files'\n}}")
    return "\n".join(["#compdef headrace", "# zsh completion of headrace: source <(headrace completion zsh)",
                      *functions, "compdef _headrace headrace", ""])


def _zsh_option(word: Word) -> str:
    about = _escaped(word.about, "[]:")
    if not word.takes_value:
        return f"*{word.text}[{about}]"
    what = f"({' '.join(word.values)})" if word.values else "_files" if word.takes_file else " "
    return f"*{word.text}[{about}]:value:{what}"


def _fish(words: _Words) -> str:
    lines = ["# fish completion of headrace: headrace completion fish | source", "complete -c headrace -f"]
    for path, each in words.items():
        for word in each:
            condition = " and ".join(f"__fish_seen_subcommand_from {part}" for part in path).replace(
                " and ", "; and ")
            known = " ".join(other.text for other in each if (*path, other.text) in words)
            if known:
                none = f"not __fish_seen_subcommand_from {known}"
                condition = f"{condition}; and {none}" if condition else none
            lines.append(" ".join(filter(None, (
                "complete -c headrace", f"-n {_quoted(condition)}" if condition else "", _fish_word(word),
                f"-d {_quoted(word.about)}" if word.about else ""))))
    return "\n".join([*lines, ""])


def _fish_word(word: Word) -> str:
    if not word.text.startswith("-"):
        return f"-a {_quoted(word.text)}"
    kind = f"-l {word.text[2:]}" if word.text.startswith("--") else (
        f"-s {word.text[1:]}" if len(word.text) == len("-x") else f"-o {word.text[1:]}")
    if word.values:
        return f"{kind} -x -a {_quoted(' '.join(word.values))}"
    return f"{kind} -r -F" if word.takes_file else f"{kind} -x" if word.takes_value else kind


def _escaped(text: str, marks: str) -> str:
    return "".join(f"\\{each}" if each in marks + "\\" else each for each in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}
"""What makes the script of each shell."""
