// Drafts from a conversation's own tokens.
#pragma once
#include <algorithm>
#include <cstdint>

namespace pk {

struct Match {
    int end = 0;                 // of what was matched
    int length = 0;              // 0: there is none
};

// The latest of the longest matches with the end of `ids`, of `shortest` to `longest` ids.
inline Match latest_match(const int32_t* ids, int count, int shortest, int longest) {
    const int last = count - 1;
    int end = 0, best = shortest - 1;
    for (int at = last - 1; at >= best && best < longest; at--) {
        if (ids[at] != ids[last]) continue;
        const int most = std::min(at + 1, longest);
        int length = 1;
        while (length < most && ids[at - length] == ids[last - length]) length++;
        if (length > best) end = at + 1, best = length;
    }
    return Match{end, end ? best : 0};
}

}  // namespace pk
