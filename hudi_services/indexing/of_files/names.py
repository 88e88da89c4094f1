"""The names of the indexes that have records of files, as `--index` takes them.

They are the metadata partitions of `metadata.records.keys`, which is not loaded for a wrong flag.
"""

KINDS = ("files", "column_stats", "partition_stats", "bloom_filters")
EXPRESSION = "expression:"
"""What the text about an expression index begins with."""


def names_in(text: str) -> list[str]:
    """The names of a list with commas."""
    return [one.strip() for one in text.split(",")]


def are_of_files(text: str) -> bool:
    """Whether `--index` asks for indexes of files."""
    return text.startswith(EXPRESSION) or {*names_in(text)} <= {*KINDS}
