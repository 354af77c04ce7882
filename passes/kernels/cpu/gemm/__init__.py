"""Matrix products and convolutions as blocks in registers: by FMA (`block_contractions`, `multiply_tiles`) and
by instructions that add up groups of narrow products (`dot_product_gemm`), with what is fused before and after."""
