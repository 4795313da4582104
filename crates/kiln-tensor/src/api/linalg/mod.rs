//! Linear algebra: norms, products, and factorisations on the last two axes.

mod dense;
mod factor;
mod host;
#[cfg(feature = "faer")]
mod library;
mod norm;
mod ops;
mod product;

pub use factor::{det, lu, qr, svd};
pub use norm::{
    Norm, l0_norm, l0_norm_dims, l1_norm, l1_norm_dims, l2_norm, l2_norm_dims, lp_norm, lp_norm_dims, max_abs_norm, max_abs_norm_dims, min_abs_norm,
    min_abs_norm_dims, vector_norm, vector_norm_dims, vector_normalize,
};
pub use ops::LinalgOps;
pub use product::{cosine_similarity, diag, matvec, outer, outer_dim, trace};
