// The application: a carrier that may be down, for longer than the policy has patience.
import type { PGlite } from '@electric-sql/pglite'
import { createOutbox, type DeadEvent, noRetry, type Outbox, TerminalError, typed } from 'postbox'

export interface Order {
  readonly orderId: number
  readonly address: string
}

export interface Surroundings {
  readonly db: PGlite
  readonly deadLetters: 'table' | 'in-place'
  readonly carrier: { isDown: boolean }
  page(alert: string): void
}

export function createShipping({ db, deadLetters, carrier, page }: Surroundings): Outbox<{
  orders: { in: Order; out: Order }
}> {
  const outbox = createOutbox({
    database: db,
    queues: { orders: { body: typed<Order>() } },
    source: 'shop',
    generation: 1,
    deadLetters,
    delivered: 'table', // kept for auditors
    logger: false,
    onEvent: (event) => event.kind === 'dead' && page(alertOf(event)),
  })
  outbox.subscribe(
    'orders',
    async function shipOrder({ body }) {
      if (body.address === '') throw new TerminalError('there is no address')
      if (carrier.isDown) throw new Error('CarrierDown: no answer')
    },
    { retry: noRetry() }, // so that the tests below need not wait
  )
  return outbox
}

/** All that whoever is woken at night needs to begin with. */
function alertOf({ id, type, source, target, handler, reason, attempts, error }: DeadEvent): string {
  return `${type} of ${source} for ${target} (${id}): ${handler} gave up, ${reason} after ${attempts}: ${error}`
}
