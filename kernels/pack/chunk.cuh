// One 16-byte lane chunk of a packed weight and the one scale that goes with it: which codes and
// which scale they are, where those lie in the checkpoint, and the bits that come out.
//
// The chunk with index c (atom c / 128, strip c / 32 % 4, lane c % 32) holds 32 codes of rows g and
// g + 8 of its strip. The packed scales of an atom are 128 as well, and scale c is one of the same
// two rows: lane 4g + t stores row g + 8 * (t / 2), group t % 2. So a thread writes chunk c and
// scale c, both coalesced, and needs no other thread.
//
// Plain functions, no thread index: the CPU packer is a loop over them, the GPU packer one thread
// per chunk, and the bytes can not differ.
#pragma once

#include "chord/abi/layout.h"
#include "chord/abi/params.h"

namespace chord::device {

using abi::CodeSource;
using abi::i32;
using abi::i64;
using abi::PackParams;
using abi::ScaleSource;
using abi::u16;
using abi::u32;
using abi::u64;
using abi::u8;

inline constexpr i32 kChunkCodes = 32;
inline constexpr i32 kChunksPerAtom = abi::kAtomBytes / 16;
static_assert(kChunksPerAtom == abi::kAtomScaleBytes / 2, "scale c belongs to chunk c");

constexpr i64 chunk_count(i64 experts, i64 n, i64 k) { return experts * n * k / kChunkCodes; }

// Where a chunk's codes begin: row and column of its first code, row g and k 2t of step 0.
struct ChunkPlace {
  i64 expert;
  i64 row;  // packed row g; the other one is 8 further
  i64 col;  // of the atom, plus 2t
  i32 t;
};

constexpr ChunkPlace chunk_place(i64 chunk, i64 n, i64 k) {
  const i64 atom = chunk / kChunksPerAtom;
  const i32 in_atom = static_cast<i32>(chunk % kChunksPerAtom);
  const i64 atoms_k = k / abi::kAtomDepth;
  const i64 block_row = atom / atoms_k;  // over all experts
  const i64 atoms_n = n / abi::kAtomRows;
  const i32 strip = in_atom / 32;
  const i32 g = in_atom % 32 / 4;
  const i32 t = in_atom % 4;
  return {block_row / atoms_n, block_row % atoms_n * abi::kAtomRows + strip * abi::kStripRows + g,
          atom % atoms_k * abi::kAtomDepth + 2 * t, t};
}

// The checkpoint's row of a chunk's row g (half 0) or g + 8 (half 1).
constexpr i64 source_row(abi::RowOrder order, const ChunkPlace& at, i32 half, i64 n) {
  return abi::checkpoint_row(order, at.row + 8 * half, n);
}

// The codes of columns col and col + 1 (col is even), as the checkpoint has them.
struct CodePair {
  u32 first;
  u32 second;
};

template <CodeSource Source>
inline CodePair read_codes(const PackParams& p, i64 expert, i64 row, i64 col) {
  const i64 n = p.n, k = p.k;
  const i64 index = (expert * n + row) * k + col;
  if constexpr (Source == CodeSource::codes_i32) {
    const u32* codes = static_cast<const u32*>(p.codes) + index;
    return {codes[0], codes[1]};
  } else if constexpr (Source == CodeSource::codes_u8) {
    const u8* codes = static_cast<const u8*>(p.codes) + index;
    return {codes[0], codes[1]};
  } else {
    const i64 word_index =
        Source == CodeSource::words ? index / 8 : (expert * (k / 8) + col / 8) * n + row;
    const u32 word = static_cast<const u32*>(p.codes)[word_index] >> (4 * (col % 8));
    return {word & 15, word >> 4 & 15};
  }
}

template <ScaleSource Source>
inline u16 read_scale(const PackParams& p, i64 expert, i64 row, i64 group) {
  const i64 n = p.n, groups = p.k / abi::kGroupSize;
  if constexpr (Source == ScaleSource::row_major)
    return p.scales[(expert * n + row) * groups + group];
  else
    return p.scales[(expert * groups + group) * n + row];
}

struct alignas(16) Chunk {
  u32 words[4];
};

// The status of the smallest bad code of a chunk; called when there is one.
template <CodeSource Source>
inline u64 first_bad_code(const PackParams& p, const ChunkPlace& at) {
  for (i32 pair = 0; pair < kChunkCodes / 2; ++pair) {
    const i64 row = source_row(p.row_order, at, pair / 8, p.n);
    const i64 col = at.col + 8 * (pair % 8);
    const CodePair codes = read_codes<Source>(p, at.expert, row, col);
    const i64 index = (at.expert * p.n + row) * p.k + col;
    if (codes.first > 15) return abi::pack_code_status(index, codes.first);
    if (codes.second > 15) return abi::pack_code_status(index + 1, codes.second);
  }
  return abi::kPackStatusClean;
}

// The words of a chunk. Codes above 15 are cut to four bits and reported: `status` becomes smaller.
template <CodeSource Source>
inline Chunk pack_codes(const PackParams& p, const ChunkPlace& at, u64& status) {
  Chunk chunk{};
  u32 seen = 0;
  const i64 rows[2] = {source_row(p.row_order, at, 0, p.n), source_row(p.row_order, at, 1, p.n)};
  for (i32 step = 0; step < 4; ++step) {
    for (i32 reg = 0; reg < 4; ++reg) {
      const i64 col = at.col + 16 * step + 8 * (reg / 2);
      const CodePair codes = read_codes<Source>(p, at.expert, rows[reg % 2], col);
      seen |= codes.first | codes.second;
      chunk.words[step] |= (codes.first & 15) << (4 * reg) | (codes.second & 15) << (16 + 4 * reg);
    }
  }
  if (seen > 15) {
    const u64 bad = first_bad_code<Source>(p, at);
    if (bad < status) status = bad;
  }
  return chunk;
}

// The scale of a chunk as it is stored. One that can not be packed is reported.
template <ScaleSource Source>
inline u16 pack_scale(const PackParams& p, const ChunkPlace& at, u64& status) {
  const i64 row = source_row(p.row_order, at, at.t / 2, p.n);
  const i64 group = at.col / abi::kAtomDepth * 2 + at.t % 2;
  const u16 bits = read_scale<Source>(p, at.expert, row, group);
  if (!abi::is_packable_scale(bits)) {
    const i64 index = (at.expert * p.n + row) * (p.k / abi::kGroupSize) + group;
    const u64 bad = abi::pack_status(index, bits);
    if (bad < status) status = bad;
  }
  return abi::transform_scale(bits, abi::scale_shift(at.row + 8 * (at.t / 2)));
}

}  // namespace chord::device
