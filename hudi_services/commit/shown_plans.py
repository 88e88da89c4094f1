"""Notes of staged attempts about the instant at which they show their plan.

    .hoodie/.hudi_services/staged-<ts>/shown.json    {"instant": where the plan is shown}

The lease of such an attempt bears the time at which it began, not the instant of its plan.
"""

import json
import re

from ..codecs.json_text import parse_json
from ..errors import CorruptFile, NotFound
from ..file_names import OWN_FOLDER
from ..limits import SMALL_FILE
from ..paths import bare_name
from ..storage import Storage
from .new_files import staging_folder

_STAGED = re.compile(r"staged-([0-9]{17})")


def note_shown(storage: Storage, staged: str, ts: str) -> None:
    """Note that the plan of the attempt `staged` is about to be shown at the instant `ts`."""
    storage.put(_note(staged), json.dumps({"instant": ts}).encode())


def shown_at(storage: Storage, staged: str) -> str:
    """The instant at which the plan of the attempt `staged` was to be shown; "" when it was not."""
    try:
        note = parse_json(storage.read(_note(staged), SMALL_FILE))
    except (NotFound, CorruptFile, ValueError):
        return ""
    ts = note.get("instant") if isinstance(note, dict) else None
    return ts if isinstance(ts, str) else ""


def staged_attempts(storage: Storage) -> list[str]:
    """The times of the staged attempts that have left a folder, oldest first."""
    folders = (_STAGED.fullmatch(bare_name(path)) for path in storage.list_dir(OWN_FOLDER)[1])
    return sorted(one[1] for one in folders if one)


def attempt_that_shows(storage: Storage, ts: str) -> str:
    """The staged attempt whose plan is shown at the instant `ts`; "" when there is none."""
    return next((staged for staged in staged_attempts(storage) if shown_at(storage, staged) == ts), "")


def _note(staged: str) -> str:
    return f"{staging_folder(staged)}/shown.json"
