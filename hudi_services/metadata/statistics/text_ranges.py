"""Ranges of texts in statistics, for readers of two orders (`codecs.text_order`).

Spark compares texts by their UTF-8 bytes. Hudi compares them in Java where it merges the ranges of files into that of
their partition, and where its index by bloom filters takes the ranges of record keys from column statistics
(hoodie.bloom.index.use.metadata). Sources: HoodieTableMetadataUtil, HoodieBloomIndex.
"""

from dataclasses import replace

from ...codecs.text_order import lower_bound, upper_bound
from ..records.model import StatsRecord


def in_both_orders(record: StatsRecord) -> StatsRecord:
    """The record with bounds that hold in both orders; the greatest text stays where no such upper bound exists.

    Spark then finds every row. Hudi writes such a bound for any range.
    """
    low, high = record.minimum, record.maximum
    if not isinstance(low, str) or not isinstance(high, str):
        return record
    return replace(record, minimum=lower_bound(low), maximum=upper_bound(high) or high)


def as_told(true: StatsRecord, stored: StatsRecord) -> StatsRecord:
    """The record that `stored` should be, by the `true` record: a stored bound that holds in both orders is right."""
    either = in_both_orders(true)
    return replace(
        true,
        minimum=either.minimum if stored.minimum == either.minimum else true.minimum,
        maximum=either.maximum if stored.maximum == either.maximum else true.maximum,
    )
