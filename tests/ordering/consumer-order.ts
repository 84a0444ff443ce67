import type { QueueMap, SubscribeOptions } from 'postbox'

/** How often, of all runs, a handler does something else than end well after some milliseconds. */
export interface Chances {
  readonly fails: number
  readonly snoozes: number
  /** Takes longer than its lease, which has to be renewed. */
  readonly isSlow: number
  readonly transacts: number
  /** Publishes a message of another key. */
  readonly followsOn: number
}

/** What a consumer is told to be, by its environment. */
export interface ConsumerOrder {
  readonly url: string
  readonly schema: string
  /** Of the process: each has one of its own. */
  readonly name: string
  readonly seed: number
  readonly keys: number
  readonly queues: QueueMap
  /** What can be written as JSON, of those of a subscription. */
  readonly options: SubscribeOptions
  /** The delay of a message that failed. */
  readonly retryMs: number
  readonly chances: Chances
}

export const orderedQueue = 'orders'

export interface OrderBody {
  /** One that was published by a handler: nothing follows from it. */
  readonly isFollowOn: boolean
}
