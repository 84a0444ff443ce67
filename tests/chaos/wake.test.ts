import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { useDatabase } from '../support/database.ts'
import { longTestLimitMs } from '../support/patience.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { createDeliveredTable } from './ledger.ts'
import { usePrograms } from './processes.ts'
import { pollMs, publishToSleepers } from './wake-rounds.ts'

const database = useDatabase()
const programs = usePrograms()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
  await createDeliveredTable(database)
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

test('a publisher that was quiet, and commits after a sleeper lay down, is found though nobody polls', async () => {
  const delivered = signal<unknown>('the message')
  const publisher = await database.client()
  let rests = 0
  const commitAtFifthRest = async (name: string): Promise<void> => {
    if (name !== 'before_sleep' || rests === 5 || !(await somebodySleeps())) return
    // The first ones end because a sweep is owed. Later ones do because somebody may be quiet: a sleeper that does not look again for him
    // never comes to the fifth.
    if (++rests === 5) await publisher.query('commit')
  }
  const outbox = createOutbox({
    database: pool,
    schema: database.schema,
    logger: false,
    [Symbol.for('postbox.internals')]: { failpoint: { reach: commitAtFifthRest } },
  })
  outbox.subscribe('orders', ({ body }) => delivered.send(body), { pollMs })
  await publisher.query('begin')
  await outbox.publish(publisher, 'orders', 'quietly')

  await using _running = await outbox.start()

  expect(await delivered.wait().finally(() => publisher.end())).toBe('quietly')
})

test('what is committed quietly after the last look, and before a sleeper lies down, is found by its sweep', async () => {
  const delivered = collector<unknown>('messages')
  let isPublished = false
  let passedMs = 0
  const publishAfterLook = async (name: string): Promise<void> => {
    // Time passes while the first message is handled, so that the next look is a sweep, and none is owed from before.
    if (name === 'before_handler') passedMs = 10_000
    if (name !== 'after_claim' || delivered.all.length === 0 || isPublished) return
    isPublished = true
    await eventually(async () => !(await somebodySleeps()), { what: 'the sleeper to get up' })
    await outbox.publishNow('orders', 'quietly')
  }
  const clock: Clock = { now: () => systemClock.now() + passedMs, sleep: systemClock.sleep }
  const outbox = createOutbox({
    database: pool,
    schema: database.schema,
    logger: false,
    [Symbol.for('postbox.internals')]: { clock, failpoint: { reach: publishAfterLook } },
  })
  // With one slot a claim that finds something is full, and the sleeper gets up.
  const options = { pollMs, concurrency: 1, prefetch: 0, leaseMs: 600_000 }
  outbox.subscribe('orders', ({ body }) => delivered.add(body), options)
  await using _running = await outbox.start()
  await eventually(somebodySleeps, { what: 'the sleeper to lie down' })

  await outbox.publishNow('orders', 'to wake the sleeper')

  expect(await delivered.take(2)).toEqual(['to wake the sleeper', 'quietly'])
  await eventually(async () => (await database.query('select from outbox')).length === 0, {
    what: 'the messages to be settled',
  })
})

/** One other than a publisher holds a lock of the protocol: whoever publishes now sends a notification. */
async function somebodySleeps(): Promise<boolean> {
  const rows = await database.query(
    `
      select
        from pg_locks
        join pg_stat_activity using (pid)
       where locktype = 'advisory'
         and mode = 'ShareLock'
         and application_name like $1
         and state = 'idle'
    `,
    [`${database.applicationName}%`],
  )
  return rows.length > 0
}

test(
  'in 100 rounds of random transactions no sleeper misses a message, though some publishers say nothing',
  async () => {
    const { delivered, announceable, announced } = await publishToSleepers(
      { database, programs },
      { rounds: 100, seed: 20_251 },
    )

    expect(delivered).toBeGreaterThan(100)
    // Else nothing was tried: some publishers must have been quiet, and some not.
    expect(announced).toBeGreaterThan(0)
    expect(announceable - announced).toBeGreaterThan(10)
  },
  longTestLimitMs,
)
