import { randomUUID } from 'node:crypto'
import { mayRun } from '../core/generation.ts'
import { isOrdered } from '../core/queues.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { leaseOf } from '../runtime/claim-answer.ts'
import { heldOf, untilOver } from '../runtime/held.ts'
import { type Registry, type RunnerParts, withHandler } from '../runtime/runner.ts'
import type { Settled } from '../runtime/settle-reports.ts'
import type { Subscription } from '../runtime/subscription.ts'
import { assembleWorks } from '../runtime/works.ts'
import type { MessageRow } from '../sql/claim-messages.ts'
import type { FollowOnInput } from '../sql/delete-with-follow-ons.ts'
import type { Statement } from '../sql/statement.ts'
import { derived } from './derived.ts'
import type { MemoryDatabase, MemoryMessage } from './memory/memory-database.ts'
import type { TestClock } from './test-clock.ts'

/** Delivery without loops: who publishes runs the handlers. All else is what an outbox at work does: lease, handler, settlement, write. */
export interface SyncDelivery {
  /**
   * Runs the handlers of these messages, one run after the other, and of what they lead to. A queue without a subscriber keeps its messages, and
   * so does one of newer messages than this code's.
   */
  deliver(messages: readonly Deliverable[]): Promise<void>
  /** Messages that came to be without a publisher who waits for them, follow-ons above all: they go with the next that are delivered. */
  arrived(messages: readonly MemoryMessage[]): void
  /** It waits for another of its key. */
  isBlocked(message: Deliverable): boolean
  readonly settled: Settled
  /** Ends handlers that are still running: their signals abort. */
  close(): void
}

export type Deliverable = Pick<MemoryMessage, 'seq' | 'queue' | 'key' | 'generation'>

export interface SyncDeliveryParts {
  readonly memory: MemoryDatabase
  readonly clock: TestClock
  readonly registry: Registry
  readonly runner: RunnerParts
}

export function createSyncDelivery({ memory, clock, registry, runner }: SyncDeliveryParts): SyncDelivery {
  const of = (queue: string): Subscription | undefined => subscriptionOf(registry, queue)
  const teller = withHandler(runner.telling, { get: (queue) => of(queue)?.name })
  const halt = new AbortController()
  const phases = { halt: halt.signal, abandon: halt.signal, giveUp: halt.signal, emptyHanded: halt.signal }
  const causes = new Map<string, number>()
  // The store itself, not the outbox's way to it, which would run handlers; and nobody listens.
  const works = assembleWorks(
    { ...runner, database: noting(memory, causes), listenDatabase: memory, wake: 'poll', teller },
    phases,
  )
  void works.keep()
  const arrivals: MemoryMessage[] = []
  const takeArrivals = (isOwn: (message: MemoryMessage) => boolean): readonly MemoryMessage[] => {
    const [own, others] = [arrivals.filter(isOwn), arrivals.filter((message) => !isOwn(message))]
    arrivals.splice(0, arrivals.length, ...others)
    // One that comes again, by a replay or when its queue is resumed, comes of nobody.
    for (const { id } of own) causes.delete(id)
    return own
  }

  const isInOrder = ({ queue, key }: Pick<Deliverable, 'queue' | 'key'>): boolean =>
    key !== null && isOrdered(of(queue)?.rules.queues ?? null, queue)
  const isBlocked: SyncDelivery['isBlocked'] = ({ queue, key, seq }) =>
    isInOrder({ queue, key }) && memory.firstOf(queue, key ?? '')?.seq !== seq
  /** What comes next of its key, when it is gone and that may run. */
  const nextOf = ({ queue, key }: MessageRow): readonly MemoryMessage[] => {
    const next = isInOrder({ queue, key }) ? memory.firstOf(queue, key ?? '') : null
    const isReady = next !== null && next.failedAt === null && (next.dueAt ?? 0) <= clock.now()
    return isReady && next.leaseToken === null ? [next] : []
  }
  const run = async ({ subscription, seqs }: Unit): Promise<readonly MessageRow[]> => {
    const { leaseMs } = subscription.settings
    const claim = { token: randomUUID(), claimedAt: new Date(clock.now()) }
    const rows = memory.lease(seqs, { token: claim.token, leaseMs })
    const helds = rows.map((row) =>
      heldOf(
        leaseOf(row, { ...claim, isOrdered: isInOrder(row), afterDead: row.afterdead }),
        leaseMs,
        clock.now(),
      ),
    )
    if (helds.length === 0) return []
    teller.tell({ kind: 'claimed', queue: helds[0]?.lease.queue ?? '', count: helds.length })
    const over = Promise.all(helds.map(untilOver))
    works.hand.hold(helds)
    // Slots of its own: a handler that publishes to its own queue must not wait for itself.
    works.dispatcher(subscription).take(helds)
    await over
    return rows
  }
  const deliver: SyncDelivery['deliver'] = async (messages) => {
    const uncaused = takeArrivals(({ id }) => !causes.has(id))
    const ours = [...uncaused, ...messages].filter((message) => mayRun(runner.generation, message))
    for (const unit of unitsOf(ours, of)) {
      const isFirst = (seq: number): boolean => !ours.some((one) => one.seq === seq && isBlocked(one))
      const ran = await run({ ...unit, seqs: unit.seqs.filter(isFirst) })
      // Only its own: whoever published the cause of the others waits for them.
      await deliver(takeArrivals(({ id }) => unit.seqs.includes(causes.get(id) ?? 0)))
      await deliver(ran.flatMap(nextOf))
    }
  }
  return {
    deliver,
    isBlocked,
    arrived: (messages) => void arrivals.push(...messages),
    settled: works.settler.settled,
    close: () => halt.abort(runtimeError('OUTBOX_STOPPING', 'the test outbox is disposed')),
  }
}

/** Whoever serves the queue: no two do. */
export function subscriptionOf({ subscriptions }: Registry, queue: string): Subscription | undefined {
  return subscriptions.find(({ queues }) => queues.includes(queue))
}

/** Notes which message each follow-on comes of: handlers that end together are settled together, whoever waits for them. */
function noting(memory: MemoryDatabase, causes: Map<string, number>): MemoryDatabase {
  const run = <Row>(statement: Statement<Row>): Promise<readonly Row[]> => {
    if (statement.name === 'delete_with_follow_ons') {
      const { settled } = statement.input as FollowOnInput
      for (const { seq, followOns } of settled) for (const { id } of followOns) causes.set(id, Number(seq))
    }
    return memory.run(statement)
  }
  return derived<MemoryDatabase>(memory, { run })
}

/** What one run of a handler gets. */
interface Unit {
  readonly subscription: Subscription
  readonly seqs: readonly number[]
}

function unitsOf(
  messages: readonly Deliverable[],
  of: (queue: string) => Subscription | undefined,
): readonly Unit[] {
  const units: { subscription: Subscription; seqs: number[] }[] = []
  for (const { seq, queue } of messages) {
    const subscription = of(queue)
    if (subscription === undefined) continue
    const open = units.findLast((unit) => unit.subscription === subscription)
    if (open !== undefined && open.seqs.length < sizeOf(subscription)) open.seqs.push(seq)
    else units.push({ subscription, seqs: [seq] })
  }
  // Nothing is waited for: what is there is the batch.
  return units.map(({ subscription, seqs }) => ({ subscription: withoutWaiting(subscription), seqs }))
}

function sizeOf({ run }: Subscription): number {
  return run.kind === 'batch' ? run.size : 1
}

function withoutWaiting(subscription: Subscription): Subscription {
  const { run } = subscription
  return run.kind === 'batch' ? { ...subscription, run: { ...run, maxWaitMs: 0 } } : subscription
}
