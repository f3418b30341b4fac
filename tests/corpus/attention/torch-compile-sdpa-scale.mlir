// op: kernel.attention scale=0.2
// source: torch 2.13.0, torch.compile's graph of scaled_dot_product_attention(scale=0.2)
module {
  func.func public @main(%x0: tensor<2x4x3x8xf32> loc("x0"), %x1: tensor<2x4x3x8xf32> loc("x1"), %x2: tensor<2x4x3x8xf32> loc("x2")) -> (tensor<8x3x8xf32> {jax.result_info = "y0"}) {
    %v3 = stablehlo.constant dense<0.4472135901451111> : tensor<2x4x3x8xf32>
    %v4 = stablehlo.multiply %x0, %v3 : tensor<2x4x3x8xf32>
    %v5 = "stablehlo.reshape"(%v4) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v6 = "stablehlo.transpose"(%x1) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %v7 = stablehlo.constant dense<0.4472135901451111> : tensor<2x4x8x3xf32>
    %v8 = stablehlo.multiply %v6, %v7 : tensor<2x4x8x3xf32>
    %v9 = "stablehlo.reshape"(%v8) : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %v10 = "stablehlo.dot_general"(%v5, %v9) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %v11 = "stablehlo.reshape"(%v10) : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v12 = stablehlo.constant dense<0xFF800000> : tensor<2x4x3x3xf32>
    %v13 = "stablehlo.compare"(%v11, %v12) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %v14 = stablehlo.not %v13 : tensor<2x4x3x3xi1>
    %v15 = stablehlo.constant dense<false> : tensor<i1>
    %v19 = "stablehlo.reduce"(%v14, %v15) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v16: tensor<i1>, %v17: tensor<i1>):
      %v18 = stablehlo.or %v16, %v17 : tensor<i1>
      "stablehlo.return"(%v18) : (tensor<i1>) -> ()
    }) : (tensor<2x4x3x3xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %v20 = "stablehlo.reshape"(%v19) : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %v21 = stablehlo.not %v20 : tensor<2x4x3x1xi1>
    %v22 = "stablehlo.reshape"(%v21) : (tensor<2x4x3x1xi1>) -> tensor<2x4x3xi1>
    %v23 = "stablehlo.broadcast_in_dim"(%v22) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xi1>) -> tensor<2x4x3x3xi1>
    %v24 = stablehlo.constant dense<0.0> : tensor<2x4x3x3xf32>
    %v25 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %v29 = "stablehlo.reduce"(%v11, %v25) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v26: tensor<f32>, %v27: tensor<f32>):
      %v28 = stablehlo.maximum %v26, %v27 : tensor<f32>
      "stablehlo.return"(%v28) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v30 = "stablehlo.broadcast_in_dim"(%v29) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v31 = stablehlo.subtract %v11, %v30 : tensor<2x4x3x3xf32>
    %v32 = stablehlo.exponential %v31 : tensor<2x4x3x3xf32>
    %v33 = stablehlo.constant dense<0.0> : tensor<f32>
    %v37 = "stablehlo.reduce"(%v32, %v33) <{dimensions = array<i64: 3>}> ({
      ^bb0(%v34: tensor<f32>, %v35: tensor<f32>):
      %v36 = stablehlo.add %v34, %v35 : tensor<f32>
      "stablehlo.return"(%v36) : (tensor<f32>) -> ()
    }) : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %v38 = "stablehlo.broadcast_in_dim"(%v37) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x3xf32>) -> tensor<2x4x3x3xf32>
    %v39 = stablehlo.divide %v32, %v38 : tensor<2x4x3x3xf32>
    %v40 = "stablehlo.select"(%v23, %v24, %v39) : (tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %v41 = "stablehlo.reshape"(%v40) : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %v42 = "stablehlo.reshape"(%x2) : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %v43 = "stablehlo.dot_general"(%v41, %v42) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    return %v43 : tensor<8x3x8xf32>
  }
}
