"""The challenge and the oracle of word2vec_nips13: no machine, no gensim, small cases by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.word2vec_nips13 import test_word2vec_nips13 as task
from tasks.word2vec_nips13 import word2vec_oracle as oracle


def left(folder: Path, report: dict[str, Any] | None = None, vectors: str | None = None) -> Experiment:
    """An experiment that left these files."""
    if report is not None:
        (folder / "report.json").write_text(json.dumps(report))
    if vectors is not None:
        (folder / "vectors.txt").write_text(vectors)
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def perfect_vectors(corpus: oracle.Corpus) -> str:
    """Every word points along the axis of its topic, in the format of the original tool."""
    lines = [f"{word} {' '.join(map(str, np.eye(oracle.TOPICS)[topic]))}" for word, topic in corpus.topic.items()]
    return "\n".join([f"{len(lines)} {oracle.TOPICS}", *lines]) + "\n"


def test_a_seed_draws_one_challenge() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs
    assert task.draw(5).corpus.topic == task.draw(5).corpus.topic


def test_another_seed_draws_other_words() -> None:
    assert not task.draw(5).corpus.topic.keys() & task.draw(6).corpus.topic.keys()


def test_every_word_is_in_the_corpus_that_is_sent() -> None:
    challenge = task.draw(5)
    assert set(challenge.inputs["corpus.txt"].decode().split()) == challenge.corpus.topic.keys()


def test_sentences_keep_to_their_topic_but_for_the_noise() -> None:
    corpus = oracle.draw_corpus(5)
    strays = 0
    for sentence in corpus.sentences:
        topics = [corpus.topic[word] for word in sentence]
        strays += len(topics) - max(map(topics.count, topics))
    assert 0.05 < strays / (oracle.SENTENCES * oracle.LENGTH) < oracle.NOISE


def test_the_first_vector_is_small_seeded_and_the_words_own() -> None:
    vector = oracle.first_vector("word", 1, 8)
    assert np.abs(vector).max() <= 0.5 / 8
    assert (vector == oracle.first_vector("word", 1, 8)).all()
    assert not np.allclose(vector, oracle.first_vector("word", 2, 8))
    assert not np.allclose(vector, oracle.first_vector("ward", 1, 8))


def test_purity_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "NEIGHBOURS", 1)
    topic = {"a": 0, "b": 0, "c": 1, "d": 1}
    # "d" is long, which must not matter.
    by_topic = {"a": [1.0, 0.0], "b": [2.0, 0.1], "c": [0.0, 1.0], "d": [3.0, 30.0]}
    assert oracle.purity(by_topic, topic) == 1
    assert oracle.purity(by_topic, {"a": 0, "b": 1, "c": 0, "d": 1}) == 0
    assert oracle.purity(by_topic, {"a": 0, "b": 0, "c": 0, "d": 1}) == 0.5


def test_vectors_are_read_in_the_original_tools_format() -> None:
    assert oracle.parse_vectors("2 3\nx 1 2 3\ny -0.5 0 1e-3\n") == {"x": [1, 2, 3], "y": [-0.5, 0, 0.001]}


@pytest.mark.parametrize(
    "text",
    [
        "x 1 2 3\n",
        "2 3\nx 1 2 3\n",
        "2 3\nx 1 2 3\nx 1 2 3\n",
        "1 3\nx 1 2\n",
        "1 2\nx np.float32(1) 2\n",
        "1 2\nx 1 two\n",
    ],
)
def test_other_formats_are_refused(text: str) -> None:
    with pytest.raises(AssertionError, match=r"vectors\.txt"):
        oracle.parse_vectors(text)


def test_neighbours_by_topic_pass_and_shuffled_or_missing_words_do_not(tmp_path: Path) -> None:
    challenge = task.draw(5)
    text = perfect_vectors(challenge.corpus)
    task.test_nearest_neighbours_share_their_topic(left(tmp_path, vectors=text), challenge)
    header, *lines = text.splitlines()
    words, numbers = zip(*(line.split(" ", 1) for line in lines), strict=True)
    mixed = [header, *(f"{word} {rest}" for word, rest in zip(words, numbers[7::] + numbers[:7], strict=True))]
    with pytest.raises(AssertionError, match="topic purity"):
        task.test_nearest_neighbours_share_their_topic(left(tmp_path, vectors="\n".join(mixed)), challenge)
    fewer = "\n".join([f"{len(lines) - 1} {oracle.TOPICS}", *lines[1:]])
    with pytest.raises(AssertionError, match="1 are missing"):
        task.test_nearest_neighbours_share_their_topic(left(tmp_path, vectors=fewer), challenge)


def test_only_the_vectors_of_version_3_4_0_pass(tmp_path: Path) -> None:
    challenge = task.draw(5)
    corpus, word = challenge.corpus, next(iter(challenge.corpus.topic))
    right = oracle.first_vector(word, corpus.seed, corpus.size)
    report = {"version": "3.4.0", "first_vectors": {word: right.tolist()}}
    task.test_words_start_where_version_3_4_0_puts_them(left(tmp_path, report), challenge)
    for wrong, complaint in (
        ({"version": "4.3.3"}, "expected gensim 3.4.0"),
        ({"first_vectors": {}}, "got none"),
        ({"first_vectors": {word: (right + np.float32(1e-4)).tolist()}}, "should start at"),
    ):
        with pytest.raises(AssertionError, match=complaint):
            task.test_words_start_where_version_3_4_0_puts_them(left(tmp_path, {**report, **wrong}), challenge)


@pytest.mark.parametrize(
    ("speed", "baseline_version", "complaint"),
    [(2000.0, -1, "2.0 times"), (99000.0, 1, "should be plain Python")],
)
def test_a_slow_deployment_or_a_false_baseline_is_refused(
    tmp_path: Path, speed: float, baseline_version: int, complaint: str
) -> None:
    baseline = {"words_per_s": 1000.0, "fast_version": baseline_version}
    with pytest.raises(AssertionError, match=complaint):
        task.test_training_is_faster_than_plain_python(left(tmp_path, {"words_per_s": speed, "baseline": baseline}))


def test_a_fast_deployment_passes(tmp_path: Path) -> None:
    baseline = {"words_per_s": 1000.0, "fast_version": -1}
    task.test_training_is_faster_than_plain_python(left(tmp_path, {"words_per_s": 20000.0, "baseline": baseline}))
