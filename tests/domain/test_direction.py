"""Which way a quality is better, by its name."""

import pytest

from carbonlens.domain.direction import HIGHER_IS_BETTER, LOWER_IS_BETTER, known_direction


@pytest.mark.parametrize("name", ["error_rate", "Word Error Rate", "WER", "val-loss", "perplexity", "RMSE"])
def test_less_is_better(name):
    assert known_direction(name) is False


@pytest.mark.parametrize("name", ["accuracy", "top1_accuracy", "F1", "quality", "rouge-l"])
def test_more_is_better(name):
    assert known_direction(name) is True


@pytest.mark.parametrize("name", ["score", "accuracy_loss", "lossless", "", "brier_accuracy"])
def test_a_name_that_does_not_tell(name):
    assert known_direction(name) is None


def test_no_word_stands_for_both():
    assert not LOWER_IS_BETTER & HIGHER_IS_BETTER
