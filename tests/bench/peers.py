# The Day 2 model as PyTorch does it best on a CPU: pre-norm, exact GELU, learned positions, tied head, no biases but those
# of LayerNorm, AdamW with decay on matrices alone, clipping by the global norm. Called by tests/bench/peers.
#
# Before anything is timed it proves that it is the same model: 3,740,160 parameters, and a first loss within 0.3 of ln V,
# as ours has to have.
import json
import math
import os
import statistics
import subprocess
import sys
import time

T, C, HEADS, LAYERS, V, BATCH = 256, 256, 8, 4, 2048, 8
PARAMETERS = 3740160
STEPS = 5
PRECISIONS = ("fp32", "bf16")
PATIENCE = 150  # seconds for one way of doing it, mostly for compiling


def build(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.feed_forward_norm = nn.LayerNorm(C), nn.LayerNorm(C)
            self.qkv, self.output = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
            self.up, self.down = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)

        def forward(self, x):
            B, length, _ = x.shape
            q, k, v = (part.view(B, length, HEADS, C // HEADS).transpose(1, 2)
                       for part in self.qkv(self.attention_norm(x)).split(C, dim=2))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.output(mixed.transpose(1, 2).reshape(B, length, C))
            return x + self.down(F.gelu(self.up(self.feed_forward_norm(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(V, C), nn.Embedding(T, C)
            self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(C)
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=0.02)

        def forward(self, inputs, targets):
            x = self.tokens(inputs) + self.positions.weight[: inputs.shape[1]]
            for block in self.blocks:
                x = block(x)
            logits = F.linear(self.norm(x), self.tokens.weight)
            return F.cross_entropy(logits.view(-1, V), targets.view(-1))

    return Model()


# The first line says what is timed, or why it is not; then each line of standard input is answered by the seconds of one
# step, so that others' steps can be timed between.
def one(name, compiled, precision, fused, threads, ways_there):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = build(torch)
    count = sum(parameter.numel() for parameter in model.parameters())
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), eps=1e-8,
                                  **({"fused": True} if fused else {"foreach": True}))
    forward = torch.compile(model) if compiled else model
    stream = torch.randint(0, V, (BATCH, T + 1))
    inputs, targets = stream[:, :-1].contiguous(), stream[:, 1:].contiguous()

    def step():
        optimizer.zero_grad(set_to_none=True)
        if precision == "bf16":
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = forward(inputs, targets)
        else:
            loss = forward(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    result = {"version": "PyTorch " + torch.__version__.split("+")[0], "ways": ways_there, "name": name,
              "precision": precision, "threads": threads, "parameters": count, "first_loss": step()}
    if count != PARAMETERS or abs(result["first_loss"] - math.log(V)) > 0.3:
        result["reason"] = f"not the same model: {count} parameters, first loss {result['first_loss']:.4f}"
    print(json.dumps(result), flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        step()
        print(time.perf_counter() - begin, flush=True)


def words_of(way, ways_there):
    return [sys.executable, os.path.abspath(__file__), "--one", json.dumps([*way, ways_there])]


# The number of threads is read when libraries are loaded.
def environment_of(threads):
    return dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))


def ask(way):
    name, _, precision, _, threads = way
    case = {"name": name, "precision": precision, "threads": threads}
    try:
        done = subprocess.run(words_of(way, 0), env=environment_of(threads), text=True, input="\n" * (1 + STEPS),
                              capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return case | {"reason": f"took more than {PATIENCE} s"}
    # What libraries print stands in front.
    lines = done.stdout.strip().splitlines()[-2 - STEPS:]
    if done.returncode != 0 or len(lines) < 2 + STEPS:
        return case | {"reason": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return json.loads(lines[0]) | {"seconds_per_step": statistics.median(map(float, lines[2:]))}


# (name, compiled, precision, fused, threads) of every way that is worth its time.
def ways(short, precisions):
    cores = len(os.sched_getaffinity(0))
    return [(name, compiled, precision, fused, threads)
            for threads in (1, 2) if threads <= cores
            for name, compiled, fused in (("eager", 0, 1), ("eager, foreach AdamW", 0, 0), ("compiled", 1, 1))
            for precision in precisions
            # The optimiser is the same in both.
            if (name, precision) != ("eager, foreach AdamW", "bf16")
            # Two threads never did more for each core than one; compiling takes the longest.
            and not (short and threads > 1 and name != "eager")]


def measure(chosen):
    cases = []
    for way in chosen:
        case = ask(way)
        cases.append(case)
        print(f"peers: {case['name']}, {case['precision']}, {case['threads']} threads: "
              f"{case.get('reason') or '%.0f ms a step' % (1e3 * case['seconds_per_step'])}", file=sys.stderr, flush=True)
    return {"cases": cases}


def option(name, values):
    """The word behind --name, one of `values`, or None where it is not there."""
    if name not in sys.argv:
        return None
    word = "".join(sys.argv[sys.argv.index(name) + 1:][:1])
    if word not in values:
        sys.exit(f"peers: {name} takes one of {', '.join(values)}, not '{word}'")
    return word


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--one":
        return one(*json.loads(sys.argv[2]))
    precision = option("--precision", PRECISIONS)
    chosen = ways("--short" in sys.argv, [precision] if precision else PRECISIONS)
    number = option("--way", [str(i + 1) for i in range(len(chosen))])
    try:
        import torch  # noqa: F401
    except ImportError:
        result = {"reason": "torch is not importable (PYTHON=... make bench names an interpreter that has it)", "cases": []}
    else:
        if number and "--turns" in sys.argv:
            way = chosen[int(number) - 1]
            words = words_of(way, len(chosen))
            os.execve(words[0], words, environment_of(way[-1]))
        result = measure([chosen[int(number) - 1]] if number else chosen)
    if "--json" in sys.argv or "--turns" in sys.argv:
        print(json.dumps(result))
        return None
    if "reason" in result:
        print(result["reason"])
        return None
    print(f"{result['cases'][0].get('version', 'PyTorch')}, Day 2 model, batch {BATCH}")
    print(f"{'how':24} {'precision':10} {'threads':>7} {'ms a step':>10} {'tokens/s a core':>16}")
    for case in result["cases"]:
        seconds = case.get("seconds_per_step")
        ends = f"{1e3 * seconds:10.1f} {BATCH * T / seconds / case['threads']:16.0f}" if seconds else case["reason"]
        print(f"{case['name']:24} {case['precision']:10} {case['threads']:7} {ends}")
    return None


main()
