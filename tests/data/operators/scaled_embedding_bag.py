def forward(qweight: "i8[10, 6]", indices: "i64[7]", offsets: "i64[4]", weight_scale: "f32[1]"):
    result = torch.ops.torchao._scaled_embedding_bag.default(qweight, indices, offsets, weight_scale, 1.0, 0, True, torch.float32)
    return (result,)
