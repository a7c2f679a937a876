"""Models without weights that solve a task or not, in place of the three models of the paper.

Each task has a difficulty, and each hint makes some tasks easier and others harder. A model solves
a task if its skill, with the help of the hints, is above the difficulty. Long tasks take more
tokens.
"""

from zlib import crc32

from coevolve.models.provider import ModelReply

HELP = (0.3, 0.0, -0.1, 0.0)  # what a hint adds to the skill, by task


class AgentModel:
    """Answers "solved" or "failed"; the same prompt always gets the same answer."""

    skill = 0.5
    window = 32_768
    gives_scores = False

    @property
    def identity(self):
        """All that its answers depend on."""
        return {"name": type(self).__name__, "skill": self.skill, "version": 1}

    async def complete(self, request):
        """Whether the model solves the task that the prompt names."""
        first, _, last = request.conversation()[-1].content.partition("\nHints: ")
        task = first.removeprefix("Solve ").removesuffix(".")
        hints = [hint for hint in last.split(", ") if hint]
        helped = sum(HELP[crc32(f"{hint} {task}".encode()) % len(HELP)] for hint in hints)
        hard = crc32(f"difficulty of {task}".encode()) % 1000 / 1000
        text = "solved" if self.skill + helped > hard else "failed"
        read = 1_000 + round(5_000 * hard)
        return ModelReply(text=text, finish="stop", tokens_in=read, tokens_out=read // 50)

    async def count(self, texts):
        """A token for each word."""
        return [len(text.split()) for text in texts]

    async def close(self):
        """Nothing is open."""


class Luna(AgentModel):
    """As good as GPT-5.6 Luna with Terminus 2."""

    skill = 0.53


class Qwen(AgentModel):
    """As good as Qwen3.6-35B-A3B with Terminus 2."""

    skill = 0.35


class DeepSeek(AgentModel):
    """As good as DeepSeek-V4-Flash with Terminus 2."""

    skill = 0.71
