// Folders: the index, its shards, and what a half-finished download looks like.
#include "tools/examples/checkpoint.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"
#include "tests/tools/examples/files.h"

namespace chord::examples {
namespace {

class Folder : public ::testing::Test {
 protected:
  void write_shard(const std::string& file, const std::string& tensor) {
    write_tensors(folder_ / file,
                  R"({")" + tensor + R"(": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})",
                  tensor.substr(0, 2));
  }
  void write_index(const Json& map) {
    write_bytes(folder_ / kIndexName, Json{{"weight_map", map}}.dump());
  }
  std::string refusal() { return message_of(Checkpoint::open(folder_.path())); }

  testing::TemporaryFolder folder_;
};

TEST_F(Folder, ReadsTensorsOfSeveralShards) {
  write_shard("1.safetensors", "aa");
  write_shard("2.safetensors", "bb");
  write_index({{"aa", "1.safetensors"}, {"bb", "2.safetensors"}});
  const auto checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << message_of(checkpoint);
  const auto found = checkpoint->locate({"bb", "aa"});
  ASSERT_TRUE(found.ok()) << message_of(found);
  char text[3] = {};
  ASSERT_TRUE(checkpoint->read((*found)[0], 0, 2, text).ok());
  EXPECT_STREQ(text, "bb");
  ASSERT_TRUE(checkpoint->read((*found)[1], 0, 2, text).ok());
  EXPECT_STREQ(text, "aa");
}

TEST_F(Folder, OpensNoShardThatNobodyAskedFor) {
  write_shard("1.safetensors", "aa");
  write_bytes(folder_ / "2.safetensors", "damaged");
  write_index({{"aa", "1.safetensors"}, {"bb", "2.safetensors"}});
  const auto checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << message_of(checkpoint);
  EXPECT_TRUE(checkpoint->locate({"aa"}).ok());
  EXPECT_FALSE(checkpoint->locate({"bb"}).ok());
}

TEST_F(Folder, TakesTheOnlyFileWithoutAnIndex) {
  write_shard("model.safetensors", "aa");
  for (const std::string& path : {folder_.path(), folder_ / "model.safetensors"}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << message_of(checkpoint);
    EXPECT_TRUE(checkpoint->has("aa"));
    EXPECT_EQ(checkpoint->folder(), folder_.path());
  }
}

TEST_F(Folder, RefusesSeveralFilesWithoutAnIndex) {
  write_shard("1.safetensors", "aa");
  write_shard("2.safetensors", "bb");
  EXPECT_TRUE(has(refusal(), "2 safetensors files")) << refusal();
}

TEST_F(Folder, RefusesAPathThatIsNotThere) {
  EXPECT_TRUE(has(message_of(Checkpoint::open(folder_ / "none")), "no such file or folder"));
}

TEST_F(Folder, RefusesAnIndexWhoseShardsAreMissing) {
  write_shard("1.safetensors", "aa");
  write_index({{"aa", "1.safetensors"}, {"bb", "2.safetensors"}, {"cc", "3.safetensors"}});
  EXPECT_TRUE(has(refusal(), "2 of the 3 shards that it names are not there")) << refusal();
  EXPECT_TRUE(has(refusal(), "2.safetensors, 3.safetensors")) << refusal();
}

TEST_F(Folder, RefusesAnIndexThatLeadsElsewhere) {
  for (const char* file : {"../1.safetensors", "/etc/passwd", "..", ""}) {
    write_index({{"aa", file}});
    EXPECT_TRUE(has(refusal(), "'aa' lies in")) << refusal();
  }
}

TEST_F(Folder, RefusesAnIndexOfAnotherForm) {
  write_bytes(folder_ / kIndexName, "{");
  EXPECT_TRUE(has(refusal(), "no JSON")) << refusal();
  write_bytes(folder_ / kIndexName, "{}");
  EXPECT_TRUE(has(refusal(), "weight_map")) << refusal();
  write_index({{"aa", 3}});
  EXPECT_TRUE(has(refusal(), "'aa' lies in 3")) << refusal();
}

TEST_F(Folder, NamesTheShardThatLacksATensorOfTheIndex) {
  write_shard("1.safetensors", "aa");
  write_index({{"aa", "1.safetensors"}, {"bb", "1.safetensors"}});
  const auto checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << message_of(checkpoint);
  const std::string message = message_of(checkpoint->locate({"aa", "bb"}));
  EXPECT_TRUE(has(message, "bb (the index says")) << message;
  EXPECT_TRUE(has(message, "1.safetensors, which lacks it")) << message;
}

TEST_F(Folder, CountsAllMissingTensorsAndNamesTheFirst) {
  write_shard("1.safetensors", "aa");
  const auto checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << message_of(checkpoint);
  const std::string message =
      message_of(checkpoint->locate({"t1", "t2", "aa", "t3", "t4", "t5", "t6"}));
  EXPECT_TRUE(has(message, "6 are missing: t1, t2, t3, t4 and 2 more")) << message;
}

TEST_F(Folder, RefusesAnotherFormThanNeeded) {
  write_shard("1.safetensors", "aa");
  const auto checkpoint = Checkpoint::open(folder_.path());
  const auto found = checkpoint->locate({"aa"});
  ASSERT_TRUE(found.ok()) << message_of(found);
  EXPECT_TRUE(check_form((*found)[0], "U8", {2}).ok());
  for (const std::string& message : {message_of(check_form((*found)[0], "I8", {2})),
                                     message_of(check_form((*found)[0], "U8", {2, 1}))}) {
    EXPECT_TRUE(has(message, "tensor 'aa'")) << message;
    EXPECT_TRUE(has(message, "U8 [2]")) << message;
  }
}

TEST_F(Folder, RefusesAnUnknownDtypeWhereItIsNeeded) {
  write_tensors(folder_ / "1.safetensors",
                R"({"aa": {"dtype": "F3", "shape": [2], "data_offsets": [0, 2]}})", "ab");
  const auto checkpoint = Checkpoint::open(folder_.path());
  const auto found = checkpoint->locate({"aa"});
  ASSERT_TRUE(found.ok()) << message_of(found);
  const std::string message = message_of(check_form((*found)[0], "U8", {2}));
  EXPECT_TRUE(has(message, "dtype F3 is not one that is known")) << message;
}

}  // namespace
}  // namespace chord::examples
