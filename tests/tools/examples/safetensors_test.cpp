// One file: what is read, and every way in which a file can be refused.
#include "tools/examples/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/temporary_folder.h"
#include "tests/tools/examples/files.h"

namespace chord::examples {
namespace {

class Safetensors : public ::testing::Test {
 protected:
  std::string refusal(const std::string& header, const std::string& data) {
    write_tensors(path_, header, data);
    const std::string message = message_of(SafetensorsFile::open(path_));
    EXPECT_TRUE(has(message, path_)) << message;
    return message;
  }

  testing::TemporaryFolder folder_;
  std::string path_ = folder_ / "a.safetensors";
};

constexpr const char* kTwoTensors =
    R"({"__metadata__": {"format": "pt"},
        "a": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]},
        "b": {"dtype": "I32", "shape": [1], "data_offsets": [8, 12]}})";

TEST_F(Safetensors, SaysWhereEveryTensorLies) {
  write_tensors(path_, kTwoTensors, "abcdefghijkl");
  const auto file = SafetensorsFile::open(path_);
  ASSERT_TRUE(file.ok()) << message_of(file);
  EXPECT_EQ(file->tensors().size(), 2u);
  ASSERT_NE(file->find("a"), nullptr);
  EXPECT_EQ(file->find("a")->form(), "BF16 [2, 2]");
  EXPECT_EQ(file->find("b")->bytes(), 4);
  EXPECT_EQ(file->find("__metadata__"), nullptr);
}

TEST_F(Safetensors, ReadsThePartThatIsAskedFor) {
  write_tensors(path_, kTwoTensors, "abcdefghijkl");
  const auto file = SafetensorsFile::open(path_);
  ASSERT_TRUE(file.ok()) << message_of(file);
  char piece[3] = {};
  ASSERT_TRUE(file->read(*file->find("a"), 6, 2, piece).ok());
  EXPECT_STREQ(piece, "gh");
  ASSERT_TRUE(file->read(*file->find("b"), 0, 2, piece).ok());
  EXPECT_STREQ(piece, "ij");
}

TEST_F(Safetensors, RefusesToReadBehindATensor) {
  write_tensors(path_, kTwoTensors, "abcdefghijkl");
  const auto file = SafetensorsFile::open(path_);
  ASSERT_TRUE(file.ok()) << message_of(file);
  char piece[8] = {};
  EXPECT_FALSE(file->read(*file->find("a"), 6, 3, piece).ok());
  EXPECT_FALSE(file->read(*file->find("a"), -1, 1, piece).ok());
}

TEST_F(Safetensors, SaysThatAFileShrankAfterItWasOpened) {
  write_tensors(path_, kTwoTensors, "abcdefghijkl");
  const auto file = SafetensorsFile::open(path_);
  ASSERT_TRUE(file.ok()) << message_of(file);
  write_tensors(path_, kTwoTensors, "abcdefghij");
  char piece[4] = {};
  const std::string message = message_of(file->read(*file->find("b"), 0, 4, piece));
  EXPECT_TRUE(has(message, "tensor 'b'")) << message;
  EXPECT_TRUE(has(message, "ends 2 bytes early")) << message;
}

TEST_F(Safetensors, RefusesAFileThatIsNotThere) {
  const auto file = SafetensorsFile::open(folder_ / "none");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::not_found);
}

TEST_F(Safetensors, RefusesAFolder) { EXPECT_FALSE(SafetensorsFile::open(folder_.path()).ok()); }

TEST_F(Safetensors, RefusesAFileWithoutALength) {
  write_bytes(path_, "1234567");
  EXPECT_TRUE(has(message_of(SafetensorsFile::open(path_)), "7 bytes, too few"));
}

TEST_F(Safetensors, RefusesAHeaderLongerThanItsFile) {
  for (const std::uint64_t length : {std::uint64_t{3}, ~std::uint64_t{0}}) {
    write_bytes(path_, length_of(length) + "{}");
    const std::string message = message_of(SafetensorsFile::open(path_));
    EXPECT_TRUE(has(message, "in a file of 10")) << message;
  }
}

TEST_F(Safetensors, RefusesAHeaderThatIsNoJson) {
  EXPECT_TRUE(has(refusal(R"({"a": )", ""), "no JSON"));
  EXPECT_TRUE(has(refusal("[1, 2]", ""), "array, no object"));
  EXPECT_TRUE(has(refusal(std::string(100000, '['), ""), "no JSON: it stops"));
}

TEST_F(Safetensors, RefusesANameThatStandsTwice) {
  const std::string one = R"("a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]})";
  EXPECT_TRUE(has(refusal("{" + one + ", " + one + "}", "x"), "'a' stands there twice"));
}

TEST_F(Safetensors, RefusesOffsetsOutsideTheFile) {
  const std::string message = refusal(kTwoTensors, "abcdefghijk");
  EXPECT_TRUE(has(message, "tensor 'b'")) << message;
  EXPECT_TRUE(has(message, "[8, 12] lie outside the 11 bytes")) << message;
}

TEST_F(Safetensors, RefusesOffsetsThatOverlap) {
  const std::string message = refusal(
      R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
          "b": {"dtype": "U8", "shape": [4], "data_offsets": [3, 7]}})",
      "abcdefg");
  EXPECT_TRUE(has(message, "tensor 'b'")) << message;
  EXPECT_TRUE(has(message, "overlap those of 'a'")) << message;
}

TEST_F(Safetensors, RefusesOffsetsThatAreNotShapeTimesElement) {
  const std::string message =
      refusal(R"({"a": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 4]}})", "abcd");
  EXPECT_TRUE(has(message, "BF16 [3] has 6 bytes, data_offsets give it 4")) << message;
}

TEST_F(Safetensors, RefusesAShapeWhoseSizeDoesNotFit) {
  const std::string message = refusal(
      R"({"a": {"dtype": "I32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})", "");
  EXPECT_TRUE(has(message, "more than 2^63")) << message;
}

TEST_F(Safetensors, RefusesEntriesOfAnotherForm) {
  EXPECT_TRUE(has(refusal(R"({"a": 3})", ""), "no object"));
  EXPECT_TRUE(has(refusal(R"({"a": {"shape": [], "data_offsets": [0, 0]}})", ""), "'dtype'"));
  EXPECT_TRUE(
      has(refusal(R"({"a": {"dtype": "U8", "data_offsets": [0, 0]}})", ""), "list 'shape'"));
  EXPECT_TRUE(
      has(refusal(R"({"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 0]}})", ""), "[-1]"));
  EXPECT_TRUE(has(refusal(R"({"a": {"dtype": "U8", "shape": [0], "data_offsets": [2, 1]}})", "ab"),
                  "no begin and end"));
  EXPECT_TRUE(has(refusal(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0]}})", "a"),
                  "no begin and end"));
}

TEST_F(Safetensors, LeavesAnUnknownDtypeAlone) {
  write_tensors(path_, R"({"a": {"dtype": "F3", "shape": [5], "data_offsets": [0, 2]}})", "ab");
  const auto file = SafetensorsFile::open(path_);
  ASSERT_TRUE(file.ok()) << message_of(file);
  EXPECT_EQ(file->find("a")->dtype, "F3");
}

}  // namespace
}  // namespace chord::examples
