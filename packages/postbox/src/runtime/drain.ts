import type { Runner } from './runner.ts'
import type { Settled } from './settle-reports.ts'

/** What became of the messages while it was waited for. */
export interface Drained {
  readonly acked: number
  /** Failed, and put back for later. */
  readonly retried: number
  /** Put back by their handlers, not counted as failed. */
  readonly snoozed: number
  /** Given up: in the dead letters, or discarded. */
  readonly dead: number
  /** Taken over by another process before they could be settled, or settled just before the connection broke. */
  readonly lost: number
  /** Nothing was ready any more, but for messages of a newer `generation` and those of paused queues. False: the deadline came first, or a stop. */
  readonly isEmpty: boolean
}

/** Waits until nothing is ready any more or it is `stopped`, then ends what was started for it: what runs by then counts, too. */
export async function untilDrained(
  starting: Promise<Runner>,
  stopped: Promise<void>,
  end: () => Promise<void>,
): Promise<Drained> {
  const runner = await starting
  const before = { ...runner.settled }
  let isEmpty: boolean
  try {
    isEmpty = await Promise.race([runner.untilEmpty().then(() => true), stopped.then(() => false)])
  } finally {
    await end()
  }
  return { ...since(before, runner.settled), isEmpty }
}

/** What was settled between two looks. */
export function since(before: Settled, now: Settled): Omit<Drained, 'isEmpty'> {
  return {
    acked: now.acked - before.acked,
    retried: now.retried - before.retried,
    snoozed: now.snoozed - before.snoozed,
    dead: now.dead - before.dead,
    lost: now.lost - before.lost,
  }
}
