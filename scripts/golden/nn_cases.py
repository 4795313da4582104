"""Golden values for layers and losses. Linear weights are written as Kiln keeps them: `[inputs, outputs]`."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from writer import Golden


def linear_and_embedding():
    g = Golden("kiln-nn", "linear", 11)
    for shape, bias in (([3, 4], True), ([2, 3, 4], True), ([2, 2, 3, 4], False)):
        x, weight = g.floats(*shape), g.floats(4, 5)
        b = g.floats(5) if bias else None
        g.case("linear")
        y = x @ weight if b is None else x @ weight + b
        g.graded(y, {"x": x, "weight": weight, "bias": b})
    weight, at = g.floats(7, 3), g.ints(2, 5, below=7)
    g.case("embedding")
    g.graded(F.embedding(at, weight), {"x": at, "weight": weight})
    g.save()


def norms():
    g = Golden("kiln-nn", "norm", 12)
    for shape, eps, bias in (([3, 6], 1e-5, True), ([2, 3, 6], 1e-3, True), ([2, 6], 1e-5, False)):
        x, gamma = g.floats(*shape), g.floats(6)
        beta = g.floats(6) if bias else None
        g.case("layer_norm", eps=eps)
        g.graded(F.layer_norm(x, [6], gamma, beta, eps), {"x": x, "gamma": gamma, "beta": beta})
    for shape in ([4, 3], [2, 3, 5], [2, 3, 4, 5], [2, 3, 2, 3, 2]):
        for training in (True, False):
            x, gamma, beta = g.floats(*shape), g.floats(3), g.floats(3)
            mean, var = g.floats(3, grad=False), g.floats(3, positive=True, grad=False)
            after_mean, after_var = mean.clone(), var.clone()
            y = F.batch_norm(x, after_mean, after_var, gamma, beta, training, 0.1, 1e-5)
            g.case("batch_norm", training=training, momentum=0.1, eps=1e-5)
            g.graded(y, {"x": x, "gamma": gamma, "beta": beta})
            # The running variance after the step is the unbiased one.
            g.put(mean=mean, var=var, mean_after=after_mean, var_after=after_var)
    for groups in (1, 2, 4):
        x, gamma, beta = g.floats(2, 4, 3, 3), g.floats(4), g.floats(4)
        g.case("group_norm", groups=groups, eps=1e-5)
        g.graded(F.group_norm(x, groups, gamma, beta, 1e-5), {"x": x, "gamma": gamma, "beta": beta})
    x, gamma, beta = g.floats(2, 4, 5), g.floats(4), g.floats(4)
    g.case("instance_norm", eps=1e-5)
    g.graded(F.instance_norm(x, weight=gamma, bias=beta, eps=1e-5), {"x": x, "gamma": gamma, "beta": beta})
    x, gamma = g.floats(2, 3, 6), g.floats(6)
    g.case("rms_norm", eps=1e-5)
    g.graded(F.rms_norm(x, [6], gamma, 1e-5), {"x": x, "gamma": gamma})
    for size in (3, 4):
        x = g.floats(2, 6, 4)
        g.case("local_response_norm", size=size, alpha=0.01, beta=0.75, k=1.5)
        g.graded(F.local_response_norm(x, size, 0.01, 0.75, 1.5), {"x": x})
    g.save()


def attention():
    g = Golden("kiln-nn", "attention", 13)
    for heads, masked, padded in ((1, False, False), (2, False, False), (2, True, False), (2, False, True)):
        b, t, s, d = 2, 4, 5, 4
        q, k, v = g.floats(b, t, d), g.floats(b, s, d), g.floats(b, s, d)
        w = {n: g.floats(d, d, scale=0.5) for n in ("wq", "wk", "wv", "wo")}
        bias = {n: g.floats(d, scale=0.5) for n in ("bq", "bk", "bv", "bo")}
        mask = torch.ones(t, s, dtype=torch.bool).triu(2) if masked else None
        pad = None
        if padded:
            pad = torch.zeros(b, s, dtype=torch.bool)
            pad[1, 3:] = True
        in_w = torch.cat([w["wq"].T, w["wk"].T, w["wv"].T])
        in_b = torch.cat([bias["bq"], bias["bk"], bias["bv"]])
        y, weights = F.multi_head_attention_forward(
            q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), d, heads, in_w, in_b, None, None, False, 0.0,
            w["wo"].T, bias["bo"], training=False, key_padding_mask=pad, need_weights=True, attn_mask=mask,
            average_attn_weights=False)
        y = y.transpose(0, 1)
        g.case("multi_head_attention", heads=heads)
        # In `mask` and `pad`, 1 hides the position.
        g.put(mask=None if mask is None else mask[None].expand(b, t, s), pad=pad, weights=weights)
        g.graded(y, {"q": q, "k": k, "v": v, **w, **bias})
    g.save()


def recurrent():
    g = Golden("kiln-nn", "recurrent", 14)
    b, t, i, h = 2, 3, 3, 4

    def gates(names, cell):
        """Weights of each gate as two linear layers: input (wi, bi) and hidden (wh, bh)."""
        p = {}
        for n in names:
            p[f"wi_{n}"], p[f"bi_{n}"] = g.floats(i, h, scale=0.5), g.floats(h, scale=0.5)
            p[f"wh_{n}"], p[f"bh_{n}"] = g.floats(h, h, scale=0.5), g.floats(h, scale=0.5)
        state = {
            "weight_ih_l0": torch.cat([p[f"wi_{n}"].T for n in names]),
            "weight_hh_l0": torch.cat([p[f"wh_{n}"].T for n in names]),
            "bias_ih_l0": torch.cat([p[f"bi_{n}"] for n in names]),
            "bias_hh_l0": torch.cat([p[f"bh_{n}"] for n in names]),
        }
        return p, lambda *args: torch.func.functional_call(cell, state, args)

    for with_state in (False, True):
        x = g.floats(b, t, i)
        p, f = gates(["i", "f", "g", "o"], nn.LSTM(i, h, batch_first=True).double())
        h0 = g.floats(1, b, h) if with_state else None
        c0 = g.floats(1, b, h) if with_state else None
        y, (hn, cn) = f(x, (h0, c0)) if with_state else f(x)
        g.case("lstm", with_state=with_state)
        g.put(hidden=hn[0], cell=cn[0])
        g.graded(y, {"x": x, "h0": h0, "c0": c0, **p})

        x = g.floats(b, t, i)
        p, f = gates(["r", "z", "n"], nn.GRU(i, h, batch_first=True).double())
        h0 = g.floats(1, b, h) if with_state else None
        y, hn = f(x, h0) if with_state else f(x)
        # The reset gate is applied after the hidden product.
        g.case("gru", with_state=with_state, reset_after=True)
        g.put(hidden=hn[0])
        g.graded(y, {"x": x, "h0": h0, **p})

        x = g.floats(b, t, i)
        p, f = gates(["n"], nn.RNN(i, h, batch_first=True).double())
        h0 = g.floats(1, b, h) if with_state else None
        y, hn = f(x, h0) if with_state else f(x)
        g.case("rnn", with_state=with_state)
        g.put(hidden=hn[0])
        g.graded(y, {"x": x, "h0": h0, **p})
    g.save()


def losses():
    g = Golden("kiln-nn", "loss", 15)
    for weighted in (False, True):
        for smoothing in (0.0, 0.1):
            for ignore in (-1, 2):
                x, target = g.floats(6, 4, scale=2.0), g.ints(6, below=4)
                if ignore >= 0:
                    target[1] = ignore
                weight = g.floats(4, positive=True, grad=False) if weighted else None
                g.case("cross_entropy", smoothing=smoothing, ignore=ignore, weighted=weighted)
                y = F.cross_entropy(x, target, weight, ignore_index=ignore if ignore >= 0 else -100, label_smoothing=smoothing)
                g.graded(y, {"x": x, "target": target, "weights": weight})
    for reduction in ("mean", "sum"):
        two = [
            ("mse", {}, lambda x, t: F.mse_loss(x, t, reduction=reduction)),
            ("l1", {}, lambda x, t: F.l1_loss(x, t, reduction=reduction)),
            ("smooth_l1", {"beta": 0.7}, lambda x, t: F.smooth_l1_loss(x, t, reduction=reduction, beta=0.7)),
            ("huber", {"delta": 0.7}, lambda x, t: F.huber_loss(x, t, reduction=reduction, delta=0.7)),
        ]
        for name, attrs, f in two:
            x, target = g.floats(3, 4), g.floats(3, 4, grad=False)
            g.case(f"{name}_{reduction}", **attrs)
            g.graded(f(x, target), {"x": x, "target": target})
        for log_target in (False, True):
            x = F.log_softmax(g.floats(3, 4), 1).detach().float().double().requires_grad_(True)
            target = F.softmax(g.floats(3, 4), 1).detach().float().double()
            target = target.log().float().double() if log_target else target
            g.case(f"kl_div_{reduction}", log_target=log_target)
            g.graded(F.kl_div(x, target, reduction=reduction, log_target=log_target), {"x": x, "target": target})
        x, target = g.floats(3, 4), g.floats(3, 4, positive=True, grad=False)
        for full in (False, True):
            g.case(f"poisson_nll_{reduction}", log_input=True, full=full, eps=1e-8)
            g.graded(F.poisson_nll_loss(x, target, True, full, reduction=reduction), {"x": x, "target": target})
            var = g.floats(3, 4, positive=True)
            g.case(f"gaussian_nll_{reduction}", full=full, eps=1e-6)
            g.graded(F.gaussian_nll_loss(x, target, var, full, 1e-6, reduction), {"x": x, "target": target, "var": var})
        a, b = g.floats(3, 4), g.floats(3, 4)
        sign = torch.where(g.floats(3, grad=False) > 0, 1, -1)
        g.case(f"cosine_embedding_{reduction}", margin=0.2)
        g.graded(F.cosine_embedding_loss(a, b, sign, 0.2, reduction=reduction), {"a": a, "b": b, "target": sign})
        a, b = g.floats(5), g.floats(5)
        sign = torch.where(g.floats(5, grad=False) > 0, 1, -1)
        g.case(f"margin_ranking_{reduction}", margin=0.3)
        g.graded(F.margin_ranking_loss(a, b, sign, 0.3, reduction=reduction), {"a": a, "b": b, "target": sign})
        x = g.floats(3, 4)
        sign = torch.where(g.floats(3, 4, grad=False) > 0, 1, -1)
        g.case(f"hinge_embedding_{reduction}", margin=1.0)
        g.graded(F.hinge_embedding_loss(x, sign, 1.0, reduction=reduction), {"x": x, "target": sign})
        g.case(f"soft_margin_{reduction}")
        g.graded(F.soft_margin_loss(x, sign.double(), reduction=reduction), {"x": x, "target": sign})
        a, p, n = g.floats(4, 3), g.floats(4, 3), g.floats(4, 3)
        g.case(f"triplet_margin_{reduction}", margin=1.0, p=2.0)
        g.graded(F.triplet_margin_loss(a, p, n, 1.0, 2.0, reduction=reduction), {"anchor": a, "positive": p, "negative": n})
        for p in (1, 2):
            x, target = g.floats(4, 5), g.ints(4, below=5)
            g.case(f"multi_margin_{reduction}", margin=1.0, p=p)
            g.graded(F.multi_margin_loss(x, target, p, 1.0, reduction=reduction), {"x": x, "target": target})
    for logits in (False, True):
        for weighted in (False, True):
            x = g.floats(4, 3)
            target = g.ints(4, 3, below=2)
            weight = g.floats(3, positive=True, grad=False) if weighted else None
            if not logits:
                x = torch.sigmoid(x).detach().float().double().requires_grad_(True)
            f = F.binary_cross_entropy_with_logits if logits else F.binary_cross_entropy
            g.case("binary_cross_entropy", logits=logits)
            # Weights scale the classes; the mean is over all elements.
            g.graded(f(x, target.double(), weight), {"x": x, "target": target, "weights": weight})
    for lengths in (([6, 6], [2, 3]), ([6, 4], [3, 1])):
        x = g.floats(6, 2, 5)
        logp = F.log_softmax(x, 2)
        target = torch.tensor([[1, 2, 2], [3, 1, 4]])
        inp, tgt = torch.tensor(lengths[0]), torch.tensor(lengths[1])
        g.case("ctc", blank=0)
        g.put(target=target, input_lengths=inp, target_lengths=tgt)
        # `x` are logits `[time, batch, classes]`; the loss is one value a sequence.
        g.graded(F.ctc_loss(logp, target, inp, tgt, 0, "none"), {"x": x})
    g.save()


def layers():
    g = Golden("kiln-nn", "layer", 16)
    for factor in (2, 3):
        x = g.floats(1, 2 * factor * factor, 2, 3)
        g.case("pixel_shuffle", factor=factor)
        g.graded(F.pixel_shuffle(x, factor), {"x": x})
        x = g.floats(1, 2, 2 * factor, 3 * factor)
        g.case("pixel_unshuffle", factor=factor)
        g.graded(F.pixel_unshuffle(x, factor), {"x": x})
    a, b = g.floats(3, 4), g.floats(3, 4)
    g.case("cosine_similarity", dim=1, eps=1e-8)
    g.graded(F.cosine_similarity(a, b, 1, 1e-8), {"a": a, "b": b})
    for p in (1.0, 2.0, 3.0):
        g.case("pairwise_distance", p=p, eps=1e-6)
        g.graded(F.pairwise_distance(a, b, p, 1e-6), {"a": a, "b": b})
    # A dropout layer outside training is the identity; its gradient too.
    x = g.floats(3, 4)
    g.case("dropout_eval", prob=0.5)
    g.graded(F.dropout(x, 0.5, training=False), {"x": x})
    g.save()


def run():
    linear_and_embedding()
    norms()
    attention()
    recurrent()
    losses()
    layers()
