"""What a call of ``generate()`` is given and gives back, counted: padding is no token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.instrument import token_findings

_CACHES: Final = ("cache", "past_key_values", "cache_params")
"""Names of the cache among the arguments, the older ones last."""


class Arguments:
    """The arguments of a call, with what stands in the configurations for those left out.

    Args:
        values: By name, as given.
        model: Whose ``generate`` is called.
    """

    def __init__(self, values: Mapping[str, Any], model: Any) -> None:  # noqa: ANN401  # any model
        """Keep them."""
        self.values = values
        self.is_encoder_decoder = bool(model.config.is_encoder_decoder)
        self._configs = (values.get("generation_config"), model.generation_config)

    def setting(self, name: str) -> Any:  # noqa: ANN401  # as various as the settings
        """Return a setting: the argument, else that of the given configuration, else the model's."""
        if name in self.values:
            return self.values[name]
        found = (getattr(config, name, None) for config in self._configs if config is not None)
        return next((value for value in found if value is not None), None)

    def number(self, name: str) -> float:
        """Return a setting that is a number, 0 where there is none."""
        return float(self.setting(name) or 0)

    @property
    def ids(self) -> Any:  # noqa: ANN401  # a tensor
        """The prompt's token ids; ``None`` where it is given otherwise."""
        ids = self.values.get("input_ids")
        if ids is None:
            ids = self.values.get("inputs")
        return ids if ids is not None and ids.ndim == 2 and not ids.is_floating_point() else None

    @property
    def cache(self) -> Any:  # noqa: ANN401  # a cache of transformers
        """The cache that was given; ``None`` without one."""
        return next((c for c in map(self.values.get, _CACHES) if c is not None), None)

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end a sequence."""
        rules = self.values.get("stopping_criteria") or ()
        own = [rule.eos_token_id for rule in rules if hasattr(rule, "eos_token_id")]
        return frozenset(i for ids in own or [self.setting("eos_token_id")] for i in _listed(ids))

    @property
    def padding(self) -> int | None:
        """The token that fills up a sequence which ended before the others."""
        given = self.setting("pad_token_id")
        return next(iter(_listed(self.setting("eos_token_id") if given is None else given)), None)

    @property
    def has_own_stop(self) -> bool:
        """Whether a sequence may end otherwise than with such a token."""
        rules = self.values.get("stopping_criteria") or ()
        return self.setting("stop_strings") is not None or any(not hasattr(r, "eos_token_id") for r in rules)

    @property
    def copies(self) -> int:
        """How often each prompt is computed."""
        return max(int(self.number("num_beams")), int(self.number("num_return_sequences")), 1)


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """How ``generate`` writes.

    Attributes:
        name: As printed.
        streams: Whether it takes a streamer.
        is_stepwise: Whether each step writes one token of each sequence.
        is_plain: Whether it returns prompt and output as one sequence of tokens.
    """

    name: str
    streams: bool = False
    is_stepwise: bool = False
    is_plain: bool = True


def mode_of(given: Arguments) -> Mode:
    """Return how a call writes, by the rules of ``GenerationConfig.get_generation_mode``."""
    if given.values.get("custom_generate") is not None:
        return Mode(name="custom_generate", is_plain=False)
    if given.values.get("cache_implementation") == "paged":
        return Mode(name="continuous batching", is_plain=False)
    if given.number("num_beams") > 1 or any(map(given.setting, ("constraints", "force_words_ids"))):
        return Mode(name="beam search")
    if not given.setting("do_sample") and given.number("penalty_alpha") > 0 and given.number("top_k") > 1:
        return Mode(name="contrastive search")
    if given.setting("dola_layers") is not None:
        return Mode(name="DoLa decoding")
    drafts = ("assistant_model", "use_mtp", "prompt_lookup_num_tokens", "assistant_early_exit")
    if any(map(given.setting, drafts)):
        return Mode(name="assisted decoding", streams=True)
    return Mode(name="greedy search or sampling", streams=True, is_stepwise=True)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that a call is given; ``None`` where they cannot be told."""

    prompt: int | None
    cached: int | None
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, given: Arguments) -> Counts:
        """Count what a call is given, before it: a cache grows during the call."""
        known = _is_token(given)
        if known is None:
            reason = "the prompt is given as something else than token ids or their embeddings"
            return cls(
                prompt=None, cached=None, findings=(token_findings.not_counted("prompt tokens", reason),)
            )
        noted = (token_findings.computed_for_each(given.copies),) if given.copies > 1 else ()
        return cls(prompt=int(known.sum()), cached=_cached(known, given), findings=noted)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave back; ``None`` where it cannot be told."""

    requests: int | None = None
    output: int | None = None
    findings: tuple[Finding, ...] = ()


def result_of(result: Any, given: Arguments, mode: Mode, prompt: Any) -> Result:  # noqa: ANN401  # tensors
    """Count what a call gave back, up to and including each sequence's end.

    Args:
        result: A tensor of sequences, or an output that has them.
        given: What it was called with.
        mode: How it wrote.
        prompt: The sequences it began with, where a streamer was told.
    """
    sequences = getattr(result, "sequences", result)
    begin = _begin(given, prompt)
    if not mode.is_plain or begin is None or getattr(sequences, "ndim", None) != 2:
        return Result(findings=(token_findings.not_counted("output tokens", f"with {mode.name}"),))
    return _counted(sequences[:, begin:].tolist(), given, mode)


def so_far_of(steps: Sequence[Any], given: Arguments, mode: Mode) -> Result:
    """Count what a call has written until now.

    Args:
        steps: Tokens as a streamer was handed them: one of each sequence, or several of one.
        given: What it was called with.
        mode: How it writes.
    """
    parts = [step.tolist() for step in steps]
    columns = [
        list(zip(*part, strict=True)) if step.ndim == 2 else [part]
        for part, step in zip(parts, steps, strict=True)
    ]
    rows = [list(row) for row in zip(*(column for several in columns for column in several), strict=True)]
    return _counted(rows, given, mode)


def _counted(rows: Sequence[Sequence[int]], given: Arguments, mode: Mode) -> Result:
    """Count sequences without their prompts."""
    ends, padding = given.ends, given.padding
    filler = padding if given.has_own_stop and ends and padding not in ends else None
    lengths = [_length(row, ends, filler) for row in rows]
    findings = []
    if not mode.is_stepwise:
        first = "time between tokens is" if mode.streams else "time to the first token and between tokens are"
        findings.append(token_findings.not_stepwise(mode.name, first))
    is_cut = any(length < len(row) for length, row in zip(lengths, rows, strict=True))
    if is_cut and len(rows) > 1 and given.has_own_stop and padding in ends:
        findings.append(token_findings.stop_may_count())
    return Result(requests=len(rows), output=sum(lengths), findings=tuple(findings))


def _is_token(given: Arguments) -> Any:  # noqa: ANN401  # a tensor
    """Return which places of the prompt hold a token, as ``generate`` sees it."""
    mask, ids, embeddings = given.values.get("attention_mask"), given.ids, given.values.get("inputs_embeds")
    if mask is not None and mask.ndim == 2 and (ids is not None or embeddings is not None):
        return mask != 0
    if ids is not None:
        padding = given.setting("pad_token_id")
        if padding is not None and not given.ends & set(_listed(padding)):
            return ids != padding
    shaped = ids if ids is not None else embeddings
    return None if shaped is None else shaped.new_ones(shaped.shape[:2], dtype=bool)


def _cached(known: Any, given: Arguments) -> int | None:  # noqa: ANN401  # a tensor
    """Return how many tokens of the prompt a cache holds."""
    length = 0 if given.cache is None else int(given.cache.get_seq_length())
    if given.is_encoder_decoder and (length or given.values.get("encoder_outputs") is not None):
        return None  # the length is the decoder's, and the prompt is the encoder's
    return int(known[:, :length].sum()) if length else 0


def _begin(given: Arguments, prompt: Any) -> int | None:  # noqa: ANN401  # a tensor
    """Return where the output begins in a sequence that is returned."""
    if prompt is not None:
        return int(prompt.shape[1])
    if given.is_encoder_decoder:
        # One token to start with; a beginning of the user's own may or may not hold it.
        return 1 if given.values.get("decoder_input_ids") is None else None
    return 0 if given.ids is None else int(given.ids.shape[1])


def _length(row: Sequence[int], ends: frozenset[int], filler: int | None) -> int:
    """Return the tokens of a sequence up to and including its end, without what fills it up."""
    length = next((k + 1 for k, token in enumerate(row) if token in ends), len(row))
    while filler is not None and length and row[length - 1] == filler:
        length -= 1
    return length


def _listed(ids: Any) -> list[int]:  # noqa: ANN401  # a number, a list or a tensor
    if ids is None:
        return []
    plain = ids.tolist() if hasattr(ids, "tolist") else ids
    return [int(i) for i in plain] if isinstance(plain, list | tuple | set) else [int(plain)]
