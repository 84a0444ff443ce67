// Ordered queues: whom a death is noted on while the next message of the key is in somebody else's hands.
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { discardDead } from '../../packages/postbox/src/sql/discard-dead.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { useBench } from '../support/decisions-bench.ts'
import { eventually } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf } = bench
const names = resolveNames({ schema: database.schema, table: 'outbox' })

let user: pg.PoolClient
beforeEach(async () => {
  user = await bench.pool().connect()
  await user.query('begin')
})
afterEach(async () => {
  await user.query('rollback')
  user.release()
  // Nobody ends the leases that were made up.
  await database.query('delete from outbox')
})

const leased = `gen_random_uuid(), now() + interval '1 minute'`
const put = (key: string, body: string, { timer = 'null', lease = 'null, null' } = {}): Promise<unknown> =>
  database.query(`insert into outbox (id, queue, key, body, timer_id, lease_token, leased_until)
    values (gen_random_uuid(), 'orders', '${key}', '${body}', ${timer}, ${lease})`)

/** The first one of each key is held, the next is a timer that joined, and one lies behind it. */
async function fill(keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    await put(key, 'first', { lease: leased })
    await put(key, 'next', { timer: `'${key}'` })
    await put(key, 'behind')
  }
}
const fences = async (body: string) =>
  (
    await database.query(`select seq::text as seq, lease_token::text as token from outbox
      where convert_from(body, 'utf8') = '${body}' order by seq`)
  ).map((row) => ({ seq: String(row['seq']), token: String(row['token']) }))
/** Which messages of the key say that somebody died. */
const told = async (key: string): Promise<readonly unknown[]> =>
  (
    await database.query(
      `select convert_from(body, 'utf8') as body from outbox where key = '${key}' and after_dead is not null`,
    )
  ).map((row) => row['body'])
const cancel = (key: string): Promise<boolean> => outboxOf().cancelTimer(user, 'orders', key)
const isWaiting = (): Promise<unknown> =>
  eventually(
    async () =>
      (
        await database.query(
          `select from pg_locks where not granted and pid in
            (select pid from pg_locks where relation = 'outbox'::regclass)`,
        )
      ).length > 0,
    { what: 'somebody to wait for a row' },
  )

describe.each([
  ['moved', buryDead],
  ['left where it lies', quarantineDead],
  ['deleted', discardDead],
])('a message that dies and is %s', (_, statement) => {
  const bury = async (): Promise<void> => {
    const burials = (await fences('first')).map((fence) => ({
      ...fence,
      ...{ reason: 'rejected', error: null, attempts: 1, isNoted: true },
    }))
    const { text, values } = statement(names, burials)
    const client = await bench.pool().connect()
    try {
      await client.query(`set lock_timeout = '20s'`)
      expect((await client.query(text, [...values])).rows).toHaveLength(burials.length)
    } finally {
      await client.query('reset lock_timeout')
      client.release()
    }
  }

  test('waits for nobody who cancels the next of its key, and is noted on the one behind it', async () => {
    await fill(['a', 'b'])
    // Both of them: by waiting, it could deadlock with whoever cancels them crosswise.
    expect([await cancel('b'), await cancel('a')]).toEqual([true, true])

    await bury()

    expect([await told('a'), await told('b')]).toEqual([['behind'], ['behind']])
  })

  test('is noted on a timer that is next, and that nobody cancels', async () => {
    await fill(['a', 'b'])
    await cancel('b')

    await bury()

    expect([await told('a'), await told('b')]).toEqual([['next'], ['behind']])
  })

  test('is noted on the next though its lease is being renewed', async () => {
    await put('a', 'first', { lease: leased })
    await put('a', 'next', { lease: leased })
    await put('a', 'behind')
    const [next] = await fences('next')
    const { text, values } = extendLeases(names, [{ ...next!, leaseMs: 60_000 }])
    await user.query(text, [...values])

    const burial = bury()
    await isWaiting()
    await user.query('commit')
    await burial

    expect(await told('a')).toEqual(['next'])
  })
})

describe.each(['skipped', 'discarded'])('a parked message that is %s', (how) => {
  const goOn = async (): Promise<unknown> => {
    const { keys, deadLetters } = outboxOf()
    if (how === 'skipped') return keys.skip('orders', 'a', { by: 'me' })
    const [row] = await database.query('select id from outbox where parked_at is not null')
    return deadLetters.discard(String(row?.['id']), { by: 'me' })
  }

  test.each([
    ['commits', 'commit', 'behind'],
    ['rolls back', 'rollback', 'next'],
  ] as const)(
    'waits for who cancels the next, and if he %s is noted on the one that waits then, which is due',
    async (_, end, next) => {
      await fill(['a'])
      await database.query(`update outbox set failed_at = now(), parked_at = now(), failure_reason = 'rejected',
      due_at = 'infinity', lease_token = null, leased_until = null where convert_from(body, 'utf8') = 'first'`)
      expect(await cancel('a')).toBe(true)

      const decision = goOn()
      await isWaiting()
      await user.query(end)
      await decision

      expect(await told('a')).toEqual([next])
      expect(
        await database.query(`select convert_from(body, 'utf8') as body from outbox where due_at <= now()`),
      ).toEqual([{ body: next }])
    },
  )
})
