// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of softmax(q k^T / sqrt(d)) v
module {
  func.func @main(%arg0: tensor<?x4x?x8xf32>, %arg1: tensor<?x4x?x8xf32>, %arg2: tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32> {
    %c8_i64 = arith.constant 8 : i64
    %c4_i64 = arith.constant 4 : i64
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %cst_1 = arith.constant dense<2.8284271247461903> : tensor<1xf64>
    %dim = tensor.dim %arg0, %c0 : tensor<?x4x?x8xf32>
    %0 = arith.index_cast %dim : index to i64
    %dim_2 = tensor.dim %arg1, %c2 : tensor<?x4x?x8xf32>
    %1 = arith.index_cast %dim_2 : index to i64
    %2 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<?x4x?x8xf32>) -> tensor<?x4x8x?xf32>
    %3 = arith.muli %0, %c4_i64 : i64
    %from_elements = tensor.from_elements %dim, %c4, %dim_2, %c8 : tensor<4xindex>
    %4 = stablehlo.dynamic_broadcast_in_dim %arg0, %from_elements, dims = [0, 1, 2, 3] : (tensor<?x4x?x8xf32>, tensor<4xindex>) -> tensor<?x4x?x8xf32>
    %from_elements_3 = tensor.from_elements %3, %1, %c8_i64 : tensor<3xi64>
    %5 = stablehlo.dynamic_reshape %4, %from_elements_3 : (tensor<?x4x?x8xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
    %from_elements_4 = tensor.from_elements %dim, %c4, %c8, %dim_2 : tensor<4xindex>
    %6 = stablehlo.dynamic_broadcast_in_dim %2, %from_elements_4, dims = [0, 1, 2, 3] : (tensor<?x4x8x?xf32>, tensor<4xindex>) -> tensor<?x4x8x?xf32>
    %from_elements_5 = tensor.from_elements %3, %c8_i64, %1 : tensor<3xi64>
    %7 = stablehlo.dynamic_reshape %6, %from_elements_5 : (tensor<?x4x8x?xf32>, tensor<3xi64>) -> tensor<?x8x?xf32>
    %dim_6 = tensor.dim %7, %c0 : tensor<?x8x?xf32>
    %dim_7 = tensor.dim %7, %c2 : tensor<?x8x?xf32>
    %from_elements_8 = tensor.from_elements %dim_6, %c8, %dim_7 : tensor<3xindex>
    %8 = stablehlo.dynamic_broadcast_in_dim %7, %from_elements_8, dims = [0, 1, 2] : (tensor<?x8x?xf32>, tensor<3xindex>) -> tensor<?x8x?xf32>
    %9 = stablehlo.dot_general %5, %8, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<?x?x8xf32>, tensor<?x8x?xf32>) -> tensor<?x?x?xf32>
    %from_elements_9 = tensor.from_elements %0, %c4_i64, %1, %1 : tensor<4xi64>
    %10 = stablehlo.dynamic_reshape %9, %from_elements_9 : (tensor<?x?x?xf32>, tensor<4xi64>) -> tensor<?x4x?x?xf32>
    %11 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %12 = stablehlo.reshape %11 : (tensor<1xf32>) -> tensor<f32>
    %13 = shape.shape_of %10 : tensor<?x4x?x?xf32> -> tensor<4xindex>
    %14 = stablehlo.dynamic_broadcast_in_dim %10, %13, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
    %15 = stablehlo.dynamic_broadcast_in_dim %12, %13, dims = [] : (tensor<f32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
    %16 = stablehlo.divide %14, %15 : tensor<?x4x?x?xf32>
    %dim_10 = tensor.dim %16, %c0 : tensor<?x4x?x?xf32>
    %dim_11 = tensor.dim %16, %c2 : tensor<?x4x?x?xf32>
    %17 = stablehlo.reduce(%16 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?xf32>
    %from_elements_12 = tensor.from_elements %dim_10, %c4, %dim_11, %c1 : tensor<4xindex>
    %18 = stablehlo.dynamic_reshape %17, %from_elements_12 : (tensor<?x4x?xf32>, tensor<4xindex>) -> tensor<?x4x?x1xf32>
    %19 = shape.shape_of %16 : tensor<?x4x?x?xf32> -> tensor<4xindex>
    %20 = shape.shape_of %18 : tensor<?x4x?x1xf32> -> tensor<4xindex>
    %21 = shape.cstr_broadcastable %19, %20 : tensor<4xindex>, tensor<4xindex>
    %22 = shape.assuming %21 -> (tensor<?x4x?x?xf32>) {
      %37 = shape.broadcast %19, %20 : tensor<4xindex>, tensor<4xindex> -> tensor<4xindex>
      %38 = stablehlo.dynamic_broadcast_in_dim %16, %37, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %39 = stablehlo.dynamic_broadcast_in_dim %18, %37, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %40 = stablehlo.subtract %38, %39 : tensor<?x4x?x?xf32>
      shape.assuming_yield %40 : tensor<?x4x?x?xf32>
    }
    %23 = stablehlo.exponential %22 : tensor<?x4x?x?xf32>
    %24 = stablehlo.reduce(%23 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?xf32>
    %dim_13 = tensor.dim %23, %c0 : tensor<?x4x?x?xf32>
    %dim_14 = tensor.dim %23, %c2 : tensor<?x4x?x?xf32>
    %from_elements_15 = tensor.from_elements %dim_13, %c4, %dim_14, %c1 : tensor<4xindex>
    %25 = stablehlo.dynamic_reshape %24, %from_elements_15 : (tensor<?x4x?xf32>, tensor<4xindex>) -> tensor<?x4x?x1xf32>
    %26 = shape.shape_of %23 : tensor<?x4x?x?xf32> -> tensor<4xindex>
    %27 = shape.shape_of %25 : tensor<?x4x?x1xf32> -> tensor<4xindex>
    %28 = shape.cstr_broadcastable %26, %27 : tensor<4xindex>, tensor<4xindex>
    %29 = shape.assuming %28 -> (tensor<?x4x?x?xf32>) {
      %37 = shape.broadcast %26, %27 : tensor<4xindex>, tensor<4xindex> -> tensor<4xindex>
      %38 = stablehlo.dynamic_broadcast_in_dim %23, %37, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %39 = stablehlo.dynamic_broadcast_in_dim %25, %37, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %40 = stablehlo.divide %38, %39 : tensor<?x4x?x?xf32>
      shape.assuming_yield %40 : tensor<?x4x?x?xf32>
    }
    %from_elements_16 = tensor.from_elements %dim, %c4, %dim_2, %dim_2 : tensor<4xindex>
    %30 = stablehlo.dynamic_broadcast_in_dim %29, %from_elements_16, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
    %from_elements_17 = tensor.from_elements %3, %1, %1 : tensor<3xi64>
    %31 = stablehlo.dynamic_reshape %30, %from_elements_17 : (tensor<?x4x?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
    %32 = stablehlo.dynamic_broadcast_in_dim %arg2, %from_elements, dims = [0, 1, 2, 3] : (tensor<?x4x?x8xf32>, tensor<4xindex>) -> tensor<?x4x?x8xf32>
    %33 = stablehlo.dynamic_reshape %32, %from_elements_3 : (tensor<?x4x?x8xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
    %dim_18 = tensor.dim %33, %c0 : tensor<?x?x8xf32>
    %dim_19 = tensor.dim %33, %c1 : tensor<?x?x8xf32>
    %from_elements_20 = tensor.from_elements %dim_18, %dim_19, %c8 : tensor<3xindex>
    %34 = stablehlo.dynamic_broadcast_in_dim %33, %from_elements_20, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %35 = stablehlo.dot_general %31, %34, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    %from_elements_21 = tensor.from_elements %0, %c4_i64, %1, %c8_i64 : tensor<4xi64>
    %36 = stablehlo.dynamic_reshape %35, %from_elements_21 : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x4x?x8xf32>
    return %36 : tensor<?x4x?x8xf32>
  }
}
