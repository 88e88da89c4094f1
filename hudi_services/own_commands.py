"""Commands of this program as text that can be copied into a POSIX shell."""

import re
from collections.abc import Callable

_PLAIN = r"\w@%+=:./\-"
"""The characters that a shell takes as they are, for a class of a pattern."""
_WORD = rf"(?:[{_PLAIN}]|\\.)+|''"
_PROGRAM = "hudi-services "
_IN_TEXT = re.compile(
    rf"(?<![\w./\\-]){_PROGRAM}(?P<name>[a-z]+(?:-[a-z]+)*)(?: --base-path (?P<root>{_WORD}))?(?![^\s,;:)])",
    re.DOTALL,
)
"""A command in a sentence. What follows it there, flags or prose, is not looked at."""


def own_command(name: str, root: str, flags: str = "") -> str:
    """The command on the table at `root`; the values in `flags` are quoted already."""
    return " ".join(filter(None, (f"{_PROGRAM}{name} --base-path {shell_word(root)}", flags)))


def completed(text: str, root: str, flags: Callable[[str], str]) -> str:
    """`text` with a base path in each of its commands, `root` where it has none, and after it what `flags` gives, which
    is called with what follows the command in `text`, up to the next one."""

    def with_flags(command: re.Match[str]) -> str:
        begin = f"{_PROGRAM}{command['name']} --base-path {command['root'] or shell_word(root)}"
        rest = text[command.end() :].partition(_PROGRAM)[0]
        return " ".join(filter(None, (begin, flags(rest))))

    return _IN_TEXT.sub(with_flags, text)


def has_flag(text: str, flag: str) -> bool:
    """Whether `text` has the flag with this value, and not with a longer one."""
    return re.search(rf"{re.escape(flag)}(?![{_PLAIN}\\])", text) is not None


def setting(key: str, value: object) -> str:
    """The flag that sets an option."""
    return f"--hoodie-conf {shell_word(f'{key}={value}')}"


def shell_word(text: str) -> str:
    """`text` as one word; a comma would end the command in a sentence, and is quoted, too."""
    return re.sub(rf"[^{_PLAIN}]", r"\\\g<0>", text) or "''"
