"""The merged entries of a shard: what the record-wise reader finds, in the same order."""

from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.codecs.avro import parse_schema
from hudi_services.hfile.hfile_reader import HFileReader
from hudi_services.hfile.hfile_writer import write_hfile
from hudi_services.metadata.file_groups.reader import Layer
from hudi_services.metadata.record_index.locations import Location, encode_location
from hudi_services.metadata.record_index.shard_entries import LocationNumbers, ShardEntries
from hudi_services.metadata.records.record_schema import writer_schema

SCHEMA = writer_schema("1.2.0", None)
KEYS = st.text("abü", max_size=3)
LOCATIONS = [Location("p", f"file-{i}", 1_700_000_000_000 + i) for i in range(3)]
LAYERS = st.lists(
    st.one_of(
        st.dictionaries(KEYS, st.sampled_from(LOCATIONS), min_size=1, max_size=8),
        st.frozensets(KEYS, max_size=4),
    ),
    max_size=5,
)


class Layers:
    """A file group with these layers, oldest first: entries, or keys that are deleted."""

    def __init__(self, layers: Sequence[dict[str, Location] | frozenset[str]]) -> None:
        self._layers = [self._layer(one) for one in layers]

    def newest_first(self, first: int = 0) -> Iterator[Layer]:
        return reversed(self._layers[first:])

    @staticmethod
    def _layer(content: dict[str, Location] | frozenset[str]) -> Layer:
        if isinstance(content, frozenset):
            return content, None, None, "deletes"
        rows = sorted((key.encode(), encode_location(at, SCHEMA)) for key, at in content.items())
        schema = parse_schema(SCHEMA.text, "schema")
        return frozenset(), HFileReader(write_hfile(rows, SCHEMA.text), "file"), schema, "file"


@settings(max_examples=150)
@given(LAYERS)
def test_the_newest_layer_decides(layers: list[dict[str, Location] | frozenset[str]]) -> None:
    expected: dict[str, Location] = {}
    for layer in layers:
        if isinstance(layer, frozenset):
            expected = {key: at for key, at in expected.items() if key not in layer}
        else:
            expected |= layer
    numbers = LocationNumbers()
    entries = ShardEntries(Layers(layers), numbers)  # type: ignore[arg-type]
    found: list[tuple[bytes, Location]] = []
    for some in entries.read():
        found += zip(some.keys.to_pylist(), [numbers.locations[place] for place in some.places], strict=True)
    assert found == sorted((key.encode(), at) for key, at in expected.items())
