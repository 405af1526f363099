class joint(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[16, 16]"; tangents_1: "f32[16, 16]"; 

        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        sin: "f32[16, 16]" = torch.ops.aten.sin.default(primals_1)
        rand: "f32[16, 16]" = torch.ops.aten.rand.default([16, 16], dtype = torch.float32, device = device(type='cpu'), pin_memory = False)
        gt: "b8[16, 16]" = torch.ops.aten.gt.Scalar(rand, 0.5)
        mul: "f32[16, 16]" = torch.ops.aten.mul.Tensor(gt, sin)
        mul_1: "f32[16, 16]" = torch.ops.aten.mul.Tensor(mul, 2.0)
        mul_2: "f32[16, 16]" = torch.ops.aten.mul.Tensor(mul_1, primals_1)
        mul_3: "f32[16, 16]" = torch.ops.aten.mul.Tensor(tangents_1, mul_1)
        mul_4: "f32[16, 16]" = torch.ops.aten.mul.Tensor(tangents_1, primals_1)
        convert_element_type: "f32[16, 16]" = torch.ops.prims.convert_element_type.default(gt, torch.float32)
        mul_5: "f32[16, 16]" = torch.ops.aten.mul.Tensor(convert_element_type, 2.0)
        mul_6: "f32[16, 16]" = torch.ops.aten.mul.Tensor(mul_4, mul_5)
        clone: "f32[16, 16]" = torch.ops.aten.clone.default(mul_6, memory_format = torch.contiguous_format)
        cos: "f32[16, 16]" = torch.ops.aten.cos.default(primals_1)
        mul_7: "f32[16, 16]" = torch.ops.aten.mul.Tensor(clone, cos)
        add: "f32[16, 16]" = torch.ops.aten.add.Tensor(mul_3, mul_7)
        return pytree.tree_unflatten([mul_2, add], self._out_spec)
