import type { MemoryDatabase } from './memory/memory-database.ts'
import { untilQuiet } from './quiet.ts'
import type { TestClock } from './test-clock.ts'

export interface TimeMachineParts {
  readonly clock: TestClock
  readonly memory: MemoryDatabase
  /** Grows with everything that is asked of store and clock. */
  activity(): number
  /** A time has come: lets happen what is due by now. */
  arrive(): Promise<void>
}

/**
 * Moves the clock to a time, and stops wherever something happens on the way: where a message becomes due, and, while handlers run, wherever
 * somebody wakes (a handler's time is over, a lease is to be renewed). Idle loops are not stopped for: they would look into an empty table
 * thousands of times.
 */
export async function travelTo(
  time: number,
  { clock, memory, activity, arrive }: TimeMachineParts,
): Promise<void> {
  const happen = async (): Promise<void> => {
    await untilQuiet(activity)
    await arrive()
    await untilQuiet(activity)
  }
  // What is under way, or due, must not be found to begin later.
  await happen()
  while (clock.now() < time) {
    clock.moveTo(Math.min(nextStop(memory, clock), time))
    await happen()
  }
}

function nextStop({ messages }: MemoryDatabase, clock: TestClock): number {
  const now = clock.now()
  const isBusy = messages.some(({ leasedUntil }) => leasedUntil !== null)
  const dues = messages.map(({ dueAt }) => dueAt ?? 0).filter((dueAt) => dueAt > now)
  return dues.reduce((a, b) => Math.min(a, b), isBusy ? clock.nextWake : Number.POSITIVE_INFINITY)
}
