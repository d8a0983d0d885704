#!/usr/bin/env bash
# What limits the kernel: its counters under Nsight Compute, one launch per regime, and its times
# with parts of the main loop taken away. Sourced by tools/gpu_check.sh, which has the binaries, the
# cache and the error messages. Needs no more than ncu, awk and sed.

# Parts of labels, each of exactly one case.
mma_regimes=(
  'h200_decode_ep8 gate_up 4096x7168 e48 tokens_per_gpu 20 random'
  'h200_decode_ep8 gate_up 4096x7168 e48 tokens_per_gpu 50 random'
  'h200_decode_ep8 down 7168x2048 e48 tokens_per_gpu 20 random'
  'h200_decode_ep8 down 7168x2048 e48 tokens_per_gpu 50 random'
  'h200_grouped_decode gate_up 4096x7168 e48 tokens_per_expert 8 exact'
  'h200_grouped_decode gate_up 4096x7168 e48 tokens_per_expert 16 exact'
  'h200_tp8 gate_up 512x7168 e384 tokens_total 1 random'
  'h200_tp8 gate_up 512x7168 e384 tokens_total 4 random'
  'h200_tp8 gate_up 512x7168 e384 tokens_total 16 random'
  'h200_tp8 down 7168x256 e384 tokens_total 1 random'
  'h200_tp8 down 7168x256 e384 tokens_total 4 random'
  'h200_decode_ep8 gate_up 4096x7168 e12 tokens_per_gpu 50 random'
)
# Counters only: what --ablation takes away is parts of the mma loop.
wgmma_regimes=(
  'h200_prefill_ep8 gate_up 4096x7168 e48 tokens_total 1024 random'
  'h200_prefill_ep8 gate_up 4096x7168 e48 tokens_total 2048 random'
  'h200_prefill_ep8 gate_up 4096x7168 e48 tokens_total 16384 random'
  'h200_prefill_ep8 down 7168x2048 e48 tokens_total 2048 random'
  'h200_tp8 down 7168x256 e384 tokens_total 1024 random'
  'h200_tp8 down 7168x256 e384 tokens_total 4096 random'
  'h200_tp8 down 7168x256 e384 tokens_total 16384 random'
  'h200_grouped_decode gate_up 4096x7168 e48 tokens_per_expert 64 exact'
  'h200_grouped_prefill down 7168x2048 e48 rows_per_expert 256 exact'
)
regimes=("${mma_regimes[@]}" "${wgmma_regimes[@]}")
profile_limit_s=75   # of one regime
ablation_limit_s=240 # of all of them

# All kernels of ours have one name. chord-bench --check-only launches the four that make weights
# and activations, then the one to profile, which is told from the others by its threads. Should it
# not be there, it is looked for among all.
profiled_launches=(--launch-skip 4 --launch-count 1)
all_launches=(--launch-count 10)
kernel_threads=384

# Field, its head in the table, metric, and what the metric's base unit is divided by.
profile_fields='
duration_us    us      gpu__time_duration.sum                                                 1e3
dram_read_mb   MB      dram__bytes_read.sum                                                   1e6
dram_write_mb  written dram__bytes_write.sum                                                  1e6
dram_percent   DRAM%   dram__throughput.avg.pct_of_peak_sustained_elapsed                     1
l2_hit_percent L2hit%  lts__t_sector_hit_rate.pct                                             1
issue_percent  issue%  smsp__issue_active.avg.pct_of_peak_sustained_active                    1
alu_percent    ALU%    sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active            1
fma_percent    FMA%    sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active            1
lsu_percent    LSU%    sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active            1
tensor_percent tensor% sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active         1
hmma_percent   HMMA%   sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active 1
sm_clock_ghz   GHz     sm__cycles_elapsed.avg.per_second                                      1e9
registers      regs    launch__registers_per_thread                                           1
shared_bytes   shared  launch__shared_mem_per_block_dynamic                                   1
'
stall_reasons='barrier branch_resolving dispatch_stall drain gmma imc_miss lg_throttle
long_scoreboard math_pipe_throttle membar mio_throttle misc no_instruction not_selected
short_scoreboard sleeping tex_throttle wait'

profile_metrics() {
  local reason
  awk 'NF { print $3 }' <<<"$profile_fields"
  for reason in $stall_reasons; do
    printf 'smsp__average_warps_issue_stalled_%s_per_issue_active.ratio\n' "$reason"
  done
}

# From the CSV of ncu (file, case, key, file for a line of the table) to one JSON object. Ends with
# 1 where there is no CSV, with 2 where another launch than the kernel's was profiled.
profile_of_csv() {
  LC_ALL=C awk -v fields="${profile_fields//$'\n'/ }" -v name="$2" -v key="$3" \
    -v threads="$kernel_threads" -v table="$4" '
    # Every cell of ncu is quoted, so that commas inside of them are no separators.
    function cells_of(line, into) {
      sub(/\r$/, "", line)
      gsub(/^"|"$/, "", line)
      return split(line, into, /","/)
    }
    function base_units(unit) {
      if (unit ~ /^(us|usecond|Kbyte|Khz|KHz)$/) return 1e3
      if (unit ~ /^(ms|msecond|Mbyte|Mhz|MHz|cycle\/usecond)$/) return 1e6
      if (unit ~ /^(s|second|Gbyte|Ghz|GHz|cycle\/nsecond)$/) return 1e9
      return 1
    }
    # The three largest, by name.
    function top_stalls(   rank, reason, best, text) {
      for (rank = 1; rank <= 3; rank++) {
        best = ""
        for (reason in stalled)
          if (best == "" || stalled[reason] > stalled[best]) best = reason
        if (best == "") break
        text = text (rank > 1 ? ", " : "") sprintf("\"%s\": %.3g", best, stalled[best])
        stall_line = stall_line sprintf(" %s %.3g", best, stalled[best])
        delete stalled[best]
      }
      return text
    }
    /^"ID",/ {
      columns = cells_of($0, head)
      for (i = 1; i <= columns; i++) column[head[i]] = i
      next
    }
    !columns || !/^"/ { next }
    {
      cells_of($0, cell)
      block = cell[column["Block Size"]]
      rows++
      if (block !~ "^[(]?" threads "[,)]") next
      metric = cell[column["Metric Name"]]
      value = cell[column["Metric Value"]]
      gsub(/,/, "", value)
      if (value !~ /^[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$/) next
      found[metric] = value * base_units(cell[column["Metric Unit"]])
      any = 1
      if (metric !~ /_issue_stalled_/) next
      reason = metric
      sub(/^.*_issue_stalled_/, "", reason)
      sub(/_per_issue_active.*$/, "", reason)
      stalled[reason] = found[metric]
    }
    END {
      if (!any) exit rows ? 2 : 1
      printf "    {\n      \"case\": \"%s\",\n      \"key\": \"%s\"", name, key
      count = split(fields, word)
      for (i = 1; i < count; i += 4) {
        metric = word[i + 2]
        if (metric in found) {
          value = found[metric] / word[i + 3]
          printf ",\n      \"%s\": %.7g", word[i], value
          line = line sprintf(value < 1e4 ? " %8.4g" : " %8d", value)
        } else {
          printf ",\n      \"%s\": null", word[i]
          line = line sprintf(" %8s", "-")
          missing = missing (missing ? ", " : "") "\"" metric "\""
        }
      }
      printf ",\n      \"stalled_warps_per_issue\": {%s}", top_stalls()
      printf ",\n      \"missing\": [%s]\n    }\n", missing
      printf "%-68s%s %s\n", name, line, stall_line >table
    }' "$1"
}

profile_head() {
  printf '%-68s' case
  awk 'NF { printf " %8s", $2 }' <<<"$profile_fields"
  printf '  warps stalled per issue\n'
}

# Runs ncu on one case; asks again without the metrics that it says it does not know.
profile_case() {
  local ncu=$1 name=$2 log=$3 run=$4 metrics status=0 metric dropped
  metrics=$(profile_metrics)
  for _ in 1 2 3 4; do
    status=0
    rm -f "$log"
    timeout --kill-after=10 "$profile_limit_s" "$ncu" --clock-control none --csv \
      --print-units base --kernel-name chord_kernel "${profiled_launches[@]}" \
      --metrics "$(paste -sd, <<<"$metrics")" --log-file "$log" \
      "$bin/chord-bench" --check-only --json --set all --cases "$name" </dev/null >"$run" \
      2>"$run.err" || status=$?
    if grep -q '^"ID",' "$log" 2>/dev/null || ((status == 124 || status == 137)); then break; fi
    dropped=0
    for metric in $metrics; do
      grep -hF -- "$metric" "$log" "$run.err" 2>/dev/null | grep -qE '^==(ERROR|WARNING)==' ||
        continue
      metrics=$(grep -vxF -- "$metric" <<<"$metrics" || true)
      dropped=1
    done
    ((dropped)) && [[ -n $metrics ]] || break
  done
  return "$status"
}

# Runs and parses, and ends as profile_of_csv does. Leaves how the run ended in `status`.
profile_regime() {
  local ncu=$1 name=$2 log=$3 run=$4 parsed=0
  status=0
  profile_case "$ncu" "$name" "$log" "$run" || status=$?
  profile_of_csv "$log" "$name" "$(text_of_field key "$run")" "$scratch/line" \
    >"$scratch/fragment" 2>/dev/null || parsed=$?
  if ((parsed == 2)) && [[ ${profiled_launches[*]} != "${all_launches[*]}" ]]; then
    profiled_launches=("${all_launches[@]}")
    profile_regime "$@"
    return
  fi
  return "$parsed"
}

# The text of a field of what chord-bench printed.
text_of_field() { sed -n "s/^ *\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$2" | head -1; }

write_profile() {
  local run=$1 fragments=$2 field
  printf '{\n  "about": "%s",\n' \
    "Written by tools/gpu_check.sh profile: one launch per case under ncu, clocks left alone."
  for field in gpu driver nvrtc kernel_digest date; do
    printf '  "%s": "%s",\n' "$field" "$(text_of_field "$field" "$run")"
  done
  printf '  "regimes": [\n'
  sed 's/^    }$/    },/; $ s/,$//' "$fragments"
  printf '  ]\n}\n'
}

# Why a regime has no counters.
explain_missing() {
  local name=$1 parsed=$2 status=$3 log=$4 run=$5
  if ((parsed == 2)); then
    printf '%s: ncu profiled another launch than that of the kernel\n' "$name"
  else
    printf '%s: ncu gave no counters (%s)\n' "$name" "$(ended "$status")"
    cat "$log" "$run" "$run.err" 2>/dev/null | grep -E '^==(ERROR|WARNING)|error' | tail -5 || true
  fi
}

# Ends with 3 where there are no counters, with 1 where the kernel's result was wrong.
profile() {
  local out=${OUT:-$build/out} ncu name log run first='' status parsed verdict=0
  ncu=$(find_cuda_tool ncu)
  [[ -n $ncu ]] || fail 3 "no ncu on this machine: nothing was profiled"
  use_cache_copy
  mkdir -p "$out"
  log=$scratch/ncu.log run=$scratch/run.json
  : >"$scratch/fragments"
  profile_head
  for name in "${regimes[@]}"; do
    parsed=0
    profile_regime "$ncu" "$name" "$log" "$run" || parsed=$?
    if ((parsed != 0)); then
      explain_missing "$name" "$parsed" "$status" "$log" "$run"
      ((verdict == 1)) || verdict=3
      # Where the first gives nothing, neither will the others.
      [[ -n $first ]] || fail 3 "ncu can not profile the kernel here: nothing was profiled"
    elif ((status != 0)) || ! grep -q '"rel_l2"' "$run" || grep -q '"wrong"' "$run"; then
      printf '%s: the result is wrong, or the run %s\n' "$name" "$(ended "$status")"
      verdict=1
    else
      cat "$scratch/fragment" >>"$scratch/fragments"
      cat "$scratch/line"
      first=${first:-$scratch/first.json}
      [[ -e $first ]] || cp "$run" "$first"
    fi
  done
  if [[ -n $first ]]; then
    write_profile "$first" "$scratch/fragments" >"$out/h200_profile.json"
    printf 'results: %s\n' "$out/h200_profile.json"
  fi
  return "$verdict"
}

ablation_flags() {
  local name
  for name in "${mma_regimes[@]}"; do printf -- '--cases\n%s\n' "$name"; done
}

ablate() {
  local out=${OUT:-$build/out} flags status=0
  use_cache_copy
  mkdir -p "$out"
  mapfile -t flags < <(ablation_flags)
  timeout --kill-after=10 "$ablation_limit_s" "$bin/chord-bench" --ablation --json --set all \
    "${flags[@]}" </dev/null >"$scratch/stages.json" 2>"$scratch/stages.log" || status=$?
  printf 'ablation: %s\n' "$(ended $status)"
  if ((status != 0)); then
    cat "$scratch/stages.json" "$scratch/stages.log"
    return 1
  fi
  cp "$scratch/stages.json" "$out/h200_stages.json"
  printf 'results: %s\n' "$out/h200_stages.json"
}
