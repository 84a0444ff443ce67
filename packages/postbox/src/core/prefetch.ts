/** What has been measured of a subscription's deliveries; null before the first. */
export interface Measured {
  readonly handlerMs: number | null
  readonly bodyBytes: number | null
}

// Handlers must find work while a claim is under way, and no longer: what waits here waits for nobody else. A claim takes a few
// milliseconds, so a fiftieth of a second of work is plenty.
const aheadMs = 20
const mostRows = 2_000
const mostBytes = 8 * 1024 * 1024

/** How many messages to claim ahead of free slots: 20 ms of work for all of them. Slow handlers get none: another process may start it now. */
export function prefetchFor(concurrency: number, { handlerMs, bodyBytes }: Measured): number {
  if (handlerMs === null) return 0
  const byTime = Math.floor((concurrency * aheadMs) / Math.max(handlerMs, 0.01))
  const byBytes = Math.floor(mostBytes / Math.max(bodyBytes ?? 0, 1))
  return Math.min(byTime, byBytes, mostRows)
}

/** The running average: a new value counts a fifth. */
export function averaged(average: number | null, value: number): number {
  return average === null ? value : average + (value - average) / 5
}

// All claims of one statement are estimated by the planner as if each queue took this much. Kept below the costs at which
// Postgres compiles a statement (jit): that took 130 to 590 ms of a claim that runs in three.
const mostRowsPerClaim = 2_000
const mostRowsOfQueue = 1_000

/** How many messages one claim may take of each of so many queues. */
export function claimLimit(queues: number): number {
  return Math.min(mostRowsOfQueue, Math.max(1, Math.floor(mostRowsPerClaim / Math.max(queues, 1))))
}
