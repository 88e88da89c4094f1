"""Commands of this program as text that can be copied into a POSIX shell."""

import re


def own_command(name: str, root: str, flags: str = "") -> str:
    """The command on the table at `root`; the values in `flags` are quoted already."""
    return f"hudi-services {name} --base-path {shell_word(root)} {flags}".rstrip()


def setting(key: str, value: object) -> str:
    """The flag that sets an option."""
    return f"--hoodie-conf {shell_word(f'{key}={value}')}"


def shell_word(text: str) -> str:
    """`text` as one word; a comma would end the command in a sentence, and is quoted, too."""
    return re.sub(r"[^\w@%+=:./-]", r"\\\g<0>", text) or "''"
