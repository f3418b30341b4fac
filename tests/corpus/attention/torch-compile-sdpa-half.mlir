// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch.compile's graph of scaled_dot_product_attention in f16
module {
  func.func public @main(%x0: tensor<2x4x3x8xf16> loc("x0"), %x1: tensor<2x4x3x8xf16> loc("x1"), %x2: tensor<2x4x3x8xf16> loc("x2")) -> (tensor<2x4x3x8xf16> {jax.result_info = "y0"}) {
    %v3 = "stablehlo.convert"(%x0) : (tensor<2x4x3x8xf16>) -> tensor<2x4x3x8xf32>
    %v4 = stablehlo.constant dense<0.5946035385131836> : tensor<2x4x3x8xf32>
    %v5 = stablehlo.multiply %v3, %v4 : tensor<2x4x3x8xf32>
    %v6 = "stablehlo.reshape"(%v5) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v7 = "stablehlo.convert"(%x1) : (tensor<2x4x3x8xf16>) -> tensor<2x4x3x8xf32>
    %v8 = "stablehlo.transpose"(%v7) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %v9 = stablehlo.constant dense<0.5946035385131836> : tensor<2x4x8x3xf32>
    %v10 = stablehlo.multiply %v8, %v9 : tensor<2x4x8x3xf32>
    %v11 = "stablehlo.reshape"(%v10) : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %v12 = "stablehlo.dot_general"(%v6, %v11) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %v13 = "stablehlo.reshape"(%v12) : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v14 = stablehlo.constant dense<0xFF800000> : tensor<2x4x3x3xf32>
    %v15 = "stablehlo.compare"(%v13, %v14) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %v16 = stablehlo.not %v15 : tensor<2x4x3x3xi1>
    %v17 = stablehlo.constant dense<false> : tensor<i1>
    %v21 = "stablehlo.reduce"(%v16, %v17) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v18: tensor<i1>, %v19: tensor<i1>):
      %v20 = stablehlo.or %v18, %v19 : tensor<i1>
      "stablehlo.return"(%v20) : (tensor<i1>) -> ()
    }) : (tensor<2x4x3x3xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %v22 = "stablehlo.reshape"(%v21) : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %v23 = stablehlo.not %v22 : tensor<2x4x3x1xi1>
    %v24 = "stablehlo.reshape"(%v23) : (tensor<2x4x3x1xi1>) -> tensor<2x4x3xi1>
    %v25 = "stablehlo.broadcast_in_dim"(%v24) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xi1>) -> tensor<2x4x3x3xi1>
    %v26 = stablehlo.constant dense<0.0> : tensor<2x4x3x3xf32>
    %v27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %v31 = "stablehlo.reduce"(%v13, %v27) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v28: tensor<f32>, %v29: tensor<f32>):
      %v30 = stablehlo.maximum %v28, %v29 : tensor<f32>
      "stablehlo.return"(%v30) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v32 = "stablehlo.broadcast_in_dim"(%v31) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v33 = stablehlo.subtract %v13, %v32 : tensor<2x4x3x3xf32>
    %v34 = stablehlo.exponential %v33 : tensor<2x4x3x3xf32>
    %v35 = stablehlo.constant dense<0.0> : tensor<f32>
    %v39 = "stablehlo.reduce"(%v34, %v35) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v36: tensor<f32>, %v37: tensor<f32>):
      %v38 = stablehlo.add %v36, %v37 : tensor<f32>
      "stablehlo.return"(%v38) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v40 = "stablehlo.broadcast_in_dim"(%v39) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v41 = stablehlo.divide %v34, %v40 : tensor<2x4x3x3xf32>
    %v42 = "stablehlo.select"(%v25, %v26, %v41) : (tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v43 = "stablehlo.reshape"(%v42) : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %v44 = "stablehlo.convert"(%x2) : (tensor<2x4x3x8xf16>) -> tensor<2x4x3x8xf32>
    %v45 = "stablehlo.reshape"(%v44) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v46 = "stablehlo.dot_general"(%v43, %v45) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %v47 = "stablehlo.reshape"(%v46) : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    %v48 = "stablehlo.convert"(%v47) : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf16>
    return %v48 : tensor<2x4x3x8xf16>
  }
}
