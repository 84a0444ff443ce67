import type pg from 'pg'
import { createOutbox, type LogEntry, type SubscribeOptions } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { useDatabase } from '../support/database.ts'
import { type Network, startProxy } from '../support/proxy.ts'
import { type Collector, collector, eventually, signal } from '../support/signals.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

// Nothing is found by polling: what is delivered was announced, or looked for because something had failed.
const useless = { min: 600_000, max: 600_000 }
const heartbeatMs = 30_000
const answerMs = 5_000
// So long is waited for a connection that carries nothing; one that is only slow answers before.
const patienceMs = 2_000

interface TestClock extends Clock {
  /** A heartbeat is due. */
  beat(): void
  readonly isListening: boolean
  /** The subscriber sleeps, and only a notification, a heartbeat or a failure will wake it. */
  readonly isAsleep: boolean
}

/** Time as it is; but a heartbeat comes when the test says so, and its answer has as long as a statement. */
function createTestClock(): TestClock {
  const sleeping = new Set<number>()
  let due = new AbortController()
  return {
    now: systemClock.now,
    async sleep(ms, until) {
      sleeping.add(ms)
      if (ms === heartbeatMs) await systemClock.sleep(ms, AbortSignal.any([until, due.signal]))
      else await systemClock.sleep(ms === answerMs ? patienceMs : ms, until)
      sleeping.delete(ms)
    },
    beat() {
      due.abort()
      due = new AbortController()
    },
    get isListening() {
      return sleeping.has(heartbeatMs)
    },
    get isAsleep() {
      // Less what has passed since the pace was chosen.
      return sleeping.has(heartbeatMs) && [...sleeping].some((ms) => ms > useless.max / 2)
    },
  }
}

interface Stage extends AsyncDisposable {
  /** In front of the connection that works. */
  readonly work: Network
  /** In front of the one that listens. */
  readonly listen: Network
  readonly listenPool: pg.Pool
  readonly clock: TestClock
  readonly log: Collector<LogEntry>
  readonly delivered: Collector<unknown>
  /** A log entry with this text. */
  logged(text: string): Promise<LogEntry>
}

/** An outbox at work, with a network of its own for each of its two connections. */
async function setStage(
  options: SubscribeOptions = {},
  handler: () => Promise<void> = async () => {},
): Promise<Stage> {
  const [work, listen] = await Promise.all([startProxy(database.url), startProxy(database.url)])
  const workPool = database.pool({ connectionString: work.url })
  const listenPool = database.pool({ connectionString: listen.url })
  const clock = createTestClock()
  const log = collector<LogEntry>('log entries')
  const delivered = collector<unknown>('messages')
  const outbox = createOutbox({
    database: { pool: workPool, listen: listenPool },
    schema: database.schema,
    logger: log.add,
    [Symbol.for('postbox.internals')]: { clock, statementTimeoutMs: patienceMs },
  })
  const deliver = async ({ body }: { readonly body: unknown }): Promise<void> => {
    delivered.add(body)
    await handler()
  }
  outbox.subscribe('orders', deliver, { pollMs: useless, ...options })
  await outbox.start()
  return {
    work,
    listen,
    listenPool,
    clock,
    log,
    delivered,
    logged: (text) => log.find(({ message }) => message.includes(text)),
    async [Symbol.asyncDispose]() {
      await outbox.stop()
      // First: the end of a pool waits for connections that are being made, and those that carry nothing never are.
      await Promise.all([work[Symbol.asyncDispose](), listen[Symbol.asyncDispose]()])
      await Promise.all([workPool.end(), listenPool.end()])
    },
  }
}

function publish(body: unknown): Promise<unknown> {
  return createOutbox({ database: pool, schema: database.schema }).publishNow('orders', body)
}

const untilAsleep = ({ clock }: Stage) =>
  eventually(() => clock.isAsleep, { what: 'the subscriber to fall asleep' })

async function untilEmpty(): Promise<void> {
  const isEmpty = async (): Promise<boolean> => (await database.query('select from outbox')).length === 0
  await eventually(isEmpty, { what: 'the messages to be settled' })
}

describe('a connection that ends', () => {
  test('is made anew, the one that works and the one that listens', async () => {
    await using stage = await setStage()
    await untilAsleep(stage)

    stage.work.cut()
    stage.listen.cut()
    await publish('after the cut')

    expect(await stage.delivered.take(1)).toEqual(['after the cut'])
    await stage.logged('listening again')
    await untilEmpty()
  })
})

describe('a connection to work on that carries nothing any more', () => {
  test('is noticed by the deadline of a statement', async () => {
    await using stage = await setStage()
    await untilAsleep(stage)

    stage.work.swallow('everything')
    await publish('into the silence')

    expect(await stage.logged('database failed')).toMatchObject({
      error: { code: 'OUTBOX_STATEMENT_TIMEOUT' },
    })
    expect(await stage.delivered.take(1)).toEqual(['into the silence'])
    await untilEmpty()
  })

  test('is noticed again and again until one carries', async () => {
    await using stage = await setStage()
    await untilAsleep(stage)

    stage.work.swallow('everything')
    stage.work.swallowLater()
    await publish('into the silence')
    await stage.log.find(({ error }) => String(error).includes('connecting took longer'))
    stage.work.letThrough()

    expect(await stage.delivered.take(1)).toEqual(['into the silence'])
    await untilEmpty()
  })

  test('loses the answer of a claim, whose messages are delivered when its lease has ended', async () => {
    await using stage = await setStage({ leaseMs: 2 * patienceMs, pollMs: { min: 20, max: 100 } })
    await eventually(() => stage.clock.isListening, { what: 'the subscriber to listen' })

    stage.work.swallow('answers')
    await publish('claimed by nobody')

    expect(await stage.delivered.take(1)).toEqual(['claimed by nobody'])
    await untilEmpty()
  })

  test('loses the answer of a flush, which is not taken for a lost lease, and nothing is delivered twice', async () => {
    const go = signal('leave to finish')
    await using stage = await setStage({}, () => go.wait())
    await untilAsleep(stage)
    await publish('settled in the silence')
    await stage.delivered.take(1)
    await untilAsleep(stage)

    stage.work.swallow('answers')
    go.send()

    await stage.logged('settled before the connection broke')
    await untilEmpty()
    expect(stage.delivered.all).toEqual(['settled in the silence'])
  })
})

describe('a connection to listen on that carries nothing any more', () => {
  test('is noticed by its heartbeat, and what was announced in the meantime is delivered', async () => {
    await using stage = await setStage()
    await untilAsleep(stage)
    stage.listen.swallow('everything')
    await publish('announced to nobody')
    expect(stage.delivered.all).toEqual([])

    stage.clock.beat()

    expect(await stage.logged('not listening')).toMatchObject({ level: 'warn' })
    expect(await stage.delivered.take(1)).toEqual(['announced to nobody'])
    await stage.logged('listening again')
    await untilEmpty()
  })

  test('is closed at once: a process that ends does not wait for the answer to its farewell', async () => {
    await using stage = await setStage()
    await untilAsleep(stage)
    const closed = signal('the connection to be closed')
    stage.listenPool.on('remove', () => closed.send())

    stage.listen.swallow('everything')
    stage.clock.beat()

    await closed.wait()
  })

  test('is made again and again until one carries', async () => {
    await using stage = await setStage()
    await untilAsleep(stage)

    stage.listen.swallow('everything')
    stage.listen.swallowLater()
    stage.clock.beat()
    await stage.logged('not listening')
    await stage.listen.accepted(2)
    stage.listen.letThrough()

    await stage.logged('listening again')
  })
})
