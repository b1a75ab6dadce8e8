"""Data: halves that do not overlap, classes in proportion, an exact upscaling."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from carbonlens.studies.digits.data import SIDE, load_digits, stratified_halves, upscale


@pytest.fixture(scope="module")
def digits():
    return load_digits(seed=0)


def test_half_trains_and_at_least_898_images_are_held_for_testing(digits):
    assert len(digits.train_images) + len(digits.test_images) == 1797
    assert len(digits.test_images) == len(digits.test_labels) >= 898
    assert len(digits.train_images) == len(digits.train_labels) >= 896
    assert digits.train_images.shape[1:] == digits.test_images.shape[1:] == (1, SIDE, SIDE)
    assert digits.train_images.dtype == digits.test_images.dtype == np.float32


def test_only_the_training_half_sets_the_scale(digits):
    assert digits.train_images.mean() == pytest.approx(0, abs=1e-4)
    assert digits.train_images.std() == pytest.approx(1, abs=1e-4)
    assert abs(digits.test_images.mean()) > 1e-5


def test_halves_are_disjoint_and_stratified():
    labels = np.repeat(np.arange(4), [5, 8, 9, 2])
    train, test = stratified_halves(labels, seed=3)
    assert sorted([*train, *test]) == list(range(len(labels)))
    assert np.bincount(labels[train]).tolist() == [2, 4, 4, 1]
    assert np.bincount(labels[test]).tolist() == [3, 4, 5, 1]


def test_the_seed_decides_the_split():
    labels = np.repeat(np.arange(3), 20)
    first, again, other = (stratified_halves(labels, seed)[0] for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


def test_upscaling_keeps_constants_and_is_linear_between_pixel_centres():
    flat = np.full((1, 8, 8), 0.25, np.float32)
    assert np.allclose(upscale(flat), 0.25)
    ramp = np.tile(np.arange(8, dtype=np.float32), (8, 1))[np.newaxis]
    row = upscale(ramp)[0, 0]
    # Pixel centres lie a quarter apart; the two outermost at each end are clamped.
    assert row[:2].tolist() == [0, 0]
    assert row[-2:].tolist() == [7, 7]
    assert np.allclose([b - a for a, b in pairwise(row[2:-2])], 0.25)


def test_upscaling_agrees_with_torch():
    torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
    images = np.random.default_rng(0).random((3, 8, 8), dtype=np.float32)
    theirs = torch.nn.functional.interpolate(
        torch.from_numpy(images)[:, None], size=(SIDE, SIDE), mode="bilinear"
    )
    assert np.allclose(upscale(images), theirs[:, 0].numpy(), atol=1e-6)
