const initialMs = 1_000
const longestMs = 300_000

/**
 * How long a message waits after its n-th failure: doubling from a second to five minutes, with full jitter, so that
 * messages which failed together do not return together. `random` is in [0, 1).
 */
export function backoffMs(attempt: number, random: number): number {
  return Math.min(longestMs, initialMs * 2 ** Math.min(attempt - 1, 30)) * random
}
