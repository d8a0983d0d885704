#!/usr/bin/env bash
# Builds everything and runs all tests that this machine can run, each binary under a time limit
# and with folders of its own. Says which tests were skipped and why. The last line is
# `N passed, N failed, N skipped`, summed over all builds that were asked for; the exit code is not
# zero when a test failed, a binary crashed or ran out of time, or no test ran.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: tools/test.sh [--sanitize LIST | --sanitizers] [--strict] [--timeout SECONDS]
                     [--jobs NUMBER] [NAME...]

  --sanitize LIST    address,undefined or thread: builds into build-LIST with that sanitizer what
                     tests/CMakeLists.txt chooses for it
  --sanitizers       the plain build, then those of address,undefined and of thread
  --strict           stops on a compiler warning
  --timeout SECONDS  limit of one test binary (default 600)
  --jobs NUMBER      test binaries that run at the same time (default 1)
  NAME               only these binaries: cache builds and runs chord-test-cache

example: tools/test.sh --sanitize address,undefined cache
EOF
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
limit_s=600
jobs=1
sanitizers=('')  # of one build each; the plain one has none
strict=OFF
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
      sanitizers=("$2")
      shift 2
      ;;
    --sanitizers)
      sanitizers=('' address,undefined thread)
      shift
      ;;
    --strict)
      strict=ON
      shift
      ;;
    --timeout)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || bad_flag "--timeout '${2:-}': give whole seconds"
      limit_s=$2
      shift 2
      ;;
    --jobs)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || bad_flag "--jobs '${2:-}': give a whole number"
      jobs=$2
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
chord_install_packaging ||
  printf 'warning: some tests of what is installed and packed are skipped\n' >&2
chord_find_nvrtc "$root/build"  # one wheel for every build folder
chord_find_nvdisasm "$root/build"

# Nothing of the caller's settings may decide a test; only the choice of compiler and disassembler
# stays.
for variable in $(compgen -e CHORD_); do
  [[ $variable == CHORD_NVRTC_LIBRARY || $variable == CHORD_NVDISASM ]] || unset "$variable"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A report of a sanitizer ends the binary with an exit code of its own, whatever its tests say.
export ASAN_OPTIONS=detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=suppressions=$root/tests/support/thread.supp

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

# build_into FOLDER SANITIZER
build_into() {
  local options=(-DCMAKE_BUILD_TYPE=Release -DCHORD_BUILD_TOOLS=ON) targets=()
  if [[ -n $2 ]]; then  # as quick to compile as can be; -O1 takes address twice as long
    options=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g1" -DCMAKE_UNITY_BUILD=ON
      -DCHORD_BUILD_TOOLS=OFF "-DCHORD_SANITIZE=$2")
    [[ $2 != thread ]] || options+=(-DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1")
  fi
  [[ -e $1/CMakeCache.txt ]] || options+=(-G Ninja)
  ((${#names[@]} == 0)) || targets=(--target "${names[@]/#/chord-test-}")
  cmake -S "$root" -B "$1" "${options[@]}" -DCHORD_BUILD_TESTS=ON \
    "-DCHORD_WARNINGS_AS_ERRORS=$strict" >/dev/null
  cmake --build "$1" --parallel "$(nproc)" "${targets[@]}"
}

# run_binary BINARY FOLDER: its tests become lines of FOLDER/results, what else went wrong is told
# in FOLDER/broken, and what is printed lies in FOLDER/text.
run_binary() {
  local name=${1##*/} status=0 start=$SECONDS
  : | tee "$2/results" "$2/broken" "$2/text"
  [[ -x $1 ]] || { printf '%s was not built\n' "$name" >"$2/broken"; return 0; }
  mkdir "$2/tmp"
  CHORD_CACHE_DIR=$2/cache TMPDIR=$2/tmp \
    timeout --kill-after=10 "$limit_s" "$1" --gtest_output="xml:$2/report.xml" --gtest_brief=1 \
    </dev/null >"$2/log" 2>&1 || status=$?
  [[ ! -e $2/report.xml ]] || results_of "$2/report.xml" >"$2/results"
  {
    ((status == 0)) || cat "$2/log"
    printf '%-24s %4d tests, %d s\n' "$name" "$(wc -l <"$2/results")" $((SECONDS - start))
  } >"$2/text"
  if ((status == 124 || status == 137)); then
    printf '%s ran longer than %d s\n' "$name" "$limit_s" >"$2/broken"
  elif ((status != 0)) && ! grep -q '^failed ' "$2/results"; then
    printf '%s ended with exit code %d\n' "$name" "$status" >"$2/broken"
  fi
}

# run_all FOLDER LABEL: the chosen binaries of a build, at most $jobs at a time, into $results.
run_all() {
  local binary folder binaries=("$1"/bin/chord-test-*)
  ((${#names[@]} == 0)) || binaries=("${names[@]/#/$1/bin/chord-test-}")
  rm -rf "$scratch/runs"
  for binary in "${binaries[@]}"; do
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    folder=$scratch/runs/${binary##*/}
    mkdir -p "$folder"
    { run_binary "$binary" "$folder" && cat "$folder/text"; } &
  done
  wait
  for binary in "${binaries[@]}"; do
    folder=$scratch/runs/${binary##*/}
    sed "s/^\(failed\|skipped\) /&$2/" "$folder/results" >>"$results"
    sed "s/^/broken $2/" "$folder/broken" >>"$results"
  done
}

results=$scratch/results
: >"$results"
for sanitizer in "${sanitizers[@]}"; do
  build=$root/build${sanitizer:+-${sanitizer//,/-}}
  start=$SECONDS
  build_into "$build" "$sanitizer"
  printf '\n%s was built in %d s\n' "$build" $((SECONDS - start))
  run_all "$build" "${sanitizer:+($sanitizer) }"
done

count() { grep -c "^$1" "$results" || true; }
passed=$(count passed)
failed=$(($(count 'failed ') + $(count 'broken ')))
skipped=$(count 'skipped ')

printf '\n'
grep '^skipped ' "$results" || true
grep '^failed ' "$results" || true
sed -n 's/^broken /failed /p' "$results"
((passed + skipped > 0)) || { printf 'failed: no test ran\n'; failed=$((failed > 0 ? failed : 1)); }
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
