import { createDecision, type Decision } from '../core/decision.ts'
import type { Publication } from '../core/draft.ts'
import { OutboxError } from '../core/errors.ts'
import { followOnOptions } from '../core/follow-on.ts'
import type { BatchContext, Context, DeliveryContext, FollowOn } from '../core/handler.ts'
import type { Logger, LogLevel } from '../core/log.ts'
import type { Draft, Message } from '../core/message.ts'
import type { PublishOptions } from '../core/publish-options.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { show } from '../core/show.ts'
import { anything, assertOptions } from '../core/validate.ts'
import type { Held } from './held.ts'
import type { Subscription } from './subscription.ts'

/** What contexts need of their outbox. */
export interface ContextTools {
  readonly log: Logger
  /** Checks and encodes a follow-on message; null: a middleware kept it back. */
  draft(input: Publication): Promise<Draft | null>
  /** Renews leases now; rejects when one is lost. */
  extend(helds: readonly Held[]): Promise<void>
}

/** One message in the hands of its handler. */
export interface Member {
  readonly held: Held
  readonly message: Message
  readonly decision: Decision
  /** What it publishes if it is acknowledged: settled once they are checked. */
  readonly followOns: Promise<Draft | null>[]
  /** All of them are. */
  isChecked(): boolean
  publish(input: Publication): Promise<FollowOn | null>
  /** The delivery is over: what is said about it from now on comes too late. */
  close(): void
}

export function createMember(
  held: Held,
  message: Message,
  { tools, subscription }: { readonly tools: ContextTools; readonly subscription: Subscription },
): Member {
  const decision = createDecision()
  const followOns: Promise<Draft | null>[] = []
  const propagate = subscription.settings.propagateHeaders
  let isOver = false
  let unchecked = 0
  return {
    held,
    message,
    decision,
    followOns,
    isChecked: () => unchecked === 0,
    publish({ queue, body, options }) {
      if (isOver) return refuseLate(message, { tools, subscription })
      const draft = tools.draft({ queue, body, options: followOnOptions(message, propagate, options) })
      followOns.push(draft)
      const answer = draft.then((made) => (made === null ? null : { id: made.id }))
      const checked = (): void => void unchecked--
      unchecked++
      // What is wrong with it fails the delivery, whether the handler waits for it or not.
      answer.then(checked, checked)
      return answer
    },
    close() {
      isOver = true
      decision.close()
    },
  }
}

/** The context of a handler of one message. Its methods can be taken apart: `async (message, { retry }) => …`. */
export function contextOfOne(member: Member, common: DeliveryContext): Context {
  const { ack, retry, reject, snooze } = member.decision
  return Object.freeze({
    ...common,
    ack,
    retry,
    reject,
    snooze,
    publish: (queue: string, body: unknown, options?: PublishOptions) =>
      member.publish({ queue, body, options }),
  })
}

const followOnShape = { queue: anything, body: anything, options: anything }

/** The context of a handler of many. */
export function contextOfMany(members: readonly Member[], common: DeliveryContext): BatchContext {
  const byMessage = new Map(members.map((member) => [member.message, member]))
  const of = (message: Message): Member => {
    const member = byMessage.get(message)
    if (member !== undefined) return member
    const sentence = `expected one of the messages of this batch, got ${show(message)}`
    throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
  }
  return Object.freeze({
    ...common,
    ack: (message) => of(message).decision.ack(),
    retry: (message, options) => of(message).decision.retry(options),
    reject: (message, reason) => of(message).decision.reject(reason),
    snooze: (message, delayMs) => of(message).decision.snooze(delayMs),
    // Not async: that would be another promise, which rejects unheard when the handler does not wait for it.
    publish: (message, followOn) => {
      assertOptions(followOn, followOnShape, 'the follow-on message')
      const { queue, body, options } = { ...followOn }
      return of(message).publish({ queue, body, options })
    },
  } satisfies BatchContext)
}

/** What both have: a signal, a log with the message's name on it, and the lease. */
export function commonContext(
  helds: readonly Held[],
  signal: AbortSignal,
  { tools, subscription }: { readonly tools: ContextTools; readonly subscription: Subscription },
): DeliveryContext {
  const [first] = helds
  const { queue, id, attempt } = first?.lease ?? {}
  const about =
    helds.length === 1
      ? { handler: subscription.name, queue, id, attempt }
      : { handler: subscription.name, queue, messages: helds.length }
  const write =
    (level: LogLevel) =>
    (message: string, fields?: Readonly<Record<string, unknown>>): void =>
      tools.log({ level, message, fields: { ...about, ...fields } })
  return {
    signal,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    lease: {
      extend() {
        const extended = tools.extend(helds)
        // The signal tells of a lost lease, too: a handler that does not wait for this must not end the process.
        extended.catch(() => {})
        return extended
      },
    },
  }
}

/** Nobody may wait for it any more: then the log is all that says so, and the process must not die of it. */
function refuseLate(
  { id, queue, attempt }: Message,
  { tools, subscription }: { readonly tools: ContextTools; readonly subscription: Subscription },
): Promise<never> {
  const sentence = `context.publish was called after the handler of message ${id} of "${queue}" had ended`
  const error = runtimeError('OUTBOX_DELIVERY_OVER', sentence)
  const fields = { handler: subscription.name, queue, id, attempt }
  tools.log({ level: 'error', message: error.message, fields, error })
  const refusal = Promise.reject(error)
  refusal.catch(() => {})
  return refusal
}
