// Leases, and what became of them, for tests of everything between an outcome and its statement.
import type { Lease } from '../../packages/postbox/src/core/lease.ts'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import type { Settlement } from '../../packages/postbox/src/core/settlement.ts'

/** A second run, at the third delivery: one of them ended in silence. */
export function leaseOf(seq: string, given: Partial<Lease> = {}): Lease {
  return {
    token: '0190163d-8694-739b-9aea-966c26f8ad91',
    id: `id-${seq}`,
    seq,
    queue: 'orders',
    key: null,
    timerId: null,
    body: new Uint8Array(0),
    headers: {},
    attempt: 2,
    deliveries: 3,
    createdAt: new Date(0),
    firstAttemptAt: null,
    claimedAt: new Date(0),
    generation: null,
    ...given,
  }
}

export const followOn: Draft = {
  id: '0190163d-8694-739b-9aea-966c26f8ad92',
  queue: 'letters',
  key: null,
  timerId: null,
  conflict: 'none',
  body: new Uint8Array(0),
  headers: null,
  schedule: { kind: 'now' },
  generation: null,
}

export const thrown = new TypeError('bad')
const why = { error: 'TypeError: bad', thrown }

type Settle = (seq: string, given?: Partial<Lease>) => Settlement

export const acked: Settle = (seq, given) => ({
  write: 'delete',
  lease: leaseOf(seq, given),
  followOns: [],
})
export const followed: Settle = (seq, given) => ({
  write: 'delete',
  lease: leaseOf(seq, given),
  followOns: [followOn],
})
/** It publishes a timer. */
export const arming: Settle = (seq, given) => ({
  write: 'delete',
  lease: leaseOf(seq, given),
  followOns: [{ ...followOn, timerId: 'daily', conflict: 'keep' }],
})
export const released: Settle = (seq, given) => ({ write: 'release', lease: leaseOf(seq, given) })
export const snoozed: Settle = (seq, given) => ({ write: 'snooze', lease: leaseOf(seq, given), delayMs: 7.5 })
export const failed: Settle = (seq, given) => ({
  write: 'reschedule',
  lease: leaseOf(seq, given),
  delayMs: 5.4,
  ...why,
})
export const dead: Settle = (seq, given) => ({
  write: 'bury',
  lease: leaseOf(seq, given),
  reason: 'rejected',
  attempts: 2,
  ...why,
})
/** It holds its key. */
export const parked: Settle = (seq, given) => ({
  write: 'bury',
  lease: leaseOf(seq, { key: 'k', isOrdered: true, ...given }),
  reason: 'rejected',
  attempts: 2,
  parks: true,
  ...why,
})
