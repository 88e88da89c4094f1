"""Work folders of index builds: whoever ends what they were for deletes them, unless their run is at work."""

from contextlib import suppress

from ..commit.transaction import Transaction
from ..errors import LockBusy
from ..indexing.checkpoints import RESCALE_FOLDER, WORK_FOLDER, Checkpoints
from ..metadata.records.keys import RECORD_INDEX
from ..runs.request import Request
from ..runs.run import Run

_SERVICES = {WORK_FOLDER: "index-bootstrap", RESCALE_FOLDER: "index-rescale"}


def forget_builds(run: "Run[Request]", index: str) -> None:
    """Delete what killed builds and rescales of an index have left, but nothing of a run that is at work."""
    for folder, service in _SERVICES.items():
        kept = Checkpoints(run.table.storage, folder)
        if (folder == WORK_FOLDER or index == RECORD_INDEX) and kept.is_of(index):
            with suppress(LockBusy), Transaction(run.table, service, service, run.settings):
                kept.forget()
