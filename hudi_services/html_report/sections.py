"""The sections of the page about files and rows: sizes, partitions, ranges, bytes, growth."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..clock import parse_instant
from ..health.commit_facts import CommitFacts
from ..health.distributions import Spread, histogram, spreads
from ..health.file_facts import FileFacts
from ..health.range_facts import Depth, RangeFacts
from ..health.row_facts import RowFacts
from ..options import clustering_keys, writing_keys
from ..units import counted, size_text
from .axes import Spec, Unit
from .charts import (
    NARROW,
    WIDE,
    Amount,
    Line,
    amounts_chart,
    depth_chart,
    histogram_chart,
    live_chart,
    spread_chart,
    written_chart,
)
from .drawing import drawn
from .markup import Element, element, name_text
from .table_state import TableState

_PARTITIONS = 16
"""How many of the largest partitions are shown each by itself."""


def figure(title: str, caption: str, *specs: tuple[Spec, str], whole: bool = False) -> Element:
    """Pictures under a title and a sentence that says what to look for; each with a class of its own, or ""."""
    pictures = []
    for spec, shown in specs:
        picture = drawn(spec, f"{title}. {caption}")
        if shown:
            picture.set("class", shown)
        pictures.append(picture)
    return element(
        "figure",
        element("figcaption", element("h3", title), caption),
        *pictures,
        **({"class_": "whole"} if whole else {}),
    )


def section(title: str, *children: Element | None) -> Element:
    return element("section", element("h2", title), *children)


def sorry(sentence: str) -> Element:
    """What could not be told, and why."""
    return element("p", sentence, class_="soft")


def layout_sections(state: TableState) -> Iterator[Element]:
    """How the rows are divided into files: sizes, partitions, overlap."""
    if state.files is None:
        yield section("Files", sorry(f"The files could not be listed: {state.unable['files']}"))
    elif not state.files.slices:
        yield section("Files", sorry("The table has no files that readers see."))
    else:
        yield _sizes(state, state.files)
        yield _partitions(state.files, state.rows)
        yield _overlap(state, state.files)


def volume_sections(state: TableState) -> Iterator[Element]:
    """How much there is: what the bytes are, and how they came."""
    if state.files is not None:
        yield _bytes(state, state.files)
        yield _growth(state)


def _sizes(state: TableState, files: FileFacts) -> Element:
    options = state.seen.options
    small, target = options[writing_keys.SMALL_FILE_BYTES], options[writing_keys.MAX_FILE_BYTES]
    lines = [Line(one, f"{what}: {size_text(one)}") for one, what in ((small, "small"), (target, "full")) if one > 0]
    charts: list[Element | None] = []
    sizes = histogram(files.base_bytes)
    if sizes.counts:
        charts.append(
            figure(
                "Base files by size",
                f"Look for many files left of the first line: {size_text(small)} is the limit below which a file "
                f"counts as small, {size_text(target)} is the size that writers aim at.",
                (histogram_chart(sizes, Unit.BYTES, "size of a base file", "files", lines), ""),
            )
        )
    charts.append(_rows_by_file(state, files))
    return section("Files: sizes and rows", element("div", *charts, class_="charts"))


def _rows_by_file(state: TableState, files: FileFacts) -> Element:
    title, rows = "Base files by rows", state.rows
    if rows is None:
        return element("figure", element("h3", title), sorry(f"Rows could not be counted: {state.unable['rows']}"))
    found = histogram(rows.rows)
    base_files = int(np.count_nonzero(files.base_bytes))
    sources = {
        "commits": rows.from_commits,
        "the column statistics index": rows.from_index,
        "a sample of footers": rows.from_footers,
    }
    told = ", ".join(f"{count:,} from {name}" for name, count in sources.items() if count)
    source = f"Known of {rows.known:,} of {base_files:,} base files{': ' if told else ''}{told}."
    if state.seen.table.config.is_merge_on_read:
        source += " Rows in log files are not counted."
    if not found.counts:
        return element("figure", element("h3", title), sorry(f"No rows are known. {source}"))
    return figure(
        title,
        f"Look for files with far fewer rows than the others. {source}",
        (histogram_chart(found, Unit.ROWS, "rows of a base file", "files"), ""),
    )


def _partitions(files: FileFacts, rows: RowFacts | None) -> Element:
    charts = []
    bytes_of = files.partition_bytes
    if len(files.largest_partitions) > 1:
        charts.append(
            figure(
                "Partitions by size",
                "Look for partitions that are alone on the right: the tasks on them run when all others have ended.",
                (histogram_chart(histogram(bytes_of), Unit.BYTES, "live bytes of a partition", "partitions"), ""),
            )
        )
        totals = _complete_rows(files, rows)
        if totals is not None:
            charts.append(
                figure(
                    "Partitions by rows",
                    "Look for the same as in the sizes: a partition far from the others is skewed. Partitions of which "
                    "all base files are known.",
                    (histogram_chart(histogram(totals), Unit.ROWS, "rows of a partition", "partitions"), ""),
                )
            )
    shown = files.largest_partitions[:_PARTITIONS]
    of_all = f"the {len(shown)} largest of {len(files.largest_partitions):,} partitions with rows"
    if len(shown) == len(files.largest_partitions):
        of_all = f"all {len(shown)} partitions" if len(shown) > 1 else "the table, which has one partition"
    numbers = [files.partitions.index(name) for name in shown]
    legend = "The line goes from the smallest file to the largest, the bar has the middle half, the mark is the median."
    base = files.base_bytes > 0
    groups = _groups(shown, spreads(files.base_bytes[base], files.partition[base], numbers), files, numbers)
    if groups:
        charts.append(
            figure(
                "File sizes by partition",
                f"Look for partitions whose bar is far left of the others. {legend} Of {of_all}.",
                (spread_chart(groups, Unit.BYTES, "size of a base file"), ""),
            )
        )
    if rows is not None and rows.known:
        known = rows.rows >= 0
        counted = _groups(shown, spreads(rows.rows[known], files.partition[known], numbers), files, numbers)
        if counted:
            charts.append(
                figure(
                    "Rows of files by partition",
                    f"Look for the same in rows: few rows in many files make reads slow. Of {of_all}, as far as rows "
                    "are known.",
                    (spread_chart(counted, Unit.ROWS, "rows of a base file"), ""),
                )
            )
    return section("Partitions", element("div", *charts, class_="charts"))


def _groups(
    names: Sequence[str], values: Sequence[Spread | None], files: FileFacts, numbers: Sequence[int]
) -> list[tuple[str, int, Spread]]:
    counts = np.bincount(files.partition, minlength=len(files.partitions))
    return [
        (name, int(counts[number]), one)
        for name, number, one in zip(names, numbers, values, strict=True)
        if one is not None
    ]


def _complete_rows(files: FileFacts, rows: RowFacts | None) -> "np.typing.NDArray[np.int64] | None":
    """The rows of each partition of which the rows of all base files are known; None where that is less than half."""
    if rows is None:
        return None
    unknown = np.zeros(len(files.partitions), np.int64)
    np.add.at(unknown, files.partition, ((rows.rows < 0) & (files.base_bytes > 0)).astype(np.int64))
    totals = np.zeros(len(files.partitions), np.int64)
    np.add.at(totals, files.partition, np.maximum(rows.rows, 0))
    complete = totals[(unknown == 0) & (totals > 0)]
    return complete if 2 * len(complete) >= len(files.largest_partitions) else None


def _overlap(state: TableState, files: FileFacts) -> Element:
    title, found = "Overlap of ranges", state.ranges
    if "ranges" in state.unable:
        return section(title, sorry(f"The ranges could not be read: {state.unable['ranges']}"))
    if found is None:
        return section(
            title,
            sorry(
                "The table was never clustered by a column. Name one to see how much the files overlap in it, as "
                f"--hoodie-conf {clustering_keys.SORT_COLUMNS.key}=COLUMN."
            ),
        )
    column = name_text(found.column)
    if found.now is None:
        logs = " File slices with log files have none until they are compacted." if files.log_files.any() else ""
        return section(title, sorry(f"No ranges of the column {column} are known of the files looked at.{logs}"))
    sentences = [f"A filter on one value of {column} opens {_opened(found.now, found)} now."]
    if found.before is not None:
        sentences.append(f"Before the clustering {found.instant} it opened {_opened(found.before, found)}.")
    elif found.instant is not None:
        sentences.append(
            f"What it opened before the clustering {found.instant} is no longer known: a clean has deleted old files."
        )
    caption = (
        "Look for a line near 1: then a value is in one file, and a filter skips all others. A high line means that "
        f"files overlap there, and a clustering by {column} helps. Ranges are those of the index or of footers, in "
        f"{found.partitions} of {counted(len(files.partitions), 'partition')}."
    )
    return section(
        title,
        element("p", " ".join(sentences)),
        element(
            "div",
            figure("How many files of a partition have a value", caption, (depth_chart(found), ""), whole=True),
            class_="charts",
        ),
    )


def _opened(depth: Depth, facts: RangeFacts) -> str:
    return f"{depth.average:.1f} of {depth.files / max(facts.partitions, 1):.0f} files of a partition"


def _bytes(state: TableState, files: FileFacts) -> Element:
    measures, sample = state.seen.measures, len(state.seen.sample)
    older_files, older = files.other_files - files.replaced_files, files.other_bytes - files.replaced_bytes
    base, logs = int(files.base_bytes.sum()), int(files.log_bytes.sum())
    amounts = [
        Amount("live base files", base, _told(base, int(np.count_nonzero(files.base_bytes)))),
        Amount("live log files", logs, _told(logs, int(files.log_files.sum())), "var(--teal)"),
        Amount("old versions", older, _told(older, older_files), "var(--gray)"),
        Amount("replaced", files.replaced_bytes, _told(files.replaced_bytes, files.replaced_files), "var(--violet)"),
    ]
    if not logs and not state.seen.table.config.is_merge_on_read:
        del amounts[1]
    if files.held_files:
        held = f"{_told(files.held_bytes, files.held_files)}, counted above"
        amounts.append(Amount("held by savepoints", files.held_bytes, held, "var(--orange)"))
    orphans = "sampled_orphan_bytes" in measures
    if orphans:
        count, size = int(measures["sampled_orphan_files"]), int(measures["sampled_orphan_bytes"])
        amounts.append(Amount("orphaned", size, _told(size, count), "var(--red)"))
    told = (
        f"Orphaned files are those of {sample} of {counted(len(files.partitions), 'partition')}."
        if orphans
        else "Orphaned files could not be looked for."
    )
    caption = (
        "Look for old and replaced bytes that are many times the live ones: readers do not need them, and a clean "
        f"deletes them. Old versions were updated, replaced files were clustered or overwritten. {told}"
    )
    return section(
        "Bytes: live, old, replaced, orphaned",
        element("div", figure("What the bytes are", caption, (amounts_chart(amounts), "")), class_="charts"),
    )


def _told(size: int, count: int) -> str:
    return f"{size_text(size)} in {count:,} {'file' if count == 1 else 'files'}"


def _growth(state: TableState) -> Element:
    title, commits = "Growth", state.commits
    if commits is None:
        return section(title, sorry(f"The commits could not be read: {state.unable.get('commits', 'see above')}"))
    if not commits.instants:
        return section(title, sorry("The timeline has no completed commits."))
    zone = state.seen.table.timeline.zone
    moments = [parse_instant(one.completion_time or one.ts, zone) for one in commits.instants]
    charts = [
        figure(
            "Bytes written by each commit",
            "Look for table services that write far more than writers do: each rewrites what is there.",
            (written_chart(commits, commits.written_bytes.tolist(), Unit.BYTES, "bytes written"), ""),
        ),
        figure(
            "Rows written by each commit",
            "Look for many commits with few rows: they make small files. A rewritten file counts with all its rows.",
            (written_chart(commits, commits.written_rows.tolist(), Unit.ROWS, "rows written"), ""),
        ),
    ]
    times = [one.timestamp() * 1000 for one in moments if one is not None]
    if len(times) == len(commits.instants):
        charts.insert(
            0,
            figure(
                "Bytes that readers saw",
                f"Look for steps that nobody expects. Computed back from today by what each commit added and took "
                f"away.{_guesses(commits)}",
                (live_chart(commits, times, WIDE), "wide"),
                (live_chart(commits, times, NARROW), "narrow"),
                whole=True,
            ),
        )
    older = f" {commits.older:,} older ones are left out." if commits.older else ""
    told = f"The newest {counted(len(commits.instants), 'commit')} of the timeline.{older} The archive is not read."
    return section(title, element("p", told, class_="soft"), element("div", *charts, class_="charts"))


def _guesses(commits: CommitFacts) -> str:
    if not commits.guessed:
        return ""
    return (
        f" The sizes of {commits.guessed:,} files that commits took away are no longer known: they count as those that "
        "came in their place."
    )
