"""Settings of the proposer that needs no model."""

from typing import Any, ClassVar

from coevolve.errors import InputError
from coevolve.proposers.proposer_settings import ProposerSettings
from coevolve.search.proposal import Proposer
from coevolve.settings import Context, Count


class OfflineSettings(ProposerSettings):
    """Building blocks of text classification, recombined."""

    free: ClassVar[bool] = True
    reads_traces: ClassVar[bool] = False
    characters: Count = 4000
    best_of_n: bool = False

    def check(self, config: Any) -> None:
        if config.benchmark.kind != "textclass":
            raise InputError(
                "proposer.kind 'offline' writes harnesses for benchmark.kind 'textclass' only, "
                f"and benchmark.kind is {config.benchmark.kind!r}; see docs/proposers.md for "
                "others."
            )

    def build(self, context: Context) -> Proposer:
        from coevolve.proposers.offline import OfflineProposer

        return OfflineProposer(characters=self.characters, independent=self.best_of_n)
