#!/usr/bin/env python3
"""The cubin cache beside its peers: same bytes, same machine, one run.

Warm start: a process that has nothing in memory loads N kernels of the same bytes from disk, and from a
Redis on this machine. Cold storm: P processes want the same K kernels at once, and each make takes a
while; counted is how many were made. Peers: the kernel cache of Triton (triton.runtime.cache, in a
Python that has it) and ccache (with its Redis back-end), which keeps object files of gcc.

  python3 -m venv /tmp/peers && /tmp/peers/bin/pip install triton
  tools/cache_peers.py --python /tmp/peers/bin/python --out tools/results/cache.json

Prints a table last; writes everything as JSON.
"""
import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENTRIES, BYTES = 200, 100_000
PROCESSES, KEYS, FOLDERS, MAKE_MS = 32, 8, 4, 50

TRITON_WARM = """
import sys, time
from triton.runtime.cache import FileCacheManager
entries = [line.split() for line in open(sys.argv[1])]
fill = sys.argv[2] == "fill"
times = []
for key, path in entries:
    data = open(path, "rb").read() if fill else None
    begin = time.perf_counter()
    manager = FileCacheManager(key)
    if fill:
        manager.put(data, "kernel.cubin", binary=True)
    else:
        with open(manager.get_file("kernel.cubin"), "rb") as file:
            if len(file.read()) == 0: raise SystemExit("empty")
    times.append((time.perf_counter() - begin) * 1e6)
print(" ".join(map(str, times)))
"""

TRITON_STORM = """
import os, sys, time
from triton.runtime.cache import FileCacheManager
entries = [line.split() for line in open(sys.argv[1])]
number, make_ms, made = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
data = open(entries[0][1], "rb").read()
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
for i in range(len(entries)):
    key = entries[(number + i) % len(entries)][0]
    manager = FileCacheManager(key)
    if manager.get_file("kernel.cubin") is None:
        time.sleep(make_ms / 1000)
        with open(made, "a") as file: file.write("x")
        manager.put(data, "kernel.cubin", binary=True)
"""


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def summary(times_us):
    ordered = sorted(times_us)
    return {
        "median_us": round(statistics.median(ordered), 1),
        "p95_us": round(ordered[len(ordered) * 95 // 100], 1),
        "sum_ms": round(sum(ordered) / 1000, 2),
        "count": len(ordered),
    }


class Redis:
    """A redis-server of this run alone."""

    def __init__(self, folder):
        self.socket = f"{folder}/redis.sock"
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        for _ in range(200):
            if os.path.exists(self.socket):
                return
            time.sleep(0.05)
        sys.exit("redis-server did not start")

    def flush(self):
        run(["redis-cli", "-s", self.socket, "flushall"])

    def close(self):
        self.process.terminate()
        self.process.wait()


def measure_chord(bench, folder, redis):
    """Its own measurements: every number is of the C++ library in one process."""
    url = f"redis+unix://{redis.socket}"
    size = ["--entries", str(ENTRIES), "--bytes", str(BYTES), "--json"]
    hits = json.loads(run([bench, "--folder", f"{folder}/chord", "--remote", url, *size]))
    redis.flush()
    storm = ["--storm", str(PROCESSES), "--keys", str(KEYS), "--compile-ms", str(MAKE_MS),
             "--bytes", str(BYTES), "--json"]
    one = json.loads(run([bench, "--folder", f"{folder}/chord", *storm]))
    fleet = json.loads(run([bench, "--folder", f"{folder}/chord", "--folders", str(FOLDERS),
                            "--remote", url, *storm]))
    redis.flush()
    return {"hits": hits, "storm_one_folder": one, "storm_four_folders_redis": fleet}


def kernel_files(folder):
    """As the bench makes them: half random, half zero."""
    source = random.Random(1)
    paths = []
    for i in range(ENTRIES):
        path = f"{folder}/kernel{i}"
        words = b"".join(source.randbytes(8) + bytes(8) for _ in range(BYTES // 16))
        Path(path).write_bytes(words)
        paths.append(path)
    return paths


def measure_triton(python, folder, paths):
    environment = dict(os.environ, TRITON_CACHE_DIR=f"{folder}/triton")
    listing = f"{folder}/triton.txt"
    Path(listing).write_text("".join(f"KEY{i:04d} {path}\n" for i, path in enumerate(paths)))
    version = run([python, "-c", "import triton; print(triton.__version__)"]).strip()

    def warm(mode):
        out = run([python, "-c", TRITON_WARM, listing, mode], env=environment)
        return summary([float(word) for word in out.split()])

    result = {"version": version, "publish": warm("fill"), "disk_hit": warm("read")}
    shutil.rmtree(f"{folder}/triton")
    made = f"{folder}/made"
    Path(made).write_text("")
    storm_list = f"{folder}/storm.txt"
    Path(storm_list).write_text("".join(f"STORM{i} {paths[i]}\n" for i in range(KEYS)))
    children = [
        subprocess.Popen(
            [python, "-c", TRITON_STORM, storm_list, str(i), str(MAKE_MS), made],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for i in range(PROCESSES)
    ]
    for child in children:
        child.stdout.readline()
    begin = time.perf_counter()
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        if child.wait() != 0:
            sys.exit("a process of Triton's storm failed")
    result["storm"] = {
        "processes": PROCESSES, "keys": KEYS, "compiles": os.path.getsize(made),
        "wall_ms": round((time.perf_counter() - begin) * 1000, 1),
    }
    return result


def c_source(path, data):
    literal = "".join(f"\\x{byte:02x}" for byte in data)
    Path(path).write_text(f'const char kernel[] = "{literal}";\n')


def ccache_misses(environment):
    for line in run(["ccache", "--print-stats"], env=environment).splitlines():
        name, value = line.split("\t")
        if name == "cache_miss":
            return int(value)
    return 0


def measure_ccache(folder, paths, redis):
    sources = f"{folder}/c"
    os.mkdir(sources)
    for i, path in enumerate(paths):
        c_source(f"{sources}/k{i}.c", Path(path).read_bytes())

    def settings(name, **more):
        return dict(os.environ, CCACHE_DIR=f"{folder}/{name}", CCACHE_NOCOMPRESS="1", **more)

    def compile_all(environment, count):
        times = []
        for i in range(count):
            begin = time.perf_counter()
            run(["ccache", "gcc", "-c", f"{sources}/k{i}.c", "-o", f"{folder}/k.o"],
                env=environment)
            times.append((time.perf_counter() - begin) * 1e6)
        return summary(times)

    local = settings("ccache")
    result = {"version": run(["ccache", "--version"]).split()[2],
              "object_bytes": None, "publish": compile_all(local, ENTRIES),
              "disk_hit": compile_all(local, ENTRIES)}
    result["object_bytes"] = os.path.getsize(f"{folder}/k.o")
    remote = f"redis+unix://{redis.socket}"
    writing = settings("ccache-a", CCACHE_REMOTE_STORAGE=remote)
    compile_all(writing, ENTRIES)
    reading = settings("ccache-b", CCACHE_REMOTE_STORAGE=remote, CCACHE_REMOTE_ONLY="1")
    result["remote_hit"] = compile_all(reading, ENTRIES)
    redis.flush()
    loop = ("for i in $(seq 0 {last}); do k=$(( ($0 + i) % {keys} )); "
            "ccache gcc -c {sources}/k$k.c -o {folder}/$0.o || exit 1; done")
    script = loop.format(last=KEYS - 1, keys=KEYS, sources=sources, folder=folder)
    for name, folders, more in (("storm_one_folder", 1, {}),
                                ("storm_four_folders_redis", FOLDERS,
                                 {"CCACHE_REMOTE_STORAGE": remote})):
        environments = [settings(f"{name}{i}", **more) for i in range(folders)]
        begin = time.perf_counter()
        children = [subprocess.Popen(["bash", "-c", script, str(i)],
                                     env=environments[i % folders]) for i in range(PROCESSES)]
        if any(child.wait() != 0 for child in children):
            sys.exit("a process of ccache's storm failed")
        result[name] = {
            "processes": PROCESSES, "keys": KEYS, "folders": folders,
            "compiles": sum(ccache_misses(environment) for environment in environments),
            "wall_ms": round((time.perf_counter() - begin) * 1000, 1),
        }
    return result


def table(result):
    chord, triton, ccache = result["chord"], result["triton"], result["ccache"]
    hits = chord["hits"]
    rows = [
        ("", "chord", "Triton", "ccache (a process each)"),
        ("hit from memory, us", f"{hits['memory_hit_us']:.2f}", "-", "-"),
        ("hit from disk, us", f"{hits['disk_hit']['median_us']:.0f}",
         f"{triton['disk_hit']['median_us']:.0f}", f"{ccache['disk_hit']['median_us']:.0f}"),
        (f"warm start of {ENTRIES} kernels, ms", f"{hits['disk_hit']['sum_ms']:.0f}",
         f"{triton['disk_hit']['sum_ms']:.0f}", f"{ccache['disk_hit']['sum_ms']:.0f}"),
        ("hit from Redis, us", f"{hits['remote_hit']['median_us']:.0f}", "-",
         f"{ccache['remote_hit']['median_us']:.0f}"),
        (f"made in a storm of {PROCESSES} for {KEYS} kernels",
         str(chord["storm_one_folder"]["compiles"]), str(triton["storm"]["compiles"]),
         str(ccache["storm_one_folder"]["compiles"])),
        (f"the same on {FOLDERS} folders and one Redis",
         str(chord["storm_four_folders_redis"]["compiles"]), "-",
         str(ccache["storm_four_folders_redis"]["compiles"])),
    ]
    return "\n".join(f"| {a:<44} | {b:>7} | {c:>7} | {d:>23} |" for a, b, c, d in rows)


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parent.parent
    flags.add_argument("--bench", default=str(root / "build/bin/chord-cache-bench"))
    flags.add_argument("--python", required=True, help="a Python with Triton")
    flags.add_argument("--out", required=True, help="JSON file to write")
    asked = flags.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(folder)
        try:
            paths = kernel_files(folder)
            result = {
                "machine": {"cpu": platform.processor() or platform.machine(),
                            "cores": os.cpu_count(), "system": platform.platform(terse=True),
                            "load_before": os.getloadavg()[0]},
                "command": "tools/cache_peers.py --python <Python with Triton> --out <this file>",
                "cubin_bytes": BYTES, "entries": ENTRIES,
                "chord": measure_chord(asked.bench, folder, redis),
                "triton": measure_triton(asked.python, folder, paths),
                "ccache": measure_ccache(folder, paths, redis),
            }
        finally:
            redis.close()
    Path(asked.out).write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


if __name__ == "__main__":
    main()
