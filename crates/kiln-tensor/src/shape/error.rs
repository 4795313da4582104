//! Errors of shape arithmetic and of parsing shapes and slices.

use alloc::string::String;
use core::fmt;

use super::Shape;

/// A rule about ranks, axes or sizes that the given shapes break.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MetadataError {
    /// The two sides have different ranks.
    RankMismatch {
        /// Rank of the left side.
        left: usize,
        /// Rank of the right side.
        right: usize,
    },
    /// The two sides have different sizes on one axis.
    IncompatibleDims {
        /// Size on the left side.
        left: usize,
        /// Size on the right side.
        right: usize,
        /// The axis.
        dim: usize,
    },
    /// The axis does not exist.
    OutOfBounds {
        /// The axis asked for.
        dim: usize,
        /// The number of axes.
        rank: usize,
    },
    /// The two shapes do not fit together.
    IncompatibleShapes {
        /// The left shape.
        left: Shape,
        /// The right shape.
        right: Shape,
    },
    /// Another rule is broken.
    Invalid {
        /// Which rule, and by what.
        reason: String,
    },
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RankMismatch { left, right } => {
                write!(f, "ranks differ: left {left}, right {right}")
            }
            Self::IncompatibleDims { left, right, dim } => {
                write!(f, "sizes of axis {dim} differ: left {left}, right {right}")
            }
            Self::OutOfBounds { dim, rank } => {
                write!(f, "axis {dim} is out of range for rank {rank}")
            }
            Self::IncompatibleShapes { left, right } => {
                write!(f, "shapes do not fit: left {left}, right {right}")
            }
            Self::Invalid { reason } => f.write_str(reason),
        }
    }
}

impl core::error::Error for MetadataError {}

/// An index outside of its range.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BoundsError {
    /// An axis that does not exist.
    Dim {
        /// The index as given.
        index: isize,
        /// The number of axes.
        rank: usize,
    },
    /// An element index that does not exist.
    Index {
        /// The index as given.
        index: isize,
        /// The number of elements.
        size: usize,
    },
}

impl fmt::Display for BoundsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dim { index, rank: 0 } => {
                write!(f, "axis {index} is out of range: the rank is 0")
            }
            Self::Dim { index, rank } => write!(f, "axis {index} is out of range for rank {rank}: expected -{rank}..{rank}"),
            Self::Index { index, size: 0 } => {
                write!(f, "index {index} is out of range: the size is 0")
            }
            Self::Index { index, size } => write!(f, "index {index} is out of range for size {size}: expected -{size}..{size}"),
        }
    }
}

impl core::error::Error for BoundsError {}

/// Text that is not a shape or a slice.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ExpressionError {
    /// The text does not follow the grammar.
    ParseError {
        /// What is wrong.
        message: String,
        /// The text.
        source: String,
    },
    /// The text follows the grammar but means nothing valid.
    InvalidExpression {
        /// What is wrong.
        message: String,
        /// The text.
        source: String,
    },
}

impl ExpressionError {
    /// Builds a [`ExpressionError::ParseError`].
    pub fn parse_error(message: impl Into<String>, source: impl Into<String>) -> Self {
        Self::ParseError { message: message.into(), source: source.into() }
    }

    /// Builds a [`ExpressionError::InvalidExpression`].
    pub fn invalid_expression(message: impl Into<String>, source: impl Into<String>) -> Self {
        Self::InvalidExpression { message: message.into(), source: source.into() }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ParseError { message, source } => write!(f, "cannot parse {source:?}: {message}"),
            Self::InvalidExpression { message, source } => {
                write!(f, "invalid expression {source:?}: {message}")
            }
        }
    }
}

impl core::error::Error for ExpressionError {}
