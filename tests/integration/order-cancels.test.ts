// Ordered queues: a timer is cancelled while it takes its place in its key.
import type pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { joinKeys } from '../../packages/postbox/src/sql/join-keys.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { useBench } from '../support/decisions-bench.ts'
import { eventually } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const names = resolveNames({ schema: database.schema, table: 'outbox' })
const queues = { orders: { order: 'key' } } as const

let [joiner, user]: pg.PoolClient[] = []
beforeEach(async () => {
  joiner = await bench.pool().connect()
  user = await bench.pool().connect()
  await outboxOf({ queues }).publishNow('orders', 1, { key: 'a', timerId: 't', delayMs: 60_000 })
  await database.query(`update outbox set due_at = now() - interval '1 s'`)
  const { text, values } = joinKeys(names, { queues: ['orders'] })
  await joiner.query('begin')
  expect((await joiner.query(text, [...values])).rows).toEqual([{ joined: 1 }])
})
afterEach(async () => {
  for (const client of [joiner, user]) {
    await client?.query('rollback')
    client?.release()
  }
})

const untilWaiting = (): Promise<unknown> =>
  eventually(
    async () =>
      (
        await database.query(`select from pg_locks where not granted
          and pid in (select pid from pg_locks where relation = 'outbox'::regclass)`)
      ).length > 0,
    { what: 'the cancel to wait' },
  )

test.each([
  ['knows the order', { queues }],
  ['has no map of queues', {}],
])('a timer that joins its key is cancelled by who meets it there, who %s', async (_, options) => {
  await user!.query('begin')
  const cancelling = outboxOf(options).cancelTimer(user!, 'orders', 't')
  await untilWaiting()
  await joiner!.query('commit')

  expect(await cancelling).toBe(true)
  await user!.query('commit')
  expect(await messages()).toEqual([])
})

test('a timer that joins its key fails a cancel of repeatable read, and stays', async () => {
  await user!.query('begin isolation level repeatable read')
  const cancelling = outboxOf({ queues }).cancelTimer(user!, 'orders', 't')
  const failure = expect(cancelling).rejects.toMatchObject({ code: '40001' })
  await untilWaiting()
  await joiner!.query('commit')

  await failure
  expect(await messages()).toMatchObject([{ key: 'a', timer_id: 't' }])
})

test('a timer that is not there is looked for once in a queue without order', async () => {
  await joiner!.query('commit')
  await user!.query('begin')
  const sent: string[] = []
  const query = user!.query.bind(user!)
  const spied = Object.assign(Object.create(user!), {
    query: (...args: Parameters<typeof query>) => {
      sent.push(JSON.stringify(args[0]))
      return query(...args)
    },
  })

  expect(await outboxOf({ queues: { mails: {} } }).cancelTimer(spied, 'mails', 'none')).toBe(false)

  expect(sent.filter((text) => text.includes('delete from'))).toHaveLength(1)
})
