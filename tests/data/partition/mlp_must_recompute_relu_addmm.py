class joint(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[8, 16]"; primals_2: "f32[32, 16]"; primals_3: "f32[32]"; primals_4: "f32[4, 32]"; primals_5: "f32[4]"; tangents_1: "f32[8, 4]"; 

        primals_1, primals_2, primals_3, primals_4, primals_5, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        permute: "f32[16, 32]" = torch.ops.aten.permute.default(primals_2, [1, 0])
        # recompute: MUST_RECOMPUTE
        addmm: "f32[8, 32]" = torch.ops.aten.addmm.default(primals_3, primals_1, permute)
        relu: "f32[8, 32]" = torch.ops.aten.relu.default(addmm)
        # No stacktrace found for following nodes
        alias: "f32[8, 32]" = torch.ops.aten.alias.default(relu)
        permute_1: "f32[32, 4]" = torch.ops.aten.permute.default(primals_4, [1, 0])
        addmm_1: "f32[8, 4]" = torch.ops.aten.addmm.default(primals_5, relu, permute_1)
        permute_2: "f32[4, 32]" = torch.ops.aten.permute.default(permute_1, [1, 0])
        mm: "f32[8, 32]" = torch.ops.aten.mm.default(tangents_1, permute_2)
        permute_3: "f32[4, 8]" = torch.ops.aten.permute.default(tangents_1, [1, 0])
        mm_1: "f32[4, 32]" = torch.ops.aten.mm.default(permute_3, relu)
        permute_4: "f32[32, 4]" = torch.ops.aten.permute.default(mm_1, [1, 0])
        sum_1: "f32[1, 4]" = torch.ops.aten.sum.dim_IntList(tangents_1, [0], True)
        view: "f32[4]" = torch.ops.aten.view.default(sum_1, [4])
        permute_5: "f32[4, 32]" = torch.ops.aten.permute.default(permute_4, [1, 0])
        alias_1: "f32[8, 32]" = torch.ops.aten.alias.default(alias)
        le: "b8[8, 32]" = torch.ops.aten.le.Scalar(alias_1, 0)
        scalar_tensor: "f32[]" = torch.ops.aten.scalar_tensor.default(0, dtype = torch.float32, layout = torch.strided, device = device(type='cpu'))
        where: "f32[8, 32]" = torch.ops.aten.where.self(le, scalar_tensor, mm)
        permute_6: "f32[32, 16]" = torch.ops.aten.permute.default(permute, [1, 0])
        mm_2: "f32[8, 16]" = torch.ops.aten.mm.default(where, permute_6)
        permute_7: "f32[32, 8]" = torch.ops.aten.permute.default(where, [1, 0])
        mm_3: "f32[32, 16]" = torch.ops.aten.mm.default(permute_7, primals_1)
        permute_8: "f32[16, 32]" = torch.ops.aten.permute.default(mm_3, [1, 0])
        sum_2: "f32[1, 32]" = torch.ops.aten.sum.dim_IntList(where, [0], True)
        view_1: "f32[32]" = torch.ops.aten.view.default(sum_2, [32])
        permute_9: "f32[32, 16]" = torch.ops.aten.permute.default(permute_8, [1, 0])
        return pytree.tree_unflatten([addmm_1, mm_2, permute_9, view_1, permute_5, view], self._out_spec)
