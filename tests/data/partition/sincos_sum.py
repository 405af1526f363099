class joint(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[4, 4]"; primals_2: "f32[4, 4]"; tangents_1: "f32[]"; 

        primals_1, primals_2, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        sin: "f32[4, 4]" = torch.ops.aten.sin.default(primals_1)
        cos: "f32[4, 4]" = torch.ops.aten.cos.default(primals_2)
        mul: "f32[4, 4]" = torch.ops.aten.mul.Tensor(sin, cos)
        sum_1: "f32[]" = torch.ops.aten.sum.default(mul)
        expand: "f32[4, 4]" = torch.ops.aten.expand.default(tangents_1, [4, 4])
        mul_1: "f32[4, 4]" = torch.ops.aten.mul.Tensor(expand, sin)
        mul_2: "f32[4, 4]" = torch.ops.aten.mul.Tensor(expand, cos)
        sin_1: "f32[4, 4]" = torch.ops.aten.sin.default(primals_2)
        neg: "f32[4, 4]" = torch.ops.aten.neg.default(sin_1)
        mul_3: "f32[4, 4]" = torch.ops.aten.mul.Tensor(mul_1, neg)
        cos_1: "f32[4, 4]" = torch.ops.aten.cos.default(primals_1)
        mul_4: "f32[4, 4]" = torch.ops.aten.mul.Tensor(mul_2, cos_1)
        return pytree.tree_unflatten([sum_1, mul_4, mul_3], self._out_spec)
