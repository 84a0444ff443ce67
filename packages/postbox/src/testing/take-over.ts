import { OutboxError } from '../core/errors.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { show } from '../core/show.ts'
import { isRecord } from '../core/validate.ts'
import type { OutboxParts, Seam } from '../seam.ts'

// By name, not by import: the application may have another copy of this package in its bundle.
const internals: unique symbol = Symbol.for('postbox.internals') as never

const taken = new WeakSet<Seam>()

/** Whether it is an outbox that createOutbox has made, and not its options. */
export function isOutbox(given: object): boolean {
  const parts = (given as { readonly [internals]?: object })[internals]
  return parts !== undefined && 'seam' in parts
}

export function partsOf(outbox: object): OutboxParts {
  return (outbox as { readonly [internals]: OutboxParts })[internals]
}

/** A forgotten await, or a module that is imported in a circle, would make a second outbox, of which the application knows nothing. */
export function assertGiven(given: unknown): void {
  if (isRecord(given) && !(given instanceof Promise)) return
  const sentence = `expected an outbox, or the options of one, got ${show(given)}`
  throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
}

/** Puts something else in the place where an outbox meets the world, until the returned function is called. */
export function takeOver(outbox: object, place: Seam): () => void {
  const { seam, registry } = partsOf(outbox)
  if (taken.has(seam)) throw cannot('another test outbox has taken it over already')
  if (registry.onAdded !== null) throw cannot('it is running')
  const own = { ...seam }
  const subscriptions = [...registry.subscriptions]
  taken.add(seam)
  Object.assign(seam, place)
  return () => {
    taken.delete(seam)
    Object.assign(seam, own)
    // What a test has subscribed goes with it.
    registry.subscriptions.splice(0, registry.subscriptions.length, ...subscriptions)
  }
}

export function disposed(): OutboxError {
  return runtimeError('OUTBOX_CANNOT_TAKE_OVER', 'this test outbox was disposed')
}

function cannot(because: string): OutboxError {
  return runtimeError('OUTBOX_CANNOT_TAKE_OVER', `this outbox cannot be taken over: ${because}`)
}
