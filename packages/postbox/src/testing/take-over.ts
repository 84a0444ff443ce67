import { OutboxError } from '../core/errors.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { show } from '../core/show.ts'
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
  if (isOutbox(outbox)) return (outbox as { readonly [internals]: OutboxParts })[internals]
  const sentence = `expected an outbox, or the options of one, got ${show(outbox)}`
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

function cannot(because: string): OutboxError {
  return runtimeError('OUTBOX_CANNOT_TAKE_OVER', `this outbox cannot be taken over: ${because}`)
}
