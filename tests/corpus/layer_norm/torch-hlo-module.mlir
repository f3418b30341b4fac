// op: onnx.LayerNormalization axis=-1 epsilon=1e-05
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of nn.LayerNorm(8)
module {
  func.func @main(%arg0: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_8_torch.float32_1> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = arith.constant dense<8> : tensor<1xi64>
    %cst_4 = arith.constant dense<1.000000e-05> : tensor<1xf64>
    %0 = shape.const_shape [8] : tensor<1xindex>
    %1 = stablehlo.convert %arg0 : (tensor<?x?x8xf32>) -> tensor<?x?x8xf64>
    %2 = stablehlo.reduce(%1 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<?x?x8xf64>, tensor<f64>) -> tensor<?x?xf64>
    %dim = tensor.dim %1, %c0 : tensor<?x?x8xf64>
    %dim_5 = tensor.dim %1, %c1 : tensor<?x?x8xf64>
    %from_elements = tensor.from_elements %dim, %dim_5, %c1 : tensor<3xindex>
    %3 = stablehlo.dynamic_reshape %2, %from_elements : (tensor<?x?xf64>, tensor<3xindex>) -> tensor<?x?x1xf64>
    %4 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf64>
    %5 = stablehlo.reshape %4 : (tensor<1xf64>) -> tensor<f64>
    %6 = shape.shape_of %3 : tensor<?x?x1xf64> -> tensor<3xindex>
    %7 = stablehlo.dynamic_broadcast_in_dim %3, %6, dims = [0, 1, 2] : (tensor<?x?x1xf64>, tensor<3xindex>) -> tensor<?x?x1xf64>
    %8 = stablehlo.dynamic_broadcast_in_dim %5, %6, dims = [] : (tensor<f64>, tensor<3xindex>) -> tensor<?x?x1xf64>
    %9 = stablehlo.divide %7, %8 : tensor<?x?x1xf64>
    %10 = shape.shape_of %1 : tensor<?x?x8xf64> -> tensor<3xindex>
    %11 = shape.shape_of %9 : tensor<?x?x1xf64> -> tensor<3xindex>
    %12 = shape.cstr_broadcastable %10, %11 : tensor<3xindex>, tensor<3xindex>
    %13 = shape.assuming %12 -> (tensor<?x?x8xf64>) {
      %57 = shape.broadcast %10, %11 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %58 = stablehlo.dynamic_broadcast_in_dim %1, %57, dims = [0, 1, 2] : (tensor<?x?x8xf64>, tensor<3xindex>) -> tensor<?x?x8xf64>
      %59 = stablehlo.dynamic_broadcast_in_dim %9, %57, dims = [0, 1, 2] : (tensor<?x?x1xf64>, tensor<3xindex>) -> tensor<?x?x8xf64>
      %60 = stablehlo.subtract %58, %59 : tensor<?x?x8xf64>
      shape.assuming_yield %60 : tensor<?x?x8xf64>
    }
    %14 = shape.shape_of %13 : tensor<?x?x8xf64> -> tensor<3xindex>
    %15 = stablehlo.dynamic_broadcast_in_dim %13, %14, dims = [0, 1, 2] : (tensor<?x?x8xf64>, tensor<3xindex>) -> tensor<?x?x8xf64>
    %16 = stablehlo.multiply %15, %15 : tensor<?x?x8xf64>
    %17 = stablehlo.reduce(%16 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<?x?x8xf64>, tensor<f64>) -> tensor<?x?xf64>
    %dim_6 = tensor.dim %16, %c0 : tensor<?x?x8xf64>
    %dim_7 = tensor.dim %16, %c1 : tensor<?x?x8xf64>
    %from_elements_8 = tensor.from_elements %dim_6, %dim_7, %c1 : tensor<3xindex>
    %18 = stablehlo.dynamic_reshape %17, %from_elements_8 : (tensor<?x?xf64>, tensor<3xindex>) -> tensor<?x?x1xf64>
    %19 = shape.shape_of %18 : tensor<?x?x1xf64> -> tensor<3xindex>
    %20 = stablehlo.dynamic_broadcast_in_dim %18, %19, dims = [0, 1, 2] : (tensor<?x?x1xf64>, tensor<3xindex>) -> tensor<?x?x1xf64>
    %21 = stablehlo.dynamic_broadcast_in_dim %5, %19, dims = [] : (tensor<f64>, tensor<3xindex>) -> tensor<?x?x1xf64>
    %22 = stablehlo.divide %20, %21 : tensor<?x?x1xf64>
    %23 = stablehlo.convert %22 : (tensor<?x?x1xf64>) -> tensor<?x?x1xf32>
    %24 = stablehlo.reduce(%arg0 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x?xf32>
    %dim_9 = tensor.dim %arg0, %c0 : tensor<?x?x8xf32>
    %dim_10 = tensor.dim %arg0, %c1 : tensor<?x?x8xf32>
    %from_elements_11 = tensor.from_elements %dim_9, %dim_10, %c1 : tensor<3xindex>
    %25 = stablehlo.dynamic_reshape %24, %from_elements_11 : (tensor<?x?xf32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %26 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf32>
    %27 = stablehlo.reshape %26 : (tensor<1xf32>) -> tensor<f32>
    %28 = shape.shape_of %25 : tensor<?x?x1xf32> -> tensor<3xindex>
    %29 = stablehlo.dynamic_broadcast_in_dim %25, %28, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %30 = stablehlo.dynamic_broadcast_in_dim %27, %28, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %31 = stablehlo.divide %29, %30 : tensor<?x?x1xf32>
    %32 = stablehlo.convert %cst_4 : (tensor<1xf64>) -> tensor<1xf32>
    %33 = stablehlo.reshape %32 : (tensor<1xf32>) -> tensor<f32>
    %34 = shape.shape_of %23 : tensor<?x?x1xf32> -> tensor<3xindex>
    %35 = stablehlo.dynamic_broadcast_in_dim %23, %34, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %36 = stablehlo.dynamic_broadcast_in_dim %33, %34, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %37 = stablehlo.add %35, %36 : tensor<?x?x1xf32>
    %38 = stablehlo.rsqrt %37 : tensor<?x?x1xf32>
    %39 = shape.shape_of %arg0 : tensor<?x?x8xf32> -> tensor<3xindex>
    %40 = shape.shape_of %31 : tensor<?x?x1xf32> -> tensor<3xindex>
    %41 = shape.cstr_broadcastable %39, %40 : tensor<3xindex>, tensor<3xindex>
    %42 = shape.assuming %41 -> (tensor<?x?x8xf32>) {
      %57 = shape.broadcast %39, %40 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %58 = stablehlo.dynamic_broadcast_in_dim %arg0, %57, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %59 = stablehlo.dynamic_broadcast_in_dim %31, %57, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %60 = stablehlo.subtract %58, %59 : tensor<?x?x8xf32>
      shape.assuming_yield %60 : tensor<?x?x8xf32>
    }
    %43 = shape.shape_of %42 : tensor<?x?x8xf32> -> tensor<3xindex>
    %44 = shape.shape_of %38 : tensor<?x?x1xf32> -> tensor<3xindex>
    %45 = shape.cstr_broadcastable %43, %44 : tensor<3xindex>, tensor<3xindex>
    %46 = shape.assuming %45 -> (tensor<?x?x8xf32>) {
      %57 = shape.broadcast %43, %44 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %58 = stablehlo.dynamic_broadcast_in_dim %42, %57, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %59 = stablehlo.dynamic_broadcast_in_dim %38, %57, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %60 = stablehlo.multiply %58, %59 : tensor<?x?x8xf32>
      shape.assuming_yield %60 : tensor<?x?x8xf32>
    }
    %47 = shape.shape_of %46 : tensor<?x?x8xf32> -> tensor<3xindex>
    %48 = shape.broadcast %47, %0 : tensor<3xindex>, tensor<1xindex> -> tensor<3xindex>
    %49 = stablehlo.dynamic_broadcast_in_dim %46, %48, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %50 = stablehlo.dynamic_broadcast_in_dim %cst_0, %48, dims = [2] : (tensor<8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %51 = stablehlo.multiply %49, %50 : tensor<?x?x8xf32>
    %52 = shape.shape_of %51 : tensor<?x?x8xf32> -> tensor<3xindex>
    %53 = shape.broadcast %52, %0 : tensor<3xindex>, tensor<1xindex> -> tensor<3xindex>
    %54 = stablehlo.dynamic_broadcast_in_dim %51, %53, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %55 = stablehlo.dynamic_broadcast_in_dim %cst, %53, dims = [2] : (tensor<8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %56 = stablehlo.add %54, %55 : tensor<?x?x8xf32>
    return %56 : tensor<?x?x8xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_8_torch.float32_1: "0x040000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_8_torch.float32: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F"
    }
  }
#-}
