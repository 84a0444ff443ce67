// npm hands a Ctrl-C on to its script, which the terminal has told already: two signals, one wish.
const echoMs = 500

/**
 * A signal that aborts when the process is asked to end: `outbox.run({ signal: shutdownSignal('SIGTERM', 'SIGINT') })`.
 * Asked again after half a second, the process ends at once, as if nobody had listened.
 */
export function shutdownSignal(...names: readonly NodeJS.Signals[]): AbortSignal {
  const controller = new AbortController()
  const abort = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) return
    controller.abort(new Error(`received ${name}`))
    setTimeout(stopListening, echoMs).unref()
  }
  const stopListening = (): void => {
    for (const name of names) process.removeListener(name, abort)
  }
  for (const name of names) process.on(name, abort)
  return controller.signal
}
