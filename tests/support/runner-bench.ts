// What an outbox at work is made of, for tests that bring their own database.
import type { Database } from '../../packages/postbox/src/adapters/executor.ts'
import { resolveSubscribeOptions } from '../../packages/postbox/src/core/subscribe-options.ts'
import type { RunnerParts } from '../../packages/postbox/src/runtime/runner.ts'
import type { Subscription } from '../../packages/postbox/src/runtime/subscription.ts'
import { currentVersion } from '../../packages/postbox/src/sql/migrations/index.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { recordedEvents } from './recorded-events.ts'

/** The answer to `read_applied_steps` where the schema is as this build wants it. */
export const appliedSteps = [{ version: `${currentVersion}`, breaking: 'false' }]

/** `ship` serves `orders`, with the defaults, unless told otherwise. */
export function subscriptionOf(given: Partial<Subscription> = {}): Subscription {
  return {
    queues: ['orders'],
    name: 'ship',
    run: { kind: 'each', handler: () => {} },
    settings: resolveSubscribeOptions(undefined),
    rules: { queues: null, codec: undefined, maxBodyBytes: 1_000 },
    ...given,
  }
}

/** An outbox that polls and tells nobody, unless told otherwise. No handler publishes. */
export function runnerParts(database: Database, given: Partial<RunnerParts> = {}): RunnerParts {
  return {
    database,
    listenDatabase: database,
    names: resolveNames({ schema: 'public', table: 'outbox' }),
    queues: null,
    wake: 'poll',
    stopTimeoutMs: 1_000,
    deadLetters: 'table',
    delivered: 'delete',
    generation: null,
    describeError: undefined,
    middleware: [],
    draft: () => Promise.resolve(null),
    open: async () => database,
    log: () => {},
    telling: recordedEvents().teller,
    ...given,
  }
}

/** The row of a claim's answer that tells of the queue. */
export function claimedQueue(queue: string): object {
  const transaction = { own: '10', snapshot: '11:11:', top: '0', now: '0' }
  return { kind: 'queue', queue, ...transaction, nextdue: null, lowest: null, pause: null }
}

/** The row of a claim's answer for a message whose body is its seq. */
export function claimedMessage(queue: string, seq: string): object {
  const fixed = { kind: 'message', attempts: '0', deliveries: '1', suspect: 'false', created: '0' }
  const none = { key: null, timer: null, headers: null, first: null, generation: null, due: null }
  return { ...fixed, ...none, queue, id: `id-${seq}`, seq, body: Buffer.from(seq).toString('base64') }
}
