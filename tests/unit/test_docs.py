"""What the documents promise is what the program does."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from hudi_services import errors
from hudi_services.cli.config_files import read_properties
from hudi_services.jobs.report import Report, State, TableFacts
from hudi_services.options import keys, resolve
from hudi_services.options.resolve import as_text

ROOT = Path(__file__).resolve().parents[2]


def document(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def first_column(text: str) -> list[str]:
    return re.findall(r"^\| `?([^`|]+?)`? \|", text, re.MULTILINE)


def test_every_option_is_in_the_configuration_page() -> None:
    text = document("docs/configuration.md")
    for option in keys.ALL:
        default = as_text(option.default)
        assert f"| `{option.key}` | {f'`{default}`' if default else '–'} | {option.description} |" in text
    assert [name for name in first_column(text) if name.startswith(("hoodie.", "hudi."))] == [
        option.key for option in keys.ALL
    ]


def test_every_field_of_the_report_is_in_its_page() -> None:
    fields = first_column(document("docs/report.md"))[1:]
    assert fields == list(Report("clustering", "execute", TableFacts("/t")).document())
    for state in State:
        assert f"- `{state.value}`: " in document("docs/report.md")


def test_every_exit_code_is_in_its_page() -> None:
    listed = {int(code) for code in first_column(document("docs/exit-codes.md")) if code.isdecimal()}
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)]
    assert {one.exit_code for one in classes} | {3, 130} == listed


def test_the_example_conf_file_is_good() -> None:
    text = document("conf/hudi-services.properties")
    values = read_properties(str(ROOT / "conf/hudi-services.properties"))
    commented = dict(re.findall(r"^# (hoodie\.\S+)=(.+)$", text, re.MULTILINE))
    assert values and commented
    assert resolve([("example", {**values, **commented})]).warnings == ()


@pytest.mark.parametrize("name", ["README.md", "docs/configuration.md", "docs/report.md", "docs/exit-codes.md"])
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", document(name)):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", document("Makefile"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+) ", document("README.md"))) <= targets | {"installs"}
    assert {"install", "demo", "test", "check", "bench", "help"} <= targets


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["execute", "-sp", "/a b"], ["MAIN", "execute", "-sp", "/a b"]),
        (["--master", "yarn", "--", "execute", "--", "x"], ["--master", "yarn", "MAIN", "execute", "--", "x"]),
        (["--", "schedule"], ["MAIN", "schedule"]),
    ],
)
def test_the_launcher(tmp_path: Path, given: list[str], expected: list[str]) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text('#!/bin/sh\nfor a in "$@"; do echo "$a"; done\n')
    submit.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / "scripts" / "hudi-services-submit"), *given],
        env={**os.environ, "SPARK_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    main = str(ROOT / "hudi_services" / "__main__.py")
    assert done.stdout.splitlines() == [main if word == "MAIN" else word for word in expected]
