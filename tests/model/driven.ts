import type { Draft as Written } from '../../packages/postbox/src/core/message.ts'
import type { Schedule } from '../../packages/postbox/src/core/schedule.ts'
import type { DeliveredStorage } from '../../packages/postbox/src/core/storage-modes.ts'
import { heardWake, type Wake } from '../../packages/postbox/src/sql/wake.ts'
import type { Store } from '../support/stores.ts'
import { contentOf, type Places, uuidOf } from './stored.ts'
import { type Delivered, type Draft, orderedQueue, type Queue } from './terms.ts'

export interface Told extends Delivered {
  readonly queue: Queue
}

/** A store in the middle of a sequence. */
export interface Driven {
  readonly store: Store
  readonly places: Places
  /** What a claim told of a message, by place and claim: a worker goes by it when it settles. */
  readonly told: Map<string, Told>
  /** The model's clock. */
  readonly now: number
  /** A time of the model by the store's clock. */
  readonly epochMs: (time: number) => number
  readonly delivered: DeliveredStorage
  /** It looks at every key with each claim, and need not be told where. */
  readonly looksEverywhere: boolean
}

export function wakeOf({ database }: Store): Wake {
  return heardWake('quiet', database)
}

export function draftFor({ epochMs }: Driven, draft: Draft): Written {
  return {
    id: uuidOf(draft.id),
    queue: draft.queue,
    key: draft.key,
    timerId: draft.timer,
    conflict: draft.timer === null ? 'none' : draft.conflict,
    ...contentOf(draft),
    schedule: scheduleOf(draft, epochMs),
    generation: draft.generation,
    isOrdered: draft.queue === orderedQueue && (draft.key !== null || isReplacing(draft)),
  }
}

function isReplacing({ timer, conflict }: Draft): boolean {
  return timer !== null && conflict === 'replace'
}

function scheduleOf({ due }: Draft, epochMs: Driven['epochMs']): Schedule {
  return due.kind === 'at' ? { kind: 'at', epochMs: epochMs(due.time) } : due
}
