"""Whether a clustering pays: what it costs once, against what each run of the workload saves."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PayRule:
    """A clustering pays when a run of the workload saves at least `least_percent` of the bytes that it reads, and the
    bytes that the clustering reads and writes are saved after at most `executions` runs."""

    least_percent: int
    executions: int


@dataclass(frozen=True, slots=True)
class Gain:
    """The bytes that a run of the workload reads `before` and `after`; `cost`: those that a clustering moves."""

    before: float
    after: float
    cost: float

    @property
    def saved(self) -> float:
        return self.before - self.after

    @property
    def percent(self) -> float:
        return 100 * self.saved / self.before if self.before else 0.0

    @property
    def executions(self) -> int | None:
        """After how many runs of the workload the cost is saved; None for never."""
        return math.ceil(self.cost / self.saved) if self.saved > 0 else None

    def why_not(self, rule: PayRule) -> str:
        """Why a clustering does not pay; "" when it does."""
        if not self.before:
            return "the predicates read no file of the table as it is"
        if self.saved <= 0:
            return "a run of the predicates would read no fewer bytes than it does now"
        if self.percent < rule.least_percent:
            saved = f"a run of the predicates would save {self.percent:.0f} % of its bytes"
            return f"{saved}, and {rule.least_percent} % is the least"
        executions = self.executions
        if executions is not None and executions > rule.executions:
            pays = f"its cost would be saved after {executions:,} runs of the predicates"
            return f"{pays}, and {rule.executions:,} is the most"
        return ""
