"""The options of the services: what can be set, what is set, and which layer set it."""

from .fields import computed, settings, value_of
from .option import Option
from .resolve import DEFAULT_SOURCE, TABLE_SOURCE, Layer, Options, Setting, as_text, resolve

__all__ = [
    "DEFAULT_SOURCE",
    "TABLE_SOURCE",
    "Layer",
    "Option",
    "Options",
    "Setting",
    "as_text",
    "computed",
    "resolve",
    "settings",
    "value_of",
]
