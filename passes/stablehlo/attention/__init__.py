"""softmax(score(q k^T)) v and its gradient: found, read into a description that both targets' kernel writers
share, and set apart as kernels of their own."""
