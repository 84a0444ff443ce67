import { readBody } from '../core/body.ts'
import { type Ended, outcomeOf, refuseFunction, withFailure, withFollowOns } from '../core/decision.ts'
import { OutboxError } from '../core/errors.ts'
import type { Teller } from '../core/events.ts'
import type { DeliveryContext } from '../core/handler.ts'
import { contentTypeHeader, correlationIdHeader } from '../core/headers.ts'
import type { Lease } from '../core/lease.ts'
import type { Message } from '../core/message.ts'
import { compose, type Delivery, type Middleware } from '../core/middleware.ts'
import { ofMessage } from '../core/of-message.ts'
import type { Outcome } from '../core/outcome.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import type { SubscribeSettings } from '../core/subscribe-options.ts'
import type { Clock } from './clock.ts'
import {
  type ContextTools,
  commonContext,
  contextOfMany,
  contextOfOne,
  Member,
  type Owner,
} from './context.ts'
import type { Held } from './held.ts'
import type { Subscription } from './subscription.ts'

export interface DeliveryTools extends ContextTools {
  readonly clock: Clock
  readonly teller: Teller
  readonly consumeSkins: readonly NonNullable<Middleware['consume']>[]
}

/**
 * Decodes the bodies, runs the handler once for all that can be read. Whatever is thrown, by either, is the delivery's outcome and
 * never an exception. Resolves with an outcome for each, in their order.
 */
export async function deliver(
  helds: readonly Held[],
  run: Run,
  tools: DeliveryTools,
): Promise<readonly Outcome[]> {
  const [first] = helds
  const owner = { tools, subscription: run.subscription }
  // The usual case has no use for what goes with many.
  const read =
    helds.length === 1 && first !== undefined
      ? [await readMember(first, owner)]
      : await Promise.all(helds.map((held) => readMember(held, owner)))
  const members = read.filter(isMember)
  const ended = members.length === 0 ? nothingRan : await runHandler(members, run, tools)
  const rules = { ack: run.subscription.settings.ack, teller: tools.teller, isShared: members.length > 1 }
  const outcomes = read.map((one) => (isMember(one) ? memberOutcome(one, ended, rules) : one))
  return outcomes.some((one) => one instanceof Promise) ? Promise.all(outcomes) : (outcomes as Outcome[])
}

interface Run {
  readonly subscription: Subscription
  readonly controller: AbortController
}

const nothingRan: Ended = { kind: 'answered' }

async function readMember(held: Held, owner: Owner): Promise<Member | Outcome> {
  try {
    return new Member(held, await messageOf(held.lease, owner.subscription), owner)
  } catch (error) {
    return { kind: 'invalid', error }
  }
}

function isMember(one: Member | Outcome): one is Member {
  return one instanceof Member
}

/** The handler, within its middleware and its time; what it publishes is checked within that, too. */
async function runHandler(members: readonly Member[], run: Run, tools: DeliveryTools): Promise<Ended> {
  const close = (): void => members.forEach((member) => void member.close())
  const work = async (): Promise<Ended> => {
    const ended = await endOf(members, run, tools)
    await transactionsOf(members)
    close()
    const followOns = members.flatMap((member) => member.followOns)
    if (followOns.length > 0) await Promise.allSettled(followOns)
    return ended
  }
  const hasTime = run.subscription.settings.timeoutMs === null
  const ended = await (hasTime ? work() : withinTime(work(), { ...run, close }, tools.clock))
  // Out of time: the transaction is told by the signal, and nothing may be written for a message that it has locked.
  if (!hasTime) await transactionsOf(members)
  return refuseFunction(ended)
}

async function transactionsOf(members: readonly Member[]): Promise<void> {
  for (const { transaction } of members) if (transaction !== null) await transaction
}

/** With what the handler returned or threw; unless a middleware answered for it. */
async function endOf(members: readonly Member[], run: Run, tools: DeliveryTools): Promise<Ended> {
  const { signal } = run.controller
  const owner = { tools, subscription: run.subscription }
  const handling = { members, run, owner, context: commonContext(members, signal, owner) }
  try {
    if (tools.consumeSkins.length > 0) return await endWithin(tools, handling)
    return returned(await handle(handling), signal)
  } catch (error) {
    return { kind: 'threw', error, isInterrupted: isStopping(signal) }
  }
}

function handle({ members, run: { subscription }, context, owner }: Handling): unknown {
  const [first] = members
  if (subscription.run.kind === 'batch')
    return subscription.run.handler(messagesOf(members), contextOfMany(members, context, owner))
  return first && subscription.run.handler(first.message, contextOfOne(first, context, owner))
}

interface Handling {
  readonly members: readonly Member[]
  readonly run: Run
  readonly owner: Owner
  readonly context: DeliveryContext
}

async function endWithin({ consumeSkins }: DeliveryTools, handling: Handling): Promise<Ended> {
  const { members, context } = handling
  const { subscription, controller } = handling.run
  const messages = messagesOf(members)
  const delivery = { handler: subscription.name, queue: messages[0]?.queue ?? '', messages, context }
  let ended: Ended = nothingRan
  await compose<Delivery, never, void>(consumeSkins, delivery, async () => {
    ended = returned(await handle(handling), controller.signal)
  })
  return ended
}

function messagesOf(members: readonly Member[]): readonly Message[] {
  return Object.freeze(members.map(({ message }) => message))
}

function returned(value: unknown, signal: AbortSignal): Ended {
  return { kind: 'returned', value, isInterrupted: isStopping(signal) }
}

/** A handler that is out of time has failed, whether it listens to its signal or not: it must not keep its slot for ever. */
async function withinTime(work: Promise<Ended>, run: Run & { close(): void }, clock: Clock): Promise<Ended> {
  const { name, settings } = run.subscription
  const { timeoutMs } = settings
  if (timeoutMs === null) return work
  const timer = new AbortController()
  const timeout = clock.sleep(timeoutMs, timer.signal).then((): Ended | Promise<Ended> => {
    if (timer.signal.aborted) return work
    const error = runtimeError('OUTBOX_HANDLER_TIMEOUT', `handler ${name} took longer than ${timeoutMs} ms`)
    // First: what the handler says because of the signal comes too late.
    run.close()
    run.controller.abort(error)
    return { kind: 'threw', error, isInterrupted: false }
  })
  const ended = await Promise.race([work, timeout])
  timer.abort()
  return ended
}

/** It was told to give up because the process stops: that is no failure of its. */
function isStopping(signal: AbortSignal): boolean {
  return signal.aborted && OutboxError.is(signal.reason, 'OUTBOX_STOPPING')
}

function memberOutcome(
  member: Member,
  given: Ended,
  { ack, isShared, teller }: Pick<SubscribeSettings, 'ack'> & { isShared: boolean; teller: Teller },
): Outcome | Promise<Outcome> {
  const { held, followOns, failure } = member
  const decided = member.decision.outcome
  const ended = failure === null ? given : withFailure(given, failure.error)
  // Out of time with one that is never checked to its end: it cannot be acknowledged without.
  if (decided?.kind === 'ack' && !member.isChecked) return outcomeOf(null, ended, { ack, isShared: false })
  if (decided !== null && ended.kind === 'threw') {
    const message = `the handler threw after it had decided: ${decided.kind} stands`
    const fields = ofMessage(held.lease)
    teller.tell({ kind: 'warning', code: 'thrown_after_decision', message, fields, error: ended.error })
  }
  const outcome = outcomeOf(decided, ended, { ack, isShared })
  if (outcome.kind !== 'ack' || followOns.length === 0) return outcome
  return Promise.allSettled(followOns).then((drafts) => withFollowOns(outcome, drafts, ack))
}

async function messageOf(lease: Lease, { rules }: Subscription): Promise<Message> {
  const contentType = lease.headers[contentTypeHeader] ?? null
  const body = await readBody(rules, lease.queue, { bytes: lease.body, contentType })
  return Object.freeze({
    id: lease.id,
    seq: lease.seq,
    queue: lease.queue,
    key: lease.key,
    body,
    headers: lease.headers,
    correlationId: lease.headers[correlationIdHeader] ?? lease.id,
    attempt: lease.attempt,
    deliveries: lease.deliveries,
    createdAt: lease.createdAt,
    generation: lease.generation,
    raw: lease.body,
  })
}
