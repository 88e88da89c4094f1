"""The next command for an operator, with the options that this run was given.

Without its lock or its limits the next command would do something else.
"""

import os

from ..options import Options, file_keys, metrics_keys
from ..own_commands import completed, has_flag, own_command, setting, shell_word
from .config_files import default_files

_ASSIGNED = "--hoodie-conf"
_FILES = {"--props ": "--props", "conf file ": "--conf-file"}
"""How the names of layers begin that are files, and the flag that gives each."""
_OF_FLEETS = "hudi.services.fleet."
_NOT_OF_TABLES = frozenset({file_keys.ENGINE.key, metrics_keys.METRICS.key})


def next_command(options: Options | None, name: str, root: str, flags: str = "") -> str:
    """The command on the table at `root` with these flags, and the options of this run that they do not set themselves.

    Left out is what the next command finds by itself, Hudi's own conf files of this machine and what the table sets,
    and values that hold a secret.
    """
    return own_command(name, root, " ".join(filter(None, (flags, *_given(options, flags)))))


def with_options(text: str, options: Options | None, root: str) -> str:
    """`text`, a hint or a warning, with commands that can be copied: on the table at `root`, as `next_command`."""
    return completed(text, root, lambda rest: " ".join(_given(options, rest)))


def _given(options: Options | None, flags: str) -> list[str]:
    """Each file by its flag, and each other option by its key, but for what flags of this command have set."""
    if options is None:
        return []
    found = dict[str, None]()
    by_itself = {f"conf file {file}" for file in default_files(os.environ)}
    for one in options.of_run():
        if one.source in by_itself or one.key in _NOT_OF_TABLES or one.key.startswith(_OF_FLEETS):
            continue
        file = next((text for text in _FILES if one.source.startswith(text)), "")
        if file:
            flag = f"{_FILES[file]} {shell_word(one.source.removeprefix(file))}"
            if not has_flag(flags, flag):
                found[flag] = None
        elif f"{one.key}=" not in flags and (one.source == _ASSIGNED or not one.source.startswith("--")):
            found[setting(one.key, one.value)] = None
    return [*found]
