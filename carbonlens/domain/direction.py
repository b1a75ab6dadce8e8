"""Direction of a quality figure: whether more or less of it is better, by its name."""

from __future__ import annotations

import re
from typing import Final

LOWER_IS_BETTER: Final = frozenset(
    {
        *("error", "err", "loss", "perplexity", "ppl", "wer", "cer", "ter", "mae", "mse", "rmse", "mape"),
        *("nll", "fid", "brier", "latency"),
    }
)
"""Words of names by which a field's convention means less: error rates (word, character,
translation edit), losses and likelihood penalties, perplexity, distances and times."""

HIGHER_IS_BETTER: Final = frozenset(
    {
        *("quality", "accuracy", "acc", "f1", "precision", "recall", "auc", "auroc", "auprc", "bleu"),
        *("rouge", "meteor", "chrf", "map", "iou", "miou", "dice", "r2", "psnr", "ssim", "ndcg", "mrr"),
        *("mcc", "kappa"),
    }
)
"""Words of names by which a field's convention means more: shares of right answers, overlaps,
rank and correlation measures."""


def known_direction(name: str) -> bool | None:
    """Return whether more is better of a quality of that name.

    Args:
        name: For example ``word_error_rate`` or ``top1-accuracy``.

    Returns:
        ``None`` where the name tells neither, or both (``accuracy_loss``).
    """
    words = set(re.split(r"[^a-z0-9]+", name.casefold()))
    is_lower, is_higher = bool(words & LOWER_IS_BETTER), bool(words & HIGHER_IS_BETTER)
    return None if is_lower == is_higher else is_higher


def direction_unstated(name: object, *, of_outcomes: bool) -> bool | None:
    """Return whether more is better where nobody said so.

    Args:
        name: Of the quality; anything that is no text tells nothing.
        of_outcomes: It is the share of right outcomes (1 right, 0 wrong), unless its name
            says that less is better.

    Returns:
        ``None`` where it is not known: a gate on a loss then stays undetermined.
    """
    known = known_direction(name) if isinstance(name, str) else None
    return True if known is None and of_outcomes else known
