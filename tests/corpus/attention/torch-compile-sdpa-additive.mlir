// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch.compile's graph of scaled_dot_product_attention(attn_mask: float)
module {
  func.func public @main(%x0: tensor<2x4x3x8xf32> loc("x0"), %x1: tensor<2x4x3x8xf32> loc("x1"), %x2: tensor<2x1x3x3xf32> loc("x2"), %x3: tensor<2x4x3x8xf32> loc("x3")) -> (tensor<8x3x8xf32> {jax.result_info = "y0"}) {
    %v4 = stablehlo.constant dense<0.5946035385131836> : tensor<2x4x3x8xf32>
    %v5 = stablehlo.multiply %x0, %v4 : tensor<2x4x3x8xf32>
    %v6 = "stablehlo.reshape"(%v5) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v7 = "stablehlo.transpose"(%x1) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %v8 = stablehlo.constant dense<0.5946035385131836> : tensor<2x4x8x3xf32>
    %v9 = stablehlo.multiply %v7, %v8 : tensor<2x4x8x3xf32>
    %v10 = "stablehlo.reshape"(%v9) : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %v11 = "stablehlo.dot_general"(%v6, %v10) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %v12 = "stablehlo.reshape"(%v11) : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v13 = "stablehlo.reshape"(%x2) : (tensor<2x1x3x3xf32>) -> tensor<2x3x3xf32>
    %v14 = "stablehlo.broadcast_in_dim"(%v13) <{broadcast_dimensions = array<i64: 0, 2, 3>}> : (tensor<2x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v15 = stablehlo.add %v12, %v14 : tensor<2x4x3x3xf32>
    %v16 = stablehlo.constant dense<0xFF800000> : tensor<2x4x3x3xf32>
    %v17 = "stablehlo.compare"(%v15, %v16) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %v18 = stablehlo.not %v17 : tensor<2x4x3x3xi1>
    %v19 = stablehlo.constant dense<false> : tensor<i1>
    %v23 = "stablehlo.reduce"(%v18, %v19) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v20: tensor<i1>, %v21: tensor<i1>):
      %v22 = stablehlo.or %v20, %v21 : tensor<i1>
      "stablehlo.return"(%v22) : (tensor<i1>) -> ()
    }) : (tensor<2x4x3x3xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %v24 = "stablehlo.reshape"(%v23) : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %v25 = stablehlo.not %v24 : tensor<2x4x3x1xi1>
    %v26 = "stablehlo.reshape"(%v25) : (tensor<2x4x3x1xi1>) -> tensor<2x4x3xi1>
    %v27 = "stablehlo.broadcast_in_dim"(%v26) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xi1>) -> tensor<2x4x3x3xi1>
    %v28 = stablehlo.constant dense<0.0> : tensor<2x4x3x3xf32>
    %v29 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %v33 = "stablehlo.reduce"(%v15, %v29) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v30: tensor<f32>, %v31: tensor<f32>):
      %v32 = stablehlo.maximum %v30, %v31 : tensor<f32>
      "stablehlo.return"(%v32) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v34 = "stablehlo.broadcast_in_dim"(%v33) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v35 = stablehlo.subtract %v15, %v34 : tensor<2x4x3x3xf32>
    %v36 = stablehlo.exponential %v35 : tensor<2x4x3x3xf32>
    %v37 = stablehlo.constant dense<0.0> : tensor<f32>
    %v41 = "stablehlo.reduce"(%v36, %v37) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v38: tensor<f32>, %v39: tensor<f32>):
      %v40 = stablehlo.add %v38, %v39 : tensor<f32>
      "stablehlo.return"(%v40) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v42 = "stablehlo.broadcast_in_dim"(%v41) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v43 = stablehlo.divide %v36, %v42 : tensor<2x4x3x3xf32>
    %v44 = "stablehlo.select"(%v27, %v28, %v43) : (tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v45 = "stablehlo.reshape"(%v44) : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %v46 = "stablehlo.reshape"(%x3) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v47 = "stablehlo.dot_general"(%v45, %v46) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    return %v47 : tensor<8x3x8xf32>
  }
}
