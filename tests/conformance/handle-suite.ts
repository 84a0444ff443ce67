// biome-ignore-all lint/suspicious/noExplicitAny: the suite does not know whose transaction it has
import { randomUUID } from 'node:crypto'
import { createOutbox, type Outbox, OutboxError, type PendingMessage, typed } from 'postbox'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { collector } from '../support/signals.ts'
import type { ClientUnderTest, Inside } from './clients.ts'
import { describeHandleInbox } from './handle-inbox.ts'

const rolledBack = new Error('rolled back on purpose')

/**
 * What publishing must do through every client's transaction. `make` opens the client; `schema` is where its outbox lives.
 * The handle is typed by its client; here it is `any`, since the suite does not know which one it has.
 */
export function describeHandle(
  name: string,
  make: () => Promise<ClientUnderTest>,
  schema: () => string,
): void {
  describe(name, () => {
    let client: ClientUnderTest
    let outbox: Outbox<{ orders: { in: unknown; out: unknown }; emails: { in: unknown; out: unknown } }>

    beforeAll(async () => {
      client = await make()
      outbox = createOutbox({ ...settings(), logger: false })
      await outbox.migrate()
    })

    beforeEach(async () => {
      await client.query(`delete from "${schema()}"."outbox ${name}"`)
    })

    afterAll(() => client.close())

    const settings = () => ({
      database: client.database as never,
      schema: schema(),
      table: `outbox ${name}`,
      queues: { orders: { body: typed<unknown>() }, emails: {} },
    })

    const waiting = (): Promise<readonly PendingMessage[]> =>
      client.transaction(({ handle }) => outbox.pending(handle as any))

    const bodies = async (): Promise<unknown[]> => (await waiting()).map((message) => message.body)

    /** Statements that the library sent during the work, inside one transaction. */
    async function statementsOf(work: (inside: Inside) => Promise<unknown>): Promise<readonly string[]> {
      return client.transaction(async (inside) => {
        const before = client.statements().length
        await work(inside)
        return client.statements().slice(before)
      })
    }

    test('a committed message waits in the table', async () => {
      const receipt = await client.transaction(({ handle }) =>
        outbox.publish(handle as any, 'orders', { orderId: 1 }),
      )

      const [message] = await waiting()
      expect(message).toMatchObject({
        ...receipt,
        queue: 'orders',
        body: { orderId: 1 },
        attempts: 0,
        inFlight: false,
      })
    })

    test('a rolled back message was never there', async () => {
      const publishing = client.transaction(async ({ handle }) => {
        await outbox.publish(handle as any, 'orders', { orderId: 1 })
        await outbox.publishMany(handle as any, 'orders', [2, 3])
        throw rolledBack
      })

      await expect(publishing).rejects.toBe(rolledBack)
      expect(await waiting()).toEqual([])
    })

    test('a savepoint that is rolled back takes only its own message with it', async () => {
      await client.transaction(async ({ handle, savepoint }) => {
        await outbox.publish(handle as any, 'orders', 'before')
        await savepoint(async (inner) => {
          await outbox.publish(inner.handle as any, 'orders', 'inside')
          throw rolledBack
        })
        await outbox.publish(handle as any, 'orders', 'after')
      })

      expect(await bodies()).toEqual(['before', 'after'])
    })

    test('publish sends exactly one statement', async () => {
      const sent = await statementsOf(({ handle }) => outbox.publish(handle as any, 'orders', { orderId: 1 }))

      expect(
        sent.filter((text) => !text.includes('postbox.transaction') || text.includes('insert into')),
      ).toHaveLength(1)
    })

    test('publishMany sends exactly one statement for 1,000 bodies, and receipts stand in their order', async () => {
      const many = Array.from({ length: 1_000 }, (_, index) => ({ orderId: index }))
      let receipts: readonly { id: string; seq: string }[] = []

      const sent = await statementsOf(async ({ handle }) => {
        receipts = await outbox.publishMany(handle as any, 'orders', many)
      })

      expect(
        sent.filter((text) => !text.includes('postbox.transaction') || text.includes('insert into')),
      ).toHaveLength(1)
      const stored = await waiting()
      expect(stored.map((message) => message.body)).toEqual(many)
      expect(stored.map((message) => message.id)).toEqual(receipts.map((receipt) => receipt.id))
      expect(stored.map((message) => message.seq)).toEqual(receipts.map((receipt) => receipt.seq))
    })

    test.each<[string, unknown]>([
      ['null', null],
      ['false', false],
      ['zero', 0],
      ['an empty string', ''],
      ['an empty object', {}],
      ['a text with every kind of Unicode and a NUL', 'Grüße 🚚 \u2028 日本 \u0000 "quoted" \\ $1'],
      ['a JSON value with a NUL', { text: 'a\u0000b' }],
      ['a nested JSON value', { a: [1, { b: null, c: 'ü' }], d: -0.5e-7 }],
      ['bytes', new Uint8Array([0, 1, 127, 128, 255])],
      ['no bytes', new Uint8Array(0)],
      ['900 KB', { text: 'x'.repeat(900_000) }],
    ])('%s comes back as it was, published alone or in a batch', async (_, body) => {
      await client.transaction(async ({ handle }) => {
        await outbox.publish(handle as any, 'orders', body)
        await outbox.publishMany(handle as any, 'orders', [body])
      })

      const normal = (value: unknown): unknown => (value instanceof Uint8Array ? [...value] : value)
      expect((await bodies()).map(normal)).toEqual([normal(body), normal(body)])
    })

    test('key, headers, correlation id and own id are stored with the message', async () => {
      const id = randomUUID()
      const options = {
        id,
        key: 'Kunde 7\'"',
        headers: { tenant: 'ö', __proto__x: '1' },
        correlationId: 'c-1',
      }
      await client.transaction(async ({ handle }) => {
        await outbox.publish(handle as any, 'orders', 1, options)
        await outbox.publishMany(handle as any, 'orders', [1], { ...options, id: randomUUID() })
      })

      const [alone, batched] = await waiting()
      expect(alone).toMatchObject({ id, key: 'Kunde 7\'"', correlationId: 'c-1' })
      for (const message of [alone, batched]) {
        expect(message?.headers).toEqual({ tenant: 'ö', __proto__x: '1', 'correlation-id': 'c-1' })
      }
    })

    test('a message without headers stores none, and its correlation id is its own id', async () => {
      const { id } = await client.transaction(({ handle }) =>
        outbox.publish(handle as any, 'orders', { orderId: 1 }),
      )

      const stored = await client.query(`select headers is null as bare from "${schema()}"."outbox ${name}"`)
      expect(stored).toEqual([{ bare: true }])
      expect((await waiting())[0]?.correlationId).toBe(id)
    })

    test('a delayed message is due by the database’s clock, one for the past at once', async () => {
      await client.transaction(async ({ handle }) => {
        await outbox.publish(handle as any, 'orders', 'delay', { delayMs: 3_600_000 })
        await outbox.publishMany(handle as any, 'orders', ['delay'], { delayMs: 3_600_000 })
        await outbox.publish(handle as any, 'orders', 'at', { at: new Date('2500-01-01T00:00:00.123Z') })
        await outbox.publish(handle as any, 'orders', 'past', { at: { epochMilliseconds: 0 } })
        await outbox.publish(handle as any, 'orders', 'zero', { delayMs: 0 })
      })

      const due = await client.query(`
        select convert_from(body, 'utf8') as body,
               due_at > now() + interval '59 minutes' and due_at <= clock_timestamp() + interval '60 minutes' as hour,
               due_at = '2500-01-01T00:00:00.123Z' as exact,
               due_at is null as fresh
          from "${schema()}"."outbox ${name}" order by seq`)
      expect(due).toEqual([
        { body: 'delay', hour: true, exact: false, fresh: false },
        { body: 'delay', hour: true, exact: false, fresh: false },
        { body: 'at', hour: false, exact: true, fresh: false },
        { body: 'past', hour: null, exact: null, fresh: true },
        { body: 'zero', hour: null, exact: null, fresh: true },
      ])
    })

    test('a timer that waits is kept, and the second publisher is told by null', async () => {
      const [first, second, other, batch] = await client.transaction(async ({ handle }) => [
        await outbox.publish(handle as any, 'orders', 'first', { timerId: 't', delayMs: 60_000 }),
        await outbox.publish(handle as any, 'orders', 'second', { timerId: 't', delayMs: 1 }),
        await outbox.publish(handle as any, 'emails', 'other queue', { timerId: 't' }),
        await outbox.publishMany(handle as any, 'orders', ['a', 'b', 'c'], (body: unknown) => ({
          timerId: body === 'b' ? 't' : `t-${body}`,
        })),
      ])

      expect(second).toBeNull()
      expect([first, other]).not.toContain(null)
      expect((batch as readonly unknown[]).map((receipt) => receipt !== null)).toEqual([true, false, true])
      expect(await bodies()).toEqual(['first', 'other queue', 'a', 'c'])
    })

    test('a waiting timer can be replaced: body, headers and due time are the new ones, in the old place', async () => {
      const replacement = await client.transaction(async ({ handle }) => {
        await outbox.publish(handle as any, 'orders', 'old', {
          timerId: 't',
          delayMs: 60_000,
          headers: { old: '1' },
        })
        return outbox.publish(handle as any, 'orders', 'new', { timerId: 't', onConflict: 'replace' })
      })

      const [message, ...others] = await waiting()
      expect(others).toEqual([])
      expect(message).toMatchObject({
        id: replacement?.id,
        body: 'new',
        headers: { 'content-type': 'text/plain; charset=utf-8' },
      })
      // Not null: its place in the table lies behind every claimer, where only the due lane looks.
      expect(message?.dueAt).toBeInstanceOf(Date)
    })

    test('a timer that is running is neither replaced nor cancelled', async () => {
      await client.transaction(({ handle }) =>
        outbox.publish(handle as any, 'orders', 'running', { timerId: 't' }),
      )
      const table = `"${schema()}"."outbox ${name}"`
      await client.query(
        `update ${table} set lease_token = gen_random_uuid(), leased_until = now() + interval '1 minute'`,
      )

      const [replaced, cancelled] = await client.transaction(async ({ handle }) => [
        await outbox.publish(handle as any, 'orders', 'new', { timerId: 't', onConflict: 'replace' }),
        await outbox.cancelTimer(handle as any, 'orders', 't'),
      ])

      expect({ replaced, cancelled }).toEqual({ replaced: null, cancelled: false })
      expect(await waiting()).toMatchObject([{ body: 'running', inFlight: true }])
      await client.query(`delete from ${table}`)
    })

    test('cancelTimer deletes a waiting timer once, and only for its queue and name', async () => {
      await client.transaction(async ({ handle }) => {
        await outbox.publish(handle as any, 'orders', 1, { timerId: 't', delayMs: 60_000 })
        await outbox.publish(handle as any, 'emails', 2, { timerId: 't', delayMs: 60_000 })
      })

      const cancelled = await client.transaction(async ({ handle }) => [
        await outbox.cancelTimer(handle as any, 'orders', 'other'),
        await outbox.cancelTimer(handle as any, 'orders', 't'),
        await outbox.cancelTimer(handle as any, 'orders', 't'),
      ])

      expect(cancelled).toEqual([false, true, false])
      expect(await bodies()).toEqual([2])
    })

    test('a cancel that is rolled back leaves the timer', async () => {
      await client.transaction(({ handle }) =>
        outbox.publish(handle as any, 'orders', 1, { timerId: 't', delayMs: 60_000 }),
      )

      const cancelling = client.transaction(async ({ handle }) => {
        await outbox.cancelTimer(handle as any, 'orders', 't')
        throw rolledBack
      })

      await expect(cancelling).rejects.toBe(rolledBack)
      expect(await bodies()).toEqual([1])
    })

    test('pending sees the transaction’s own rows and future ones, by queue and up to its limit', async () => {
      const seen = await client.transaction(async ({ handle }) => {
        await outbox.publish(handle as any, 'orders', 'now')
        await outbox.publish(handle as any, 'orders', 'later', { delayMs: 60_000 })
        await outbox.publish(handle as any, 'emails', 'mail')
        return [
          await outbox.pending(handle as any),
          await outbox.pending(handle as any, { queue: 'orders' }),
          await outbox.pending(handle as any, { limit: 1 }),
        ].map((messages) => messages.map((message) => message.body))
      })

      expect(seen).toEqual([['now', 'later', 'mail'], ['now', 'later'], ['now']])
    })

    test('in, within and current publish in the transaction they were given', async () => {
      const deep = async (): Promise<void> => {
        await outbox.current.publish('orders', 'ambient')
      }
      const result = await client.transaction(async ({ handle }) => {
        await outbox.in(handle as any).publish('orders', 'bound')
        await outbox.in(handle as any).publishMany('orders', ['many'])
        return outbox.within(handle as any, async () => {
          await deep()
          return 'result of the work'
        })
      })

      expect(result).toBe('result of the work')
      expect(await bodies()).toEqual(['bound', 'many', 'ambient'])
      await expect(deep()).rejects.toMatchObject({ code: 'OUTBOX_NO_AMBIENT_TRANSACTION' })
    })

    test('publishNow commits on its own', async () => {
      const receipt = await outbox.publishNow('orders', 'now')

      expect(await waiting()).toMatchObject([{ ...receipt, body: 'now' }])
    })

    test('as database it delivers, puts back what failed and deletes what did not', async () => {
      const got = collector<unknown>('messages')
      const consumer = createOutbox({ ...settings(), logger: ({ message }) => got.add(message) })
      consumer.subscribe('orders', ({ body }) => {
        got.add(body)
        if (body === 'fails') throw new Error('not today')
      })
      await client.transaction(({ handle }) =>
        outbox.publishMany(handle as any, 'orders', ['one', 'fails', new Uint8Array([1])]),
      )

      await consumer.start()
      await got.find((entry) => String(entry).includes('handler failed'))
      await consumer.stop()

      expect(got.all).toEqual(expect.arrayContaining(['one', 'fails']))
      const left = await client.query(
        `select attempts, last_error, due_at > created_at as later, lease_token is null as free
           from "${schema()}"."outbox ${name}"`,
      )
      expect(left).toEqual([{ attempts: 1, last_error: 'Error: not today', later: true, free: true }])
    })

    test('an empty batch sends nothing and returns nothing, but a wrong queue is still refused', async () => {
      const sent = await statementsOf(async ({ handle }) => {
        expect(await outbox.publishMany(handle as any, 'orders', [])).toEqual([])
        await expect(outbox.publishMany(handle as any, 'ordesr' as never, [])).rejects.toMatchObject({
          code: 'OUTBOX_UNKNOWN_QUEUE',
        })
      })

      expect(
        sent.filter((text) => !text.includes('postbox.transaction') || text.includes('insert into')),
      ).toEqual([])
    })

    test('a refusal leaves the transaction usable', async () => {
      await client.transaction(async ({ handle, run }) => {
        const refusal = outbox.publish(handle as any, 'orders', { amount: 1n })

        await expect(refusal).rejects.toSatisfy((error) => OutboxError.is(error, 'OUTBOX_INVALID_BODY'))
        expect(await run('select 1 as one')).toEqual([{ one: 1 }])
        await outbox.publish(handle as any, 'orders', 'still works')
      })

      expect(await bodies()).toEqual(['still works'])
    })

    test('a table that was never made is told, whatever the client wraps around the error of Postgres', async () => {
      const elsewhere = createOutbox({ ...settings(), table: 'never made', logger: false })
      const publishing = client.transaction(({ handle }) => elsewhere.publish(handle as any, 'orders', 1))

      await expect(publishing).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_MISSING' })
    })

    const handled = (): string => `"${schema()}"."outbox ${name}_handled"`
    describe('the inbox', () => describeHandleInbox({ client: () => client, outbox: () => outbox, handled }))

    test('whatever is not a transaction is refused by every method, and nothing is written', async () => {
      for (const { what, handle, says, release } of await client.refused()) {
        const attempts = [
          () => outbox.publish(handle as any, 'orders', 1),
          () => outbox.publishMany(handle as any, 'orders', [1]),
          () => outbox.publishMany(handle as any, 'orders', []),
          () => outbox.cancelTimer(handle as any, 'orders', 't'),
          () => outbox.pending(handle as any),
          () => outbox.inbox.once(handle as any, { consumer: 'billing', id: '1' }, () => 'done'),
          () => outbox.in(handle as any).publish('orders', 1),
          () => outbox.within(handle as any, () => outbox.current.publish('orders', 1)),
        ]
        for (const attempt of attempts) {
          const error = await attempt().then(
            () => null,
            (reason: unknown) => reason,
          )
          expect(error, what).toMatchObject({
            code: 'OUTBOX_NOT_IN_TRANSACTION',
            message: expect.stringContaining(says),
          })
        }
        release()
      }
      expect(await waiting()).toEqual([])
    })
  })
}
