"""Turns the arguments of the Python API into the values that jobs take."""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import pyarrow as pa

from ..errors import ConfigError
from ..options import Layer, Options, file_keys, metrics_keys, resolve
from ..runs.config_files import conf_layers
from ..storage import Storage
from ..stores import open_storage
from ..stores.options import StorageOptions, Value
from ..urls import check_url

EngineName: TypeAlias = Literal["spark", "local"]
OptionValues: TypeAlias = Mapping[str, str | int | float | bool]


def storage_at(url: str, storage_options: Mapping[str, Value] | None) -> Storage:
    """The storage of the table at a path or URL. Raises ConfigError."""
    if not url.strip():
        raise ConfigError("the URL of the table is empty", hint="give its folder: a local path or a URL")
    check_url(url, "the URL of the table")
    return open_storage(url, StorageOptions(storage_options) if storage_options else None)


def options_over(layers: Sequence[Layer], conf_file: str | None) -> Options:
    """The options of `layers`, highest first, and below them of the conf files. Raises ConfigError."""
    return resolve([*layers, *conf_layers(conf_file, "conf_file", os.environ)])


def engine_layer(source: str, name: EngineName | None) -> Layer:
    """The name of an engine as a layer of options, an empty one for None. Raises ConfigError for an unknown name."""
    if name not in ("spark", "local", None):
        raise ConfigError(f"engine={name!r} is neither 'spark' nor 'local'")
    return source, {} if name is None else {file_keys.ENGINE.key: name}


def metrics_layer(source: str, target: str | None) -> Layer:
    """The target of metrics as a layer of options, an empty one for None."""
    return source, {} if target is None else {metrics_keys.METRICS.key: target}


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
