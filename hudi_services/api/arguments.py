"""Turns the arguments of the Python API into the values that jobs take."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import pyarrow as pa

from ..engine import Engine, LocalEngine
from ..errors import ConfigError
from ..options import Layer

EngineName: TypeAlias = Literal["spark", "local"]
OptionValues: TypeAlias = Mapping[str, str | int | float | bool]


def engine_called(name: EngineName) -> Engine | None:
    """The engine of that name, None for Spark. Raises ConfigError for an unknown name."""
    if name == "local":
        return LocalEngine()
    if name != "spark":
        raise ConfigError(f"engine={name!r} is neither 'spark' nor 'local'")
    return None


def layer_of(source: str, values: OptionValues | None) -> Layer:
    """The values as a layer of options. Raises ConfigError, which shows no value, for one that is not text, a number
    or a boolean."""
    texts: dict[str, str] = {}
    for key, value in (values or {}).items():
        if isinstance(value, bool):
            texts[key] = str(value).lower()
        elif isinstance(value, str | int | float):
            texts[key] = str(value)
        else:
            raise ConfigError(
                f"{key} (from {source}) is of the type {type(value).__name__}",
                hint="give a text, a number, or True or False; lists are texts with commas",
            )
    return source, texts


def key_array(keys: object) -> pa.Array:
    """Record keys as one Arrow array of text. Raises ConfigError for a single text, for other types and for nulls."""
    hint = "give a list of texts, or an Arrow array of them"
    if isinstance(keys, str | bytes):
        raise ConfigError("the keys are one text, where many are looked up", hint=hint)
    try:
        if isinstance(keys, pa.ChunkedArray):
            keys = keys.combine_chunks()
        found = keys.cast(pa.string()) if isinstance(keys, pa.Array) else pa.array(keys, pa.string())
    except (pa.ArrowException, TypeError) as error:
        raise ConfigError(f"the keys are not text: {str(error).splitlines()[0]}", hint=hint) from None
    if found.null_count:
        raise ConfigError("one of the keys is null, and no record has such a key", hint="leave nulls out")
    return found
