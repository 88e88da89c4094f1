"""Rewriting a group by copying row groups into the new files as they are; rows that log records touch are merged."""

from dataclasses import replace

from ..base_files.slices import Segment
from ..rows.memory import copy_peak, decoding_peak
from .copy_plan import CopyPlan, PlannedSegment
from .group import Group
from .group_writer import GroupEstimate, GroupWriter


class CopyingWriter(GroupWriter):
    """Carries out a plan for copying."""

    def __init__(self, group: Group, plan: CopyPlan) -> None:
        super().__init__(group)
        self._plan = plan
        self.decoded = plan.decoded
        self._files = [[self._segment(one) for one in file] for file in plan.files]

    def _segment(self, planned: PlannedSegment) -> Segment:
        found = self.group.segments[planned.number]
        return found if planned.is_copied else replace(found, stored=None)

    def write(self) -> None:
        for segments in self._files:
            with self.group.copied_file(sum(one.rows for one in segments), self._plan.created_by) as file:
                for one in segments:
                    if one.stored is not None:
                        self.group.copy(one, file)
                    else:
                        for rows in self.group.take(one):
                            file.write(rows, one.slice)

    def estimate(self) -> GroupEstimate:
        weighed = iter(self.group.weighed)
        sizes = self.group.sizes([[next(weighed) for _ in file] for file in self._files])
        rows = tuple(sum(one.rows for one in file) for file in self._files)
        return GroupEstimate(self.group.rows, sizes, self._peak(), self.decoded, False, rows)

    def _peak(self) -> int:
        task, readers = self.group.task, self.group.readers
        segments = [one for file in self._files for one in file]
        largest = max(one.stored.compressed_bytes for one in segments if one.stored is not None)
        merged = sum(one.rows for one in segments if one.stored is None)
        if not merged:
            return copy_peak(largest, len(readers))
        encoded = sum(reader.encoded_bytes for reader in readers) * merged / max(1, self.group.rows)
        return decoding_peak(task.memory, task.settings.row_group_bytes, encoded, len(readers)) + 2 * largest
