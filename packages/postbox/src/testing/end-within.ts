import { untilQuiet } from './quiet.ts'
import type { TestClock } from './test-clock.ts'

// Taken before a test can put false timers in their place.
const { setTimeout, clearTimeout } = globalThis

/** How long handlers that wait for something real are let finish. */
const patienceMs = 1_000

/** Waits for the end of an outbox. Its own deadlines are on the test's clock, which nobody else moves any more. */
export async function endWithin(
  ending: Promise<void>,
  { clock, activity }: { readonly clock: TestClock; activity(): number },
): Promise<void> {
  let isOver = false
  const over = ending.then(() => {
    isOver = true
  })
  await Promise.race([over, patience(over)])
  while (!isOver) {
    clock.moveTo(Math.min(clock.nextWake, clock.now() + patienceMs))
    await untilQuiet(activity)
  }
}

function patience(over: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, patienceMs)
    void over.then(() => clearTimeout(timer))
  })
}
