"""Trains the deployed word2vec on corpus.txt: vectors.txt in the original tool's format, the rest in report.json.

Called with the argument `baseline`, it trains on the first sentences alone, by the same package without its compiled
routine, and prints the speed: the yardstick for this machine at this hour. It runs on any deployed Python from 3.6 on.
"""

import json
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

BASELINE = sys.argv[1:] == ["baseline"]
if BASELINE:
    sys.modules["gensim.models.word2vec_inner"] = None  # type: ignore[assignment]  # to import it fails from now on

import gensim  # type: ignore[import-not-found]  # noqa: E402 - the deployment's, on the machine; after the switch above
from gensim.models import word2vec  # type: ignore[import-not-found]  # noqa: E402

settings = json.loads(Path("settings.json").read_text())
sentences = [line.split() for line in Path("corpus.txt").read_text().splitlines()]


def stable_hash(text: "str") -> "int":
    """The hash that seeds a word's first vector; Python's own differs from run to run."""
    return zlib.crc32(text.encode())


def fresh_model(corpus: "list[list[str]]") -> "Any":
    """A model that knows its vocabulary and has learnt nothing."""
    model = word2vec.Word2Vec(sg=1, hs=0, min_count=1, sample=0, hashfxn=stable_hash, **settings["model"])
    model.build_vocab(corpus)
    return model


def train(model: "Any", corpus: "list[list[str]]", epochs: "int") -> "float":
    """Words per second over the training alone."""
    start = time.perf_counter()
    model.train(corpus, total_examples=len(corpus), epochs=epochs)
    words: int = epochs * sum(map(len, corpus))
    return words / (time.perf_counter() - start)


few = sentences[: settings["baseline_sentences"]]
if BASELINE:
    print(json.dumps({"words_per_s": train(fresh_model(few), few, 1), "fast_version": word2vec.FAST_VERSION}))
    raise SystemExit

model = fresh_model(sentences)
first = {word: model.wv[word].tolist() for word in model.wv.index2word[:20]}
speed = train(model, sentences, settings["epochs"])
model.wv.save_word2vec_format("vectors.txt")
baseline = subprocess.run([sys.executable, __file__, "baseline"], check=True, stdout=subprocess.PIPE)
maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
report = {
    "version": gensim.__version__,
    "first_vectors": first,
    "fast_version": word2vec.FAST_VERSION,
    "routine": word2vec.train_batch_sg.__module__,
    "mapped": sorted({fields[5] for fields in maps if "word2vec_inner" in fields[-1]}),
    "words_per_s": speed,
    "baseline": json.loads(baseline.stdout.splitlines()[-1]),
}
Path("report.json").write_text(json.dumps(report))
print({key: report[key] for key in report if key != "first_vectors"})
