// What a compiled program relies on: where the fields of chord.h lie, and what enumerators are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace chord::c_api_test {

struct AbiField {
  std::string type;
  std::string name;
  std::size_t offset;
  std::size_t bytes;
  std::size_t struct_bytes;
};
struct AbiEnumerator {
  std::string name;
  int value;
};

// In the order of chord.h.
const std::vector<AbiField>& abi_fields();
const std::vector<AbiEnumerator>& abi_enumerators();

}  // namespace chord::c_api_test
