"""Writes every golden file. usage: python scripts/golden/make.py (PyTorch and NumPy; no GPU)."""
import torch

import composite_cases
import nn_cases
import numeric_cases
import option_cases
import optim_cases
import special_cases
import tensor_cases
import window_cases

torch.set_default_dtype(torch.float64)
tensor_cases.run()
nn_cases.run()
optim_cases.run()
window_cases.run()
numeric_cases.run()
composite_cases.run()
special_cases.run()
option_cases.run()
