def forward(query: "u8[1, 2, 5, 8]", key: "u8[1, 2, 5, 8]", value: "u8[1, 2, 5, 8]"):
    result = torch.ops.torchao.qscaled_dot_product.default(query, key, value, None, 0.0, False, 0.25, 0.02, 120, 0.03, 130, 0.05, 110, 0.00392156862745098, 0, 0.04, 128)
    return (result,)
