"""The hook of generate(): counts against an oracle, and results as without it."""

import copy
import gc
import inspect
import os
import pickle
import threading
import time

import pytest

from carbonlens.instrument.tokens import TokenMeter
from carbonlens.instrument.transformers import track_generate
from tests.instrument.tiny_llm import EOS, PAD, prompts, tiny_llama, tracked, written

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is of an extra that is not installed")


@pytest.fixture(scope="module")
def model():
    return tiny_llama()


def codes(run):
    return {f.code for f in run.run.findings}


def generated(model, tmp_path, **arguments):
    with tracked(tmp_path) as run, track_generate(model, run):
        result = model.generate(**arguments)
    return run, result


SAMPLED = {"do_sample": True, "max_new_tokens": 30}
GREEDY = {"do_sample": False, "max_new_tokens": 12}


def test_counts_are_those_of_the_tensors(model, tmp_path):
    ids, mask = prompts(7, 3, 5, 5)
    torch.manual_seed(4)
    run, result = generated(model, tmp_path, input_ids=ids, attention_mask=mask, **SAMPLED)
    lengths = [written(row, 7) for row in result]
    assert len(set(lengths)) > 1, "the case wants sequences that end at different places"
    tokens = run.run.tokens
    assert (tokens.requests, tokens.prompt, tokens.cached) == (4, 7 + 3 + 5 + 5, 0)
    assert tokens.output == sum(lengths)
    assert run.run.units == sum(lengths)
    assert run.run.findings == ()


def test_times_are_one_first_token_and_one_step_for_each_further_one(model, tmp_path):
    ids, mask = prompts(6, 4)
    run, result = generated(model, tmp_path, input_ids=ids, attention_mask=mask, **SAMPLED)
    tokens = run.run.tokens
    steps = result.shape[1] - 6
    assert (tokens.first_token.n, tokens.inter_token.n) == (1, steps - 1)
    assert tokens.prefill_s == pytest.approx(tokens.first_token.mean_ms / 1000)
    assert tokens.decode_s == pytest.approx(tokens.inter_token.mean_ms * (steps - 1) / 1000)
    assert tokens.prefill_s + tokens.decode_s <= run.run.duration_s


@pytest.mark.parametrize("arguments", [GREEDY, SAMPLED, {**SAMPLED, "num_return_sequences": 3}])
def test_results_are_bit_identical(model, tmp_path, arguments):
    ids, mask = prompts(7, 3)
    arguments = {**arguments, "return_dict_in_generate": True, "output_scores": True}
    torch.manual_seed(11)
    bare = model.generate(input_ids=ids, attention_mask=mask, **arguments)
    torch.manual_seed(11)
    _, seen = generated(model, tmp_path, input_ids=ids, attention_mask=mask, **arguments)
    assert torch.equal(bare.sequences, seen.sequences)
    assert all(torch.equal(a, b) for a, b in zip(bare.scores, seen.scores, strict=True))


def test_padding_is_no_prompt_even_without_a_mask(model, tmp_path):
    ids, _ = prompts(7, 3)
    run, _ = generated(model, tmp_path, input_ids=ids, **GREEDY)
    assert run.run.tokens.prompt == 10


def test_a_prompt_that_holds_the_end_token_is_all_prompt(tmp_path):
    model = tiny_llama(pad=EOS)
    ids, _ = prompts(5)
    ids[0, 1] = EOS
    run, _ = generated(model, tmp_path, input_ids=ids, **GREEDY)
    assert run.run.tokens.prompt == 5


def test_embeddings_are_a_prompt_too(model, tmp_path):
    ids, _ = prompts(5)
    run, result = generated(model, tmp_path, inputs_embeds=model.get_input_embeddings()(ids), **GREEDY)
    assert (run.run.tokens.prompt, run.run.tokens.output) == (5, written(result[0], 0))


def test_arguments_by_position_are_the_same(model, tmp_path):
    ids, _ = prompts(5)
    config = transformers.GenerationConfig(eos_token_id=EOS, pad_token_id=PAD, **GREEDY)
    with tracked(tmp_path) as run, track_generate(model, run):
        result = model.generate(ids, config)
    assert torch.equal(result, model.generate(ids, config))
    assert (run.run.tokens.prompt, run.run.tokens.output) == (5, written(result[0], 5))


def test_an_end_token_that_the_call_names_ends_the_count(model, tmp_path):
    ids, _ = prompts(4, 4)
    torch.manual_seed(3)
    ends = {"eos_token_id": [5, 7], "pad_token_id": PAD}
    run, result = generated(model, tmp_path, input_ids=ids, **SAMPLED, **ends)
    wanted = sum(min(written(row, 4, 5), written(row, 4, 7)) for row in result)
    assert run.run.tokens.output == wanted < result[:, 4:].numel()


def test_without_an_end_token_everything_is_output(tmp_path):
    ids, _ = prompts(4, 4)
    run, result = generated(tiny_llama(eos=None), tmp_path, input_ids=ids, **GREEDY)
    assert run.run.tokens.output == result[:, 4:].numel() == 24


def test_what_a_cache_held_is_told_apart(model, tmp_path):
    ids, mask = prompts(9, 6)
    cache = transformers.DynamicCache()
    with torch.no_grad():
        model(input_ids=ids[:, :5], attention_mask=mask[:, :5], past_key_values=cache)
    run, result = generated(
        model, tmp_path, input_ids=ids, attention_mask=mask, past_key_values=cache, **GREEDY
    )
    tokens = run.run.tokens
    assert (tokens.prompt, tokens.cached, tokens.computed) == (15, 5 + 2, 15 - 7)
    assert tokens.output == sum(written(row, 9) for row in result)


def test_a_cache_that_was_filled_by_a_turn_before(model, tmp_path):
    ids, _ = prompts(6)
    cache = transformers.DynamicCache()
    with tracked(tmp_path) as run, track_generate(model, run):
        first = model.generate(input_ids=ids, past_key_values=cache, **GREEDY)
        held = cache.get_seq_length()
        more = torch.cat([first, prompts(4, seed=9)[0]], dim=1)
        second = model.generate(input_ids=more, past_key_values=cache, **GREEDY)
    tokens = run.run.tokens
    assert 0 < held < more.shape[1]
    assert (tokens.prompt, tokens.cached) == (6 + more.shape[1], held)
    assert tokens.output == written(first[0], 6) + written(second[0], more.shape[1])


class Heard(transformers.generation.BaseStreamer):
    """A streamer that keeps what it is given."""

    def __init__(self):
        self.put_values, self.ended = [], 0

    def put(self, value):
        self.put_values.append(value.clone())

    def end(self):
        self.ended += 1


def test_a_streamer_of_the_user_gets_what_it_would_get(model, tmp_path):
    ids, _ = prompts(5)
    bare, seen = Heard(), Heard()
    model.generate(input_ids=ids, streamer=bare, **GREEDY)
    run, result = generated(model, tmp_path, input_ids=ids, streamer=seen, **GREEDY)
    assert all(torch.equal(a, b) for a, b in zip(bare.put_values, seen.put_values, strict=True))
    assert seen.ended == 1
    assert run.run.tokens.inter_token.n == result.shape[1] - 5 - 1


def test_an_error_of_the_users_streamer_is_the_users(model, tmp_path):
    class Broken(Heard):
        def put(self, value):
            raise OSError("the reader went away")

    ids, _ = prompts(5)
    with pytest.raises(OSError, match="reader"), tracked(tmp_path) as run, track_generate(model, run):
        model.generate(input_ids=ids, streamer=Broken(), **GREEDY)
    assert run.run.status == "failed"
    assert codes(run) == {"CL172"}
    assert run.run.tokens is None
    assert run.run.units is None


def test_calls_that_raise_are_said_and_the_others_count(model, tmp_path):
    ids, _ = prompts(5)
    with tracked(tmp_path) as run, track_generate(model, run):
        result = model.generate(input_ids=ids, **GREEDY)
        for _ in range(2):
            with pytest.raises(ValueError, match="max_new_tokens"):
                model.generate(input_ids=ids, max_new_tokens=-1)
    assert run.run.tokens.output == written(result[0], 5)
    assert "2 calls" in next(f.message for f in run.run.findings if f.code == "CL172")


def test_no_new_token_is_refused_as_ever_and_not_counted(model, tmp_path):
    ids, _ = prompts(5)
    with (
        tracked(tmp_path) as run,
        track_generate(model, run),
        pytest.raises(ValueError, match="max_new_tokens"),
    ):
        model.generate(input_ids=ids, max_new_tokens=0)
    assert (run.run.tokens, run.run.units) == (None, None)
    assert codes(run) == {"CL172"}


def test_an_end_at_once_is_one_token_and_no_step(model, tmp_path):
    ids, _ = prompts(5)
    first = int(model.generate(input_ids=ids, **GREEDY)[0, 5])
    run, _ = generated(model, tmp_path, input_ids=ids, eos_token_id=first, **GREEDY)
    tokens = run.run.tokens
    assert (tokens.output, tokens.decoded, tokens.decode_s, tokens.inter_token) == (1, 0, 0.0, None)
    assert run.run.units == 1


def test_wrong_arguments_are_refused_as_ever(model, tmp_path):
    ids, _ = prompts(5)
    with tracked(tmp_path) as run, track_generate(model, run):
        with pytest.raises(TypeError):
            model.generate(ids, inputs=ids)
        with pytest.raises(ValueError, match="no_such"):
            model.generate(ids, no_such=1)


def test_beams_count_what_is_returned_and_leave_times_unknown(model, tmp_path):
    ids, mask = prompts(6, 4)
    run, result = generated(
        model,
        tmp_path,
        input_ids=ids,
        attention_mask=mask,
        num_beams=3,
        num_return_sequences=2,
        max_new_tokens=12,
    )
    tokens = run.run.tokens
    assert (tokens.requests, tokens.prompt) == (4, 10)
    assert tokens.output == sum(written(row, 6) for row in result)
    assert (tokens.first_token, tokens.inter_token, tokens.prefill_s, tokens.decode_s) == (None,) * 4
    assert codes(run) == {"CL173", "CL187"}


def test_beams_leave_the_split_of_the_run_unknown(model, tmp_path):
    ids, _ = prompts(6)
    with tracked(tmp_path) as run, track_generate(model, run):
        model.generate(input_ids=ids, **GREEDY)
        model.generate(input_ids=ids, num_beams=2, max_new_tokens=4)
    assert run.run.tokens.prefill_s is None
    assert run.run.tokens.first_token.n == 1
    assert {"CL171", "CL173"} <= codes(run)


@pytest.mark.parametrize("drafts", ["prompt_lookup", "assistant"])
def test_assisted_decoding_leaves_the_time_between_tokens_unknown(model, tmp_path, drafts):
    ids, _ = prompts(6)
    draft = (
        {"prompt_lookup_num_tokens": 3} if drafts == "prompt_lookup" else {"assistant_model": tiny_llama()}
    )
    run, result = generated(model, tmp_path, input_ids=ids, **GREEDY, **draft)
    tokens = run.run.tokens
    assert (tokens.requests, tokens.prompt, tokens.output) == (1, 6, written(result[0], 6))
    assert tokens.first_token.n == 1
    assert tokens.inter_token is None
    assert tokens.decode_s is not None
    assert codes(run) == {"CL173"}


def test_a_drafting_model_that_is_followed_too_counts_as_a_part_of_the_call(model, tmp_path):
    ids, _ = prompts(6)
    draft = tiny_llama()
    with tracked(tmp_path) as run, track_generate(model, run), track_generate(draft, run):
        result = model.generate(input_ids=ids, assistant_model=draft, **GREEDY)
    assert run.run.tokens.output == written(result[0], 6)


def test_a_custom_generation_is_not_counted_and_not_disturbed(model, tmp_path):
    def own(model, input_ids, **kwargs):
        assert "streamer" not in kwargs
        return input_ids + 1

    ids, _ = prompts(5)
    run, result = generated(model, tmp_path, input_ids=ids, custom_generate=own)
    assert torch.equal(result, ids + 1)
    assert (run.run.tokens.output, run.run.units) == (None, None)
    assert codes(run) == {"CL174"}


def test_a_generate_of_the_models_own_is_left_alone(model, tmp_path):
    class Own(type(model)):
        def generate(self, question):
            return question.upper()

    own = copy.copy(model)
    own.__class__ = Own
    run, result = generated(own, tmp_path, question="why")
    assert result == "WHY"
    assert run.run.tokens is None
    assert codes(run) == {"CL174"}


@pytest.mark.parametrize("thing", [None, 3, object(), "model"])
def test_what_is_no_model_is_said_on_the_run(tmp_path, thing):
    with tracked(tmp_path) as run, track_generate(thing, run) as given:
        assert given is thing
    assert codes(run) == {"CL174"}


def test_a_run_that_is_none_disturbs_nothing(model):
    ids, _ = prompts(5)
    with track_generate(model, None):
        model.generate(input_ids=ids, **GREEDY)
    assert "generate" not in vars(model)


def test_the_model_is_as_before_at_the_end(model, tmp_path):
    before = set(vars(model))
    with pytest.raises(KeyError), tracked(tmp_path) as run, track_generate(model, run):
        raise KeyError
    assert set(vars(model)) == before


def test_two_runs_one_inside_the_other_count_both(model, tmp_path):
    ids, _ = prompts(5)
    with tracked(tmp_path) as outer, track_generate(model, outer):
        first = model.generate(input_ids=ids, **GREEDY)
        with tracked(tmp_path) as inner, track_generate(model, inner):
            second = model.generate(input_ids=ids, **GREEDY)
    assert inner.run.tokens.output == written(second[0], 5)
    assert outer.run.tokens.output == written(first[0], 5) + written(second[0], 5)
    assert "generate" not in vars(model)


def test_blocks_that_end_in_the_wrong_order_leave_nothing_counting(model, tmp_path):
    ids, _ = prompts(5)
    with tracked(tmp_path) as run:
        first, second = track_generate(model, run), track_generate(model, run)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert "generate" not in vars(model)
        model.generate(input_ids=ids, **GREEDY)
    assert run.run.tokens is None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])  # noqa: S301  # the test's own bytes
def test_a_copy_made_inside_is_a_plain_model(model, tmp_path, copied):
    ids, _ = prompts(5)
    with tracked(tmp_path) as run, track_generate(model, run):
        other = copied(model)
        result = other.generate(input_ids=ids, **GREEDY)
    assert run.run.tokens is None
    assert torch.equal(result, model.generate(input_ids=ids, **GREEDY))


def test_a_generator_that_writes_inside_is_counted(model, tmp_path):
    ids, _ = prompts(5)

    def answers():
        with tracked(tmp_path) as run, track_generate(model, run):
            yield run
            for _ in range(3):
                yield model.generate(input_ids=ids, **GREEDY)

    run, *results = answers()
    assert run.run.tokens.output == sum(written(r[0], 5) for r in results)
    unfinished = answers()
    next(unfinished)
    next(unfinished)
    del unfinished
    gc.collect()
    assert "generate" not in vars(model)


def test_threads_count_together(model, tmp_path):
    ids, mask = prompts(5, 3)
    results = []

    def work():
        results.extend(model.generate(input_ids=ids, attention_mask=mask, **GREEDY) for _ in range(4))

    with tracked(tmp_path) as run, track_generate(model, run):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    tokens = run.run.tokens
    assert (tokens.requests, tokens.prompt) == (2 * 16, 8 * 16)
    assert tokens.output == sum(written(row, 5) for r in results for row in r)
    assert tokens.first_token.n == 16


def test_a_text_streamer_in_a_thread(model, tmp_path):
    class Words:
        def decode(self, ids, **kwargs):
            return "".join(f"{int(i)} " for i in ids)

    ids, _ = prompts(5)
    streamer = transformers.TextIteratorStreamer(Words(), skip_prompt=True)
    with tracked(tmp_path) as run, track_generate(model, run):
        thread = threading.Thread(
            target=model.generate, kwargs={"input_ids": ids, "streamer": streamer, **GREEDY}
        )
        thread.start()
        said = "".join(streamer).split()
        thread.join()
    assert run.run.tokens.output == len(said)


def test_a_forked_worker_counts_nothing_and_does_not_hang(model, tmp_path):
    ids, _ = prompts(5)
    with tracked(tmp_path) as run, track_generate(model, run):
        result = model.generate(input_ids=ids, **GREEDY)
        # The lock is held at the fork, as by a thread that is not there in the child.
        with run.token_meter._lock:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    same = torch.equal(model.generate(input_ids=ids, **GREEDY), result)
                    run.record_tokens(output=5)
                    code = 0 if same else 2
                finally:
                    os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run.run.tokens.output == written(result[0], 5)


def test_a_pipeline_is_followed(model, tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is of an extra that is not installed")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({f"w{i}": i for i in range(24)}, unk_token="w3")  # noqa: S106  # a word, no secret
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = {"pad_token": "w0", "eos_token": "w2", "unk_token": "w3"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, **special)
    pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer, device="cpu")
    with tracked(tmp_path) as run, track_generate(pipe, run):
        [answer] = pipe("w4 w5 w6", max_new_tokens=8, do_sample=False, return_tensors=True)
    written_ids = answer["generated_token_ids"]
    assert (run.run.tokens.prompt, run.run.tokens.output) == (3, written(written_ids, 3))


def test_an_encoder_and_decoder(tmp_path):
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=24, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=PAD
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = EOS, PAD
    ids, mask = prompts(7, 4)
    for how in ({}, {"num_beams": 2}):
        run, result = generated(
            model, tmp_path, input_ids=ids, attention_mask=mask, max_new_tokens=9, do_sample=False, **how
        )
        tokens = run.run.tokens
        assert (tokens.requests, tokens.prompt, tokens.cached) == (2, 11, 0)
        assert tokens.output == sum(written(row, 1) for row in result)


class StopAt(transformers.StoppingCriteria):
    """Stops each sequence at a token of its own."""

    def __init__(self, token):
        self.token = token

    def __call__(self, input_ids, scores, **kwargs):
        return input_ids[:, -1] == self.token


@pytest.mark.parametrize("pad", [PAD, EOS])
def test_a_stop_rule_of_ones_own(tmp_path, pad):
    model = tiny_llama(pad=pad)
    ids, _ = prompts(4, 4, 4, 4)
    torch.manual_seed(2)
    run, result = generated(model, tmp_path, input_ids=ids, stopping_criteria=[StopAt(7)], **SAMPLED)
    wanted = [min(written(row, 4, EOS), written(row, 4, 7)) for row in result]
    assert any(7 in row[4:].tolist() for row in result), "the case wants a sequence that stops by the rule"
    if pad == PAD:
        assert run.run.tokens.output == sum(wanted)
        assert codes(run) == set()
    else:
        assert sum(wanted) <= run.run.tokens.output <= sum(wanted) + len(wanted)
        assert codes(run) == {"CL179"}


class Slow(Heard):
    """A streamer that tells when it has had some, and goes on when it is let."""

    def __init__(self, after):
        super().__init__()
        self.after, self.there, self.goes_on = after, threading.Event(), threading.Event()

    def put(self, value):
        super().put(value)
        if len(self.put_values) == self.after + 1:
            self.there.set()
            assert self.goes_on.wait(60)


class Words:
    """Stands in for a tokenizer."""

    def decode(self, ids, **kwargs):
        return "".join(f"{int(i)} " for i in ids)


def in_a_thread(model, **arguments):
    thread = threading.Thread(target=model.generate, kwargs=arguments)
    thread.start()
    return thread


def test_streams_that_are_read_to_the_end_and_never_joined_are_whole(model, tmp_path, monkeypatch):
    # The moment that the block's end gives them, on a machine whose threads may stand still for longer.
    monkeypatch.setattr("carbonlens.instrument.transformers._MOMENT_S", 30.0)
    ids, _ = prompts(5)
    wanted = written(model.generate(input_ids=ids, **GREEDY)[0], 5)
    for _ in range(20):
        streamer = transformers.TextIteratorStreamer(Words(), skip_prompt=True)
        with tracked(tmp_path) as run, track_generate(model, run):
            thread = in_a_thread(model, input_ids=ids, streamer=streamer, **GREEDY)
            for _ in streamer:
                pass
        thread.join()
        assert (run.run.tokens.requests, run.run.tokens.output, run.run.units) == (1, wanted, wanted)
        assert codes(run) == set()


@pytest.mark.parametrize(("busy_s", "expected"), [(0.0, set()), (1.0, {"CL149"})])
def test_a_call_that_is_being_counted_when_the_block_ends_is_in_it_or_is_said(
    model, tmp_path, monkeypatch, busy_s, expected
):
    """Its own thread may be put aside between taking the call and counting it."""
    ids, _ = prompts(5)
    wanted = written(model.generate(input_ids=ids, **GREEDY)[0], 5)
    taken, moment_s = threading.Event(), 0.05 if busy_s else 30.0
    was = TokenMeter.add

    def slowly(meter, call):
        taken.set()
        time.sleep(0.2 + busy_s)
        was(meter, call)

    monkeypatch.setattr(TokenMeter, "add", slowly)
    # What a block's end may wait for, where nothing but that is at fault.
    monkeypatch.setattr("carbonlens.instrument.transformers._MOMENT_S", moment_s)
    with tracked(tmp_path) as run, track_generate(model, run):
        thread = in_a_thread(model, input_ids=ids, **GREEDY)
        assert taken.wait(60)
    thread.join()
    assert codes(run) == expected
    if not expected:
        assert (run.run.tokens.requests, run.run.tokens.output, run.run.units) == (1, wanted, wanted)


class SlowEnd(Slow):
    """Wakes its reader, and then keeps generate() from returning."""

    def end(self):
        self.there.set()
        assert self.goes_on.wait(60)


def test_a_call_that_wrote_all_and_does_not_return_is_whole(model, tmp_path):
    ids, _ = prompts(5)
    wanted = written(model.generate(input_ids=ids, **GREEDY)[0], 5)
    streamer = SlowEnd(after=-1)
    streamer.put = lambda value: None
    with tracked(tmp_path) as run, track_generate(model, run):
        thread = in_a_thread(model, input_ids=ids, streamer=streamer, **GREEDY)
        assert streamer.there.wait(60)
    streamer.goes_on.set()
    thread.join()
    tokens = run.run.tokens
    assert (tokens.requests, tokens.prompt, tokens.output, tokens.first_token.n) == (1, 5, wanted, 1)
    assert codes(run) == set()


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_call_that_goes_on_counts_what_it_wrote_in_the_block(tmp_path, steps):
    model, streamer = tiny_llama(eos=None), Slow(after=steps)
    ids, _ = prompts(5, 5)
    with tracked(tmp_path) as run, track_generate(model, run):
        first = model.generate(input_ids=ids, **GREEDY)
        thread = in_a_thread(model, input_ids=ids, streamer=streamer, **GREEDY)
        assert streamer.there.wait(60)
    streamer.goes_on.set()
    thread.join()
    tokens = run.run.tokens
    assert tokens.output == run.run.units == first[:, 5:].numel() + 2 * steps
    assert tokens.prompt == (20 if steps else None)
    assert tokens.requests is None
    assert {"CL149", "CL171"} <= codes(run)
    assert run.token_meter.tokens(exact=False).output == tokens.output, "its end must not count it again"


def test_a_call_that_goes_on_and_hands_out_nothing_is_unknown(model, tmp_path):
    ids, _ = prompts(5)
    there, goes_on = threading.Event(), threading.Event()

    def rule(input_ids, scores, **kwargs):
        there.set()
        assert goes_on.wait(60)
        return torch.zeros(len(input_ids), dtype=torch.bool)

    with tracked(tmp_path) as run, track_generate(model, run):
        thread = in_a_thread(model, input_ids=ids, num_beams=2, max_new_tokens=4, stopping_criteria=[rule])
        assert there.wait(60)
    goes_on.set()
    thread.join()
    assert (run.run.tokens.output, run.run.units) == (None, None)
    assert codes(run) == {"CL149"}


def test_drafted_tokens_of_a_call_that_goes_on(model, tmp_path):
    ids, _ = prompts(6)
    streamer = Slow(after=2)
    with tracked(tmp_path) as run, track_generate(model, run):
        thread = in_a_thread(model, input_ids=ids, streamer=streamer, prompt_lookup_num_tokens=3, **GREEDY)
        assert streamer.there.wait(60)
    streamer.goes_on.set()
    thread.join()
    assert run.run.tokens.output == sum(v.numel() for v in streamer.put_values[1:3])
    assert "CL149" in codes(run)


def test_inside_the_block_generate_looks_like_the_method_that_it_is(model, tmp_path):
    bare = model.generate
    with tracked(tmp_path) as run, track_generate(model, run), track_generate(model, run):
        seen = model.generate
        assert seen is not bare
        assert inspect.signature(seen) == inspect.signature(bare)
        for name in ("__self__", "__func__", "__name__", "__qualname__", "__module__", "__doc__"):
            assert getattr(seen, name) == getattr(bare, name)
    assert model.generate == bare
