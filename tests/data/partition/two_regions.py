class joint(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[16, 16]"; primals_2: "f32[16, 16]"; tangents_1: "f32[16, 16]"; 

        primals_1, primals_2, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        # ac_graph_id: 1 - PREFER_RECOMPUTE
        sin: "f32[16, 16]" = torch.ops.aten.sin.default(primals_1)
        cos: "f32[16, 16]" = torch.ops.aten.cos.default(sin)
        # ac_graph_id: 2 - PREFER_RECOMPUTE
        mm: "f32[16, 16]" = torch.ops.aten.mm.default(cos, primals_2)
        tanh: "f32[16, 16]" = torch.ops.aten.tanh.default(mm)
        # No stacktrace found for following nodes
        alias: "f32[16, 16]" = torch.ops.aten.alias.default(tanh)
        # ac_graph_id: 2 - PREFER_RECOMPUTE
        exp: "f32[16, 16]" = torch.ops.aten.exp.default(tanh)
        # No stacktrace found for following nodes
        alias_1: "f32[16, 16]" = torch.ops.aten.alias.default(exp)
        alias_2: "f32[16, 16]" = torch.ops.aten.alias.default(alias_1)
        mul: "f32[16, 16]" = torch.ops.aten.mul.Tensor(tangents_1, alias_2)
        alias_3: "f32[16, 16]" = torch.ops.aten.alias.default(alias)
        mul_1: "f32[16, 16]" = torch.ops.aten.mul.Tensor(alias_3, alias_3)
        sub: "f32[16, 16]" = torch.ops.aten.sub.Tensor(1, mul_1)
        mul_2: "f32[16, 16]" = torch.ops.aten.mul.Tensor(mul, sub)
        permute: "f32[16, 16]" = torch.ops.aten.permute.default(cos, [1, 0])
        mm_1: "f32[16, 16]" = torch.ops.aten.mm.default(permute, mul_2)
        permute_1: "f32[16, 16]" = torch.ops.aten.permute.default(primals_2, [1, 0])
        mm_2: "f32[16, 16]" = torch.ops.aten.mm.default(mul_2, permute_1)
        sin_1: "f32[16, 16]" = torch.ops.aten.sin.default(sin)
        neg: "f32[16, 16]" = torch.ops.aten.neg.default(sin_1)
        mul_3: "f32[16, 16]" = torch.ops.aten.mul.Tensor(mm_2, neg)
        cos_1: "f32[16, 16]" = torch.ops.aten.cos.default(primals_1)
        mul_4: "f32[16, 16]" = torch.ops.aten.mul.Tensor(mul_3, cos_1)
        return pytree.tree_unflatten([exp, mul_4, mm_1], self._out_spec)
