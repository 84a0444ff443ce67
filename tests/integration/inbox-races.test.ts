// One message in several hands at once: who runs, who is told what, and what is left when one of them dies.
import type pg from 'pg'
import { createOutbox, type OnceOptions, type OnceResult } from 'postbox'
import { describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { useInbox } from '../support/inbox-bench.ts'
import { eventually, signal } from '../support/signals.ts'

const database = useDatabase()
const bench = useInbox(database)
const { begin, bill, billed } = bench
const message = { consumer: 'billing', id: 'order-1' }
const busy = { ran: false, because: 'busy' }
const duplicate = { ran: false, because: 'duplicate' }
const ran = { ran: true, value: 'billed' }

/** Bills the message once, in this transaction. Does not wait, unless told to. */
function once(tx: pg.PoolClient, given: Partial<OnceOptions> = {}): Promise<OnceResult<string>> {
  return bench.outbox.inbox.once(tx, { ...message, lockMs: 0, ...given }, async () => {
    await bill(tx, given.id ?? message.id)
    return 'billed'
  })
}

/** The same, waiting on a clock that the test moves. */
function waiting(tx: pg.PoolClient) {
  const clock = fakeClock()
  const { inbox } = createOutbox({
    ...{ schema: database.schema },
    ...{ [Symbol.for('postbox.internals')]: { clock } },
  })
  const result = inbox.once(tx, message, () => bill(tx, message.id).then(() => 'billed'))
  const asleep = (): Promise<unknown> =>
    eventually(() => clock.left.length > 0, { what: 'somebody who waits' })
  return { clock, result, asleep }
}

test('of two that have one message one runs, the other is busy, and then it is a duplicate', async () => {
  const [one, two] = [await begin(), await begin()]
  const [started, goOn] = [signal('the work has started'), signal('the work may end')]
  const first = bench.outbox.inbox.once(one, message, async () => {
    started.send()
    await goOn.wait()
    await bill(one, message.id)
    return 'billed'
  })
  await started.wait()

  const during = await once(two)
  goOn.send()
  const afterwards = [await first, await once(two)]
  await one.query('commit')

  expect([during, ...afterwards]).toEqual([busy, ran, busy])
  expect(await once(two)).toEqual(duplicate)
  await two.query('commit')
  expect(await billed()).toEqual([message.id])
})

describe('somebody who waits', () => {
  test('runs when who had it rolls back', async () => {
    const [one, two] = [await begin(), await begin()]
    await once(one)
    const { clock, result, asleep } = waiting(two)
    await asleep()
    await one.query('rollback')
    clock.advance(5)

    expect(await result).toEqual(ran)
    await two.query('commit')
    expect(await billed()).toEqual([message.id])
  })

  test('is told of a duplicate when who had it commits', async () => {
    const [one, two] = [await begin(), await begin()]
    await once(one)
    const { clock, result, asleep } = waiting(two)
    await asleep()
    await one.query('commit')
    clock.advance(5)

    expect(await result).toEqual(duplicate)
    expect(await billed()).toEqual([message.id])
  })

  test('is told that it is busy when the time is over, and his transaction goes on', async () => {
    const [one, two] = [await begin(), await begin()]
    await once(one)
    await bill(two, 'mine')
    const { clock, result, asleep } = waiting(two)
    await asleep()
    clock.advance(1_000)

    expect(await result).toEqual(busy)
    await two.query('commit')
    expect(await billed()).toEqual(['mine'])
  })

  test('runs when the server ends the connection of who had it', async () => {
    const [one, two] = [await begin(), await begin()]
    await once(one)
    const { clock, result, asleep } = waiting(two)
    await asleep()
    const { rows } = await one.query('select pg_backend_pid() as pid')
    await database.query('select pg_terminate_backend($1, 30000)', [rows[0].pid])
    clock.advance(5)

    expect(await result).toEqual(ran)
    await two.query('commit')
    expect(await billed()).toEqual([message.id])
  })

  test('runs when who had it goes back to a savepoint, though the transaction goes on', async () => {
    const [one, two] = [await begin(), await begin()]
    await one.query('savepoint here')
    await once(one)
    const { clock, result, asleep } = waiting(two)
    await asleep()
    await one.query('rollback to savepoint here')
    clock.advance(5)

    expect(await result).toEqual(ran)
    expect(await once(one)).toEqual(busy)
    await two.query('commit')
    expect(await once(one)).toEqual(duplicate)
    await one.query('commit')
    expect(await billed()).toEqual([message.id])
  })
})

describe('a look that began before the other committed', () => {
  /** Who looks gets his snapshot, and stops right before the lock is tried. */
  async function stopBeforeLock(tx: pg.PoolClient): Promise<{ goOn(): Promise<unknown> }> {
    await database.query(`create function ${database.schema}.pg_try_advisory_xact_lock(key bigint) returns boolean language plpgsql as $$
      begin
        perform pg_catalog.pg_advisory_xact_lock(4242);
        return pg_catalog.pg_try_advisory_xact_lock(key);
      end $$`)
    onTestFinished(async () => {
      await database.query(`drop function ${database.schema}.pg_try_advisory_xact_lock(bigint)`)
    })
    const gate = await begin()
    await gate.query('select pg_advisory_xact_lock(4242)')
    await tx.query(`set local search_path = ${database.schema}, pg_catalog`)
    return { goOn: () => gate.query('commit') }
  }
  const stopped = (): Promise<unknown> =>
    eventually(
      async () =>
        (
          await database.query(
            `select from pg_stat_activity where starts_with(application_name, $1) and wait_event = 'advisory'`,
            [database.applicationName],
          )
        ).length === 1,
      { what: 'a look that has begun' },
    )

  test('finds the mark that it cannot see: a duplicate', async () => {
    const [one, two] = [await begin(), await begin()]
    const { goOn } = await stopBeforeLock(two)
    await once(one)
    const looking = once(two)
    await stopped()
    await one.query('commit')
    await goOn()

    expect(await looking).toEqual(duplicate)
    expect(await billed()).toEqual([message.id])
  })

  test('finds nothing of who has rolled back, and runs', async () => {
    const [one, two] = [await begin(), await begin()]
    const { goOn } = await stopBeforeLock(two)
    await once(one)
    const looking = once(two)
    await stopped()
    await one.query('rollback')
    await goOn()

    expect(await looking).toEqual(ran)
  })
})

describe.each(['repeatable read', 'serializable'])('in a transaction that is %s', (isolation) => {
  test('a message that was handled before it began is a duplicate', async () => {
    const [one, two] = [await begin(), await begin(isolation)]
    await once(one)
    await one.query('commit')

    expect(await once(two)).toEqual(duplicate)
  })

  test('one that is being handled is busy', async () => {
    const [one, two] = [await begin(), await begin(isolation)]
    await once(one)

    expect(await once(two)).toEqual(busy)
  })

  // No statement can see what its transaction must not see: as everything else there, it has to be tried again.
  test('one that was handled since it began fails it, to be tried again, and is then a duplicate', async () => {
    const [one, two] = [await begin(), await begin(isolation)]
    await two.query('select from invoices')
    await once(one)
    await one.query('commit')

    await expect(once(two)).rejects.toMatchObject({ code: '40001' })
    await two.query('rollback')
    await two.query(`begin isolation level ${isolation}`)
    expect(await once(two)).toEqual(duplicate)
    expect(await billed()).toEqual([message.id])
  })
})

test.each([
  ['commit', duplicate],
  ['rollback', ran],
])('whoever writes the mark by SQL of his own is waited for: %s', async (ending, result) => {
  const [one, two] = [await begin(), await begin()]
  await one.query(`insert into outbox_handled values ('billing', 'order-1')`)
  const looking = once(two)
  const isWaiting = async (): Promise<boolean> =>
    (
      await database.query(
        `select from pg_stat_activity where starts_with(application_name, $1) and wait_event_type = 'Lock'`,
        [database.applicationName],
      )
    ).length === 1
  await eventually(isWaiting, { what: 'a mark that waits' })
  await one.query(ending)

  expect(await looking).toEqual(result)
})

test('forty messages, each delivered to eight at once that commit, roll back, fail and die, have one effect each', async () => {
  const ids = Array.from({ length: 40 }, (_, n) => `order-${n}`)
  const seen = { ran: 0, busy: 0, duplicate: 0, rolledBack: 0, thrown: 0, killed: 0 }

  /** One delivery; true: it may be acknowledged. */
  async function deliver(id: string, chance: number): Promise<boolean> {
    const client = await bench.pool.connect()
    let isBroken = false
    try {
      await client.query('begin')
      const result = await bench.outbox.inbox.once(
        client,
        { ...message, id, lockMs: chance < 0.5 ? 0 : 20 },
        async () => {
          await bill(client, id)
          if (chance > 0.4) return
          // Its effect is taken back with it, as a caller does who goes on after an error.
          await client.query('delete from invoices where message_id = $1', [id])
          throw new Error('mine')
        },
      )
      if (result.ran && chance > 0.85) {
        seen.killed++
        isBroken = true
        return false
      }
      if (result.ran && chance > 0.7) {
        seen.rolledBack++
        await client.query('rollback')
        return false
      }
      await client.query('commit')
      seen[result.ran ? 'ran' : result.because]++
      return result.ran || result.because === 'duplicate'
    } catch (error) {
      if ((error as Error).message !== 'mine') throw error
      seen.thrown++
      await client.query('commit')
      return false
    } finally {
      client.release(isBroken)
    }
  }

  const random = seeded(7)
  const redeliver = async (id: string): Promise<void> => {
    while (!(await deliver(id, random())));
  }
  for (let n = 0; n < ids.length; n += 4)
    await Promise.all(ids.slice(n, n + 4).flatMap((id) => Array.from({ length: 8 }, () => redeliver(id))))

  expect(await billed()).toEqual(ids.toSorted())
  expect(seen.ran).toBe(40)
  expect(seen.ran + seen.duplicate).toBe(8 * 40)
  expect(
    Object.values(seen).every((count) => count > 0),
    JSON.stringify(seen),
  ).toBe(true)
})

/** Numbers in [0, 1) that look random and are always the same (Park and Miller). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
