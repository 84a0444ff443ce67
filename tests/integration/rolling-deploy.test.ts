// A deployment from the version before to this one: what each makes of the other's tables, and the whole of it under load.
import type pg from 'pg'
import { createOutbox, type Message, type Outbox } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import { currentVersion } from '../../packages/postbox/src/sql/migrations/index.ts'
import { type Child, expectEnd, usePrograms } from '../chaos/processes.ts'
import { wakeQueues } from '../chaos/protocol.ts'
import { createRandom } from '../chaos/random.ts'
import { createPreviousOutbox, previousBuild } from '../rolling/previous.ts'
import { createFussyDeliveredTable, createTraffic } from '../rolling/traffic.ts'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually } from '../support/signals.ts'

const previousPrograms = usePrograms({ postbox: previousBuild })
const programs = usePrograms()
const pollMs = { min: 20, max: 100 }

describe('under load', () => {
  const database = useDatabase()
  let pool: pg.Pool
  let previous: Outbox
  let outbox: Outbox
  const recorded = collector<string>('deliveries of this version')

  beforeAll(async () => {
    pool = database.pool({ max: 20 })
    const options = { database: pool, schema: database.schema, logger: false } as const
    previous = createPreviousOutbox(options)
    outbox = createOutbox(options)
    outbox.subscribe(wakeQueues, record, { pollMs })
    await previous.migrate()
    await createFussyDeliveredTable(database)
  })

  async function record({ id, deliveries }: Message): Promise<void> {
    await pool.query('insert into delivered (id, worker, deliveries) values ($1, $2, $3)', [
      id,
      process.pid,
      deliveries,
    ])
    recorded.add(id)
  }

  test('migrate, start this version, end the version before: nothing is lost or doubled, and nobody notices', async () => {
    const { url, schema } = database
    const traffic = createTraffic(database, createRandom(26))
    const options = { concurrency: 4, prefetch: 8, pollMs }
    await using old = previousPrograms.worker({ url, schema, queues: wakeQueues, options })
    await using oldPublisher = previousPrograms.publisher({ url, schema })
    await using newPublisher = programs.publisher({ url, schema })
    await Promise.all([old, oldPublisher, newPublisher].map((child) => child.until('ready')))
    const armTimers = async (): Promise<void> => {
      for (let n = 0; n < 20; n++) {
        const timer = { timerId: `t${n % 8}`, delayMs: 20 * n }
        traffic.note(await (n % 3 === 0 ? outbox : previous).publishNow('orders', n, timer))
      }
    }

    const migrated = Promise.all([migrateBetweenDeliveries(old), armTimers()])
    await traffic.publishDuring(migrated, [oldPublisher])
    await using _running = await outbox.start()
    const shared = Promise.all([untilBothDeliver(old), armTimers()])
    await traffic.publishDuring(shared, [oldPublisher, newPublisher])
    const handedOver = Promise.all([expectEnd(old), armTimers()])
    await traffic.publishDuring(handedOver, [newPublisher])
    await traffic.untilEmpty()

    await traffic.assertDelivered()
    expect(new Set(complaints(old))).toEqual(
      new Set(['handler failed, message will be retried: error: not at first']),
    )
    for (const child of [oldPublisher, newPublisher]) await expectEnd(child)
  })

  async function migrateBetweenDeliveries(old: Child): Promise<void> {
    await untilDelivered(old, 3)
    await outbox.migrate()
    await untilDelivered(old, 3)
    // One of them has failed, at least.
    await old.until('log')
  }

  async function untilBothDeliver(old: Child): Promise<void> {
    await Promise.all([recorded.take(recorded.all.length + 3), untilDelivered(old, 3)])
  }

  /** It has delivered so many more. */
  async function untilDelivered({ reports }: Child, count: number): Promise<void> {
    const delivered = (): number => reports.all.filter(({ kind }) => kind === 'delivered').length
    const before = delivered()
    await eventually(() => delivered() >= before + count, { what: `${count} more deliveries` })
  }

  function complaints(child: Child): readonly string[] {
    return child.reports.all.flatMap((report) => (report.kind === 'log' ? [report.message] : []))
  }
})

describe('the tables', () => {
  const database = useDatabase()
  let pool: pg.Pool

  beforeAll(() => {
    pool = database.pool()
  })

  const previousOn = (table: string): Outbox =>
    createPreviousOutbox({ database: pool, schema: database.schema, table, logger: false })
  const currentOn = (table: string): Outbox =>
    createOutbox({ database: pool, schema: database.schema, table, logger: false })
  const stepsOf = (table: string): Promise<unknown[]> =>
    database.query(`select xmin::text, version, breaking from ${table}_meta order by version`)

  test('of the version before are refused by this one, which says how to bring them up to date', async () => {
    await previousOn('older').migrate()
    const outbox = currentOn('older')

    await expect(outbox.start()).rejects.toMatchObject({
      code: 'OUTBOX_SCHEMA_OUTDATED',
      hint: expect.stringContaining('outbox.migrate()'),
    })

    await outbox.migrate()
    await (await outbox.start()).stop()
  })

  test('of this one are left alone by the version before, which runs on them but does not migrate them', async () => {
    await currentOn('newer').migrate()
    const steps = await stepsOf('newer')
    const previous = previousOn('newer')

    await expect(previous.migrate()).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_NEWER' })
    expect(await stepsOf('newer')).toEqual(steps)
    await (await previous.start()).stop()
  })

  test('with a step that breaks earlier versions keep them from starting', async () => {
    await currentOn('outbox').migrate()
    const { url, schema } = database
    const note = (breaking: boolean): Promise<unknown> =>
      database.query(
        `insert into outbox_meta (version, name, breaking) select max(version) + 1, 'later', $1 from outbox_meta`,
        [breaking],
      )
    await note(false)
    await using tolerant = previousPrograms.worker({ url, schema })
    await tolerant.until('ready')
    await expectEnd(tolerant)

    await note(true)
    await using refused = previousPrograms.worker({ url, schema })

    const { code, output } = await refused.ended
    expect(code).toBe(1)
    expect(output).toContain('OUTBOX_SCHEMA_NEWER')
    expect(output).toContain(`at version ${currentVersion + 2}, this postbox knows 1.`)
    await expect(currentOn('outbox').start()).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_NEWER' })
  })

  test('are brought up to date without a lock on the messages while something else is waited for', async () => {
    const previous = previousOn('locked')
    await previous.migrate()
    let migrated: Promise<void> = Promise.resolve()
    await inTransaction(pool, async (tx) => {
      // A burial, or a replay, that has not committed yet.
      await tx.query('lock table locked_dead in row exclusive mode')
      migrated = currentOn('locked').migrate()
      await eventually(() => isWaitedFor('locked_dead'), { what: 'migrate to wait for the dead letters' })

      expect(await locksOn('locked')).toEqual([])
    })
    await migrated
  })

  test('are brought up to date without making others wait for a stranger’s transaction', async () => {
    const previous = previousOn('patient')
    await previous.migrate()
    let migrated: Promise<void> = Promise.resolve()
    await inTransaction(pool, async (stranger) => {
      await previous.publish(stranger, 'orders', 1)
      migrated = currentOn('patient').migrate()
      await eventually(() => isWaitedFor('patient'), { what: 'migrate to wait for the transaction' })
      // A burial locks the messages first: whoever has the dead letters and waits for the messages meets it.
      expect(await locksOn('patient_dead')).toEqual([])
      await inTransaction(pool, async (other) => {
        await other.query(`set local lock_timeout = '20s'`)
        await expect(previous.publish(other, 'orders', 2)).resolves.not.toBeNull()
      })
    })
    await migrated
  })

  test('of the version before take everything that a service which only publishes does in this one', async () => {
    await previousOn('publisher').migrate()
    const outbox = currentOn('publisher')
    const hour = { timerId: 't', delayMs: 3_600_000 }
    await inTransaction(pool, async (tx) => {
      await outbox.publish(tx, 'orders', 1)
      await outbox.publishMany(tx, 'orders', [2, 3])
      expect(await outbox.publish(tx, 'orders', 4, hour)).not.toBeNull()
      expect(await outbox.publish(tx, 'orders', 5, hour)).toBeNull()
      expect(await outbox.publish(tx, 'orders', 6, { ...hour, onConflict: 'replace' })).not.toBeNull()
      expect(await outbox.cancelTimer(tx, 'orders', 't')).toBe(true)
    })
  })

  async function isWaitedFor(table: string): Promise<boolean> {
    const rows = await database.query(
      'select from pg_locks where relation = $1::text::regclass and not granted',
      [table],
    )
    return rows.length > 0
  }

  function locksOn(table: string): Promise<unknown[]> {
    return database.query('select mode from pg_locks where relation = $1::text::regclass', [table])
  }
})
