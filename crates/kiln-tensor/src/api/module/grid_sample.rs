//! Images sampled at the places of a grid.

use kiln_ir::DType;
use kiln_ir::Elementwise::{Add, Div, Ge, Le, Max, Min, Mul, Sub};

use crate::api::Tensor;
use crate::api::options::{GridSampleOptions, GridSamplePaddingMode, InterpolateMode};
use crate::raw::RawTensor;

impl<const D: usize> Tensor<D> {
    /// Images `[batch, channels, height, width]` sampled at the places of a grid `[batch, height', width', 2]`, which holds x and y in `-1..=1`:
    /// `[batch, channels, height', width']`. Gradients flow to the image and, through the weights, to the grid. Positions, weights and sums of half types are computed
    /// in `f32`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, ops::{GridSampleOptions, GridSamplePaddingMode, InterpolateMode}};
    /// let device = Device::default();
    /// let x = Tensor::<4>::from_data([[[[0, 1], [2, 3]]]], &device);
    /// let grid = Tensor::<4>::from_data([[[[0.0, 0.0], [9.0, 9.0]]]], &device);
    /// let options = GridSampleOptions::new(InterpolateMode::Bilinear).with_padding_mode(GridSamplePaddingMode::Border);
    /// assert_eq!(x.grid_sample_2d(grid, options).try_to_vec_as::<f32>().unwrap(), [1.5, 3.0]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not fit, the image is empty, or the mode is [`InterpolateMode::Lanczos3`], whose window is wider than sampling reads.
    #[track_caller]
    pub fn grid_sample_2d(self, grid: Tensor<D>, options: impl Into<GridSampleOptions>) -> Tensor<D> {
        Tensor::from_raw(sample(&self.raw, &grid.raw, &options.into()))
    }
}

/// The image with its pixels in one axis, and how positions outside of it are read. Positions are of [`Image::precise`] type, and so is what is read.
pub(super) struct Image {
    pixels: RawTensor,
    /// Height and width.
    size: [usize; 2],
    /// Batch, 1, and number of places.
    places: [usize; 3],
    options: GridSampleOptions,
}

#[track_caller]
fn sample(x: &RawTensor, grid: &RawTensor, options: &GridSampleOptions) -> RawTensor {
    let fits = x.rank() == 4 && grid.rank() == 4 && grid.dims()[3] == 2 && grid.dims()[0] == x.dims()[0];
    assert!(fits, "grid_sample_2d: image {:?}, grid {:?}: expected [n, c, h, w] and [n, h', w', 2]", x.dims(), grid.dims());
    let (n, c, h, w) = (x.dims()[0], x.dims()[1], x.dims()[2], x.dims()[3]);
    assert!(
        x.dtype() == grid.dtype(),
        "grid_sample_2d: image {:?} of {}, grid {:?} of {}: the types differ",
        x.dims(),
        x.dtype(),
        grid.dims(),
        grid.dtype()
    );
    assert!(h > 0 && w > 0, "grid_sample_2d: the image {:?} is empty", x.dims());
    let (height, width) = (grid.dims()[1], grid.dims()[2]);
    let places = [n, 1, height * width];
    let image = Image::new(x, height * width, options);
    // The grid holds x first.
    let place = |axis: usize| image.position(&grid.narrow(3, 1 - axis, 1).reshape(&places).cast(image.precise()), axis);
    let (dtype, y, x) = (x.dtype(), place(0), place(1));
    let sampled = match options.mode {
        InterpolateMode::Nearest | InterpolateMode::NearestExact => image.pick(&image.inside(&y, 0).round(), &image.inside(&x, 1).round()),
        InterpolateMode::Bilinear => image.bilinear(&image.inside(&y, 0), &image.inside(&x, 1)),
        InterpolateMode::Bicubic => image.bicubic(&y, &x),
        InterpolateMode::Lanczos3 => {
            panic!("grid_sample_2d: there is no sampling with Lanczos3: use Bicubic: image {:?}, grid {:?}", [n, c, h, w], grid.dims())
        }
    };
    sampled.cast(dtype).reshape(&[n, c, height, width])
}

impl Image {
    /// The image `[n, c, h, w]`, to be read at a number of places given by positions of shape `[n, 1, places]`.
    pub(super) fn new(x: &RawTensor, places: usize, options: &GridSampleOptions) -> Self {
        let (n, c, h, w) = (x.dims()[0], x.dims()[1], x.dims()[2], x.dims()[3]);
        Self { pixels: x.reshape(&[n, c, h * w]), size: [h, w], places: [n, 1, places], options: options.clone() }
    }

    /// The type of positions: half types have too few digits for them.
    pub(super) fn precise(&self) -> DType {
        if self.pixels.dtype() == DType::F64 { DType::F64 } else { DType::F32 }
    }

    /// A coordinate in `-1..=1` as a position in pixels.
    fn position(&self, coordinate: &RawTensor, axis: usize) -> RawTensor {
        let size = self.size[axis] as f64;
        let (span, offset) = if self.options.align_corners { (size - 1.0, 0.0) } else { (size, -0.5) };
        // Places far outside are equal in every mode; a bound keeps infinities out of the arithmetic.
        let bound = 4.0 * (size + 1.0) * 1e4;
        coordinate
            .with_constant(Add, 1.0)
            .with_constant(Mul, span / 2.0)
            .with_constant(Add, offset)
            .with_constant(Max, -bound)
            .with_constant(Min, bound)
    }

    /// Positions brought into the image, unless outside means zero.
    fn inside(&self, position: &RawTensor, axis: usize) -> RawTensor {
        let last = (self.size[axis] - 1) as f64;
        let clamp = |p: &RawTensor| p.with_constant(Max, 0.0).with_constant(Min, last);
        match self.options.padding_mode {
            GridSamplePaddingMode::Zeros => position.clone(),
            GridSamplePaddingMode::Border => clamp(position),
            GridSamplePaddingMode::Reflection => clamp(&self.reflected(position, axis)),
        }
    }

    /// Positions mirrored at the border: at the centres of the outermost pixels, or at their outer edges.
    fn reflected(&self, position: &RawTensor, axis: usize) -> RawTensor {
        let size = self.size[axis] as f64;
        let (low, span) = if self.options.align_corners { (0.0, size - 1.0) } else { (-0.5, size) };
        if span == 0.0 {
            return position.scale_by(0.0);
        }
        let distance = position.with_constant(Sub, low).abs();
        let flips = distance.with_constant(Div, span).floor();
        let rest = distance.sub(&flips.with_constant(Mul, span));
        let odd = flips.sub(&flips.with_constant(Div, 2.0).floor().with_constant(Mul, 2.0)).with_constant(Ge, 0.5);
        rest.mask_where(&odd, &rest.constant_with(Sub, span)).with_constant(Add, low)
    }

    /// The pixels at whole positions; 0 outside of the image.
    fn pick(&self, y: &RawTensor, x: &RawTensor) -> RawTensor {
        let within = |p: &RawTensor, axis: usize| p.with_constant(Ge, 0.0).and(&p.with_constant(Le, (self.size[axis] - 1) as f64));
        let index = |p: &RawTensor, axis: usize| {
            let clamped = p.with_constant(Max, 0.0).with_constant(Min, (self.size[axis] - 1) as f64);
            clamped.cast(RawTensor::INDEX)
        };
        let flat = index(y, 0).with_constant(Mul, self.size[1] as f64).add(&index(x, 1));
        let dims = [self.places[0], self.pixels.dims()[1], self.places[2]];
        let picked = self.pixels.gather(2, &flat.expand(&dims));
        within(y, 0).and(&within(x, 1)).choose_or_zero(&picked.cast(self.precise()))
    }

    /// The values between the pixels around positions: `[n, c, places]`.
    pub(super) fn bilinear(&self, y: &RawTensor, x: &RawTensor) -> RawTensor {
        let (top, left) = (y.floor(), x.floor());
        let (down, right) = (y.sub(&top), x.sub(&left));
        let (bottom_row, right_column) = (top.with_constant(Add, 1.0), left.with_constant(Add, 1.0));
        let (up, leftward) = (down.constant_with(Sub, 1.0), right.constant_with(Sub, 1.0));
        let corner = |y: &RawTensor, x: &RawTensor, wy: &RawTensor, wx: &RawTensor| self.pick(y, x).mul(&wy.mul(wx));
        let upper = corner(&top, &left, &up, &leftward).add(&corner(&top, &right_column, &up, &right));
        let lower = corner(&bottom_row, &left, &down, &leftward).add(&corner(&bottom_row, &right_column, &down, &right));
        upper.add(&lower)
    }

    fn bicubic(&self, y: &RawTensor, x: &RawTensor) -> RawTensor {
        let (top, left) = (y.floor(), x.floor());
        let (wy, wx) = (cubic_weights(&y.sub(&top)), cubic_weights(&x.sub(&left)));
        // The border applies to each of the whole positions around, not to the place between them.
        let near = |p: &RawTensor, k: usize, axis: usize| self.inside(&p.with_constant(Add, k as f64 - 1.0), axis);
        let mut sum: Option<RawTensor> = None;
        for (row, wy) in wy.iter().enumerate() {
            let y = near(&top, row, 0);
            for (column, wx) in wx.iter().enumerate() {
                let part = self.pick(&y, &near(&left, column, 1)).mul(&wy.mul(wx));
                sum = Some(match sum {
                    Some(sum) => sum.add(&part),
                    None => part,
                });
            }
        }
        sum.expect("there are sixteen parts")
    }
}

/// The weights of the four positions around an offset in `0..1`, as in interpolation.
fn cubic_weights(t: &RawTensor) -> [RawTensor; 4] {
    const A: f64 = -0.75;
    let one_minus = t.constant_with(Sub, 1.0);
    // Within 1 of the centre: ((A + 2) x - (A + 3)) x² + 1.
    let near = |x: &RawTensor| x.with_constant(Mul, A + 2.0).with_constant(Sub, A + 3.0).mul(&x.square()).with_constant(Add, 1.0);
    // From 1 to 2: ((A x - 5 A) x + 8 A) x - 4 A.
    let far = |x: &RawTensor| {
        let inner = x.with_constant(Mul, A).with_constant(Sub, 5.0 * A).mul(x).with_constant(Add, 8.0 * A);
        inner.mul(x).with_constant(Sub, 4.0 * A)
    };
    [far(&t.with_constant(Add, 1.0)), near(t), near(&one_minus), far(&one_minus.with_constant(Add, 1.0))]
}
