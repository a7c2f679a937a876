"""A Llama model in torch that reads trees of tokens; runs as a separate program.

A tree of tokens holds prompts with a common beginning, and labels after them, so that no token is
computed twice. Several trees make a pack: a row of nodes, each with its parent. A node attends to
itself and its ancestors only. The program imports torch and numpy alone, so the Python that has
torch need not have this package.

Standard input and output carry frames: four bytes of length, then JSON. The first frame names the
folder of the weights, the device and the number of threads; each further one is a list of packs.
The answer to a pack is the log-probability of every wanted token after its node.
"""

import json
import struct
import sys
from pathlib import Path
from typing import IO, Any

NONE = -1
"""The parent of a node that begins a tree."""


class PackedModel:
    """The layers of a model with its weights on a device.

    Matrices are multiplied in bfloat16; sums along the layers, norms and probabilities are kept
    in 32 bits.
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

        def loaded(name: str) -> Any:
            found = torch.from_numpy(np.load(folder / f"{name}.npy"))
            matrix = found.ndim == 2
            return found.to(self._device, torch.bfloat16 if matrix else torch.float32)

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
        self._head = self._weights[head]

    def answers(self, packs: list[dict[str, Any]]) -> list[list[float]]:
        """The log-probabilities that each pack wants, in its order."""
        torch = self._torch
        with torch.inference_mode():
            states = self._states(packs)
            found = []
            for row, pack in enumerate(packs):
                nodes = sorted({node for node, _ in pack["wanted"]})
                place = {node: number for number, node in enumerate(nodes)}
                logits = (states[row, nodes] @ self._head.T).float()
                levels = logits.logsumexp(-1)
                rows = [place[node] for node, _ in pack["wanted"]]
                tokens = [token for _, token in pack["wanted"]]
                found.append((logits[rows, tokens] - levels[rows]).tolist())
            return found

    def _states(self, packs: list[dict[str, Any]]) -> Any:
        torch, count = self._torch, max(len(pack["tokens"]) for pack in packs)
        tokens = torch.zeros(len(packs), count, dtype=torch.long)
        depths = torch.zeros(len(packs), count, dtype=torch.long)
        sees = torch.eye(count, dtype=torch.bool).repeat(len(packs), 1, 1)
        for row, pack in enumerate(packs):
            tokens[row, : len(pack["tokens"])] = torch.tensor(pack["tokens"])
            for node, parent in enumerate(pack["parents"]):
                if parent != NONE:
                    depths[row, node] = depths[row, parent] + 1
                    sees[row, node] |= sees[row, parent]
        mask = sees.to(self._device)[:, None]
        turn = self._turns(depths.to(self._device))
        state = self._weights["token_embd.weight"][tokens.to(self._device)].float()
        for layer in range(self._layers):
            state = self._layer(state, f"blk.{layer}.", mask, turn)
        return self._normed(state, self._weights["output_norm.weight"])

    def _layer(self, state: Any, block: str, mask: Any, turn: tuple[Any, Any]) -> Any:
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
        return (state * scale * weight).to(self._torch.bfloat16)

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
    while (packs := read_frame(sys.stdin.buffer)) is not None:
        write_frame(sys.stdout.buffer, model.answers(packs))


if __name__ == "__main__":
    main()
