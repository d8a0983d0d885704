// tools/test.sh itself, in a folder of its own with a build that does nothing and test binaries
// that are shell scripts: what it counts, what it calls a failure, how it ends.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPass =
    R"(<testcase name="A" status="run" result="completed" classname="S" />)";
constexpr const char* kSkip =
    R"(<testcase name="B" status="run" result="skipped" classname="S">
       <skipped message="/a/b.cpp:3&#x0A;no GPU &amp; no driver"><![CDATA[]]></skipped>
     </testcase>)";
constexpr const char* kFail =
    R"(<testcase name="C" status="run" result="completed" classname="S">
       <failure message="wrong" type=""><![CDATA[]]></failure>
     </testcase>)";
constexpr const char* kDisabled =
    R"(<testcase name="D" status="notrun" result="suppressed" classname="S" />)";

class Sandbox {
 public:
  Sandbox() {
    fs::create_directories(scratch_.path("tools"));
    for (const char* build : {"build", "build-address-undefined", "build-thread"})
      fs::create_directories(scratch_.path(build + std::string("/bin")));
    fs::create_directories(scratch_.path("path"));
    fs::copy(CHORD_SOURCE_DIR "/tools/test.sh", scratch_.path("tools/test.sh"));
    write_file(scratch_.path("tools/install_packages.sh"),
               "chord_install_packages() { :; }\nchord_install_servers() { :; "
               "}\nchord_install_packaging() { :; }\nchord_find_nvrtc() { :; }\n"
               "chord_find_nvdisasm() { export CHORD_NVDISASM=/found/for/tests; }\n");
    add_script("path/cmake", "exit 0");
  }

  // A test binary that writes these <testcase> elements as its report, then runs `body`.
  void add_tests(const std::string& name, const std::string& cases, const std::string& body,
                 const std::string& build = "build") {
    write_file(scratch_.path(name + ".xml"), "<testsuite>\n" + cases + "\n</testsuite>\n");
    add_script(build + "/bin/chord-test-" + name,
               "for a; do case $a in --gtest_output=xml:*) cp '" + scratch_.path(name + ".xml") +
                   "' \"${a#*xml:}\";; esac; done\n" + body);
  }

  void add_script(const std::string& name, const std::string& body) {
    const std::string path = scratch_.path(name);
    write_file(path, "#!/bin/bash\n" + body + "\n");
    fs::permissions(path, fs::perms::owner_all);
  }

  Outcome run(const std::string& arguments = "") const {
    return run_program(
        scratch_.path("tools/test.sh"), words(arguments),
        {{"PATH", scratch_.path("path") + ":/usr/bin:/bin"}, {"CHORD_W4A16_BM", "8"}});
  }

 private:
  ScratchFolder scratch_;
};

std::string last_line(const std::string& text) {
  const std::string trimmed = text.substr(0, text.find_last_not_of('\n') + 1);
  return trimmed.substr(trimmed.rfind('\n') + 1);
}

TEST(TestScript, CountsOverAllBinariesAndGivesTheReasonOfASkip) {
  Sandbox sandbox;
  sandbox.add_tests("one", std::string(kPass) + "\n" + kSkip, "exit 0");
  sandbox.add_tests("two", std::string(kPass) + "\n" + kDisabled, "exit 0");
  const Outcome outcome = sandbox.run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(last_line(outcome.out), "2 passed, 0 failed, 1 skipped");
  EXPECT_NE(outcome.out.find("skipped S.B: no GPU & no driver\n"), std::string::npos)
      << outcome.out;
}

TEST(TestScript, SumsOverTheSanitizersAndSaysWhichOneATestIsOf) {
  Sandbox sandbox;
  sandbox.add_tests("one", kPass, "exit 0");
  sandbox.add_tests("two", std::string(kPass) + "\n" + kSkip, "exit 0", "build-address-undefined");
  sandbox.add_tests("three", std::string(kPass) + "\n" + kFail, "exit 1", "build-thread");
  const Outcome outcome = sandbox.run("--sanitizers");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(last_line(outcome.out), "3 passed, 1 failed, 1 skipped");
  EXPECT_NE(outcome.out.find("skipped (address,undefined) S.B: no GPU"), std::string::npos);
  EXPECT_NE(outcome.out.find("failed (thread) S.C\n"), std::string::npos) << outcome.out;
}

TEST(TestScript, AReportOfASanitizerIsAFailureThoughEveryTestPassed) {
  Sandbox sandbox;
  sandbox.add_tests("one", kPass, "echo 'data race'; exit 66", "build-thread");
  const Outcome outcome = sandbox.run("--sanitize thread");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(last_line(outcome.out), "1 passed, 1 failed, 0 skipped");
  EXPECT_NE(outcome.out.find("data race"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("failed (thread) chord-test-one ended with exit code 66"),
            std::string::npos)
      << outcome.out;
}

TEST(TestScript, JobsRunAtTheSameTimeInFoldersOfTheirOwn) {
  // Each waits for the other, and would find its file in a folder that both have.
  const auto body = [](const std::string& own, const std::string& other) {
    return "[[ ! -e $TMPDIR/mark ]] || exit 1; touch $TMPDIR/mark; cd ${0%/*}; touch " + own +
           "; for i in {1..200}; do [[ ! -e " + other + " ]] || exit 0; sleep 0.05; done; exit 1";
  };
  Sandbox sandbox;
  sandbox.add_tests("one", kPass, body("first", "second"));
  sandbox.add_tests("two", kPass, body("second", "first"));
  const Outcome outcome = sandbox.run("--jobs 2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(last_line(outcome.out), "2 passed, 0 failed, 0 skipped");
}

TEST(TestScript, AFailedTestFailsTheRun) {
  Sandbox sandbox;
  sandbox.add_tests("one", std::string(kPass) + "\n" + kFail, "exit 1");
  const Outcome outcome = sandbox.run();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(last_line(outcome.out), "1 passed, 1 failed, 0 skipped");
  EXPECT_NE(outcome.out.find("failed S.C\n"), std::string::npos);
}

TEST(TestScript, ACrashIsAFailure) {
  Sandbox sandbox;
  sandbox.add_tests("good", kPass, "exit 0");
  sandbox.add_script("build/bin/chord-test-bad", "kill -SEGV $$");
  const Outcome outcome = sandbox.run();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(last_line(outcome.out), "1 passed, 1 failed, 0 skipped");
  EXPECT_NE(outcome.out.find("chord-test-bad"), std::string::npos);
}

TEST(TestScript, AHangIsAFailure) {
  Sandbox sandbox;
  sandbox.add_script("build/bin/chord-test-slow", "exec sleep 60");
  const Outcome outcome = sandbox.run("--timeout 1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(last_line(outcome.out), "0 passed, 1 failed, 0 skipped");
  EXPECT_NE(outcome.out.find("ran longer than 1 s"), std::string::npos) << outcome.out;
}

TEST(TestScript, NoTestIsAFailure) {
  Sandbox sandbox;
  sandbox.add_tests("empty", "", "exit 0");
  EXPECT_EQ(sandbox.run().exit_code, 1);
}

TEST(TestScript, ABinaryThatWasNamedAndNotBuiltIsAFailure) {
  Sandbox sandbox;
  sandbox.add_tests("one", kPass, "exit 0");
  const Outcome outcome = sandbox.run("one absent");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find("chord-test-absent was not built"), std::string::npos);
}

TEST(TestScript, ABuildThatFailsEndsTheRun) {
  Sandbox sandbox;
  sandbox.add_tests("one", kPass, "exit 0");
  sandbox.add_script("path/cmake", "exit 7");
  EXPECT_EQ(sandbox.run().exit_code, 7);
}

TEST(TestScript, CallerSettingsDoNotReachTheTests) {
  Sandbox sandbox;
  sandbox.add_tests("one", kPass, "[[ -z ${CHORD_W4A16_BM:-} && $CHORD_CACHE_DIR == /*/cache ]]");
  const Outcome outcome = sandbox.run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

TEST(TestScript, TheDisassemblerThatWasFoundReachesTheTests) {
  Sandbox sandbox;
  sandbox.add_tests("one", kPass, "[[ $CHORD_NVDISASM == /found/for/tests ]]");
  const Outcome outcome = sandbox.run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

TEST(TestScript, RefusesWrongFlagsBeforeBuilding) {
  const Sandbox sandbox;
  for (const char* arguments : {"--sanitize memory", "--timeout soon", "--jobs 0", "--nonsense"}) {
    const Outcome outcome = sandbox.run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.err.rfind("error: ", 0), 0u) << arguments;
  }
}

// chord_find_nvdisasm of the real install_packages.sh, with a python3 that does `body` for pip.
Outcome find_nvdisasm_with(const ScratchFolder& scratch, const std::string& body) {
  fs::create_directories(scratch.path("path"));
  write_file(scratch.path("path/python3"), "#!/bin/bash\n" + body + "\n");
  fs::permissions(scratch.path("path/python3"), fs::perms::owner_all);
  return run_program("/bin/bash",
                     {"-c", "set -euo pipefail; source " CHORD_SOURCE_DIR
                            "/tools/install_packages.sh\nchord_apt_install() { :; }\n"
                            "chord_find_nvdisasm '" +
                                scratch.path() + "'\necho \"found ${CHORD_NVDISASM:-none}\""},
                     {{"PATH", scratch.path("path") + ":/usr/bin:/bin"}});
}

#define CHORD_NEEDS_NO_NVDISASM()                                                \
  for (const char* path : {"/usr/local/cuda/bin/nvdisasm", "/usr/bin/nvdisasm"}) \
    if (fs::exists(path)) GTEST_SKIP() << "this machine has " << path

TEST(InstallPackages, WithoutPyPiADisassemblerIsOnlyMissed) {
  CHORD_NEEDS_NO_NVDISASM();
  const ScratchFolder scratch;
  const Outcome outcome = find_nvdisasm_with(scratch, "exit 1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(last_line(outcome.out), "found none");
  EXPECT_NE(outcome.err.find("warning: no nvdisasm"), std::string::npos) << outcome.err;
}

TEST(InstallPackages, TheDisassemblerOfTheWheelIsAProgramAndIsFetchedOnce) {
  CHORD_NEEDS_NO_NVDISASM();
  const ScratchFolder scratch;
  const std::string wheel =
      "for a; do if [[ ${t:-} ]]; then mkdir -p $a/nvidia/cu13/bin; "
      "echo >$a/nvidia/cu13/bin/nvdisasm; break; fi; "
      "[[ $a != --target ]] || t=1; done";
  for (const char* body : {wheel.c_str(), "exit 1"}) {
    const Outcome outcome = find_nvdisasm_with(scratch, body);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string program = scratch.path("nvdisasm/nvidia/cu13/bin/nvdisasm");
    EXPECT_EQ(last_line(outcome.out), "found " + program) << outcome.out << outcome.err;
    EXPECT_NE(fs::status(program).permissions() & fs::perms::owner_exec, fs::perms::none);
  }
}

}  // namespace
}  // namespace chord::tools_test
