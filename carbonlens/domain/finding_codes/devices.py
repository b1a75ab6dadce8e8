"""Codes of devices, meters and artefacts."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.finding_codes.entry import FindingCode

DEVICES: Final = (
    FindingCode(
        code="CL130",
        severity="error or warning",
        title="Reading beyond the rating, or baseline trained too little",
        meaning=(
            "A device is said to draw more than it can; in the demo, the baseline's accuracy is too "
            "low to judge by."
        ),
        mend="read another sensor of the device; in the demo, train longer",
        example="5000 J in 2 s is more than 3 times what a device of 300 W can draw: the reading is at fault",
    ),
    FindingCode(
        code="CL131",
        severity="warning",
        title="Demo interrupted",
        meaning="Only the rounds measured until then are judged.",
        mend="run the demo again for all rounds",
        example="measuring was interrupted after 3 of 8 rounds",
    ),
    FindingCode(
        code="CL132",
        severity="warning",
        title="Order of GPUs not known",
        meaning="CUDA counts unlike GPUs from the fastest, by a rule that is not published.",
        mend="set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPUs by UUID",
        example="CUDA_VISIBLE_DEVICES counts GPUs from the fastest, and this node has different ones",
    ),
    FindingCode(
        code="CL133",
        severity="warning",
        title="No visible GPU",
        meaning="The variable names no device that is there: the work sees none, and none is measured.",
        mend="check CUDA_VISIBLE_DEVICES against nvidia-smi -L",
        example="CUDA_VISIBLE_DEVICES names no device of the 4 there are: the work sees no GPU",
    ),
    FindingCode(
        code="CL134",
        severity="info",
        title="Allotted GPUs",
        meaning="A scheduler allots some of the GPUs that can be reached; those are measured.",
        mend="set CUDA_VISIBLE_DEVICES if the work uses others",
        example="8 GPUs can be reached and SLURM_JOB_GPUS allots 2 of them: those are measured",
    ),
    FindingCode(
        code="CL135",
        severity="warning",
        title="MIG instance not known",
        meaning="The whole GPU's energy stands for an instance of it: an upper bound.",
        mend="name the instance: CUDA_VISIBLE_DEVICES=MIG-...",
        example="GPU-1 is divided (MIG) and it cannot be told which instance is the work's",
    ),
    FindingCode(
        code="CL136",
        severity="info",
        title="GPU divided",
        meaning="No sensor reads a MIG instance: the work is billed its share of the GPU.",
        mend="nothing",
        example="GPU-1 is divided (MIG), and no sensor reads an instance: the work is billed its share",
    ),
    FindingCode(
        code="CL137",
        severity="warning",
        title="One MIG instance only",
        meaning="CUDA shows a process the first of several MIG instances, and that alone is measured.",
        mend="measure each process by itself, each with its own instance",
        example="CUDA_VISIBLE_DEVICES names 2 GPUs or MIG instances after the first MIG instance",
    ),
    FindingCode(
        code="CL138",
        severity="warning",
        title="Allotted GPUs not told",
        meaning=(
            "A scheduler's variable does not tell which GPUs are the work's: all that can be reached "
            "are measured."
        ),
        mend="name the GPUs of the work in CUDA_VISIBLE_DEVICES",
        example="SLURM_JOB_GPUS=x does not tell which of 4 GPUs are the work's",
    ),
    FindingCode(
        code="CL139",
        severity="warning",
        title="GPU does not answer",
        meaning="The driver lists a GPU that gives no readings; it is not measured.",
        mend="dmesg names the fault (Xid); see nvidia-smi",
        example="of 4 GPUs that the driver lists, 1 does not answer: not measured",
    ),
    FindingCode(
        code="CL140",
        severity="warning",
        title="Artefact figure unknown",
        meaning="A figure of a model file or module could not be had.",
        mend="docs/compressing.md says what is told of which kind",
        example="output model.onnx: MACs unknown (operator MyOp is not known)",
    ),
    FindingCode(
        code="CL141",
        severity="warning",
        title="No output named",
        meaning="A stage ended well and nobody said what it made.",
        mend="s.output('model', ...) in the block, or return it",
        example="no output was given: what the stage made is not recorded",
    ),
    FindingCode(
        code="CL142",
        severity="warning",
        title="Power not published",
        meaning="It is known how long a device was busy, and not its power: the total is a lower bound.",
        mend="declare its power from a datasheet, or a meter",
        example="the npu tells how long it was busy and nothing tells its power",
    ),
    FindingCode(
        code="CL143",
        severity="info",
        title="Buffers count as parameters",
        meaning="The names of a state dict do not tell parameters from buffers.",
        mend="give the module itself",
        example="input state.pt: its names do not tell parameters from buffers",
    ),
    FindingCode(
        code="CL144",
        severity="error",
        title="Readings beyond any number",
        meaning="They amount to more than a number holds.",
        mend="see what the sensor tells, and its unit",
        example="the readings amount to more than a number holds: they are at fault",
    ),
    FindingCode(
        code="CL145",
        severity="info",
        title="Meter lines not understood",
        meaning="Lines that hold no power are left out; their time may be a gap.",
        mend="have the meter print t_us,watts or t_us,watts,rail",
        example="3 lines of the meter plug not understood and left out",
    ),
    FindingCode(
        code="CL146",
        severity="warning",
        title="Meter accuracy not stated",
        meaning="Its figures have no interval.",
        mend="state gain_95 from the meter's specification in the sources file",
        example="the accuracy of the meter plug is not stated: its figures have no interval",
    ),
    FindingCode(
        code="CL147",
        severity="warning",
        title="Samples not read",
        meaning="The time they stand for is not covered.",
        mend="run the work again",
        example="2 samples of powermetrics could not be read: that time is not covered",
    ),
    FindingCode(
        code="CL148",
        severity="warning",
        title="Clock of a meter differs",
        meaning="Its watts make no energy by this machine's clock, and are left out.",
        mend="set both clocks (NTP)",
        example="the clock of the meter plug runs ahead by this machine's clock: its figure is left out",
    ),
    FindingCode(
        code="CL149",
        severity="warning",
        title="Calls still going on",
        meaning="Calls of generate() had not ended at the block's end; later tokens do not count.",
        mend="join the threads that generate inside the block",
        example="2 calls of generate() still went on at the block's end",
    ),
)
