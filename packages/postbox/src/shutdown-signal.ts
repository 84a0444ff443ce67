/**
 * A signal that aborts when the process is asked to end: `outbox.run({ signal: shutdownSignal('SIGTERM', 'SIGINT') })`.
 * Asked a second time, the process ends at once, as if nobody had listened.
 */
export function shutdownSignal(...names: readonly NodeJS.Signals[]): AbortSignal {
  const controller = new AbortController()
  const abort = (name: NodeJS.Signals): void => {
    for (const other of names) process.removeListener(other, abort)
    controller.abort(new Error(`received ${name}`))
  }
  for (const name of names) process.on(name, abort)
  return controller.signal
}
