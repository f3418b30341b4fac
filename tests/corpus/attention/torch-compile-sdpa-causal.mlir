// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch.compile's graph of scaled_dot_product_attention(is_causal=True)
module {
  func.func public @main(%x0: tensor<2x4x3x8xf32> loc("x0"), %x1: tensor<2x4x3x8xf32> loc("x1"), %x2: tensor<2x4x3x8xf32> loc("x2")) -> (tensor<8x3x8xf32> {jax.result_info = "y0"}) {
    %v3 = stablehlo.constant dense<0.5946035385131836> : tensor<2x4x3x8xf32>
    %v4 = stablehlo.multiply %x0, %v3 : tensor<2x4x3x8xf32>
    %v5 = "stablehlo.reshape"(%v4) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v6 = "stablehlo.transpose"(%x1) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %v7 = stablehlo.constant dense<0.5946035385131836> : tensor<2x4x8x3xf32>
    %v8 = stablehlo.multiply %v6, %v7 : tensor<2x4x8x3xf32>
    %v9 = "stablehlo.reshape"(%v8) : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %v10 = "stablehlo.dot_general"(%v5, %v9) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %v11 = "stablehlo.reshape"(%v10) : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v12 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xi64>
    %v13 = "stablehlo.broadcast_in_dim"(%v12) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xi64>) -> tensor<3x3xi64>
    %v14 = "stablehlo.broadcast_in_dim"(%v12) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi64>) -> tensor<3x3xi64>
    %v15 = stablehlo.subtract %v13, %v14 : tensor<3x3xi64>
    %v16 = stablehlo.constant dense<0> : tensor<3x3xi64>
    %v17 = "stablehlo.compare"(%v15, %v16) <{comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %v18 = stablehlo.constant dense<true> : tensor<3x3xi1>
    %v19 = stablehlo.and %v17, %v18 : tensor<3x3xi1>
    %v20 = stablehlo.constant dense<0.0> : tensor<3x3xf32>
    %v21 = stablehlo.constant dense<0xFF800000> : tensor<3x3xf32>
    %v22 = "stablehlo.select"(%v19, %v20, %v21) : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    %v23 = "stablehlo.broadcast_in_dim"(%v22) <{broadcast_dimensions = array<i64: 2, 3>}> : (tensor<3x3xf32>) -> tensor<2x4x3x3xf32>
    %v24 = stablehlo.add %v11, %v23 : tensor<2x4x3x3xf32>
    %v25 = stablehlo.constant dense<0xFF800000> : tensor<2x4x3x3xf32>
    %v26 = "stablehlo.compare"(%v24, %v25) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %v27 = stablehlo.not %v26 : tensor<2x4x3x3xi1>
    %v28 = stablehlo.constant dense<false> : tensor<i1>
    %v32 = "stablehlo.reduce"(%v27, %v28) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v29: tensor<i1>, %v30: tensor<i1>):
      %v31 = stablehlo.or %v29, %v30 : tensor<i1>
      "stablehlo.return"(%v31) : (tensor<i1>) -> ()
    }) : (tensor<2x4x3x3xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %v33 = "stablehlo.reshape"(%v32) : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %v34 = stablehlo.not %v33 : tensor<2x4x3x1xi1>
    %v35 = "stablehlo.reshape"(%v34) : (tensor<2x4x3x1xi1>) -> tensor<2x4x3xi1>
    %v36 = "stablehlo.broadcast_in_dim"(%v35) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xi1>) -> tensor<2x4x3x3xi1>
    %v37 = stablehlo.constant dense<0.0> : tensor<2x4x3x3xf32>
    %v38 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %v42 = "stablehlo.reduce"(%v24, %v38) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v39: tensor<f32>, %v40: tensor<f32>):
      %v41 = stablehlo.maximum %v39, %v40 : tensor<f32>
      "stablehlo.return"(%v41) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v43 = "stablehlo.broadcast_in_dim"(%v42) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v44 = stablehlo.subtract %v24, %v43 : tensor<2x4x3x3xf32>
    %v45 = stablehlo.exponential %v44 : tensor<2x4x3x3xf32>
    %v46 = stablehlo.constant dense<0.0> : tensor<f32>
    %v50 = "stablehlo.reduce"(%v45, %v46) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v47: tensor<f32>, %v48: tensor<f32>):
      %v49 = stablehlo.add %v47, %v48 : tensor<f32>
      "stablehlo.return"(%v49) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v51 = "stablehlo.broadcast_in_dim"(%v50) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v52 = stablehlo.divide %v45, %v51 : tensor<2x4x3x3xf32>
    %v53 = "stablehlo.select"(%v36, %v37, %v52) : (tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v54 = "stablehlo.reshape"(%v53) : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %v55 = "stablehlo.reshape"(%x2) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v56 = "stablehlo.dot_general"(%v54, %v55) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    return %v56 : tensor<8x3x8xf32>
  }
}
