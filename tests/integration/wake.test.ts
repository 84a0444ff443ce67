import { startPostgres } from '@postbox/embedded'
import pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { openPGlite } from '../support/pglite.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const database = useDatabase()
const queues = { orders: {}, emails: {} }
let pool: pg.Pool
let channel: string

beforeAll(async () => {
  pool = database.pool({ max: 20 })
  channel = `postbox:${database.schema}.outbox`
  await outboxWith('quiet').migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

function outboxWith(wake: 'quiet' | 'always' | 'poll') {
  return createOutbox({ database: pool, schema: database.schema, queues, wake, logger: false })
}

/** A subscriber's listening connection, as far as publishers can see it: LISTEN, and the locks of the protocol. */
async function listener() {
  let ends = 0
  const client = await database.client()
  const heard = collector<string>('notifications')
  client.on('notification', ({ payload }) => heard.add(payload ?? ''))
  await client.query(`listen "${channel}"`)
  const key = (role: string, queue: string): string =>
    `hashtextextended('${channel} ${role} ' || '${queue}', 0)`
  return {
    heard,
    /** "Somebody sleeps." */
    layDown: (queue: string) => client.query(`select pg_advisory_lock_shared(${key('sleepers', queue)})`),
    wakeUp: (queue: string) => client.query(`select pg_advisory_unlock_shared(${key('sleepers', queue)})`),
    /** Whether no publisher is between its statement and its commit. */
    async nobodyPublishes(queue: string): Promise<boolean> {
      const { rows } = await client.query(
        `select case when pg_try_advisory_lock(${key('publishers', queue)}) then pg_advisory_unlock(${key('publishers', queue)}) else false end as free`,
      )
      return rows[0].free
    },
    holdPublishers: (queue: string) => client.query(`select pg_advisory_lock(${key('publishers', queue)})`),
    releasePublishers: (queue: string) =>
      client.query(`select pg_advisory_unlock(${key('publishers', queue)})`),
    /** Everything heard so far: a notification of our own comes after all that were committed before it. */
    async all(): Promise<readonly string[]> {
      const end = `end ${++ends}`
      await pool.query('select pg_notify($1, $2)', [channel, end])
      await heard.find((payload) => payload === end)
      return heard.all.filter((payload) => !payload.startsWith('end'))
    },
    end: () => client.end(),
  }
}

type Way = (outbox: ReturnType<typeof outboxWith>, tx: pg.PoolClient) => Promise<unknown>

const ways: readonly (readonly [string, Way])[] = [
  ['one message', (outbox, tx) => outbox.publish(tx, 'orders', 1)],
  ['many', (outbox, tx) => outbox.publishMany(tx, 'orders', [1, 2, 3])],
]

describe('a quiet publisher', () => {
  test('says nothing while nobody sleeps', async () => {
    const ear = await listener()

    await inTransaction(pool, (tx) => outboxWith('quiet').publish(tx, 'orders', 1))

    expect(await ear.all()).toEqual([])
    await ear.end()
  })

  test('wakes a sleeper, once per statement and for its own queue', async () => {
    const ear = await listener()
    await ear.layDown('orders')

    await inTransaction(pool, (tx) => outboxWith('quiet').publish(tx, 'orders', 1))
    await inTransaction(pool, (tx) => outboxWith('quiet').publishMany(tx, 'orders', [1, 2, 3]))
    await inTransaction(pool, (tx) => outboxWith('quiet').publish(tx, 'emails', 1))

    expect(await ear.all()).toEqual(['orders', 'orders'])
    await ear.end()
  })

  test('that publishes several times in a transaction is heard once: Postgres folds equal notifications', async () => {
    const ear = await listener()
    await ear.layDown('orders')
    await ear.layDown('emails')
    const outbox = outboxWith('quiet')

    await inTransaction(pool, async (tx) => {
      for (let count = 0; count < 5; count++) await outbox.publish(tx, 'orders', count)
      await outbox.publishMany(tx, 'orders', [1, 2])
      await outbox.publish(tx, 'emails', 1)
    })

    expect([...(await ear.all())].sort()).toEqual(['emails', 'orders'])
    await ear.end()
  })

  test.each(ways)('of %s is seen by whoever wants to lie down, until it commits', async (_, publish) => {
    const ear = await listener()
    const free: boolean[] = []

    await inTransaction(pool, async (tx) => {
      free.push(await ear.nobodyPublishes('orders'))
      await publish(outboxWith('quiet'), tx)
      free.push(await ear.nobodyPublishes('orders'), await ear.nobodyPublishes('emails'))
    })

    free.push(await ear.nobodyPublishes('orders'))
    expect(free).toEqual([true, false, true, true])
    await ear.end()
  })

  test.each(ways)(
    'of %s notifies when somebody checks for publishers at that very moment',
    async (_, publish) => {
      const ear = await listener()
      await ear.holdPublishers('orders')

      await inTransaction(pool, (tx) => publish(outboxWith('quiet'), tx))

      expect(await ear.all()).toEqual(['orders'])
      await ear.releasePublishers('orders')
      await ear.end()
    },
  )

  test('whose savepoint was rolled back wakes the sleeper by its next message', async () => {
    const ear = await listener()
    await ear.layDown('orders')
    const outbox = outboxWith('quiet')

    await inTransaction(pool, async (tx) => {
      await tx.query('savepoint a')
      await outbox.publish(tx, 'orders', 'vanishes')
      await tx.query('rollback to a')
      await outbox.publish(tx, 'orders', 'stays')
    })

    expect(await ear.all()).toEqual(['orders'])
    await ear.end()
  })

  test('that rolls back wakes nobody', async () => {
    const ear = await listener()
    await ear.layDown('orders')
    const client = await pool.connect()

    await client.query('begin')
    await outboxWith('quiet').publish(client, 'orders', 1)
    await client.query('rollback')
    client.release()

    expect(await ear.all()).toEqual([])
    await ear.end()
  })

  test('announces what is due soon, not what is due later', async () => {
    const ear = await listener()
    await ear.layDown('orders')
    const outbox = outboxWith('quiet')
    const published: string[] = []
    const publish = async (label: string, options: object): Promise<void> => {
      await inTransaction(pool, (tx) => outbox.publish(tx, 'orders', label, options))
      published.push(`${label}: ${(await ear.all()).length}`)
    }

    await publish('an hour later', { delayMs: 3_600_000 })
    await publish('next year', { at: new Date(Date.now() + 31_536_000_000) })
    await publish('two seconds later', { delayMs: 2_000 })
    await publish('long ago', { at: new Date(0) })
    await publish('now', { delayMs: 0 })

    expect(published).toEqual([
      'an hour later: 0',
      'next year: 0',
      'two seconds later: 1',
      'long ago: 2',
      'now: 3',
    ])
    await ear.end()
  })

  test('that meets a waiting timer wakes nobody', async () => {
    const ear = await listener()
    const outbox = outboxWith('quiet')
    await inTransaction(pool, (tx) => outbox.publish(tx, 'orders', 1, { timerId: 't' }))
    await ear.layDown('orders')

    await inTransaction(pool, (tx) => outbox.publish(tx, 'orders', 2, { timerId: 't' }))

    expect(await ear.all()).toEqual([])
    await ear.end()
  })

  test('leaves no lock behind', async () => {
    await inTransaction(pool, (tx) => outboxWith('quiet').publish(tx, 'orders', 1))

    const held = await database.query(
      `select count(*)::int as locks from pg_locks l join pg_stat_activity a using (pid)
        where l.locktype = 'advisory' and starts_with(a.application_name, $1)`,
      [database.applicationName],
    )
    expect(held).toEqual([{ locks: 0 }])
  })

  test('never lets a sleeper miss a message: each is taken though nobody polls', async () => {
    const outbox = outboxWith('quiet')
    const ear = await listener()
    const taken = collector<number>('messages taken')
    const asleep = collector<number>('sleeps')
    let published = 0
    const sweep = async (): Promise<number> => {
      const { rowCount } = await pool.query(`delete from ${database.schema}.outbox`)
      for (let row = 0; row < (rowCount ?? 0); row++) taken.add(1)
      return rowCount ?? 0
    }
    // The sleeper of the protocol: raise F, wait until P is free for a moment, sweep, sleep until notified.
    const sleeper = async (): Promise<void> => {
      while (!ear.heard.all.includes('end')) {
        await ear.layDown('orders')
        await eventually(() => ear.nobodyPublishes('orders'), { what: 'every quiet publisher to finish' })
        const heardBefore = ear.heard.all.length
        if ((await sweep()) === 0) {
          asleep.add(1)
          await ear.heard.take(heardBefore + 1)
        }
        await ear.wakeUp('orders')
        await sweep()
      }
    }
    // A publisher waits for its message to be taken: nothing else would wake the sleeper again.
    const publisher = async (name: number): Promise<void> => {
      for (let round = 0; round < 40; round++) {
        await inTransaction(pool, async (tx) => {
          if ((round + name) % 3 === 0) {
            await tx.query('savepoint a')
            await outbox.publish(tx, 'orders', 'vanishes')
            await tx.query('rollback to a')
          }
          await outbox.publish(tx, 'orders', round)
        })
        published++
        await taken.take(published)
      }
    }

    const sleeping = sleeper()
    await Promise.all([1, 2, 3].map(publisher))
    await asleep.take(asleep.all.length + 1)
    await pool.query('select pg_notify($1, $2)', [channel, 'end'])
    await sleeping

    expect({ published, taken: taken.all.length }).toEqual({ published: 120, taken: 120 })
    expect(asleep.all.length).toBeGreaterThan(0)
    await ear.end()
  })
})

test('an always publisher notifies though nobody sleeps', async () => {
  const ear = await listener()

  await inTransaction(pool, (tx) => outboxWith('always').publish(tx, 'orders', 1))

  expect(await ear.all()).toEqual(['orders'])
  await ear.end()
})

test('a polling outbox never notifies and takes no lock', async () => {
  const ear = await listener()
  await ear.layDown('orders')

  await inTransaction(pool, async (tx) => {
    await outboxWith('poll').publish(tx, 'orders', 1)
    await outboxWith('poll').publishMany(tx, 'orders', [1])
    expect(await ear.nobodyPublishes('orders')).toBe(true)
  })

  expect(await ear.all()).toEqual([])
  await ear.end()
})

test('a publisher on PGlite always notifies: its one session cannot see its own locks', async () => {
  const db = await openPGlite()
  const heard = signal<string>('the notification')
  const outbox = createOutbox({ database: db, queues })
  await outbox.migrate()
  await db.listen('"postbox:public.outbox"', heard.send)

  await db.transaction((tx) => outbox.publish(tx, 'orders', 1))

  expect(await heard.wait()).toBe('orders')
  await db.close()
})

test('a notification queue that is half full silences publishers instead of failing their commits', async () => {
  // A queue that fills in a moment can be had from 17 on, so this server is always the embedded one.
  await using postgres = await startPostgres({ settings: { max_notify_queue_pages: '64', fsync: 'off' } })
  const connections = new pg.Pool({ connectionString: postgres.url, idleTimeoutMillis: 0 })
  // The end of a pool does not wait for its sockets to close, and the server stops right after it.
  connections.on('error', () => {})
  const outbox = createOutbox({ database: connections, queues, wake: 'always', logger: false })
  await outbox.migrate()
  // A listener in a transaction keeps everything that was sent since.
  const stuck = await connections.connect()
  await stuck.query('listen "postbox:public.outbox"')
  await stuck.query('begin')
  await stuck.query('select 1')
  const usage = async (): Promise<number> =>
    (await connections.query('select pg_notification_queue_usage() as usage')).rows[0].usage
  for (let sent = 0; (await usage()) < 0.5; sent++) {
    await connections.query(`select pg_notify('filler', repeat('x', 7000) || $1)`, [sent])
  }
  const before = await usage()

  for (let count = 0; count < 300; count++) await outbox.publishNow('orders', count)

  expect(await usage()).toBe(before)
  expect((await connections.query('select count(*)::int as messages from outbox')).rows).toEqual([
    { messages: 300 },
  ])
  await stuck.query('rollback')
  stuck.release()
  await connections.end()
})
