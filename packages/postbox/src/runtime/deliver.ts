import { type Ended, outcomeOf, refuseFunction, withFailure, withFollowOns } from '../core/decision.ts'
import { OutboxError } from '../core/errors.ts'
import type { Teller } from '../core/events.ts'
import { contentTypeHeader, correlationIdHeader } from '../core/headers.ts'
import type { Lease } from '../core/lease.ts'
import type { Message } from '../core/message.ts'
import { compose, type Delivery, type Middleware } from '../core/middleware.ts'
import { ofMessage } from '../core/of-message.ts'
import type { Outcome } from '../core/outcome.ts'
import { readBodyNow } from '../core/read-body.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import type { SubscribeSettings } from '../core/subscribe-options.ts'
import { isThenable } from '../core/thenable.ts'
import type { Alarms } from './alarms.ts'
import type { Clock } from './clock.ts'
import {
  type CommonContext,
  type ContextTools,
  commonContext,
  contextOfMany,
  contextOfOne,
  deliveryContext,
  Member,
  type Owner,
} from './context.ts'
import type { Held } from './held.ts'
import type { LazyController } from './lazy-controller.ts'
import type { Subscription } from './subscription.ts'

export interface DeliveryTools extends ContextTools {
  readonly clock: Clock
  /** For handlers that are out of time. */
  readonly alarms: Alarms
  readonly teller: Teller
  readonly consumeSkins: readonly NonNullable<Middleware['consume']>[]
}

/**
 * Decodes the bodies, runs the handler once for all that can be read. Whatever is thrown, by either, is the delivery's outcome and
 * never an exception. Resolves with an outcome for each, in their order. What need not be waited for is not: a promise for each of its steps made up half of what
 * a delivery cost.
 */
export async function deliver(
  helds: readonly Held[],
  run: Run,
  tools: DeliveryTools,
): Promise<readonly Outcome[]> {
  const owner = { tools, subscription: run.subscription }
  // Waits in any case: a handler is never run by those who start it, whom it may stop.
  const all = await readAll(helds, owner)
  const read = withoutLate(all, tools.clock.now())
  const members = read.every(isMember) ? read : read.filter(isMember)
  const ended = members.length === 0 ? nothingRan : await runHandler(members, run, owner)
  return outcomesOf(read, refuseFunction(ended), { members, owner })
}

interface Run {
  readonly subscription: Subscription
  readonly controller: LazyController
}

interface DeliveryOwner extends Owner {
  readonly tools: DeliveryTools
}

const nothingRan: Ended = { kind: 'answered' }

type Read = Member | Outcome

/** A promise only if there is something to wait for. */
function readAll(helds: readonly Held[], owner: Owner): readonly Read[] | Promise<readonly Read[]> {
  const read = helds.map((held) => readMember(held, owner))
  return read.some(isThenable) ? Promise.all(read) : (read as Read[])
}

function readMember(held: Held, owner: Owner): Read | Promise<Read> {
  const invalid = (error: unknown): Outcome => ({ kind: 'invalid', error })
  const { lease } = held
  const { rules } = owner.subscription
  try {
    const contentType = lease.headers[contentTypeHeader] ?? null
    const body = readBodyNow(rules, lease.queue, { bytes: lease.body, contentType })
    if (!isThenable(body)) return new Member(held, messageOf(lease, body), owner)
    return Promise.resolve(body).then((read) => new Member(held, messageOf(lease, read), owner), invalid)
  } catch (error) {
    return invalid(error)
  }
}

/**
 * Asked once more, right before the handler is called: a process that was stopped since, or a schema that took its time, has let leases end, and others may have the
 * messages. They are given back.
 */
function withoutLate(read: readonly Read[], now: number): readonly Read[] {
  const isLate = (one: Read): boolean => isMember(one) && (one.held.isLost || now >= one.held.deadline)
  return read.some(isLate) ? read.map((one) => (isLate(one) ? interrupted : one)) : read
}

const interrupted: Outcome = { kind: 'interrupt' }

function isMember(one: Read): one is Member {
  return one instanceof Member
}

/** The handler, within its middleware and its time; what it publishes is checked within that, too. */
function runHandler(members: readonly Member[], run: Run, owner: DeliveryOwner): Promise<Ended> {
  const { timeoutMs } = run.subscription.settings
  const working = work(members, run, owner)
  if (timeoutMs === null) return working
  const { alarms } = owner.tools
  // Out of time: the transaction is told by the signal, and nothing may be written for a message that it has locked.
  return withinTime(working, timeoutMs, { members, run, alarms }).then(async (ended) => {
    if (members.some(hasTransaction)) await transactionsOf(members)
    return ended
  })
}

/** What the handler returned or threw, unless a middleware answered for it. What it has begun is waited for. */
async function work(members: readonly Member[], run: Run, owner: DeliveryOwner): Promise<Ended> {
  const { controller } = run
  const handling = { members, run, owner, context: commonContext(members, controller, owner) }
  let ended: Ended
  try {
    if (owner.tools.consumeSkins.length > 0) ended = await endWithin(owner.tools, handling)
    else ended = returned(await handle(handling), controller)
  } catch (error) {
    ended = { kind: 'threw', error, isInterrupted: isStopping(controller) }
  }
  if (members.some(hasTransaction)) await transactionsOf(members)
  closeAll(members)
  if (members.some(hasFollowOns)) await checksOf(members)
  return ended
}

function checksOf(members: readonly Member[]): Promise<unknown> {
  return Promise.allSettled(members.flatMap(({ followOns }) => followOns))
}

function hasTransaction({ transaction }: Member): boolean {
  return transaction !== null
}

function hasFollowOns({ followOns }: Member): boolean {
  return followOns.length > 0
}

async function transactionsOf(members: readonly Member[]): Promise<void> {
  for (const { transaction } of members) if (transaction !== null) await transaction
}

function closeAll(members: readonly Member[]): void {
  for (const member of members) member.close()
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
  readonly context: CommonContext
}

async function endWithin({ consumeSkins }: DeliveryTools, handling: Handling): Promise<Ended> {
  const { members } = handling
  const { subscription, controller } = handling.run
  const messages = messagesOf(members)
  const context = deliveryContext(handling.context)
  const delivery = { handler: subscription.name, queue: messages[0]?.queue ?? '', messages, context }
  let ended: Ended = nothingRan
  await compose<Delivery, never, void>(consumeSkins, delivery, async () => {
    // With what they may have put there.
    const { log, lease } = context
    ended = returned(await handle({ ...handling, context: { controller: context, log, lease } }), controller)
  })
  return ended
}

function messagesOf(members: readonly Member[]): readonly Message[] {
  return Object.freeze(members.map(({ message }) => message))
}

function returned(value: unknown, controller: LazyController): Ended {
  return { kind: 'returned', value, isInterrupted: isStopping(controller) }
}

/** A handler that is out of time has failed, whether it listens to its signal or not: it must not keep its slot for ever. */
function withinTime(
  work: Promise<Ended>,
  ms: number,
  { members, run: { subscription, controller }, alarms }: Timed,
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const alarm = alarms.set(ms, () => {
      const sentence = `handler ${subscription.name} took longer than ${ms} ms`
      const error = runtimeError('OUTBOX_HANDLER_TIMEOUT', sentence)
      // First: what the handler says because of the signal comes too late.
      closeAll(members)
      controller.abort(error)
      resolve({ kind: 'threw', error, isInterrupted: false })
    })
    work.then((ended) => {
      alarms.clear(alarm)
      resolve(ended)
    }, reject)
  })
}

interface Timed {
  readonly members: readonly Member[]
  readonly run: Run
  readonly alarms: Alarms
}

/** It was told to give up because the process stops: that is no failure of its. */
function isStopping({ isAborted, reason }: LazyController): boolean {
  return isAborted && OutboxError.is(reason, 'OUTBOX_STOPPING')
}

function outcomesOf(
  read: readonly Read[],
  ended: Ended,
  { members, owner }: { readonly members: readonly Member[]; readonly owner: DeliveryOwner },
): readonly Outcome[] | Promise<readonly Outcome[]> {
  const { ack } = owner.subscription.settings
  const rules = { ack, teller: owner.tools.teller, isShared: members.length > 1 }
  const outcomes = read.map((one) => (isMember(one) ? memberOutcome(one, ended, rules) : one))
  return outcomes.some(isThenable) ? Promise.all(outcomes) : (outcomes as Outcome[])
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

function messageOf(lease: Lease, body: unknown): Message {
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
    afterDead: lease.afterDead ?? null,
    createdAt: lease.createdAt,
    generation: lease.generation,
    raw: lease.body,
  })
}
