"""A Llama model in torch that reads trees of tokens; runs as a separate program.

A tree of tokens holds prompts with a common beginning, and labels after them, so that no token is
computed twice. Several trees make a pack: a row of nodes, each with its parent. A node attends to
itself and its ancestors only. The program imports torch and numpy alone, so the Python that has
torch need not have this package.

Standard input and output carry frames: four bytes of length, then JSON. The first frame names the
folder of the weights, the device and the number of threads. Each further one has `packs`, and is
answered with the log-probability of every wanted token after its node, or `prompts` with `limit`
and `ends`, and is answered with the tokens that the model writes after each.
"""

import json
import struct
import sys
from pathlib import Path
from typing import IO, Any

NONE = -1
"""The parent of a node that begins a tree."""
LOGITS = 2048
"""Nodes whose logits are computed at once."""


class PackedModel:
    """The layers of a model with its weights on a device.

    Matrices of the layers are multiplied in bfloat16; sums along the layers, norms, logits and
    probabilities are kept in 32 bits.
    """

    def __init__(self, folder: Path, device: str) -> None:
        import numpy as np
        import torch  # type: ignore[import-not-found]  # in the Python that runs this file

        self._torch = torch
        self._device = torch.device(device)
        facts = json.loads((folder / "facts.json").read_text())
        self._layers: int = facts["layers"]
        self._heads: int = facts["heads"]
        self._shared: int = facts["heads"] // facts["kv_heads"]
        self._epsilon: float = facts["epsilon"]
        self._width: int = facts["width"] // facts["heads"]
        self._base: float = facts["rope_base"]
        self._type = torch.bfloat16

        def loaded(name: str) -> Any:
            found = torch.from_numpy(np.load(folder / f"{name}.npy"))
            matrix = found.ndim == 2
            return found.to(self._device, self._type if matrix else torch.float32)

        self._weights = {name: loaded(name) for name in facts["tensors"]}
        for layer in range(self._layers):  # one product instead of two or three
            block = f"blk.{layer}."
            for made, parts in {
                "qkv": ("attn_q", "attn_k", "attn_v"),
                "wide": ("ffn_gate", "ffn_up"),
            }.items():
                taken = [self._weights.pop(f"{block}{part}.weight") for part in parts]
                self._weights[f"{block}{made}"] = torch.cat(taken).contiguous()
        head = "output.weight" if "output.weight" in self._weights else "token_embd.weight"
        self._head = self._weights[head].float()

    def answers(self, packs: list[dict[str, Any]]) -> list[list[float]]:
        """The log-probabilities that each pack wants, in its order."""
        torch = self._torch
        with torch.inference_mode():
            states = self._states(packs)
            rows: list[int] = []  # of each node that something is wanted after
            nodes: list[int] = []
            places: list[int] = []
            for row, pack in enumerate(packs):
                known: dict[int, int] = {}
                for node, _ in pack["wanted"]:
                    if node not in known:
                        known[node] = len(rows)
                        rows.append(row)
                        nodes.append(node)
                    places.append(known[node])
            after = states[torch.tensor(rows), torch.tensor(nodes)]
            tokens = torch.tensor([token for pack in packs for _, token in pack["wanted"]])
            place = torch.tensor(places)
            found = torch.empty(len(places))
            for start in range(0, len(rows), LOGITS):
                logits = self._logits(after[start : start + LOGITS])
                levels = logits.logsumexp(-1)
                here = ((place >= start) & (place < start + LOGITS)).nonzero()[:, 0]
                at = (place[here] - start).to(self._device)
                values = logits[at, tokens[here].to(self._device)] - levels[at]
                found[here] = values.cpu()
            listed = iter(found.tolist())
            return [[next(listed) for _ in pack["wanted"]] for pack in packs]

    def written(self, prompts: list[list[int]], limit: int, ends: list[int]) -> list[list[int]]:
        """The most probable token after each prompt, then the next one, up to a limit or an end.

        An end is the last token of an answer.
        """
        torch = self._torch
        with torch.inference_mode():
            count, last = max(map(len, prompts)), set(ends)
            cache = [self._room(len(prompts), count + limit) for _ in range(self._layers)]
            tokens = torch.tensor([[0] * (count - len(p)) + p for p in prompts])  # ends aligned
            before = torch.tensor([count - len(p) for p in prompts])[:, None]
            depths = torch.arange(count) - before
            made: list[list[int]] = [[] for _ in prompts]
            for step in range(limit):
                total = count + step
                columns = torch.arange(total)
                rows = torch.arange(total - tokens.shape[1], total)
                sees = (columns[None, None] <= rows[None, :, None]) & (
                    (columns[None, None] >= before[:, :, None])
                    | (columns[None, None] == rows[None, :, None])  # padding sees itself
                )
                state = self._read(tokens, depths.clamp(min=0), sees, cache, total)
                chosen = self._logits(state[:, -1]).argmax(-1).tolist()
                for row, token in zip(made, chosen, strict=True):
                    if not row or row[-1] not in last:
                        row.append(token)
                if all(row[-1] in last for row in made):
                    break
                tokens, depths = torch.tensor(chosen)[:, None], depths[:, -1:] + 1
            return made

    def _logits(self, states: Any) -> Any:
        return states.float() @ self._head.T

    def _room(self, rows: int, count: int) -> Any:
        kept = self._heads // self._shared
        shape = (2, rows, kept, count, self._width)
        return self._torch.empty(shape, dtype=self._type, device=self._device)

    def _states(self, packs: list[dict[str, Any]]) -> Any:
        torch, count = self._torch, max(len(pack["tokens"]) for pack in packs)
        tokens = torch.zeros(len(packs), count, dtype=torch.long)
        parents = torch.arange(count).repeat(len(packs), 1)
        for row, pack in enumerate(packs):
            given = torch.tensor(pack["parents"])
            tokens[row, : len(given)] = torch.tensor(pack["tokens"])
            parents[row, : len(given)] = torch.where(
                given == NONE, torch.arange(len(given)), given
            )
        above = parents.to(self._device)
        sees = torch.zeros(len(packs), count, count, dtype=torch.bool, device=self._device)
        sees.scatter_(2, above[..., None], True)
        sees |= torch.eye(count, dtype=torch.bool, device=self._device)
        for _ in range(count.bit_length()):  # ancestors up to 2, 4, 8 ... steps above
            further = sees | sees.gather(1, above[..., None].expand(-1, -1, count))
            if torch.equal(further, sees):
                break
            sees, above = further, above.gather(1, above)
        depths = sees.sum(-1) - 1
        return self._read(tokens, depths, sees, None, count)

    def _read(self, tokens: Any, depths: Any, sees: Any, cache: Any, total: int) -> Any:
        """The last states of tokens; with a cache, those before them are not read again."""
        mask = sees.to(self._device)[:, None]
        turn = self._turns(depths.to(self._device))
        state = self._weights["token_embd.weight"][tokens.to(self._device)].float()
        for layer in range(self._layers):
            kept = None if cache is None else cache[layer]
            state = self._layer(state, f"blk.{layer}.", mask, turn, kept, total)
        return self._normed(state, self._weights["output_norm.weight"])

    def _layer(
        self, state: Any, block: str, mask: Any, turn: tuple[Any, Any], cache: Any, total: int
    ) -> Any:
        torch, weights = self._torch, self._weights
        functional = torch.nn.functional
        rows, count, width = state.shape
        kept = self._heads // self._shared
        mixed = functional.linear(
            self._normed(state, weights[block + "attn_norm.weight"]), weights[block + "qkv"]
        )
        mixed = mixed.view(rows, count, self._heads + 2 * kept, self._width).transpose(1, 2)
        query = _turned(torch, mixed[:, : self._heads], turn)
        key = _turned(torch, mixed[:, self._heads : self._heads + kept], turn)
        value = mixed[:, self._heads + kept :]
        if cache is not None:
            cache[0, :, :, total - count : total] = key
            cache[1, :, :, total - count : total] = value
            key, value = cache[0, :, :, :total], cache[1, :, :, :total]
        key, value = (part.repeat_interleave(self._shared, 1) for part in (key, value))
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        seen = seen.transpose(1, 2).reshape(rows, count, width)
        state = state + functional.linear(seen, weights[block + "attn_output.weight"]).float()
        wide = functional.linear(
            self._normed(state, weights[block + "ffn_norm.weight"]), weights[block + "wide"]
        )
        gate, up = wide.chunk(2, dim=-1)
        made = functional.silu(gate) * up
        return state + functional.linear(made, weights[block + "ffn_down.weight"]).float()

    def _normed(self, state: Any, weight: Any) -> Any:
        scale = self._torch.rsqrt(state.square().mean(-1, keepdim=True) + self._epsilon)
        return (state * scale * weight).to(self._type)

    def _turns(self, depths: Any) -> tuple[Any, Any]:
        """Cosine and sine of the angle of every pair of numbers at every depth."""
        torch = self._torch
        steps = torch.arange(0, self._width, 2, device=self._device, dtype=torch.float32)
        angles = depths[..., None].float() * self._base ** (-steps / self._width)
        return angles.cos()[:, None], angles.sin()[:, None]


def _turned(torch: Any, part: Any, turn: tuple[Any, Any]) -> Any:
    """Rotary positions; GGUF files of Llama models keep the numbers of a pair side by side."""
    even, odd = part[..., 0::2].float(), part[..., 1::2].float()
    cosine, sine = turn
    both = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1)
    return both.flatten(-2).to(part.dtype)


def read_frame(source: IO[bytes]) -> Any:
    """The next frame; None at the end."""
    head = source.read(4)
    if len(head) < 4:
        return None
    return json.loads(source.read(struct.unpack("<I", head)[0]))


def write_frame(target: IO[bytes], value: Any) -> None:
    """Send a frame."""
    data = json.dumps(value, separators=(",", ":")).encode()
    target.write(struct.pack("<I", len(data)) + data)
    target.flush()


def main() -> None:
    """Answer frames until standard input ends."""
    import torch

    setup = read_frame(sys.stdin.buffer)
    torch.set_num_threads(setup["threads"])
    model = PackedModel(Path(setup["folder"]), setup["device"])
    write_frame(sys.stdout.buffer, {"torch": torch.__version__, "device": setup["device"]})
    while (asked := read_frame(sys.stdin.buffer)) is not None:
        if "packs" in asked:
            write_frame(sys.stdout.buffer, model.answers(asked["packs"]))
        else:
            write_frame(sys.stdout.buffer, model.written(**asked))


if __name__ == "__main__":
    main()
