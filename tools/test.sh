#!/usr/bin/env bash
# Builds everything and runs all tests that this machine can run, each binary under a time limit
# and with a cache folder of its own. Says which tests were skipped and why. The last line is
# `N passed, N failed, N skipped`; the exit code is not zero when a test failed, a binary crashed or
# ran out of time, or no test ran.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: tools/test.sh [--sanitize LIST] [--strict] [--timeout SECONDS] [NAME...]

  --sanitize LIST    address,undefined or thread: builds into build-LIST with that sanitizer
  --strict           stops on a compiler warning
  --timeout SECONDS  limit of one test binary (default 600)
  NAME               only these binaries: cache runs chord-test-cache

example: tools/test.sh --sanitize address,undefined cache
EOF
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
limit_s=600
options=(-DCMAKE_BUILD_TYPE=Release)
names=()

bad_flag() {
  printf 'error: %s\n' "$1" >&2
  usage >&2
  exit 2
}

while (($#)); do
  case $1 in
    --sanitize)
      [[ ${2:-} =~ ^(address|undefined|address,undefined|undefined,address|thread)$ ]] ||
        bad_flag "--sanitize '${2:-}': give address,undefined or thread"
      build=$root/build-${2//,/-}
      options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCHORD_SANITIZE=$2")
      shift 2
      ;;
    --strict)
      options+=(-DCHORD_WARNINGS_AS_ERRORS=ON)
      shift
      ;;
    --timeout)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || bad_flag "--timeout '${2:-}': give whole seconds"
      limit_s=$2
      shift 2
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) bad_flag "unknown flag $1" ;;
    *)
      names+=("$1")
      shift
      ;;
  esac
done

source "$root/tools/install_packages.sh"
chord_install_packages
chord_install_servers ||
  printf 'warning: tests against a real Redis and a real nginx are skipped\n' >&2
chord_find_nvrtc "$root/build"  # one wheel for every build folder
chord_find_nvdisasm "$root/build"

[[ -e $build/CMakeCache.txt ]] || options+=(-G Ninja)
cmake -S "$root" -B "$build" "${options[@]}" -DCHORD_BUILD_TESTS=ON -DCHORD_BUILD_TOOLS=ON \
  >/dev/null
cmake --build "$build" --parallel "$(nproc)"

# Nothing of the caller's settings may decide a test; only the choice of compiler and disassembler
# stays.
for variable in $(compgen -e CHORD_); do
  [[ $variable == CHORD_NVRTC_LIBRARY || $variable == CHORD_NVDISASM ]] || unset "$variable"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CHORD_CACHE_DIR=$scratch/cache
export TMPDIR=$scratch/tmp
mkdir -p "$TMPDIR"

# One line per test of a report: "passed", "failed NAME" or "skipped NAME: reason".
results_of() {
  awk '
    function attribute(line, key,   rest) {
      if (!match(line, " " key "=\"[^\"]*\"")) return ""
      rest = substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
      return rest
    }
    function plain(text) {
      gsub(/&#x0A;/, " ", text); gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text)
      gsub(/&quot;/, "\"", text); gsub(/&apos;/, "\x27", text); gsub(/&amp;/, "\\&", text)
      sub(/^[^ ]*:[0-9]+ /, "", text)
      return text
    }
    function finish() {
      if (name == "") return
      if (failed) print "failed " name
      else if (skipped) print "skipped " name ": " reason
      else if (ran) print "passed"
      name = ""
    }
    /<testcase / {
      finish()
      name = attribute($0, "classname") "." attribute($0, "name")
      ran = attribute($0, "status") == "run"
      skipped = attribute($0, "result") == "skipped"
      failed = 0; reason = "no reason given"
    }
    /<failure / { failed = 1 }
    /<skipped / { reason = plain(attribute($0, "message")) }
    END { finish() }
  ' "$1"
}

if ((${#names[@]})); then
  binaries=("${names[@]/#/$build/bin/chord-test-}")
else
  binaries=("$build"/bin/chord-test-*)
fi

results=$scratch/results
: >"$results"
broken=()
for binary in "${binaries[@]}"; do
  [[ -x $binary ]] || { broken+=("${binary##*/} was not built"); continue; }
  name=${binary##*/}
  report=$scratch/$name.xml
  status=0
  start=$SECONDS
  timeout --kill-after=10 "$limit_s" "$binary" --gtest_output="xml:$report" --gtest_brief=1 \
    </dev/null >"$scratch/$name.log" 2>&1 || status=$?
  if ((status != 0)); then cat "$scratch/$name.log"; fi
  if [[ -e $report ]]; then results_of "$report" >"$scratch/one"; else : >"$scratch/one"; fi
  cat "$scratch/one" >>"$results"
  printf '%-24s %4d tests, %d s\n' "$name" "$(wc -l <"$scratch/one")" $((SECONDS - start))
  if ((status == 124 || status == 137)); then
    broken+=("$name ran longer than $limit_s s")
  elif ((status != 0)) && ! grep -q '^failed ' "$scratch/one"; then
    broken+=("$name ended with exit code $status")
  fi
done

passed=$(grep -c '^passed' "$results" || true)
failed=$(grep -c '^failed ' "$results" || true)
skipped=$(grep -c '^skipped ' "$results" || true)
failed=$((failed + ${#broken[@]}))

printf '\n'
grep '^skipped ' "$results" || true
grep '^failed ' "$results" || true
((${#broken[@]} == 0)) || printf 'failed %s\n' "${broken[@]}"
((passed + skipped > 0)) || { printf 'failed: no test ran\n'; failed=$((failed > 0 ? failed : 1)); }
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
