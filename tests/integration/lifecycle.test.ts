import { createServer, type Socket } from 'node:net'
import pg from 'pg'
import { constant, createOutbox, type LogEntry, type Message, type Outbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const database = useDatabase()
const pollMs = { min: 5, max: 20 }
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool({ max: 12 })
  await outboxOf().migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

function outboxOf(options: object = {}): Outbox {
  return createOutbox({ database: pool, schema: database.schema, logger: false, ...options })
}

const rows = (): Promise<{ leased: boolean; attempts: number; deliveries: number }[]> =>
  database.query('select lease_token is not null as leased, attempts, deliveries from outbox order by seq')

const fill = (count: number): Promise<unknown> =>
  database.query(
    `insert into outbox (id, queue, body) select gen_random_uuid(), 'orders', '1' from generate_series(1, $1)`,
    [count],
  )

/** A stop does not wait for a connection that is still being opened to listen on: a pool may never give one. */
const allGivenBack = (): Promise<unknown> =>
  eventually(() => pool.totalCount === pool.idleCount, { what: 'the connections to be given back' })

/** A handler that ends when it may. */
function held() {
  const started = collector<unknown>('handlers that started')
  const go = signal('leave to finish')
  const work = async ({ body }: { readonly body: unknown }): Promise<void> => {
    started.add(body)
    await go.wait()
  }
  return { started, go, work }
}

describe('stop', () => {
  test('gives back what was not started at once, while what runs is finished', async () => {
    const outbox = outboxOf()
    const { started, go, work } = held()
    outbox.subscribe('orders', work, { pollMs, concurrency: 2, prefetch: 6 })
    await fill(10)
    await outbox.start()
    await started.take(2)
    await eventually(async () => (await rows()).filter(({ leased }) => leased).length === 8, {
      what: 'leases',
    })

    const stopped = outbox.stop()
    const free = await eventually(
      async () => {
        const unleased = (await rows()).filter(({ leased }) => !leased)
        return unleased.length === 8 && unleased
      },
      { what: 'the rows to be free while the handlers run' },
    )
    go.send()
    await stopped

    expect(free.every(({ deliveries }) => deliveries === 0)).toBe(true)
    expect(started.all.length).toBe(2)
    expect(await rows()).toEqual(free)
    await allGivenBack()
  })

  test('twice is once, and without a start nothing', async () => {
    const log: LogEntry[] = []
    const outbox = outboxOf({ stopTimeoutMs: 0, logger: (entry: LogEntry) => void log.push(entry) })
    await outbox.stop()
    const { started, go, work } = held()
    outbox.subscribe('orders', work, { pollMs })
    await fill(1)
    const running = await outbox.start()
    await started.take(1)

    await Promise.all([outbox.stop(), running.stop(), outbox.stop()])
    await running.stop()
    go.send()

    expect(log.map(({ message }) => message)).toEqual([expect.stringContaining('handlers still run')])
    await eventually(async () => (await rows()).length === 0, { what: 'the late handler to settle' })
    await allGivenBack()
  })

  test('during a start waits for it, and leaves nothing running', async () => {
    const outbox = outboxOf()
    const got: unknown[] = []
    outbox.subscribe('orders', ({ body }) => got.push(body), { pollMs })

    const starting = outbox.start()
    const stopped = outbox.stop()
    const running = await starting
    await stopped
    await fill(1)
    await running.stop()

    expect(outbox.health()).toEqual({ ok: false, reasons: ['it is not running'] })
    expect(got).toEqual([])
    await allGivenBack()
  })

  test('can be followed by a start at once, which begins when it has ended', async () => {
    const outbox = outboxOf()
    const { started, go, work } = held()
    outbox.subscribe('orders', work, { pollMs, concurrency: 1, prefetch: 0 })
    await fill(2)
    await outbox.start()
    await started.take(1)

    const stopped = signal('the stop')
    void outbox.stop().then(stopped.send)
    const starting = outbox.start().then(() => stopped.hasHappened)
    go.send()

    expect(await starting).toBe(true)
    await started.take(2)
    await outbox.stop()
    expect(await rows()).toEqual([])
  })

  test('ends though the database is away, and tells what was not written', async () => {
    const { connections, away } = await ownDatabase()
    const log = collector<LogEntry>('log entries')
    const outbox = createOutbox({ database: connections, logger: log.add, stopTimeoutMs: 0 })
    await outbox.migrate()
    const { started, go, work } = held()
    outbox.subscribe('orders', work, { pollMs })
    await outbox.publishNow('orders', 1)
    await outbox.start()
    await started.take(1)

    await away()
    go.send()
    await log.find(({ event }) => event === 'settle_failed')
    await outbox.stop()

    const entry = await log.find(
      ({ event, fields }) => event === 'settle_failed' && fields['delayMs'] === null,
    )
    expect(entry).toMatchObject({ level: 'error', fields: { queue: 'orders', write: 'delete' } })
  })
})

describe('run', () => {
  test('without a signal works until the outbox is stopped', async () => {
    const outbox = outboxOf()
    const got = signal('the message')
    outbox.subscribe('orders', () => got.send(), { pollMs })
    await fill(1)

    const running = outbox.run()
    await got.wait()
    await outbox.stop()
    await running

    expect(await rows()).toEqual([])
    await allGivenBack()
  })

  test('with a signal that has already aborted does nothing', async () => {
    const outbox = outboxOf()
    outbox.subscribe('orders', () => {}, { pollMs })
    await fill(1)

    await outbox.run({ signal: AbortSignal.abort() })

    expect((await rows()).length).toBe(1)
  })

  test('on a database without the tables fails, and says what to do', async () => {
    const outbox = outboxOf({ table: 'nowhere' })

    await expect(outbox.run()).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_MISSING' })
    expect(outbox.health().ok).toBe(false)
  })
})

describe('drain', () => {
  const nothing = { acked: 0, retried: 0, snoozed: 0, dead: 0, lost: 0 }

  test('of an empty queue ends, and so does one without subscribers', async () => {
    const outbox = outboxOf()
    await fill(1)

    expect(await outbox.drain()).toEqual({ ...nothing, isEmpty: true })
    expect((await rows()).length).toBe(1)
    outbox.subscribe('emails', () => {})
    expect(await outbox.drain()).toEqual({ ...nothing, isEmpty: true })
    expect(outbox.health()).toEqual({ ok: false, reasons: ['it is not running'] })
    await allGivenBack()
  })

  test('delivers what waits and what its handlers publish, in every queue', async () => {
    const outbox = outboxOf()
    const got = collector<number>('follow-on messages')
    const publishMore = async ({ body }: { readonly body: unknown }): Promise<void> => {
      got.add(Number(body))
      if (Number(body) > 0) await outbox.publishNow('emails', Number(body) - 1)
    }
    outbox.subscribe('orders', () => outbox.publishNow('emails', 5))
    outbox.subscribe('emails', publishMore)
    await fill(100)

    expect(await outbox.drain()).toEqual({ ...nothing, acked: 700, isEmpty: true })
    expect(got.all.length).toBe(600)
    expect(await rows()).toEqual([])
  })

  test('waits for what runs, and for what that publishes at its end', async () => {
    const connections = database.pool()
    const statements = watchStatements(connections, database.schema)
    const outbox = outboxOf({ database: connections })
    const { started, go, work } = held()
    const publishLast = async (message: { readonly body: unknown }): Promise<void> => {
      await work(message)
      await outbox.publishNow('emails', 1)
    }
    outbox.subscribe('orders', publishLast, { pollMs })
    outbox.subscribe('emails', () => {}, { pollMs })
    await fill(1)

    const draining = outbox.drain()
    await started.take(1)
    const sweeps = (): number =>
      statements
        .named('claim_messages')
        .filter((sent) => sent.rows && JSON.parse(String(sent.values[0]))[0].sweep).length
    const before = sweeps()
    await eventually(() => sweeps() >= before + 2, { what: 'sweeps that find nothing' })
    go.send()

    expect(await draining).toEqual({ ...nothing, acked: 2, isEmpty: true })
    await connections.end()
  })

  test('does not wait for what failed and was put back for later, nor for timers', async () => {
    const outbox = outboxOf()
    const work = ({ body }: Message): void => {
      if (body === 'bad') throw new Error('not now')
    }
    outbox.subscribe('orders', work, { retry: constant({ delayMs: 3_600_000 }) })
    await fill(3)
    await outbox.publishNow('orders', 'bad')
    await outbox.publishNow('orders', 'timer', { delayMs: 3_600_000 })

    expect(await outbox.drain()).toEqual({ ...nothing, acked: 3, retried: 1, isEmpty: true })
    expect(await rows()).toMatchObject([{ attempts: 1 }, { attempts: 0 }])
  })

  test('with a deadline gives up then, finishes what runs and counts it', async () => {
    const outbox = outboxOf()
    const { started, go, work } = held()
    outbox.subscribe('orders', work, { pollMs, concurrency: 1, prefetch: 0 })
    await fill(2)

    const draining = outbox.drain({ deadlineMs: 4_000 })
    await started.take(1)
    await eventually(() => !outbox.health().ok, { what: 'the deadline' })
    go.send()

    expect(await draining).toEqual({ ...nothing, acked: 1, isEmpty: false })
    expect(await rows()).toMatchObject([{ leased: false }])
  })

  test('of an outbox that runs leaves it running; one that is stopped meanwhile is not empty', async () => {
    const outbox = outboxOf()
    const { started, go, work } = held()
    outbox.subscribe('emails', () => {}, { pollMs })
    await outbox.start()
    await fill(1)

    const drained = await outbox.drain()
    const { ok } = outbox.health()
    outbox.subscribe('orders', work, { pollMs })
    const draining = outbox.drain()
    await started.take(1)
    const stopped = outbox.stop()
    go.send()

    expect(drained).toEqual({ ...nothing, isEmpty: true })
    expect(ok).toBe(true)
    expect(await draining).toMatchObject({ isEmpty: false })
    await stopped
    expect(await rows()).toEqual([])
  })
})

/** A database that can be taken away and given back. */
async function ownDatabase() {
  const name = `${database.schema}_own`
  await database.query(`create database ${name} template template0`)
  const address = new URL(database.url)
  address.pathname = `/${name}`
  const connections = new pg.Pool({ connectionString: address.href, idleTimeoutMillis: 0 })
  connections.on('error', () => {})
  onTestFinished(async () => {
    await connections.end()
    await database.query(`drop database ${name} with (force)`)
  })
  return {
    connections,
    async away() {
      await database.query(`alter database ${name} with allow_connections false`)
      await database.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
        name,
      ])
    },
    back: () => database.query(`alter database ${name} with allow_connections true`),
  }
}

describe('health and ping', () => {
  test('tell whether messages are being delivered, through a start, a loss of the database and a stop', async () => {
    const { connections, away, back } = await ownDatabase()
    const outbox = createOutbox({ database: connections, logger: false })
    await outbox.migrate()
    outbox.subscribe('orders', () => {}, { pollMs })
    const told = async () => ({ ...outbox.health(), ping: await outbox.ping() })
    // One that listens has made both of its connections.
    const isWell = (): boolean => outbox.health().ok && outbox.health().reasons.length === 0
    const untilWell = () => eventually(async () => isWell() && told(), { what: 'an outbox that is well' })

    const before = await told()
    const starting = outbox.start()
    const during = outbox.health()
    await starting
    const running = await untilWell()
    await away()
    const lost = await eventually(async () => !outbox.health().ok && told(), { what: 'claims to fail' })
    await back()
    const again = await untilWell()
    await outbox.stop()
    const after = await told()

    expect(before).toEqual({ ok: false, reasons: ['it is not running'], ping: true })
    expect(during).toEqual({ ok: false, reasons: ['it is starting'] })
    expect(running).toMatchObject({ ok: true, ping: true })
    expect(lost).toMatchObject({ ok: false, ping: false })
    expect(lost.reasons.join()).toMatch(/the last \d+ claims failed/)
    expect(again).toMatchObject({ ok: true, ping: true })
    expect(after).toEqual({ ok: false, reasons: ['it is not running'], ping: false })
  })

  test('say that it is stopping while handlers finish', async () => {
    const outbox = outboxOf()
    const { started, go, work } = held()
    outbox.subscribe('orders', work, { pollMs })
    await fill(1)
    await outbox.start()
    await started.take(1)

    const stopped = outbox.stop()
    const stopping = { ...outbox.health(), ping: await outbox.ping() }
    go.send()
    await stopped

    expect(stopping).toEqual({ ok: false, reasons: ['it is stopping'], ping: false })
  })

  test('ping does not wait longer than it may for a server that says nothing', async () => {
    const sockets: Socket[] = []
    const silent = createServer((socket) => void sockets.push(socket))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const connections = new pg.Pool({ host: '127.0.0.1', port, max: 1 })

    const answered = await outboxOf({ database: connections }).ping({ timeoutMs: 20 })
    for (const socket of sockets) socket.destroy()
    silent.close()
    await connections.end()

    expect(answered).toBe(false)
  })

  test('ping does not wait longer than it may for a pool whose connections are all in use', async () => {
    const connections = database.pool({ max: 1 })
    const outbox = outboxOf({ database: connections })
    const client = await connections.connect()

    const whileBusy = await outbox.ping({ timeoutMs: 20 })
    client.release()

    expect([whileBusy, await outbox.ping()]).toEqual([false, true])
    await connections.end()
  })
})
