export interface Ending {
  /** No more customers; what waits is still delivered, and the books are checked. */
  readonly closing: AbortSignal
  /** Not even that. */
  readonly hurry: AbortSignal
  close(): void
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
// `npm run` may pass a Ctrl-C on to a process that already had it from the terminal: two signals, one keystroke.
const sameKeystrokeMs = 500

/** The first signal closes the shop, the second skips what is left to do, the third ends the process on the spot. */
export function listenForEnding(): Ending {
  const closing = new AbortController()
  const hurry = new AbortController()
  let interruptedAt = Number.NEGATIVE_INFINITY

  const onSignal = (name: NodeJS.Signals): void => {
    if (name === 'SIGINT') {
      const isEcho = performance.now() - interruptedAt < sameKeystrokeMs
      interruptedAt = performance.now()
      if (isEcho) return
    }
    if (closing.signal.aborted) {
      for (const other of signals) process.removeListener(other, onSignal)
      hurry.abort()
    }
    closing.abort()
  }
  for (const name of signals) process.on(name, onSignal)
  // The reader of our output has left, as `head` does.
  process.stdout.on('error', () => closing.abort())
  return { closing: closing.signal, hurry: hurry.signal, close: () => closing.abort() }
}
