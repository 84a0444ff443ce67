import type { BodyRules } from '../core/body-rules.ts'
import type { BatchHandler, Handler } from '../core/handler.ts'
import type { SubscribeSettings } from '../core/subscribe-options.ts'

/** Queues, their handler and frozen options. */
export interface Subscription {
  readonly queues: readonly string[]
  readonly name: string
  readonly run: HandlerOfOne | HandlerOfMany
  readonly settings: SubscribeSettings
  readonly rules: BodyRules
}

export interface HandlerOfOne {
  readonly kind: 'each'
  readonly handler: Handler
}

export interface HandlerOfMany {
  readonly kind: 'batch'
  readonly handler: BatchHandler
  /** The most messages that it gets at once, and how long the first of them may wait for the others. */
  readonly size: number
  readonly maxWaitMs: number
}
