// The ends of deliveries. Only who holds the lease may write: what was lost is neither changed nor told.
import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { ended, skipped } from './ordering.ts'
import { put, waitingFor } from './publishing.ts'
import type { Reduced } from './reducer.ts'
import type { DeadLetter, Draft, Fence, Message, Settled, State, Step, Write } from './terms.ts'

export function settle(state: State, { settled, write }: Step & { readonly kind: 'settle' }): Reduced {
  const held = settled.filter((fence) => heldBy(state, fence) !== undefined)
  const after = held.reduce((before, fence) => written(before, heldBy(before, fence)!, write), state)
  const published = chosen(held).reduce((before, draft) => put(before, draft).state, after)
  return {
    state: write.kind === 'extend' || write.kind === 'count' ? published : outOfHand(published, settled),
    answer: { kind: 'settled', places: held.map(({ place }) => place) },
  }
}

/** A lease that has ended holds all the same, until somebody else claims the message. */
function heldBy({ messages }: State, { place, claim }: Fence): Message | undefined {
  return messages.find((message) => message.place === place && message.lease?.claim === claim)
}

/** Whether it was written or lost: its worker is done with it. */
function outOfHand(state: State, settled: readonly Fence[]): State {
  const isSettled = (lease: Fence): boolean =>
    settled.some(({ place, claim }) => place === lease.place && claim === lease.claim)
  const given = state.given.map((lease) => (isSettled(lease) ? { ...lease, isInHand: false } : lease))
  return { ...state, given }
}

function written(state: State, message: Message, write: Write): State {
  switch (write.kind) {
    case 'ack':
      return ended(without(state, message), message)
    case 'retry':
      return waitingAgain(state, message, {
        ...failedOnce(state, message),
        dueAt: state.now + write.delayMs,
        lastError: write.error,
        ...nameOf(state, message, write.takesNames),
      })
    // As if it had not been delivered.
    case 'snooze':
      return waitingAgain(state, message, {
        deliveries: deliveriesBefore(state, message),
        dueAt: state.now + write.delayMs,
        ...nameOf(state, message, write.takesNames),
      })
    case 'release':
      return waitingAgain(state, message, {
        deliveries: deliveriesBefore(state, message),
        ...nameOf(state, message, write.takesNames),
      })
    case 'bury':
      return skipped(ended(buried(state, message, write), message), message)
    // Where it is: nobody gets it, and its name is free. Its key goes on.
    case 'quarantine':
      return skipped(inPlace(state, message, write), message)
    // The same, but its key waits.
    case 'park':
      return inPlace(state, message, write)
    case 'extend':
      return changed(state, message, {
        lease: { claim: message.lease!.claim, until: state.now + write.leaseMs },
      })
    // However often it is said.
    case 'count':
      return changed(state, message, { deliveries: deliveriesBefore(state, message) + 1 })
    default:
      return unreachable(write)
  }
}

/** Before the claim of who holds it: he may have counted a delivery since, or not. */
function deliveriesBefore({ given }: State, { place, lease }: Message): number {
  return given.find((one) => one.place === place && one.claim === lease?.claim)!.deliveriesBefore
}

/** A timer takes its name back, unless another one waits under it by now: then it goes on without, and tries again the next time. */
function nameOf(state: State, { queue, firedTimer }: Message, takesNames: boolean): Partial<Message> {
  const isTaken = waitingFor(state, queue, firedTimer) !== undefined
  return takesNames && !isTaken ? { timer: firedTimer, firedTimer: null } : {}
}

function failedOnce({ now }: State, { attempts, firstAttemptAt }: Message): Partial<Message> {
  return { attempts: attempts + 1, firstAttemptAt: firstAttemptAt ?? now, lastAttemptAt: now }
}

type Burial = Write & { readonly kind: 'bury' | 'quarantine' | 'park' }

function buried(state: State, message: Message, write: Burial): State {
  return { ...without(state, message), dead: [...state.dead, letterOf(state, message, write)] }
}

function inPlace(state: State, message: Message, write: Burial): State {
  const death = { ...deadOf(state, message, write), dueAt: Number.POSITIVE_INFINITY }
  return waitingAgain(state, message, { ...death, isParked: write.kind === 'park' })
}

/** Only a run is an attempt: a message that was delivered too often may never have been run to its end. */
function deadOf(state: State, message: Message, { hasRun, reason, error }: Burial) {
  const run = hasRun ? failedOnce(state, message) : {}
  return { ...run, lastError: error, death: { at: state.now, reason } }
}

function letterOf(state: State, message: Message, burial: Burial): DeadLetter {
  const { firedTimer, dueAt, lease, isParked, isToJoin, afterDead, ...letter } = message
  return { ...letter, timer: firedTimer, ...deadOf(state, message, burial) }
}

/**
 * What is published by the messages that were acknowledged, in the order of these. Of several timers of one name one is chosen: the last
 * that replaces, else the first.
 */
function chosen(held: readonly Settled[]): readonly Draft[] {
  const drafts = held.flatMap(({ followOns }) => followOns)
  return drafts.filter((draft) => {
    if (draft.timer === null) return true
    const rivals = drafts.filter(({ queue, timer }) => queue === draft.queue && timer === draft.timer)
    return draft === (rivals.findLast(({ conflict }) => conflict === 'replace') ?? rivals[0])
  })
}

function waitingAgain(state: State, message: Message, change: Partial<Message>): State {
  return changed(state, message, { ...change, lease: null })
}

function changed(state: State, message: Message, change: Partial<Message>): State {
  const messages = state.messages.map((one) => (one === message ? { ...one, ...change } : one))
  return { ...state, messages }
}

function without(state: State, message: Message): State {
  return { ...state, messages: state.messages.filter((one) => one !== message) }
}
