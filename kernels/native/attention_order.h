// Which keys and values a unit of attention reads, and what it reads some tiles later.
#pragma once
#include "attention_tiles.h"

PK_BEGIN
struct Range {  // keys [begin, end) of a partition that some of the rows may see, from a whole tile on
    int start;  // position of the partition
    int begin, end;
};

// `step`: the end is a multiple of it.
static Range visible(const AttentionArgs& args, int position, int rows, int part, int step) {
    const int start = part * kPartition;
    const int last = position + rows - 1;
    const int oldest = args.window > 0 ? position - args.window + 1 : 0;
    const int begin = imax(0, oldest - start) / kTileTokens * kTileTokens;
    const int end = (imin(kPartition, last - start + 1) + step - 1) / step * step;
    return Range{start, begin, end};
}

static Rows locate(const KvPlane& plane, const AttentionArgs& args, const AttentionUnit& unit, int position) {
    const int page = position / plane.page_tokens, slot = position % plane.page_tokens;
    const int valid = imin(kTileTokens, unit.position + unit.rows - position);
    return Rows{(const uint8_t*)(uintptr_t)unit.pages[page], (size_t)(unit.kv_head / args.split) * plane.page_tokens + slot, valid,
                nullptr};
}

static inline int tiles_of(const Range& range) { return (range.end - range.begin + kTileTokens - 1) / kTileTokens; }

// The order in which a partition's tiles of keys and of values are read: one of each in turn, or all keys first.
static const uint8_t* tile_at(const AttentionArgs& args, const AttentionUnit& unit, const Range& range, int index, bool in_turn) {
    const int tiles = tiles_of(range);
    const bool values = in_turn ? index % 2 : index >= tiles;
    const int tile = in_turn ? index / 2 : values ? index - tiles : index;
    const KvPlane& plane = values ? args.v : args.k;
    const Rows rows = locate(plane, args, unit, range.start + range.begin + tile * kTileTokens);
    return rows.page + plane.offset + rows.row * row_bytes(plane);
}

// What the thread reads behind a partition, as units are planned: the next head's, or the next partition; empty: nothing.
static Range behind(const AttentionArgs& args, const Range& range, AttentionUnit& unit) {
    if (unit.partial && unit.kv_head + 1 < args.k.heads * args.split) {
        unit.kv_head++;
        return range;
    }
    const int start = range.start + kPartition;
    if (unit.partial) unit.kv_head = 0;
    else if (start >= unit.part_end * kPartition) return Range{start, 0, 0};
    return Range{start, 0, imax(0, imin(kPartition, unit.position - start))};
}

// Where the tile begins that is read some tiles behind the one at `at` of K or V: memory needs the time of 16 KB.
static const uint8_t* ahead_of(const AttentionArgs& args, const AttentionUnit& unit, const Range& range, int at, bool values,
                               bool in_turn) {
    const int tiles = tiles_of(range), tile = (at - range.begin) / kTileTokens;
    const int distance = imax(1, (int)((16 << 10) / (row_bytes(args.k) * kTileTokens)));
    const int here = in_turn ? 2 * tile + values : tile + (values ? tiles : 0), index = here + distance;
    if (index < 2 * tiles) return tile_at(args, unit, range, index, in_turn);
    AttentionUnit next = unit;
    const Range following = behind(args, range, next);
    if (tiles_of(following) == 0) return tile_at(args, unit, range, here, in_turn);
    return tile_at(args, next, following, imin(index - 2 * tiles, 2 * tiles_of(following) - 1), in_turn);
}

static Rows tile_rows(const AttentionArgs& args, const AttentionUnit& unit, const Range& range, int at, bool values,
                      bool in_turn) {
    Rows rows = locate(values ? args.v : args.k, args, unit, range.start + at);
    rows.ahead = ahead_of(args, unit, range, at, values, in_turn);
    return rows;
}
PK_END
