//! Losses: how far a prediction is from its target.

mod binary_cross_entropy;
mod cosine_embedding;
mod cross_entropy;
mod ctc;
mod gaussian_nll;
mod hinge_embedding;
mod huber;
mod kl_div;
mod lp;
mod margin_ranking;
mod mse;
mod multi_margin;
mod poisson_nll;
mod reduction;
mod rnnt;
mod smooth_l1;
mod soft_margin;
mod triplet_margin;

pub use binary_cross_entropy::{BinaryCrossEntropyLoss, BinaryCrossEntropyLossConfig};
pub use cosine_embedding::{CosineEmbeddingLoss, CosineEmbeddingLossConfig};
pub use cross_entropy::{CrossEntropyLoss, CrossEntropyLossConfig};
pub use ctc::{CTCLoss, CTCLossConfig};
pub use gaussian_nll::{GaussianNLLLoss, GaussianNLLLossConfig};
pub use hinge_embedding::{HingeEmbeddingLoss, HingeEmbeddingLossConfig};
pub use huber::{HuberLoss, HuberLossConfig};
pub use kl_div::{KLDivLoss, KLDivLossConfig};
pub use lp::{LpLoss, LpLossConfig};
pub use margin_ranking::{MarginRankingLoss, MarginRankingLossConfig};
pub use mse::MseLoss;
pub use multi_margin::{MultiMarginLoss, MultiMarginLossConfig};
pub use poisson_nll::{PoissonNllLoss, PoissonNllLossConfig};
pub use reduction::Reduction;
pub use rnnt::{RNNTLoss, RNNTLossConfig};
pub use smooth_l1::{SmoothL1Loss, SmoothL1LossConfig};
pub use soft_margin::SoftMarginLoss;
pub use triplet_margin::{TripletMarginLoss, TripletMarginLossConfig};
