"""Draws the word2vec challenge and judges word vectors, in numpy and without gensim. No I/O but for `driver`.

The truth is planted: words belong to topics, a sentence keeps to one, and nothing in a word's letters tells which.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TOPICS, WORDS_PER_TOPIC = 12, 20
SENTENCES, LENGTH = 800, 12
NOISE = 0.1
"""Share of words that come from anywhere."""
NEIGHBOURS = 10


@dataclass(frozen=True)
class Corpus:
    """One drawn challenge with its truth."""

    sentences: tuple[tuple[str, ...], ...]
    topic: dict[str, int]
    """Stays on the host."""
    size: int
    seed: int

    def text(self) -> bytes:
        """One sentence a line."""
        return "".join(" ".join(sentence) + "\n" for sentence in self.sentences).encode()

    def settings(self) -> bytes:
        """Parameters of the training: skip-gram, negative sampling."""
        model = {"size": self.size, "window": 5, "negative": 5, "alpha": 0.05, "seed": self.seed, "workers": 2}
        return json.dumps({"model": model, "epochs": 2, "baseline_sentences": 60}).encode()


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "word2vec_experiment.py").read_bytes()


def draw_corpus(seed: int) -> Corpus:
    """Sentences in a language that nobody has seen."""
    rng = np.random.default_rng(seed)
    count = TOPICS * WORDS_PER_TOPIC
    words: list[str] = []
    while len(words) < count:
        word = "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 7))
        if word not in words:
            words.append(word)
    topics = rng.integers(TOPICS, size=(SENTENCES, 1))
    proper = topics * WORDS_PER_TOPIC + rng.integers(WORDS_PER_TOPIC, size=(SENTENCES, LENGTH))
    stray = rng.random((SENTENCES, LENGTH)) < NOISE
    chosen = np.where(stray, rng.integers(count, size=(SENTENCES, LENGTH)), proper)
    return Corpus(
        sentences=tuple(tuple(words[i] for i in row) for row in chosen),
        topic={word: i // WORDS_PER_TOPIC for i, word in enumerate(words)},
        size=int(rng.choice([24, 28, 32])),
        seed=int(rng.integers(1, 1000)),
    )


def first_vector(word: str, seed: int, size: int) -> NDArray[np.float32]:
    """Where gensim 3.4.0 lets a word start: a Mersenne Twister seeded by the hash of the word and the model's seed.

    Version 4 draws from another generator.
    """
    start = np.random.RandomState(zlib.crc32(f"{word}{seed}".encode())).rand(size)
    return ((start - 0.5) / size).astype(np.float32)


def parse_vectors(text: str) -> dict[str, list[float]]:
    """The original tool's text format: a line `count size`, then a word and its numbers on each line.

    Raises:
        AssertionError: it is not that.
    """
    header, *lines = text.splitlines()
    try:
        count, size = map(int, header.split())
        vectors = {word: [float(number) for number in numbers] for word, *numbers in map(str.split, lines)}
    except ValueError as error:
        raise AssertionError(f"vectors.txt is not in the text format of word2vec: {error}") from None
    assert len(vectors) == len(lines) == count, f"vectors.txt announces {count} words and holds {len(vectors)}"
    assert {len(vector) for vector in vectors.values()} == {size}, f"vectors.txt announces {size} numbers a word"
    return vectors


def purity(vectors: dict[str, list[float]], topic: dict[str, int]) -> float:
    """Share of each word's nearest neighbours, by cosine, that are of its own topic; chance is 0.08."""
    words = sorted(topic)
    matrix = np.array([vectors[word] for word in words])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    cosines = matrix @ matrix.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1)[:, :NEIGHBOURS]
    topics = np.array([topic[word] for word in words])
    return float((topics[nearest] == topics[:, None]).mean())
