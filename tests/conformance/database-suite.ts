import { type Context, constant, createOutbox, type LogEntry, type Message, type Outbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import type { ClientUnderTest } from './clients.ts'
import { testTransactions } from './transaction-suite.ts'

export interface DatabaseSuite {
  /** Opens the client under test; its sessions begin with these settings (`-c name=value`). */
  make(settings: string): Promise<ClientUnderTest>
  /** Asks the database by another way than the client under test. */
  query(text: string): Promise<readonly Record<string, unknown>[]>
  /** Where its outbox lives. */
  readonly schema: () => string
  readonly table: string
  readonly canListen: boolean
  /** Whether the client lets one say which isolation a transaction begins in. */
  readonly saysIsolation: boolean
  /** How many sessions an outbox at work has; null: there is only one, and it is everybody's. */
  readonly sessions: number | null
  /** The client's sessions, and how many advisory locks each holds. */
  look(): Promise<readonly { readonly locks: number }[]>
}

// Nobody polls during a test: what is found was announced.
const never = { min: 3_600_000, max: 3_600_000 }
const often = { min: 5, max: 20 }

/** What an outbox must do on every client's database. */
export function describeDatabase(name: string, suite: DatabaseSuite): void {
  const { canListen, sessions, table } = suite
  const named = (relation: string): string => `"${suite.schema()}"."${relation}"`
  const messages = (): string => named(table)
  const settingsOf = (client: ClientUnderTest) => ({
    database: client.database as never,
    schema: suite.schema(),
    table,
  })
  const open = async (settings = '') => {
    const opened = await suite.make(settings)
    let closing: Promise<void> | null = null
    const close = (): Promise<void> => {
      closing ??= opened.close()
      return closing
    }
    onTestFinished(close)
    const client = { ...opened, close }
    const log = collector<LogEntry>('log entries')
    return { client, log, outbox: createOutbox({ ...settingsOf(client), logger: log.add }) }
  }
  const rows = () =>
    suite.query(`select attempts, lease_token is not null as leased from ${messages()} order by seq`)
  const untilEmpty = (): Promise<unknown> =>
    eventually(async () => (await rows()).length === 0, { what: 'the rows to be deleted' })
  const untilReady = (outbox: Outbox): Promise<unknown> =>
    eventually(() => outbox.health().ok && outbox.health().reasons.length === 0, { what: 'a well outbox' })
  const locks = async (): Promise<number> => (await suite.look()).reduce((sum, one) => sum + one.locks, 0)

  describe(name, () => {
    beforeAll(async () => {
      const client = await suite.make('')
      await createOutbox(settingsOf(client)).migrate()
      await client.close()
    })

    beforeEach(async () => {
      await suite.query(`delete from ${messages()}`)
    })

    test('a message is delivered as it was published, and deleted', async () => {
      const { outbox } = await open()
      const got = collector<Message>('messages')
      outbox.subscribe('orders', (message) => got.add(message), { pollMs: often })
      const body = { orderId: 1, text: 'ä\\x41\n' }
      const headers = { tenant: 'a\\b"c' }
      const receipt = await outbox.publishNow('orders', body, { key: 'k', headers })
      await outbox.publishNow('orders', new Uint8Array([0, 92, 120, 255]))

      await using running = await outbox.start()
      await untilReady(outbox)
      const [first, second] = await got.take(2)
      await running.stop()

      expect(first).toMatchObject({ ...receipt, queue: 'orders', key: 'k', body, headers })
      expect(first).toMatchObject({ attempt: 1, deliveries: 1, generation: null })
      expect(Math.abs(first!.createdAt.getTime() - Date.now())).toBeLessThan(60_000)
      expect([...second!.raw]).toEqual([0, 92, 120, 255])
      expect(await rows()).toEqual([])
    })

    test('a message that failed is put back for later, and run again when that has come', async () => {
      const { outbox, log } = await open()
      const runs = collector<number>('runs')
      const work = ({ attempt }: Message): void => {
        runs.add(attempt)
        if (attempt === 1) throw new Error('not yet')
      }
      outbox.subscribe('orders', work, { pollMs: often, retry: constant({ delayMs: 3_600_000 }) })
      await outbox.publishNow('orders', 1)

      await using _running = await outbox.start()
      await untilReady(outbox)
      await log.find(({ event }) => event === 'retried')
      const waiting = await rows()
      await suite.query(`update ${messages()} set due_at = now() - interval '1 ms'`)
      await runs.take(2)
      await untilEmpty()

      expect(waiting).toEqual([{ attempts: 1, leased: false }])
      expect(runs.all).toEqual([1, 2])
    })

    test('what handlers decide is written, timers keep their names, and what is dead can be replayed', async () => {
      const { outbox, log } = await open()
      const ends = collector<string>('ends')
      const hour = 3_600_000
      let isMended = false
      const work = async ({ body }: Message, context: Context): Promise<void> => {
        if (body === 'retry') context.retry({ afterMs: hour, error: new Error('ä\\') })
        if (body === 'snooze') context.snooze(hour)
        if (body === 'follow')
          await context.publish('emails', { to: 'ü' }, { timerId: 'mail', delayMs: hour })
        if (body === 'poison' && !isMended) context.reject('nö\\')
        ends.add(String(body))
      }
      outbox.subscribe('orders', work, { pollMs: often })
      for (const body of ['retry', 'snooze', 'follow', 'poison'])
        await outbox.publishNow('orders', body, { timerId: body })
      const timers = () =>
        suite.query(`select timer_id, attempts, deliveries, last_error from ${messages()} order by timer_id`)

      await using running = await outbox.start()
      await eventually(async () => (await outbox.deadLetters.count()).count === 1, {
        what: 'the dead letter',
      })
      await eventually(async () => (await timers())[0]?.['timer_id'] === 'mail', { what: 'the follow-on' })
      await eventually(async () => (await rows()).every(({ leased }) => leased === false), {
        what: 'the ends',
      })
      const waiting = await timers()
      const { items } = await outbox.deadLetters.list({ queue: 'orders' })
      isMended = true
      const replayed = await outbox.deadLetters.replay(items[0]?.id ?? '', { by: 'jo' })
      await ends.take(5)
      await eventually(async () => (await rows()).length === 3, { what: 'the replayed one to be done' })
      await running.stop()

      expect(waiting).toEqual([
        { timer_id: 'mail', attempts: 0, deliveries: 0, last_error: null },
        { timer_id: 'retry', attempts: 1, deliveries: 1, last_error: 'Error: ä\\' },
        { timer_id: 'snooze', attempts: 0, deliveries: 0, last_error: null },
      ])
      expect(items).toMatchObject([{ body: 'poison', timerId: 'poison', reason: 'rejected', error: 'nö\\' }])
      expect(replayed).toEqual({ replayed: true, lands: 'anywhere' })
      expect(await outbox.deadLetters.count()).toEqual({ count: 0, atLeast: false })
      // Every answer of the database was understood.
      expect(log.all.filter(({ event }) => event === 'lease_lost')).toEqual([])
    })

    const found = canListen ? 'announced: nobody needs to poll' : 'found by polling, which is said once'
    test(`messages are ${found}`, async () => {
      const { outbox, log } = await open()
      const got = collector<unknown>('messages')
      outbox.subscribe('orders', ({ body }) => got.add(body), { pollMs: canListen ? never : often })
      await using _running = await outbox.start()
      await untilReady(outbox)

      for (let count = 1; count <= 5; count++) {
        await outbox.publishNow('orders', count)
        await got.take(count)
        await untilEmpty()
      }

      const said = { level: 'info', message: expect.stringContaining('found by polling') }
      expect(got.all).toEqual([1, 2, 3, 4, 5])
      expect(log.all).toMatchObject(canListen ? [] : [said])
    })

    test('a stop leaves no lease and no lock behind', async () => {
      const { outbox } = await open()
      const started = signal('the handler to start')
      const go = signal('leave to finish')
      const work = async (): Promise<void> => {
        started.send()
        await go.wait()
      }
      outbox.subscribe('orders', work, { pollMs: often, concurrency: 1, prefetch: 3 })
      outbox.subscribe('emails', () => {}, { pollMs: often })
      for (let count = 0; count < 5; count++) await outbox.publishNow('orders', count)
      await outbox.start()
      await untilReady(outbox)
      await started.wait()
      if (canListen && sessions !== null)
        await eventually(async () => (await locks()) > 0, { what: 'a lock' })

      const stopped = outbox.stop()
      go.send()
      await stopped

      expect(await rows()).toEqual(Array.from({ length: 4 }, () => ({ attempts: 0, leased: false })))
      expect(await locks()).toBe(0)
    })

    test('claims and settles read committed, where the default is repeatable read', async () => {
      const { outbox, client, log } = await open('-c default_transaction_isolation=repeatable\\ read')
      outbox.subscribe('orders', ({ body }) => (body === 'bad' ? Promise.reject(new Error('bad')) : null), {
        pollMs: often,
      })
      await suite.query(`create table ${named('levels')} (operation text, level text)`)
      await suite.query(`create function ${named('note')}() returns trigger language plpgsql as $$ begin
        insert into ${named('levels')} values (tg_op, current_setting('transaction_isolation'));
        return null; end $$`)
      await suite.query(`create trigger note after update or delete on ${messages()} for each statement
        execute function ${named('note')}()`)
      onTestFinished(async () => {
        await suite.query(`drop function ${named('note')} cascade`)
        await suite.query(`drop table ${named('levels')}`)
      })
      const [shown] = await client.query('show default_transaction_isolation')
      for (const body of ['good', 'bad']) await outbox.publishNow('orders', body)

      await using running = await outbox.start()
      await untilReady(outbox)
      await log.find(({ event }) => event === 'retried')
      await running.stop()

      expect(Object.values(shown!)).toEqual(['repeatable read'])
      expect(
        await suite.query(`select distinct operation, level from ${named('levels')} order by 1`),
      ).toEqual([
        { operation: 'DELETE', level: 'read committed' },
        { operation: 'UPDATE', level: 'read committed' },
      ])
      expect(log.all.filter(({ level }) => level === 'error')).toEqual([])
    })

    testTransactions({
      open: async (settings) => {
        const { outbox, client } = await open(settings)
        return { outbox, opener: recogniseDatabase(client.database)!, inside: client.inside }
      },
      query: suite.query,
      messages,
      saysIsolation: suite.saysIsolation,
    })

    if (sessions === null) return

    test(`an outbox of five queues has ${sessions} sessions`, async () => {
      const { outbox } = await open()
      const got = collector<unknown>('messages')
      for (let queue = 0; queue < 5; queue++)
        outbox.subscribe(`queue ${queue}`, ({ body }) => got.add(body), { pollMs: often })
      await suite.query(`insert into ${messages()} (id, queue, body)
        select gen_random_uuid(), 'queue ' || n % 5, n::text::bytea from generate_series(1, 100) as n`)

      await using _running = await outbox.start()
      await untilReady(outbox)
      await got.take(100)
      await untilEmpty()

      expect((await suite.look()).length).toBe(sessions)
    })

    test('a client that is ended right after the outbox leaves no session behind, however short it ran', async () => {
      const { outbox, client } = await open()
      outbox.subscribe('orders', () => {})

      await outbox.start()
      await outbox.stop()
      await client.close()

      await eventually(async () => (await suite.look()).length === 0, { what: 'the sessions to end' })
    })

    if (!canListen) return

    test('a stop that comes while it lies down leaves no lock behind', async () => {
      const { outbox, client } = await open()
      const stopped = signal<Promise<void>>('the stop')
      const sent = client.statements() as string[]
      sent.push = (...texts) => {
        if (texts.some((text) => text.includes('pg_advisory_lock_shared'))) stopped.send(outbox.stop())
        return Array.prototype.push.apply(sent, texts)
      }
      outbox.subscribe('orders', () => {}, { pollMs: never })

      await outbox.start()
      await stopped.wait()

      expect(await locks()).toBe(0)
    })
  })
}
