import { readBody } from '../core/body.ts'
import { type Ended, outcomeOf, refuseFunction, withFollowOns } from '../core/decision.ts'
import { OutboxError } from '../core/errors.ts'
import type { Teller } from '../core/events.ts'
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
  createMember,
  type Member,
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
  run: { readonly subscription: Subscription; readonly controller: AbortController },
  tools: DeliveryTools,
): Promise<readonly Outcome[]> {
  const read = await Promise.all(helds.map((held) => readMember(held, run.subscription, tools)))
  const members = read.filter((one): one is Member => 'message' in one)
  const ended = members.length === 0 ? nothingRan : await runHandler(members, run, tools)
  const { ack } = run.subscription.settings
  return Promise.all(
    read.map((one) =>
      'message' in one
        ? memberOutcome(one, ended, { ack, teller: tools.teller, isShared: members.length > 1 })
        : one,
    ),
  )
}

const nothingRan: Ended = { kind: 'answered' }

async function readMember(
  held: Held,
  subscription: Subscription,
  tools: DeliveryTools,
): Promise<Member | Outcome> {
  try {
    return createMember(held, await messageOf(held.lease, subscription), { tools, subscription })
  } catch (error) {
    return { kind: 'invalid', error }
  }
}

/** The handler, within its middleware and its time; what it publishes is checked within that, too. */
async function runHandler(
  members: readonly Member[],
  { subscription, controller }: { readonly subscription: Subscription; readonly controller: AbortController },
  tools: DeliveryTools,
): Promise<Ended> {
  const { signal } = controller
  const context = commonContext(
    members.map(({ held }) => held),
    signal,
    { tools, subscription },
  )
  const messages = Object.freeze(members.map(({ message }) => message))
  const delivery = { handler: subscription.name, queue: messages[0]?.queue ?? '', messages, context }
  const handle = async (): Promise<unknown> => {
    const [first] = members
    if (subscription.run.kind === 'batch')
      return subscription.run.handler(messages, contextOfMany(members, context))
    return first === undefined
      ? undefined
      : subscription.run.handler(first.message, contextOfOne(first, context))
  }
  const close = (): void => members.forEach((member) => void member.close())
  const work = async (): Promise<Ended> => {
    const ended = await within(tools, delivery, handle).catch(
      (error): Ended => ({ kind: 'threw', error, isInterrupted: isStopping(signal) }),
    )
    close()
    await Promise.allSettled(members.flatMap(({ followOns }) => followOns))
    return ended
  }
  return refuseFunction(await withinTime(work(), { subscription, controller, close }, tools.clock))
}

/** Inside the middleware: with what the handler returned, unless one of them answered for it. */
async function within(
  { consumeSkins }: DeliveryTools,
  delivery: Delivery,
  handle: () => Promise<unknown>,
): Promise<Ended> {
  if (consumeSkins.length === 0) return returned(await handle(), delivery)
  let ended: Ended = { kind: 'answered' }
  await compose<Delivery, never, void>(consumeSkins, delivery, async () => {
    ended = returned(await handle(), delivery)
  })
  return ended
}

function returned(value: unknown, { context }: Delivery): Ended {
  return { kind: 'returned', value, isInterrupted: isStopping(context.signal) }
}

/** A handler that is out of time has failed, whether it listens to its signal or not: it must not keep its slot for ever. */
async function withinTime(
  work: Promise<Ended>,
  run: { readonly subscription: Subscription; readonly controller: AbortController; close(): void },
  clock: Clock,
): Promise<Ended> {
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
function isStopping({ aborted, reason }: AbortSignal): boolean {
  return aborted && OutboxError.is(reason, 'OUTBOX_STOPPING')
}

async function memberOutcome(
  { held, decision, followOns, isChecked }: Member,
  ended: Ended,
  { ack, isShared, teller }: Pick<SubscribeSettings, 'ack'> & { isShared: boolean; teller: Teller },
): Promise<Outcome> {
  const decided = decision.outcome
  // Out of time with one that is never checked to its end: it cannot be acknowledged without.
  if (decided?.kind === 'ack' && !isChecked()) return outcomeOf(null, ended, { ack, isShared: false })
  if (decided !== null && ended.kind === 'threw') {
    const message = `the handler threw after it had decided: ${decided.kind} stands`
    const fields = ofMessage(held.lease)
    teller.tell({ kind: 'warning', code: 'thrown_after_decision', message, fields, error: ended.error })
  }
  const outcome = outcomeOf(decided, ended, { ack, isShared })
  if (outcome.kind !== 'ack') return outcome
  return withFollowOns(outcome, await Promise.allSettled(followOns), ack)
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
