"""What names stand for in kernels of this field, for what nothing else tells: sizes, tiles, flags, strides.

The sizes are those of a small model, so that they agree with each other: tiles divide sizes, head dimensions are 64.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Role:
    """What a name stands for, and the value that goes with it."""

    what: str
    value: int


# Longest match first; names are compared in lower case, without `n_`, `num_`, `max_` in front and `_size`, `_len` behind.
_SIZES: tuple[tuple[str, str, int], ...] = (
    (r"b|bs|z|bsz|batch|batches|batchsize|nb", "batch", 2),
    (r"h|hq|hkv|hv|heads?|q_?heads?|kv_?heads?|v_?heads?|k_?heads?|nheads|head_?count|heads_[qkv]|[qkv]o?_heads?|qh|kvh", "heads", 4),
    (r"g|groups?|ngroups|gqa|kv_group\w*|rep\w*", "groups", 2),
    (r"t|tq|tk|s|l|lq|lk|seq|seqs?|seq_?len\w*|ctx|n_ctx|time|tokens?|q_?len|k_?len|kv_?len|seqlen_?[qk]?|context\w*|length", "sequence", 512),
    (r"d|dk|dv|k|v|dim|head_?dims?|headdim\w*|head_?dim_?\w|d_head|d_model|dstate|state|h_?dim|kv_?dim|qk_?dim|v_?dim|rope_?dim\w*|nope\w*", "head dimension", 64),
    (r"group", "quantization group", 128),
    (r"bt|chunk|chunks?|chunk_?size|page|block_?table\w*", "chunk", 64),
    (r"experts?|e|topk|top_k", "experts", 8),
    (r"c|channels?|in_?channels?|out_?channels?|in_?c|out_?c|ci|co", "channels", 64),
    (r"ih|iw|oh|ow|height|width|in_?h\w*|in_?w\w*|out_?h\w*|out_?w\w*|h_in|w_in|h_out|w_out|w", "image side", 32),
    (r"kh|kw|kernel|kernel_?h\w*|kernel_?w\w*|conv_?\w*|width", "filter side", 4),
    (r"padding\w*|pad|pad_?[hw]|p", "padding", 1),
    (r"dilation\w*|conv_stride\w*|stride_?[hw]|step", "step", 1),
    (r"m|rows?|total_?tokens|row_?\w*", "rows", 512),
    (r"n|cols?|columns?|hidden\w*|features?|in_?features?|out_?features?|vocab\w*|intermediate\w*|inner|size|numel|elements?", "columns", 1024),
)  # fmt: skip
_FLOAT = re.compile(
    r"(^|_)(eps|epsilon|scale|scaling|alpha|beta\d?|gamma|lr|momentum|p|prob|dropout|temperature|softcap|cap|slope|decay|rate|"
    r"smoothing|clamp|bound|theta|threshold|sm_scale|weight_decay|value|(fp|float)8_?(min|max))($|_)",
    re.I,
)
_FLAG = re.compile(
    r"^(is|has|use|with|do|apply|enable|need|needs|store|load|return|output|compute|save|skip|causal|even|divisible|add|allow|keep|tie|"
    r"initial|reverse|transpose|transposed|inclusive|exclusive|normalize|norm|mask|masked|want|should|tril|upper|nan)(_|[A-Z]|$)"
    r"|causal|(_|^)(flag|only|first|last|enabled|affine|trans)(_|$)",
    re.I,
)
_MULTIPLE = re.compile(
    r"stride|(^|_)(M|N|K|H|D|dim|size|numel|elements|n_cols|n_rows|cols|rows|hidden|seq_?len)($|_)|^(n|num)_", re.I
)
_POINTER = re.compile(r"(_ptrs?$|^ptr_|^p_|_pointer$)", re.I)
_INDEX = re.compile(
    r"(^|_)(idx|index|indices|ids|id|offsets?|cu_seqlens\w*|seqlens?|lens|lengths?|labels?|targets?|block_tables?|page_table|slots?|"
    r"slot_mapping|map|mapping|positions?|starts?|ends?)($|_)",
    re.I,
)
_STATISTIC = re.compile(
    r"(^|_)(d?lse|logsumexp|r?std|rstds?|mean|var|variance|r?rms|inv_?rms|absmax|amax|maxes|sums?)($|_)", re.I
)
_SCALE = re.compile(r"scale|(^|_)[A-Za-z]s($|_ptrs?$|_pointer$)", re.I)
_DTYPE = re.compile(r"(^|_)d?type($|_)", re.I)
_TILE = re.compile(
    r"^(BLOCK|TILE|XBLOCK|YBLOCK|RBLOCK|B[A-Z]{1,2}$|B_|CHUNK)|(^|_)(block|tile)(_|$)|_BLOCK|BLOCK_", re.I
)


def size_role(name: str) -> Role | None:
    """The size that a name stands for: `head_dim` and `K` are 64, `n_cols` is 1024."""
    plain = re.sub(r"^(n|num|max|total|cxpr|cfg|constexpr|p|the)_+", "", name.lower())
    for text in (plain, re.sub(r"_?(size|len|length|dim|count|num)$", "", plain)):
        for pattern, what, value in _SIZES:
            if text and re.fullmatch(pattern, text):
                return Role(what, value)
    return None


def is_float(name: str) -> bool:
    return bool(_FLOAT.search(name))


def is_flag(name: str) -> bool:
    return bool(_FLAG.search(name))


def is_multiple(name: str) -> bool:
    """Whether a number of that name is a multiple of 16 as a rule: sizes and strides."""
    return bool(_MULTIPLE.search(name))


def is_pointer(name: str) -> bool:
    return bool(_POINTER.search(name))


def is_index(name: str) -> bool:
    return bool(_INDEX.search(name))


def is_statistic(name: str) -> bool:
    """Whether tensors of that name hold sums and the like, which are kept in fp32."""
    return bool(_STATISTIC.search(name))


def is_scale(name: str) -> bool:
    """Whether tensors of that name hold the factors of quantized values: `a_scale_ptr`, `As`."""
    return bool(_SCALE.search(name))


def is_dtype(name: str) -> bool:
    return bool(_DTYPE.search(name))


def is_tile(name: str) -> bool:
    return bool(_TILE.search(name))
