"""A tiny Llama of random weights, and an oracle that counts without looking at our code."""

from __future__ import annotations

import carbonlens

EOS, PAD = 2, 0
WORDS = 24


def tiny_llama(*, seed: int = 0, eos: int | None = EOS, pad: int | None = PAD):
    """Return a model so small that a token takes less than a millisecond.

    Its vocabulary is so small, too, that sampling meets the end of a sequence often.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    model = LlamaForCausalLM(config).eval()
    model.generation_config.eos_token_id = eos
    model.generation_config.pad_token_id = pad
    return model


def prompts(*lengths: int, seed: int = 1):
    """Return ids and mask of prompts, padded on the left as generate() wants them."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    longest = max(lengths)
    ids = torch.full((len(lengths), longest), PAD)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, longest - length :] = torch.randint(3, WORDS, (length,), generator=generator)
        mask[row, longest - length :] = 1
    return ids, mask


def written(sequence, begin: int, eos: int | None = EOS) -> int:
    """Count the tokens of one returned sequence: an oracle that goes token by token."""
    count = 0
    for token in sequence[begin:]:
        count += 1
        if int(token) == eos:
            break
    return count


def tracked(tmp_path, unit: str | None = "output token"):
    """Return a run to count in."""
    return carbonlens.track("bf16", unit=unit, ledger=tmp_path / "ledger")
