class joint(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[2, 3, 8, 8]"; tangents_1: "f32[2, 3, 4, 4]"; 

        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        relu: "f32[2, 3, 8, 8]" = torch.ops.aten.relu.default(primals_1)
        alias: "f32[2, 3, 8, 8]" = torch.ops.aten.alias.default(relu)
        _low_memory_max_pool_with_offsets = torch.ops.prims._low_memory_max_pool_with_offsets.default(relu, [2, 2], [2, 2], [0, 0], [1, 1], False)
        getitem: "f32[2, 3, 4, 4]" = _low_memory_max_pool_with_offsets[0]
        getitem_1: "i8[2, 3, 4, 4]" = _low_memory_max_pool_with_offsets[1]
        _low_memory_max_pool_offsets_to_indices: "i64[2, 3, 4, 4]" = torch.ops.prims._low_memory_max_pool_offsets_to_indices.default(getitem_1, [2, 2], [8, 8], [2, 2], [0, 0], [1, 1])
        sin: "f32[2, 3, 4, 4]" = torch.ops.aten.sin.default(getitem)
        cos: "f32[2, 3, 4, 4]" = torch.ops.aten.cos.default(getitem)
        mul: "f32[2, 3, 4, 4]" = torch.ops.aten.mul.Tensor(tangents_1, cos)
        max_pool2d_with_indices_backward: "f32[2, 3, 8, 8]" = torch.ops.aten.max_pool2d_with_indices_backward.default(mul, relu, [2, 2], [], [0, 0], [1, 1], False, _low_memory_max_pool_offsets_to_indices)
        alias_1: "f32[2, 3, 8, 8]" = torch.ops.aten.alias.default(alias)
        le: "b8[2, 3, 8, 8]" = torch.ops.aten.le.Scalar(alias_1, 0)
        scalar_tensor: "f32[]" = torch.ops.aten.scalar_tensor.default(0, dtype = torch.float32, layout = torch.strided, device = device(type='cpu'))
        where: "f32[2, 3, 8, 8]" = torch.ops.aten.where.self(le, scalar_tensor, max_pool2d_with_indices_backward)
        return pytree.tree_unflatten([sin, where], self._out_spec)
