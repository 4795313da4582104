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


def rates(g, name, scheduler, steps, lr=0.5, **attrs):
    """The learning rate of each step."""
    optim = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr)
    schedule = scheduler(optim)
    found = []
    for _ in range(steps):
        found.append(optim.param_groups[0]["lr"])
        optim.step()
        schedule.step()
    g.case(name, **attrs)
    g.put(rates=torch.tensor(found))


def schedules():
    g = Golden("kiln-optim", "schedule", 22)
    lr = torch.optim.lr_scheduler
    for attrs, options in [
        ({}, {}),
        (dict(warmup=0.5, div_factor=10.0, final_div_factor=100.0, linear=1), dict(pct_start=0.5, div_factor=10, final_div_factor=100, anneal_strategy="linear")),
        (dict(three_phase=1, warmup=0.4), dict(three_phase=True, pct_start=0.4)),
        (dict(warmup=0.25, three_phase=1, linear=1), dict(three_phase=True, pct_start=0.25, anneal_strategy="linear")),
    ]:
        steps = 25
        rates(g, "one_cycle", lambda o: lr.OneCycleLR(o, 0.5, total_steps=steps + 1, **options), steps, max_lr=0.5, num_iters=steps + 1, **attrs)
    for factor, least in [(1, 0.0), (2, 0.01), (3, 0.1)]:
        rates(g, "warm_restarts", lambda o: lr.CosineAnnealingWarmRestarts(o, 4, factor, least), 30, num_iters=4, factor=factor, min_lr=least)
    for power in (1.0, 2.0, 0.5):
        rates(g, "polynomial", lambda o: lr.PolynomialLR(o, 7, power), 10, num_iters=7, power=power)

    measures = g.floats(40, positive=True, grad=False)
    measures = torch.cat([measures[:20].sort(descending=True).values, measures[20:]])
    for attrs, options in [
        (dict(patience=2, factor=0.5), {}),
        (dict(patience=0, factor=0.1, cooldown=2, min_lr=0.01), {}),
        (dict(patience=1, factor=0.7, higher=1, relative=0.05), dict(mode="max", threshold=0.05)),
        (dict(patience=1, factor=0.7, absolute=0.2), dict(threshold=0.2, threshold_mode="abs")),
        (dict(patience=1, factor=0.7, higher=1, absolute=0.2), dict(mode="max", threshold=0.2, threshold_mode="abs")),
    ]:
        optim = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.5)
        plain = {k: v for k, v in attrs.items() if k in ("patience", "factor", "cooldown", "min_lr")}
        schedule = lr.ReduceLROnPlateau(optim, **plain, **options)
        found = []
        for measure in measures.tolist():
            schedule.step(measure)
            found.append(optim.param_groups[0]["lr"])
        g.case("plateau", **attrs)
        g.put(measures=measures, rates=torch.tensor(found))
    g.save()


def averages():
    """Moving averages of weights, and the scale of the loss."""
    g = Golden("kiln-optim", "average", 23)
    for decay in (0.9, 0.999):
        param, grads = g.floats(2, 3), g.floats(STEPS, 2, 3, grad=False)
        module = torch.nn.ParameterList([torch.nn.Parameter(param.detach().clone())])
        average = torch.optim.swa_utils.AveragedModel(module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(decay))
        # The first update copies.
        average.update_parameters(module)
        optim = torch.optim.SGD(module.parameters(), 0.1)
        after = []
        for step in range(STEPS):
            module[0].grad = grads[step].clone()
            optim.step()
            average.update_parameters(module)
            after.append(average.module[0].detach().clone())
        g.case("ema", decay=decay)
        g.put(param=param, grads=grads, after=torch.stack(after))

    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=4.0, backoff_factor=0.25, growth_interval=3)
    weight = torch.zeros(2, requires_grad=True, dtype=torch.float32)
    optim = torch.optim.SGD([weight], 0.5)
    finite = [1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1]
    scales, weights = [], []
    for ok in finite:
        weight.grad = None
        value = torch.tensor([1.0, 2.0 if ok else torch.inf], dtype=torch.float32)
        scaler.scale((weight * value).sum()).backward()
        scaler.step(optim)
        scaler.update()
        scales.append(scaler.get_scale())
        weights.append(weight.detach().clone().double())
    g.case("scaler", finite=finite)
    g.put(scales=torch.tensor(scales), weights=torch.stack(weights))
    g.save()


def lbfgs():
    """Ten calls on `sum(w * (x - c)^2) + sum(log(cosh(x)))`."""
    g = Golden("kiln-optim", "lbfgs", 24)
    for search, lr, max_iter, history in ((None, 0.1, 2, 3), (None, 0.05, 4, 100), ("strong_wolfe", 1.0, 2, 3), ("strong_wolfe", 0.5, 5, 100)):
        param, weight, center = g.floats(2, 3), g.floats(2, 3, positive=True, grad=False), g.floats(2, 3, grad=False)
        x = param.detach().clone().requires_grad_(True)
        optim = torch.optim.LBFGS([x], lr, max_iter, history_size=history, line_search_fn=search)
        after, losses = [], []

        def closure():
            optim.zero_grad()
            loss = (weight * (x - center) ** 2).sum() + torch.log(torch.cosh(x)).sum()
            loss.backward()
            return loss

        for _ in range(STEPS):
            losses.append(float(optim.step(closure)))
            after.append(x.detach().clone())
        g.case("lbfgs", wolfe=search is not None, lr=lr, max_iter=max_iter, history=history)
        g.put(param=param, weight=weight, center=center, after=torch.stack(after), losses=torch.tensor(losses))
    g.save()


def run():
    lbfgs()
    optimizers()
    schedules()
    averages()
