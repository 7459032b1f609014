"""A kernel that fills all LDS of a workgroup with NaN: what an earlier kernel left there hides a missing wait."""

from gluonize.triton_api.gluon_language import gl, gluon

CHUNK_BYTES = 4096
WARPS = 4


@gluon.jit
def poison_lds(out_ptr, limit, CHUNKS: gl.constexpr, LANES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    lds = gl.allocate_shared_memory(gl.int32, [CHUNKS, 1024], shared)
    # 0x7FFF7FFF is NaN as f32, as two f16, two bf16 and two e4m3 or e5m2 in the high bytes.
    for i in range(CHUNKS):
        lds.index(i).store(gl.full([1024], 0x7FFF7FFF, gl.int32, layout))
    total = gl.zeros([1024], gl.int32, layout)
    for i in range(CHUNKS):
        total += lds.index(i).load(layout)
    offsets = gl.arange(0, 1024, layout)
    # `limit` is 0: nothing is written, but the stores to LDS have a reader and stay.
    gl.store(out_ptr + offsets, total, mask=offsets < limit)
