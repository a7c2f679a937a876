"""Settings of the offline proposer."""

from typing import Any, ClassVar

from coevolve import registry
from coevolve.errors import InputError
from coevolve.proposers.proposer_settings import ProposerSettings
from coevolve.search.proposal import Proposer
from coevolve.settings import Context, Count, Text

_CHARACTERS = 4000


class OfflineSettings(ProposerSettings):
    """Building blocks, recombined: those of the benchmark, or `blocks = "package.module:name"`."""

    free: ClassVar[bool] = True
    reads_traces: ClassVar[bool] = False
    characters: Count = _CHARACTERS
    blocks: Text | None = None
    best_of_n: bool = False

    def check(self, config: Any) -> None:
        if self.blocks is None and not config.benchmark.building_blocks:
            raise InputError(
                "proposer.kind 'offline' needs building blocks, but benchmark.kind "
                f"{config.benchmark.kind!r} has none; set proposer.blocks = "
                '"package.module:name" (docs/write-a-proposer.md), or choose another proposer '
                "(docs/proposers.md)."
            )
        if self.blocks is not None and self.characters != _CHARACTERS:
            raise InputError("proposer.characters has no effect with proposer.blocks; remove it.")

    def build(self, context: Context) -> Proposer:
        from coevolve.proposers.offline.offline_proposer import OfflineProposer

        reference = self.blocks or context.config.benchmark.building_blocks
        found = registry.load_reference(reference, folder=context.base.resolve())
        given = {} if self.blocks else {"characters": self.characters}
        blocks = found(**given) if callable(found) else found
        return OfflineProposer(blocks, independent=self.best_of_n)
