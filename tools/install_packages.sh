#!/usr/bin/env bash
# What the build needs, installed only where it is missing. Sourced by quickstart.sh and test.sh:
#
#   source tools/install_packages.sh
#   chord_install_packages            # Debian packages
#   chord_install_servers             # redis-server and nginx, for tests; nothing is started
#   chord_install_packaging           # for Debian packages, and tests of what is installed
#   chord_find_nvrtc build            # exports what an NVRTC off the loader's path needs
#   chord_find_nvdisasm build         # exports CHORD_NVDISASM; a warning if there is none
#
# Run by itself it does all for ./build. Knows Debian and Ubuntu; elsewhere it says what is needed.

CHORD_PACKAGES=(g++ cmake ninja-build libfmt-dev libspdlog-dev nlohmann-json3-dev libxxhash-dev
  libgtest-dev libcli11-dev ca-certificates libsodium-dev libzstd-dev libhiredis-dev
  libcurl4-openssl-dev libarchive-dev)
# Debian packages (cpack asks `file` which binaries have dependencies), and what the tests of an
# installed library use: pkg-config, and a check of man pages.
CHORD_PACKAGING_PACKAGES=(dpkg-dev file pkgconf groff-base)
# The stores that the tests of the remote tier are run against.
CHORD_SERVER_PACKAGES=(redis-server nginx-light)
CHORD_WHEEL_PACKAGES=(python3 python3-pip)

# 13.0 is the first toolkit whose compiler was tried for every architecture here; pinned by content.
CHORD_NVRTC_WHEEL='nvidia-cuda-nvrtc==13.0.88'
CHORD_NVRTC_HASHES=(
  sha256:ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575  # x86_64
  sha256:d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b  # aarch64
)

# Newer than that compiler; disassembles all three architectures.
CHORD_NVDISASM_WHEEL='nvidia-cuda-nvdisasm==13.2.86'
CHORD_NVDISASM_HASHES=(
  sha256:53606e719ecae07a2335f95902d5a1393a0cc1c317499ee7ffcf628a44385f2c  # x86_64
  sha256:d02c627f7aecfcac4dd5e923e94adeaa6607c5fdae8df750b01ad948d38941d3  # aarch64
)

chord_fail() {
  printf 'error: %s\n' "$@" >&2
  return 1
}

# The packages among the arguments that dpkg does not report as installed.
chord_missing_packages() {
  local package state
  for package in "$@"; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || state=absent
    [[ $state == installed ]] || printf '%s\n' "$package"
  done
}

chord_apt_install() {
  local missing as_root=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    command -v g++ >/dev/null && command -v cmake >/dev/null && return 0
    chord_fail "this system has no apt-get" "install what these Debian packages hold: $*"
    return 1
  fi
  mapfile -t missing < <(chord_missing_packages "$@")
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      chord_fail "missing packages: ${missing[*]}" \
        "run as root: apt-get install ${missing[*]}" "(this user is not root and has no sudo)"
      return 1
    fi
    as_root=(sudo)
  fi
  printf 'installing %s\n' "${missing[*]}"
  "${as_root[@]}" apt-get update -qq ||
    printf 'warning: apt-get update failed; trying with the package lists that are here\n' >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
    chord_fail "apt-get could not install: ${missing[*]}" \
      "check the network and the package sources, then run this again"
}

chord_install_packages() {
  chord_apt_install "${CHORD_PACKAGES[@]}"
}

chord_install_packaging() {
  chord_apt_install "${CHORD_PACKAGING_PACKAGES[@]}"
}

# Debian starts a service as it installs it; these are wanted as programs only.
chord_install_servers() {
  local missing guard=/usr/sbin/policy-rc.d
  mapfile -t missing < <(chord_missing_packages "${CHORD_SERVER_PACKAGES[@]}")
  ((${#missing[@]})) || return 0
  if [[ ! -e $guard && -w ${guard%/*} ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$guard" && chmod 755 "$guard"
    chord_apt_install "${CHORD_SERVER_PACKAGES[@]}" || { rm -f "$guard"; return 1; }
    rm -f "$guard"
  else
    chord_apt_install "${CHORD_SERVER_PACKAGES[@]}"
  fi
}

# Version 13 only: Debian's own toolkit is too old for these architectures.
chord_has_nvrtc() {
  local folder
  { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } |
    grep -q 'libnvrtc\.so\.13 ' && return 0
  for folder in /usr/local/cuda*/lib{64,} "${CUDA_HOME:-}"/lib{64,} "${CUDA_PATH:-}"/lib{64,}; do
    [[ -e $folder/libnvrtc.so.13 ]] || continue
    export CHORD_NVRTC_LIBRARY=$folder/libnvrtc.so.13
    return 0
  done
  return 1
}

# chord_fetch_wheel TARGET WHEEL HASH...: the folder TARGET then holds the wheel's files.
chord_fetch_wheel() {
  local target=$1 fresh=$1.partial wheel=$2 hash line=$2
  chord_apt_install "${CHORD_WHEEL_PACKAGES[@]}" || return 1
  for hash in "${@:3}"; do line+=" --hash=$hash"; done
  printf 'fetching %s\n' "$wheel"
  rm -rf "$fresh" && mkdir -p "$fresh" || return 1
  printf '%s\n' "$line" >"$fresh/requirements.txt"
  if ! PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check \
    --no-deps --require-hashes --only-binary=:all: --target "$fresh/site" \
    -r "$fresh/requirements.txt"; then
    rm -rf "$fresh"
    return 1
  fi
  rm -rf "$target" && mv "$fresh/site" "$target" && rm -rf "$fresh"
}

chord_fetch_nvrtc() {
  chord_fetch_wheel "$1" "$CHORD_NVRTC_WHEEL" "${CHORD_NVRTC_HASHES[@]}" ||
    chord_fail "no NVRTC on this machine, and $CHORD_NVRTC_WHEEL could not be fetched" \
      "install a CUDA 13 toolkit, or set CHORD_NVRTC_LIBRARY to a libnvrtc.so.13"
}

# chord_find_nvrtc BUILD: the caller's own choice, else an installed one, else the wheel.
chord_find_nvrtc() {
  local target=$1/nvrtc library
  [[ -z ${CHORD_NVRTC_LIBRARY:-} ]] || return 0
  chord_has_nvrtc && return 0
  library=$target/nvidia/cu13/lib/libnvrtc.so.13
  [[ -e $library ]] || chord_fetch_nvrtc "$target" || return 1
  [[ -e $library ]] || chord_fail "the wheel $CHORD_NVRTC_WHEEL holds no $library" || return 1
  export CHORD_NVRTC_LIBRARY=$library
}

# chord_find_nvdisasm BUILD: the caller's own choice, else an installed one, else the wheel. Only
# tests that count instructions and chord-explain --sass want it, so that nothing fails without.
chord_find_nvdisasm() {
  local target=$1/nvdisasm program
  [[ -z ${CHORD_NVDISASM:-} ]] || return 0
  # Where the library looks first. Debian's own is too old for these architectures.
  program=$(command -v nvdisasm) || program=/usr/local/cuda/bin/nvdisasm
  "$program" --version 2>/dev/null | grep -q 'release 1[3-9]\.' && return 0
  program=$target/nvidia/cu13/bin/nvdisasm
  [[ -e $program ]] ||
    PIP_RETRIES=1 chord_fetch_wheel "$target" "$CHORD_NVDISASM_WHEEL" \
      "${CHORD_NVDISASM_HASHES[@]}" || true
  if ! { [[ -e $program ]] && chmod u+x "$program"; }; then
    printf 'warning: %s\n' "no nvdisasm on this machine, and no $CHORD_NVDISASM_WHEEL from PyPI" \
      "tests that count instructions are skipped" >&2
    return 0
  fi
  export CHORD_NVDISASM=$program
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  chord_install_packages
  chord_find_nvrtc "$PWD/build"
  chord_find_nvdisasm "$PWD/build"
fi
