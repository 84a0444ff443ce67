// Timers that keep the process running and were set by the code under test. Node's own count is of no use for this:
// it has the timers of the test runner in it, which come and go between two looks.
import { createHook } from 'node:async_hooks'

const created = new Map<NodeJS.Timeout, string>()

createHook({
  // biome-ignore lint/complexity/useMaxParams: the signature is Node's.
  init(_id, type, _trigger, resource) {
    if (type !== 'Timeout') return
    const place = caller()
    if (!/node_modules\/(@vitest|vitest)\//.test(place)) created.set(resource as NodeJS.Timeout, place)
    // A map with every timer of a long test would be a leak of its own.
    if (created.size % 1_000 === 0) forgetFinished()
  },
}).enable()

/** Where each timer that is still to fire was set. Unreferenced ones are left out: they hold nobody up. */
export function runningTimers(): string[] {
  forgetFinished()
  return [...created].filter(([timer]) => timer.hasRef()).map(([, place]) => place)
}

function forgetFinished(): void {
  for (const timer of created.keys()) {
    // Not in the public types, but the only way to tell a timer that has fired from an unreferenced one.
    if ((timer as unknown as { _destroyed: boolean })._destroyed) created.delete(timer)
  }
}

function caller(): string {
  const frames = new Error().stack?.split('\n').slice(1) ?? []
  const frame = frames.find((line) => !line.includes('node:') && !line.includes(import.meta.filename))
  return frame?.trim().replace(/^at /, '') ?? 'unknown place'
}
