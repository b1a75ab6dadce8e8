"""What must be said of a training run that a framework's callback recorded."""

from __future__ import annotations

from carbonlens.domain.finding import Finding


def added_twice() -> Finding:
    """The callback stands in the trainer's list more than once: it counts once."""
    return Finding(
        code="CL180",
        severity="info",
        message="the tracking callback was added to the trainer more than once: the training is one run, "
        "and its work is counted once",
        mend="add it once",
        subject="training",
    )


def hook_failed(hook: str, error: str) -> Finding:
    """A hook of the callback failed: what it would have recorded is missing.

    Args:
        hook: Its name.
        error: Kind of the error.
    """
    return Finding(
        code="CL181",
        severity="warning",
        message=f"{hook} of the tracking callback failed ({error}): what it records may be missing",
        mend="report it with the versions of carbonlens and of the framework",
        subject=f"training.{hook}",
    )


def tokens_not_counted() -> Finding:
    """Tokens were asked for as the unit, and the trainer does not count them."""
    return Finding(
        code="CL182",
        severity="warning",
        message="the trainer does not count tokens: the units of this run are unknown",
        mend="set include_num_input_tokens_seen of TrainingArguments to 'all' or 'non_padding'",
        subject="units",
    )


def batches_unseen() -> Finding:
    """The trainer takes its batches from the data in a way of its own: nobody saw them."""
    return Finding(
        code="CL183",
        severity="warning",
        message="the trainer's own get_batch_samples does not call that of transformers: "
        "its batches were not seen, and the units of this run are unknown",
        mend="call super().get_batch_samples, or count in training_step: callback.run.step(n)",
        subject="units",
    )


def batch_size_unknown(kind: str) -> Finding:
    """A batch does not tell how many samples it has.

    Args:
        kind: Type of the batch.
    """
    return Finding(
        code="CL184",
        severity="warning",
        message=f"a batch of type {kind} does not tell how many samples or tokens it has (samples are the "
        "first dimension, if all its tensors have the same): the units of this run are incomplete",
        mend="count them yourself in training_step: callback.run.add_units(n)",
        subject="units",
    )


def metric_absent(name: str) -> Finding:
    """A metric that was asked for was never reported.

    Args:
        name: Of the metric.
    """
    return Finding(
        code="CL186",
        severity="warning",
        message=f"the metric '{name}' was asked for, and no evaluation reported it",
        mend="see that an evaluation runs during training and that the name is the one it logs",
        subject=f"quality.{name}",
    )
