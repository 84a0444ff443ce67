// A consumer that writes down each run of its handler, on connections of its own. It ends by itself after SIGTERM.
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { type Context, createOutbox, type LogEntry, type Message, shutdownSignal } from 'postbox'
import { followCommands, readOrder, report } from '../chaos/child.ts'
import { createRandom } from '../chaos/random.ts'
import { type ConsumerOrder, type OrderBody, orderedQueue } from './consumer-order.ts'
import type { RunOutcome } from './history.ts'
import { randomKey } from './random-key.ts'

const order = readOrder<ConsumerOrder>()
const { concurrency = 10, leaseMs = 30_000 } = order.options
const random = createRandom(order.seed)
const connection = { connectionString: order.url, application_name: order.name }
// The outbox keeps two; a handler may have one for its transaction.
const pool = new pg.Pool({ ...connection, max: concurrency + 2 })
const records = new pg.Pool({ ...connection, max: concurrency })
let runs = 0

const outbox = createOutbox({ database: pool, schema: order.schema, queues: order.queues, logger: log })
outbox.subscribe(orderedQueue, handle, {
  ...order.options,
  retry: () => order.retryMs,
})
const channel = followCommands(() => {})
await outbox.start()
report({ kind: 'ready' })
await outbox.run({ signal: shutdownSignal('SIGTERM') })
await Promise.all([pool.end(), records.end()])
channel.leave()

async function handle(message: Message, context: Context): Promise<void> {
  const calledMs = Date.now()
  const run = ++runs
  await records.query(
    `insert into ${order.schema}.history (what, process, run, message, deliveries, called_ms) values ('started', $1, $2, $3, $4, $5)`,
    [order.name, run, message.id, message.deliveries, calledMs],
  )
  try {
    await ended(run, await behave(message, context))
  } catch (error) {
    await ended(run, 'failed')
    throw error
  }
}

async function ended(run: number, outcome: RunOutcome): Promise<void> {
  await records.query(
    `insert into ${order.schema}.history (what, process, run, outcome) values ('ended', $1, $2, $3)`,
    [order.name, run, outcome],
  )
}

/** What happens is drawn before anything is awaited: the order of the draws is that of the calls. */
async function behave(message: Message, context: Context): Promise<RunOutcome> {
  const { fails, snoozes, isSlow, transacts, followsOn } = order.chances
  const { isFollowOn } = message.body as OrderBody
  const takesMs = random.isBelow(isSlow) ? leaseMs * 1.2 : random.below(8)
  const key = !isFollowOn && random.isBelow(followsOn) ? randomKey(random, order.keys) : null
  const ending = random.isBelow(fails) ? 'failed' : random.isBelow(snoozes) ? 'snoozed' : 'done'
  const work = async (): Promise<RunOutcome> => {
    if (takesMs > 0) await wait(takesMs)
    if (key !== null) await context.publish(orderedQueue, { isFollowOn: true }, { key })
    if (ending === 'failed') throw new Error('by chance')
    if (ending === 'snoozed') context.snooze(order.retryMs)
    return ending
  }
  return random.isBelow(transacts) ? context.transaction(work) : work()
}

function log({ level, message, error }: LogEntry): void {
  if (level === 'error') report({ kind: 'log', level, message: `${message}: ${String(error)}`, id: null })
}
