// Colours for how nodes look to one pod: who takes it in shades of its score, who refuses it in the colour of the plugin.

export function scoreSpan(verdicts) {
  if (!verdicts.totals) return null;
  const totals = verdicts.totals.filter((total) => total !== null);
  return totals.length ? [totals.reduce((a, b) => Math.min(a, b)), totals.reduce((a, b) => Math.max(a, b))] : null;
}

export function verdictPaint(verdicts) {
  const span = scoreSpan(verdicts);
  return (row, colours) => {
    const by = verdicts.refusedBy[row];
    if (by >= 0) return colours.kinds[by % 8];
    if (!span) return colours.heat[60];
    return colours.heat[span[1] > span[0] ? Math.round(20 + 80 * (verdicts.totals[row] - span[0]) / (span[1] - span[0])) : 60];
  };
}

// How many nodes are left after each filter, in the filters' order.
export function funnel(verdicts) {
  let left = verdicts.refusedBy.length;
  return verdicts.plugins.map((plugin, i) => {
    const refused = verdicts.refusedBy.reduce((n, by) => n + (by === i), 0);
    left -= refused;
    return { plugin, refused, left, kind: i % 8 };
  }).filter(({ refused }) => refused);
}
