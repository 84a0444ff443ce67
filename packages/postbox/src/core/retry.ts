const initialMs = 1_000
const longestMs = 300_000

/**
 * How long a message waits after its n-th failure: doubling from a second to five minutes. Half of it is random, so that
 * messages which failed together do not return together; half is not, so that a failure is never repeated at once.
 * `random` is in [0, 1).
 */
export function backoffMs(attempt: number, random: number): number {
  return Math.min(longestMs, initialMs * 2 ** Math.min(attempt - 1, 30)) * (0.5 + random / 2)
}
