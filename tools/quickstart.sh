#!/usr/bin/env bash
# From a clone to compiled kernels: installs what is missing, builds Release into build/, compiles
# the decode kernels of Kimi K2.5 (EP8) for H200 and B300 into the default cache, and shows what is
# decided for 20 tokens per GPU. Needs no GPU. A second run does only what is left to do.
set -euo pipefail

case ${1:-} in
  '') ;;
  -h | --help)
    printf 'usage: tools/quickstart.sh\n\n'
    sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  *)
    printf "error: no arguments are taken, found '%s'\n" "$1" >&2
    exit 2
    ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
source "$root/tools/install_packages.sh"

chord_install_packages
callers=${CHORD_NVRTC_LIBRARY:-}
chord_find_nvrtc "$build"

generator=()
[[ -e $build/CMakeCache.txt ]] || generator=(-G Ninja)
cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" --target chord-tools --parallel "$(nproc)"

printf '\nKimi K2.5, EP8, decode: kernels for sm_90a and sm_103a\n'
"$build/bin/chord-prewarm" --model kimi-k2.5 --ep 8 --role decode --arch sm_90a --arch sm_103a

# 20 tokens on each of 8 GPUs, 8 routes a token: 160 routed rows reach the experts of one GPU.
printf '\n20 tokens per GPU:\n\n'
"$build/bin/chord-explain" --model kimi-k2.5 --ep 8 --role decode --rows 160

if [[ ${CHORD_NVRTC_LIBRARY:-} != "$callers" ]]; then
  printf '\nTo compile more kernels from this shell, first:\n'
  printf '  export CHORD_NVRTC_LIBRARY=%q\n' "$CHORD_NVRTC_LIBRARY"
fi
