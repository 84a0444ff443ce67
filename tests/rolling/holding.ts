import type { Outbox, SubscribeOptions } from 'postbox'
import { type Signal, signal } from '../support/signals.ts'

export interface Hand {
  /** A message came, and its handler runs. */
  readonly held: Signal<void>
  /** Send it, and every handler ends. */
  readonly finish: Signal<void>
}

/** Subscribes to orders with handlers that end when they are told to. */
export function holding(outbox: Outbox, options: SubscribeOptions = {}): Hand {
  const held = signal('a message to be in hand')
  const finish = signal('the handlers to be told to finish')
  outbox.subscribe(
    'orders',
    () => {
      held.send()
      return finish.wait()
    },
    options,
  )
  return { held, finish }
}
