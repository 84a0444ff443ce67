// Ordered queues: rows that somebody writes between the snapshot of a claim and its locks.
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { claimInOrder } from '../../packages/postbox/src/sql/claim-in-order.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { eventually } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf } = bench
const queues = { orders: { order: 'key' } } as const
const lock = 4_711

const byPlace = /m\.ctid = r\.seen\s+and /

/**
 * How a server locks a first that was written since: most do not find it where it lay. Minor releases before autumn 2025 do not check that again: they
 * lock it as it is now, which is what every server does without that line.
 */
const servers = ['that looks again', 'that does not'] as const

/** The claim with a lock to wait for: it has its snapshot and its firsts by then, and no row. */
function heldUp(server: (typeof servers)[number]): { readonly text: string; readonly values: unknown[] } {
  const names = resolveNames({ schema: database.schema, table: 'outbox' })
  const wanted = {
    queue: 'orders',
    room: 10,
    leaseMs: 30_000,
    after: '0',
    dueFromMs: null,
    keys: [],
    keysFrom: '',
  }
  const { text: newest, values } = claimInOrder(names, { token: randomUUID(), queues: [wanted] })
  expect(newest).toMatch(byPlace)
  const text = server === 'that does not' ? newest.replace(byPlace, '') : newest
  const parts = text.split('), picked as materialized (')
  const held = `), held as materialized (
  select pg_advisory_xact_lock(${lock}) from (select count(*) from ranked) as r
), picked as materialized (`
  const waiting = parts.join(held).replace('from ranked as r where', 'from held, ranked as r where')
  expect(waiting).toContain('from held, ranked')
  return { text: waiting, values: [...values] }
}

/** Which bodies a claim brings when the row of that body is released after its snapshot. All were somebody's whose leases have ended. */
async function claimedWhile(released: number, server: (typeof servers)[number]): Promise<readonly string[]> {
  const outbox = outboxOf({ queues })
  await inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', [1, 2, 3], { key: 'a' }))
  await database.query(
    `update outbox set lease_token = gen_random_uuid(), leased_until = now() - interval '1 s'`,
  )
  const [claimer, blocker] = [await bench.pool().connect(), await bench.pool().connect()]
  await blocker.query(`select pg_advisory_lock(${lock})`)
  const { text, values } = heldUp(server)
  const claim = claimer.query(text, values)
  const waits = `select 1 from pg_stat_activity where wait_event = 'advisory' and starts_with(application_name, $1)`
  const isWaiting = async (): Promise<boolean> =>
    (await database.query(waits, [database.applicationName])).length > 0
  await eventually(isWaiting, { what: 'the claim to wait' })
  const release = 'update outbox set lease_token = null, leased_until = null where body = $1'
  await database.query(release, [Buffer.from(String(released))])
  await blocker.query(`select pg_advisory_unlock(${lock})`)
  const { rows } = await claim
  claimer.release()
  blocker.release()
  await database.query('delete from outbox')
  const bodies = rows.filter(({ kind }) => kind === 'message').map(({ body }) => Buffer.from(body, 'base64'))
  return bodies.map(String).toSorted()
}

describe('a row that is released after the snapshot of a claim, and before its lock', () => {
  test.each(servers)(
    'is overtaken by none of its key when it is the first, on a server %s',
    async (server) => {
      expect(await claimedWhile(1, server)).toEqual([])
    },
  )

  test.each(servers)(
    'is overtaken by none of its key when it stands behind the first, on a server %s',
    async (server) => {
      expect(await claimedWhile(2, server)).toEqual(['1'])
    },
  )
})
