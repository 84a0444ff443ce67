/** How long an idle subscriber waits before it looks again: the ladder from `min` doubling to `max`, less up to 40 % of jitter. */
export function pollDelayMs(
  emptyClaims: number,
  bounds: { readonly min: number; readonly max: number },
  random: number,
): number {
  const step = Math.min(bounds.max, bounds.min * 2 ** Math.min(emptyClaims - 1, 30))
  return step * (0.6 + 0.4 * random)
}

/** How long to wait after the n-th failure in a row of the database: 100 ms doubling to 30 s, with full jitter above half. */
export function reconnectDelayMs(failures: number, random: number): number {
  return Math.min(30_000, 100 * 2 ** Math.min(failures - 1, 30)) * (0.5 + 0.5 * random)
}
