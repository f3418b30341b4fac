// op: onnx.GroupNormalization num_groups=2 epsilon=1e-05
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of nn.GroupNorm(2, 8)
module {
  func.func @main(%arg0: tensor<2x8x4x5xf32>) -> tensor<2x8x4x5xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_8_torch.float32_1> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = arith.constant dense<80> : tensor<1xi64>
    %cst_4 = arith.constant dense<1.000000e-05> : tensor<1xf64>
    %cst_5 = arith.constant dense_resource<torch_tensor_2_8_torch.int64> : tensor<2x8xi64>
    %cst_6 = arith.constant dense_resource<torch_tensor_2_8_torch.int64_1> : tensor<2x8xi64>
    %cst_7 = arith.constant dense_resource<torch_tensor_2_8_torch.int64_2> : tensor<2x8xi64>
    %cst_8 = arith.constant dense_resource<torch_tensor_2_8_torch.int64_3> : tensor<2x8xi64>
    %cst_9 = arith.constant dense_resource<torch_tensor_2_8_torch.int64_4> : tensor<2x8xi64>
    %cst_10 = arith.constant dense_resource<torch_tensor_2_8_torch.int64_5> : tensor<2x8xi64>
    %cst_11 = arith.constant dense_resource<torch_tensor_2_8_torch.int64_6> : tensor<2x8xi64>
    %cst_12 = arith.constant dense_resource<torch_tensor_2_8_torch.int64_7> : tensor<2x8xi64>
    %0 = stablehlo.reshape %arg0 : (tensor<2x8x4x5xf32>) -> tensor<2x2x4x20xf32>
    %1 = stablehlo.convert %0 : (tensor<2x2x4x20xf32>) -> tensor<2x2x4x20xf64>
    %2 = stablehlo.reduce(%1 init: %cst_1) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x2x4x20xf64>, tensor<f64>) -> tensor<2x2xf64>
    %3 = stablehlo.reshape %2 : (tensor<2x2xf64>) -> tensor<2x2x1x1xf64>
    %4 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf64>
    %5 = stablehlo.reshape %4 : (tensor<1xf64>) -> tensor<f64>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f64>) -> tensor<2x2x1x1xf64>
    %7 = stablehlo.divide %3, %6 : tensor<2x2x1x1xf64>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (tensor<2x2x1x1xf64>) -> tensor<2x2x4x20xf64>
    %9 = stablehlo.subtract %1, %8 : tensor<2x2x4x20xf64>
    %10 = stablehlo.multiply %9, %9 : tensor<2x2x4x20xf64>
    %11 = stablehlo.reduce(%10 init: %cst_1) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x2x4x20xf64>, tensor<f64>) -> tensor<2x2xf64>
    %12 = stablehlo.reshape %11 : (tensor<2x2xf64>) -> tensor<2x2x1x1xf64>
    %13 = stablehlo.divide %12, %6 : tensor<2x2x1x1xf64>
    %14 = stablehlo.convert %13 : (tensor<2x2x1x1xf64>) -> tensor<2x2x1x1xf32>
    %15 = stablehlo.reduce(%0 init: %cst_2) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x2x4x20xf32>, tensor<f32>) -> tensor<2x2xf32>
    %16 = stablehlo.reshape %15 : (tensor<2x2xf32>) -> tensor<2x2x1x1xf32>
    %17 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf32>
    %18 = stablehlo.reshape %17 : (tensor<1xf32>) -> tensor<f32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f32>) -> tensor<2x2x1x1xf32>
    %20 = stablehlo.divide %16, %19 : tensor<2x2x1x1xf32>
    %21 = stablehlo.convert %cst_4 : (tensor<1xf64>) -> tensor<1xf32>
    %22 = stablehlo.reshape %21 : (tensor<1xf32>) -> tensor<f32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<2x2x1x1xf32>
    %24 = stablehlo.add %14, %23 : tensor<2x2x1x1xf32>
    %25 = stablehlo.rsqrt %24 : tensor<2x2x1x1xf32>
    %26 = stablehlo.reshape %cst_0 : (tensor<8xf32>) -> tensor<1x2x4x1xf32>
    %27 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2, 3] : (tensor<2x2x1x1xf32>) -> tensor<2x2x4x1xf32>
    %28 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2, 3] : (tensor<1x2x4x1xf32>) -> tensor<2x2x4x1xf32>
    %29 = stablehlo.multiply %27, %28 : tensor<2x2x4x1xf32>
    %30 = stablehlo.negate %20 : tensor<2x2x1x1xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2, 3] : (tensor<2x2x1x1xf32>) -> tensor<2x2x4x1xf32>
    %32 = stablehlo.multiply %31, %29 : tensor<2x2x4x1xf32>
    %33 = stablehlo.reshape %cst : (tensor<8xf32>) -> tensor<1x2x4x1xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2, 3] : (tensor<1x2x4x1xf32>) -> tensor<2x2x4x1xf32>
    %35 = stablehlo.add %32, %34 : tensor<2x2x4x1xf32>
    %36 = stablehlo.reshape %cst_5 : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
    %37 = stablehlo.reshape %cst_6 : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
    %38 = stablehlo.reshape %cst_7 : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
    %39 = stablehlo.reshape %cst_8 : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
    %40 = stablehlo.concatenate %36, %37, %38, %39, dim = 2 : (tensor<2x8x1xi64>, tensor<2x8x1xi64>, tensor<2x8x1xi64>, tensor<2x8x1xi64>) -> tensor<2x8x4xi64>
    %41 = "stablehlo.gather"(%29, %40) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2, 3], start_index_map = [0, 1, 2, 3], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 1, 1>}> : (tensor<2x2x4x1xf32>, tensor<2x8x4xi64>) -> tensor<2x8xf32>
    %42 = stablehlo.reshape %cst_9 : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
    %43 = stablehlo.reshape %cst_10 : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
    %44 = stablehlo.reshape %cst_11 : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
    %45 = stablehlo.reshape %cst_12 : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
    %46 = stablehlo.concatenate %42, %43, %44, %45, dim = 2 : (tensor<2x8x1xi64>, tensor<2x8x1xi64>, tensor<2x8x1xi64>, tensor<2x8x1xi64>) -> tensor<2x8x4xi64>
    %47 = "stablehlo.gather"(%35, %46) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2, 3], start_index_map = [0, 1, 2, 3], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 1, 1>}> : (tensor<2x2x4x1xf32>, tensor<2x8x4xi64>) -> tensor<2x8xf32>
    %48 = stablehlo.reshape %41 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %49 = stablehlo.reshape %48 : (tensor<2x8x1xf32>) -> tensor<2x8x1x1xf32>
    %50 = stablehlo.reshape %47 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %51 = stablehlo.reshape %50 : (tensor<2x8x1xf32>) -> tensor<2x8x1x1xf32>
    %52 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2, 3] : (tensor<2x8x1x1xf32>) -> tensor<2x8x4x5xf32>
    %53 = stablehlo.multiply %arg0, %52 : tensor<2x8x4x5xf32>
    %54 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2, 3] : (tensor<2x8x1x1xf32>) -> tensor<2x8x4x5xf32>
    %55 = stablehlo.add %53, %54 : tensor<2x8x4x5xf32>
    return %55 : tensor<2x8x4x5xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_8_torch.float32_1: "0x040000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_8_torch.float32: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F",
      torch_tensor_2_8_torch.int64: "0x080000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000",
      torch_tensor_2_8_torch.int64_1: "0x080000000000000000000000000000000000000000000000000000000000000000000000010000000000000001000000000000000100000000000000010000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000010000000000000001000000000000000100000000000000",
      torch_tensor_2_8_torch.int64_2: "0x080000000000000000000000010000000000000002000000000000000300000000000000000000000000000001000000000000000200000000000000030000000000000000000000000000000100000000000000020000000000000003000000000000000000000000000000010000000000000002000000000000000300000000000000",
      torch_tensor_2_8_torch.int64_3: "0x080000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_2_8_torch.int64_4: "0x080000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000",
      torch_tensor_2_8_torch.int64_5: "0x080000000000000000000000000000000000000000000000000000000000000000000000010000000000000001000000000000000100000000000000010000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000010000000000000001000000000000000100000000000000",
      torch_tensor_2_8_torch.int64_6: "0x080000000000000000000000010000000000000002000000000000000300000000000000000000000000000001000000000000000200000000000000030000000000000000000000000000000100000000000000020000000000000003000000000000000000000000000000010000000000000002000000000000000300000000000000",
      torch_tensor_2_8_torch.int64_7: "0x080000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    }
  }
#-}
