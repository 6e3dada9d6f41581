"""Feed-forward tables from GGUF keys: dense widths, experts and their routing."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from engine.gguf import GgufFile
from engine.models.family import ExpertRules, Family
from engine.models.keys import Keys
from engine.models.spec import ExpertSpec, FfnSpec, Gating

_WIDTH = "feed_forward_length"
_MAX_EXPERTS = 1 << 16

# Values of expert_gating_func.
_GATINGS: MappingProxyType[int, Gating] = MappingProxyType(
    {1: "softmax", 2: "sigmoid", 3: "softmax_chosen", 4: "sqrt_softplus"}
)
# GLM 4.7 Flash came as deepseek2 without the gating key: layers with or without the extra prediction layer, tokens.
_SIGMOID_WITHOUT_KEY = frozenset({(47, 154880), (48, 154880)})


@dataclass(frozen=True)
class FfnReader:
    """Reads the feed-forward part of all `layers`."""

    gguf: GgufFile
    family: Family
    keys: Keys
    layers: int
    vocabulary: int

    def tables(self) -> tuple[FfnSpec, ...]:
        count = self.keys.integer("expert_count", 0, low=0, high=_MAX_EXPERTS)
        if not count:
            return self._dense(self.layers)
        rules = self.family.experts
        if rules is None:
            self.keys.fail("expert_count", count, f"0: {self.family.architecture} models have no experts")
        dense = min(self.keys.integer("leading_dense_block_count", 0, low=0), self.layers)
        return (*self._dense(dense), *self._mixtures(rules, count, dense))

    def _dense(self, count: int) -> tuple[FfnSpec, ...]:
        widths = self.keys.per_layer(_WIDTH, self.layers) if count else ()
        return tuple(FfnSpec("dense", width, self.family.activation) for width in widths[:count])

    def _mixtures(self, rules: ExpertRules, count: int, first: int) -> tuple[FfnSpec, ...]:
        used = self.keys.integer("expert_used_count", high=count)
        widths = self._widths(rules, used)
        return tuple(
            FfnSpec("moe", widths[i], self.family.activation, self._experts(rules, count, used, widths[i], i))
            for i in range(first, self.layers)
        )

    def _widths(self, rules: ExpertRules, used: int) -> tuple[int, ...]:
        """Inner channels of an expert, per layer; without their key the dense width is shared among the used."""
        if rules.width == _WIDTH or self.keys.get(rules.width) is not None:
            return self.keys.per_layer(rules.width, self.layers)
        return tuple(width // used for width in self.keys.per_layer(_WIDTH, self.layers))

    def _experts(self, rules: ExpertRules, count: int, used: int, width: int, layer: int) -> ExpertSpec:
        groups, groups_used = self._groups(count, used)
        return ExpertSpec(
            count,
            used,
            gating=self._gating(rules),
            normalise=self.keys.flag("expert_weights_norm", rules.normalise) if rules.keyed else rules.normalise,
            scale=(self.keys.number("expert_weights_scale", 1.0) or 1.0) if rules.keyed else 1.0,
            groups=groups,
            groups_used=groups_used,
            shared_width=self._shared_width(rules, width, layer),
            shared_gate=rules.shared_gate,
            biases=rules.biases,
        )

    def _groups(self, count: int, used: int) -> tuple[int, int]:
        groups = self.keys.integer("expert_group_count", 1, low=0, high=count)
        if groups < 2:
            return 1, 1
        if count % groups:
            self.keys.fail("expert_group_count", groups, f"a divisor of the {count} experts")
        chosen = self.keys.integer("expert_group_used_count", high=groups)
        if chosen * (count // groups) < used:
            self.keys.fail("expert_group_used_count", chosen, f"enough groups for {used} experts")
        return groups, chosen

    def _gating(self, rules: ExpertRules) -> Gating:
        value = self.keys.integer("expert_gating_func", 0, low=0) if rules.keyed else 0
        if value:
            if value not in _GATINGS:
                self.keys.fail("expert_gating_func", value, "1 softmax, 2 sigmoid, 3 softmax of the chosen, 4 softplus")
            return _GATINGS[value]
        return "sigmoid" if (self.layers, self.vocabulary) in _SIGMOID_WITHOUT_KEY else rules.gating

    def _shared_width(self, rules: ExpertRules, width: int, layer: int) -> int:
        if rules.shared == "count":
            return width * self.keys.integer("expert_shared_count", 0, low=0, high=_MAX_EXPERTS)
        if rules.shared == "none" or f"blk.{layer}.ffn_up_shexp.weight" not in self.gguf.tensors:
            return 0
        key = "expert_shared_feed_forward_length"
        return self.keys.integer(key, 0, low=0) or self.keys.integer(_WIDTH)
