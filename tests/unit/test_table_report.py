"""`report --html`: the page says what is true of a table, in a file that opens anywhere and runs nothing."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.cli.app import run
from hudi_services.health.commit_facts import commit_facts
from hudi_services.health.distributions import histogram
from hudi_services.health.examination import Examination
from hudi_services.health.range_facts import range_facts
from hudi_services.health.row_facts import row_facts
from hudi_services.health.timeline_spans import InstantSpan
from hudi_services.html_report.axes import Unit
from hudi_services.html_report.charts import Line, histogram_chart, timeline_chart
from hudi_services.html_report.page import page
from hudi_services.html_report.table_state import table_state
from hudi_services.options import resolve
from hudi_services.runs.opening import open_supported
from hudi_services.runs.output_file import replace_output_file
from hudi_services.runs.report import Report
from hudi_services.runs.report_rows import HealthFindingRow
from hudi_services.runs.request import DoctorRequest
from hudi_services.units import size_text

from ..interop import layout
from ..interop.pristine import Pristine
from ..interop.recipes import VERSIONS
from ..servers.tools import kept
from ..servers.tools import run as install
from .tables import digest, open_local

ROOT = Path(__file__).resolve().parents[2]
BY_CITY = {"hoodie.clustering.plan.strategy.sort.columns": "city"}
FEW = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
EVIL = (
    "<script>alert(1)<",
    '"><img src=x onerror=alert(1)>',
    "'&amp;--><b>",
    "<|style><|svg><script src=|evil.example|x.js>".replace("|", "\u2215"),
)


@dataclass
class Parsed(HTMLParser):
    """A page as browsers read it: its elements, and its text."""

    html: str
    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def rows(first: int, count: int, parts: tuple[str, ...]) -> pa.Table:
    random = np.random.default_rng(first)
    return pa.table({
        "id": [f"k{number:07d}" for number in range(first, first + count)],
        "ts": pa.array(range(first, first + count)),
        "part": random.choice(parts, count),
        "city": [f"city{number:03d}" for number in random.integers(0, 300, count)],
    })  # fmt: skip


@dataclass
class Made:
    """A table with a history: `live` has its live bytes after each write, as its view told them then."""

    path: Path
    parts: tuple[str, ...]
    live: list[int] = field(default_factory=list)

    def make(self, kind: str, name: str = "trips") -> "Made":
        hudi_services.create(
            self.path, name=name, record_key="id", ordering="ts", partition_by="part", table_type=kind, engine="local"
        )
        table = hudi_services.open(self.path, engine="local")
        small = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.bloom.filter.enabled": "false"}
        for number in range(6):
            table.bulk_insert(rows(1000 * number, 400, self.parts), options=small)
            self.look()
        table.upsert(rows(0, 100, self.parts), options=small)
        self.look()
        assert table.cluster(options=BY_CITY).ok
        self.look()
        table.upsert(rows(5000, 50, self.parts), options=small)
        self.look()
        return self

    def look(self) -> None:
        self.live.append(sum(one.size for one in open_local(self.path).view.live_slices()))

    def damage(self) -> str:
        """Leave a dead write, whose instant this is, and a file of no instant."""
        at = time.time() - 3 * 3600
        ts = time.strftime("%Y%m%d%H%M%S000", time.localtime(at))
        for suffix in ("commit.requested", "inflight"):
            file = layout.timeline(self.path) / f"{ts}.{suffix}"
            file.touch()
            os.utime(file, (at, at))
        one = min(file for file in self.path.rglob("*.parquet") if ".hoodie" not in file.parts)
        after = int(open_local(self.path).timeline.completed_writes()[-1].ts) + 1
        orphan = one.with_name(f"00000000-0000-0000-0000-000000000000-0_0-1-1_{after}.parquet")
        shutil.copy(one, orphan)
        os.utime(orphan, (at, at))
        return ts


def examined(path: Path, **options: str) -> Examination:
    request = DoctorRequest(base_path=str(path), options=resolve([("test", options)]))
    opened = open_supported(request, None, Report.start(request), repairs=True)
    return Examination(opened.table, opened.options, opened.settings)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("trips") / "table", ("a", "b", "c")).make("COPY_ON_WRITE")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_growth_is_what_readers_saw(kind: str, made: Made, tmp_path: Path) -> None:
    """After each commit, computed back from what they see now."""
    table = made if kind == "COPY_ON_WRITE" else Made(tmp_path / "table", ("a", "b")).make(kind)
    seen = examined(table.path)
    facts = commit_facts(seen.table, seen.files.live_bytes)
    assert facts.live_bytes.tolist() == table.live
    assert (facts.guessed, facts.older) == (0, 0)
    assert facts.written_rows[:6].tolist() == [400] * 6


@pytest.mark.parametrize("release", VERSIONS)
def test_growth_and_rows_of_tables_of_real_hudi(release: str, tmp_path: Path) -> None:
    """Back from today, after all its updates, overwrites and deletes, the first commit is what readers saw first."""
    known = Pristine.unpack(release, tmp_path)
    for recipe in ("changes", "keyed", "past", "plain", "types_row"):
        seen = examined(known.table(recipe))
        facts = commit_facts(seen.table, seen.files.live_bytes)
        assert facts.live_bytes[0] == facts.written_bytes[0] > 0, recipe
        found = row_facts(seen.table, seen.files.slices, facts.rows_of)
        assert found.rows.sum() == known.rows(recipe).num_rows, recipe


@pytest.mark.thorough
def test_sizes_that_no_commit_tells(made: Made, tmp_path: Path) -> None:
    """Of files whose commits are gone from the timeline: the page says how many, and the newest numbers are right."""
    copy = tmp_path / "table"
    shutil.copytree(made.path, copy)
    for commit in sorted(layout.timeline(copy).glob("2*_*.commit"))[:6]:
        for file in commit.parent.glob(f"{commit.name[:17]}*"):
            file.unlink()
    seen = examined(copy)
    facts = commit_facts(seen.table, seen.files.live_bytes)
    assert facts.live_bytes[-2:].tolist() == made.live[-2:] and facts.guessed >= 15
    text = Parsed(page(table_state(seen), "", [])).text
    assert f"The sizes of {facts.guessed} files that commits took away are no longer known" in text


def test_rows_are_those_of_the_footers(made: Made) -> None:
    """Whoever tells them: commits, the index, or a sample of footers."""
    seen = examined(made.path)
    live = [one.base_file for one in seen.table.view.live_slices()]
    expected = [pq.read_metadata(made.path / one.path).num_rows for one in live if one is not None]
    commits = commit_facts(seen.table, 0).rows_of
    assert row_facts(seen.table, len(live), commits).rows.tolist() == expected
    indexed = row_facts(seen.table, len(live), {})
    assert (indexed.rows.tolist(), indexed.from_index) == (expected, len(live))
    bare = examined(without_index(made))
    sampled = row_facts(bare.table, len(live), {})
    assert (sampled.rows.tolist(), sampled.from_footers) == (expected, len(live))


def without_index(made: Made) -> Path:
    """The table without its metadata table."""
    copy = made.path.with_name("bare")
    shutil.copytree(made.path, copy)
    shutil.rmtree(copy / ".hoodie/metadata")
    properties = copy / ".hoodie/hoodie.properties"
    properties.write_text(re.sub(r"(?m)^hoodie.table.(metadata.partitions|checksum)=.*\n", "", properties.read_text()))
    return copy


def test_overlap_before_and_after_a_clustering(made: Made, tmp_path: Path) -> None:
    """Before, most values are in most files of a partition; after it in one; and what a clean took is not told."""
    seen = examined(made.path)
    facts = range_facts(seen.table, seen.options, seen.sample)
    assert facts is not None and facts.before is not None and facts.now is not None
    assert (facts.column, facts.partitions) == ("city", 3)
    assert (facts.now.files, facts.now.average, set(facts.now.curve)) == (3, 1, {1})
    assert facts.before.files == 18 and facts.before.average > 3.5 and max(facts.before.curve) > 5
    copy = tmp_path / "cleaned"
    shutil.copytree(made.path, copy)
    one_version = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert hudi_services.open(copy).clean(options=one_version).ok
    cleaned = examined(copy)
    later = range_facts(cleaned.table, cleaned.options, cleaned.sample)
    assert later is not None and (later.before, later.now) == (None, facts.now)


@pytest.mark.parametrize("values", [[7], [4_000_000, 4_000_009], [1, 2, 3, 2**50], [0, 0, 5, 6, 1 << 20]])
def test_a_histogram_has_every_value(values: list[int]) -> None:
    bins, filled = histogram(np.array(values, np.int64)), [one for one in values if one]
    assert (sum(bins.counts), sum(bins.sums)) == (len(filled), sum(filled))
    assert bins.edges[0] <= min(filled) and max(filled) < bins.edges[-1] and len(bins.counts) <= 48
    for low, high, count, total in zip(bins.edges, bins.edges[1:], bins.counts, bins.sums, strict=False):
        assert low * count <= total <= high * count


def test_no_line_crosses_the_label_of_another() -> None:
    """Labels go to the left on the right side of a picture, and to the right on its left side: what they could cross
    begins below them."""
    sizes = histogram(np.array([1 << 20, 200 << 20], np.int64))
    lines = [Line(100 << 20, "small"), Line(120 << 20, "full"), Line(2 << 20, "a"), Line(3 << 20, "b")]
    layers = histogram_chart(sizes, Unit.BYTES, "size", "files", lines)["layer"]
    begins = {
        one["encoding"]["x"]["datum"]: one["encoding"]["y"]["value"]
        for one in layers
        if isinstance(one["mark"], dict) and one["mark"].get("type") == "rule"
    }
    heights = {
        one["encoding"]["text"]["value"]: one["encoding"]["y"]["value"] for one in layers if "text" in one["encoding"]
    }
    half = 6
    assert begins[100 << 20] >= heights["full"] + half and begins[3 << 20] >= heights["a"] + half
    assert begins[120 << 20] < heights["full"] and len({*heights.values()}) == 4


def test_a_legend_has_what_the_picture_has() -> None:
    spans = [InstantSpan("1", "commit", 0.0, 10.0), InstantSpan("2", "clean", 20.0, None)]

    def legend(shown: Sequence[InstantSpan]) -> list[str]:
        found: list[str] = timeline_chart(shown, 40.0, [], 300)["layer"][0]["encoding"]["color"]["scale"]["domain"]
        return found

    assert legend(spans) == ["completed", "pending"] and legend(spans[:1]) == ["completed"]


@pytest.mark.thorough
def test_the_page_tells_the_numbers(made: Made, tmp_path: Path) -> None:
    """With the findings of doctor on top; the table is untouched, and no other file appears."""
    table = Made(tmp_path / "table", made.parts)
    shutil.copytree(made.path, table.path)
    table.look()
    dead = table.damage()
    before = digest(table.path)
    html = tmp_path / "pages" / "trips.html"
    html.parent.mkdir()
    html.write_text("an older page")
    html.chmod(0o640)
    done = hudi_services.open(table.path).report(str(html), options=FEW)
    assert (done.ok, done.report["exit_code"], digest(table.path)) == (True, 0, before)
    assert [file.name for file in html.parent.iterdir()] == ["trips.html"]
    found = Parsed(html.read_text(encoding="utf-8"))
    doctor = hudi_services.open(table.path).doctor(options=FEW)
    assert [row["check"] for row in done.report["tables"]["findings"]] == [
        row["check"] for row in doctor.report["tables"]["findings"]
    ]
    files = examined(table.path).files
    for text in (
        "No row is in danger, but something should be done",
        f"recover --base-path {table.path} --apply --instant {dead}",
        f"live data {size_text(table.live[-1])}",
        "rows of base files 2,400",
        "A filter on one value of city opens",
        "Before the clustering",
        f"The pending commit {dead}, 3 hours old, holds them back: they delete nothing.",
        f"9 commits are on the timeline, where 3 would be enough. They are held by a write or a plan that is not "
        f"completed, {dead}.",
        "the archive stops here",
        "no sign of life for 3 hours",
        f"{size_text(files.replaced_bytes)} in {files.replaced_files} files",
        "The newest 9 commits of the timeline.",
    ):
        assert text in found.text, text
    assert files.replaced_files > 15 and re.search(r"orphaned .* in 1 file\b", found.text)
    titles = re.findall(r"<h3>([^<]+)</h3>", found.html)
    assert len(titles) == len(set(titles)) == 14
    assert found.tags.count("figure") == found.tags.count("h3") and found.tags.count("svg") == 16


def plain_elements(path: Path, **options: str) -> Parsed:
    return Parsed(page(table_state(examined(path, **options)), "", []))


@pytest.mark.thorough
def test_names_of_a_table_are_texts(made: Made, tmp_path: Path) -> None:
    """Markup in names of the table, of partitions, of a column and in findings makes no element and no attribute."""
    table = Made(tmp_path / "table", EVIL).make("COPY_ON_WRITE", f"{EVIL[1]}&{EVIL[0]}")
    seen = examined(table.path, **{"hoodie.clustering.plan.strategy.sort.columns": "city"})
    row = HealthFindingRow(level="note", check=EVIL[2], subject=EVIL[1], finding=EVIL[0], command=EVIL[1], numbers="{}")
    html = page(table_state(seen), EVIL[2], [row])
    found, plain = Parsed(html), plain_elements(made.path)
    assert {*found.tags} == {*plain.tags} | {"code", "span"}
    assert {name for name, _ in found.attributes} == {name for name, _ in plain.attributes}
    assert not {name for name, _ in found.attributes} & {"style", "href", "src", "onerror", "id"}
    assert not [value for name, value in found.attributes if "alert" in value or "url(" in value]
    assert "<script" not in html.lower() and "<img" not in html.lower()
    for name in EVIL:
        assert name[:14] in found.text, name
    unknown = {"hoodie.clustering.plan.strategy.sort.columns": "<script>"}
    assert "No ranges of the column <script> are known" in plain_elements(table.path, **unknown).text
    hidden = page(table_state(seen), "a\u202eb\x00c\ud800", [])
    assert "A\ufffdb\ufffdc\ufffd." in hidden


def test_what_cannot_be_read_is_told(made: Made, tmp_path: Path) -> None:
    """A commit that is garbage costs the sections that need it, and no other."""
    copy = tmp_path / "table"
    shutil.copytree(made.path, copy)
    commits = sorted(layout.timeline(copy).glob("2*_*.commit"))
    commits[2].write_bytes(b"garbage")
    assert run(["report", "--base-path", str(copy), "--html", str(tmp_path / "page.html")]) == 0
    found = Parsed((tmp_path / "page.html").read_text())
    assert re.search(r"The commits could not be read: .*" + commits[2].name, found.text)
    assert "from the column statistics index" in found.text and "Instants by action" in found.text


def test_a_table_without_rows(tmp_path: Path) -> None:
    hudi_services.create(tmp_path / "table", name="t", record_key="id", engine="local")
    found = plain_elements(tmp_path / "table")
    assert "The table has no files that readers see." in found.text and "The timeline has no instants." in found.text


def test_what_ends_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even before the table is looked for: there is none."""
    words = ["report", "--base-path", str(tmp_path / "none"), "--html"]
    for file in (tmp_path, tmp_path / "none" / "page.html"):
        assert run([*words, str(file)]) == 2
        assert f"--html {file} cannot be written" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert run([*words, str(tmp_path / "page.html")]) == 2
    said = capsys.readouterr().err
    assert "needs the Python module vl_convert" in said and "hudi-services[report]" in said


def test_an_older_page_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    """A text that cannot be written leaves it, and nothing beside it; a pipe is written to, and stays a pipe."""
    file = tmp_path / "page.html"
    file.write_text("older")
    with pytest.raises(UnicodeEncodeError):
        replace_output_file(str(file), "newer \ud800")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("page.html", "older")]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        replace_output_file(str(pipe), "newer")
        assert reader.communicate()[0] == "newer" and pipe.is_fifo()


# ---- in a browser


def chromium() -> str:
    """The one of this machine, else one that playwright brings."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found

    def fill(folder: Path) -> None:
        line = [sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"]
        install(line, {"PLAYWRIGHT_BROWSERS_PATH": str(folder)})

    import playwright

    folder = kept(f"playwright-{playwright.__version__}", fill)
    return str(next(folder.glob("chromium-*/chrome-linux*/chrome")))


DRAWN = """() => [...document.querySelectorAll('figure')].map(figure => {
  const pictures = [...figure.querySelectorAll('svg')].filter(one => one.getBoundingClientRect().width > 0);
  const marks = pictures.flatMap(one => [...one.querySelectorAll('path, line, rect, circle')]);
  const column = figure.getBoundingClientRect();
  const texts = pictures.flatMap(one => [...one.querySelectorAll('text')]);
  const boxes = texts.map(one => one.getBoundingClientRect());
  return {
    title: figure.querySelector('h3').textContent, caption: figure.querySelector('figcaption').textContent,
    pictures: pictures.length, named: pictures.every(one => one.querySelector('title') && one.getAttribute('role')),
    marks: marks.filter(one => { const box = one.getBoundingClientRect(); return box.width + box.height > 1; }).length,
    texts: texts.filter(one => one.textContent.trim()).length,
    smallest: Math.min(...boxes.filter(one => one.height > 0).map(one => one.height)),
    outside: boxes.filter(one => one.left < column.left - 8 || one.right > column.right + 8).length,
  };
})"""
CONTRAST = """() => { const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]; }"""


def brightness(color: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", color)[:3])) / 3


@pytest.mark.deep
def test_the_page_in_a_browser(made: Made, tmp_path: Path) -> None:
    """What is drawn at two widths, light, dark and on paper: shapes, texts; no error, no request, nothing that runs."""
    from playwright.sync_api import sync_playwright

    table = Made(tmp_path / "table", EVIL).make("COPY_ON_WRITE", EVIL[1])
    table.damage()
    html = tmp_path / "page.html"
    assert hudi_services.open(table.path).report(str(html), options=BY_CITY).ok
    with sync_playwright() as started, started.chromium.launch(
        executable_path=chromium(), args=["--no-sandbox"]
    ) as browser:  # fmt: skip
        for width, scheme in ((700, "light"), (700, "dark"), (1400, "light"), (1400, "dark")):
            view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
            said: list[str] = []
            asked: list[str] = []
            view.on("console", lambda message, said=said: said.append(message.text))
            view.on("pageerror", lambda error, said=said: said.append(str(error)))
            view.on("dialog", lambda dialog, said=said: (said.append(dialog.message), dialog.dismiss()))
            view.on("request", lambda request, asked=asked: asked.append(request.url))
            view.goto(html.as_uri())
            assert (said, asked) == ([], [html.as_uri()])
            figures = view.evaluate(DRAWN)
            assert len(figures) == 14
            for figure in figures:
                assert figure["pictures"] == 1 and figure["named"], figure
                assert figure["marks"] >= 3 and figure["texts"] >= 3, figure
                assert figure["outside"] == 0 and figure["smallest"] >= 8, figure
                assert figure["caption"].startswith(f"{figure['title']}Look for "), figure
            assert view.evaluate("document.documentElement.scrollWidth") <= width
            assert view.evaluate("document.scripts.length + document.images.length + document.links.length") == 0
            ground, ink = map(brightness, view.evaluate(CONTRAST))
            assert (ink - ground if scheme == "dark" else ground - ink) > 180
            view.emulate_media(media="print", color_scheme=scheme)  # type: ignore[arg-type]
            assert brightness(view.evaluate(CONTRAST)[0]) == 255
            assert view.pdf(format="A4").count(b"/Type /Page\n") in range(2, 12)
            view.close()


TEN_THOUSAND = """
import sys
sys.path[:0] = ["scripts", "."]
from pathlib import Path
import bench_plan
bench_plan._table(Path(sys.argv[1]), 1000)
"""


@pytest.mark.deep
def test_a_table_of_ten_thousand_slices(tmp_path: Path) -> None:
    """A page that a mail takes, in seconds: docs/report-html.md has the numbers of a quiet machine."""
    subprocess.run([sys.executable, "-c", TEN_THOUSAND, str(tmp_path)], cwd=ROOT, check=True)
    html = tmp_path / "page.html"
    before = os.times()
    line = [
        sys.executable,
        "-m",
        "hudi_services",
        "report",
        "--base-path",
        str(tmp_path / "table"),
        "--html",
        str(html),
    ]
    subprocess.run(line, cwd=ROOT, check=True, capture_output=True)
    after = os.times()
    assert "10,000" in html.read_text() and html.stat().st_size < 200_000
    assert after.children_user + after.children_system - before.children_user - before.children_system < 10
