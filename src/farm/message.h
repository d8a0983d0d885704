// What a node and the compile farm say to each other, as labelled fields (cache/fields.h): a recipe
// one way, and the other way who compiled it or why nobody did. The key does not travel: the farm
// computes it from what it compiled, so that no request can put an entry under another one's key.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/cubin/recipe.h"

namespace chord::farm {

// A recipe that came over the wire, with the texts that its device files point into.
struct ReceivedRecipe {
  cubin::Recipe recipe;
  std::vector<std::unique_ptr<std::string>> texts;
};

struct FarmReply {
  std::string compiler;  // identity of who compiled it; empty when nobody did
  std::string failure;   // why not
};

std::string encode(const cubin::Recipe& recipe);
Result<ReceivedRecipe> decode_recipe(std::string_view bytes);

std::string encode(const FarmReply& reply);
Result<FarmReply> decode_reply(std::string_view bytes);

}  // namespace chord::farm
