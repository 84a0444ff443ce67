// The books of the tester: what sessions were told, added up. Pure. Each entry must have been possible when it was made (else it is a
// violation), and the tables must hold what the books say, no more and no less: so no change goes unreported, and none is reported twice.
import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { claimed, claimedEnough, leaseLost, written } from './book-leases.ts'
import { armed, cancelled, kept, nothingToCancel, notReplayed, replayed } from './book-names.ts'
import { joined, seenOf, started } from './book-order.ts'
import { paused, resumed } from './book-pauses.ts'
import type { Account, Booked, Entering, OpenTransaction } from './books.ts'
import type { Finished, Snapshot, Told, Violation } from './terms.ts'

export function openAccount({ messages, dead, effects, pausedBy }: Snapshot): Account {
  const entries = messages.map(({ isLeaseOver, due, ...message }) => ({
    ...message,
    leaseEnds: 0,
    deliveriesBefore: message.deliveries,
    dueAt: due === 'fresh' ? null : due === 'never' ? Number.POSITIVE_INFINITY : 0,
  }))
  const nothing = { ends: new Map(), replays: new Set<string>(), open: new Map(), started: new Map() }
  return { hour: 0, messages: entries, dead, effects, pausedBy, seen: seenOf(messages), ...nothing }
}

/** Books all that a step was told, in its order. */
export function book(account: Account, finished: Finished): Booked {
  const failing = failureProblem(finished)
  if (failing !== null) return { violation: failing }
  let now = account
  for (const told of finished.told) {
    const booked = bookOne(now, told, finished)
    if ('violation' in booked) return booked
    now = booked.account
  }
  return { account: now }
}

function failureProblem({ step, waited, wasAlone, told }: Finished): Violation | null {
  const failure = told.find((one) => one.kind === 'failed')
  if (failure === undefined) return null
  const { sqlState, message } = failure
  // Told to whoever has waited, and part of the contract: a deadlock, a name that was taken meanwhile, patience that ended.
  const isExpected =
    sqlState === '40P01' ||
    (sqlState === '23505' && waited) ||
    (sqlState === '55P03' && step.givesUp === true && !wasAlone)
  return isExpected
    ? null
    : { promise: 'no step fails', details: `${step.label} failed: ${sqlState} ${message}` }
}

function bookOne(account: Account, told: Told, { letter, wasAlone }: Finished): Booked {
  const open = account.open.get(letter)
  switch (told.kind) {
    case 'an hour passed':
      return { account: { ...account, hour: account.hour + 1 } }
    case 'failed':
      return { account }
    case 'began':
      return { account: withOpen(account, letter, { hour: account.hour, told: [] }) }
    case 'rolled back':
      return { account: withOpen(account, letter, null) }
    case 'committed': {
      let now = withOpen(account, letter, null)
      for (const one of open?.told ?? []) {
        const booked = enter({ account: now, hour: open!.hour, wasAlone: false }, one)
        if ('violation' in booked) return booked
        now = booked.account
      }
      return { account: now }
    }
    default:
      if (open === undefined) return enter({ account, hour: account.hour, wasAlone }, told)
      // A fence that comes too late is no fence: it is asked for before any work.
      if (isFence(told) && 'violation' in enter({ account, hour: open.hour, wasAlone }, told))
        return enter({ account, hour: open.hour, wasAlone }, told)
      return { account: withOpen(account, letter, { ...open, told: [...open.told, told] }) }
  }
}

function isFence(told: Told): boolean {
  return told.kind === 'written' && told.ending.kind === 'fenced'
}

function withOpen(account: Account, letter: string, transaction: OpenTransaction | null): Account {
  const open = new Map(account.open)
  if (transaction === null) open.delete(letter)
  else open.set(letter, transaction)
  return { ...account, open }
}

function enter(entering: Entering, told: Told): Booked {
  switch (told.kind) {
    case 'claimed':
      return claimed(entering, told)
    case 'claimed enough':
      return claimedEnough(entering, told)
    case 'started':
      return started(entering, told)
    case 'joined':
      return joined(entering, told)
    case 'written':
      return written(entering, told)
    case 'lease lost':
      return leaseLost(entering, told)
    case 'armed':
      return armed(entering, told)
    case 'kept':
      return kept(entering, told.timer)
    case 'cancelled':
      return cancelled(entering, told)
    case 'nothing to cancel':
      return nothingToCancel(entering, told.timer)
    case 'replayed':
      return replayed(entering, told.id)
    case 'not replayed':
      return notReplayed(entering, told)
    case 'paused':
      return paused(entering, told)
    case 'resumed':
      return resumed(entering, told)
    case 'worked':
      return { account: { ...entering.account, effects: [...entering.account.effects, told.id] } }
    case 'began':
    case 'committed':
    case 'rolled back':
    case 'an hour passed':
    case 'failed':
      throw new Error(`"${told.kind}" changes no message`)
    default:
      return unreachable(told)
  }
}
