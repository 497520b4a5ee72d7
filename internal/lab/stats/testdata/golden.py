"""Golden numbers for package stats, by SciPy and statsmodels: an independent implementation.

    python3 golden.py > golden.json
"""
import json
import math

import numpy as np
from scipy import integrate, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint


def interval(k, n, level, method):
    return list(map(float, proportion_confint(k, n, 1 - level, method=method)))


def flips(diffs):
    diffs = np.array(diffs)
    return [
        float(stats.permutation_test((diffs,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative=a).pvalue)
        for a in ("two-sided", "greater", "less")
    ]


def power(tasks, disagree, effect, alpha):
    differ = max(disagree, effect)
    wins, found = (differ + effect) / 2 / differ, 0.0
    for n in range(tasks + 1):
        lost = [k for k in range(n + 1) if stats.binomtest(k, n, 0.5).pvalue <= alpha] if n else []
        found += stats.binom.pmf(n, tasks, differ) * sum(stats.binom.pmf(k, n, wins) for k in lost)
    return float(found)


def rising(x, n, share):
    def ratio(q):
        return math.exp(x * math.log(q / share) + (n - x) * (math.log1p(-q) - math.log1p(-share)))
    return integrate.quad(ratio, share, 1, epsabs=0, epsrel=1e-12, limit=500)[0] / (1 - share)


shares = [(0, 20), (1, 29), (15, 148), (81, 263), (45, 89), (89, 89)]
diffs = [[1, 1, 1, -1, 0, 0, 1], [0.2, -0.4, 0.6, 0.8, 0, 0.2, 0.2, -0.2, 1], [0.5, 1 / 3, -0.25, 0.75, 2 / 3], [0, 0]]
ps = [[0.01, 0.04, 0.03, 0.005], [0.5, 0.5, 0.001], [0.02], [0.9, 0.8, 0.05, 0.04, 0.03, 0.02]]
tables = [[[75, 1, 4], [5, 4, 1], [0, 0, 10]], [[20, 5], [10, 15]], [[0, 9], [8, 0]]]

print(json.dumps({
    "wilson": [[k, n, level, interval(k, n, level, "wilson")] for k, n in shares for level in (0.9, 0.95)],
    "clopper_pearson": [[k, n, level, interval(k, n, level, "beta")] for k, n in shares for level in (0.9, 0.95)],
    "mcnemar": [[b, c, float(mcnemar([[0, b], [c, 0]], exact=True).pvalue)] for b, c in [(1, 9), (3, 12), (8, 8), (0, 6), (40, 21)]],
    "flips": [[d, flips(d)] for d in diffs if any(d)],
    "expanded": [[tail, n, float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.isf(tail, n - 1)))] for tail in (0.025, 0.05) for n in (2, 5, 20, 89, 1000)],
    "holm": [[p, list(map(float, multipletests(p, method="holm")[1]))] for p in ps],
    "false_discoveries": [[p, list(map(float, multipletests(p, method="fdr_bh")[1]))] for p in ps],
    "kappa": [[t, float(r.kappa), float(r.kappa_low), float(r.kappa_upp)] for t in tables for r in [cohens_kappa(t)]],
    "power": [[n, d, e, power(n, d, e, 0.05)] for n, d, e in [(89, 0.2, 0.13), (89, 0.2, 0), (40, 0.1, 0.2), (30, 0.5, 0.3)]],
    "rising": [[x, n, s, rising(x, n, s)] for x, n, s in [(0, 0, 0.2), (5, 10, 0.2), (2, 30, 0.2), (20, 30, 0.5), (0, 12, 0.1)]],
}, indent=1))
