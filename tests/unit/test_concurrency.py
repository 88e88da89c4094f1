"""Work beside other work."""

import threading
from collections.abc import Iterator

import pytest

from hudi_services.concurrency import one_ahead


@pytest.mark.threads
def test_one_value_ahead() -> None:
    made: list[int] = []
    threads = set()

    def values() -> Iterator[int]:
        for number in range(5):
            threads.add(threading.get_ident())
            made.append(number)
            yield number
        raise ValueError("the end")

    found = []
    with pytest.raises(ValueError, match="the end"):
        for one in one_ahead(values()):
            found.append(one)
            assert len(made) <= len(found) + 1
    assert found == made == [0, 1, 2, 3, 4]
    assert threading.get_ident() not in threads
    assert list(one_ahead([])) == [] and next(one_ahead(iter([7, 8]))) == 7
