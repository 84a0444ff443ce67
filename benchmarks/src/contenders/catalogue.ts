/** `tuned`: as its authors tune it, where they publish that; else the best that was found. */
export type Tuning = 'defaults' | 'tuned'

export type Settings = Readonly<Record<string, unknown>>

/** What is known of a contender without loading it. */
export interface Contender {
  readonly name: string
  readonly kind: 'ours' | 'peer' | 'limit'
  /** Its driver in this folder. */
  readonly driver: 'postbox' | 'graphile-worker' | 'pg-boss' | 'bullmq' | 'pg-transactional-outbox' | 'floor'
  readonly defaults: Settings
  readonly tuned: Settings
  /** Where `tuned` comes from. */
  readonly source: string
  /** Gives `count`, of messages that are not done. Zero at the end of each run, or it is not reported. */
  readonly unfinished: string
  /** What it can do in a second, roughly: slow ones are given fewer messages, or nobody would wait for them. */
  readonly pace: Readonly<Record<Tuning, number>>
  /** The same of publishing many. */
  readonly publishPace: number
  /** Its publishers wake its consumers. */
  readonly notifies: boolean
  /** false: its publish cannot be part of the application's transaction. It commits by itself, before or after. */
  readonly isTransactional: boolean
}

const postbox: Contender = {
  name: 'postbox',
  kind: 'ours',
  driver: 'postbox',
  defaults: {},
  tuned: { concurrency: 100 },
  source:
    'README: `concurrency`, for handlers that wait; the rest is measured at run time. With handlers that do nothing 10, 25, 50, 100, 200 and 400 cost the same processor time',
  unfinished: 'select count(*)::int as count from outbox',
  pace: { defaults: 35_000, tuned: 35_000 },
  publishPace: 50_000,
  notifies: true,
  isTransactional: true,
}

const graphileWorker: Contender = {
  name: 'graphile-worker',
  kind: 'peer',
  driver: 'graphile-worker',
  defaults: {},
  tuned: {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
  source: 'https://worker.graphile.org/docs/performance: the preset of its quick stats, as it stands there',
  unfinished: 'select count(*)::int as count from graphile_worker._private_jobs',
  pace: { defaults: 600, tuned: 30_000 },
  publishPace: 40_000,
  notifies: true,
  isTransactional: true,
}

const lean = { supervise: false, schedule: false, registerInstance: false, openTelemetry: { enabled: false } }
const batches = { batchSize: 100, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }

const pgBoss: Contender = {
  name: 'pg-boss',
  kind: 'peer',
  driver: 'pg-boss',
  defaults: {},
  tuned: { instance: lean, queue: { partition: true }, work: { ...batches, localConcurrency: 8 } },
  source:
    'it publishes no tuning. What its docs name for throughput: batches, fetching on while they are full, and the shortest poll (https://pgboss.io/api/workers), a table of its own for a large queue (https://pgboss.io/api/queues); maintenance is off',
  unfinished: `select count(*)::int as count from pgboss.job where state <> 'completed'`,
  // One message every two seconds, unless told otherwise.
  pace: { defaults: 0.5, tuned: 20_000 },
  publishPace: 25_000,
  notifies: false,
  isTransactional: true,
}

const bullmq: Contender = {
  name: 'bullmq',
  kind: 'peer',
  driver: 'bullmq',
  defaults: {},
  tuned: { connection: { max: 32 }, worker: { concurrency: 32, removeOnComplete: { count: 0 } } },
  source:
    'https://docs.bullmq.io/guide/postgresql: "Indicative numbers" (concurrency 8 to 32) and "Tuning tips" (a pool as large as the concurrency, removeOnComplete). Its third tip, synchronous_commit = off, is refused to everybody',
  unfinished: `select count(*)::int as count from bullmq.job where state <> 'completed'`,
  pace: { defaults: 300, tuned: 1_000 },
  publishPace: 15_000,
  notifies: true,
  // A backend takes a connection string or a pool, and no call takes a client.
  isTransactional: false,
}

/**
 * Its polling locks rows that its handlers are about to lock; those fail, wait for `nextMessagesLockInMs` and are given up after some attempts. With larger batches and
 * that protection on, messages are lost.
 */
const pgTransactionalOutbox: Contender = {
  name: 'pg-transactional-outbox',
  kind: 'peer',
  driver: 'pg-transactional-outbox',
  defaults: {},
  tuned: {
    nextMessagesBatchSize: 10,
    nextMessagesPollingIntervalInMs: 10,
    nextMessagesLockInMs: 500,
    enableMaxAttemptsProtection: false,
    enablePoisonousMessageProtection: false,
    message: { concurrency: 'parallel' },
  },
  source:
    'it publishes no tuning. Its settings (https://github.com/Zehelein/pg-transactional-outbox) as fast as they go without losing messages: batches above 10 fail on its own row locks',
  unfinished: 'select count(*)::int as count from public.outbox where processed_at is null',
  pace: { defaults: 8, tuned: 80 },
  publishPace: 3_300,
  notifies: false,
  isTransactional: true,
}

const floor: Contender = {
  name: 'floor',
  kind: 'limit',
  driver: 'floor',
  defaults: {},
  tuned: { batch: 1_000 },
  source: 'no product: the least SQL that could do the job',
  unfinished: 'select count(*)::int as count from floor',
  pace: { defaults: 150_000, tuned: 150_000 },
  publishPace: 90_000,
  notifies: false,
  isTransactional: true,
}

interface Change extends Partial<Pick<Contender, 'source' | 'notifies'>> {
  /** On top of the tuning. */
  readonly tuned?: Settings
  /** Messages a second. */
  readonly pace?: number
}

/** With settings that some scenarios need, or are about. */
function variant(of: Contender, name: string, { tuned = {}, pace, ...change }: Change): Contender {
  return {
    ...of,
    ...change,
    name: `${of.name} ${name}`,
    tuned: { ...of.tuned, ...tuned },
    pace: pace === undefined ? of.pace : { ...of.pace, tuned: pace },
  }
}

const latencyVariants: readonly Contender[] = [
  variant(pgBoss, 'notify', {
    tuned: {
      instance: { ...lean, useListenNotify: true },
      queue: { partition: true, notify: true },
      work: { ...batches, localConcurrency: 1 },
    },
    notifies: true,
    source:
      'https://pgboss.io/api/queues: `notify` wakes workers at once. One worker: a notification wakes all of them, and each asks',
  }),
]

const retryVariants: readonly Contender[] = [
  variant(postbox, 'retrying at once', {
    tuned: { retryAfterMs: 1 },
    pace: 5_000,
    source: 'README: `retry`, here after a millisecond',
  }),
  variant(graphileWorker, 'backing off', {
    pace: 1_500,
    source: 'tuned as above; its waits between attempts are fixed: e¹ = 2.7 s, then e² = 7.4 s',
  }),
  variant(pgBoss, 'job by job', {
    tuned: { work: { ...batches, localConcurrency: 8, perJobResults: true } },
    pace: 2_000,
    source:
      'https://pgboss.io/api/workers: `perJobResults`, without which a batch fails as a whole. Retrying at once, twice, is its default',
  }),
  variant(bullmq, 'retrying at once', {
    tuned: { job: { attempts: 3 } },
    pace: 300,
    source: 'https://docs.bullmq.io/guide/retrying-failing-jobs: `attempts`, without a backoff',
  }),
  variant(pgTransactionalOutbox, 'retrying', {
    pace: 10,
    source: 'tuned as above; a failed message is retried when its lock has run out: `nextMessagesLockInMs`',
  }),
]

const keys = 1_000
const serial = `one at a time within each of ${keys} keys`

const keyedVariants: readonly Contender[] = [
  variant(postbox, 'in order', {
    tuned: { order: 'key', keys },
    source: `docs/guides/ordering.md; ${serial}`,
  }),
  variant(graphileWorker, 'by key', {
    tuned: { keys },
    pace: 100,
    source: `https://worker.graphile.org/docs: jobs of a named queue run in series; ${serial}`,
  }),
  variant(pgBoss, 'by key', {
    tuned: { queue: { partition: true, policy: 'key_strict_fifo' }, keys },
    pace: 500,
    source: `https://pgboss.io/api/queues: the policy key_strict_fifo; ${serial}`,
  }),
  variant(pgTransactionalOutbox, 'by key', {
    tuned: { keys, message: { concurrency: 'sequential' } },
    pace: 40,
    source: `its segments, sequential as by default; ${serial}`,
  }),
]

const queues = 20

const queueVariants: readonly Contender[] = [
  variant(postbox, '20 queues', {
    tuned: { queues, concurrency: 10 },
    source: '20 queues, a subscription of the default concurrency each, one outbox',
  }),
  variant(graphileWorker, '20 queues', { tuned: { queues }, source: '20 task identifiers, one runner' }),
  variant(pgBoss, '20 queues', {
    tuned: { queues, work: { ...batches, localConcurrency: 1 } },
    pace: 10_000,
    source: '20 queues, a worker each, one instance',
  }),
  variant(bullmq, '20 queues', {
    tuned: { queues, connection: { max: 4 }, worker: { concurrency: 4, removeOnComplete: { count: 0 } } },
    source: '20 queues, a worker of concurrency 4 and a pool of 4 each',
  }),
  variant(pgTransactionalOutbox, '20 queues', {
    tuned: { queues },
    source: '20 message types with a handler each, one listener',
  }),
]

const recoveryVariants: readonly Contender[] = [
  variant(postbox, 'short lease', {
    tuned: { leaseMs: 5_000 },
    source: 'README: `leaseMs`. It is renewed while a handler runs, so it may be short',
  }),
  variant(pgBoss, 'heartbeat', {
    tuned: {
      instance: { ...lean, supervise: true, superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 },
      queue: { heartbeatSeconds: 10 },
      work: { batchSize: 100, pollingIntervalSeconds: 0.5 },
    },
    source:
      'https://pgboss.io/api/queues: `heartbeatSeconds`, at its least, looked after every second. Without it a message comes back after `expireInSeconds`, 15 minutes',
  }),
]

const optionVariants: readonly Contender[] = [
  variant(postbox, 'onEvent', { tuned: { onEvent: true }, source: 'with a listener that counts' }),
  variant(postbox, 'zod', {
    tuned: { schema: 'zod' },
    source: 'with a zod object as the schema of the body',
  }),
  variant(postbox, 'keyed', { tuned: { keys }, source: 'with a key on each message, and no order' }),
]

/** Settings are passed on as they stand here, and printed. */
export const contenders: readonly Contender[] = [
  postbox,
  graphileWorker,
  pgBoss,
  bullmq,
  pgTransactionalOutbox,
  floor,
  ...latencyVariants,
  ...retryVariants,
  ...keyedVariants,
  ...queueVariants,
  ...recoveryVariants,
  ...optionVariants,
]

export function contenderNamed(name: string): Contender {
  const found = contenders.find((contender) => contender.name === name)
  if (found === undefined) throw new Error(`there is no contender \`${name}\``)
  return found
}
