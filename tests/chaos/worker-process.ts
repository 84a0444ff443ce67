// A worker: an outbox that records each delivery in a table, and runs into traps. It ends by itself after SIGTERM.
import pg from 'pg'
import { type Context, createOutbox, type LogEntry, type Message, shutdownSignal } from 'postbox'
import { systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { followCommands, readOrder, report } from './child.ts'
import { type Command, killingBody, type WorkerOrder, waitingBody } from './protocol.ts'
import { createTraps } from './traps.ts'

const order = readOrder<WorkerOrder>()
const { leaseMs = 30_000 } = order.options
const startedAt = new Map<string, number>()
const traps = createTraps(order.trap, isRenewing)
const waiting = new Map<string, () => void>()
const finished = new Set<string>()

// A spare connection, made while another breaks, goes after a second: those that are left are the ones in use.
const pool = new pg.Pool({
  ...connectionOf(order.name),
  max: 4,
  idleTimeoutMillis: 1_000,
})
const records = new pg.Pool({ ...connectionOf(`${order.name}-records`), max: 20 })
records.on('error', () => {})

const outbox = createOutbox({
  database: pool,
  schema: order.schema,
  logger: log,
  [Symbol.for('postbox.internals')]: { failpoint: traps, clock: { now: systemClock.now, sleep } },
})
const handler = order.isMortal ? liveOrDie : order.transacts ? deliverOnce : deliver
for (const queue of order.queues) {
  if (order.batchSize === undefined) outbox.subscribe(queue, handler, order.options)
  else
    outbox.subscribeBatch(queue, liveOrDieTogether, { ...order.options, size: order.batchSize, maxWaitMs: 5 })
}

const channel = followCommands(follow)
const shutdown = shutdownSignal('SIGTERM')
await outbox.start()
report({ kind: 'ready' })
await outbox.run({ signal: shutdown })
await Promise.all([pool.end(), records.end()])
channel.leave()

async function deliverOnce(message: Message, { transaction }: Context): Promise<void> {
  await transaction((tx) => record(tx as pg.PoolClient, message))
  report({ kind: 'delivered', id: message.id })
}

function liveOrDie(message: Message): Promise<void> {
  return liveOrDieTogether([message])
}

/** Whoever dies takes those with him that have begun and not ended. */
async function liveOrDieTogether(messages: readonly Message[]): Promise<void> {
  const ids = messages.map(({ id }) => id)
  await records.query('insert into runs (id, worker) select id, $2 from unnest($1::uuid[]) as id', [
    ids,
    process.pid,
  ])
  if (messages.some(({ body }) => body === killingBody)) process.kill(process.pid, 'SIGKILL')
  await new Promise((resolve) => setTimeout(resolve, 10))
  await records.query('update runs set has_ended = true where id = any($1::uuid[]) and worker = $2', [
    ids,
    process.pid,
  ])
}

async function record(client: pg.Pool | pg.PoolClient, { id, deliveries }: Message): Promise<void> {
  await client.query('insert into delivered (id, worker, deliveries) values ($1, $2, $3)', [
    id,
    process.pid,
    deliveries,
  ])
}

async function deliver(message: Message): Promise<void> {
  const { id, body } = message
  startedAt.set(id, performance.now())
  await record(records, message)
  report({ kind: 'delivered', id })
  if (!finished.has(id) && (order.waits || body === waitingBody)) {
    await new Promise<void>((resolve) => waiting.set(id, resolve))
  }
  startedAt.delete(id)
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return systemClock.sleep(Math.min(ms, order.longestSleepMs ?? ms), signal)
}

function isRenewing(): boolean {
  const halfAgo = performance.now() - leaseMs / 2
  return [...startedAt.values()].some((at) => at < halfAgo)
}

function follow(command: Command): void {
  if (command.kind === 'set a trap') traps.set(command.trap)
  if (command.kind === 'go on') traps.goOn()
  if (command.kind !== 'finish') return
  for (const [id, finish] of waiting) {
    finished.add(id)
    finish()
  }
  waiting.clear()
}

function log({ level, message, fields, error }: LogEntry): void {
  const cause = error === undefined ? '' : `: ${String(error)}`
  report({ kind: 'log', level, message: message + cause, id: fields['id'] ?? null })
}

function connectionOf(name: string): pg.PoolConfig {
  const url = new URL(order.url)
  url.searchParams.set('application_name', name)
  return { connectionString: url.href }
}
