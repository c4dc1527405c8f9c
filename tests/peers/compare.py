"""Loads each exported run in transformers and tokenizers and compares logits, greedy text and token numbers with ours.

usage: compare.py RUNNER TEXT VARIANT...    (in a folder with results/ of the experiment "peers")
"""
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys

import numpy as np
import tokenizers
import torch
import transformers

TOLERANCE = 2e-5
runner, golden, variants = sys.argv[1], sys.argv[2], sys.argv[3:]
passed = failed = 0


def verdict(name, good, detail):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok  ' if good else 'FAIL'}  {name}: {detail}", flush=True)


def ours(*arguments, codes=(0,)):
    done = subprocess.run([runner, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in codes:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def write_tensors(path, tensors):
    """A safetensors file, written here so that none of the libraries under test has a say in it."""
    header, data = {}, b""
    for name, array in tensors.items():
        kind = {"float32": "F32", "int32": "I32"}[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# ---- models ----

def activations(model, ids):
    """What transformers computes, under the names of a reference case."""
    with torch.no_grad():
        out = model(ids, output_hidden_states=True)
    hidden = out.hidden_states  # embedding, blocks; the last one has gone through the final norm
    tensors = {"embed": hidden[0], "final_norm": hidden[-1], "logits": out.logits}
    for i in range(1, len(hidden) - 1):
        tensors[f"blocks.{i - 1}"] = hidden[i]
    if hasattr(model, "model"):
        tensors.update(rotated(model.model, ids, hidden[0]))
    return {name: tensor.float().numpy().copy() for name, tensor in tensors.items()}


def rotated(decoder, ids, x):
    """Queries and keys of the first block after rotation."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
    block = decoder.layers[0]
    attention = block.self_attn
    with torch.no_grad():
        normed = block.input_layernorm(x)
        query, key = (projection(normed).view(1, ids.shape[1], -1, attention.head_dim)
                      for projection in (attention.q_proj, attention.k_proj))
        if hasattr(attention, "q_norm"):
            query, key = attention.q_norm(query), attention.k_norm(key)
        cosines, sines = decoder.rotary_emb(x, torch.arange(ids.shape[1])[None])
        query, key = apply_rotary_pos_emb(query.transpose(1, 2), key.transpose(1, 2), cosines, sines)
    return {"blocks.0.attention.query": query, "blocks.0.attention.key": key}


def read_tensor(path, name):
    """The bytes of one tensor."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        begin, end = header[name]["data_offsets"]
        file.seek(begin, os.SEEK_CUR)
        return file.read(end - begin)


def match(name, *arguments):
    result = json.loads(ours("match", "--json", "--tolerance", str(TOLERANCE), *arguments, codes=(0, 1)))
    worst = max(tensor["rel_l2"] for tensor in result["tensors"])
    verdict(name, result["ok"], f"{len(result['tensors'])} tensors, largest relative L2 {worst:.1e}"
            + ("" if result["ok"] else f", first to depart {result['first']}"))


def compare_model(variant, key, config, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").float().eval()
    wanted = {"llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM", "gpt2": "GPT2LMHeadModel"}[variant]
    verdict(f"{variant}: class", type(model).__name__ == wanted, type(model).__name__)
    vocab = model.config.vocab_size
    tokens = np.random.default_rng(7).integers(0, vocab, config["model.context_length"]).astype(np.int32)
    tokens[0] = 257
    ids = torch.tensor(tokens[None].astype(np.int64))
    seen = activations(model, ids)

    case = f"case-{variant}"  # the run as it was trained, without the export's reader
    os.mkdir(case)
    write_tensors(f"{case}/inputs.safetensors", {"inputs": tokens[None, None]})
    write_tensors(f"{case}/expected.safetensors", {"logits": seen["logits"]})
    shutil.copy(f"results/checkpoints/{key}/final.safetensors", f"{case}/weights.safetensors")
    with open(f"{case}/case.yaml", "w") as file:
        knobs = {name[6:]: value for name, value in config.items() if name.startswith("model.")}
        json.dump({"model": {**knobs, "vocab_size": vocab}}, file)
    match(f"{variant}: logits of the run and of transformers", case, "--dump", f"{variant}.run")

    prompt = np.array([257, 84, 104, 101, 32], np.int32)
    with torch.no_grad():
        made = model.generate(torch.tensor(prompt[None].astype(np.int64)), max_new_tokens=40, do_sample=False,
                              eos_token_id=None, pad_token_id=256)[0]
    greedy = made.numpy().astype(np.int32)
    case = f"case-hf-{variant}"
    os.mkdir(case)
    write_tensors(f"{case}/inputs.safetensors", {"inputs": tokens[None]})
    write_tensors(f"{case}/expected.safetensors", {**seen, "greedy.prompt": prompt[None], "greedy.tokens": greedy[None]})
    match(f"{variant}: activations and greedy tokens through runner match --hf", "--hf", folder, case,
          "--dump", f"{variant}.folder")
    logits = read_tensor(f"{variant}.run", "logits"), read_tensor(f"{variant}.folder", "logits")
    verdict(f"{variant}: logits of the run and of its folder read back", logits[0] == logits[1],
            f"{len(logits[0])} bytes, the same bit for bit" if logits[0] == logits[1] else "other bits")


# ---- tokens ----

TEXTS = {
    "code": 'def merge(a, b):\n\tif not a: return b  # \'x\' != "y"\n    total_2 += 0x1F * 3.14e-2\n',
    "prose": "The old weaver said nothing; she counted 17 lamps, then 42 more -- and left.  \n\n\"Why?\"",
    "accents": "Déjà vu: naïve façade, Ærøskøbing, Łódź, İstanbul, straße, Ελληνικά, Русский",
    "emoji": "🙂 👍🏽 👩‍👩‍👧‍👦 🇩🇪 ❤️ ☃ 1️⃣",
    "CJK": "中文字符，日本語のテキスト。한국어 텍스트 ３４５ 𠀀𠮷",
    "combining marks": "e\u0301 a\u0308\u0323 \u0301alone क्षि नमस्ते ไทย שָׁלוֹם عَرَبِيّ Z\u0351\u036b\u0343",
    "white space": " \t\u00a0\u2003\u2028\u3000\u0085 a\u200bb \r\n\x0b\x0c\x1c\x1d \ufeff end ",
    "numbers": "½ ² Ⅷ ٣٤ ৪ 1,000.5 ① 〇 𝟘 1_000 a1b2",
    "controls": "\x00\x01\x7f\x80\x9f\ufffd\uffff",
    "names of special tokens": "<|bos|> <bos> <s> </s> <|endoftext|> [PAD] <|runner:|>",
}


def random_texts():
    """Any characters at all, and unassigned ones."""
    draw = random.Random(11)
    everything = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    yield "any characters", "".join(draw.choices(everything, k=20000))
    yield "any characters below U+3000", "".join(draw.choices(everything[:0x3000], k=20000))
    yield "every character", "".join(everything)


def compare_tokens(variant, folder):
    library = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    auto = transformers.AutoTokenizer.from_pretrained(folder)
    texts = dict(TEXTS)
    with open(golden, encoding="utf-8", newline="") as file:
        texts["golden text"] = file.read()
    texts.update(random_texts())
    for name, text in texts.items():
        with open("text", "w", encoding="utf-8", newline="") as file:
            file.write(text)
        want = json.loads(ours("tokenizer", "--run", f"peers/{variant}/1337", "--encode", "text", "--json"))["ids"]
        back = json.loads(ours("tokenizer", "--hf", folder, "--encode", "text", "--json"))["ids"]
        ids, auto_ids = library.encode(text).ids, auto(text, verbose=False)["input_ids"]
        same = ids == want and auto_ids == want and back == want
        round_trip = library.decode(ids) == text and auto.decode(ids, clean_up_tokenization_spaces=False) == text
        verdict(f"{variant}: {name}", same and round_trip and len(want) > 5, f"{len(want)} tokens of {len(text)} characters")
    special = "a<|runner:eos|>b"
    with open("text", "w") as file:
        file.write(special)
    want = json.loads(ours("tokenizer", "--run", f"peers/{variant}/1337", "--encode", "text", "--json"))["ids"]
    verdict(f"{variant}: a special token's very name, in transformers", auto(special)["input_ids"] == want, str(want))
    verdict(f"{variant}: special tokens", (auto.pad_token_id, auto.bos_token_id, auto.eos_token_id) == (256, 257, 258),
            f"pad {auto.pad_token_id}, bos {auto.bos_token_id}, eos {auto.eos_token_id}")


def compare_text(variant, folder):
    """The whole way: a prompt as text, greedy, both sides' own code."""
    prompt = "The "
    said = json.loads(ours("sample", f"peers/{variant}/1337", "--prompt", prompt, "--tokens", "40", "--temperature", "0",
                           "--json"))
    auto = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").float().eval()
    ids = torch.tensor([[auto.bos_token_id] + auto(prompt)["input_ids"]])
    with torch.no_grad():
        made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, do_sample=False)[0, ids.shape[1]:]
    verdict(f"{variant}: greedy text of runner sample", made.tolist() == said["tokens"],
            f"{len(said['tokens'])} tokens, {said['text'][:40]!r}..")


torch.set_num_threads(1)
torch.manual_seed(1)
print(f"torch {torch.__version__}, transformers {transformers.__version__}, tokenizers {tokenizers.__version__}")
database = sqlite3.connect("file:results/results.db?mode=ro", uri=True)
for variant in variants:
    key, config = database.execute("select run_key, config from runs where variant = ?", [variant]).fetchone()
    folder = f"exported/{variant}"
    ours("export", f"peers/{variant}/1337", folder)
    compare_model(variant, key, json.loads(config), folder)
    compare_text(variant, folder)
    compare_tokens(variant, folder)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
