#!/usr/bin/env python3
"""How long a model takes from a new process to its first result: the first time, and again when caches have what was made.

    python3 tests/scripts/bench_warm_start.py build/release/bin/cutaway-cli [--only resnet50,bert_base] [--rounds 3]

Both sides in the same run, in turn, each with caches of its own that are empty at first. Ours: `run --backend cpu` in a new
process, its start and reading the weights included. PyTorch: a new process, from behind its imports and the model's
construction to the end of the first call of `torch.compile`, its own caches on. Neither is frozen: PyTorch keeps nothing then.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

RIVAL = """
import sys, time, torch
sys.path.insert(0, {scripts!r})
import bench_models
torch.set_num_threads({threads})
torch.manual_seed(0)
model, inputs = bench_models.MODELS[{name!r}]({name!r})
model.eval()
begin = time.perf_counter()
with torch.no_grad():
    torch.compile(model)(*inputs)
print("SECONDS", time.perf_counter() - begin)
"""


def ours(cli, folder, threads):
    begin = time.perf_counter()
    subprocess.run([cli, "run", f"{folder}/model.pt2", "--inputs", f"{folder}/inputs.safetensors", "--backend", "cpu", "--cache",
                    f"{folder}/cache/store.sqlite"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    return time.perf_counter() - begin


def theirs(name, threads, cache):
    program = RIVAL.format(scripts=str(HERE), threads=threads, name=name)
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                         env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}).stdout
    return float(out.split("SECONDS")[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cli")
    parser.add_argument("--only", default="resnet50,swin_t,bert_base")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out, whose first time takes longest")
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    import bench_models
    print(f"{'model':16} {'first':>8} {'again':>8} {'share':>7}  {'torch':>8} {'again':>8} {'share':>7}")
    for name in arguments.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            bench_models.export(name, pathlib.Path(folder))
            first = ours(arguments.cli, folder, arguments.threads)
            rival = None if arguments.no_torch else theirs(name, arguments.threads, f"{folder}/torch")
            again, rivals = [], []
            for _ in range(arguments.rounds):
                again.append(ours(arguments.cli, folder, arguments.threads))
                if rival is not None:
                    rivals.append(theirs(name, arguments.threads, f"{folder}/torch"))
            warm = statistics.median(again)
            line = f"{name:16} {first:8.2f} {warm:8.2f} {warm / first:7.3f}"
            if rivals:
                line += f"  {rival:8.2f} {statistics.median(rivals):8.2f} {warm / statistics.median(rivals):7.3f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
