//! scratch
use std::time::Instant;
use kiln_ir::DType;
use kiln_tensor::{Device, raw::*};
fn rnd(n: usize, s: f32) -> Vec<f32> { let mut x = 12345u64; (0..n).map(|_| { x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); ((x >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * s }).collect() }
fn time(name: &str, n: usize, mut f: impl FnMut()) { f(); f(); f(); let mut v = vec![]; for _ in 0..n { let t = Instant::now(); f(); v.push(t.elapsed().as_secs_f64()*1e3); } v.sort_by(|a,b| a.total_cmp(b)); println!("{name}: first? median {:.3} min {:.3} ms", v[n/2], v[0]); }
struct Opt { p: Vec<RawTensor>, m: Vec<RawTensor>, v: Vec<RawTensor>, t: i32 }
impl Opt {
  fn step(&mut self, loss: RawTensor) {
    let mut g = loss.backward(); self.t += 1;
    let (c1, c2) = (1.0 - 0.9f64.powi(self.t), 1.0 - 0.999f64.powi(self.t));
    for i in 0..self.p.len() {
      let d = g.remove(&self.p[i]).unwrap();
      let p = RawTensor::clone(&self.p[i]).without_autodiff();
      let m = self.m[i].mul_scalar(0.9f64).add(&d.mul_scalar(0.1f64));
      let v = self.v[i].mul_scalar(0.999f64).add(&d.square().mul_scalar(0.001f64));
      let up = m.div_scalar(c1).div(&v.div_scalar(c2).sqrt().add_scalar(1e-5f64));
      let p = p.sub(&up.mul_scalar(1e-3f64));
      self.p[i] = p.autodiff().require_grad(); self.m[i] = m; self.v[i] = v;
    }
    drop(g); drop(loss);
  }
}
fn main() {
    let dev = Device::cpu(); let ad = dev.clone().autodiff();
    let mk = |dims: &[usize]| RawTensor::from_slice(&ad, dims, DType::F32, &rnd(dims.iter().product(), 0.1)).require_grad();
    let opt = |p: Vec<RawTensor>| { let z = |x: &RawTensor| RawTensor::from_slice(&dev, x.dims(), DType::F32, &vec![0f32; x.numel()]); Opt { m: p.iter().map(z).collect(), v: p.iter().map(z).collect(), p, t: 0 } };
    let which: Vec<String> = std::env::args().skip(1).collect(); let want = |s: &str| which.is_empty() || which.iter().any(|w| s.starts_with(w.as_str()));
    for b in [64usize, 512] { let name = format!("mlp_train_b{b}"); if !want(&name) { continue }
      let mut o = opt(vec![mk(&[784,512]), mk(&[512]), mk(&[512,256]), mk(&[256]), mk(&[256,10]), mk(&[10])]);
      let x = RawTensor::from_slice(&ad, &[b, 784], DType::F32, &rnd(b*784, 2.0)); let y = RawTensor::from_slice(&ad, &[b, 1], DType::I64, &(0..b as i64).map(|i| i % 10).collect::<Vec<_>>());
      time(&name, 50, || { let p = &o.p; let h = x.linear(&p[0], Some(&p[1])).relu().linear(&p[2], Some(&p[3])).relu().linear(&p[4], Some(&p[5])); let loss = h.log_softmax(1).gather(1, &y).neg().mean_all(); drop(h); o.step(loss); dev.flush().unwrap(); });
    }
    if want("gpt_train") {
      let (b, t, d, h, vocab) = (8usize, 256usize, 384usize, 6usize, 65usize);
      let mut p = vec![mk(&[vocab, d]), mk(&[t, d])];
      for _ in 0..6 { p.extend([mk(&[d]), mk(&[d]), mk(&[d, 3*d]), mk(&[d,d]), mk(&[d]), mk(&[d]), mk(&[d,4*d]), mk(&[4*d,d])]); }
      p.extend([mk(&[d]), mk(&[d]), mk(&[d, vocab])]);
      let mut o = opt(p);
      let idx = RawTensor::from_slice(&ad, &[b, t], DType::I64, &(0..(b*t) as i64).map(|i| (i * 7) % 65).collect::<Vec<_>>());
      let y = RawTensor::from_slice(&ad, &[b*t, 1], DType::I64, &(0..(b*t) as i64).map(|i| (i * 5) % 65).collect::<Vec<_>>());
      time("gpt_train_b8", 3, || { let p = &o.p; 
        let loss = { let mut x = p[0].embedding(&idx).add(&p[1].reshape(&[1, t, d]));
        for l in 0..6 { let q = &p[2+8*l..];
          let qkv = x.layer_norm(&q[0], Some(&q[1]), 1e-5).linear(&q[2], None);
          let hd = |i: usize| qkv.narrow(2, i*d, d).reshape(&[b,t,h,d/h]).swap_dims(1,2);
          let a = hd(0).attention(&hd(1), &hd(2), None, None, AttentionOptions { causal: true, ..Default::default() });
          x = x.add(&a.swap_dims(1,2).reshape(&[b,t,d]).linear(&q[3], None));
          x = x.add(&x.layer_norm(&q[4], Some(&q[5]), 1e-5).linear(&q[6], None).gelu().linear(&q[7], None)); }
        let n = p.len(); let lg = x.layer_norm(&p[n-3], Some(&p[n-2]), 1e-5).linear(&p[n-1], None).reshape(&[b*t, vocab]);
        lg.log_softmax(1).gather(1, &y).neg().mean_all() };
        o.step(loss); dev.flush().unwrap(); });
    }
    if want("ew") { for n in [1usize<<24, 4096] { let x = RawTensor::from_slice(&dev, &[n], DType::F32, &rnd(n, 4.0)); time(&format!("ew_{n}"), if n > 5000 {10} else {1000}, || { let y = x.mul_scalar(1.1f64).add_scalar(0.1f64).gelu().mul(&x.sigmoid()); dev.flush().unwrap(); drop(y); }); } }
    if want("row") { let x = RawTensor::from_slice(&dev, &[4096, 1024], DType::F32, &rnd(4096*1024, 4.0)); let g = RawTensor::from_slice(&dev, &[1024], DType::F32, &rnd(1024, 4.0));
      time("row_softmax", 30, || { let y = x.softmax(1); dev.flush().unwrap(); drop(y); });
      time("row_layernorm", 30, || { let y = x.layer_norm(&g, Some(&g), 1e-5); dev.flush().unwrap(); drop(y); }); }
    if want("sum") { let x = RawTensor::from_slice(&dev, &[4096, 4096], DType::F32, &rnd(4096*4096, 4.0));
      for a in [0, 1] { time(&format!("sum{a}"), 30, || { let y = x.sum(&[a]); dev.flush().unwrap(); drop(y); }); }
      time("sum_transpose", 20, || { let y = x.transpose(); let _ = y.realize(); drop(y); }); }
    if want("add16") { let x = RawTensor::from_slice(&dev, &[16], DType::F32, &rnd(16, 4.0)); let a = RawTensor::from_slice(&dev, &[16], DType::F32, &rnd(16, 4.0)); time("add16", 200, || { let mut y = x.add(&a); for _ in 1..1000 { y = y.add(&a); } dev.flush().unwrap(); drop(y); }); }
    for (m, k, n) in [(256usize,256usize,256usize),(512,512,512),(1024,1024,1024),(2048,2048,2048),(64,784,128),(1,4096,4096)] { let name = format!("sgemm_{m}x{k}x{n}"); if !want(&name) { continue }
      let a = RawTensor::from_slice(&dev, &[m, k], DType::F32, &rnd(m*k, 4.0)); let bb = RawTensor::from_slice(&dev, &[k, n], DType::F32, &rnd(n*k, 4.0));
      time(&name, if m > 1000 { 5 } else { 30 }, || { let y = a.matmul(&bb); dev.flush().unwrap(); drop(y); }); }
}
