// What an outbox promises, as a pure function: a state and a step give the next state and what the caller is told. Nothing here knows of
// a database: the stores are held to it (drive.ts). Publishing is in publishing.ts, claims in claiming.ts, the ends of deliveries in settling.ts; what is
// different in the order of keys in ordering.ts, and what operators do about it in keys.ts.
import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { claim } from './claiming.ts'
import { listKeys, resumeKey, skipKey } from './keys.ts'
import { claimInOrder, join } from './ordering.ts'
import { cancel, publish } from './publishing.ts'
import { replay } from './replaying.ts'
import { settle } from './settling.ts'
import type { Answer, State, Step } from './terms.ts'

export interface Reduced {
  readonly state: State
  readonly answer: Answer
}

export const empty: State = {
  ...{ now: 0, nextPlace: 1, messages: [], dead: [], given: [] },
  ...{ pauses: new Map(), ends: new Map() },
}

export function reduce(before: State, step: Step): Reduced {
  // No two steps happen at the same time: what came first is due first.
  const state = { ...before, now: before.now + 1 }
  switch (step.kind) {
    case 'publish':
      return publish(state, step)
    case 'claim':
      return claim(state, step)
    case 'claimInOrder':
      return claimInOrder(state, step)
    case 'join':
      return join(state)
    case 'settle':
      return settle(state, step)
    case 'cancel':
      return cancel(state, step)
    case 'replay':
      return replay(state, step)
    case 'resumeKey':
      return resumeKey(state, step)
    case 'skipKey':
      return skipKey(state, step)
    case 'listKeys':
      return { state, answer: listKeys(state) }
    case 'pause':
    case 'resume':
      return pauseOrResume(state, step)
    case 'pass':
      return { state: { ...state, now: state.now + step.ms }, answer: { kind: 'nothing' } }
    case 'crash':
      return { state: crash(state, step.worker), answer: { kind: 'nothing' } }
    default:
      return unreachable(step)
  }
}

/** A worker is gone, and tells nobody: its leases end by themselves. */
function crash(state: State, worker: number): State {
  const given = state.given.map((lease) => (lease.worker === worker ? { ...lease, isInHand: false } : lease))
  return { ...state, given }
}

/**
 * Nothing of a paused queue is claimed. What goes on: publishing, and the ends of what was claimed before. Whoever was first stays
 * recorded, and whoever comes second is told.
 */
function pauseOrResume(
  state: State,
  { kind, queue, by }: Step & { readonly kind: 'pause' | 'resume' },
): Reduced {
  const isPaused = kind === 'pause'
  const last = state.pauses.get(queue)
  if ((last?.isPaused ?? false) === isPaused)
    return { state, answer: { kind: 'paused', isChanged: false, by: last?.by ?? null } }
  const pauses = new Map(state.pauses).set(queue, { isPaused, by })
  return { state: { ...state, pauses }, answer: { kind: 'paused', isChanged: true, by: null } }
}
