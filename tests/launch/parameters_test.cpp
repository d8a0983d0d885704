// From arguments to the kernel's parameters: what is refused without reading device memory, and
// what the struct holds when all is well.
#include "src/launch/parameters.h"

#include <gtest/gtest.h>

#include <functional>

namespace chord::launch {
namespace {

// Addresses are looked at, never followed.
const void* address(std::uintptr_t value) { return reinterpret_cast<const void*>(value); }
void* mutable_address(std::uintptr_t value) { return reinterpret_cast<void*>(value); }
template <class Value>
const Value* typed_address(std::uintptr_t value) {
  return reinterpret_cast<const Value*>(value);
}

LaunchShape shape_of(abi::RoutingKind kind) {
  return {.problem = {.n = 512, .k = 256, .routing = kind}, .schedule = {}, .ctas = 132};
}

GemmArguments arguments_of(const LaunchShape& shape) {
  GemmArguments arguments;
  arguments.activations = address(0x10000);
  arguments.output = mutable_address(0x20000);
  arguments.weight = {address(0x30000), address(0x40000), {.experts = 6, .n = 512, .k = 256}};
  arguments.workspace = mutable_address(0x50000);
  arguments.workspace_bytes = workspace_bytes(shape);
  if (shape.problem.routing == abi::RoutingKind::indexed)
    arguments.routing = IndexedRouting{typed_address<std::int32_t>(0x60000),
                                       typed_address<std::int32_t>(0x70004),
                                       typed_address<std::int32_t>(0x80004),
                                       640,
                                       160,
                                       8};
  else if (shape.problem.routing == abi::RoutingKind::grouped_contiguous)
    arguments.routing =
        ContiguousRouting{abi::ContiguousSpelling::m_indices, address(0x60000), 768};
  else
    arguments.routing = MaskedRouting{typed_address<std::int32_t>(0x60004), 64};
  return arguments;
}

using Change = std::function<void(GemmArguments&)>;

void expect_refused(abi::RoutingKind kind, const Change& change, const std::string& names) {
  const LaunchShape shape = shape_of(kind);
  GemmArguments arguments = arguments_of(shape);
  change(arguments);
  abi::GemmParams params{};
  const Status status = fill_params(shape, arguments, params);
  ASSERT_FALSE(status.ok()) << names;
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(status.error().message().find(names), std::string::npos) << status.error().message();
  EXPECT_NE(status.error().message().find("N=512 K=256"), std::string::npos);
}

constexpr auto kIndexed = abi::RoutingKind::indexed;
constexpr auto kContiguous = abi::RoutingKind::grouped_contiguous;
constexpr auto kMasked = abi::RoutingKind::grouped_masked;

IndexedRouting& indexed(GemmArguments& a) { return std::get<IndexedRouting>(a.routing); }
ContiguousRouting& contiguous(GemmArguments& a) { return std::get<ContiguousRouting>(a.routing); }
MaskedRouting& masked(GemmArguments& a) { return std::get<MaskedRouting>(a.routing); }

TEST(Parameters, OfIndexedRouting) {
  const LaunchShape shape = shape_of(kIndexed);
  abi::GemmParams p{};
  ASSERT_TRUE(fill_params(shape, arguments_of(shape), p).ok());
  EXPECT_EQ(p.activations, address(0x10000));
  EXPECT_EQ(p.output, address(0x20000));
  EXPECT_EQ(p.sorted_ids, address(0x60000));
  EXPECT_EQ(p.expert_ids, address(0x70004));
  EXPECT_EQ(p.num_tokens_padded, address(0x80004));
  EXPECT_EQ(p.rows, 640);
  EXPECT_EQ(p.num_ids, 160);
  EXPECT_EQ(p.top_k, 8);
  EXPECT_EQ(p.experts, 6);
}

TEST(Parameters, OfContiguousRouting) {
  const LaunchShape shape = shape_of(kContiguous);
  GemmArguments arguments = arguments_of(shape);
  contiguous(arguments).spelling = abi::ContiguousSpelling::offsets64;
  abi::GemmParams p{};
  ASSERT_TRUE(fill_params(shape, arguments, p).ok());
  EXPECT_EQ(p.groups, address(0x60000));
  EXPECT_EQ(p.spelling, abi::ContiguousSpelling::offsets64);
  EXPECT_EQ(p.rows, 768);
}

TEST(Parameters, OfMaskedRouting) {
  const LaunchShape shape = shape_of(kMasked);
  abi::GemmParams p{};
  ASSERT_TRUE(fill_params(shape, arguments_of(shape), p).ok());
  EXPECT_EQ(p.groups, address(0x60004));
  EXPECT_EQ(p.max_m, 64);
}

TEST(Parameters, PartialsFollowTheFlagsInTheWorkspace) {
  const LaunchShape shape = shape_of(kIndexed);
  abi::GemmParams p{};
  ASSERT_TRUE(fill_params(shape, arguments_of(shape), p).ok());
  EXPECT_EQ(p.flags, address(0x50000));
  EXPECT_EQ(p.partials, address(0x50000 + workspace_flag_bytes(shape)));
  EXPECT_EQ(workspace_flag_bytes(shape) % 256, 0u);
  EXPECT_GE(workspace_flag_bytes(shape), 132u * 8 * 4);
  EXPECT_GT(workspace_bytes(shape), workspace_flag_bytes(shape));
}

TEST(Parameters, RefuseAnotherWeight) {
  expect_refused(
      kIndexed, [](auto& a) { a.weight.shape.layout_version = 2; }, "layout version 2");
  for (const std::int64_t off : {8, 16, 32, 64}) {
    expect_refused(
        kIndexed, [&](auto& a) { a.weight.shape.n += off; }, "N=" + std::to_string(512 + off));
    expect_refused(
        kIndexed, [&](auto& a) { a.weight.shape.k -= off; }, "K=" + std::to_string(256 - off));
  }
  expect_refused(
      kIndexed, [](auto& a) { a.weight.shape.experts = 0; }, "0 experts");
  expect_refused(
      kIndexed, [](auto& a) { a.weight.shape.experts = std::int64_t{1} << 40; }, "experts");
}

TEST(Parameters, RefuseNullPointers) {
  expect_refused(
      kIndexed, [](auto& a) { a.activations = nullptr; }, "activations is a null");
  expect_refused(
      kIndexed, [](auto& a) { a.output = nullptr; }, "output is a null");
  expect_refused(
      kIndexed, [](auto& a) { a.weight.codes = nullptr; }, "weight.codes is a null");
  expect_refused(
      kIndexed, [](auto& a) { a.weight.scales = nullptr; }, "weight.scales is a null");
  expect_refused(
      kIndexed, [](auto& a) { a.workspace = nullptr; }, "workspace is a null");
  expect_refused(
      kIndexed, [](auto& a) { indexed(a).sorted_ids = nullptr; }, "sorted_ids is a null");
  expect_refused(
      kIndexed, [](auto& a) { indexed(a).expert_ids = nullptr; }, "expert_ids is a null");
  expect_refused(
      kIndexed, [](auto& a) { indexed(a).num_tokens_padded = nullptr; }, "num_tokens_padded is a");
  expect_refused(
      kContiguous, [](auto& a) { contiguous(a).groups = nullptr; }, "m_indices is a null");
  expect_refused(
      kMasked, [](auto& a) { masked(a).masked_m = nullptr; }, "masked_m is a null");
}

TEST(Parameters, RefuseMisalignedPointers) {
  expect_refused(
      kIndexed, [](auto& a) { a.activations = address(0x10008); }, "activations is at 0x10008");
  expect_refused(
      kIndexed, [](auto& a) { a.output = mutable_address(0x20002); }, "output is at 0x20002");
  expect_refused(
      kIndexed, [](auto& a) { a.workspace = mutable_address(0x50080); }, "workspace is at");
  expect_refused(
      kIndexed, [](auto& a) { indexed(a).sorted_ids = typed_address<std::int32_t>(0x60004); },
      "sorted_ids is at");
  expect_refused(
      kContiguous, [](auto& a) { contiguous(a).groups = address(0x60004); }, "m_indices is at");
  const auto offsets64 = [](auto& a) {
    contiguous(a) = {abi::ContiguousSpelling::offsets64, address(0x60004), 768};
  };
  expect_refused(kContiguous, offsets64, "expert_offsets is at");
}

TEST(Parameters, RefuseASmallWorkspace) {
  const std::size_t needed = workspace_bytes(shape_of(kIndexed));
  expect_refused(
      kIndexed, [&](auto& a) { a.workspace_bytes = needed - 1; }, std::to_string(needed - 1));
}

TEST(Parameters, RefuseSizesOutOfRange) {
  constexpr std::int64_t kTooMany = std::int64_t{1} << 31;
  expect_refused(
      kIndexed, [](auto& a) { indexed(a).top_k = 0; }, "top_k 0");
  for (const std::int64_t size : {std::int64_t{-1}, kTooMany}) {
    const std::string number = std::to_string(size);
    expect_refused(
        kIndexed, [&](auto& a) { indexed(a).num_ids = size; }, "num_ids " + number);
    expect_refused(
        kIndexed, [&](auto& a) { indexed(a).capacity = size; }, "capacity " + number);
    expect_refused(
        kContiguous, [&](auto& a) { contiguous(a).rows = size; }, "rows " + number);
    expect_refused(
        kMasked, [&](auto& a) { masked(a).max_m = size; }, "max_m " + number);
  }
}

// 2^61 times 8 experts is 0 in 64 bits.
TEST(Parameters, RefuseSlabsWhoseRowsOverflow) {
  for (const std::int64_t size : {std::int64_t{1} << 61, INT64_MAX, INT64_MIN}) {
    const auto eight_experts = [&](auto& a) {
      a.weight.shape.experts = 8;
      masked(a).max_m = size;
    };
    expect_refused(kMasked, eight_experts, "max_m " + std::to_string(size) + " of 8 experts");
  }
}

TEST(Parameters, TakeAsManyRowsInSlabsAsAnInt32Counts) {
  const LaunchShape shape = shape_of(kMasked);
  GemmArguments arguments = arguments_of(shape);
  abi::GemmParams params{};
  masked(arguments).max_m = 0x7fffffff / 6;
  EXPECT_TRUE(fill_params(shape, arguments, params).ok());
  ++masked(arguments).max_m;
  EXPECT_FALSE(fill_params(shape, arguments, params).ok());
}

TEST(Parameters, RefuseAnotherRouting) {
  expect_refused(
      kIndexed, [](auto& a) { a.routing = MaskedRouting{}; }, "another routing");
  expect_refused(
      kMasked, [](auto& a) { a.routing = ContiguousRouting{}; }, "another routing");
  expect_refused(
      kContiguous, [](auto& a) { a.routing = IndexedRouting{}; }, "another routing");
}

}  // namespace
}  // namespace chord::launch
