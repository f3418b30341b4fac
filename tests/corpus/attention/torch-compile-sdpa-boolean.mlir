// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch.compile's graph of scaled_dot_product_attention(attn_mask: bool)
module {
  func.func public @main(%x0: tensor<2x1x3x3xi1> loc("x0"), %x1: tensor<2x4x3x8xf32> loc("x1"), %x2: tensor<2x4x3x8xf32> loc("x2"), %x3: tensor<2x4x3x8xf32> loc("x3")) -> (tensor<8x3x8xf32> {jax.result_info = "y0"}) {
    %v4 = stablehlo.constant dense<0.5946035385131836> : tensor<2x4x3x8xf32>
    %v5 = stablehlo.multiply %x1, %v4 : tensor<2x4x3x8xf32>
    %v6 = "stablehlo.reshape"(%v5) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v7 = "stablehlo.transpose"(%x2) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %v8 = stablehlo.constant dense<0.5946035385131836> : tensor<2x4x8x3xf32>
    %v9 = stablehlo.multiply %v7, %v8 : tensor<2x4x8x3xf32>
    %v10 = "stablehlo.reshape"(%v9) : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %v11 = "stablehlo.dot_general"(%v6, %v10) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %v12 = "stablehlo.reshape"(%v11) : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v13 = stablehlo.constant dense<0.0> : tensor<2x1x3x3xf32>
    %v14 = stablehlo.constant dense<0xFF800000> : tensor<2x1x3x3xf32>
    %v15 = "stablehlo.select"(%x0, %v13, %v14) : (tensor<2x1x3x3xi1>, tensor<2x1x3x3xf32>, tensor<2x1x3x3xf32>) -> tensor<2x1x3x3xf32>
    %v16 = "stablehlo.reshape"(%v15) : (tensor<2x1x3x3xf32>) -> tensor<2x3x3xf32>
    %v17 = "stablehlo.broadcast_in_dim"(%v16) <{broadcast_dimensions = array<i64: 0, 2, 3>}> : (tensor<2x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v18 = stablehlo.add %v12, %v17 : tensor<2x4x3x3xf32>
    %v19 = stablehlo.constant dense<0xFF800000> : tensor<2x4x3x3xf32>
    %v20 = "stablehlo.compare"(%v18, %v19) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %v21 = stablehlo.not %v20 : tensor<2x4x3x3xi1>
    %v22 = stablehlo.constant dense<false> : tensor<i1>
    %v26 = "stablehlo.reduce"(%v21, %v22) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v23: tensor<i1>, %v24: tensor<i1>):
      %v25 = stablehlo.or %v23, %v24 : tensor<i1>
      "stablehlo.return"(%v25) : (tensor<i1>) -> ()
    }) : (tensor<2x4x3x3xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %v27 = "stablehlo.reshape"(%v26) : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %v28 = stablehlo.not %v27 : tensor<2x4x3x1xi1>
    %v29 = "stablehlo.reshape"(%v28) : (tensor<2x4x3x1xi1>) -> tensor<2x4x3xi1>
    %v30 = "stablehlo.broadcast_in_dim"(%v29) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xi1>) -> tensor<2x4x3x3xi1>
    %v31 = stablehlo.constant dense<0.0> : tensor<2x4x3x3xf32>
    %v32 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %v36 = "stablehlo.reduce"(%v18, %v32) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v33: tensor<f32>, %v34: tensor<f32>):
      %v35 = stablehlo.maximum %v33, %v34 : tensor<f32>
      "stablehlo.return"(%v35) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v37 = "stablehlo.broadcast_in_dim"(%v36) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v38 = stablehlo.subtract %v18, %v37 : tensor<2x4x3x3xf32>
    %v39 = stablehlo.exponential %v38 : tensor<2x4x3x3xf32>
    %v40 = stablehlo.constant dense<0.0> : tensor<f32>
    %v44 = "stablehlo.reduce"(%v39, %v40) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v41: tensor<f32>, %v42: tensor<f32>):
      %v43 = stablehlo.add %v41, %v42 : tensor<f32>
      "stablehlo.return"(%v43) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v45 = "stablehlo.broadcast_in_dim"(%v44) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v46 = stablehlo.divide %v39, %v45 : tensor<2x4x3x3xf32>
    %v47 = "stablehlo.select"(%v30, %v31, %v46) : (tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v48 = "stablehlo.reshape"(%v47) : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %v49 = "stablehlo.reshape"(%x3) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v50 = "stablehlo.dot_general"(%v48, %v49) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    return %v50 : tensor<8x3x8xf32>
  }
}
