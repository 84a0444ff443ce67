import { createDecision, type Decision } from '../core/decision.ts'
import type { Publication } from '../core/draft.ts'
import { OutboxError } from '../core/errors.ts'
import { followOnOptions } from '../core/follow-on.ts'
import type { BatchContext, Context, DeliveryContext, FollowOn, RetryOptions } from '../core/handler.ts'
import type { Logger, LogLevel } from '../core/log.ts'
import type { Draft, Message } from '../core/message.ts'
import type { PublishOptions } from '../core/publish-options.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { show } from '../core/show.ts'
import { anything, assertOptions } from '../core/validate.ts'
import type { Held } from './held.ts'
import type { LazyController } from './lazy-controller.ts'
import type { Subscription } from './subscription.ts'
import type { Transacted, Transaction } from './transaction-run.ts'

/** What contexts need of their outbox. */
export interface ContextTools {
  readonly log: Logger
  /** Checks and encodes a follow-on message; null: a middleware kept it back. */
  draft(input: Publication): Promise<Draft | null>
  /** Renews leases now; rejects when one is lost. */
  extend(helds: readonly Held[]): Promise<void>
  /** Runs work in a transaction that ends the messages with it. */
  transact<T>(transaction: Transaction<T>): Promise<T>
}

/** Whose context it is. */
export interface Owner {
  readonly tools: ContextTools
  readonly subscription: Subscription
}

const none: readonly Promise<Draft | null>[] = []

/** One message in the hands of its handler. */
export class Member implements Transacted {
  readonly held: Held
  readonly message: Message
  readonly decision: Decision = createDecision()
  /** What it publishes if it is acknowledged: settled once they are checked. */
  followOns: readonly Promise<Draft | null>[] = none
  isSealed = false
  /** Resolves when its transaction is over; null: it has none. */
  transaction: Promise<void> | null = null
  /** What its transaction failed at; null: it did not. */
  failure: { readonly error: unknown } | null = null
  readonly #owner: Owner
  #isOver = false
  #unchecked = 0

  constructor(held: Held, message: Message, owner: Owner) {
    this.held = held
    this.message = message
    this.#owner = owner
  }

  /** What is said about it comes too late. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** All that it publishes is checked. */
  get isChecked(): boolean {
    return this.#unchecked === 0
  }

  publish({ queue, body, options }: Publication): Promise<FollowOn | null> {
    if (this.#isOver || this.isSealed) return refuseLate('publish', this.message, this.#owner)
    const { tools, subscription } = this.#owner
    const { propagateHeaders } = subscription.settings
    const draft = tools.draft({
      queue,
      body,
      options: followOnOptions(this.message, propagateHeaders, options),
    })
    this.followOns = [...this.followOns, draft]
    const answer = draft.then((made) => (made === null ? null : { id: made.id }))
    const checked = (): void => void this.#unchecked--
    this.#unchecked++
    // What is wrong with it fails the delivery, whether the handler waits for it or not.
    answer.then(checked, checked)
    return answer
  }

  /** The delivery is over: what is said about it from now on comes too late. */
  close(): void {
    this.#isOver = true
    this.decision.close()
  }
}

/** The context of a handler of one message. Its methods can be taken apart: `async (message, { retry }) => …`. */
export function contextOfOne(member: Member, common: CommonContext, owner: Owner): Context {
  const { decision } = member
  const { controller, log, lease } = common
  // Not frozen: that takes longer than making it.
  const context = {
    [controllerOf]: controller,
    log,
    lease,
    ack: () => decision.ack(),
    retry: (options?: RetryOptions) => decision.retry(options),
    reject: (reason?: string | Error) => decision.reject(reason),
    snooze: (delayMs: number) => decision.snooze(delayMs),
    publish: (queue: string, body: unknown, options?: PublishOptions) =>
      member.publish({ queue, body, options }),
    transaction: <T>(work: Transaction<T>['work']) =>
      beginTransaction([member], { work, signal: controller.signal }, owner),
  }
  return Object.defineProperty(context, 'signal', signalWhenAsked) as typeof context & DeliveryContext
}

const controllerOf = Symbol('controller')

/** A member of its own, so that `{ ...context }` has it; and one function for all contexts: with one for each, making them took four times as long. */
const signalWhenAsked = {
  enumerable: true,
  configurable: true,
  get(this: { readonly [controllerOf]: CommonContext['controller'] }): AbortSignal {
    return this[controllerOf].signal
  },
  // Who wraps a handler may put one of his own in its place, as with any member of the context.
  set(this: object, value: AbortSignal): void {
    Object.defineProperty(this, 'signal', { value, enumerable: true, writable: true, configurable: true })
  },
}

const followOnShape = { queue: anything, body: anything, options: anything }

/** The context of a handler of many. */
export function contextOfMany(members: readonly Member[], common: CommonContext, owner: Owner): BatchContext {
  const byMessage = new Map(members.map((member) => [member.message, member]))
  const of = (message: Message): Member => {
    const member = byMessage.get(message)
    if (member !== undefined) return member
    const sentence = `expected one of the messages of this batch, got ${show(message)}`
    throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
  }
  const { signal, log, lease } = deliveryContext(common)
  return Object.freeze({
    signal,
    log,
    lease,
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
    transaction: (work) => beginTransaction(members, { work, signal }, owner),
  } satisfies BatchContext)
}

/**
 * A transaction that ends all of them which are not decided. One that is refused, or fails, fails the delivery unless the handler decides otherwise: whether
 * it waits for the answer or not.
 */
function beginTransaction<T>(
  members: readonly Member[],
  { work, signal }: Pick<Transaction<T>, 'work' | 'signal'>,
  owner: Owner,
): Promise<T> {
  const undecided = members.filter(({ decision }) => decision.outcome === null)
  const [first] = members
  if (first?.isOver) return refuseLate('transaction', first.message, owner)
  const refusal = refusalOf(members, undecided, work)
  const committed =
    refusal === null ? owner.tools.transact({ members: undecided, work, signal }) : Promise.reject(refusal)
  for (const member of members)
    member.transaction ??= committed.then(
      () => {},
      (error: unknown) => {
        member.failure = { error }
      },
    )
  // Where a transaction went before it, nobody has listened to this one.
  committed.catch(() => {})
  return committed
}

function refusalOf(
  members: readonly Member[],
  undecided: readonly Member[],
  work: unknown,
): OutboxError | null {
  const twice = 'context.transaction was called twice for one delivery'
  if (members.some(({ transaction }) => transaction !== null))
    return runtimeError('OUTBOX_ALREADY_DECIDED', twice)
  const decided = `context.transaction was called after the handler had decided`
  if (undecided.length === 0) return runtimeError('OUTBOX_ALREADY_DECIDED', decided)
  if (typeof work === 'function') return null
  const sentence = `expected the work of a transaction to be a function, got ${show(work)}`
  return new OutboxError('OUTBOX_INVALID_OPTION', sentence)
}

/** What both have: what aborts the signal, a log with the message's name on it, and the lease. */
export interface CommonContext extends Omit<DeliveryContext, 'signal'> {
  readonly controller: Pick<LazyController, 'signal'>
}

export function commonContext(
  members: readonly Member[],
  controller: LazyController,
  owner: Owner,
): CommonContext {
  return { controller, log: new DeliveryLog(members, owner), lease: new DeliveryLease(members, owner) }
}

/** As a middleware sees it. */
export function deliveryContext({ controller, log, lease }: CommonContext): DeliveryContext {
  return { signal: controller.signal, log, lease }
}

type Write = (message: string, fields?: Readonly<Record<string, unknown>>) => void

/** A class with members that are made when they are asked for: few handlers log, and there is one for each message. */
class DeliveryLog {
  readonly #members: readonly Member[]
  readonly #owner: Owner

  constructor(members: readonly Member[], owner: Owner) {
    this.#members = members
    this.#owner = owner
  }

  get debug(): Write {
    return this.#writer('debug')
  }
  get info(): Write {
    return this.#writer('info')
  }
  get warn(): Write {
    return this.#writer('warn')
  }
  get error(): Write {
    return this.#writer('error')
  }

  #writer(level: LogLevel): Write {
    const { tools, subscription } = this.#owner
    const { queue, id, attempt } = this.#members[0]?.message ?? {}
    const of = this.#members.length === 1 ? { id, attempt } : { messages: this.#members.length }
    const about = { handler: subscription.name, queue, ...of }
    return (message, fields) => tools.log({ level, message, fields: { ...about, ...fields } })
  }
}

class DeliveryLease {
  readonly #members: readonly Member[]
  readonly #owner: Owner

  constructor(members: readonly Member[], owner: Owner) {
    this.#members = members
    this.#owner = owner
  }

  get extend(): () => Promise<void> {
    return () => {
      const extended = this.#owner.tools.extend(this.#members.map(({ held }) => held))
      // The signal tells of a lost lease, too: a handler that does not wait for this must not end the process.
      extended.catch(() => {})
      return extended
    }
  }
}

/** Nobody may wait for it any more: then the log is all that says so, and the process must not die of it. */
function refuseLate(
  method: string,
  { id, queue, attempt }: Message,
  { tools, subscription }: Owner,
): Promise<never> {
  const sentence = `context.${method} was called after the handler of message ${id} of "${queue}" had ended, or its transaction`
  const error = runtimeError('OUTBOX_DELIVERY_OVER', sentence)
  const fields = { handler: subscription.name, queue, id, attempt }
  tools.log({ level: 'error', message: error.message, fields, error })
  const refusal = Promise.reject(error)
  refusal.catch(() => {})
  return refusal
}
