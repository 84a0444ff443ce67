import type { BodyRules } from '../core/body.ts'
import type { Context } from '../core/handler.ts'
import type { Message } from '../core/message.ts'
import type { SubscribeSettings } from '../core/subscribe-options.ts'

/** A queue, its handler and frozen options. */
export interface Subscription {
  readonly queue: string
  readonly name: string
  readonly handler: (message: Message, context: Context) => unknown
  readonly settings: SubscribeSettings
  readonly rules: BodyRules
}
