// tools/gpu_check.sh profile and ablation, in a folder of its own with an ncu and a chord-bench
// that are shell scripts: what is read out of the profiler's CSV, and what is never called done.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/tools/process.h"
#include "tools/bench/bench_case.h"

namespace chord::tools_test {
namespace {

namespace fs = std::filesystem;

// What chord-bench --check-only --json prints, as far as the script reads it.
constexpr const char* kRight = R"(cat <<'END'
{
  "gpu": "NVIDIA H200",
  "driver": "580.159.04, CUDA 13.0",
  "nvrtc": "NVRTC 13.0.88",
  "kernel_digest": "00d1",
  "date": "2026-11-30",
  "rows": [
    {
      "rel_l2": 0.0016,
      "key": "abc123"
    }
  ]
}
END
)";

// Finds the log file among the flags of ncu and runs the program behind them.
constexpr const char* kNcuHead = R"sh(metrics= log= skip=
while (($#)); do
  case $1 in
    --metrics) metrics=$2; shift 2 ;;
    --log-file) log=$2; shift 2 ;;
    --launch-skip) skip=$2; shift 2 ;;
    --clock-control | --print-units | --kernel-name | --launch-count) shift 2 ;;
    --csv) shift ;;
    *) break ;;
  esac
done
"$@"
row() {  # metric, unit, value
  printf '"0","77","chord-bench","127.0.0.1","chord_kernel","1","13","%s","(132, 1, 1)",' "$block"
  printf '"0","9.0","Command line profiler metrics","%s","%s","%s"\n' "$1" "$2" "$3"
}
csv() {
  printf '==PROF== Connected to process 77\n==PROF== Disconnected from process 77\n'
  printf '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
  printf '"Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit",'
  printf '"Metric Value"\n'
  row dram__bytes_read.sum byte 776,600,000
  row gpu__time_duration.sum ns 202,176
  row launch__registers_per_thread register/thread 168
  row launch__shared_mem_per_block_dynamic byte/block 215,296
  row lts__t_sector_hit_rate.pct % "$hit_rate"
  row sm__cycles_elapsed.avg.per_second hz 1,690,000,000
  row smsp__issue_active.avg.pct_of_peak_sustained_active % 45.25
  row smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio inst 0.01
  row smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio inst 2.50
  row smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio inst 0.75
  row smsp__average_warps_issue_stalled_wait_per_issue_active.ratio inst 1.20
}
block='(384, 1, 1)' hit_rate=3.5
)sh";

class ProfileSandbox {
 public:
  ProfileSandbox() {
    for (const char* folder : {"tools", "build-gpu/bin", "path", "out"})
      fs::create_directories(scratch_.path(folder));
    for (const char* script : {"tools/gpu_check.sh", "tools/gpu_profile.sh"})
      fs::copy(std::string(CHORD_SOURCE_DIR "/") + script, scratch_.path(script));
    add_script("build-gpu/bin/chord-test-gpu", "exit 1");
    add_bench(kRight);
  }

  void add_bench(const std::string& body) { add_script("build-gpu/bin/chord-bench", body); }
  void add_ncu(const std::string& body) { add_script("path/ncu", kNcuHead + body); }

  Outcome run(const std::string& command) const {
    return run_program(scratch_.path("tools/gpu_check.sh"), {command},
                       {{"PATH", scratch_.path("path") + ":/usr/bin:/bin"},
                        {"OUT", scratch_.path("out")},
                        {"CHORD_W4A16_BM", "8"}});
  }

  bool has_result(const std::string& name) const {
    return fs::exists(scratch_.path("out/" + name));
  }
  Json result(const std::string& name) const {
    return Json::parse(read_file(scratch_.path("out/" + name)), nullptr, false);
  }

 private:
  void add_script(const std::string& name, const std::string& body) {
    const std::string path = scratch_.path(name);
    write_file(path, "#!/bin/bash\n" + body + "\n");
    fs::permissions(path, fs::perms::owner_all);
  }

  ScratchFolder scratch_;
};

std::vector<std::string> regimes(const std::string& array = "regimes") {
  const Outcome outcome =
      run_program("/bin/bash",
                  {"-c", "source '" CHORD_SOURCE_DIR "/tools/gpu_profile.sh'; printf '%s\\n' \"${" +
                             array + "[@]}\""});
  std::vector<std::string> names;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  return names;
}

TEST(ProfileScript, EveryRegimeIsOneCase) {
  const auto cases = bench::embedded_cases();
  ASSERT_TRUE(cases.ok());
  ASSERT_GE(regimes().size(), 9u);
  for (const std::string& name : regimes()) {
    const auto chosen = bench::choose_cases(*cases, "all", {name});
    ASSERT_TRUE(chosen.ok()) << name;
    ASSERT_EQ(chosen->size(), 1u) << name;
    EXPECT_EQ(chosen->front().label(), name);
  }
}

TEST(ProfileScript, KeepsTheCountersOfEveryRegime) {
  ProfileSandbox sandbox;
  sandbox.add_ncu("csv >\"$log\"");
  const Outcome outcome = sandbox.run("profile");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  const Json file = sandbox.result("h200_profile.json");
  ASSERT_TRUE(file.is_object());
  EXPECT_EQ(file["gpu"], "NVIDIA H200");
  EXPECT_EQ(file["kernel_digest"], "00d1");
  ASSERT_EQ(file["regimes"].size(), regimes().size());
  const Json& first = file["regimes"][0];
  EXPECT_EQ(first["case"], regimes()[0]);
  EXPECT_EQ(first["key"], "abc123");
  EXPECT_DOUBLE_EQ(first["dram_read_mb"], 776.6);
  EXPECT_DOUBLE_EQ(first["duration_us"], 202.176);
  EXPECT_DOUBLE_EQ(first["sm_clock_ghz"], 1.69);
  EXPECT_EQ(first["registers"], 168);
  EXPECT_EQ(first["shared_bytes"], 215296);
  EXPECT_EQ(first["stalled_warps_per_issue"],
            (Json{{"long_scoreboard", 2.5}, {"wait", 1.2}, {"short_scoreboard", 0.75}}));
  EXPECT_NE(outcome.out.find(regimes()[8]), std::string::npos) << outcome.out;
}

TEST(ProfileScript, AMissingMetricLosesNoOther) {
  ProfileSandbox sandbox;
  sandbox.add_ncu("hit_rate=n/a; csv >\"$log\"");
  ASSERT_EQ(sandbox.run("profile").exit_code, 0);
  const Json first = sandbox.result("h200_profile.json")["regimes"][0];
  EXPECT_TRUE(first["l2_hit_percent"].is_null());
  EXPECT_DOUBLE_EQ(first["issue_percent"], 45.25);
  EXPECT_NE(first["missing"].dump().find("lts__t_sector_hit_rate.pct"), std::string::npos);
}

TEST(ProfileScript, AsksAgainWithoutWhatNcuDoesNotKnow) {
  ProfileSandbox sandbox;
  sandbox.add_ncu(
      "if [[ $metrics == *sm__pipe_tensor_cycles_active* ]]; then\n"
      "  printf '==ERROR== Failed to find metric "
      "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active\\n' >\"$log\"; exit 1\n"
      "fi\ncsv >\"$log\"");
  const Outcome outcome = sandbox.run("profile");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  const Json first = sandbox.result("h200_profile.json")["regimes"][0];
  EXPECT_TRUE(first["tensor_percent"].is_null());
  EXPECT_DOUBLE_EQ(first["dram_read_mb"], 776.6);
}

TEST(ProfileScript, SaysThatNcuCanNotRun) {
  ProfileSandbox sandbox;
  sandbox.add_ncu("printf '==ERROR== ERR_NVGPUCTRPERM: no permission\\n' >\"$log\"; exit 1");
  const Outcome outcome = sandbox.run("profile");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.find("ERR_NVGPUCTRPERM"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("nothing was profiled"), std::string::npos) << outcome.err;
  EXPECT_FALSE(sandbox.has_result("h200_profile.json"));
}

TEST(ProfileScript, ARegimeWithoutCountersIsNotDone) {
  ProfileSandbox sandbox;
  sandbox.add_ncu("[[ $* == *h200_tp8* ]] || csv >\"$log\"");
  const Outcome outcome = sandbox.run("profile");
  EXPECT_EQ(outcome.exit_code, 3);
  const auto all = regimes();
  const auto of_tp8 = std::count_if(all.begin(), all.end(), [](const std::string& name) {
    return name.find("h200_tp8") != std::string::npos;
  });
  ASSERT_GT(of_tp8, 0);
  EXPECT_EQ(sandbox.result("h200_profile.json")["regimes"].size(), all.size() - of_tp8)
      << outcome.out;
}

TEST(ProfileScript, TakesNoOtherLaunchForTheKernels) {
  ProfileSandbox sandbox;
  sandbox.add_ncu("block='(256, 1, 1)'; csv >\"$log\"");
  const Outcome outcome = sandbox.run("profile");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.find("another launch"), std::string::npos) << outcome.out;
}

TEST(ProfileScript, LooksForTheKernelAmongAllLaunchesWhereItIsAnotherOne) {
  ProfileSandbox sandbox;
  sandbox.add_ncu(
      "block='(128, 1, 1)' hit_rate=99; csv >\"$log\"; [[ -n $skip ]] && exit\n"
      "block='(384, 1, 1)' hit_rate=3.5; csv >>\"$log\"\n"
      "block='(256, 1, 1)' hit_rate=98; csv >>\"$log\"");
  const Outcome outcome = sandbox.run("profile");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_DOUBLE_EQ(sandbox.result("h200_profile.json")["regimes"][0]["l2_hit_percent"], 3.5);
}

TEST(ProfileScript, AWrongResultIsAFailure) {
  ProfileSandbox sandbox;
  sandbox.add_ncu("csv >\"$log\"");
  sandbox.add_bench("printf '{\\n  \"rel_l2\": 1,\\n  \"wrong\": \"row 3\"\\n}\\n'");
  const Outcome outcome = sandbox.run("profile");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_FALSE(sandbox.has_result("h200_profile.json"));
}

TEST(ProfileScript, SaysThatThereIsNoNcu) {
  if (fs::exists("/usr/local/cuda/bin/ncu") || fs::exists("/opt/nvidia/nsight-compute"))
    GTEST_SKIP() << "this machine has an ncu";
  const Outcome outcome = ProfileSandbox().run("profile");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("no ncu"), std::string::npos) << outcome.err;
}

TEST(AblationScript, RunsTheRegimesAndKeepsTheJson) {
  ProfileSandbox sandbox;
  sandbox.add_bench(
      "[[ -z ${CHORD_W4A16_BM:-} && $1 == --ablation ]] || exit 7\n"
      "printf '{\"last\": \"%s\", \"flags\": %d}\\n' \"${@: -1}\" $#");
  const Outcome outcome = sandbox.run("ablation");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(sandbox.result("h200_stages.json")["last"], regimes("mma_regimes").back());
  // --ablation --json --set all, and --cases before each.
  EXPECT_EQ(sandbox.result("h200_stages.json")["flags"], 4 + 2 * regimes("mma_regimes").size());
}

TEST(AblationScript, AFailureIsSaid) {
  ProfileSandbox sandbox;
  sandbox.add_bench("printf 'error: a kernel hung\\n' >&2; exit 1");
  const Outcome outcome = sandbox.run("ablation");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find("a kernel hung"), std::string::npos) << outcome.out;
  EXPECT_FALSE(sandbox.has_result("h200_stages.json"));
}

}  // namespace
}  // namespace chord::tools_test
