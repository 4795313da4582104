"""Golden values for optimizers and schedules: the parameter after each of ten steps with given gradients."""
import torch

from writer import Golden

STEPS = 10


def optimizers():
    g = Golden("kiln-optim", "optimizer", 21)
    table = [
        ("adam", dict(beta_1=0.9, beta_2=0.999, epsilon=1e-5), lambda p, a: torch.optim.Adam(p, 0.01, (0.9, 0.999), 1e-5)),
        ("adam", dict(beta_1=0.8, beta_2=0.99, epsilon=1e-3, amsgrad=1),
         lambda p, a: torch.optim.Adam(p, 0.01, (0.8, 0.99), 1e-3, amsgrad=True)),
        ("adam", dict(beta_1=0.9, beta_2=0.999, epsilon=1e-5, weight_decay=0.1),
         lambda p, a: torch.optim.Adam(p, 0.01, (0.9, 0.999), 1e-5, weight_decay=0.1)),
        ("adamw", dict(beta_1=0.9, beta_2=0.999, epsilon=1e-5, weight_decay=0.1),
         lambda p, a: torch.optim.AdamW(p, 0.01, (0.9, 0.999), 1e-5, weight_decay=0.1)),
        ("adamw", dict(beta_1=0.9, beta_2=0.99, epsilon=1e-5, weight_decay=1e-4, amsgrad=1),
         lambda p, a: torch.optim.AdamW(p, 0.01, (0.9, 0.99), 1e-5, weight_decay=1e-4, amsgrad=True)),
        ("sgd", {}, lambda p, a: torch.optim.SGD(p, 0.01)),
        ("sgd", dict(weight_decay=0.1), lambda p, a: torch.optim.SGD(p, 0.01, weight_decay=0.1)),
        ("sgd", dict(momentum=0.9, dampening=0.1), lambda p, a: torch.optim.SGD(p, 0.01, momentum=0.9, dampening=0.1)),
        ("sgd", dict(momentum=0.9, dampening=0.0, nesterov=1), lambda p, a: torch.optim.SGD(p, 0.01, momentum=0.9, nesterov=True)),
        ("sgd", dict(momentum=0.8, dampening=0.0, weight_decay=0.05),
         lambda p, a: torch.optim.SGD(p, 0.01, momentum=0.8, weight_decay=0.05)),
        ("rmsprop", dict(alpha=0.99, momentum=0.0, epsilon=1e-5, centered=0),
         lambda p, a: torch.optim.RMSprop(p, 0.01, 0.99, 1e-5)),
        ("rmsprop", dict(alpha=0.9, momentum=0.9, epsilon=1e-5, centered=1),
         lambda p, a: torch.optim.RMSprop(p, 0.01, 0.9, 1e-5, momentum=0.9, centered=True)),
        ("adagrad", dict(lr_decay=0.0, epsilon=1e-5), lambda p, a: torch.optim.Adagrad(p, 0.01, eps=1e-5)),
        ("adagrad", dict(lr_decay=0.1, epsilon=1e-5, weight_decay=0.05),
         lambda p, a: torch.optim.Adagrad(p, 0.01, 0.1, 0.05, eps=1e-5)),
    ]
    for name, attrs, make in table:
        param = g.floats(2, 3)
        grads = g.floats(STEPS, 2, 3, grad=False)
        g.case(name, lr=0.01, **attrs)
        g.put(param=param, grads=grads)
        leaf = param.detach().clone().requires_grad_(True)
        optim = make([leaf], attrs)
        after = []
        for step in range(STEPS):
            leaf.grad = grads[step].clone()
            optim.step()
            after.append(leaf.detach().clone())
        g.put(after=torch.stack(after))

    grad = g.floats(4, 5, scale=3.0, grad=False)
    for limit in (0.5, 100.0):
        leaf = torch.zeros(4, 5, dtype=torch.float64, requires_grad=True)
        leaf.grad = grad.clone()
        torch.nn.utils.clip_grad_norm_([leaf], limit)
        g.case("clip_norm", limit=limit)
        g.put(grad=grad, after=leaf.grad)
    g.case("clip_value", limit=0.7)
    g.put(grad=grad, after=grad.clamp(-0.7, 0.7))
    g.save()


def run():
    optimizers()
