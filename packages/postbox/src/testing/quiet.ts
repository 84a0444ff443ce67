// Taken before a test can put false timers in their place.
const { setImmediate } = globalThis

const enoughRounds = 3

/**
 * Resolves when nothing happens any more by itself: for some rounds of the event loop nobody has asked anything of the store or of the
 * clock. What waits for something real (a socket, a timer of its own) may go on later.
 */
export async function untilQuiet(activity: () => number): Promise<void> {
  let seen = activity()
  for (let quiet = 0; quiet < enoughRounds; quiet++) {
    await new Promise<void>((resolve) => void setImmediate(resolve))
    const now = activity()
    if (now !== seen) quiet = -1
    seen = now
  }
}
