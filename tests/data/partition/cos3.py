class joint(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[4, 4]"; tangents_1: "f32[4, 4]"; 

        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        cos: "f32[4, 4]" = torch.ops.aten.cos.default(primals_1)
        cos_1: "f32[4, 4]" = torch.ops.aten.cos.default(cos)
        cos_2: "f32[4, 4]" = torch.ops.aten.cos.default(cos_1)
        sin: "f32[4, 4]" = torch.ops.aten.sin.default(cos_1)
        neg: "f32[4, 4]" = torch.ops.aten.neg.default(sin)
        mul: "f32[4, 4]" = torch.ops.aten.mul.Tensor(tangents_1, neg)
        sin_1: "f32[4, 4]" = torch.ops.aten.sin.default(cos)
        neg_1: "f32[4, 4]" = torch.ops.aten.neg.default(sin_1)
        mul_1: "f32[4, 4]" = torch.ops.aten.mul.Tensor(mul, neg_1)
        sin_2: "f32[4, 4]" = torch.ops.aten.sin.default(primals_1)
        neg_2: "f32[4, 4]" = torch.ops.aten.neg.default(sin_2)
        mul_2: "f32[4, 4]" = torch.ops.aten.mul.Tensor(mul_1, neg_2)
        return pytree.tree_unflatten([cos_2, mul_2], self._out_spec)
