#!/usr/bin/env bash
# The GPU tests, a short benchmark and what explains it, from binaries that are built where there is
# a compiler and carried to where there is a GPU, with every kernel compiled beforehand.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: tools/gpu_check.sh build
       tools/gpu_check.sh run [FLAGS of chord-bench...]
       tools/gpu_check.sh sanitize
       tools/gpu_check.sh profile
       tools/gpu_check.sh ablation

  build     portable binaries into build-gpu/bin, their kernels into build-gpu/cache; needs no GPU
  run       on the machine with the GPU, from the root of the tree: tests, then benchmark; writes
            gpu_tests.xml, gpu_tests.log, bench.txt and h200.json into ${OUT:-build-gpu/out}
  sanitize  some of the tests under compute-sanitizer; writes memcheck.log and racecheck.log there
  profile   one launch per regime under ncu; writes h200_profile.json there
  ablation  the kernel with parts of its main loop taken away; writes h200_stages.json there

GTEST_FILTER chooses tests. Exit codes: 0 all is right, 1 something is wrong, 2 a wrong flag or
nothing built, 3 the checker of sanitize or the profiler could not run, or not for all.
example: tools/gpu_check.sh build && tools/gpu_check.sh run --cases tokens_per_gpu
EOF
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build-gpu
bin=$build/bin
carried=(chord-test-gpu chord-bench chord-explain chord-prewarm)
carried_mib=58  # binaries and cubins together stay below this
tests_limit_s=230
bench_limit_s=200
sanitizer_limit_s=200
sanitized_tests='GpuReference.AgreesWithTheCpuInFp64:*GpuRouting.ForeignBlocks*:'
sanitized_tests+='*GpuRouting.NothingToDo*:*GpuRouting.RaggedOffsets*:*GpuRouting.MaskedCounts*:'
sanitized_tests+='*GpuRouting.GarbageBehind*:GpuShapes.TinyLegalLayer:GpuShapes.OddColumns*:'
sanitized_tests+='GpuPacking.EverySourceOfAnOddShape:GpuSchedules.EveryTile:GpuSplit.APartial*:'
sanitized_tests+='*GpuWgmma.FewRows*'

# shellcheck source=tools/gpu_profile.sh
source "$root/tools/gpu_profile.sh"

fail() {
  printf 'error: %s\n' "$2" >&2
  exit "$1"
}

forget_settings() {
  local variable
  for variable in $(compgen -e CHORD_); do
    [[ $variable == CHORD_NVRTC_LIBRARY ]] || unset "$variable"
  done
}

# Only the C library may be left to the machine that runs it.
check_needed() {
  local needed
  needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so\.[0-9]+$' || true)
  [[ -z $needed ]] || fail 1 "${1##*/} needs $(tr '\n' ' ' <<<"$needed")on the other machine"
}

build_all() {
  local options=() flags name size_kib
  [[ -e $build/CMakeCache.txt ]] || options+=(-G Ninja)
  cmake -S "$root" -B "$build" "${options[@]}" -DCMAKE_BUILD_TYPE=Release -DCHORD_PORTABLE=ON \
    --log-level=WARNING
  cmake --build "$build" --parallel "$(nproc)" --target "${carried[@]}"
  for name in "$bin"/*; do
    [[ " ${carried[*]} " == *" ${name##*/} "* ]] || rm -f "$name"
  done
  for name in "${carried[@]}"; do
    check_needed "$bin/$name"
    strip "$bin/$name"
  done
  # Cubins of older kernels are dead weight; start again when there are many.
  if [[ -d $build/cache ]] && (($(du -sk "$build/cache" | cut -f1) > 28 * 1024)); then
    rm -rf "$build/cache"
  fi
  export CHORD_CACHE_DIR=$build/cache
  "$bin/chord-test-gpu" --prewarm-only
  "$bin/chord-bench" --prewarm --set all
  "$bin/chord-bench" --prewarm --set all --policy published
  mapfile -t flags < <(ablation_flags)
  "$bin/chord-bench" --prewarm --ablation --set all "${flags[@]}"
  size_kib=$(du -skc "$bin" "$build/cache" | tail -1 | cut -f1)
  ((size_kib < carried_mib * 1024)) || fail 1 "$((size_kib / 1024)) MiB to carry: too much"
  printf 'to carry: build-gpu/bin build-gpu/cache, %d MiB\n' $((size_kib / 1024))
}

# A cache that this user owns and may write, so that carried entries are trusted.
use_cache_copy() {
  [[ -x $bin/chord-test-gpu && -x $bin/chord-bench ]] ||
    fail 2 "build-gpu/bin is not here: tools/gpu_check.sh build, and carry it"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir -m 700 "$scratch/cache"
  [[ ! -d $build/cache ]] || cp -R "$build/cache/." "$scratch/cache"
  chown -R "$(id -u)" "$scratch/cache"
  chmod -R u+rwX,go-rwx "$scratch/cache"
  export CHORD_CACHE_DIR=$scratch/cache
}

ended() {
  case $1 in
    0) echo "all right" ;;
    124 | 137) echo "ran out of time" ;;
    3) echo "a kernel hung" ;;
    *) echo "failed with exit code $1" ;;
  esac
}

run_all() {
  local out=${OUT:-$build/out} tests=0 bench=0
  use_cache_copy
  mkdir -p "$out"
  timeout --kill-after=10 "$tests_limit_s" "$bin/chord-test-gpu" \
    --gtest_output="xml:$out/gpu_tests.xml" </dev/null >"$out/gpu_tests.log" 2>&1 || tests=$?
  # Rows of other cases stay in the file.
  if [[ -e $root/tools/results/h200.json && ! -e $out/h200.json ]]; then
    cp "$root/tools/results/h200.json" "$out/h200.json"
  fi
  # From inside $out, so that the command that is recorded holds no path of this machine.
  (cd "$out" && timeout --kill-after=10 "$bench_limit_s" "$bin/chord-bench" --complete --cublas \
    --merge h200.json "$@") </dev/null >"$out/bench.txt" 2>&1 || bench=$?

  printf '%s\n' '--- tests'
  grep -E -A3 ': Failure$|^error:' "$out/gpu_tests.log" | head -60 || true
  grep -E '^\[  FAILED  \]|kernels, |tests ran|PASSED' "$out/gpu_tests.log" | sort -u || true
  if ! grep -q '^\[       OK \]' "$out/gpu_tests.log"; then
    grep -m1 'needs a GPU' "$out/gpu_tests.log" || true
    tests=1
  fi
  printf 'tests: %s\n%s\n' "$(ended $tests)" '--- benchmark'
  cat "$out/bench.txt"
  printf 'benchmark: %s\nresults: %s\n' "$(ended $bench)" "$out"
  ((tests == 0 && bench == 0))
}

find_cuda_tool() {
  local candidate
  for candidate in "$(command -v "$1" || true)" "/usr/local/cuda/bin/$1" \
    "/usr/local/cuda/$1/$1" /opt/nvidia/nsight-compute/*/"$1"; do
    if [[ -n $candidate && -x $candidate ]]; then
      printf '%s' "$candidate"
      return
    fi
  done
}

sanitize() {
  local out=${OUT:-$build/out} sanitizer tool log flags status verdict=0
  sanitizer=$(find_cuda_tool compute-sanitizer)
  [[ -n $sanitizer ]] || fail 3 "no compute-sanitizer on this machine: nothing was checked"
  use_cache_copy
  mkdir -p "$out"
  for tool in memcheck racecheck; do
    log=$out/$tool.log
    flags=()
    # racecheck does not take __syncwarp and one lane's arrive for the order that they are.
    [[ $tool == memcheck ]] || flags=(--every-lane-releases)
    status=0
    timeout --kill-after=10 "$sanitizer_limit_s" "$sanitizer" --tool "$tool" --error-exitcode 99 \
      "$bin/chord-test-gpu" --longest-test=600 "${flags[@]}" \
      --gtest_filter="${GTEST_FILTER:-$sanitized_tests}" </dev/null >"$log" 2>&1 || status=$?
    if ! grep -qE 'ERROR SUMMARY|RACECHECK SUMMARY' "$log"; then
      printf '%s could not run to its end (%s):\n' "$tool" "$(ended $status)"
      tail -5 "$log"
      ((verdict == 1)) || verdict=3
      continue
    fi
    grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|PASSED|FAILED TEST' "$log" || true
    if ((status != 0)); then
      grep -E '^=========' "$log" | head -30
      printf '%s: %s\n' "$tool" "$(ended $status)"
      verdict=1
    fi
  done
  return "$verdict"
}

command=${1:-}
[[ -z $command ]] || shift
forget_settings
case $command in
  build)
    (($# == 0)) || fail 2 "build takes no flags"
    build_all
    ;;
  run) run_all "$@" ;;
  sanitize)
    (($# == 0)) || fail 2 "sanitize takes no flags"
    sanitize
    ;;
  profile)
    (($# == 0)) || fail 2 "profile takes no flags"
    profile
    ;;
  ablation)
    (($# == 0)) || fail 2 "ablation takes no flags"
    ablate
    ;;
  -h | --help) usage ;;
  *)
    usage >&2
    fail 2 "'$command': build, run, sanitize, profile or ablation"
    ;;
esac
