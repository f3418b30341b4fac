// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of scaled_dot_product_attention(q, k, v)
module {
  func.func @main(%arg0: tensor<?x4x?x8xf32>, %arg1: tensor<?x4x?x8xf32>, %arg2: tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c8_i64 = arith.constant 8 : i64
    %c4_i64 = arith.constant 4 : i64
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_1 = arith.constant dense<0.59460355750136051> : tensor<1xf64>
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %cst_2 = arith.constant dense<0xFFF0000000000000> : tensor<1xf64>
    %dim = tensor.dim %arg0, %c0 : tensor<?x4x?x8xf32>
    %0 = arith.index_cast %dim : index to i64
    %dim_3 = tensor.dim %arg1, %c2 : tensor<?x4x?x8xf32>
    %1 = arith.index_cast %dim_3 : index to i64
    %2 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
    %4 = shape.shape_of %arg0 : tensor<?x4x?x8xf32> -> tensor<4xindex>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg0, %4, dims = [0, 1, 2, 3] : (tensor<?x4x?x8xf32>, tensor<4xindex>) -> tensor<?x4x?x8xf32>
    %6 = stablehlo.dynamic_broadcast_in_dim %3, %4, dims = [] : (tensor<f32>, tensor<4xindex>) -> tensor<?x4x?x8xf32>
    %7 = stablehlo.multiply %5, %6 : tensor<?x4x?x8xf32>
    %8 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<?x4x?x8xf32>) -> tensor<?x4x8x?xf32>
    %9 = shape.shape_of %8 : tensor<?x4x8x?xf32> -> tensor<4xindex>
    %10 = stablehlo.dynamic_broadcast_in_dim %8, %9, dims = [0, 1, 2, 3] : (tensor<?x4x8x?xf32>, tensor<4xindex>) -> tensor<?x4x8x?xf32>
    %11 = stablehlo.dynamic_broadcast_in_dim %3, %9, dims = [] : (tensor<f32>, tensor<4xindex>) -> tensor<?x4x8x?xf32>
    %12 = stablehlo.multiply %10, %11 : tensor<?x4x8x?xf32>
    %13 = arith.muli %0, %c4_i64 : i64
    %from_elements = tensor.from_elements %dim, %c4, %dim_3, %c8 : tensor<4xindex>
    %14 = stablehlo.dynamic_broadcast_in_dim %7, %from_elements, dims = [0, 1, 2, 3] : (tensor<?x4x?x8xf32>, tensor<4xindex>) -> tensor<?x4x?x8xf32>
    %from_elements_4 = tensor.from_elements %13, %1, %c8_i64 : tensor<3xi64>
    %15 = stablehlo.dynamic_reshape %14, %from_elements_4 : (tensor<?x4x?x8xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
    %from_elements_5 = tensor.from_elements %dim, %c4, %c8, %dim_3 : tensor<4xindex>
    %16 = stablehlo.dynamic_broadcast_in_dim %12, %from_elements_5, dims = [0, 1, 2, 3] : (tensor<?x4x8x?xf32>, tensor<4xindex>) -> tensor<?x4x8x?xf32>
    %from_elements_6 = tensor.from_elements %13, %c8_i64, %1 : tensor<3xi64>
    %17 = stablehlo.dynamic_reshape %16, %from_elements_6 : (tensor<?x4x8x?xf32>, tensor<3xi64>) -> tensor<?x8x?xf32>
    %dim_7 = tensor.dim %17, %c0 : tensor<?x8x?xf32>
    %dim_8 = tensor.dim %17, %c2 : tensor<?x8x?xf32>
    %from_elements_9 = tensor.from_elements %dim_7, %c8, %dim_8 : tensor<3xindex>
    %18 = stablehlo.dynamic_broadcast_in_dim %17, %from_elements_9, dims = [0, 1, 2] : (tensor<?x8x?xf32>, tensor<3xindex>) -> tensor<?x8x?xf32>
    %19 = stablehlo.dot_general %15, %18, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<?x?x8xf32>, tensor<?x8x?xf32>) -> tensor<?x?x?xf32>
    %from_elements_10 = tensor.from_elements %0, %c4_i64, %1, %1 : tensor<4xi64>
    %20 = stablehlo.dynamic_reshape %19, %from_elements_10 : (tensor<?x?x?xf32>, tensor<4xi64>) -> tensor<?x4x?x?xf32>
    %dim_11 = tensor.dim %20, %c0 : tensor<?x4x?x?xf32>
    %dim_12 = tensor.dim %20, %c2 : tensor<?x4x?x?xf32>
    %21 = stablehlo.reduce(%20 init: %cst_0) applies stablehlo.maximum across dimensions = [3] : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?xf32>
    %from_elements_13 = tensor.from_elements %dim_11, %c4, %dim_12, %c1 : tensor<4xindex>
    %22 = stablehlo.dynamic_reshape %21, %from_elements_13 : (tensor<?x4x?xf32>, tensor<4xindex>) -> tensor<?x4x?x1xf32>
    %23 = shape.shape_of %20 : tensor<?x4x?x?xf32> -> tensor<4xindex>
    %24 = shape.shape_of %22 : tensor<?x4x?x1xf32> -> tensor<4xindex>
    %25 = shape.cstr_broadcastable %23, %24 : tensor<4xindex>, tensor<4xindex>
    %26 = shape.assuming %25 -> (tensor<?x4x?x?xf32>) {
      %57 = shape.broadcast %23, %24 : tensor<4xindex>, tensor<4xindex> -> tensor<4xindex>
      %58 = stablehlo.dynamic_broadcast_in_dim %20, %57, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %59 = stablehlo.dynamic_broadcast_in_dim %22, %57, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %60 = stablehlo.subtract %58, %59 : tensor<?x4x?x?xf32>
      shape.assuming_yield %60 : tensor<?x4x?x?xf32>
    }
    %27 = stablehlo.exponential %26 : tensor<?x4x?x?xf32>
    %28 = stablehlo.reduce(%27 init: %cst) applies stablehlo.add across dimensions = [3] : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?xf32>
    %dim_14 = tensor.dim %27, %c0 : tensor<?x4x?x?xf32>
    %dim_15 = tensor.dim %27, %c2 : tensor<?x4x?x?xf32>
    %from_elements_16 = tensor.from_elements %dim_14, %c4, %dim_15, %c1 : tensor<4xindex>
    %29 = stablehlo.dynamic_reshape %28, %from_elements_16 : (tensor<?x4x?xf32>, tensor<4xindex>) -> tensor<?x4x?x1xf32>
    %30 = shape.shape_of %27 : tensor<?x4x?x?xf32> -> tensor<4xindex>
    %31 = shape.shape_of %29 : tensor<?x4x?x1xf32> -> tensor<4xindex>
    %32 = shape.cstr_broadcastable %30, %31 : tensor<4xindex>, tensor<4xindex>
    %33 = shape.assuming %32 -> (tensor<?x4x?x?xf32>) {
      %57 = shape.broadcast %30, %31 : tensor<4xindex>, tensor<4xindex> -> tensor<4xindex>
      %58 = stablehlo.dynamic_broadcast_in_dim %27, %57, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %59 = stablehlo.dynamic_broadcast_in_dim %29, %57, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %60 = stablehlo.divide %58, %59 : tensor<?x4x?x?xf32>
      shape.assuming_yield %60 : tensor<?x4x?x?xf32>
    }
    %34 = stablehlo.convert %cst_2 : tensor<1xf64>
    %35 = stablehlo.reshape %34 : (tensor<1xf64>) -> tensor<f64>
    %36 = stablehlo.convert %35 : (tensor<f64>) -> tensor<f32>
    %37 = stablehlo.dynamic_broadcast_in_dim %20, %23, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
    %38 = stablehlo.dynamic_broadcast_in_dim %36, %23, dims = [] : (tensor<f32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
    %39 = stablehlo.compare EQ, %37, %38, FLOAT : (tensor<?x4x?x?xf32>, tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xi1>
    %40 = stablehlo.reduce(%39 init: %c) applies stablehlo.and across dimensions = [3] : (tensor<?x4x?x?xi1>, tensor<i1>) -> tensor<?x4x?xi1>
    %dim_17 = tensor.dim %39, %c0 : tensor<?x4x?x?xi1>
    %dim_18 = tensor.dim %39, %c2 : tensor<?x4x?x?xi1>
    %from_elements_19 = tensor.from_elements %dim_17, %c4, %dim_18, %c1 : tensor<4xindex>
    %41 = stablehlo.dynamic_reshape %40, %from_elements_19 : (tensor<?x4x?xi1>, tensor<4xindex>) -> tensor<?x4x?x1xi1>
    %dim_20 = tensor.dim %33, %c0 : tensor<?x4x?x?xf32>
    %dim_21 = tensor.dim %33, %c2 : tensor<?x4x?x?xf32>
    %dim_22 = tensor.dim %33, %c3 : tensor<?x4x?x?xf32>
    %from_elements_23 = tensor.from_elements %dim_20, %c4, %dim_21, %dim_22 : tensor<4xindex>
    %42 = stablehlo.dynamic_broadcast_in_dim %cst, %from_elements_23, dims = [] : (tensor<f32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
    %43 = shape.shape_of %41 : tensor<?x4x?x1xi1> -> tensor<4xindex>
    %44 = shape.shape_of %42 : tensor<?x4x?x?xf32> -> tensor<4xindex>
    %45 = shape.shape_of %33 : tensor<?x4x?x?xf32> -> tensor<4xindex>
    %46 = shape.cstr_broadcastable %43, %44, %45 : tensor<4xindex>, tensor<4xindex>, tensor<4xindex>
    %47 = shape.assuming %46 -> (tensor<?x4x?x?xf32>) {
      %57 = shape.broadcast %43, %44, %45 : tensor<4xindex>, tensor<4xindex>, tensor<4xindex> -> tensor<4xindex>
      %58 = stablehlo.dynamic_broadcast_in_dim %41, %57, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xi1>, tensor<4xindex>) -> tensor<?x4x?x?xi1>
      %59 = stablehlo.dynamic_broadcast_in_dim %42, %57, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %60 = stablehlo.dynamic_broadcast_in_dim %33, %57, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
      %61 = stablehlo.select %58, %59, %60 : tensor<?x4x?x?xi1>, tensor<?x4x?x?xf32>
      shape.assuming_yield %61 : tensor<?x4x?x?xf32>
    }
    %from_elements_24 = tensor.from_elements %dim, %c4, %dim_3, %dim_3 : tensor<4xindex>
    %48 = stablehlo.dynamic_broadcast_in_dim %47, %from_elements_24, dims = [0, 1, 2, 3] : (tensor<?x4x?x?xf32>, tensor<4xindex>) -> tensor<?x4x?x?xf32>
    %from_elements_25 = tensor.from_elements %13, %1, %1 : tensor<3xi64>
    %49 = stablehlo.dynamic_reshape %48, %from_elements_25 : (tensor<?x4x?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
    %50 = stablehlo.dynamic_broadcast_in_dim %arg2, %from_elements, dims = [0, 1, 2, 3] : (tensor<?x4x?x8xf32>, tensor<4xindex>) -> tensor<?x4x?x8xf32>
    %51 = stablehlo.dynamic_reshape %50, %from_elements_4 : (tensor<?x4x?x8xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
    %dim_26 = tensor.dim %51, %c0 : tensor<?x?x8xf32>
    %dim_27 = tensor.dim %51, %c1 : tensor<?x?x8xf32>
    %from_elements_28 = tensor.from_elements %dim_26, %dim_27, %c8 : tensor<3xindex>
    %52 = stablehlo.dynamic_broadcast_in_dim %51, %from_elements_28, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %53 = stablehlo.dot_general %49, %52, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    %from_elements_29 = tensor.from_elements %0, %c4_i64, %1, %c8_i64 : tensor<4xi64>
    %54 = stablehlo.dynamic_reshape %53, %from_elements_29 : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x4x?x8xf32>
    %55 = stablehlo.transpose %54, dims = [2, 0, 1, 3] : (tensor<?x4x?x8xf32>) -> tensor<?x?x4x8xf32>
    %56 = stablehlo.transpose %55, dims = [1, 2, 0, 3] : (tensor<?x?x4x8xf32>) -> tensor<?x4x?x8xf32>
    return %56 : tensor<?x4x?x8xf32>
  }
}
