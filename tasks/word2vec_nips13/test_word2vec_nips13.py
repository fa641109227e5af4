"""Skip-gram with negative sampling, by gensim 3.4.0 compiled from the given source, learns planted topics, and fast.

The corpus is drawn anew: sentences of random words, each sentence about one of twelve topics. Neighbours are computed
on the host from the exported vectors. Speed is compared with the same package's plain Python path in the same run.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.word2vec_nips13 import word2vec_oracle as oracle

PURITY = 0.9
"""Sixty draws gave 1.0 each; untrained vectors get 0.06 to 0.10, as chance does."""
SPEED_UP = 10
"""Measured: above 100, on real and on emulated processors. Without the compiled routine it is 1."""
STOCK = {
    "fa910df740a08be88fd8f60cae122eeca54a16b552550fb4adf29d145e62aed0": "cp27m",
    "b16e69fd27d47a3e255a2365f76decc328f439547340ee02677e0921c0f39cb7": "cp27mu",
    "ade1e4d11c0a0a3e400d71fe611ea7ab2082341e1f9824991f03bcabd8d15658": "cp35m",
    "2b0f516ff85bf3ccfa34966948d21c837cdf5c82151c9e13c50da3fb6390d208": "cp36m",
}
"""SHA-256 of word2vec_inner in the Linux wheels of gensim 3.4.0 that the Python index holds."""


@dataclass(frozen=True)
class Word2VecChallenge(Challenge):
    """The corpus stays with its topics."""

    corpus: oracle.Corpus


def draw(seed: int) -> Word2VecChallenge:
    corpus = oracle.draw_corpus(seed)
    return Word2VecChallenge(
        # More BLAS threads than one only get into each other's way on vectors of this length.
        command="OPENBLAS_NUM_THREADS=1 python3 word2vec_experiment.py",
        inputs={
            "word2vec_experiment.py": oracle.driver(),
            "corpus.txt": corpus.text(),
            "settings.json": corpus.settings(),
        },
        outputs=("report.json", "vectors.txt"),
        corpus=corpus,
    )


def test_the_compiled_routine_was_built_and_used(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """The experiment trained by a word2vec_inner that is of no package, no wheel, and newer than the hand-over."""
    report = experiment.json("report.json")
    assert report["fast_version"] >= 0, f"plain Python trained: FAST_VERSION is {report['fast_version']}"
    routine, mapped = report["routine"], report["mapped"]
    assert routine.endswith("word2vec_inner"), f"expected the routine of word2vec_inner, {routine} was used"
    assert len(mapped) == 1, f"expected one word2vec_inner mapped into the process, got {mapped}; see experiment.log"
    owner = evidence.package_owner(server, mapped[0])
    assert owner is None, f"expected a library built here, {mapped[0]} is of the package {owner}"
    assert evidence.changed_after_handover(server, mapped[0], agent_run), f"{mapped[0]} is older than the hand-over"
    stock = STOCK.get(hashlib.sha256(server.file(mapped[0]).content).hexdigest())
    assert stock is None, f"expected a library built here, {mapped[0]} comes from the index's wheel for {stock}"


def test_words_start_where_version_3_4_0_puts_them(experiment: Experiment, challenge: Word2VecChallenge) -> None:
    """Untrained vectors are those that this version derives from a word and the seed; later versions do otherwise."""
    report, corpus = experiment.json("report.json"), challenge.corpus
    assert report["version"] == "3.4.0", f"expected gensim 3.4.0, got {report['version']}"
    assert report["first_vectors"], "expected untrained vectors, got none; see experiment.log"
    for word, got in report["first_vectors"].items():
        expected = oracle.first_vector(word, corpus.seed, corpus.size)
        assert np.allclose(got, expected, rtol=0, atol=1e-7), f"{word} should start at {expected[:2]}, got {got[:2]}"


def test_nearest_neighbours_share_their_topic(experiment: Experiment, challenge: Word2VecChallenge) -> None:
    """Of each word's ten nearest by cosine, nearly all are of its topic."""
    vectors, topic = oracle.parse_vectors(experiment.text("vectors.txt")), challenge.corpus.topic
    missing = sorted(topic.keys() - vectors.keys())
    assert not missing, f"expected a vector for each of {len(topic)} words, {len(missing)} are missing: {missing[:3]}"
    got = oracle.purity(vectors, topic)
    assert got >= PURITY, f"expected a topic purity of at least {PURITY}, got {got:.3f}; see experiment.log"


def test_training_is_faster_than_plain_python(experiment: Experiment) -> None:
    """Words per second against the same package without its compiled routine, same machine, same run."""
    report = experiment.json("report.json")
    baseline = report["baseline"]
    assert baseline["fast_version"] < 0, f"the baseline should be plain Python, FAST_VERSION {baseline['fast_version']}"
    got = report["words_per_s"] / baseline["words_per_s"]
    assert got >= SPEED_UP, (
        f"expected at least {SPEED_UP} times the {baseline['words_per_s']:.0f} words/s of plain Python, "
        f"got {report['words_per_s']:.0f} words/s, {got:.1f} times; see experiment.log"
    )
