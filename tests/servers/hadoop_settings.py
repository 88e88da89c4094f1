"""Files of Hadoop's settings, as operators have them."""

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape


def settings_folder(folder: Path, values: Mapping[str, str]) -> Path:
    """A folder for HADOOP_CONF_DIR, whose core-site.xml has these values."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in values.items()
    )
    (folder / "core-site.xml").write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))
    return folder
