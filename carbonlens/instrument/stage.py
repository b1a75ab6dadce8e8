"""``carbonlens.stage``: measure the work of making a model smaller or faster, and what it made.

A stage is a run of role ``effort``: ``track`` measures it, and beside it what went in and
what came out is looked at. That happens before the window begins and after it has ended,
so that it is no part of the effort; and whatever it meets, the job goes on (law 8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast, overload

import msgspec

from carbonlens.domain.artefact import Direction
from carbonlens.domain.units import Role
from carbonlens.instrument.artefact_figures import Allowance, no_output, untold
from carbonlens.instrument.artefacts import look_at
from carbonlens.instrument.request import Request
from carbonlens.instrument.track import Tracker
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.ledger.store import Ledger
from carbonlens.metering import findings
from carbonlens.metering.ending import process_ending
from carbonlens.metering.wording import error_kind, plain, unfit

P = ParamSpec("P")
R = TypeVar("R")
Things = Mapping[str, object]
_MODEL: Final = "model"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage takes in and gives out.

    Attributes:
        inputs: What is looked at before it begins, by name.
        outputs: What is looked at when it has ended, by name: a file to be written, say.
        arguments: Names of a decorated function's arguments that are inputs.
        returned: Name of what it returns, or names of what a mapping or tuple holds.
        is_named: Whether the user named ``returned``.
        in_place: Arguments that a name of ``returned`` may mean where nothing is returned.
        example: Input of one call of the models, for their multiply-accumulates.
        faults: What was given and cannot be used: argument and reason.
    """

    inputs: Things = msgspec.field(default_factory=dict)
    outputs: Things = msgspec.field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    returned: str | tuple[str, ...] | None = _MODEL
    is_named: bool = False
    in_place: Things = msgspec.field(default_factory=dict)
    example: object = None
    faults: tuple[tuple[str, str], ...] = ()

    def of_call(self, given: Things) -> Plan:
        """Return the plan of one call of a decorated function.

        Args:
            given: Its arguments by name.
        """
        absent = [name for name in self.arguments if name not in given]
        return msgspec.structs.replace(
            self,
            inputs={**self.inputs, **{name: given[name] for name in self.arguments if name in given}},
            arguments=(),
            in_place=given,
            faults=(*self.faults, *(("inputs", _NO_ARGUMENT.format(plain(name))) for name in absent)),
        )


_NO_ARGUMENT: Final = "the function has no argument {}"


class StageRun(TrackedRun):
    """Handle of a stage: ``output`` says what it made; all else is as of a tracked run."""

    def __init__(self, request: Request, plan: Plan) -> None:
        """Prepare; nothing is looked at yet."""
        super().__init__(request)
        self._plan = plan
        self._outputs: dict[str, object] = dict(plan.outputs)
        self._is_over = False
        self._interrupt: BaseException | None = None
        for what, reason in plan.faults:
            self._recorder.note(findings.record_ignored(what, reason))

    def output(self, name: str, thing: object) -> None:
        """Say what the stage made; it is looked at when the block has ended.

        Args:
            name: What it is called, for example ``model``.
            thing: A module, a state dict, an array, bytes, an ONNX model, or a path.
        """
        try:
            self._outputs[plain(name)] = thing
        except Exception as error:  # noqa: BLE001  # law 8: the user's own object as a name
            self._recorder.note(findings.record_ignored("output", unfit(name, error, "a text")))

    def look_at_inputs(self) -> None:
        """Take down what goes in; called before measuring begins.

        Raises:
            KeyboardInterrupt: If the user does not want to wait: the stage does not begin.
        """
        if self._plan.arguments:
            self._recorder.note(
                findings.record_ignored("inputs", "a block has no arguments; inputs={name: model} is wanted")
            )
        self._look("in", self._plan.inputs)

    def _look_at_outputs(self) -> None:
        """Take down what came out: after the last reading, and before the record is made.

        Nothing is held meanwhile, so that a signal seals the run with what is known by then.
        """
        session = self._session
        if session is None or not session.is_ours:
            return
        try:
            with process_ending().undisturbed():
                self._end_window(session)
                self._is_over = True
            if not self._outputs:
                self._recorder.note(no_output())
            self._look("out", self._outputs)
        except Exception as error:  # noqa: BLE001  # law 8: a meter at the last reading; sealing says what it must
            self._recorder.note(findings.record_ignored("outputs", error_kind(error)))
        except BaseException as error:  # noqa: BLE001  # raised again once the run is kept, in ``_stop``
            # Ctrl-C: the user does not want to wait, and the run is kept without the rest.
            self._interrupt = error
            process_ending().calm()
            self._say_unseen()

    def _say_unseen(self) -> None:
        """Say of the outputs that nobody came to look at that nothing is known of them."""
        seen = {a.name for a in self._recorder.facts().artefacts if a.direction == "out"}
        for name in tuple(self._outputs):
            if name not in seen:
                self._recorder.note(untold(name, "out", "nothing is known of it (interrupted)"))

    def _look(self, direction: Direction, things: Things) -> None:
        allowance = Allowance()
        for name, thing in things.items():
            seen = look_at(thing, name, direction, example=self._plan.example, allowance=allowance)
            if seen is None:
                self._recorder.note(findings.record_ignored("artefact", "its name is no text"))
                continue
            self._recorder.keep_artefact(seen[0])
            for finding in seen[1]:
                self._recorder.note(finding)

    def _returned(self, value: R) -> R:
        """Take what the decorated function returned as the outputs it names."""
        super()._returned(value)
        try:
            self._take(value)
        except Exception as error:  # noqa: BLE001  # law 8: the user's own mapping may raise anything
            self._recorder.note(findings.record_ignored("outputs", unfit(value, error, "what it names")))
        return value

    def _take(self, value: Any) -> None:  # noqa: ANN401  # whatever a function returns
        names = self._plan.returned
        if names is None:
            return
        if isinstance(names, str):
            if value is not None:
                self._outputs[names] = value
            elif names in self._plan.in_place and self._plan.is_named:
                self._outputs[names] = self._plan.in_place[names]
            return
        if isinstance(value, Mapping):
            found = {name: value[name] for name in names if name in value}
        elif isinstance(value, list | tuple) and len(value) == len(names):
            found = dict(zip(names, value, strict=True))
        else:
            found = {n: self._plan.in_place[n] for n in names if value is None and n in self._plan.in_place}
        self._outputs.update(found)
        for name in names:
            if name not in found:
                self._recorder.note(findings.record_ignored(f"output {name}", "what was returned holds none"))

    def _stop(self, error: BaseException | None) -> None:
        # What a block that failed had made by then is nobody's output, and whoever waits for
        # its error need not wait for hashes. A generator that is closed has ended as it may.
        self._ended = True
        if error is None or isinstance(error, GeneratorExit):
            self._look_at_outputs()
        super()._stop(error)
        if self._interrupt is not None:
            raise self._interrupt

    def _stop_at_once(self, error: BaseException | None) -> None:
        if not self._is_settled:
            self._say_unseen()
            super()._stop(error)

    def _seal_by_signal(self, number: int) -> None:
        # The process is about to die: there is no time to look at anything more. Where the
        # last reading was taken, the work itself had come to its end.
        if not self._is_over or self._session is None:
            super()._seal_by_signal(number)
            return
        self._say_unseen()
        self._seal(self._session, "complete", None, None)


class Stage(Tracker):
    """What ``stage`` returns: a context manager and a decorator; each use is a run of its own."""

    def __init__(self, request: Request, plan: Plan) -> None:
        """Keep what was asked for."""
        super().__init__(request)
        self._plan = plan

    if TYPE_CHECKING:  # a call around the other's would be one more place for a Ctrl-C to leave it open

        def __enter__(self) -> StageRun:
            """Look at what goes in, then begin to measure."""
            ...

    def _handle(self) -> StageRun:
        handle = StageRun(self._request, self._plan)
        handle.look_at_inputs()
        return handle

    def _of_call(
        self, function: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Stage:
        import inspect

        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            given: Things = bound.arguments
        except Exception:  # noqa: BLE001  # law 8: a wrong call raises on its own, where the user expects it
            given = {}
        return Stage(self._request, self._plan.of_call(given))


@overload
def stage(name: Callable[P, R]) -> Callable[P, R]: ...


@overload
def stage(
    name: str,
    *,
    inputs: Things | Sequence[str] | str | None = None,
    outputs: Things | Sequence[str] | str | None = None,
    example: object = None,
    study: str | None = None,
    role: Role = "effort",
    unit: str | None = None,
    job_id: str | None = None,
    attempt: int | None = None,
    repeat: int | None = None,
    tags: Mapping[str, str] | None = None,
    ledger: str | Path | Ledger | None = None,
    on: Sequence[str] | str | None = None,
    workload: str | None = None,
    zone: str | None = None,
    site: str | None = None,
    hardware: str | None = None,
    trace: str | Path | None = None,
) -> Stage: ...


def stage(  # noqa: PLR0913  # as of track, all by name
    name: str | Callable[P, R],
    *,
    inputs: Things | Sequence[str] | str | None = None,
    outputs: Things | Sequence[str] | str | None = None,
    example: object = None,
    study: str | None = None,
    role: Role = "effort",
    unit: str | None = None,
    job_id: str | None = None,
    attempt: int | None = None,
    repeat: int | None = None,
    tags: Mapping[str, str] | None = None,
    ledger: str | Path | Ledger | None = None,
    on: Sequence[str] | str | None = None,
    workload: str | None = None,
    zone: str | None = None,
    site: str | None = None,
    hardware: str | None = None,
    trace: str | Path | None = None,
) -> Stage | Callable[P, R]:
    """Measure the work of a step (pruning, distillation, quantization, export) and what it made.

    The run is the effort of the step: ``carbonlens.compare`` sets it against what the step
    saves. Of each input and output it keeps a hash, bytes, parameters, non-zeros and, with
    an example, multiply-accumulates. They are looked at outside the measured window, for about
    a minute each side at most (docs/compressing.md); what cannot be told is ``None``, with a finding.

    ``with stage("int8", inputs={"model": model}) as s:`` and ``s.output("model", small)``
    measure a block. ``@stage("int8", inputs="model")`` measures each call of a function: the
    argument ``model`` is the input, what it returns the output ``model``.

    Args:
        name: The step, as the runs that measure its result name it. A bare ``@stage`` takes
            the function's name.
        inputs: Models, state dicts, arrays, files or folders by name; for a function, the
            names of its arguments too.
        outputs: The same, looked at when the work has ended: a file that it writes. For a
            function, the name of what it returns (``model`` unless given), or names of what
            the mapping or tuple holds that it returns. An argument of that name stands in
            where it returns ``None``, because it changes that in place.
        example: Input of one call of the models: a tensor, a list of positional arguments,
            or a mapping of named ones.
        study: As of ``track``, like all that follows.
        role: ``effort`` unless given.
        unit: Functional unit.
        job_id: Job of several runs.
        attempt: 1 for the first try.
        repeat: Number of the round.
        tags: Labels of your own.
        ledger: Folder to record in.
        on: Optimizations that are on.
        workload: What is done.
        zone: Grid zone.
        site: Site of the inventory.
        hardware: Name of the machine.
        trace: File that gets every reading.
    """
    given: Any = name
    if callable(given) or isinstance(given, classmethod):
        return cast("Callable[P, R]", _bare(given))
    name = cast("str", name)
    request = Request(
        step=name,
        study=study,
        role=role,
        unit=unit,
        job_id=job_id,
        attempt=attempt,
        repeat=repeat,
        tags=tags,
        ledger=ledger,
        on=on,
        workload=workload,
        zone=zone,
        site=site,
        hardware=hardware,
        trace=trace,
    )
    return Stage(request, _plan(inputs, outputs, example))


def _bare(function: Any) -> Any:  # noqa: ANN401  # a function, static or class method, and the same measured
    """Measure the calls of what nothing more was said of."""
    called = getattr(function, "__name__", None)
    return Stage(Request(step=called, role="effort"), _plan(None, None, None))(function)


def _plan(inputs: object, outputs: object, example: object) -> Plan:
    """Return the plan that the user's arguments make; raises nothing."""
    faults: list[tuple[str, str]] = []
    fixed, arguments = _things_and_names(inputs, "inputs", faults)
    written, names = _things_and_names(outputs, "outputs", faults)
    returned: str | tuple[str, ...] | None = names or None
    if isinstance(outputs, str):
        returned = names[0]
    elif outputs is None:
        returned = _MODEL
    return Plan(
        inputs=fixed,
        outputs=written,
        arguments=arguments,
        returned=returned,
        is_named=outputs is not None,
        example=example,
        faults=tuple(faults),
    )


def _things_and_names(
    given: object, what: str, faults: list[tuple[str, str]]
) -> tuple[Things, tuple[str, ...]]:
    """Return things by their names, and names without a thing."""
    try:
        if given is None:
            return {}, ()
        if isinstance(given, str):
            return {}, (given,)
        if isinstance(given, Mapping):
            return {plain(name): thing for name, thing in given.items()}, ()
        if isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
            return {}, tuple(given)
    except Exception as error:  # noqa: BLE001  # law 8: the user's own object
        faults.append((what, unfit(given, error, _WANTED)))
        return {}, ()
    faults.append((what, unfit(given, TypeError(), _WANTED)))
    return {}, ()


_WANTED: Final = "a mapping of names to models or paths, or names of arguments,"
