import { AsyncLocalStorage } from 'node:async_hooks'
import type { Database } from './adapters/executor.ts'
import { recogniseDatabase, recogniseHandle } from './adapters/recognise.ts'
import type { DatabaseLike, OrmLike, PooledDatabase, TransactionLike } from './adapters/transaction-like.ts'
import type { TransactionOf } from './adapters/transaction-of.ts'
import type { BatchOptions } from './core/batch-options.ts'
import { OutboxError } from './core/errors.ts'
import type { BatchContext, Context, Handler, MessageFrom } from './core/handler.ts'
import { type OutboxSettings, type OutboxSettingsInput, resolveOutboxOptions } from './core/outbox-options.ts'
import type { PauseOptions } from './core/pause-options.ts'
import type { PublishOptions } from './core/publish-options.ts'
import type { Bodies, BodiesOf, QueueMap } from './core/queues.ts'
import type { SchemaSqlOptions } from './core/schema-sql-options.ts'
import { outline } from './core/show.ts'
import type { SubscribeOptions } from './core/subscribe-options.ts'
import type { Subscriber } from './core/subscriber.ts'
import { uuidV7 } from './core/uuid.ts'
import { isRecord } from './core/validate.ts'
import type { ValidateSchemaOptions } from './core/validate-schema-options.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { DeliveredMessages } from './delivered.ts'
import type { Inbox } from './inbox.ts'
import type { Keys } from './keys.ts'
import { lazyLifecycle } from './lazy-lifecycle.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { PauseResult, ResumeResult } from './pausing.ts'
import { cancelTimer, pending, publish, publishMany, publishNow } from './publish.ts'
import type { Publisher, ReceiptFor, TransactionPublisher } from './publisher.ts'
import type { Registry } from './runtime/runner.ts'
import type { Stats } from './runtime/stats.ts'
import type { Internals } from './runtime/works.ts'
import type { OutboxParts, Seam } from './seam.ts'
import { resolveNames } from './sql/names.ts'
import type { Store, StoreParts } from './store.ts'
import { type SubscribeArguments, type Subscribing, subscribe, subscribeBatch } from './subscribe.ts'
import type { Publishing } from './write.ts'

export interface OutboxOptions<
  M extends QueueMap = QueueMap,
  D extends DatabaseLike | PooledDatabase = DatabaseLike | PooledDatabase,
  O extends OrmLike = OrmLike,
> extends OutboxSettingsInput<M> {
  /**
   * pg.Pool, postgres.js, PGlite, or your own. The caller owns it: it is never closed. Absent: a publisher only. Behind a pooler in
   * transaction mode `{ pool, listen }`, with a direct connection to listen on: through the pooler nothing is heard, and messages are found by polling.
   */
  readonly database?: D
  /** The database of Drizzle or Kysely, for handlers that write through it. The caller owns it, too. @default `database` */
  readonly orm?: O
}

/** `Tx`: the transaction of the application's client, as handlers get it. */
export interface Outbox<B extends Bodies = Bodies, Tx = unknown> extends TransactionPublisher<B>, Lifecycle {
  /** Publishes in a transaction of its own, for a message that belongs to no other write. */
  publishNow<Q extends keyof B & string, TimerId extends string = never>(
    queue: Q,
    body: B[Q]['in'],
    options?: PublishOptions<TimerId>,
  ): Promise<ReceiptFor<TimerId>>
  /** The same methods, bound to a transaction. */
  in<H>(tx: TransactionLike<H>): Publisher<B>
  /** Runs `work`, within which `outbox.current` publishes in this transaction, however deep the call. */
  within<H, T>(tx: TransactionLike<H>, work: () => Promise<T>): Promise<T>
  /** The publisher of the enclosing `within`. */
  readonly current: Publisher<B>
  /** Runs `handler` for each message of the queue (or queues), in this process, once the outbox is started. */
  subscribe<Q extends keyof B & string>(
    queues: Q | readonly Q[],
    // Not `Handler<Q, B>`, of which the compiler would print the whole map before the message.
    handler: (message: MessageFrom<B, Q>, context: Context<B, Tx>) => unknown,
    options?: SubscribeOptions,
  ): void
  /** The same for what `defineSubscriber` has made: all of a list, or none when one of them is refused. */
  subscribe(subscribers: Subscriber<B, Tx> | readonly Subscriber<B, Tx>[]): void
  /** Runs `handler` for many messages of the queue at once. */
  subscribeBatch<Q extends keyof B & string>(
    queue: Q,
    handler: (messages: readonly MessageFrom<B, Q>[], context: BatchContext<B, Tx>) => unknown,
    options?: BatchOptions,
  ): void
  /** The messages that were given up: to look at, and to replay. */
  readonly deadLetters: DeadLetters
  /** The keys of ordered queues that wait for their first message: to look at, to resume, and to skip. */
  readonly keys: Keys
  /** The messages that were delivered, where they are kept (`delivered: 'table'`): to look at, and to purge. */
  readonly delivered: DeliveredMessages
  /** Which messages were handled already, for consumers that may get one twice: from here, or from a broker. */
  readonly inbox: Inbox
  /** What waits in each queue that is defined or subscribed to. One statement, whose cost does not grow with the queues' lengths. */
  stats(): Promise<Stats>
  /**
   * Stops the delivery of a queue, in every process, until it is resumed: what is claimed from now on is not of it, what was claimed and not
   * started is given back within a second, and handlers that run finish. Publishing goes on, and timers wait. Needs no start, and no subscription.
   */
  pause(queue: keyof B & string, options: PauseOptions): Promise<PauseResult>
  /** Delivers the queue again, what has come or become due meanwhile included: every process that serves it within a second. */
  resume(queue: keyof B & string, options: PauseOptions): Promise<ResumeResult>
  /** Creates or updates the tables. Safe to call from every process at once. */
  migrate(): Promise<void>
  /** The SQL that `migrate` runs on an empty database, for your own migrations. */
  schemaSql(options?: SchemaSqlOptions): Promise<string>
  /**
   * Compares the tables with what this outbox needs: rejects with one error that names every difference, and the SQL that mends it. Columns and
   * indexes of yours are fine. Reads the catalogue and changes nothing: for a check after a deployment, or for CI.
   */
  validateSchema(options?: ValidateSchemaOptions): Promise<void>
}

/** The queues of an outbox: `QueueOf<typeof outbox>`. */
export type QueueOf<O> = O extends Outbox<infer B> ? keyof B & string : never

/** The message that handlers of a queue receive: `MessageOf<typeof outbox, 'orders'>`. */
export type MessageOf<O, Q extends QueueOf<O>> = O extends Outbox<infer B> ? MessageFrom<B, Q> : never

/** A named handler function's type: `const ship: HandlerOf<typeof outbox, 'orders'> = …`. */
export type HandlerOf<O, Q extends QueueOf<O>> =
  O extends Outbox<infer B, infer Tx> ? Handler<Q, B, Tx> : never

/**
 * Makes an outbox. Nothing is connected until something is published or started.
 *
 * @example
 * const outbox = createOutbox({ database: pool, queues: { orders: { body: typed<{ orderId: number }>() } } })
 */
export function createOutbox<
  const M extends QueueMap = QueueMap,
  D extends DatabaseLike | PooledDatabase = DatabaseLike | PooledDatabase,
  O extends OrmLike = OrmLike,
>(options: OutboxOptions<M, D, O> = {}): Outbox<BodiesOf<M>, TransactionOf<[OrmLike] extends [O] ? D : O>> {
  const settings = resolveOutboxOptions(options)
  const seam: Seam = {
    handleOf: recogniseHandle,
    ...databasesOf(options.database),
    opener: openerOf(options.orm, () => seam.database()),
    internals: internalsOf(options),
  }
  const outbox = publishingOf(settings, seam)
  const registry: Registry = { subscriptions: [], onAdded: null }
  const parts: OutboxParts = { settings, outbox, registry, seam }
  const database = (): Database => seam.database()
  const ambient = new AsyncLocalStorage<unknown>()
  const loadLifecycle = async (): Promise<Lifecycle> =>
    (await import('./assemble-lifecycle.ts')).assembleLifecycle(parts)
  const created: Outbox = {
    ...transactionPublisher(outbox),
    publishNow: (async (queue: string, body: unknown, given?: PublishOptions) =>
      publishNow(outbox, database(), { queue, body, options: given })) as Outbox['publishNow'],
    in: (tx) => {
      seam.handleOf(tx)
      return bound(outbox, () => tx)
    },
    within: async (tx, work) => {
      seam.handleOf(tx)
      return ambient.run(tx, work)
    },
    current: bound(outbox, () => ambientOf(ambient)),
    subscribe: (...given: SubscribeArguments) => subscribe(parts, given),
    subscribeBatch: (...given) => subscribeBatch(parts, given),
    ...lazyLifecycle(loadLifecycle),
    ...lazyStore({
      database,
      outbox,
      queues: () => queuesOf(parts),
      deadLetters: settings.deadLetters,
      delivered: settings.delivered,
      internals: () => seam.internals,
    }),
    [internals]: parts,
  } as Outbox
  return Object.freeze(created) as never
}

function publishingOf(settings: OutboxSettings, seam: Seam): Publishing {
  const { queues, codec, maxBodyBytes, generation, source, wake, schema, table } = settings
  const { middleware, onEvent, logger } = settings
  const newId = (): string => uuidV7(Date.now(), crypto.randomUUID())
  const names = resolveNames({ schema, table, ...settings.names })
  const rules = { queues, codec, maxBodyBytes, generation, source, newId }
  const handleOf: Publishing['handleOf'] = (tx) => seam.handleOf(tx)
  return Object.freeze({ ...rules, names, wake, middleware, onEvent, logger, handleOf })
}

function queuesOf({ settings, registry }: Subscribing): readonly string[] {
  const served = registry.subscriptions.flatMap(({ queues }) => queues)
  return [...new Set([...Object.keys(settings.queues ?? {}), ...served])]
}

const letterMethods = [
  'list',
  'get',
  'count',
  'replay',
  'replayAll',
  'resume',
  'operations',
  'discard',
  'purge',
] as const

/** The public face of store.ts, which is loaded at the first call. */
function lazyStore(parts: StoreParts): Store {
  const load = async (): Promise<Store> => (await import('./store.ts')).createStore(parts)
  return {
    deadLetters: lazily(async () => (await load()).deadLetters, letterMethods),
    keys: lazily(async () => (await load()).keys, ['list', 'resume', 'skip']),
    delivered: lazily(async () => (await load()).delivered, ['list', 'get', 'purge']),
    inbox: lazily(async () => (await load()).inbox, ['once', 'purge']),
    ...lazily(load, ['pause', 'resume', 'stats', 'migrate', 'schemaSql', 'validateSchema']),
  }
}

/** The methods of something that is loaded first, at each call: the test kit may have taken its place. */
function lazily<T extends object, Name extends keyof T & string>(
  load: () => Promise<T>,
  names: readonly Name[],
): Pick<T, Name> {
  const methods = names.map((name) => [
    name,
    async (...given: unknown[]) => ((await load())[name] as (...all: unknown[]) => unknown)(...given),
  ])
  return Object.freeze(Object.fromEntries(methods))
}

function transactionPublisher(outbox: Publishing): TransactionPublisher<Bodies> {
  return {
    // biome-ignore lint/complexity/useMaxParams: the public signature, read as a sentence: publish(tx, queue, body, options)
    publish: (tx: unknown, queue: string, body: unknown, options?: PublishOptions) =>
      publish(outbox, tx, { queue, body, options }),
    // biome-ignore lint/complexity/useMaxParams: as above
    publishMany: (tx: unknown, queue: string, bodies: readonly unknown[], options?: PublishOptions) =>
      publishMany(outbox, tx, { queue, bodies, options }),
    cancelTimer: (tx: unknown, queue: string, timerId: string) => cancelTimer(outbox, tx, { queue, timerId }),
    pending: (tx, options) => pending(outbox, tx, options),
  } as TransactionPublisher<Bodies>
}

/** The same methods without their first parameter. It is asked for at each call: `outbox.current` may be kept in a variable. */
function bound(outbox: Publishing, tx: () => unknown): Publisher<Bodies> {
  const methods = Object.entries(transactionPublisher(outbox)).map(([name, method]) => [
    name,
    async (...given: unknown[]) => (method as (...all: unknown[]) => unknown)(tx(), ...given),
  ])
  return Object.fromEntries(methods)
}

function ambientOf(ambient: AsyncLocalStorage<unknown>): unknown {
  const tx = ambient.getStore()
  if (tx !== undefined) return tx
  throw new OutboxError(
    'OUTBOX_NO_AMBIENT_TRANSACTION',
    '`outbox.current` was used outside `outbox.within(tx, work)`',
  )
}

/** The outbox's own database, and where it listens: what was given is checked at once, and asked for when it is needed. */
function databasesOf(given: unknown): { database(): Database; listenDatabase(): Database } {
  // The options of an ORM have a `pool`, too, and a password: whatever has other members is not ours to look into.
  const isPair = isRecord(given) && 'pool' in given && Object.keys(given).every(isOfPair)
  if (!isPair) {
    const database = databaseOf('database', given)
    return { database, listenDatabase: database }
  }
  const database = databaseOf('database.pool', given['pool'] ?? null)
  const listen = given['listen']
  return { database, listenDatabase: listen === undefined ? database : databaseOf('database.listen', listen) }
}

function isOfPair(member: string): boolean {
  return member === 'pool' || member === 'listen'
}

function databaseOf(name: string, given: unknown): () => Database {
  const found = given === undefined ? null : recogniseDatabase(given)
  if (given !== undefined && found === null) {
    const toBe = 'to be a pg.Pool, a postgres.js client, a PGlite, or a plain object { query, transaction }'
    throw invalidClient(name, toBe, given)
  }
  return () => {
    if (found !== null) return found
    throw new OutboxError('OUTBOX_NO_DATABASE', 'this outbox was made without a `database`')
  }
}

/** What opens the transactions of handlers. What an ORM is, is found out at the start: what can tell is not loaded by those who only publish. */
function openerOf(orm: unknown, database: () => Database): Seam['opener'] {
  if (orm !== undefined && !isRecord(orm) && typeof orm !== 'function')
    throw invalidClient('orm', 'to be a database of Drizzle or Kysely', orm)
  return async () =>
    orm === undefined ? database() : (await import('./assemble-lifecycle.ts')).openerOf(orm)
}

function invalidClient(name: string, toBe: string, given: unknown): OutboxError {
  return new OutboxError('OUTBOX_INVALID_OPTION', `expected \`${name}\` ${toBe}, got ${outline(given)}`)
}

/** A clock, failpoints: how our own tests reach inside. Not an option, so nothing else finds it; nor does it find the parts of the outbox. */
function internalsOf(options: object): Internals | undefined {
  return (options as { readonly [internals]?: Internals })[internals]
}

const internals: unique symbol = Symbol.for('postbox.internals') as never
