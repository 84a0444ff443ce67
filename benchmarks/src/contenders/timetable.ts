/** When each of so many messages is due, and a clock that started with the first. */
export interface Timetable {
  readonly messages: number
  readonly perSecond: number
  /** In milliseconds. */
  readonly elapsed: () => number
  readonly sleep: (ms: number) => Promise<unknown>
}

export function dueMsOf(n: number, perSecond: number): number {
  return (n * 1_000) / perSecond
}

/**
 * At every tick whatever is due by then, together. A publisher that is slower than its tick takes more at the next one, so that it is its own latency that grows and not a
 * queue in front of it.
 */
export async function publishWhenDue(
  { messages, perSecond, elapsed, sleep }: Timetable,
  everyMs: number,
  publish: (from: number, count: number) => Promise<void>,
): Promise<void> {
  for (let next = 0; next < messages; ) {
    const due = Math.min(messages, Math.floor((elapsed() * perSecond) / 1_000) + 1)
    if (due > next) await publish(next, due - next)
    next = due
    const now = elapsed()
    if (next < messages) await sleep((Math.floor(now / everyMs) + 1) * everyMs - now)
  }
}
